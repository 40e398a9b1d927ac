//! What the kernels of all machines forward by the destination, proved together from what each of them tells.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::lab::wait_for;
use crate::ring::Ring;
use crate::{MAPPER, can_carry_ip};

fn check(map: &Path, routes: &Path) -> Output {
    let mut command = Command::new(MAPPER);
    command.args(["check", "--format", "json"]).arg(map).arg("--routes-dir").arg(routes);
    command.output().unwrap()
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

#[test]
fn routes_by_destination_in_the_kernels_of_all_machines_are_proved_together_and_a_circle_is_named() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(5);
    let _daemons = ring.start_all(&["--data-path", "routes"], "routes");
    let dir = tempfile::tempdir().unwrap();
    let (map, routes) = (dir.path().join("map.json"), dir.path().join("routes"));
    // A busy machine may map anew meanwhile.
    wait_for("all routes are proved", || {
        for at in 0..5 {
            let words = ["--routes", "--routes-dir", routes.to_str()?, "--map-file", map.to_str()?];
            ring.board(at, &words);
        }
        let output = check(&map, &routes);
        let report = report(&output);
        let proved = output.status.success() && report["by_destination"] == 5 * 4;
        (proved && report["hosts_given"] == 5 && report["notes"] == serde_json::json!([])).then_some(())
    });
    // Whichever machine next to another one has packets to it go the other way round, the next one sends them back, unless
    // all on that way lead away from there.
    let mut files: Vec<_> = fs::read_dir(&routes).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let to = read(&files[0])["host"].clone();
    let circles = files[1..].iter().filter(|path| {
        let whole = read(path);
        let mut turned = whole.clone();
        let mut entries = turned["by_destination"].as_array_mut().unwrap().iter_mut();
        let entry = entries.find(|entry| entry["to"] == to).unwrap();
        let port = entry["ports"][0].as_u64().unwrap();
        entry["ports"] = serde_json::json!([3 - port]);
        fs::write(path, turned.to_string()).unwrap();
        let output = check(&map, &routes);
        fs::write(path, whole.to_string()).unwrap();
        let told = report(&output)["proof"]["violations"].to_string();
        output.status.code() == Some(3) && told.contains("can go in a circle, as kernels forward them")
    });
    assert!(circles.count() > 0);
    assert!(check(&map, &routes).status.success());
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}
