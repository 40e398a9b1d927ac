//! Tests of IP over the fabric, with the usual programs.

use serde_json::Value;

use crate::lab::Lab;
use crate::{can_carry_ip, can_make_namespaces, can_make_taps};

/// What the lab calls the tap interface of a host.
const TAP: &str = "ip0";

/// A lab whose hosts are all configured.
fn lab(topology: &str) -> Lab {
    // These tests are of frames through the tap interface, so no kernel is to carry them.
    let lab = Lab::up(topology, &["--", "--data-path", "tap"]);
    lab.wait_until("all boards configured", |boards| {
        boards.iter().all(|board| board["network_configured"] == true)
    });
    lab
}

fn counter(board: &Value, name: &str) -> u64 {
    board["tap"]["counters"][name].as_u64().unwrap()
}

#[test]
fn every_host_reaches_every_other_over_both_versions_of_ip() {
    if !can_carry_ip() {
        return;
    }
    let lab = lab("clos:hosts=4,ports=4");
    for version in [&["ping-all"][..], &["ping-all", "-6"]] {
        crate::lab::wait_for("all reach each other", || lab.try_run(version).status.success().then_some(()));
    }
    let boards = lab.boards(&[]);
    // A host asks for addresses by ARP broadcasts, and learns the address of a host that asks it. One host
    // need not broadcast if all others asked it first; two such hosts would not know each other.
    let silent = boards.iter().filter(|board| counter(board, "broadcasts") == 0).count();
    assert!(silent <= 1, "{boards:#?}");
    for board in boards {
        assert!(counter(&board, "broadcast_copies") <= 3 * counter(&board, "broadcasts"));
        assert_eq!(board["tap"]["counters"]["dropped"]["malformed"], 0);
    }
}

#[test]
fn a_packet_of_the_mtu_passes_whole_and_a_longer_one_is_refused() {
    if !can_carry_ip() {
        return;
    }
    let lab = lab("ring:n=2,hosts=1");
    let mtu: usize =
        lab.run(&["exec", "h1", "cat", &format!("/sys/class/net/{TAP}/mtu")]).trim().parse().unwrap();
    // The payload of ping is the packet without the headers of IP and ICMP.
    let ping = |payload_bytes: usize| {
        let size = payload_bytes.to_string();
        lab.try_run(&["exec", "h1", "ping", "-c", "1", "-w", "30", "-M", "do", "-s", &size, "10.77.0.2"])
    };
    let longest = mtu - 28;
    assert!(ping(longest).status.success());
    let refused = ping(longest + 1);
    assert!(!refused.status.success());
    assert!(counter(&lab.boards(&[])[0], "frames_out") > 0);
    assert_eq!(lab.boards(&[])[0]["tap"]["counters"]["dropped"]["too_long"], 0);
}

#[test]
fn frames_of_a_flow_arrive_in_order() {
    if !(can_make_taps() && mapper_needs::programs(&["iperf3"])) {
        return;
    }
    let lab = lab("clos:hosts=4,ports=4");
    let text = lab.run(&["iperf", "h1", "h4", "1", "--udp", "--bitrate", "2M", "--json"]);
    let report: Value = serde_json::from_str(&text).unwrap();
    let udp = &report["end"]["streams"][0]["udp"];
    assert!(udp["packets"].as_u64().unwrap() > 0, "{report:#}");
    assert_eq!(udp["out_of_order"], 0, "{report:#}");
}

#[test]
fn tcp_passes_whole() {
    if !(can_make_taps() && mapper_needs::programs(&["iperf3"])) {
        return;
    }
    let lab = lab("ring:n=3,hosts=1");
    let text = lab.run(&["iperf", "h1", "h2", "1", "--json"]);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert!(report["end"]["sum_received"]["bytes"].as_u64().unwrap() > 0, "{report:#}");
}

#[test]
fn every_frame_of_a_burst_is_sent() {
    if !can_carry_ip() {
        return;
    }
    let lab = lab("ring:n=2,hosts=1");
    lab.run(&["exec", "h1", "ping", "-c", "1", "-w", "30", "10.77.0.2"]);
    let pid = std::fs::read_to_string(lab.dir().join("pid/h1")).unwrap();
    let signal = |name: &str| lab.run(&["exec", "h1", "kill", name, pid.trim()]);
    // While the agent is stopped, so many frames queue up that it turns to other work several times before it
    // has sent them all.
    signal("-STOP");
    lab.try_run(&["exec", "h1", "ping", "-c", "300", "-l", "300", "-W", "0.1", "-q", "10.77.0.2"]);
    signal("-CONT");
    let handed_over = || -> u64 {
        let path = format!("/sys/class/net/{TAP}/statistics/tx_packets");
        lab.run(&["exec", "h1", "cat", &path]).trim().parse().unwrap()
    };
    lab.wait_until("all that the kernel handed over was sent", |boards| {
        let dropped = boards[0]["tap"]["counters"]["dropped"].as_object().unwrap().values();
        let dropped: u64 = dropped.filter_map(Value::as_u64).sum();
        let sent = counter(&boards[0], "frames_out") + dropped;
        sent > 300 && sent == handed_over()
    });
}

#[test]
fn what_others_do_to_the_tap_is_noticed_and_its_loss_ends_the_agent() {
    if !can_carry_ip() {
        return;
    }
    let lab = lab("ring:n=2,hosts=1");
    let warned = |what: &'static str, needle: &'static str| {
        lab.wait_until(what, |boards| {
            boards[0]["warnings"].as_array().unwrap().iter().any(|warning| {
                let warning = warning.as_str().unwrap();
                warning.contains(needle)
            })
        });
    };
    let changes: [(&'static str, &'static str, &[&'static str]); 4] = [
        ("link set ip0 mtu 9000", "MTU was set to 9000", &["link set ip0 mtu 1417"]),
        (
            "link set ip0 address 02:00:00:00:77:77",
            "reach this host by",
            &["link set ip0 address 02:00:00:00:00:01"],
        ),
        // The kernel takes the addresses of IPv6 away, and the agent has given up the privilege to give them again.
        (
            "link set ip0 down",
            "is down",
            &[
                "link set ip0 up",
                "address add fd77::1/64 dev ip0",
                "address add fd6d:6170:7065:7200:0:ff:fe00:1/64 dev ip0",
            ],
        ),
        ("link set fab0 mtu 1300", "carries 1300 bytes", &["link set fab0 mtu 1500"]),
    ];
    for (change, needle, undo) in changes {
        lab.ip("h1", change);
        warned(change, needle);
        for (nth, command) in undo.iter().enumerate() {
            if let (1.., Some((_, lost))) = (nth, command.split_once("add ")) {
                warned(command, lost.split('/').next().unwrap());
            }
            lab.ip("h1", command);
        }
        lab.wait_until(change, |boards| boards[0]["warnings"].as_array().unwrap().is_empty());
    }
    lab.ip("h1", "link delete ip0");
    crate::lab::wait_for("the agent has ended", || {
        let status = lab.run(&["status"]);
        status.lines().next().is_some_and(|line| line.ends_with(" down")).then_some(())
    });
    assert!(lab.log("h1").contains("the tap interface is gone"));
}

#[test]
fn a_host_that_is_gone_is_remembered_by_the_boards() {
    if !can_make_namespaces() {
        return;
    }
    let lab = lab("ring:n=3,hosts=1");
    lab.run(&["kill", "h3"]);
    lab.wait_until("the others say who is gone", |boards| {
        boards[..2].iter().all(|board| board["gone_hosts"] == serde_json::json!(["02:00:00:00:00:03"]))
    });
    lab.run(&["restart", "h3"]);
    lab.wait_until("nobody is gone", |boards| {
        boards.iter().all(|board| board["gone_hosts"] == serde_json::json!([]))
    });
}
