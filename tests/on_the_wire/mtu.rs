//! Tests of cables that carry shorter frames than others: which boards name them, and what becomes of users'
//! frames.

use serde_json::{Value, json};

use crate::can_carry_ip;
use crate::lab::{Lab, wait_for};

const NODES: [&str; 3] = ["h1", "h2", "h3"];

/// Three nodes in a ring whose cables carry jumbo frames, except the cable from port 1 of h1 to port 2 of h2.
/// Its interfaces `small_ends` have an MTU of 1500 when the agents start.
fn ring(small_ends: &[(&str, &str)]) -> Lab {
    let lab = Lab::up(
        "ring:n=3,hosts=1",
        &["--nodes", "--", "--data-path", "tap", "--liveness-interval-ms", "200"],
    );
    for node in NODES {
        lab.run(&["kill", node]);
    }
    for node in NODES {
        for port in ["p1", "p2"] {
            let mtu = if small_ends.contains(&(node, port)) { 1500 } else { 9000 };
            lab.ip(node, &format!("link set {port} mtu {mtu}"));
        }
        lab.run(&["restart", node]);
    }
    lab.wait_for_network("the whole ring", 3, 3);
    lab.wait_for_pings("all reach each other", &[]);
    lab
}

/// What `mapper board-info` prints for people, of all hosts.
fn text(lab: &Lab) -> String {
    lab.run(&["boards"])
}

/// Whether h3 gets an answer from h1 to a packet of 8,028 bytes, with these options of ping.
fn jumbo_ping(lab: &Lab, options: &[&str]) -> bool {
    let ping =
        [&["exec", "h3", "ping", "-c", "1", "-W", "2", "-s", "8000"], options, &["10.77.0.1"]].concat();
    lab.try_run(&ping).status.success()
}

fn too_long(board: &Value) -> u64 {
    board["tap"]["counters"]["dropped"]["too_long_for_cable"].as_u64().unwrap()
}

#[test]
fn a_cable_with_a_smaller_mtu_is_named_by_all_and_senders_learn_what_gets_through() {
    if !can_carry_ip() {
        return;
    }
    let lab = ring(&[("h1", "p1"), ("h2", "p2")]);
    lab.wait_until("all name the cable", |boards| {
        boards.iter().all(|board| {
            let end = |host: &str, port: u8| {
                let own = board["mac"] == host;
                json!({"host": host, "port": port, "interface": own.then(|| format!("p{port}")), "mtu": 1500})
            };
            let ends = [end("02:00:00:00:00:01", 1), end("02:00:00:00:00:02", 2)];
            let mut found = board["narrow_cables"].clone();
            if let Some(ends) = found[0]["ends"].as_array_mut() {
                ends.sort_by_key(|end| end["host"].to_string());
            }
            found == json!([{"mtu": 1500, "longest": 9000, "ends": ends}])
        })
    });
    let named =
        "1500 bytes at port 2 of host h2 (02:00:00:00:00:02) and port 1 of host h1 (02:00:00:00:00:01);";
    let told = wait_for("all tell it people, and the third by the names of the two", || {
        let told = text(&lab);
        let count = told.matches("cables of the map carry shorter frames than hosts send").count();
        (count == 3 && told.contains(named)).then_some(told)
    });
    assert!(!told.contains("Network is fully configured"), "{told}");
    // The log tells it once, also where names come later.
    let lines =
        || lab.log("h3").lines().filter(|line| line.contains("1500 bytes at port 2 of host ")).count();
    assert_eq!(lines(), 1, "one line in the log");
    wait_for("another cable leads from h3 to h1", || jumbo_ping(&lab, &["-M", "do"]).then_some(()));
    lab.run(&["cut", "h3:1"]);
    lab.wait_for_network("without the cable of jumbo frames", 3, 2);
    lab.wait_for_pings("all reach each other by the others", &[]);
    assert!(!jumbo_ping(&lab, &["-M", "do"]), "only a small cable is left");
    wait_for("the kernel knows what gets through, and sends that", || jumbo_ping(&lab, &[]).then_some(()));
    let route = lab.run(&["exec", "h3", "ip", "route", "get", "10.77.0.1"]);
    assert!(route.contains(" mtu 14"), "{route}");
    let boards = lab.boards(&[]);
    assert!(too_long(&boards[2]) > 0, "{:#}", boards[2]);
    assert_eq!(boards[2]["dead_cables"], json!([]), "no cable is held for dead");
    assert_eq!(lines(), 1, "it is the same cable after the new map: {}", lab.log("h3"));
}

#[test]
fn one_end_that_is_too_small_is_named_by_all_until_it_is_mended() {
    if !can_carry_ip() {
        return;
    }
    let lab = ring(&[("h1", "p1")]);
    wait_for("all name the end", || {
        let told = text(&lab);
        let by_others = told.matches("1500 bytes at port 1 of host h1 (02:00:00:00:00:01);").count();
        let by_itself = told.matches("1500 bytes at port 1 (p1) of this host;").count();
        ((by_others, by_itself) == (2, 1)).then_some(())
    });
    lab.ip("h1", "link set p1 mtu 9000");
    let configured = || {
        let told = text(&lab);
        (told.matches("Network is fully configured").count() == 3).then_some(told)
    };
    let told = wait_for("all say that the network is configured", configured);
    assert!(!told.contains("1500 bytes at"), "{told}");
    // An interface whose MTU becomes too small while the agents run is named, too.
    lab.ip("h2", "link set p1 mtu 4000");
    let named = |boards: &[Value]| {
        boards.iter().all(|board| board["narrow_cables"][0]["ends"][0]["host"] == "02:00:00:00:00:02")
    };
    lab.wait_until("all name the other cable", named);
}
