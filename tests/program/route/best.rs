//! Tests of `best`: the engine with the best tables that are proved, where the user names none.

use crate::route::command::{CLOS, Folder, json, text};
use serde_json::Value;

/// The effective bisection that a report tells.
fn bisection(report: &Value) -> f64 {
    report["quality"]["effective_bisection"].as_f64().unwrap()
}

#[test]
fn without_a_name_the_best_serves_and_the_others_are_told() {
    for spec in [CLOS, "torus:x=4,y=4,hosts=2", "random:xbars=12,ports=12,hosts=30,links=24,seed=2"] {
        let report = json(0, &["route", spec]);
        assert_eq!(report["layers"], 1, "{spec}");
        assert_eq!(report["proof"]["deadlock_free"], true, "{spec}");
        let tried = report["tried"].as_array().unwrap();
        assert!(tried.len() > 10, "{spec}: {tried:?}");
        for other in tried {
            // Each engine that was left out says why it cannot serve or what it would have given. It is run
            // alone to check that.
            let name = other["engine"].as_str().unwrap();
            assert_ne!(name, report["engine"], "{spec}");
            assert_ne!(other["why_not"].is_null(), other["effective_bisection"].is_null(), "{other}");
            if let Some(given) = other["effective_bisection"].as_f64() {
                let error = report["quality"]["effective_bisection_error"].as_f64().unwrap();
                assert!(given <= bisection(&report) + 3.0 * error, "{spec}: {other}");
                let alone = json(0, &["route", spec, "--engine", name, "--no-fallback"]);
                assert_eq!(bisection(&alone), given, "{spec}: {name}");
            }
        }
        let named = json(0, &["route", spec, "--engine", "best"]);
        assert_eq!((&named["engine"], &named["quality"]), (&report["engine"], &report["quality"]), "{spec}");
        let checked = json(0, &["check", spec]);
        assert_eq!(checked["schema"], "mapper.check/1");
        for key in ["engine", "tried", "proof", "quality"] {
            assert_eq!(checked[key], report[key], "{spec}: {key}");
        }
    }
}

#[test]
fn a_cluster_with_an_adapter_on_every_switch_is_served_as_well_as_without() {
    for (spec, at_least) in [
        ("cluster:leaves=24,spines=16,hosts=542,missing=5,cables=2", 0.60),
        ("cluster:leaves=24,spines=16,hosts=542,missing=5", 0.0),
        (
            "cluster:leaves=12,spines=6,hosts=180,missing=6,cables=2,uneven=8,storage=2,isolated=3,rails=2",
            0.0,
        ),
    ] {
        let plain = json(0, &["route", spec]);
        let served = json(0, &["route", &format!("{spec},service=every")]);
        assert_eq!(
            (&served["layers"], &served["proof"]["deadlock_free"]),
            (&1.into(), &true.into()),
            "{spec}"
        );
        let (before, after) = (bisection(&plain), bisection(&served));
        assert!(after >= at_least && after >= 0.95 * before, "{spec}: {before} to {after}");
        let services = served["quality"]["service_adapters"].as_u64().unwrap();
        assert!(services > 0 && plain["quality"]["service_adapters"] == 0, "{spec}: {services}");
    }
}

#[test]
fn one_line_says_which_why_and_what_comes_next() {
    let said = text(0, &["route", CLOS]);
    let lines: Vec<_> = said.lines().filter(|line| line.starts_with("best ")).collect();
    let [line] = lines[..] else { panic!("{said}") };
    assert!(
        line.contains(", with the best effective bisection of ") && line.contains("; the next, "),
        "{line}"
    );
    assert!(!said.contains("\nnot "), "{said}");
    let checked = text(0, &["check", CLOS]);
    assert!(checked.contains(line), "{checked}");
}

#[test]
fn more_layers_are_taken_if_they_are_allowed_and_nothing_is_said_of_the_limit() {
    let torus = "torus:x=5,y=5,hosts=2";
    let one = json(0, &["route", torus]);
    let more = json(0, &["route", torus, "--max-layers", "4"]);
    assert_eq!(one["layers"], 1);
    assert!(more["layers"].as_u64().unwrap() > 1 && bisection(&more) > bisection(&one), "{more}");
    assert!(!more["notes"].to_string().contains("a limit on layers"), "{}", more["notes"]);
}

#[test]
fn engines_that_do_not_obey_what_is_set_step_back_and_say_so() {
    let folder = Folder::new();
    let roots = folder.write("roots", "0x0200000000000005\n0x0200000000000006\n");
    let report = json(0, &["route", CLOS, "--root-guid-file", &roots]);
    let tried = report["tried"].as_array().unwrap();
    let nue = tried.iter().find(|other| other["engine"] == "nue").unwrap();
    assert!(nue["why_not"].as_str().unwrap().contains("roots: no effect on nue"), "{nue}");
    let said = text(0, &["route", CLOS, "--root-guid-file", &roots]);
    let left_out: Vec<_> = said.lines().filter(|line| line.starts_with("left out   ")).collect();
    let nue = left_out.iter().find(|line| line.contains("roots: no effect on nue"));
    assert!(nue.is_some_and(|line| line.starts_with("left out   nue: not tried, ")), "{said}");
}

#[test]
fn tables_in_force_stay_where_nothing_changed() {
    let folder = Folder::new();
    let cluster = "cluster:leaves=12,spines=8,hosts=132,missing=3,cables=2,service=every";
    let before = folder.path("before");
    let first = json(0, &["route", cluster, "--lfts", &before]);
    let again = json(0, &["route", cluster, "--previous", &before]);
    assert_eq!(again["changed_entries"], 0, "{again}");
    assert_eq!(again["quality"], first["quality"]);
    let notes = again["notes"].to_string();
    assert!(!notes.contains("previous tables: no effect"), "{notes}");
}

#[test]
fn the_best_is_cached_as_what_it_is() {
    let folder = Folder::new();
    let cache = folder.path("cache");
    let first = json(0, &["route", CLOS, "--cache", &cache]);
    assert_eq!(first["cache"]["used"], false);
    let again = json(0, &["route", CLOS, "--cache", &cache]);
    assert_eq!((&again["cache"]["used"], &again["engine"]), (&true.into(), &first["engine"]));
}
