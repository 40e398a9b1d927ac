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
