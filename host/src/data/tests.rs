//! What must be true of the data path as a whole.

mod fabric;
mod flows;
mod lengths;
mod notices;

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
            assert_eq!(
                sender.inbound(NOW, &data),
                Err(DataDrop::NotForMe),
                "a frame that comes back to its sender is dropped"
            );
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
fn what_hosts_send_on_their_own_account_does_not_make_paths_worth_watching() {
    let map = map("clos:hosts=8,ports=4");
    let (own, other) = (map.hosts[3].mac, map.hosts[0].mac);
    let mut sender = data_path(&map, 3);
    let arp = [&other.0[..], &own.0, &[8, 6], &[0; 46]].concat();
    assert_eq!(outbound(&mut sender, NOW, &arp).len(), 1);
    assert_eq!(sender.paths_in_use(NOW, 64), []);
    assert_eq!(outbound(&mut sender, NOW, &frame(own, other, 1)).len(), 1);
    assert_eq!(sender.paths_in_use(NOW, 64).len(), 1);
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
    assert_eq!(outbound(&mut path, NOW, &frame(own, own, 1)), [], "a frame to this host itself is not sent");
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
        "without a map frames come from no host of it"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_from_the_fabric_are_no_trouble(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let map = map("ring:n=3,hosts=1");
        let mut path = data_path(&map, 0);
        let _frame = path.inbound(NOW, &bytes);
        prop_assert_eq!(undeliverable(&mut path, NOW, &bytes), (None, vec![]));
    }
}
