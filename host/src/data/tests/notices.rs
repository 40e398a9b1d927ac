//! What becomes of frames that a crossbar sends back, as the cable of their route is dead.

use super::*;

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
    assert_eq!(undeliverable(&mut path, NOW, &data), (None, vec![]), "a data frame is no notice");
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
    assert_eq!(path.status().counts[DataCount::GivenUp], 0, "a table with another route may come soon");
    path.send_waiting(NOW, &mut |_, _| panic!("there is none"));
    assert_eq!((path.status().counts[DataCount::GivenUp], path.status().counts[DataCount::Resent]), (1, 0));
    assert_eq!(outbound(&mut path, NOW, &frame(own, other, 1)).len(), 1, "the cable may be back any moment");
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
