//! Tests of what faults cost the users of a simulated fabric.

use serde_json::Value;

use super::command::{mapper, sim, sim_error, text};

/// Users send while cables break, and the report says what each fault cost them.
#[test]
fn what_faults_cost_users_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let faults = folder.path().join("faults");
    std::fs::write(&faults, "at 500ms cut xbar1:1\nat 900ms mend xbar1:1\nat 1400ms silence xbar2:1\n")
        .expect("written");
    let args = [
        "ring:n=5,hosts=1",
        "--xbars",
        "tagged",
        "--faults",
        text(&faults),
        "--until",
        "2000",
        "--traffic",
        "200",
    ];
    let mut report = sim(&args);
    let traffic = &report["traffic"];
    let count = |key: &str| traffic[key].as_u64().expect("a count");
    assert!(count("sent") > 1000 && count("delivered") + count("lost") <= count("sent"), "{traffic}");
    assert_eq!((count("duplicated"), report["configured"].as_bool()), (0, Some(true)));
    assert!(traffic["longest_gap_ms"].as_f64().is_some_and(|gap| gap < 200.0), "{traffic}");
    let told = traffic["faults"].as_array().expect("an array");
    let what: Vec<_> = told.iter().map(|fault| fault["what"].as_str().expect("a text")).collect();
    assert_eq!(what, ["cut xbar1:1", "mend xbar1:1", "silence xbar2:1"]);
    assert!(
        told.iter().all(|fault| fault["longest_gap_ms"].is_number() && fault["new_map_after_ms"].is_number()),
        "{traffic}"
    );
    assert_eq!((told[0]["at_ms"].as_f64(), told[2]["still_without"].as_u64()), (Some(500.0), Some(0)));
    // A second run with the same seed is the same.
    let mut again = sim(&args);
    for report in [&mut report, &mut again] {
        report["wall_ms"] = Value::Null;
    }
    assert_eq!(report, again);
    let words = mapper(&[&["sim"], &args[..]].concat());
    let words = String::from_utf8(words.stdout).expect("text");
    assert!(words.contains("frames sent") && words.contains("silence xbar2:1 at 1400.0 ms: "), "{words}");
    assert_eq!(sim(&args[..7])["traffic"], Value::Null, "nobody asked");
}

/// A machine that sees the carrier of its own crossbar's ports leaves a cut cable at once, and loses few
/// frames.
#[test]
fn nodes_see_their_own_carriers() {
    let folder = tempfile::tempdir().expect("a folder");
    let faults = folder.path().join("faults");
    std::fs::write(&faults, "at 500ms cut xbar1:1\n").expect("written");
    let args = [
        "ring:n=5,hosts=1",
        "--xbars",
        "tagged",
        "--faults",
        text(&faults),
        "--until",
        "1000",
        "--traffic",
        "1000",
        "--nodes",
    ];
    let report = sim(&args);
    let fault = &report["traffic"]["faults"][0];
    assert!(fault["longest_gap_ms"].as_f64().is_some_and(|gap| gap <= 4.0), "{fault}");
    assert!(fault["new_map_after_ms"].as_f64().is_some_and(|after| after < 10.0), "{fault}");
}

#[test]
fn users_need_time_to_send() {
    assert!(sim_error(&["ring:n=3,hosts=1", "--traffic", "10"]).contains("--until MS"));
    let output = mapper(&["sim", "--traffic", "0"]);
    assert_eq!(output.status.code(), Some(2));
}
