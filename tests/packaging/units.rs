//! A test of the units of systemd.

use std::fs;
use std::process::Command;

use crate::{MAPPER, packaging, run};

/// Each unit, an instance of it, and the exposure that it must not exceed, in tenths.
const UNITS: [(&str, &str, &str); 3] = [
    ("mapper@.service", "mapper@eth1.service", "20"),
    ("mapper-node.service", "mapper-node.service", "20"),
    ("mapper-xbar@.service", "mapper-xbar@rack1.service", "17"),
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
        let said = run(Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&unit));
        assert_eq!(said, "", "{file}");
        let mut security = Command::new("systemd-analyze");
        security.args(["security", "--offline=true", "--no-pager", "--threshold", threshold]).arg(&unit);
        let score = run(security.env("LC_ALL", "C.UTF-8"));
        println!("{}", score.lines().last().unwrap());
    }
}
