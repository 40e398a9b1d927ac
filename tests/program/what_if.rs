//! Tests of `mapper what-if` as a user runs it.

use std::process::{Command, Output};

use serde_json::{Value, json};

fn what_if(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mapper")).arg("what-if").args(arguments).output().unwrap()
}

fn json_of(arguments: &[&str]) -> Value {
    let output = what_if(&[arguments, &["--format", "json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_change_tells_who_is_cut_off_and_what_it_costs() {
    let spec = "clos:hosts=8,ports=4";
    let json = json_of(&[spec, "--remove", "leaf1", "--cut", "h8"]);
    assert_eq!(json["schema"], "mapper.what-if/1");
    assert_eq!(json["cut_off"], json!(["h1", "h2", "h8"]));
    for when in ["before", "after"] {
        assert!(json[when]["engine"].is_string() && json[when]["effective_bisection"].is_number(), "{json}");
    }
    let cut = json_of(&[spec, "--cut", "leaf2:3", "--engine", "minhop"]);
    assert_eq!((&cut["cut_off"], &cut["after"]["engine"]), (&json!([]), &json!("minhop")));
    let bisection = |when: &str| cut[when]["effective_bisection"].as_f64().unwrap();
    assert!(bisection("after") < bisection("before"), "{cut}");
    assert!(cut["changed_entries"].as_u64() > Some(0), "{cut}");
    // As many entries are listed as change, and none of them leads over the cut cable afterwards.
    let tables = cut["tables"].as_array().unwrap();
    let entries = |table: &Value| table["entries"].as_array().unwrap().clone();
    let all: u64 = tables.iter().map(|table| table["changed"].as_u64().unwrap()).sum();
    assert_eq!(all, cut["changed_entries"].as_u64().unwrap());
    assert!(tables.iter().all(|table| entries(table).len() as u64 == table["changed"]), "{cut}");
    let leaf = tables.iter().find(|table| table["xbar"] == "leaf2").unwrap();
    assert!(entries(leaf).iter().any(|entry| entry["was"] == 3), "{leaf}");
    assert!(entries(leaf).iter().all(|entry| entry["now"] != 3 && entry["to"].is_string()), "{leaf}");
    let text = String::from_utf8(what_if(&[spec, "--cut", "leaf2:3", "--engine", "minhop"]).stdout).unwrap();
    assert!(text.contains("leaf2 to ") && text.contains(": port 3 before, port 4 after\n"), "{text}");
    let same = json_of(&[spec, "--cut", "h8", "--cut", "h1", "--add", "h8,leaf4:2", "--add", "leaf1:1,h1"]);
    assert_eq!((&same["cut_off"], &same["changed_entries"]), (&json!([]), &json!(0)), "{same}");
    let text = String::from_utf8(what_if(&[spec, "--remove", "leaf1"]).stdout).unwrap();
    assert!(text.contains("cut off    2 hosts: h1, h2\n"), "{text}");
}

#[test]
fn each_lists_the_worst_first_and_says_what_is_exact() {
    let json = json_of(&["clos:hosts=8,ports=4", "--each", "xbar", "--most", "3"]);
    let worst = json["worst"].as_array().unwrap();
    assert_eq!((&json["tried"], &json["parting"]), (&json!(6), &json!(4)));
    assert!(worst.len() <= 3 && worst[0]["cut_off"].as_array().unwrap().len() == 2, "{json}");
    let cables = json_of(&["clos:hosts=8,ports=4", "--each", "cable"]);
    assert_eq!(
        (&cables["tried"], &cables["parting"], &cables["host_cables"]),
        (&json!(16), &json!(8), &json!(8))
    );
    let worst = cables["worst"].as_array().unwrap();
    assert_eq!((&worst[0]["cable"][0], &worst[0]["alike"]), (&json!("h1"), &json!(8)), "{cables}");
    assert_eq!(worst[0]["cut_off"], json!(["h1"]));
    let all: u64 = worst.iter().map(|one| one["alike"].as_u64().unwrap()).sum();
    assert_eq!(all, 16);
    let bisections: Vec<f64> =
        worst[1..].iter().map(|one| one["effective_bisection"].as_f64().unwrap()).collect();
    assert!(!bisections.is_empty() && bisections.is_sorted(), "{cables}");
    let text = String::from_utf8(what_if(&["clos:hosts=8,ports=4", "--each", "cable"]).stdout).unwrap();
    assert!(text.contains("Who is cut off is exact for all 16."), "{text}");
}

#[test]
fn what_cannot_be_asked_is_refused() {
    for (arguments, status, said) in [
        (&["ring:n=3"][..], 2, "required"),
        (&["ring:n=3", "--each", "cable", "--cut", "h1"], 2, "cannot be used with"),
        (&["ring:n=3", "--most", "3", "--cut", "h1"], 2, "cannot be used with"),
        (&["ring:n=3", "--cut", "nobody:1"], 1, "nothing in the fabric is called `nobody`"),
    ] {
        let output = what_if(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {error}");
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
}
