//! Tests of `mapper plan` as a user runs it.

use std::process::{Command, Output};

use serde_json::Value;

fn check(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mapper")).args(["plan", "check"]).args(arguments).output().unwrap()
}

#[test]
fn exit_statuses_and_json_are_those_of_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("plan.csv");
    let plan = plan.to_str().unwrap();
    let lines = "StartDevice,StartPort,EndDevice,EndPort,LinkType\n\
                 xbar1,Port 1,h1,Port 1,Data\nxbar1,Port 2,h2,Port 1,Data\n\
                 xbar1,Port 4,h4,Port 1,Data\nxbar1,Port 3,h3,Port 1,Data\n";
    std::fs::write(plan, lines).unwrap();
    let same = check(&[plan, "clos:hosts=4,ports=4"]);
    assert_eq!(same.status.code(), Some(0), "{}", String::from_utf8_lossy(&same.stdout));
    std::fs::write(plan, lines.replace("h1", "h5").replace("h2", "h1").replace("h5", "h2")).unwrap();
    let output = check(&[plan, "clos:hosts=4,ports=4", "--format", "json"]);
    assert_eq!(output.status.code(), Some(3));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["schema"], &json["matched_by"]), (&"mapper.plan/1".into(), &"ids".into()));
    let [difference] = &json["differences"].as_array().unwrap()[..] else { panic!("{json}") };
    assert_eq!((&difference["kind"], &difference["severity"]), (&"swapped-plugs".into(), &"label".into()));
    assert!(
        difference["advice"].as_str().unwrap().starts_with("swap the plugs at xbar1:1 and xbar1:2"),
        "{json}"
    );
    std::fs::write(plan, "from,to\nxbar1:1,h1\n").unwrap();
    let refused = check(&[plan, "clos:hosts=4,ports=4"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("plan.csv:2, column 2 (to): `h1` has no port"), "{said}");
    assert_eq!(refused.status.code(), Some(1));
}

#[test]
fn what_is_left_out_is_the_plan_of_the_configuration_or_what_agents_hold() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (config, plan, run_dir) = (path("mapper.toml"), path("plan.csv"), path("run"));
    let lines = "from,to\nxbar1:1,h1:1\nxbar1:2,h2:1\nxbar1:3,h3:1\n";
    std::fs::write(&plan, lines).unwrap();
    std::fs::write(&config, format!("[plan]\nfile = \"{plan}\"\n")).unwrap();
    let more = check(&["clos:hosts=4,ports=4", "--config", &config]);
    assert_eq!(more.status.code(), Some(3), "a host more than planned: {more:?}");
    std::fs::write(&plan, format!("{lines}xbar1:4,h4:1\n")).unwrap();
    assert_eq!(check(&["clos:hosts=4,ports=4", "--config", &config]).status.code(), Some(0));
    let error = |arguments: &[&str], status: i32| {
        let output = check(arguments);
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let none = error(&["--config", &config, "--run-dir", &run_dir], 1);
    assert!(none.contains("no agent of this machine has a status socket"), "{none}");
    let none = error(&[&plan, "--live", "--run-dir", &run_dir], 1);
    assert!(none.contains("no agent of this machine has a status socket"), "{none}");
    std::fs::write(&config, "level = 1\n").unwrap();
    let none = error(&["clos:hosts=4,ports=4", "--config", &config], 1);
    assert!(none.contains("mapper.toml: there is no plan in it"), "{none}");
    // A machine that has agents may have a plan, too.
    if !std::path::Path::new("/etc/mapper").exists() {
        for arguments in [&["clos:hosts=4,ports=4"][..], &["--live"]] {
            let none = error(arguments, 1);
            assert!(
                none.contains("name the plan as the argument PLAN, or as `file` in the table [plan]"),
                "{none}"
            );
        }
    }
    error(&[&plan, "clos:hosts=4,ports=4", "--config", &config], 2);
    error(&[&plan, "clos:hosts=4,ports=4", "--live"], 2);
}
