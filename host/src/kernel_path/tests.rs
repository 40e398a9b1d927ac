//! What hosts have their kernels do, tried on machines in a ring.

mod by_destination;
mod held;
mod lengths;
mod losses;
mod proofs;
mod ring;
mod uses;
mod version4;
mod without_crossbar;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use mapper_fib::crossbar::CabledPort;
use mapper_fib::model::{Machine, Packet, Step};
use mapper_fib::probe::{DatagramEnds, HOP_LIMIT};
use mapper_fib::segments::{self, Element, LeftUnused, overhead_bytes};
use mapper_fib::{IpPrefix, Nexthop, Route, RouteKey, Rule, Table};
use mapper_proto::PortSet;
use mapper_proto::crossbar_tag;
use mapper_proto::map::{Cable, FrameSizes, Host, LinkMtu, Map, Xbar, host_type};
use mapper_routing::{DeadCables, RouteOptions};
use proptest::prelude::*;

use super::*;
use crate::routes::Basis;
use ring::*;

#[test]
fn all_hosts_are_reached_along_proved_routes_in_both_versions_of_ip() {
    for count in [2, 3, 5] {
        let ring = Ring::new(count, |_| ABLE);
        assert_eq!(ring.check(), 2 * count * (count - 1));
        assert_eq!(ring.nodes[0].kernel.status().not_carried, []);
    }
}

#[test]
fn packets_that_are_too_long_for_an_outer_header_leave_by_the_tap_interface() {
    let ring = Ring::new(3, |_| ABLE);
    let wanted = ring.nodes[0].kernel.wanted();
    assert_eq!(wanted.marked_above, Some(1460));
    // Only IPv6 has a rule for them: one of IPv4 would slow all packets down, also when it is gone again.
    assert!(wanted.rules.contains(&Rule::TooLong));
    for address in [v4(1), v6(1), v4(2), v6(2)] {
        let key = RouteKey { table: Table::TooLong, to: IpPrefix::host(address) };
        assert_eq!(wanted.routes.get(&key), Some(&Route::Link { interface: TAP, source: None, mtu: 1417 }));
    }
    // Full segments leave less room, so packets that are too long for the longest way are marked.
    let full = Ring::new(5, |_| KernelAbilities { compressed: false, ..ABLE });
    assert!(full.nodes[0].kernel.wanted().marked_above < Some(1460));
    // Where kernels go by the destination, packets have no outer header.
    let plain = Ring::new(3, |_| PLAIN);
    assert_eq!(plain.nodes[0].kernel.wanted().marked_above, None);
}

#[test]
fn packets_fill_the_cables_whatever_the_kernel_takes_off_the_mtu_of_routes() {
    for (compressed, left_unused) in
        [(true, LEFT_UNUSED), (false, LEFT_UNUSED), (true, LeftUnused::NOTHING), (false, LeftUnused::NOTHING)]
    {
        let ring = Ring::new(5, |_| KernelAbilities { compressed, left_unused, ..ABLE });
        let objects = ring.nodes[0].kernel.wanted();
        let groups = objects.routes.values().filter_map(|route| match route {
            Route::Group { group, mtu, .. } => Some((group, *mtu)),
            _ => None,
        });
        for (group, mtu) in groups {
            let frames = objects.groups[group].iter().map(|id| match &objects.nexthops[id] {
                Nexthop::Segments { segments, .. } => {
                    mtu - left_unused.bytes(segments.len()) + overhead_bytes(segments.len())
                }
                other => panic!("{other:?}"),
            });
            assert_eq!(frames.max(), Some(1500), "{compressed} {left_unused:?}");
        }
    }
}

#[test]
fn kernels_that_know_no_compressed_elements_get_full_ones() {
    // One kernel knows no compressed segments, so ways through it are tried with full ones.
    let ring = Ring::new(5, |node| KernelAbilities { compressed: node != 2, ..ABLE });
    assert_eq!(ring.check(), 2 * 5 * 4);
}

#[test]
fn a_host_whose_kernel_obeys_nothing_is_left_to_the_tap_and_the_others_are_not() {
    let ring = Ring::new(5, |node| if node == 2 { KernelAbilities::default() } else { ABLE });
    let carried = ring.check();
    assert!(carried > 0 && carried < 2 * 5 * 4);
    let status = ring.nodes[0].kernel.status();
    let why = status.not_carried.iter().find(|(host, _)| *host == mac(2)).unwrap().1;
    assert_eq!(why, NotCarried::NoAnswer);
    assert_eq!(ring.nodes[2].kernel.status().not_carried.len(), 4);
    assert_eq!(ring.nodes[2].kernel.wanted(), Objects::default());
}

#[test]
fn a_host_of_another_network_is_told_with_both_networks_where_nothing_comes_back() {
    let mut ring = Ring::new(5, |node| if node == 2 { KernelAbilities::default() } else { ABLE });
    let why_not = |ring: &Ring| {
        let status = ring.nodes[0].kernel.status();
        status.not_carried.iter().find(|(host, _)| *host == mac(2)).map(|(_, why)| *why)
    };
    let elsewhere: IpAddr = "fd99::3".parse().unwrap();
    let tell = |ring: &mut Ring, addresses: Vec<IpAddr>| {
        let now = ring.now;
        ring.nodes[0].kernel.set_addresses(now, |of| match (0..5).find(|&node| mac(node) == of) {
            Some(2) => addresses.clone(),
            node => node.into_iter().flat_map(|node| [v4(node), v6(node)]).collect(),
        });
        ring.wait(5);
    };
    tell(&mut ring, vec![v4(2), elsewhere]);
    let why = why_not(&ring).unwrap();
    assert!(matches!(why, NotCarried::OtherNetwork(_)), "{why:?}");
    let words = why.describe(|host| host.to_string());
    assert!(words.contains("of the network fd99::/64, and this host's of fd00::/64"), "{words}");
    assert!(words.contains("the same --fabric-prefix"), "{words}");
    tell(&mut ring, vec![v4(2), elsewhere, v6(2)]);
    assert_eq!(why_not(&ring), Some(NotCarried::NoAnswer));
}

#[test]
fn whose_kernel_has_no_segments_is_told_by_itself_and_by_its_neighbours() {
    let ring = Ring::new(3, |node| if node == 2 { PLAIN } else { ABLE });
    let why_not = |at: usize, to: usize| {
        let status = ring.nodes[at].kernel.status();
        status.not_carried.iter().find(|(host, _)| *host == mac(to)).map(|(_, why)| *why)
    };
    let behind = |port, node| Behind { port, who: mac(node) };
    assert_eq!(why_not(0, 1), None);
    assert_eq!(why_not(0, 2), Some(NotCarried::NeighbourLacksSegments(behind(2, 2))));
    assert_eq!(why_not(1, 2), Some(NotCarried::NeighbourLacksSegments(behind(1, 2))));
    assert_eq!(why_not(2, 0), Some(NotCarried::NeighbourLacksRoutes(behind(1, 0))));
    let words = why_not(2, 1).unwrap().describe(|host| format!("{host} indeed"));
    assert!(words.contains(&format!("the kernel of {} indeed, behind port 2,", mac(1))), "{words}");
    assert!(ring.nodes[2].kernel.has_tried_all());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn whatever_cables_are_cut_no_packet_of_the_kernels_loops_or_arrives_elsewhere(
        count in 3..7usize,
        cuts in proptest::collection::vec((0..7usize, any::<bool>()), 1..6),
    ) {
        let mut ring = Ring::new(count, |_| ABLE);
        for (node, knows) in cuts {
            let at = PortRef { xbar: (node % count) as u32, port: 1 };
            if !ring.cut.remove(&at) {
                ring.cut.insert(at);
            }
            let dead = DeadCables::from(ring.cut.clone());
            for node in 0..count {
                // Some know of the dead cables, and others do not yet.
                if knows || node % 2 == 0 {
                    let table = Arc::new(ring.nodes[node].table.repair(&dead).unwrap());
                    ring.install(node, &table);
                    ring.change(node);
                }
            }
            for (from, to) in ring.pairs() {
                ring.flows(from, to, v4(to));
            }
            ring.settle();
        }
    }
}

#[test]
fn a_way_by_destination_is_told_with_the_first_crossbar_that_has_others_as_near() {
    let mut map = map(4, 1);
    map.xbars[0].ports = 5;
    map.xbars.push(Xbar { ports: 3, tag: Some(5), ports_known: true });
    let at = |xbar, port| PortRef { xbar, port };
    map.hosts
        .insert(0, Host { mac: mac(4), level: 1, host_type: host_type::ETHERNET, at: Some(at(4, AGENT)) });
    map.cables.push(Cable::new(at(0, 4), at(4, 1)));
    map.cables.sort_unstable();
    let way = |node, first| {
        let table = table_of(&map, node);
        table.way_by_destination(first, table.host(mac(2)).unwrap())
    };
    let straight = way(0, at(0, 1));
    assert_eq!(
        (straight.hops.as_slice(), straight.forks_at),
        (&[at(0, 1), at(1, 1), at(2, AGENT)][..], None)
    );
    let forked = way(4, at(4, 1));
    assert_eq!((forked.hops.len(), forked.hops[1].xbar, forked.forks_at), (4, 0, Some(1)));
}
