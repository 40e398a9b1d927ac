//! Tests of the command `mapper sim`.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs the program with these arguments.
pub(super) fn mapper(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mapper")).args(args).output().expect("the program runs")
}

/// Runs `mapper sim` with these arguments and reads its JSON.
pub(super) fn sim(args: &[&str]) -> Value {
    let output = mapper(&[&["sim", "--format", "json"], args].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// The error text of a run that must fail.
pub(super) fn sim_error(args: &[&str]) -> String {
    let output = mapper(&[&["sim", "--format", "json"], args].concat());
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    let error: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(error["schema"], "mapper.error/1");
    error["error"].as_str().expect("a text").to_owned()
}

/// A path as an argument.
pub(super) fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

#[test]
fn the_report_has_what_the_contract_names() {
    let report = sim(&["clos:hosts=16,ports=8", "--seed", "7"]);
    assert_eq!(report["schema"], "mapper.sim/1");
    assert_eq!(report["configured"], true);
    assert_eq!(report["map_matches_fabric"], true);
    assert_eq!((report["hosts"].as_u64(), report["xbars"].as_u64()), (Some(16), Some(6)));
    assert_eq!(report["cables"], 16);
    assert_eq!(report["seed"], 7);
    assert_eq!(report["leader"], report["map_version"]["mac"]);
    assert!(report["map_version"]["counter"].as_u64().is_some_and(|counter| counter > 0));
    for key in ["mapped", "configured"] {
        assert!(report["virtual_ms"][key].as_f64().is_some_and(|ms| ms > 0.0), "{key}");
    }
    for key in ["switch_probes", "scouts", "compares", "virtual_ms"] {
        assert!(report["mapping"][key].is_number(), "{key}");
    }
    for key in
        ["switch_probes", "scouts", "compares", "tree", "queries", "pieces", "verify", "dropped", "total"]
    {
        assert!(report["messages"][key].is_u64(), "{key}");
    }
    assert!(report["wall_ms"].is_number());
}

/// What a run prints for people.
fn shown(args: &[&str]) -> String {
    let output = mapper(&[&["sim"], args].concat());
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_run_that_ends_early_says_when_it_was_mapped_and_never_says_never() {
    let early = shown(&["--until", "20"]);
    assert!(
        early.contains("times         mapped at 19.") && early.contains("configured not by the end"),
        "{early}"
    );
    let before = shown(&["--until", "1"]);
    assert!(before.contains("times         mapped not by the end"), "{before}");
}

#[test]
fn people_read_and_write_what_is_on_the_boxes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let mut fabric = mapper_formats::resolve("ring:n=4,hosts=1").expect("a fabric");
    for (nth, label) in fabric.hosts.iter_mut().enumerate() {
        label.description = format!("server{nth}");
    }
    for (nth, label) in fabric.xbars.iter_mut().enumerate() {
        label.description = format!("leaf{nth}");
    }
    std::fs::write(path("f.json"), mapper_formats::write(&fabric, mapper_formats::FileFormat::Json))
        .expect("written");
    std::fs::write(path("faults"), "at 300ms cut leaf1:1\n").expect("written");
    let (fabric, faults, trace) = (path("f.json"), path("faults"), path("trace"));
    let told = shown(&[text(&fabric), "--faults", text(&faults), "--trace", text(&trace)]);
    assert!(told.contains("leader        server"), "{told}");
    assert!(told.contains("routes        up*/down* from leaf"), "{told}");

    // If a trace was cut off in a line, the error says so, and does not speak of a difference between the
    // runs.
    let whole = std::fs::read_to_string(&trace).expect("a trace");
    let line = whole.match_indices('\n').nth(20).expect("lines").0;
    std::fs::write(&trace, &whole[..line + 20]).expect("written");
    let error = sim_error(&["--replay", text(&trace)]);
    assert!(
        error.ends_with(":22: the file is cut off in this line; up to here the runs are the same"),
        "{error}"
    );
}

#[test]
fn every_kind_of_xbar_is_mapped() {
    for kind in ["plain", "tagged", "mixed"] {
        let report = sim(&["torus:x=3,y=3,hosts=1", "--xbars", kind]);
        assert_eq!(report["map_matches_fabric"], true, "{kind}");
    }
}

/// The agents must do so with plain xbars, too, whose ports have other numbers in the map than in the fabric.
#[test]
fn the_agents_of_a_torus_route_by_direction_order_after_each_map() {
    let folder = tempfile::tempdir().expect("a folder");
    let (map, routes) = (folder.path().join("map"), folder.path().join("routes"));
    let faults = folder.path().join("faults");
    std::fs::write(&faults, "at 500ms cut n0-0-0:1\nat 900ms cut n1-1-1:3\n").expect("written");
    for kind in ["plain", "tagged", "mixed"] {
        let torus = ["torus:x=4,y=3,z=3,hosts=1", "--xbars", kind];
        let whole = ["--map-file", text(&map), "--routes-dir", text(&routes)];
        for more in [&whole[..], &[&whole[..], &["--faults", text(&faults)]].concat()] {
            let report = sim(&[&torus[..], more].concat());
            assert_eq!(report["map_matches_fabric"], true, "{kind}");
            assert_eq!(report["routing"], "direction order on a grid of 4 x 3 x 3", "{kind}");
            let check = mapper(&["check", text(&map), "--routes-dir", text(&routes), "--format", "json"]);
            let check: Value = serde_json::from_slice(&check.stdout).expect("one JSON object");
            assert_eq!(check["proof"]["deadlock_free"], true, "{kind}: {check}");
            assert_eq!(check["proof"]["reachable"], true, "{kind}: {check}");
        }
        let report = sim(&[&torus[..], &["--non-clos"]].concat());
        assert!(report["routing"].as_str().is_some_and(|how| how.starts_with("up*/down*")), "{kind}");
    }
}

/// The report of a run that ends at a given moment says since when all agents have been configured, if they
/// are at the end.
#[test]
fn a_run_to_a_moment_does_not_contradict_itself() {
    let run = |until: &str, more: &[&str]| {
        let args = [&["clos:hosts=16,ports=8", "--until", until][..], more].concat();
        let report = sim(&args);
        let text = mapper(&[&["sim"], &args[..]].concat());
        (report, String::from_utf8(text.stdout).expect("text"))
    };
    let whole = sim(&["clos:hosts=16,ports=8"])["virtual_ms"]["configured"].as_f64();
    let (report, text) = run("3000", &[]);
    assert_eq!(
        (report["configured"].as_bool(), report["virtual_ms"]["configured"].as_f64()),
        (Some(true), whole)
    );
    assert!(text.contains("yes, all 16") && text.contains(", configured at "), "{text}");
    let (report, text) = run("12", &[]);
    assert_eq!(report["configured"], false);
    assert!(
        report["virtual_ms"]["configured"].is_null() && text.contains("configured not by the end"),
        "{text}"
    );
    // After a fault, all agents have been configured since the end of the healing.
    let folder = tempfile::tempdir().expect("a folder");
    let faults = folder.path().join("faults");
    std::fs::write(&faults, "at 1s kill h3\n").expect("written");
    let (report, _) = run("5000", &["--faults", faults.to_str().expect("a path in UTF-8")]);
    assert!(report["virtual_ms"]["configured"].as_f64() > Some(1000.0), "{report}");
}

#[test]
fn a_seed_decides_a_run() {
    let digest = |seed| sim(&["clos:hosts=16,ports=8", "--loss", "1%", "--seed", seed])["digest"].clone();
    assert_eq!(digest("1"), digest("1"));
    assert_ne!(digest("1"), digest("2"));
}

#[test]
fn after_faults_the_maps_are_those_of_the_changed_fabric() {
    let folder = tempfile::tempdir().expect("a folder");
    let faults = folder.path().join("faults");
    std::fs::write(&faults, "# one of each\nat 500ms kill h3\nat 600ms remove h5\n").expect("written");
    let report = sim(&["clos:hosts=16,ports=8", "--faults", text(&faults)]);
    assert_eq!(report["map_matches_fabric"], true);
    assert_eq!(report["hosts"], 14);
    assert!(report["virtual_ms"]["configured"].as_f64() > Some(600.0));
}

#[test]
fn the_map_file_is_a_fabric_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let map = folder.path().join("map.json");
    sim(&["clos:hosts=16,ports=8", "--map-file", text(&map)]);
    let report = sim(&[text(&map)]);
    assert_eq!((report["hosts"].as_u64(), report["map_matches_fabric"].as_bool()), (Some(16), Some(true)));
}

#[test]
fn hosts_that_share_an_address_are_named_and_not_counted_as_configured() {
    let folder = tempfile::tempdir().expect("a folder");
    let faults = folder.path().join("faults");
    std::fs::write(&faults, "at 0ms twin h1 of h2\n").expect("written");
    let said = shown(&["clos:hosts=8,ports=4", "--faults", text(&faults), "--until", "3000"]);
    assert!(said.contains("all 6 live hosts whose address is their own"), "{said}");
    assert!(said.contains("without h1, h2, which share addresses"), "{said}");
}

#[test]
fn parts_are_reported_as_parts() {
    let folder = tempfile::tempdir().expect("a folder");
    let faults = folder.path().join("faults");
    std::fs::write(&faults, "at 1s cut leaf1:1\nat 1s remove h5\n").expect("written");
    let report = sim(&["clos:hosts=8,ports=4", "--faults", text(&faults)]);
    assert_eq!((report["parts"].as_u64(), report["live_hosts"].as_u64()), (Some(2), Some(7)));
    assert_eq!(
        (report["configured"].as_bool(), report["map_matches_fabric"].as_bool()),
        (Some(false), Some(false))
    );
    let why = report["why_not"].as_str().expect("a text");
    assert_eq!(why, "the fabric is in 2 parts, each configured under its own leader");
    assert_eq!(report["hosts"], 6);
}

#[test]
fn a_lone_host_has_a_map_of_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let map = folder.path().join("map.json");
    let report = sim(&["ring:n=1,hosts=1", "--map-file", text(&map)]);
    assert_eq!((report["hosts"].as_u64(), report["configured"].as_bool()), (Some(1), Some(true)));
    assert_eq!(report["map_matches_fabric"], true);
    assert_eq!(report["leader"], report["map_version"]["mac"]);
    assert!(map.exists());
}

#[test]
fn noise_does_not_stop_a_run_at_a_wrong_map() {
    for seed in ["1", "2", "3", "4", "5", "6"] {
        let report = sim(&["clos:hosts=16,ports=8", "--loss", "10%", "--seed", seed]);
        assert_eq!(report["map_matches_fabric"], true, "seed {seed}");
    }
}

#[test]
fn the_help_lists_shapes_and_faults() {
    let output = mapper(&["sim", "--help"]);
    let help = String::from_utf8_lossy(&output.stdout);
    for word in ["dragonfly:", "hypercube:", "hostile", "silence", "mend-after", "jitter 50us"] {
        assert!(help.contains(word), "{word}: {help}");
    }
}

#[test]
fn a_seed_of_the_fault_search_can_be_run_again() {
    let report = sim(&["--fault-seed", "3"]);
    assert_eq!((report["seed"].as_u64(), report["schema"].as_str()), (Some(3), Some("mapper.sim-fault/1")));
}

#[test]
fn a_seed_of_the_fault_search_says_what_was_drawn_and_what_became_of_users_frames() {
    let report = sim(&["--fault-seed", "7"]);
    assert_eq!(report["setup"]["seed"], 7);
    assert_eq!(report["setup"]["users"].is_null(), report["users"]["sent"] == 0, "{report}");
    let with_users = (1..20).map(|seed| sim(&["--fault-seed", &seed.to_string()]));
    let seed = with_users.into_iter().find(|report| report["users"]["sent"] != 0).unwrap();
    let output = mapper(&["sim", "--fault-seed", &seed["seed"].to_string()]);
    let text = String::from_utf8_lossy(&output.stdout);
    let sent = format!("users         {} frames sent", seed["users"]["sent"]);
    assert!(output.status.success() && text.contains("settings      all start within "), "{text}");
    assert!(text.contains(&sent) && text.contains("each host sends "), "{text}");
}

#[test]
fn the_fault_search_over_infiniband_runs_a_seed_many_and_a_given_fabric() {
    let report = sim(&["--infiniband", "--fault-seed", "7"]);
    let seed = (report["seed"].as_u64(), report["schema"].as_str());
    assert_eq!(seed, (Some(7), Some("mapper.sim-subnet-fault/1")));
    let given = sim(&["--infiniband", "clos:hosts=8,ports=4", "--fault-seed", "2"]);
    assert_eq!([&given["hosts"], &given["switches"]].map(serde_json::Value::as_u64), [Some(8), Some(6)]);
    let many = sim(&["--infiniband", "--fault-seed", "20", "--fault-seeds", "5"]);
    assert_eq!((many["tried"].as_u64(), many["failed"].as_array().map(Vec::len)), (Some(5), Some(0)));
    let output = mapper(&["sim", "--infiniband", "--fault-seed", "7"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.starts_with("subnet "), "{text}");
}
