//! A test of the units of systemd.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{MAPPER, packaging, run};

/// Each unit, an instance of it, and the exposure that it must not exceed, in tenths.
const UNITS: [(&str, &str, &str); 4] = [
    ("mapper@.service", "mapper@eth1.service", "20"),
    ("mapper-node.service", "mapper-node.service", "20"),
    ("mapper-xbar@.service", "mapper-xbar@rack1.service", "17"),
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
fn what_the_crossbars_unit_says_of_the_kernels_forwarding_is_understood_by_systemd() {
    if !mapper_needs::programs(&["systemd-analyze"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(packaging().join("systemd/mapper-xbar@.service")).unwrap();
    let lines = text.lines().skip_while(|line| *line != "#     [Service]");
    let lines: Vec<_> = lines.map_while(|line| line.strip_prefix("#     ")).collect();
    assert_eq!(lines.len(), 5, "{lines:?}");
    let unit = dir.path().join("mapper-xbar@rack1.service");
    // What is added stands behind the unit's own lines, as in an override.
    let service = format!("{}\n\n[Install]", lines[1..].join("\n"));
    let text = text.replace("/usr/bin/mapper", MAPPER).replace("\n[Install]", &service);
    assert!(text.contains("RestrictSUIDSGID=yes\nAmbientCapabilities=CAP_NET_ADMIN\n"), "{text}");
    fs::write(&unit, text).unwrap();
    assert_is_understood_and_confined(&unit, "20");
}

fn assert_is_understood_and_confined(unit: &Path, threshold: &str) {
    let said = run(Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(unit));
    assert_eq!(said, "", "{}", unit.display());
    let mut security = Command::new("systemd-analyze");
    security.args(["security", "--offline=true", "--no-pager", "--threshold", threshold]).arg(unit);
    run(security.env("LC_ALL", "C.UTF-8"));
}
