//! Tests of what `mapper sim` refuses, and of what it says then.

use super::command::{mapper, sim, sim_error, text};

#[test]
fn errors_say_what_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let faults = folder.path().join("faults");
    let fault_error = |line: &str| {
        std::fs::write(&faults, format!("\n{line}\n")).expect("written");
        sim_error(&["clos:hosts=16,ports=8", "--faults", text(&faults)])
    };
    let error = fault_error("at 1s kill nobody");
    assert!(error.contains("faults:2: the fabric has no host `nobody`"), "{error}");
    let error = fault_error("at 1s explode h1");
    assert!(error.contains("faults:2: `explode` is no fault"), "{error}");
    let error = sim_error(&["clos:hosts=16,ports=8", "--limit-ms", "1"]);
    assert!(error.contains("not configured within 1 virtual ms"), "{error}");
    let error = sim_error(&["torus:x=2,y=2,hosts=1,ports=40", "--xbars", "plain"]);
    assert!(error.contains("40 ports"), "{error}");
}

#[test]
fn a_run_that_is_not_configured_says_why() {
    let error = sim_error(&["ring:n=9,hosts=1", "--max-hops", "4", "--limit-ms", "3000"]);
    assert!(error.contains("hops, but at most 4 are allowed"), "{error}");
    assert_eq!(error.matches("no routes").count(), 1, "{error}");
    let error = sim_error(&["clos:hosts=8,ports=4", "--limit-ms", "12"]);
    assert!(["starting", "mapping", "passive"].iter().any(|state| error.contains(state)), "{error}");
    let folder = tempfile::tempdir().expect("a folder");
    let faults = folder.path().join("faults.txt");
    std::fs::write(&faults, "at 70s kill h1\n").expect("written");
    let error = sim_error(&["clos:hosts=8,ports=4", "--faults", text(&faults)]);
    assert!(error.contains("faults still to come at 70000 ms, past --limit-ms"), "{error}");
    std::fs::write(&faults, "at 1s kill h1\nat 1s kill h2\n").expect("written");
    let error = sim_error(&["ring:n=2,hosts=1", "--faults", text(&faults)]);
    assert!(error.contains("no live hosts"), "{error}");
    std::fs::write(&faults, "# one\nat 1s cut xbar1:8\n").expect("written");
    let error = sim_error(&["ring:n=3,hosts=1,ports=8", "--faults", text(&faults)]);
    assert!(error.contains("faults.txt:2: the fault cannot strike: no cable"), "{error}");
    std::fs::write(&faults, b"# one\n# \xff\n").expect("written");
    let error = sim_error(&["clos:hosts=8,ports=4", "--faults", text(&faults)]);
    assert!(error.contains("faults.txt:2: this is not UTF-8"), "{error}");
}

#[test]
fn what_cannot_be_is_refused_before_the_run() {
    for (args, status) in [
        (&["--until", "1e18"][..], 2),
        (&["--passes", "65"], 2),
        (&["--data-path", "srv6"], 2),
        (&["--nodes", "--data-path", "srv6"], 1),
        (&["--max-hops", "24"], 2),
        (&["--replay", "trace", "--seed", "2"], 2),
        (&["--replay", "trace", "ring:n=2"], 2),
        (&["--fault-seed", "1", "--loss", "1%"], 2),
        (&["--infiniband"], 2),
        (&["--infiniband", "--fault-seed", "1", "--trace", "trace"], 2),
        (&["--fault-seed", "1", "--fault-seeds", "2"], 2),
        (&["--infiniband", "clos:hosts=648,ports=36", "--fault-seed", "1"], 1),
        (&["--map-file", "/no/such/folder/map"], 1),
        (&["--map-file", "/"], 1),
        (&["--routes-dir", "/dev/null/routes"], 1),
        (&["--trace", "/no/such/folder/trace"], 1),
        (&["clos:hosts=70000,ports=128"], 1),
    ] {
        let output = mapper(&[&["sim"], args].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{args:?}: {stderr}");
    }
}

/// A text that moves the cursor, rings, and never ends.
fn hostile() -> String {
    format!("\u{1b}[2J\u{7}{}", "x".repeat(100_000))
}

/// Runs `mapper sim`, which must fail, and returns what it prints for people.
fn refusal(args: &[&str]) -> String {
    let output = mapper(&[&["sim"], args].concat());
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert!(stderr.len() < 1000, "{} bytes", stderr.len());
    assert!(!stderr.contains(|c: char| c.is_control() && c != '\n'), "{stderr:?}");
    stderr
}

#[test]
fn refusals_of_faults_are_short_and_harmless() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("faults");
    let bad = hostile();
    for line in [
        bad.clone(),
        format!("at {bad} kill h1"),
        format!("at 1ms {bad}"),
        format!("at 1ms kill {bad}"),
        format!("at 1ms off {bad}"),
        format!("at 1ms cut {bad}"),
        format!("at 1ms cut {bad}:1"),
        format!("at 1ms cut xbar1:{bad}"),
        format!("at 1ms kill h1 {bad}"),
        format!("loss {bad}"),
        format!("random {bad} cut between 1ms and 2ms"),
    ] {
        std::fs::write(&file, format!("# fine\n{line}\n")).expect("written");
        let said = refusal(&["ring:n=3", "--faults", text(&file)]);
        assert!(said.contains("faults:2: "), "{said}");
    }
}

#[test]
fn refusals_of_traces_are_short_and_harmless_and_name_the_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace");
    sim(&["ring:n=2", "--trace", text(&file)]);
    let good = std::fs::read_to_string(&file).expect("a trace");
    let bad = hostile();
    let refused = |content: &[u8]| {
        std::fs::write(&file, content).expect("written");
        refusal(&["--replay", text(&file)])
    };
    let (head, rest) = good.split_once('\n').expect("a head");
    for (content, place) in [
        (bad.clone().into_bytes(), "trace:1: expected the head of a trace"),
        (format!("{{\"{bad}\": 1}}").into_bytes(), "trace:1: expected the head of a trace"),
        (
            good.replacen("mapper.trace/1", &bad.replace(['\u{1b}', '\u{7}'], "\\u001b"), 1).into_bytes(),
            "trace:1: ",
        ),
        (format!("{head}\n{bad}\n{rest}").into_bytes(), "trace:2: the runs part here"),
        (b"\xff\xfe{\0".to_vec(), "trace:1: this is not UTF-8"),
        ([head.as_bytes(), b"\n\xe9t\xe9\n"].concat(), "trace:2: this is not UTF-8"),
        (
            good.replacen("ring:n=2", &format!("ring:{}=2", "x".repeat(100_000)), 1).into_bytes(),
            "ring: there is no key",
        ),
    ] {
        let said = refused(&content);
        assert!(said.contains(place), "{place}: {said}");
    }
    // If the two lines have a long common beginning, the part in which they differ must still be shown.
    let long = "\"detail\":\"".to_owned() + &"y".repeat(5000);
    let said = refused(good.replacen("\"detail\":\"", &long, 1).as_bytes());
    assert!(said.contains("the runs part here: recorded ") && said.contains(", now "), "{said}");
}
