use mapper_proto::map::{Cable, Host, Map, MapVersion, PortRef, Xbar, host_type};
use proptest::prelude::*;

use super::*;

fn mac(position: u32) -> Mac {
    Mac::from_position(position)
}

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn tagged(xbar: u32, port: u8) -> TaggedPort {
    TaggedPort { tag: 70 + u64::from(xbar), port }
}

/// A ring of four tagged xbars, with a host each; the one with the greatest of these addresses maps.
fn ring(hosts: &[u32], lossy: Vec<Cable>) -> Arc<Basis> {
    let host = |&n: &u32| Host {
        mac: mac(n),
        level: 1,
        host_type: host_type::ETHERNET,
        at: Some(PortRef { xbar: n, port: 1 }),
    };
    let mut map = Map {
        version: MapVersion { mac: mac(*hosts.iter().max().unwrap()), counter: 1 },
        hosts: hosts.iter().map(host).collect(),
        xbars: (0..4).map(|n| Xbar { ports: 4, tag: Some(70 + n), ports_known: true }).collect(),
        cables: (0..4).map(cable).collect(),
        lossy,
        ..Map::default()
    };
    map.sort_canonical();
    Arc::new(Basis::new(Arc::new(map)).unwrap())
}

/// The cable from this xbar of the ring to the next one.
fn cable(xbar: u32) -> Cable {
    Cable::new(PortRef { xbar, port: 3 }, PortRef { xbar: (xbar + 1) % 4, port: 2 })
}

const ALL: [u32; 4] = [0, 1, 2, 3];

/// A host that holds this map since moment 0.
fn host(n: u32, basis: &Arc<Basis>) -> LossReports {
    let mut host = LossReports::new(mac(n));
    hold(&mut host, ms(0), basis);
    host
}

fn hold(host: &mut LossReports, now: Instant, basis: &Arc<Basis>) {
    host.map_changed(now, &Place::new(basis, host.own).unwrap());
}

/// Lets a host ask what it has to ask by then, and the mapper answer. Returns whether it asked.
fn tell(host: &mut LossReports, mapper: &mut LossReports, now: Instant) -> bool {
    let Some(question) = host.poll_question(now) else { return false };
    assert_eq!(question.to, mapper.own);
    let answer = mapper.asked(now, host.own, &question.body, 0);
    host.answered(now, question.to, answer.as_deref());
    true
}

/// The cables that the next map of this mapper is to show.
fn ports(mapper: &LossReports) -> Vec<TaggedPort> {
    mapper.agreed.iter().map(|&(port, _)| port).collect()
}

#[test]
fn the_mapper_is_told_again_and_again_and_forgets_what_it_is_not_told_any_more() {
    let basis = ring(&ALL, vec![]);
    let (mut mapper, mut other) = (host(3, &basis), host(1, &basis));
    assert_eq!(mapper.take_agreed(), Some(vec![]));
    other.set_found(ms(5000), vec![tagged(1, 3)]);
    assert!(tell(&mut other, &mut mapper, ms(5000)));
    assert_eq!(mapper.take_agreed(), Some(vec![tagged(1, 3)]));
    assert_eq!(mapper.take_agreed(), None, "nothing has changed since");
    assert!(!tell(&mut other, &mut mapper, ms(14_999)));
    assert!(tell(&mut other, &mut mapper, ms(15_000)));
    mapper.handle_timeout(ms(49_999));
    assert_eq!(mapper.take_agreed(), None);
    assert_eq!(mapper.deadline(), Some(ms(50_000)));
    mapper.handle_timeout(ms(50_000));
    assert_eq!(mapper.take_agreed(), Some(vec![]));
}

#[test]
fn it_is_told_when_a_cable_is_well_again_which_another_may_still_find_lossy() {
    let basis = ring(&ALL, vec![]);
    let mut mapper = host(3, &basis);
    let mut others = [0, 1].map(|n| host(n, &basis));
    for other in &mut others {
        other.set_found(ms(10), vec![tagged(0, 3)]);
        assert!(tell(other, &mut mapper, ms(10)));
    }
    mapper.set_found(ms(10), vec![tagged(2, 3)]);
    assert_eq!(
        mapper.take_agreed(),
        Some(vec![tagged(0, 3), tagged(2, 3)]),
        "those first that were told first"
    );
    for (other, left) in others.iter_mut().zip([vec![tagged(0, 3), tagged(2, 3)], vec![tagged(2, 3)]]) {
        other.set_found(ms(20), vec![]);
        assert!(tell(other, &mut mapper, ms(20)));
        assert!(!tell(other, &mut mapper, ms(60_000)), "it has nothing to say any more");
        mapper.handle_timeout(ms(20_000));
        assert_eq!(ports(&mapper), left);
    }
}

#[test]
fn a_mapper_that_does_not_answer_is_told_again_and_a_new_one_soon_after_its_map() {
    let basis = ring(&ALL, vec![]);
    let mut other = host(1, &basis);
    other.set_found(ms(10), vec![tagged(0, 3)]);
    assert!(other.poll_question(ms(10)).is_some());
    assert_eq!(other.poll_question(ms(10)), None, "one is under way");
    other.answered(ms(500), mac(3), None);
    assert_eq!((other.poll_question(ms(1499)), other.poll_timeout()), (None, Some(ms(1500))));
    let mut next = host(2, &basis);
    let basis = ring(&[0, 1, 2], vec![]);
    hold(&mut other, ms(2000), &basis);
    assert!(other.poll_timeout() == Some(ms(2100)));
    assert_eq!(next.asked(ms(2100), mac(1), &write(&other.found), 0), None, "it is no mapper yet");
    hold(&mut next, ms(2200), &basis);
    assert!(tell(&mut other, &mut next, ms(2200)));
    assert_eq!(ports(&next), [tagged(0, 3)]);
}

#[test]
fn who_maps_in_anothers_place_begins_with_what_the_map_shows() {
    let shown = ring(&ALL, vec![cable(1)]);
    let mut next = host(2, &shown);
    assert_eq!(next.take_agreed(), Some(vec![tagged(1, 3)]), "its agent may map at any moment");
    let basis = ring(&[0, 1, 2], vec![cable(1)]);
    hold(&mut next, ms(1000), &basis);
    assert_eq!(next.take_agreed(), Some(vec![tagged(1, 3)]));
    next.handle_timeout(ms(36_000));
    assert_eq!(next.take_agreed(), Some(vec![]), "and nobody has told it of that cable");
}

#[test]
fn reports_of_who_is_not_in_the_map_do_not_count() {
    let basis = ring(&ALL, vec![]);
    let (mut mapper, mut other) = (host(3, &basis), host(1, &basis));
    other.set_found(ms(10), vec![tagged(0, 3)]);
    assert!(tell(&mut other, &mut mapper, ms(10)));
    hold(&mut mapper, ms(20), &ring(&[0, 2, 3], vec![]));
    mapper.handle_timeout(ms(10_010));
    assert_eq!(ports(&mapper), []);
    assert_eq!(mapper.asked(ms(30), mac(1), &write(&[tagged(0, 3)]), 0), None);
    let nine = vec![tagged(0, 3); 9];
    for wrong in [&[][..], &[1], &[0, 0], &write(&nine)] {
        assert_eq!(mapper.asked(ms(30), mac(2), wrong, 0), None, "{wrong:?}");
    }
}

#[test]
fn a_cable_that_is_found_again_and_again_stays_left_out_for_longer_each_time() {
    let basis = ring(&ALL, vec![]);
    let mut mapper = host(3, &basis);
    let mut now = ms(1000);
    for seconds in [10, 20, 40, 80, 160, 320, 320] {
        mapper.set_found(now, vec![tagged(0, 3)]);
        let found = now;
        mapper.set_found(now, vec![]);
        while !ports(&mapper).is_empty() {
            now = mapper.deadline().unwrap();
            mapper.handle_timeout(now);
        }
        assert_eq!(now.since(found), Duration::from_secs(seconds));
        assert_eq!(mapper.deadline(), None);
    }
}

proptest! {
    #[test]
    fn ports_are_read_as_they_were_written(ports in proptest::collection::vec(any::<(u64, u8)>(), 0..=8)) {
        let ports: Vec<_> = ports.into_iter().map(|(tag, port)| TaggedPort { tag, port }).collect();
        prop_assert_eq!(read(&write(&ports)), Some(ports));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        prop_assert!(read(&bytes).is_none_or(|ports| write(&ports) == bytes));
    }
}
