//! Tests of runs that are recorded and run again.

use super::command::{sim, sim_error, text};

#[test]
fn a_trace_runs_again_to_the_same_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let (trace, faults) = (folder.path().join("trace"), folder.path().join("faults"));
    std::fs::write(&faults, "at 100ms kill h3\nloss 1%\n").expect("written");
    let args = ["clos:hosts=16,ports=8", "--faults", text(&faults), "--trace", text(&trace)];
    let recorded = sim(&args);
    assert_eq!(sim(&["--replay", text(&trace)])["digest"], recorded["digest"]);

    let lines = std::fs::read_to_string(&trace).expect("a trace");
    let changed = lines.replacen("\"what\":\"mapped\"", "\"what\":\"napped\"", 1);
    assert_ne!(changed, lines);
    std::fs::write(&trace, changed).expect("written");
    let error = sim_error(&["--replay", text(&trace)]);
    assert!(error.contains("the runs part here") && error.contains("napped"), "{error}");
}

#[test]
fn a_trace_with_lines_behind_its_end_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    sim(&["ring:n=2", "--trace", text(&trace)]);
    let lines = std::fs::read_to_string(&trace).expect("a trace");
    std::fs::write(&trace, format!("{lines}more\n")).expect("written");
    let error = sim_error(&["--replay", text(&trace)]);
    assert!(
        error.contains(&format!("trace:{}: expected nothing behind the end", lines.lines().count() + 1)),
        "{error}"
    );
}
