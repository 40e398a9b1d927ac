//! What must be true of the data path as a whole.

mod fabric;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mapper_proto::map::{FrameSizes, LinkMtu, Map, PortRef};
use mapper_proto::wire::{Data, FrameKind, Route, Undeliverable};
use mapper_proto::{Instant, Mac, Tally};
use proptest::prelude::*;

use super::*;
use fabric::{
    Fabric, Fate, LINK_MTU, data_path, frame, map, outbound, route_of, table, undeliverable, without_cable,
};

const NOW: Instant = Instant::from_nanos(5_000_000_000);

#[test]
fn a_frame_arrives_as_it_was_and_its_way_back_leads_home() {
    for spec in ["ring:n=4,hosts=1", "clos:hosts=8,ports=4", "torus:x=3,y=3,z=1,hosts=1"] {
        let map = map(spec);
        let fabric = Fabric::new(&map);
        let own = map.hosts[0].mac;
        let mut sender = data_path(&map, 0);
        for (host, to) in map.hosts.iter().enumerate().skip(1) {
            let mut receiver = data_path(&map, host);
            for flow in 0..50 {
                let frame = frame(own, to.mac, flow);
                let sent = outbound(&mut sender, NOW, &frame).remove(0);
                let Fate::Arrived { at, frame: data } = fabric.send(own, &[sent.0, sent.1].concat()) else {
                    panic!("lost")
                };
                assert_eq!(at, to.mac);
                assert_eq!(receiver.inbound(NOW, &data), Ok(&frame[..]));
                let way_back = Data::decode(&data).unwrap().way_back;
                let answer = [way_back.as_bytes(), &data].concat();
                assert!(matches!(fabric.send(to.mac, &answer), Fate::Arrived { at, .. } if at == own));
            }
            assert_eq!(receiver.status().counts[DataCount::FramesIn], 50);
        }
        let status = sender.status();
        assert_eq!(status.counts[DataCount::FramesOut], 50 * (map.hosts.len() as u64 - 1));
        assert_eq!(status.dropped, Tally::default());
    }
}

#[test]
fn without_routes_nothing_is_sent() {
    let map = map("ring:n=4,hosts=1");
    let frame = frame(map.hosts[0].mac, map.hosts[1].mac, 1);
    let mut sender = data_path(&map, 0);
    assert_eq!(outbound(&mut sender, NOW, &frame).len(), 1);
    sender.forget_routes();
    assert!(outbound(&mut sender, NOW, &frame).is_empty());
    assert_eq!(sender.status().dropped[DataDropKind::NoRoute], 1);
}

#[test]
fn two_hosts_on_one_cable_reach_each_other() {
    let mut map = map("ring:n=2,hosts=1");
    map.xbars.clear();
    map.cables.clear();
    map.hosts.iter_mut().for_each(|host| host.at = None);
    let (a, b) = (map.hosts[0].mac, map.hosts[1].mac);
    let sent = outbound(&mut data_path(&map, 0), NOW, &frame(a, b, 1)).remove(0);
    assert_eq!(sent.0, [0; 0]);
    assert_eq!(data_path(&map, 1).inbound(NOW, &sent.1), Ok(&frame(a, b, 1)[..]));
}

#[test]
fn a_broadcast_goes_to_every_host_once_and_not_back() {
    let map = map("clos:hosts=8,ports=4");
    let fabric = Fabric::new(&map);
    let own = map.hosts[3].mac;
    let mut sender = data_path(&map, 3);
    for group in [Mac([0xff; 6]), Mac([0x33, 0x33, 0, 0, 0, 1])] {
        let frame = frame(own, group, 1);
        let mut reached = BTreeSet::new();
        for (route, data) in outbound(&mut sender, NOW, &frame) {
            let Fate::Arrived { at, frame: data } = fabric.send(own, &[route, data].concat()) else {
                panic!("lost")
            };
            assert!(reached.insert(at), "twice");
            let mut receiver = data_path(&map, map.hosts.iter().position(|host| host.mac == at).unwrap());
            assert_eq!(receiver.inbound(NOW, &data), Ok(&frame[..]));
            assert_eq!(sender.inbound(NOW, &data), Err(DataDrop::NotForMe), "what comes back is no news");
        }
        let others = map.hosts.iter().map(|host| host.mac).filter(|&mac| mac != own);
        assert_eq!(reached, others.collect());
    }
    let status = sender.status();
    assert_eq!(
        (
            status.counts[DataCount::FramesOut],
            status.counts[DataCount::Broadcasts],
            status.counts[DataCount::BroadcastCopies]
        ),
        (2, 2, 14)
    );
    assert_eq!(sender.paths_in_use(NOW, 64), [], "broadcasts do not make paths worth watching");
}

#[test]
fn what_cannot_be_sent_is_dropped_and_counted_by_reason() {
    let map = map("ring:n=4,hosts=1");
    let (own, other) = (map.hosts[0].mac, map.hosts[1].mac);
    let mut path = DataPath::new(own, LINK_MTU, 1);
    assert_eq!(outbound(&mut path, NOW, &frame(own, other, 1)), []);
    assert_eq!(outbound(&mut path, NOW, &frame(own, Mac([0xff; 6]), 1)), []);
    path.install(table(&map, 0));
    assert_eq!(outbound(&mut path, NOW, &frame(own, Mac::from_u64(0x0299), 1)), []);
    assert_eq!(outbound(&mut path, NOW, &frame(own, own, 1)), [], "the kernel would not");
    assert_eq!(outbound(&mut path, NOW, &frame(other, other, 1)), []);
    assert_eq!(outbound(&mut path, NOW, &[2; 13]), []);
    let long = [frame(own, other, 1), vec![0; 1500]].concat();
    assert_eq!(outbound(&mut path, NOW, &long), []);
    assert_eq!(path.inbound(NOW, &[0; 40]), Err(DataDrop::Malformed));
    let for_another = outbound(&mut path, NOW, &frame(own, other, 1)).remove(0).1;
    let third = map.hosts[2].mac;
    assert_eq!(DataPath::new(third, LINK_MTU, 1).inbound(NOW, &for_another), Err(DataDrop::NotForMe));
    let expected = [
        (DataDropKind::NoRoute, 2),
        (DataDropKind::UnknownDestination, 2),
        (DataDropKind::ForeignSource, 1),
        (DataDropKind::TooLong, 1),
        (DataDropKind::Malformed, 2),
    ];
    assert_eq!(path.status().dropped, expected.into_iter().collect());
    assert_eq!(path.status().counts[DataCount::FramesOut], 1);
}

#[test]
fn what_comes_from_no_host_of_the_map_or_points_at_another_is_dropped_and_counted() {
    let map = map("ring:n=4,hosts=1");
    let (own, other) = (map.hosts[0].mac, map.hosts[1].mac);
    let mut path = data_path(&map, 0);
    let carried = |ethernet: &[u8]| Data { token: 1, way_back: Route::new(), ethernet }.encode().unwrap();
    let stranger = Mac::from_u64(0x0299);
    for to in [own, Mac([0xff; 6])] {
        let forged = carried(&frame(stranger, to, 1));
        assert_eq!(path.inbound(NOW, &forged), Err(DataDrop::UnknownSource));
        assert!(path.inbound(NOW, &carried(&frame(other, to, 1))).is_ok());
    }
    let arp = |sender: Mac| {
        let said = [&[8, 6, 0, 1, 8, 0, 6, 4, 0, 2][..], &sender.0, &[10, 0, 0, 9], &own.0, &[10, 0, 0, 1]];
        carried(&[&own.0[..], &other.0, &said.concat()].concat())
    };
    assert!(path.inbound(NOW, &arp(other)).is_ok());
    assert_eq!(path.inbound(NOW, &arp(stranger)), Err(DataDrop::ForgedNeighbour));
    let dropped = path.status().dropped;
    assert_eq!((dropped[DataDropKind::UnknownSource], dropped[DataDropKind::ForgedNeighbour]), (2, 1));
    assert_eq!(path.status().counts[DataCount::FramesIn], 3);
    path.forget_routes();
    assert_eq!(
        path.inbound(NOW, &arp(other)),
        Err(DataDrop::UnknownSource),
        "without a map all are strangers"
    );
}

#[test]
fn the_longest_frame_of_the_tap_is_sent_and_one_that_does_not_fit_the_link_is_not() {
    let map = map("ring:n=4,hosts=1");
    let (own, other) = (map.hosts[0].mac, map.hosts[1].mac);
    let mut path = data_path(&map, 0);
    let mtu = tap_mtu(LINK_MTU, 11).unwrap() as usize;
    let mut longest = frame(own, other, 1);
    longest.resize(14 + mtu, 0);
    let (route, data) = outbound(&mut path, NOW, &longest).remove(0);
    let spare = LINK_MTU as usize - route.len() - data.len();
    longest.resize(longest.len() + spare, 0);
    assert_eq!(outbound(&mut path, NOW, &longest).len(), 1);
    longest.push(0);
    assert_eq!(outbound(&mut path, NOW, &longest).len(), 0);
    assert_eq!(path.status().dropped[DataDropKind::TooLong], 1);
}

/// A ring of four hosts in which both cables from the second host's xbar carry frames of at most `mtu` bytes.
fn ring_with_a_small_host(mtu: u32) -> Map {
    let mut map = map("ring:n=4,hosts=1");
    let home = map.hosts[1].at.unwrap();
    let ends = map.cables.iter().flat_map(|cable| [cable.a, cable.b]);
    let mtu = LinkMtu::of_ports(ends.filter(|end| end.xbar == home.xbar).map(|end| (end.port, mtu)));
    map.frame_sizes = FrameSizes { longest: LINK_MTU as u16, less: vec![(map.hosts[1].mac, mtu)] };
    map
}

#[test]
fn a_frame_that_is_too_long_for_all_ways_is_counted_and_the_kernel_told_what_gets_through() {
    let map = ring_with_a_small_host(1300);
    let (own, other) = (map.hosts[0].mac, map.hosts[1].mac);
    let mut path = data_path(&map, 0);
    let mut longest = frame(own, other, 1);
    let (route, data) = outbound(&mut path, NOW, &longest).remove(0);
    longest.resize(longest.len() + 1300 - route.len() - data.len(), 0);
    assert_eq!(outbound(&mut path, NOW, &longest).len(), 1);
    assert_eq!(path.take_answer(), None);
    longest.push(0);
    assert_eq!(outbound(&mut path, NOW, &longest), []);
    assert_eq!(path.status().dropped[DataDropKind::TooLongForCable], 1);
    let answer = path.take_answer().unwrap();
    let mtu = u16::from_be_bytes([answer[14 + 20 + 6], answer[14 + 20 + 7]]);
    assert_eq!((&answer[..6], usize::from(mtu)), (&own.0[..], longest.len() - 1 - 14));
    assert_eq!(path.take_answer(), None, "it is told once");
    // Other hosts are reached as before, and the copies of a broadcast that are missing are counted.
    longest[..6].copy_from_slice(&map.hosts[3].mac.0);
    assert_eq!(outbound(&mut path, NOW, &longest).len(), 1);
    longest[..6].fill(0xff);
    assert_eq!(outbound(&mut path, NOW, &longest).len(), 2);
    assert_eq!(path.status().dropped[DataDropKind::TooLongForCable], 2);
    assert_eq!(path.take_answer(), None, "a broadcast is not answered");
    // A new map says that the MTU has been raised; it counts once a table of that map is in use.
    let mut mended = map.clone();
    mended.version.counter += 1;
    mended.frame_sizes = FrameSizes::default();
    path.take_map(NOW, &mended);
    longest[..6].copy_from_slice(&other.0);
    assert_eq!(outbound(&mut path, NOW, &longest), [], "that of the table in use counts");
    path.install(table(&mended, 0));
    assert_eq!(outbound(&mut path, NOW, &longest).len(), 1);
}

#[test]
fn flows_keep_off_a_cable_of_shorter_frames_while_another_leads_there() {
    let mut map = map("clos:hosts=32,ports=8");
    let (own, other) = (map.hosts[0].mac, map.hosts[31].mac);
    let home = map.hosts[31].at.unwrap().xbar;
    let mut ends = map.cables.iter().flat_map(|cable| [cable.a, cable.b]);
    let small = ends.find(|end| end.xbar == home && end.port > 0).unwrap();
    let mtu = LinkMtu::of_ports([(small.port, 1300)]);
    map.frame_sizes = FrameSizes { longest: LINK_MTU as u16, less: vec![(other, mtu)] };
    let narrow = map.narrow_ports();
    let (narrow, wide): (Vec<_>, Vec<_>) =
        table(&map, 0).paths_to(31).partition(|path| path.hops.iter().any(|hop| narrow.contains_key(hop)));
    assert_eq!((narrow.len(), wide.len()), (1, 3));
    let mut path = data_path(&map, 0);
    let mut routes_of_all_flows = || -> BTreeSet<_> {
        (0..400).map(|flow| route_of(&mut path, NOW, &frame(own, other, flow))).collect()
    };
    assert_eq!(routes_of_all_flows(), wide.iter().map(|path| path.way.there.as_bytes().to_vec()).collect());
    // Frames take a cable that carries less rather than one that is dead.
    wide.iter().for_each(|dead| path.avoid(NOW, dead.hops[0]));
    assert_eq!(route_of(&mut path, NOW, &frame(own, other, 1)), narrow[0].way.there.as_bytes());
}

#[test]
fn flows_are_spread_over_all_routes_and_each_keeps_to_its_own() {
    let map = map("clos:hosts=32,ports=8");
    let (own, other) = (map.hosts[0].mac, map.hosts[31].mac);
    let mut path = data_path(&map, 0);
    let mut counts = BTreeMap::new();
    for flow in 0..4000 {
        let frame = frame(own, other, flow);
        let route = route_of(&mut path, NOW, &frame);
        assert_eq!(route, route_of(&mut path, NOW + Duration::from_secs(100), &frame));
        *counts.entry(route).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), table(&map, 0).paths_to(31).count(), "all routes carry something");
    assert_eq!(counts.len(), 4);
    assert!(counts.values().all(|count| (800..=1200).contains(count)), "{counts:?}");
}

#[test]
fn a_notice_moves_all_flows_off_the_cable_and_its_frame_is_sent_again() {
    let map = map("clos:hosts=8,ports=4");
    let mut fabric = Fabric::new(&map);
    let (own, other) = (map.hosts[0].mac, map.hosts[7].mac);
    let mut path = data_path(&map, 0);
    let mut receiver = data_path(&map, 7);
    for flow in 0..64 {
        outbound(&mut path, NOW, &frame(own, other, flow));
    }
    let dead = table(&map, 0).paths_to(7).next().unwrap().hops[1];
    fabric.cut(dead);
    let mut notices = 0;
    for flow in 0..64 {
        let user = frame(own, other, flow);
        let (route, data) = outbound(&mut path, NOW, &user).remove(0);
        let Fate::Arrived { mut at, frame: mut data } = fabric.send(own, &[route, data].concat()) else {
            panic!("lost")
        };
        if at == own {
            notices += 1;
            let (told, mut sent) = undeliverable(&mut path, NOW, &data);
            let tag = map.xbars[dead.xbar as usize].tag.unwrap();
            assert_eq!(told, Some(DeadPort { tag, at: dead }));
            let (route, again) = sent.remove(0);
            let Fate::Arrived { at: then, frame: again } = fabric.send(own, &[route, again].concat()) else {
                panic!("lost")
            };
            (at, data) = (then, again);
        }
        assert_eq!(at, other, "nothing is lost");
        assert_eq!(receiver.inbound(NOW, &data), Ok(&user[..]));
    }
    assert_eq!(notices, 1, "the first moves all flows at once");
    let status = path.status();
    assert_eq!(
        (
            status.counts[DataCount::Notices],
            status.counts[DataCount::Resent],
            status.counts[DataCount::GivenUp]
        ),
        (1, 1, 0)
    );
    assert!((20..=40).contains(&status.counts[DataCount::FlowsMoved]), "{status:?}");
}

#[test]
fn a_notice_is_believed_for_the_token_of_a_frame_that_took_this_cable_and_once() {
    let map = map("clos:hosts=8,ports=4");
    let (own, other) = (map.hosts[0].mac, map.hosts[7].mac);
    let mut path = data_path(&map, 0);
    let (route, data) = outbound(&mut path, NOW, &frame(own, other, 1)).remove(0);
    let token = Data::decode(&data).unwrap().token;
    let hops = table(&map, 0).paths_to(7).find(|path| path.way.there.as_bytes() == route).unwrap().hops;
    let notice = |token, at: PortRef| {
        let tag = map.xbars[at.xbar as usize].tag.unwrap();
        Undeliverable { token, tag, port: at.port }.encode()
    };
    let guessed = undeliverable(&mut path, NOW, &notice(token ^ 1 << 33, hops[1]));
    assert_eq!(guessed, (None, vec![]));
    assert_eq!(undeliverable(&mut path, NOW, &data), (None, vec![]), "no notice at all");
    let (told, sent) = undeliverable(&mut path, NOW, &notice(token, hops[1]));
    assert_eq!((told.map(|dead| dead.at), sent.len()), (Some(hops[1]), 1));
    assert_eq!(undeliverable(&mut path, NOW, &notice(token, hops[1])), (None, vec![]), "again");
    let (_, data) = outbound(&mut path, NOW, &frame(own, other, 1)).remove(0);
    let token = Data::decode(&data).unwrap().token;
    let elsewhere = undeliverable(&mut path, NOW, &notice(token, hops[1]));
    assert_eq!(elsewhere, (None, vec![]), "the flow takes another route now");
    let (_, data) = outbound(&mut path, NOW, &frame(own, other, 1)).remove(0);
    let token = Data::decode(&data).unwrap().token;
    let late = NOW + Duration::from_secs(1);
    assert_eq!(undeliverable(&mut path, late, &notice(token, hops[0])), (None, vec![]));
    let status = path.status();
    assert_eq!(
        (
            status.counts[DataCount::Notices],
            status.counts[DataCount::NoticesIgnored],
            status.counts[DataCount::Resent]
        ),
        (6, 5, 1)
    );
}

#[test]
fn a_frame_is_given_up_when_no_other_route_is_left() {
    let map = map("clos:hosts=8,ports=4");
    let mut fabric = Fabric::new(&map);
    let (own, other) = (map.hosts[0].mac, map.hosts[7].mac);
    fabric.cut(map.hosts[7].at.unwrap());
    let mut path = data_path(&map, 0);
    let (route, data) = outbound(&mut path, NOW, &frame(own, other, 1)).remove(0);
    let Fate::Arrived { at, frame: notice } = fabric.send(own, &[route, data].concat()) else {
        panic!("lost")
    };
    assert_eq!((at, FrameKind::of(&notice)), (own, Ok(FrameKind::Undeliverable)));
    let (dead, sent) = undeliverable(&mut path, NOW, &notice);
    assert_eq!((dead.map(|dead| dead.at), sent.len()), (map.hosts[7].at, 0));
    assert_eq!(path.status().counts[DataCount::GivenUp], 0, "there may be a table with a route at once");
    path.send_waiting(NOW, &mut |_, _| panic!("there is none"));
    assert_eq!((path.status().counts[DataCount::GivenUp], path.status().counts[DataCount::Resent]), (1, 0));
    assert_eq!(outbound(&mut path, NOW, &frame(own, other, 1)).len(), 1, "it may be back any moment");
}

#[test]
fn what_came_back_from_the_only_route_is_sent_again_by_the_table_around_the_cable() {
    let map = map("ring:n=4,hosts=1");
    let mut fabric = Fabric::new(&map);
    let (own, other) = (map.hosts[0].mac, map.hosts[1].mac);
    let whole = table(&map, 0);
    let mut path = data_path(&map, 0);
    let only: Vec<_> = whole.paths_to(1).collect();
    assert_eq!(only.len(), 1, "one shortest route");
    fabric.cut(only[0].hops[0]);
    let users: Vec<_> = (0..3).map(|flow| frame(own, other, flow)).collect();
    let sent: Vec<_> = users.iter().flat_map(|user| outbound(&mut path, NOW, user)).collect();
    for (route, data) in sent {
        let Fate::Arrived { at, frame: notice } = fabric.send(own, &[route, data].concat()) else {
            panic!("lost")
        };
        assert_eq!(at, own);
        let (told, again) = undeliverable(&mut path, NOW, &notice);
        assert_eq!((told.map(|dead| dead.at), again), (Some(only[0].hops[0]), vec![]));
    }
    path.install(Arc::new(whole.repair(&BTreeSet::from([only[0].hops[0]]).into()).unwrap()));
    let mut again = Vec::new();
    path.send_waiting(NOW, &mut |route, data| again.push([route, data].concat()));
    let mut receiver = data_path(&map, 1);
    for (user, payload) in users.iter().zip(&again) {
        let Fate::Arrived { at, frame: data } = fabric.send(own, payload) else { panic!("lost") };
        assert_eq!((at, receiver.inbound(NOW, &data)), (other, Ok(&user[..])), "whole, and in order");
    }
    let status = path.status();
    assert_eq!(
        (
            again.len(),
            status.counts[DataCount::Notices],
            status.counts[DataCount::Resent],
            status.counts[DataCount::GivenUp]
        ),
        (3, 3, 3, 0)
    );
}

#[test]
fn what_waits_for_a_route_is_bounded_and_given_up_in_time() {
    let map = map("ring:n=4,hosts=1");
    let (own, other) = (map.hosts[0].mac, map.hosts[1].mac);
    let mut path = data_path(&map, 0);
    let at = table(&map, 0).paths_to(1).next().unwrap().hops[0];
    let tag = map.xbars[at.xbar as usize].tag.unwrap();
    let long = [frame(own, other, 1), vec![0; 1300]].concat();
    for _ in 0..1000 {
        let (_, data) = outbound(&mut path, NOW, &long).remove(0);
        let token = Data::decode(&data).unwrap().token;
        undeliverable(&mut path, NOW, &Undeliverable { token, tag, port: at.port }.encode());
    }
    let refused = path.status().counts[DataCount::GivenUp];
    assert!((100..400).contains(&refused), "a mebibyte waits: {refused}");
    path.paths_in_use(NOW + Duration::from_millis(51), 64);
    assert_eq!(
        (path.status().counts[DataCount::GivenUp], path.status().counts[DataCount::Resent]),
        (1000, 0)
    );
}

#[test]
fn a_route_that_returns_gets_its_share_of_flows_that_were_silent() {
    let map = map("clos:hosts=8,ports=4");
    let (own, other) = (map.hosts[0].mac, map.hosts[7].mac);
    let whole = table(&map, 0);
    let dead = whole.paths_to(7).next().unwrap().hops[1];
    let mut path = data_path(&without_cable(&map, dead), 0);
    let routes = |path: &mut DataPath, now| -> BTreeSet<_> {
        (0..200).map(|flow| route_of(path, now, &frame(own, other, flow))).collect()
    };
    assert_eq!(routes(&mut path, NOW).len(), 1);
    path.install(whole);
    assert_eq!(routes(&mut path, NOW).len(), 1, "flows in use stay where they are");
    assert_eq!(routes(&mut path, NOW + Duration::from_secs(2)).len(), 2);
    assert_eq!(path.status().counts[DataCount::FlowsMoved], 0);
}

#[test]
fn a_cable_is_avoided_for_a_while_and_until_there_is_another_map() {
    let map = map("clos:hosts=8,ports=4");
    let (own, other) = (map.hosts[0].mac, map.hosts[7].mac);
    let mut path = data_path(&map, 0);
    let paths: Vec<_> = table(&map, 0).paths_to(7).collect();
    let carried = |path: &mut DataPath, now| {
        let all: BTreeSet<_> = (0..200).map(|flow| route_of(path, now, &frame(own, other, flow))).collect();
        all.contains(paths[0].way.there.as_bytes())
    };
    assert!(carried(&mut path, NOW));
    path.avoid(NOW, paths[0].hops[0]);
    assert!(!carried(&mut path, NOW));
    path.install(table(&map, 0));
    assert!(!carried(&mut path, NOW), "the same map");
    let later = NOW + Duration::from_secs(2);
    path.paths_in_use(later, 64);
    assert!(carried(&mut path, later));
    path.avoid(later, paths[0].hops[0]);
    let mut newer = map.clone();
    newer.version.counter += 1;
    path.install(table(&newer, 0));
    assert!(carried(&mut path, later + Duration::from_secs(2)));
}

#[test]
fn paths_are_in_use_while_they_carry_frames_and_keep_their_id_over_a_swap() {
    let map = map("clos:hosts=8,ports=4");
    let own = map.hosts[0].mac;
    let mut path = data_path(&map, 0);
    assert_eq!(path.paths_in_use(NOW, 64), []);
    outbound(&mut path, NOW, &frame(own, map.hosts[7].mac, 1));
    let later = NOW + Duration::from_millis(700);
    outbound(&mut path, later, &frame(own, map.hosts[6].mac, 1));
    let both = path.paths_in_use(later, 64);
    assert_eq!(both.len(), 2);
    assert_eq!((both[0].to, both[1].to), (map.hosts[6].mac, map.hosts[7].mac));
    let (route, data) = outbound(&mut data_path(&map, 0), NOW, &frame(own, map.hosts[7].mac, 1)).remove(0);
    assert_eq!(both[1].longest_bytes, route.len() + data.len());
    assert_eq!(path.paths_in_use(later, 1), both[..1], "the one used last first");
    let (to, hops) = path.path_hops(both[1].id).unwrap();
    assert_eq!(to, map.hosts[7].mac);
    assert_eq!(hops.len(), both[1].way.there.hops());
    let mut newer = map.clone();
    newer.version.counter += 1;
    path.install(table(&newer, 0));
    for before in &both {
        match path.path_hops(before.id) {
            Some((_, hops)) => assert_eq!(hops.len(), before.way.there.hops()),
            None => assert!(!path.paths_in_use(later, 64).contains(before)),
        }
    }
    assert_eq!(path.paths_in_use(later + Duration::from_secs(1), 64), []);
    assert_eq!(path.path_hops(both[0].id), None);
    assert_eq!(path.status().counts[DataCount::RoutesInUse], 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever cables go and return, no frame takes a route that the table does not have, and a flow in
    /// use keeps its route as long as the table has it.
    #[test]
    fn flows_stay_on_routes_of_the_table_and_move_only_if_they_must(
        swaps in proptest::collection::vec(any::<prop::sample::Index>(), 1..6),
        flows in proptest::collection::vec(any::<u16>(), 1..40),
    ) {
        let whole = map("clos:hosts=16,ports=8");
        let own = whole.hosts[0].mac;
        let mut path = data_path(&whole, 0);
        let mut tables = vec![table(&whole, 0)];
        for swap in &swaps {
            let cable = whole.cables[swap.index(whole.cables.len())];
            tables.push(table(&without_cable(&whole, cable.a), 0));
        }
        let mut before: BTreeMap<(usize, u16), Vec<u8>> = BTreeMap::new();
        for table in tables {
            path.install(Arc::clone(&table));
            for (host, to) in whole.hosts.iter().enumerate().skip(1) {
                let routes: BTreeSet<_> = table
                    .host(to.mac)
                    .into_iter()
                    .flat_map(|host| table.paths_to(host))
                    .map(|path| path.way.there.as_bytes().to_vec())
                    .collect();
                for &flow in &flows {
                    let now = route_of(&mut path, NOW, &frame(own, to.mac, flow));
                    prop_assert!(routes.contains(&now));
                    if let Some(before) = before.insert((host, flow), now.clone())
                        && routes.contains(&before)
                    {
                        prop_assert_eq!(before, now);
                    }
                }
            }
        }
    }

    #[test]
    fn any_bytes_from_the_fabric_are_no_trouble(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let map = map("ring:n=3,hosts=1");
        let mut path = data_path(&map, 0);
        let _frame = path.inbound(NOW, &bytes);
        prop_assert_eq!(undeliverable(&mut path, NOW, &bytes), (None, vec![]));
    }
}
