//! Ports of the fabric that are renamed, have addresses of their own, or short frames, where users' packets go by the
//! kernels.

use crate::can_carry_ip;
use crate::kernel_path::pings;
use crate::lab::wait_for;
use crate::ring::Ring;

#[test]
fn a_port_that_is_renamed_carries_packets_by_segments_under_its_new_name() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(3);
    let _daemons: Vec<_> = (0..3)
        .map(|at| {
            let name = format!("n{}", at + 1);
            let address = format!("10.1.0.{}/24", at + 1);
            ring.start_by_pattern(at, &["--host-name", &name, "--address", &address])
        })
        .collect();
    (0..3).for_each(|at| ring.wait_for_kind(at, "srv6"));
    for line in ["link set e1 down", "link set e1 name e9", "link set e9 up"] {
        ring.machines[0].ip(line);
    }
    // Segments from the cable are obeyed again, and the shortest way to the next machine is over it.
    wait_for("the cable carries packets again", || {
        let rules = ring.text(0, "ip -6 rule");
        let nexthops = ring.text(0, "ip nexthop show");
        let renamed = rules.contains("iif e9 ") && !rules.contains("iif e1 ");
        (renamed && nexthops.contains("dev e9") && pings(&ring.machines[0], "10.1.0.2") == 20).then_some(())
    });
    (0..3).for_each(|at| ring.wait_for_kind(at, "srv6"));
}

#[test]
fn a_port_that_comes_while_a_node_runs_carries_packets_by_the_kernels() {
    if !can_carry_ip() {
        return;
    }
    for kind in ["srv6", "routes"] {
        let ring = Ring::new(3);
        ring.machines[0].ip("link delete e1");
        let _daemons: Vec<_> = (0..3)
            .map(|at| {
                ring.start_by_pattern(
                    at,
                    &["--data-path", kind, "--address", &format!("10.1.0.{}/24", at + 1)],
                )
            })
            .collect();
        (0..3).for_each(|at| ring.wait_for_kind(at, kind));
        ring.machines[0].ip(&format!("link add e1 type veth peer name e2 netns {}", ring.machines[1].name));
        for (at, port, to) in [(0, "e1", "10.1.0.2"), (1, "e2", "10.1.0.1")] {
            wait_for(&format!("{to} is reached by {kind} out of the new port"), || {
                ring.text(at, &format!("ip route get {to}")).contains(&format!("dev {port} ")).then_some(())
            });
            assert_eq!(pings(&ring.machines[at], to), 20);
        }
    }
}

#[test]
fn an_interface_that_cannot_be_a_port_is_named_on_the_board_until_it_can() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(2);
    ring.machines[1].ip("link set e2 mtu 1400");
    let _daemons: Vec<_> = (0..2).map(|at| ring.start_by_pattern(at, &[])).collect();
    let warnings = || ring.board(1, &[])["warnings"].to_string();
    wait_for("the board names the interface, and what to do", || {
        let told = warnings();
        let is_named = told.contains("e2 matches a pattern of --ports and cannot be a port: ");
        (is_named && told.contains("mtu 1500")).then_some(())
    });
    assert!(!warnings().contains("e1 matches"), "{}", warnings());
    ring.machines[1].ip("link set e2 mtu 1500");
    wait_for("it is a port", || {
        let board = ring.board(1, &[]);
        let ports = board["ports"].as_array()?.len();
        (ports == 2 && !warnings().contains("cannot be a port")).then_some(())
    });
}

#[test]
fn the_address_of_another_host_at_an_interface_beside_the_fabric_is_named() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(2);
    let _daemons = ring.start_all(&[], "srv6");
    let warnings = || ring.board(0, &[])["warnings"].to_string();
    assert_eq!(warnings(), "[]");
    ring.machines[0].ip("address add 10.1.0.2/32 dev lo");
    wait_for("the board names the interface and the host", || {
        warnings().contains("lo, which is not of this fabric, has the address 10.1.0.2 of n2").then_some(())
    });
    ring.machines[0].ip("address del 10.1.0.2/32 dev lo");
    wait_for("all is well again", || (warnings() == "[]").then_some(()));
}

#[test]
fn addresses_of_the_ports_themselves_are_reached_through_the_kernels_too() {
    if !can_carry_ip() {
        return;
    }
    let addresses = [("e1", "10.2.0.31"), ("e2", "10.2.0.32"), ("e1", "fd00:2::31"), ("e2", "fd00:2::32")];
    for kind in ["srv6", "routes"] {
        let ring = Ring::new(4);
        let _daemons = ring.start_all(&["--data-path", kind], kind);
        // The third machine is two cables away, either way round.
        for (port, address) in addresses {
            let bits = if address.contains(':') { "128 nodad" } else { "32" };
            ring.machines[2].ip(&format!("address add {address}/{bits} dev {port}"));
            wait_for(&format!("{address} is reached by {kind}"), || {
                let way = ring.text(0, &format!("ip route get {address}"));
                let by_ports = way.contains("dev e1") || way.contains("dev e2");
                (by_ports && pings(&ring.machines[0], address) == 20).then_some(())
            });
        }
    }
}

#[test]
fn packets_fill_the_cables_exactly_and_longer_ones_are_refused_where_they_are_sent() {
    if !can_carry_ip() {
        return;
    }
    // One segment stands in the outer header alone. In full segments the longest of these ways has three or four.
    for (avoid, least) in [(&[][..], 1460), (&["--kernel-avoid", "compression"], 1380)] {
        let ring = Ring::new(3);
        let _daemons = ring.start_all(avoid, "srv6");
        let marked: usize = wait_for("it is known what is too long", || {
            let rules = ring.text(0, "nft list ruleset");
            rules.split("packets longer than ").nth(1)?.split(' ').next()?.parse().ok()
        });
        assert!(marked >= least, "{marked}");
        // Headers of IPv4 and ICMP take 28 bytes, and those of IPv6 48.
        wait_for("what is as long as a way carries arrives, and no longer packet is sent", || {
            let whole = ring.run(0, &format!("ping -c 3 -i 0.1 -W 1 -M do -s {} 10.1.0.2", marked - 28));
            let longer = ring.run(0, &format!("ping -c 1 -W 1 -M do -s {} 10.1.0.2", marked - 27));
            let told = String::from_utf8(longer.stderr).unwrap();
            (whole.status.success() && told.contains(&format!("mtu={marked}"))).then_some(())
        });
    }
}
