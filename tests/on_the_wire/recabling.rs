//! Tests of cables that are pulled, plugged in again, or plugged in elsewhere.

use serde_json::Value;

use crate::can_carry_ip;
use crate::lab::{Lab, wait_for};

#[test]
fn a_cable_may_be_unplugged_and_plugged_in_again() {
    if !can_carry_ip() {
        return;
    }
    let lab = Lab::up("ring:n=4,hosts=1", &["--nodes"]);
    lab.wait_for_network("the whole ring", 4, 4);
    lab.run(&["cut", "h1:1"]);
    lab.wait_for_pings("all reach each other around the cut", &[]);
    lab.wait_for_network("a cable less", 4, 3);
    // Without two of its cables the ring is two halves, each with a map of its own.
    lab.run(&["cut", "h3:1"]);
    lab.wait_until("two halves", |boards| {
        boards.iter().all(|board| board["network_configured"] == true && board["hosts"] == 2)
    });
    lab.run(&["mend", "h1:1"]);
    lab.wait_for_network("one again", 4, 3);
    lab.run(&["mend", "h3:1"]);
    lab.wait_for_network("the whole ring again", 4, 4);
    lab.wait_for_pings("all reach each other again", &[]);
}

/// Swaps the cables at two interfaces, each named by its node and itself.
fn swap(lab: &Lab, one: (&str, &str), other: (&str, &str)) {
    for (node, interface) in [one, other] {
        lab.ip(node, &format!("link set {interface} down"));
        lab.ip(node, &format!("link set {interface} name swap-{node}"));
    }
    for ((from, _), (to, interface)) in [(one, other), (other, one)] {
        lab.ip(from, &format!("link set swap-{from} netns {}", lab.namespace(to)));
        lab.ip(to, &format!("link set swap-{from} name {interface}"));
        lab.ip(to, &format!("link set {interface} up"));
    }
}

/// The tag of the xbar with this id.
fn tag(map: &Value, id: &Value) -> Value {
    map["xbars"].as_array().unwrap().iter().find(|xbar| xbar["id"] == *id).unwrap()["tag"].clone()
}

/// Whether a map has a cable between the xbars with these tags.
fn joins(map: &Value, tags: [&str; 2]) -> bool {
    map["cables"].as_array().unwrap().iter().any(|cable| {
        let ends = [tag(map, &cable["a"][0]), tag(map, &cable["b"][0])];
        ends == tags || [&ends[1], &ends[0]] == [tags[0], tags[1]]
    })
}

#[test]
fn two_swapped_cables_are_found_where_they_are() {
    if !can_carry_ip() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("map.json");
    let lab = Lab::up("ring:n=4,hosts=1", &["--", "--map-file", file.to_str().unwrap()]);
    let map = || -> Value { serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap() };
    let tags = ["1", "2", "3", "4"].map(|xbar| format!("0x020000000000000{xbar}"));
    let joined = |map: &Value, a: usize, b: usize| joins(map, [&tags[a - 1], &tags[b - 1]]);
    let before = lab.wait_for_network("the whole ring", 4, 4);
    wait_for("the ring in the file", || {
        let map = map();
        (joined(&map, 1, 2) && joined(&map, 3, 4) && !joined(&map, 1, 3)).then_some(())
    });

    // The cables 1-2 and 4-3 become 1-3 and 4-2, so the fabric is still a ring, but in another order.
    swap(&lab, ("xbar2", "p2"), ("xbar3", "p1"));
    let other_map =
        |boards: &[Value]| boards.iter().all(|board| board["map_version"] != before[0]["map_version"]);
    lab.wait_until("another map", other_map);
    // On a busy machine the agents may map once more at any moment.
    wait_for("the whole ring in another order, in the file as on the boards", || {
        let after = lab.wait_for_network("the whole ring in another order", 4, 4);
        let map = map();
        let is_so = joined(&map, 1, 3) && joined(&map, 2, 4) && !joined(&map, 1, 2);
        (is_so && map["version"] == after[0]["map_version"]).then_some(())
    });
    lab.wait_for_pings("all reach each other over other cables", &[]);

    // Two hosts change places.
    swap(&lab, ("xbar1", "p3"), ("xbar2", "p3"));
    lab.wait_until("the hosts elsewhere", |boards| {
        let places = |mac: &str| {
            let map = map();
            let host = map["hosts"].as_array().unwrap().iter().find(|host| host["mac"] == mac).cloned();
            host.map(|host| tag(&map, &host["xbar"]))
        };
        places("02:00:00:00:00:01") == Some(tags[1].as_str().into())
            && places("02:00:00:00:00:02") == Some(tags[0].as_str().into())
            && boards.iter().all(|board| board["network_configured"] == true && board["hosts"] == 4)
    });
    lab.wait_for_pings("all reach each other from other places", &[]);
}
