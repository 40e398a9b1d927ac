//! What the kernels of all machines forward by the destination or send by segments, proved together from what each of them
//! tells.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::lab::{Lab, wait_for};
use crate::ring::Ring;
use crate::{MAPPER, can_carry_ip};

pub(crate) fn check(map: &Path, routes: &Path) -> Output {
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

#[test]
fn segments_in_the_kernels_of_all_machines_are_proved_and_those_that_lead_elsewhere_are_named() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(4);
    let _daemons = ring.start_all(&["--data-path", "srv6"], "srv6");
    let dir = tempfile::tempdir().unwrap();
    let (map, routes) = (dir.path().join("map.json"), dir.path().join("routes"));
    // A busy machine may map anew meanwhile, and the kernels send by no segments before these are proved by probes.
    wait_for("all segments are proved", || {
        for at in 0..4 {
            let words = ["--routes", "--routes-dir", routes.to_str()?, "--map-file", map.to_str()?];
            ring.board(at, &words);
        }
        let output = check(&map, &routes);
        let report = report(&output);
        let all = report["by_segments"].as_u64()? >= 4 * 3;
        (output.status.success() && all && report["hosts_given"] == 4).then_some(())
    });
    let path = fs::read_dir(&routes).unwrap().next().unwrap().unwrap().path();
    let whole = read(&path);
    let mut other = whole.clone();
    let lists = other["by_segments"].as_array_mut().unwrap();
    let near = lists.iter().position(|list| list["to"] != lists[0]["to"]).unwrap();
    lists[0]["segments"] = lists[near]["segments"].clone();
    lists[0]["port"] = lists[near]["port"].clone();
    fs::write(&path, other.to_string()).unwrap();
    let output = check(&map, &routes);
    let told = report(&output)["proof"]["violations"][0].to_string();
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("by the segments fcbb:bb00:") && told.contains(", which lead to "), "{told}");
    fs::write(&path, whole.to_string()).unwrap();
    assert!(check(&map, &routes).status.success());
}

#[test]
fn segments_that_somebody_changes_in_a_kernel_are_named_by_the_board_and_by_the_check() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(3);
    let _daemons = ring.start_all(&["--data-path", "srv6"], "srv6");
    let dir = tempfile::tempdir().unwrap();
    let (map, routes) = (dir.path().join("map.json"), dir.path().join("routes"));
    let words = ["--routes", "--routes-dir", routes.to_str().unwrap(), "--map-file", map.to_str().unwrap()];
    let holds_what_it_was_told = |board: &Value| {
        let differ = &board["segments_differ"];
        *differ == serde_json::json!([]) && board["segments_not_compared"].is_null()
    };
    let in_words = |list: &Value, between: &str| {
        let segments = list["segments"].as_array().unwrap().iter();
        segments.map(|it| it.as_str().unwrap()).collect::<Vec<_>>().join(between)
    };
    // The agent puts right what is changed a moment later, so it is changed again and again until the agent has been asked. It
    // may hold other ways by then on a busy machine.
    wait_for("a change is named", || {
        let before = ring.board(0, &words);
        let lists = before["by_segments"].as_array()?;
        (holds_what_it_was_told(&before) && check(&map, &routes).status.success()).then_some(())?;
        let first = lists.first()?;
        let other = lists.iter().find(|it| it["to"] != first["to"])?;
        // The segments to one host become those to another one. A way may have several places in its group.
        let nexthops = ring.text(0, "ip nexthop show");
        let old = format!("[ {} ]", in_words(first, " "));
        let changes = nexthops.lines().filter(|line| line.contains(&old)).map(|nexthop| {
            let (number, new) = (nexthop.split(' ').nth(1).unwrap(), in_words(other, ","));
            let port = &other["port"];
            format!(
                "ip -6 nexthop replace id {number} encap seg6 mode encap.red segs {new} dev e{port} proto 109"
            )
        });
        let changes = changes.collect::<Vec<_>>();
        (!changes.is_empty()).then_some(())?;
        let script = format!("while {}; do :; done", changes.join(" && "));
        // The script ends by itself, too, so that it takes no time from others where this test fails.
        let mut changing =
            ring.machines[0].command("timeout").args(["20", "sh", "-c", &script]).spawn().unwrap();
        let board = ring.board(0, &words);
        kill_process(rustix::process::Pid::from_child(&changing), Signal::TERM).unwrap();
        changing.wait().unwrap();
        let output = check(&map, &routes);
        let told = report(&output)["proof"]["violations"].to_string();
        let name = first["name"].as_str()?;
        let is_named = [(false, "does not send", first), (true, "sends", other)].map(|(held, does, list)| {
            let is_it = |it: &&Value| {
                it["to"] == first["to"] && it["held"] == held && it["segments"] == list["segments"]
            };
            let it = board["segments_differ"].as_array()?.iter().find(is_it)?;
            let address = it["addresses"][0].as_str().unwrap();
            assert!(address.starts_with("10.1.0."), "the packets of IPv4 are meant: {it}");
            assert_eq!(output.status.code(), Some(3), "{told}");
            let words =
                format!("the kernel of n1 {does} packets to {name} by the segments {}", in_words(list, " "));
            assert!(told.contains(&words), "{words}: {told}");
            Some(())
        });
        is_named.iter().all(Option::is_some).then_some(())
    });
    wait_for("it is put right", || {
        (holds_what_it_was_told(&ring.board(0, &words)) && check(&map, &routes).status.success())
            .then_some(())
    });
}

#[test]
fn what_somebody_takes_from_a_crossbar_or_from_routes_by_destination_is_named_by_the_board_and_by_the_check()
{
    if !can_carry_ip() {
        return;
    }
    for (kind, taking, object) in [
        ("srv6", "ip -6 rule del priority 109 iif e1", "rule `iif e1 to fcbb:bb00::/32 lookup 28001`"),
        ("routes", "ip -4 route del 10.1.0.3 proto 109", "route 10.1.0.3/32 in table 254"),
    ] {
        let ring = Ring::new(3);
        let _daemons = ring.start_all(&["--data-path", kind], kind);
        let dir = tempfile::tempdir().unwrap();
        let (map, routes) = (dir.path().join("map.json"), dir.path().join("routes"));
        let words =
            ["--routes", "--routes-dir", routes.to_str().unwrap(), "--map-file", map.to_str().unwrap()];
        let is_whole = || {
            let board = ring.board(0, &words);
            board["objects_differ"] == serde_json::json!([]) && check(&map, &routes).status.success()
        };
        wait_for("all is as it was told", || is_whole().then_some(()));
        // The agent puts back what is taken a moment later, so it is taken again and again until the agent has been asked.
        wait_for("what is taken is named", || {
            let script = format!("while :; do {taking}; done");
            let mut taking = ring.machines[0]
                .command("timeout")
                .args(["20", "sh", "-c", &script])
                .stderr(std::process::Stdio::null())
                .spawn()
                .unwrap();
            let board = ring.board(0, &words);
            kill_process(rustix::process::Pid::from_child(&taking), Signal::TERM).unwrap();
            taking.wait().unwrap();
            let lacks = serde_json::json!({ "object": object, "how": "missing" });
            board["objects_differ"].as_array()?.contains(&lacks).then_some(())?;
            let output = check(&map, &routes);
            let told = report(&output)["proof"]["violations"].to_string();
            assert_eq!(output.status.code(), Some(3), "{told}");
            assert!(
                told.contains(&format!("the kernel of n1 lacks {object}, which its agent told it")),
                "{told}"
            );
            Some(())
        });
        wait_for("it is put right", || is_whole().then_some(()));
    }
}

#[test]
fn a_node_whose_cables_are_pulled_wants_nothing_that_its_kernel_refuses() {
    if !can_carry_ip() {
        return;
    }
    for kind in ["srv6", "routes"] {
        let ring = Ring::new(3);
        let _daemons = ring.start_all(&["--data-path", kind], kind);
        for port in ["e1", "e2"] {
            ring.machines[0].ip(&format!("link set {port} down"));
        }
        wait_for("each side has a map without the other", || {
            [(0, 1), (1, 2), (2, 2)]
                .iter()
                .all(|&(at, hosts)| ring.board(at, &[])["hosts"] == hosts)
                .then_some(())
        });
        for at in 0..3 {
            let board = ring.board(at, &["--routes"]);
            assert_eq!(board["objects_differ"], serde_json::json!([]), "{kind}, node {at}");
            assert_eq!(board["data_path"]["troubles"], serde_json::json!([]), "{kind}, node {at}");
        }
    }
}

#[test]
fn segments_of_agents_alone_are_proved_from_the_crossbars_that_they_are_cabled_to() {
    if !can_carry_ip() {
        return;
    }
    let lab = Lab::up("ring:n=3,hosts=1", &["--xbars", "tagged", "--", "--data-path", "srv6"]);
    lab.wait_for_network("the whole ring", 3, 3);
    let dir = tempfile::tempdir().unwrap();
    let (map, routes) = (dir.path().join("map.json"), dir.path().join("routes"));
    wait_for("all segments are proved", || {
        let words = ["boards", "--routes", "--routes-dir", routes.to_str()?, "--map-file", map.to_str()?];
        // While maps change, boards may hold different ones.
        lab.try_run(&words).status.success().then_some(())?;
        let output = check(&map, &routes);
        let all = report(&output)["by_segments"].as_u64()? >= 3 * 2;
        (output.status.success() && all).then_some(())
    });
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// How many requests for an echo a host has taken, whichever address they were for.
fn echoes_taken(lab: &Lab, host: &str) -> u64 {
    let told = lab.run(&["exec", host, "cat", "/proc/net/snmp"]);
    let mut lines = told.lines().filter(|line| line.starts_with("Icmp:")).map(|line| line.split(' '));
    let (names, mut values) = (lines.next().unwrap(), lines.next().unwrap());
    let at = names.into_iter().position(|name| name == "InEchos").unwrap();
    values.nth(at).unwrap().parse().unwrap()
}

#[test]
fn what_a_crossbar_with_emptied_tables_gets_is_taken_by_no_other_host() {
    if !can_carry_ip() {
        return;
    }
    let lab = Lab::up("ring:n=4,hosts=1", &["--nodes", "--", "--data-path", "srv6"]);
    lab.wait_for_network("the whole ring", 4, 4);
    lab.wait_for_pings("all reach each other", &[]);
    wait_for("packets go by segments", || {
        let route = lab.run(&["exec", "h1", "ip", "route", "get", "10.77.0.2"]);
        route.contains("seg6").then_some(())
    });
    // No agent puts right what is missing.
    for host in ["h1", "h2", "h3", "h4"] {
        kill_process(lab.pid(host), Signal::STOP).unwrap();
    }
    lab.ip("h2", "-6 route flush table 28001");
    let taken = || ["h1", "h3", "h4"].map(|host| echoes_taken(&lab, host));
    let before = taken();
    let output =
        lab.try_run(&["exec", "h1", "ping", "-q", "-c", "20", "-i", "0.01", "-W", "0.2", "10.77.0.2"]);
    assert!(!output.status.success(), "a crossbar that knows no segment takes none");
    assert_eq!(taken(), before);
}
