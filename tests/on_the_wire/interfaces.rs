//! Tests of interfaces that are renamed or removed under a running agent, crossbar or node.

use crate::can_carry_ip;
use crate::lab::Lab;

/// Renames an interface and back, then deletes it with its cable and makes both again. While it is gone, the
/// network has so many hosts and cables between xbars, instead of 3 and 3.
fn comes_and_goes(
    lab: &Lab,
    (node, interface): (&str, &str),
    far: (&str, &str),
    (hosts, cables): (u64, u64),
) {
    let at = format!("{interface} of {node}");
    let missed = |what: &str| {
        lab.wait_until(&format!("{at} {what}"), |boards| {
            let found = |board: &&serde_json::Value| {
                board["network_configured"] == true
                    && (&board["hosts"], &board["cables"]) == (&hosts.into(), &cables.into())
            };
            boards.iter().filter(found).count() as u64 == hosts
        });
        let lost: &[&str] = if hosts < 3 { &[node] } else { &[] };
        lab.wait_for_pings(&format!("{at} {what}, the others reach each other"), lost);
    };
    let found_again = |what: &str| {
        lab.wait_for_network(&format!("{at} {what}"), 3, 3);
        lab.wait_for_pings(&format!("{at} {what}, all reach each other"), &[]);
    };
    lab.ip(node, &format!("link set {interface} down"));
    lab.ip(node, &format!("link set {interface} name other"));
    lab.ip(node, "link set other up");
    missed("renamed");
    lab.ip(node, "link set other down");
    lab.ip(node, &format!("link set other name {interface}"));
    lab.ip(node, &format!("link set {interface} up"));
    found_again("renamed back");

    lab.ip(node, &format!("link delete {interface}"));
    missed("removed");
    let (far_node, far_interface) = far;
    let peer = format!("peer name {far_interface} netns {}", lab.namespace(far_node));
    lab.ip(node, &format!("link add {interface} type veth {peer}"));
    lab.ip(far_node, &format!("link set {far_interface} up"));
    lab.ip(node, &format!("link set {interface} up"));
    found_again("made again");
}

#[test]
fn those_of_an_agent_or_a_crossbar_may_be_renamed_or_removed_and_return() {
    if !can_carry_ip() {
        return;
    }
    let lab = Lab::up("ring:n=3,hosts=1", &[]);
    lab.wait_for_network("the whole ring", 3, 3);
    comes_and_goes(&lab, ("h1", "fab0"), ("xbar1", "p3"), (2, 3));
    comes_and_goes(&lab, ("xbar2", "p1"), ("xbar3", "p2"), (3, 2));
}

#[test]
fn those_of_a_node_may_be_renamed_or_removed_and_return() {
    if !can_carry_ip() {
        return;
    }
    let lab = Lab::up("ring:n=3,hosts=1", &["--nodes"]);
    lab.wait_for_network("the whole ring", 3, 3);
    comes_and_goes(&lab, ("h1", "p1"), ("h2", "p2"), (3, 2));
}
