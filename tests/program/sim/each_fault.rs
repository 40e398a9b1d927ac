//! Tests of every single fault of small fabrics: cables, hosts and xbars fail at every moment, cables are
//! moved to every port, and each frame is lost once.
//!
//! By default only a part of these faults, and of the pairs of faults that follow them, is tried, and all with
//! `MAPPER_EACH_FAULT=all`. For each fault that
//! the agents do not survive, the test prints the command that repeats it.

use std::process::Command;

use mapper_fabric::generate;
use mapper_sim::fabric::Xbars;
use mapper_sim::search::each::Each;
use mapper_sim::setup::Setup;
use mapper_sim::world::KernelChoice;

/// The small fabrics: two hosts and an xbar; rings with and without free ports; two leaves and two spines;
/// xbars without hosts; a chain; parallel cables; service adapters on spines.
const FABRICS: [&str; 14] = [
    "clos:hosts=2,ports=4",
    "clos:hosts=3,ports=4",
    "ring:n=3,hosts=1",
    "ring:n=3,hosts=1,ports=4",
    "ring:n=4,hosts=1",
    "mesh:x=3,y=1,hosts=1",
    "xgft:h=2;m=1,2;w=1,2",
    "xgft:h=2;m=2,2;w=1,1",
    "xgft:h=2;m=2,2;w=1,2",
    "random:xbars=2,ports=6,hosts=3,links=2,seed=1",
    "random:xbars=3,ports=5,hosts=3,links=2,seed=2",
    "random:xbars=4,ports=5,hosts=3,links=3,seed=3",
    "cluster:leaves=2,spines=2,hosts=8,service=spines",
    "cluster:leaves=3,spines=2,hosts=12,service=spines,missing=1",
];
const KINDS: [(&str, Xbars); 3] =
    [("plain", Xbars::Plain), ("tagged", Xbars::Tagged), ("mixed", Xbars::Mixed)];
/// How hosts are: as agents behind a cable or as nodes, with keys and without, and what packets of nodes go by in their
/// kernels, if by anything. Each fabric is tried as one of these by default.
const HOSTS: [(&str, bool, bool, Option<KernelChoice>); 7] = [
    ("", false, false, None),
    (" --signed", true, false, None),
    (" --nodes", false, true, None),
    (" --nodes --data-path srv6", false, true, Some(KernelChoice::Segments)),
    (" --signed --nodes", true, true, None),
    (" --nodes --data-path routes", false, true, Some(KernelChoice::Routes)),
    (" --nodes --data-path mixed", false, true, Some(KernelChoice::Mixed)),
];
/// About how many faults of each fabric are tried by default.
const PART: usize = 30;
/// About how many pairs of faults of each fabric are tried by default.
const PART_OF_PAIRS: usize = 20;

/// The faults of a fabric that its agents do not survive, in words.
fn faults_of(
    spec: &str,
    (kind, xbars): (&str, Xbars),
    (options, signed, nodes, kernels): (&str, bool, bool, Option<KernelChoice>),
    first: usize,
    all: bool,
) -> Vec<String> {
    let fabric = generate(spec).expect("a spec");
    let (has_kernels, kernel_choice) = (kernels.is_some(), kernels.unwrap_or_default());
    let setup = Setup { xbars, signed, nodes, kernels: has_kernels, kernel_choice, ..Setup::default() };
    let each = Each::of(fabric, setup).expect("it works without faults");
    let (single, count) = (each.single(), each.cases().len());
    // An odd step meets faults that are mended soon, later, late and never.
    let step = |count: usize, part: usize| if all { 1 } else { (count / part) | 1 };
    let (step, step_of_pairs) = (step(single, PART), step(count - single, PART_OF_PAIRS));
    let singles = (first % step..single).step_by(step);
    let pairs = (single + first % step_of_pairs..count).step_by(step_of_pairs);
    let numbers: Vec<usize> = singles.chain(pairs).collect();
    let tried = each.run(&numbers, || ());
    let told = tried.failures.into_iter().map(|failure| {
        let number = failure.number;
        let words = format!("mapper sim '{spec}' --xbars {kind}{options} --each-fault --case {number}");
        format!("{words}\n    {}", failure.why)
    });
    told.collect()
}

#[test]
fn small_fabrics_survive_every_single_fault() {
    let all = std::env::var("MAPPER_EACH_FAULT").is_ok_and(|part| part == "all");
    let fabrics = FABRICS.iter().flat_map(|spec| KINDS.map(|kind| (*spec, kind))).enumerate();
    let faults: Vec<String> = fabrics
        .flat_map(|(i, (spec, kind))| {
            let some = &HOSTS[i % HOSTS.len()..][..1];
            let hosts = if all { &HOSTS } else { some };
            hosts.iter().flat_map(move |&hosts| faults_of(spec, kind, hosts, i * 7, all))
        })
        .collect();
    assert!(faults.is_empty(), "{} faults; run again with\n{}", faults.len(), faults.join("\n"));
}

fn mapper(words: &[&str]) -> (Option<i32>, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_mapper")).args(words).output().expect("it runs");
    (out.status.code(), String::from_utf8_lossy(&out.stdout).into_owned())
}

#[test]
fn the_command_tells_what_it_tried() {
    let words = ["sim", "clos:hosts=2,ports=4", "--each-fault", "--every", "50", "--format", "json"];
    let (code, out) = mapper(&words);
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, &report["schema"]), (Some(0), &"mapper.each-fault/1".into()), "{out}");
    assert_eq!(report["failed"], serde_json::json!([]));
    let kinds = report["kinds"].as_array().expect("an array");
    let tried: u64 = kinds.iter().filter_map(|kind| kind["tried"].as_u64()).sum();
    assert_eq!(Some(tried), report["tried"].as_u64());
    assert!(tried >= 10, "{out}");
    let (code, out) = mapper(&[&words[..3], &["--case", "1000000", "--format", "json"]].concat());
    assert_eq!(code, Some(1));
    assert!(out.contains("there is no case 1000000: there are "), "{out}");
}

#[test]
fn what_fails_is_told_with_the_command_that_runs_it_again() {
    // Without receive queues busy hosts lose frames even in a fabric without faults, so some cases must fail.
    let spec = "xgft:h=2;m=2,2;w=1,2";
    let base = ["sim", spec, "--receive-queue", "0", "--each-fault", "--traffic", "1000"];
    let (code, out) = mapper(&[&base[..], &["--every", "400", "--format", "json"]].concat());
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(code, Some(1), "{out}");
    let failed = &report["failed"][0];
    let case = failed["case"].to_string();
    let replay = format!("mapper {} --case {case}", base.join(" ").replace(spec, &format!("'{spec}'")));
    assert_eq!(failed["replay"], replay.as_str());
    let (code, _) = mapper(&[&base[..], &["--case", &case]].concat());
    assert_eq!(code, Some(1));
}

#[test]
fn a_case_is_recorded_and_runs_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let trace = dir.path().join("trace");
    let trace = trace.to_str().expect("a name");
    let words = ["sim", "ring:n=3,hosts=1", "--each-fault", "--case", "100", "--trace", trace];
    let (code, out) = mapper(&words);
    assert_eq!(code, Some(0), "{out}");
    let (code, again) = mapper(&["sim", "--replay", trace]);
    assert_eq!(code, Some(0));
    let replayed = again.strip_prefix(&out).expect("the same report, and a line more");
    assert!(replayed.starts_with("replay "), "{again}");
}
