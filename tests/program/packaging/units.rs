//! A test of the units of systemd.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{MAPPER, packaging, run};

/// Each unit, an instance of it, and the exposure that it must not exceed, in tenths. Agents and nodes speak IP to all hosts of the
/// fabric, whatever addresses these have; what that adds is a tenth.
const UNITS: [(&str, &str, &str); 4] = [
    ("mapper@.service", "mapper@eth1.service", "21"),
    ("mapper-node.service", "mapper-node.service", "21"),
    ("mapper-xbar@.service", "mapper-xbar@rack1.service", "20"),
    ("mapper-acm.service", "mapper-acm.service", "12"),
];

#[test]
fn systemd_understands_the_units_and_finds_them_well_confined() {
    if !mapper_needs::programs(&["systemd-analyze"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (file, instance, threshold) in UNITS {
        let text = fs::read_to_string(packaging().join("systemd").join(file)).unwrap();
        // The program that a unit names must exist, and nothing is installed here, so the built one is named.
        let unit = dir.path().join(instance);
        fs::write(&unit, text.replace("/usr/bin/mapper", MAPPER)).unwrap();
        let socket = file.replace(".service", ".socket");
        if packaging().join("systemd").join(&socket).exists() {
            fs::copy(packaging().join("systemd").join(&socket), dir.path().join(&socket)).unwrap();
        }
        assert_is_understood_and_confined(&unit, threshold);
    }
}

#[test]
fn the_units_of_all_who_forward_users_packets_let_them_have_the_kernel_do_it() {
    for file in ["mapper@.service", "mapper-node.service", "mapper-xbar@.service"] {
        let text = fs::read_to_string(packaging().join("systemd").join(file)).unwrap();
        for line in [
            "AmbientCapabilities=CAP_NET_RAW CAP_NET_ADMIN",
            "CapabilityBoundingSet=CAP_NET_RAW CAP_NET_ADMIN",
            "ReadWritePaths=-/proc/sys/net",
            "ProcSubset=all",
        ] {
            assert!(text.lines().any(|there| there == line), "{file} lacks {line}");
        }
    }
}

#[test]
fn units_keep_back_no_probes_of_the_kernels_paths() {
    for file in ["mapper@.service", "mapper-node.service"] {
        let text = fs::read_to_string(packaging().join("systemd").join(file)).unwrap();
        let filter = text.lines().find(|line| line.starts_with("IPAddress"));
        assert_eq!(filter, None, "{file}: hosts may have addresses of any network");
    }
}

fn assert_is_understood_and_confined(unit: &Path, threshold: &str) {
    let said = run(Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(unit));
    assert_eq!(said, "", "{}", unit.display());
    let mut security = Command::new("systemd-analyze");
    security.args(["security", "--offline=true", "--no-pager", "--threshold", threshold]).arg(unit);
    run(security.env("LC_ALL", "C.UTF-8"));
}
