//! Tests of the routes of hosts as files.

use std::fs;
use std::path::Path;

use mapper_formats::{self as formats, FileFormat};
use serde_json::Value;

use crate::route::command::{CLOS, Folder, RING, error, json, shortest, text};

#[test]
fn routes_of_hosts_are_written_and_checked() {
    let folder = Folder::new();
    let file = folder.write("a.lfts", &shortest(CLOS));
    for engine in [&["--engine", "file", "--lfts-file", &file][..], &["--engine", "dispersive"]] {
        let dir = folder.path(engine[1]);
        let route = json(0, &[&["route", CLOS, "--routes-dir", &dir], engine].concat());
        assert_eq!(route["engine"], engine[1]);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 8);
        let check = json(0, &["check", CLOS, "--routes-dir", &dir]);
        assert_eq!(check["proof"], route["proof"], "{}", engine[1]);
        // Tables give one route for each pair of hosts. The engine dispersive finds both ways between leaves.
        let expected = if engine[1] == "file" { 8 * 7 } else { 8 * (1 + 6 * 2) };
        assert_eq!(check["routes"], expected, "{}", engine[1]);
    }
    let message = error(&["route", CLOS, "--engine", "dispersive", "--lfts", &folder.path("no.lfts")]);
    assert!(message.starts_with("--lfts: the engine dispersive has no forwarding tables"), "{message}");
    assert!(!Path::new(&folder.path("no.lfts")).exists());
}

#[test]
fn broken_routes_are_named_by_file_and_entry() {
    let folder = Folder::new();
    let file = folder.write("a.lfts", &shortest(RING));
    let dir = folder.path("routes");
    text(0, &["route", RING, "--engine", "file", "--lfts-file", &file, "--unsafe", "--routes-dir", &dir]);
    let found = json(3, &["check", RING, "--routes-dir", &dir]);
    assert_eq!(
        (&found["proof"]["reachable"], &found["proof"]["deadlock_free"]),
        (&true.into(), &false.into())
    );
    let circle = found["proof"]["violations"][0].as_str().unwrap();
    assert!(circle.starts_with("layer 0 can deadlock: ") && circle.contains("xbar4 port "), "{circle}");

    let first = "routes/02-00-00-00-00-01.json";
    let good = folder.read(first);
    folder.write(first, &good.replacen("\"layer\":0", "\"layer\":16", 1));
    let message = error(&["check", RING, "--routes-dir", &dir]);
    let expected =
        "02-00-00-00-00-01.json:routes[0] to 02:00:00:00:00:02: layer 16; expected one from 0 to 15";
    assert!(message.contains(expected), "{message}");
    folder.write(first, "{\n\"schema\": \"x\" ]");
    let message = error(&["check", RING, "--routes-dir", &dir]);
    assert!(message.contains("02-00-00-00-00-01.json:2, column 15: "), "{message}");

    // Without the file of one host, the routes of the others are still judged.
    fs::remove_file(folder.path(first)).unwrap();
    let found = json(3, &["check", RING, "--routes-dir", &dir]);
    let proof = &found["proof"];
    assert_eq!((&proof["reachable"], &proof["deadlock_free"]), (&true.into(), &false.into()));
    assert_eq!(found["hosts_given"], 9);
    folder.write("routes/twin.json", &folder.read("routes/02-00-00-00-00-02.json"));
    let message = error(&["check", RING, "--routes-dir", &dir]);
    assert!(message.ends_with("twin.json: host: h2 has another file here, too"), "{message}");
}

#[test]
fn routes_of_some_hosts_are_proved_without_those_of_the_others() {
    let folder = Folder::new();
    let dir = ring_routes(&folder);
    assert_eq!(json(0, &["check", RING, "--routes-dir", &dir])["hosts_given"], 10);
    for host in 2..=10 {
        fs::remove_file(folder.path(&format!("routes/02-00-00-00-00-{host:02x}.json"))).unwrap();
    }
    let found = json(0, &["check", RING, "--routes-dir", &dir]);
    assert_eq!(
        (&found["holds"], &found["hosts_given"], &found["hosts"]),
        (&true.into(), &1.into(), &10.into())
    );
    assert_eq!((&found["proof"]["reachable"], &found["quality"]), (&true.into(), &Value::Null));
    let note = "routes of 1 of 10 hosts given: only pairs from hosts with a file are judged, and only their \
                routes are proved together";
    assert_eq!(found["notes"], serde_json::json!([note]));
    let shown = text(0, &["check", RING, "--routes-dir", &dir]);
    assert!(shown.contains("proof      every pair from hosts with a file has a route, no loop"), "{shown}");
    assert!(shown.contains("quality    not measured: that takes the routes of all hosts\n"), "{shown}");

    // The check finds what is wrong in the files that are there.
    let first = "routes/02-00-00-00-00-01.json";
    let mut less: Value = serde_json::from_str(&folder.read(first)).unwrap();
    less["routes"].as_array_mut().unwrap().retain(|route| route["to"] != "02:00:00:00:00:03");
    folder.write(first, &less.to_string());
    let found = json(3, &["check", RING, "--routes-dir", &dir]);
    assert_eq!(
        found["proof"]["violations"],
        serde_json::json!(["h1 has no route to h3, though cables lead there"])
    );

    // If no file is of a host of the fabric, there is nothing to prove.
    less["host"] = "02:00:00:00:00:99".into();
    folder.write(first, &less.to_string());
    let message = error(&["check", RING, "--routes-dir", &dir]);
    assert!(
        message.ends_with("has no file of a host of this fabric, so there is nothing to check"),
        "{message}"
    );
}

/// A ring's routes as files, proved to be good.
fn ring_routes(folder: &Folder) -> String {
    let dir = folder.path("routes");
    text(0, &["route", RING, "--engine", "updn", "--root-guid-file", &roots(folder), "--routes-dir", &dir]);
    text(0, &["check", RING, "--routes-dir", &dir]);
    dir
}

fn roots(folder: &Folder) -> String {
    folder.write("roots", "0x0200000000000001\n")
}

#[test]
fn wrong_routes_are_violations_and_no_failure() {
    let folder = Folder::new();
    let dir = ring_routes(&folder);
    let first = "routes/02-00-00-00-00-01.json";
    let good: Value = serde_json::from_str(&folder.read(first)).unwrap();
    let to_h3 =
        good["routes"].as_array().unwrap().iter().position(|route| route["to"] == "02:00:00:00:00:03");
    let nth = to_h3.unwrap();
    assert_eq!(good["routes"][nth]["hops"].as_array().unwrap().len(), 2, "from xbar1 to xbar2 to h3");
    let found = |change: &dyn Fn(&mut Value)| {
        let mut bad = good.clone();
        change(&mut bad["routes"][nth]);
        folder.write(first, &bad.to_string());
        let found = json(3, &["check", RING, "--routes-dir", &dir]);
        assert_eq!((&found["schema"], &found["holds"]), (&"mapper.check/1".into(), &false.into()));
        found["proof"]["violations"][0].as_str().unwrap().to_owned()
    };
    assert_eq!(
        found(&|route| route["hops"][1][0] = "xbar9".into()),
        "a route from h1 to h3 passes `xbar9`, an xbar that the fabric does not have"
    );
    assert_eq!(
        found(&|route| route["hops"][1][0] = "xbar3".into()),
        "a route from h1 to h3 leaves xbar3 port 3, though it does not come to that xbar"
    );
    let elsewhere = found(&|route| route["hops"][1][1] = 99.into());
    assert_eq!(elsewhere, "a route from h1 to h3 cannot leave xbar2 port 99: no cable leads on from there");
    let bytes = found(&|route| route["hops"][1][1] = 4.into());
    assert!(bytes.starts_with("a route from h1 to h3 has bytes `"), "{bytes}");
    assert!(bytes.ends_with("` that lead another way than its hops"), "{bytes}");
    let none = found(&|route| route["hops"] = Value::Array(Vec::new()));
    assert!(none.starts_with("a route from h1 to h3 "), "{none}");
}

#[test]
fn routes_of_hosts_that_are_gone_are_passed_over_and_told() {
    let folder = Folder::new();
    let dir = ring_routes(&folder);
    let mut fabric = formats::resolve(RING).unwrap();
    fabric.map.hosts.remove(1);
    fabric.hosts.remove(1);
    let less = folder.write("less.json", &formats::write(&fabric, FileFormat::Json));
    let found = json(0, &["check", &less, "--routes-dir", &dir]);
    let notes: Vec<_> =
        found["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect();
    let expected = format!(
        "1 file is of a host that the fabric does not have, and is passed over: {dir}/02-00-00-00-00-02.json"
    );
    let routes = "9 routes lead to hosts that the fabric does not have, and are passed over";
    assert_eq!(notes, [expected.as_str(), routes]);
    // When the routes are written again, the file of the host that is gone stays, and the report says so.
    let roots = roots(&folder);
    let made =
        json(0, &["route", &less, "--engine", "updn", "--root-guid-file", &roots, "--routes-dir", &dir]);
    assert!(
        made["notes"].to_string().contains("1 file of a host that this fabric does not have stays"),
        "{made}"
    );
}

#[test]
fn hosts_that_are_cut_off_are_told() {
    let folder = Folder::new();
    let mut fabric = formats::resolve(RING).unwrap();
    fabric.map.hosts[3].at = None;
    let less = folder.write("less.json", &formats::write(&fabric, FileFormat::Json));
    let dir = folder.path("routes");
    let made = json(0, &["route", &less, "--engine", "dispersive", "--routes-dir", &dir]);
    let found = json(0, &["check", &less, "--routes-dir", &dir]);
    assert_eq!((&found["proof"], &found["proof"]["cut_off"]), (&made["proof"], &serde_json::json!(["h4"])));
    let shown = text(0, &["check", &less, "--routes-dir", &dir]);
    assert!(shown.contains("isolated   1 host without a cable: h4\n"), "{shown}");
    assert!(shown.contains("proof      every pair of cabled hosts has a route"), "{shown}");
    fabric.map.hosts[3] = formats::resolve(RING).unwrap().map.hosts[3];
    fabric.map.cables.retain(|cable| cable.a.xbar != 3 && cable.b.xbar != 3);
    let less = folder.write("less.json", &formats::write(&fabric, FileFormat::Json));
    let shown = text(0, &["route", &less, "--engine", "dispersive"]);
    assert!(shown.contains("cut off    2 hosts that no cable joins with the rest: h7, h8\n"), "{shown}");
}

#[test]
fn gm_routes_are_written_for_tables_and_for_source_routes() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mapper.routes").display().to_string();
    for (engine, routes_a_pair) in [("updn", "1"), ("dispersive", "2")] {
        let route = json(0, &["route", "clos:hosts=8,ports=4", "--engine", engine, "--gm-routes", &file]);
        assert_eq!(route["written"]["gm_routes"], file.as_str());
        let written = std::fs::read_to_string(&file).unwrap();
        let mut lines = written.lines();
        let (hosts, most) = lines.next().unwrap().split_once(' ').unwrap();
        assert_eq!(hosts, "8");
        assert!(engine == "dispersive" || most == routes_a_pair, "{engine}: {most}");
        // Every host has a block with its name, and a line for each other host at least.
        for host in 1..=8 {
            let block =
                written.split("\n\n").find(|block| block.starts_with(&format!("\"h{host}\" ("))).unwrap();
            assert!(block.lines().count() > 7, "{block}");
        }
    }
    // On a ring of three, the route to each other host takes one turn at each of two crossbars.
    text(0, &["route", "ring:n=3,hosts=1", "--engine", "updn", "--gm-routes", &file]);
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.starts_with("3 1\n\n\"h1\" (2 4)\n\"h2\" "), "{written}");
}
