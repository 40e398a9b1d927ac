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

#[test]
fn a_cable_that_loses_a_fifth_costs_nobody_a_frame_once_it_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let faults = folder.path().join("faults");
    // All that would cross these cables has another way that cannot deadlock.
    for (fabric, at, kind) in [
        ("clos:hosts=16,ports=8", "leaf1:5", &["--xbars", "plain"][..]),
        ("clos:hosts=16,ports=8", "leaf1:5", &["--xbars", "tagged"]),
        ("ring:n=3,hosts=1", "xbar1:1", &["--nodes", "--data-path", "srv6"]),
        ("ring:n=3,hosts=1", "xbar1:1", &["--nodes", "--data-path", "routes"]),
    ] {
        std::fs::write(&faults, format!("at 1s lossy {at} 20%\n")).expect("written");
        let lost_until = |until| {
            let args = [fabric, "--faults", text(&faults), "--traffic", "200", "--until", until];
            sim(&[&args[..], kind].concat())["traffic"]["lost"].as_u64().expect("a count")
        };
        // The first seconds of both runs are the same.
        let (found, later) = (lost_until("9000"), lost_until("14000"));
        assert!(found > 10 && found == later, "{fabric} {kind:?}: {found}, then {later}");
    }
}

#[test]
fn packets_of_nodes_go_through_their_kernels_by_what_is_said() {
    let sent = |path: &str| {
        let words = ["ring:n=4,hosts=1", "--xbars", "tagged", "--nodes", "--data-path", path];
        sim(&[&words[..], &["--until", "2000", "--traffic", "100"]].concat())["traffic"].clone()
    };
    for path in ["srv6", "routes"] {
        let traffic = sent(path);
        let [by_kernel, delivered] = ["by_kernel", "delivered"].map(|field| traffic[field].as_u64().unwrap());
        assert!(
            traffic["lost"] == 0 && by_kernel > delivered / 2 && by_kernel <= delivered,
            "{path}: {traffic}"
        );
    }
    assert_eq!(sent("mixed")["lost"], 0);
    assert_eq!(sent("tap")["by_kernel"], 0);
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

/// The traffic of a run in which these faults strike and which ends on its own, and what it prints for people.
fn told_of(lines: &str) -> (Value, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let faults = folder.path().join("faults");
    std::fs::write(&faults, lines).expect("written");
    let args = ["clos:hosts=8,ports=4", "--faults", text(&faults), "--traffic", "100"];
    let traffic = sim(&args)["traffic"].clone();
    let words = mapper(&[&["sim"], &args[..]].concat());
    (traffic, String::from_utf8(words.stdout).expect("text"))
}

/// A frame counts as lost some time after it was sent, and all are configured again earlier.
#[test]
fn a_run_that_ends_when_all_are_configured_tells_what_faults_cost() {
    let (traffic, words) = told_of("at 2s silence leaf1:3\n");
    let count = |key: &str| traffic[key].as_u64().expect("a count");
    assert!(
        count("lost") > 0 && traffic["longest_gap_ms"].as_f64().is_some_and(|gap| gap > 0.0),
        "{traffic}"
    );
    let fault = &traffic["faults"][0];
    assert!(fault["pairs"].as_u64().is_some_and(|pairs| pairs > 0), "{traffic}");
    assert!(fault["routes_after_ms"].as_f64().is_some_and(|after| after > 0.0), "{traffic}");
    assert_eq!(fault["still_without"], 0, "{traffic}");
    assert_eq!(count("sent"), count("delivered") + count("lost") + count("undecided"), "{traffic}");
    assert!(words.contains("pairs of hosts lost frames, for "), "{words}");
}

/// What is lost because no cable leads there is no fault's gap, and the report says why it is lost.
#[test]
fn frames_that_could_not_arrive_are_told_apart() {
    let (traffic, words) = told_of("at 2s cut h3\nat 4s mend h3\n");
    let count = |key: &str| traffic[key].as_u64().expect("a count");
    assert!(count("out_of_reach") > 300 && count("out_of_reach") <= count("lost"), "{traffic}");
    assert_eq!(count("sent"), count("delivered") + count("lost") + count("undecided"), "{traffic}");
    let why =
        format!("{} lost ({} of them to hosts that no cables led to", count("lost"), count("out_of_reach"));
    assert!(words.contains(&why), "{words}");
    assert!(
        words.contains("cut h3 at 2000.0 ms: no pair of hosts that cables joined lost frames"),
        "{words}"
    );
}

#[test]
fn users_need_time_to_send() {
    assert!(sim_error(&["ring:n=3,hosts=1", "--traffic", "10"]).contains("--until MS"));
    let output = mapper(&["sim", "--traffic", "0"]);
    assert_eq!(output.status.code(), Some(2));
}
