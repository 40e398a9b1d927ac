//! Routes beside those of nodes: those of the tap interface's own addresses, which come back, and those of others, which are
//! named.

use serde_json::Value;

use crate::lab::wait_for;
use crate::ring::Ring;
use crate::{MAPPER, can_carry_ip};

/// What the board says of the way of users' packets at the second machine.
fn data_path(ring: &Ring) -> Value {
    ring.board(1, &[])["data_path"].clone()
}

#[test]
fn routes_of_the_tap_interface_come_back_when_they_are_flushed_and_not_without_their_address() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(3);
    let _daemons = ring.start_all(&[], "srv6");
    for address in ["10.9.0.2/16", "10.9.0.3/16", "fd77::2/64"] {
        ring.machines[1].ip(&format!("address add {address} dev fabric0"));
    }
    ring.machines[1].ip("address add 10.10.0.2/16 dev fabric0 noprefixroute");
    let routes = || {
        ["ip -4 route show dev fabric0 proto kernel", "ip -6 route show dev fabric0"]
            .map(|line| ring.text(1, line))
    };
    let before = routes();
    assert!(before[0].contains("10.9.0.0/16") && before[1].contains("fd77::/64"), "{before:?}");
    for line in ["ip route flush dev fabric0", "ip -6 route flush dev fabric0", "ip route flush table main"] {
        let put_right = data_path(&ring)["put_right"].as_u64().unwrap();
        assert!(ring.run(1, line).status.success(), "{line}");
        wait_for(&format!("after `{line}`, the routes are there again"), || {
            let board = data_path(&ring);
            let is_told =
                board["put_right"].as_u64()? > put_right && board["troubles"] == serde_json::json!([]);
            (routes() == before && is_told).then_some(())
        });
    }
    ring.machines[1].ip("address del fd77::2/64 dev fabric0");
    ring.machines[1].ip("address del 10.9.0.3/16 dev fabric0");
    ring.machines[1].ip("address del 10.9.0.2/16 dev fabric0");
    // The last route that is taken away comes back, which shows that the agent has looked at the addresses since.
    assert!(ring.run(1, "ip route del 10.1.0.0/24 dev fabric0").status.success());
    wait_for("the other route is there again", || routes()[0].contains("10.1.0.0/24").then_some(()));
    let after = routes().concat();
    assert!(!after.contains("10.9.0.0/16") && !after.contains("fd77::/64"), "{after}");
}

#[test]
fn a_route_of_the_tap_interface_that_cannot_come_back_is_told() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(3);
    let _daemons = ring.start_all(&[], "srv6");
    let troubles = || data_path(&ring)["troubles"].to_string();
    assert!(ring.run(1, "ip route replace 10.1.0.0/24 dev e1 proto static").status.success());
    wait_for("the board says so", || {
        troubles().contains("the tap interface's own route to 10.1.0.0/24 is gone").then_some(())
    });
    assert!(ring.run(1, "ip route del 10.1.0.0/24 dev e1").status.success());
    wait_for("all is well again", || (troubles() == "[]").then_some(()));
}

#[test]
fn a_route_of_others_that_takes_packets_before_ours_is_named_with_what_removes_it() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(3);
    let _daemons = ring.start_all(&[], "srv6");
    let troubles = || data_path(&ring)["troubles"].to_string();
    let doctor = || {
        let words = format!("{MAPPER} doctor --format json --ports e1,e2 --run-dir {}", ring.run_dir(1));
        let report: Value = serde_json::from_slice(&ring.run(1, &words).stdout).unwrap();
        let mut checks = report["checks"].as_array().unwrap().clone();
        checks.retain(|check| check["name"] == "forwarding tables");
        checks[0].clone()
    };
    assert_eq!(doctor()["status"], "ok");
    for (route, what) in [("blackhole 10.1.0.3/32", "blackhole route"), ("10.1.0.3/32 dev e1", "route")] {
        assert!(ring.run(1, &format!("ip route add {route}")).status.success());
        let named = format!("a {what} to 10.1.0.3/32 in table 254");
        wait_for("the board names it", || troubles().contains(&named).then_some(()));
        let check = doctor();
        assert!(check["status"] == "warning" && check["what"].to_string().contains(&named), "{check:#}");
        let fix = check["fix"].as_str().unwrap();
        let removal = fix.split('`').find(|part| part.starts_with("ip -4 route del")).unwrap();
        assert!(troubles().contains(removal), "{removal}");
        assert!(ring.run(1, removal).status.success(), "{removal}");
        wait_for("all is well again", || (troubles() == "[]").then_some(()));
    }
    assert_eq!(doctor()["status"], "ok");
}
