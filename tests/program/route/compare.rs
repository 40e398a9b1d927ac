//! Tests of the comparison of engines, and of the plot of loads.

use crate::route::command::{Folder, json};

#[test]
fn engines_are_compared_and_loads_are_drawn() {
    let folder = Folder::new();
    let spec = "xgft:h=3;m=3,3,4;w=1,3,3";
    let compared = json(0, &["route", spec, "--compare", "ftree,file,dispersive"]);
    assert_eq!(compared["schema"], "mapper.compare/1");
    let served: Vec<_> = compared["engines"].as_array().unwrap().iter().map(|one| &one["served"]).collect();
    assert_eq!(served, [true, false, true]);
    assert_eq!(compared["engines"][0]["quality"]["congestion_shift"], 1, "a full fat tree");
    json(0, &["route", spec, "--engine", "dispersive", "--plot", &folder.path("loads.svg")]);
    let svg = folder.read("loads.svg");
    assert!(svg.starts_with("<svg") && svg.contains("tier 1 to tier 2 (up)"), "{svg}");
}
