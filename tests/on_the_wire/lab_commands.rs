//! Tests of what the commands of `scripts/lab` do to a fabric.

use crate::lab::{Lab, wait_for};
use crate::{can_make_namespaces, can_make_taps};

/// Whether all boards are complete, with this many hosts and cables.
fn complete(boards: &[serde_json::Value], hosts: u64, cables: u64) -> bool {
    boards.iter().all(|board| {
        board["network_configured"] == true
            && (&board["hosts"], &board["cables"]) == (&hosts.into(), &cables.into())
    })
}

#[test]
fn a_silent_cable_keeps_its_carrier_and_carries_nothing_until_mended() {
    if !can_make_namespaces() {
        return;
    }
    let lab = Lab::up("ring:n=4,hosts=1", &[]);
    lab.wait_until("the whole ring", |boards| complete(boards, 4, 4));

    lab.run(&["silent", "xbar1:1"]);
    lab.wait_until("a cable less", |boards| complete(boards, 4, 3));
    let carrier = lab.run(&["exec", "xbar1", "cat", "/sys/class/net/p1/carrier"]);
    assert_eq!(carrier, "1\n");
    lab.run(&["mend", "xbar2:2"]);
    lab.wait_until("the cable again", |boards| complete(boards, 4, 4));

    lab.run(&["silent", "h2"]);
    lab.wait_until("the host missed", |boards| boards[0]["hosts"] == 3);
    lab.run(&["mend", "h2"]);
    lab.wait_until("the host again", |boards| complete(boards, 4, 4));
}

#[test]
fn a_node_that_was_killed_is_missed_until_it_is_restarted() {
    if !can_make_namespaces() {
        return;
    }
    let lab = Lab::up("ring:n=3,hosts=1", &[]);
    lab.wait_until("the whole ring", |boards| complete(boards, 3, 3));

    lab.run(&["kill", "h3"]);
    assert!(lab.run(&["status"]).ends_with(" down\n"));
    let again = lab.try_run(&["kill", "h3"]);
    assert_eq!(String::from_utf8(again.stderr).unwrap(), "lab: 'h3' does not run\n");
    lab.run(&["restart", "h3"]);
    lab.wait_until("the host again", |boards| complete(boards, 3, 3));

    lab.run(&["kill", "xbar2"]);
    lab.wait_until("its host alone", |boards| boards[0]["hosts"] == 2 && boards[1]["state"] != "configured");
    lab.run(&["restart", "xbar2"]);
    lab.wait_until("the xbar again", |boards| complete(boards, 3, 3));
    // `restart` stops an agent that runs before it starts it.
    lab.run(&["restart", "h1"]);
    lab.wait_until("the ring as before", |boards| complete(boards, 3, 3));
}

#[test]
fn every_host_reaches_every_other_and_who_cannot_is_named() {
    if !can_make_taps() {
        return;
    }
    // Kernels would go on with the packets of an agent that is killed.
    for options in [&["--", "--data-path", "tap"][..], &["--nodes", "--", "--data-path", "tap"]] {
        let lab = Lab::up("ring:n=3,hosts=1", options);
        lab.wait_until("the whole ring", |boards| complete(boards, 3, 3));
        // An agent that maps anew at the moment, as on a busy machine, reaches nobody.
        let says = |arguments: &[&str], succeeds: bool, expected: &str| {
            wait_for(&format!("{options:?}: {expected}"), || {
                let output = lab.try_run(arguments);
                let is_so = output.status.code() == Some(i32::from(!succeeds));
                (is_so && output.stdout == expected.as_bytes()).then_some(())
            });
        };
        says(&["ping-all"], true, "6 of 6 pairs of hosts reach each other over IPv4\n");
        says(&["ping-all", "-6"], true, "6 of 6 pairs of hosts reach each other over IPv6\n");
        lab.run(&["kill", "h3"]);
        let expected = "h1 cannot reach h3 at 10.77.0.3\nh2 cannot reach h3 at 10.77.0.3\n\
                        h3 cannot reach h1 at 10.77.0.1\nh3 cannot reach h2 at 10.77.0.2\n\
                        2 of 6 pairs of hosts reach each other over IPv4\n";
        says(&["ping-all"], false, expected);
    }
}
