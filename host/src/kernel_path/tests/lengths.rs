//! Cables that carry shorter frames than their ends say, as what is between the ends says nothing of itself.

use super::by_destination::port;
use super::without_crossbar::mtu;
use super::*;

/// Four nodes whose ports say 9000, and the cable from node 0 to node 1 carries 1500.
fn ring_with_a_converter(abilities: KernelAbilities) -> Ring {
    let mut ring = Ring::new(4, |_| abilities);
    ring.link_mtu = 9000;
    ring.carries.insert(port(0, 1), 1500);
    (0..4).for_each(|node| ring.show_ports(node));
    ring.complete(&map(4, 2), &[0, 1, 2, 3]);
    // The tries take until then, as others begin where a neighbour's table has just changed.
    ring.wait(4);
    ring
}

#[test]
fn packets_are_as_long_as_what_passes_and_take_wide_ways_where_there_are_some() {
    for abilities in [ABLE, PLAIN] {
        let mut ring = ring_with_a_converter(abilities);
        // Of segments, routes say more than packets carry, which the kernel takes off again.
        let is_short = |mtu: Option<u32>| mtu.is_some_and(|mtu| (1280..1600).contains(&mtu));
        let is_long = |mtu: Option<u32>| mtu.is_some_and(|mtu| mtu > 8900);
        assert!(is_short(mtu(&ring, 0, 1)) && is_short(mtu(&ring, 1, 0)), "{:?}", mtu(&ring, 0, 1));
        assert!(is_long(mtu(&ring, 0, 3)) && is_long(mtu(&ring, 1, 2)));
        // Of the two ways to the node across, one is around that cable.
        assert!(is_long(mtu(&ring, 0, 2)) && is_long(mtu(&ring, 2, 0)), "{:?}", mtu(&ring, 0, 2));
        // What is too long for an outer header leaves by the tap interface in pieces that fit.
        if abilities.segments {
            let fits = |to: usize| {
                let key = RouteKey { table: Table::TooLong, to: IpPrefix::host(v4(to)) };
                ring.nodes[0].kernel.wanted().routes.get(&key).cloned()
            };
            let by_tap = |mtu: u32| Some(Route::Link { interface: TAP, source: None, mtu });
            assert_eq!([fits(1), fits(2)], [by_tap(1417), by_tap(8917)]);
        }
        let status = ring.nodes[0].kernel.status();
        assert_eq!(status.shortened, [(mac(1), Shortened { to: 1500, said: 9000 })]);
        assert!(status.not_carried.is_empty());
        assert!(
            ring.nodes[0].kernel.take_shortened().is_some_and(|shortened| shortened.contains_key(&mac(1)))
        );
        ring.carries.clear();
        ring.wait(20);
        assert!(is_long(mtu(&ring, 0, 1)) && ring.nodes[0].kernel.status().shortened.is_empty());
    }
}

#[test]
fn how_long_packets_are_to_a_host_is_told_no_more_once_a_map_lacks_it() {
    let mut ring = ring_with_a_converter(ABLE);
    assert!(ring.nodes[0].kernel.take_shortened().is_some_and(|shortened| shortened.contains_key(&mac(1))));
    let mut without = map(4, 2);
    without.hosts.retain(|host| host.mac != mac(1));
    ring.install(0, &table_of(&without, 0));
    assert!(ring.nodes[0].kernel.take_shortened().is_some_and(|shortened| shortened.is_empty()));
}
