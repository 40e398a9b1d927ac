use super::*;
use crate::PortSet;
use crate::wire::Stamp;

fn host(n: u32) -> Host {
    Host { mac: Mac::from_position(n), level: 1, host_type: 4, at: None }
}

fn met(n: u32) -> Met {
    host(n).into()
}

fn at(node: u32, delta: i16) -> At {
    At { node, delta }
}

fn stamp(tag: u64, arrival: u8) -> Stamp {
    Stamp { tag, ports: 8, arrival, carriers: PortSet::ALL }
}

/// The first xbar, and a sight behind each of its ports 1 to `sights`.
fn star(sights: i16) -> Knowledge {
    let mut known = Knowledge::new(host(0));
    known.add_node(None).unwrap();
    for delta in 1..=sights {
        known.add_node(Some(at(0, delta))).unwrap();
    }
    known
}

#[test]
fn a_host_joins_the_sights_that_lead_to_it() {
    let mut known = star(2);
    let h = known.meet(met(1)).unwrap();
    known.learn(at(1, 3), Far::Host(h)).unwrap();
    known.learn(at(2, 1), Far::Host(h)).unwrap();
    assert_eq!(known.root(at(1, 3)), known.root(at(2, 1)));
    assert_eq!(known.root(at(1, 2)), known.root(at(2, 0)), "the entries are two ports apart");
    assert_eq!(known.xbar(1).fars().count(), 3, "two cables and the host");
}

#[test]
fn our_own_host_is_an_anchor() {
    let mut known = star(1);
    known.learn(at(1, -1), Far::Host(0)).unwrap();
    assert_eq!(known.root(at(1, -1)), known.root(at(0, 0)), "the first xbar is cabled to itself");
    assert_eq!(known.root(at(1, 0)), known.root(at(0, 1)), "by a plug in port 1");
}

#[test]
fn joints_set_off_joints() {
    let mut known = star(2);
    let beyond = [known.add_node(Some(at(1, 2))).unwrap(), known.add_node(Some(at(2, 1))).unwrap()];
    let h = known.meet(met(1)).unwrap();
    known.learn(at(1, 3), Far::Host(h)).unwrap();
    known.learn(at(2, 2), Far::Host(h)).unwrap();
    assert_eq!(known.root(at(beyond[0], 0)), known.root(at(beyond[1], 0)), "one port holds one cable");
}

#[test]
fn a_tag_joins_at_its_arrival_ports() {
    let mut known = star(2);
    known.learn_stamp(at(1, 0), &stamp(9, 5)).unwrap();
    known.learn_stamp(at(2, 0), &stamp(9, 2)).unwrap();
    assert_eq!(known.root(at(1, 0)), known.root(at(2, 3)));
    assert_eq!(known.stamped_port(&stamp(9, 4)).unwrap(), known.root(at(2, 2)));
    assert_eq!(known.xbar(1).stage, Stage::Resolved);
}

#[test]
fn what_cannot_be_is_an_error() {
    let contradiction = |result: Result<(), ExploreError>| {
        assert!(matches!(result, Err(ExploreError::Contradiction(_))), "{result:?}");
    };
    let mut known = star(2);
    let hosts = [known.meet(met(1)).unwrap(), known.meet(met(2)).unwrap()];
    known.learn(at(1, 1), Far::Host(hosts[0])).unwrap();
    contradiction(known.clone().learn(at(1, 1), Far::Host(hosts[1])));
    contradiction(known.clone().learn(at(1, 1), Far::Xbar(at(2, 0))));
    contradiction(known.clone().learn(at(1, 2), Far::Host(hosts[0])));
    known.learn_stamp(at(1, 0), &stamp(9, 5)).unwrap();
    contradiction(known.clone().learn_stamp(at(1, 1), &stamp(9, 5)));
    contradiction(known.clone().learn_stamp(at(1, 0), &stamp(8, 5)));
    contradiction(known.clone().learn_stamp(at(2, 0), &Stamp { ports: 9, ..stamp(9, 2) }));
    contradiction(known.clone().learn(at(1, -6), Far::Host(hosts[1])));
    // Ports 5 and 6 are in use, so a port that many farther on is one too many.
    let ports = i16::from(stamp(9, 5).ports);
    assert_eq!(known.clone().learn(at(1, ports - 1), Far::Host(hosts[1])), Ok(()));
    contradiction(known.clone().learn(at(1, ports), Far::Host(hosts[1])));
}
