//! OpenSM's options of routing, as its own help lists them: each is taken here, too.

use std::process::Command;

use crate::peers::{are_there, path};

/// Options of OpenSM's that say nothing of routing: how the daemon runs, what it manages besides, what it logs.
const OF_THE_DAEMON: &[&str] = &[
    "version",
    "config",
    "create-config",
    "guid",
    "priority",
    "subnet_prefix",
    "smkey",
    "sm_sl",
    "sadb_file",
    "once",
    "sweep",
    "timeout",
    "retries",
    "maxsmps",
    "console",
    "console-port",
    "honor_guid2lid",
    "dump_files_dir",
    "log_file",
    "log_limit",
    "erase_log_file",
    "Pconfig",
    "no_part_enforce",
    "part_enforce",
    "allow_both_pkeys",
    "qos",
    "qos_policy_file",
    "congestion_control",
    "cc_key",
    "stay_on_fatal",
    "daemon",
    "inactive",
    "perfmgr",
    "perfmgr_sweep_time_s",
    "prefix_routes_file",
    "consolidate_ipv6_snm_req",
    "log_prefix",
    "verbose",
    "V",
    "D",
    "debug",
    "help",
];

/// The options in OpenSM's help, with whether they take a value.
fn listed(help: &str) -> Vec<(String, bool)> {
    let lines = help.lines().filter(|line| line.starts_with("--") && !line.starts_with("---"));
    let option = |line: &str| {
        let (names, value) = line.split_once('<').map_or((line, false), |(names, _)| (names, true));
        let name = names.trim_start_matches('-').split([',', ' ', '(']).next().unwrap_or_default();
        (name.to_owned(), value)
    };
    lines.map(option).collect()
}

#[test]
fn every_option_of_routing_in_opensms_help_is_taken() {
    if !are_there() {
        return;
    }
    let help = Command::new("opensm").env("PATH", path()).arg("--help").output().unwrap();
    let help = [help.stdout, help.stderr].concat();
    let options = listed(&String::from_utf8_lossy(&help));
    let of_routing: Vec<_> =
        options.iter().filter(|(name, _)| !OF_THE_DAEMON.contains(&name.as_str())).collect();
    assert!(
        of_routing.len() >= 20 && of_routing.iter().any(|(name, _)| name == "routing_engine"),
        "{options:?}"
    );
    for (name, takes_value) in of_routing {
        let mut ours = Command::new(env!("CARGO_BIN_EXE_mapper"));
        ours.args(["route", "clos:hosts=8,ports=4", &format!("--{name}")]);
        if *takes_value {
            ours.arg("1");
        }
        let said = ours.output().unwrap();
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(!said.contains("unexpected argument"), "--{name}: {said}");
    }
}
