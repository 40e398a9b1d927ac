use std::collections::{BTreeMap, BTreeSet};

use mapper_fabric::generate;
use mapper_proto::PortSet;
use mapper_proto::map::PortRef;
use proptest::prelude::*;

use super::*;
use crate::engines::{Balance, SubnetNode};
use crate::tables::{SlotEnd, Tables};
use crate::topology::Far;

fn subnet(spec: &str) -> Subnet {
    with_lmc(spec, 0)
}

fn with_lmc(spec: &str, lmc: u8) -> Subnet {
    Subnet::new(&generate(spec).unwrap(), Some(lmc)).unwrap()
}

fn exact() -> Settings {
    Settings { balance: Balance::Opensm, ..Settings::default() }
}

fn tables(engine: Engine, subnet: &Subnet, settings: &Settings) -> Tables {
    engine.compute(subnet, settings).unwrap().tables
}

/// The ports from an xbar to hosts.
fn ports(subnet: &Subnet, tables: &Tables, xbar: u32, hosts: std::ops::Range<u32>) -> Vec<u8> {
    let port = |host| tables.port(xbar, subnet.destinations.slots_of_host(host).start);
    hosts.map(port).collect()
}

/// How many hops a frame takes, or none if it does not arrive.
fn hops(subnet: &Subnet, tables: &Tables, from: u32, slot: u32) -> Option<usize> {
    let mut at = from;
    for hops in 0..64 {
        let port = tables.port(at, slot);
        match (subnet.destinations.end(slot), subnet.topology.far(PortRef { xbar: at, port })) {
            (SlotEnd::Xbar(xbar), _) if xbar == at => return Some(hops),
            (SlotEnd::Host { host, .. }, Far::Host(there)) => return (host == there).then_some(hops + 1),
            (_, Far::Channel(channel)) => at = subnet.topology.head(channel).xbar,
            _ => return None,
        }
    }
    None
}

#[test]
fn equal_ports_take_turns() {
    let subnet = subnet("clos:hosts=8,ports=4");
    let minhop = tables(Engine::Minhop, &subnet, &exact());
    assert_eq!(ports(&subnet, &minhop, 0, 0..8), [1, 2, 3, 4, 3, 4, 3, 4]);
}

#[test]
fn ports_that_do_not_count_take_all() {
    let subnet = subnet("clos:hosts=8,ports=4");
    let uncounted_ports = BTreeSet::from([PortRef { xbar: 0, port: 3 }]);
    let minhop = tables(Engine::Minhop, &subnet, &Settings { uncounted_ports, ..exact() });
    assert_eq!(ports(&subnet, &minhop, 0, 2..8), [3; 6]);
    assert_eq!(ports(&subnet, &minhop, 1, 4..8), [3, 4, 3, 4], "other xbars count");
}

#[test]
fn destinations_and_ports_are_tried_in_the_order_given() {
    let subnet = subnet("clos:hosts=8,ports=4");
    let order_first =
        vec![SubnetNode::Host(5), SubnetNode::Host(5), SubnetNode::Host(3), SubnetNode::Host(99)];
    let minhop = tables(Engine::Minhop, &subnet, &Settings { order_first, ..exact() });
    // Host 5 is served first, then host 3, and the others by GUID.
    assert_eq!(ports(&subnet, &minhop, 0, 2..8), [3, 4, 4, 3, 3, 4]);
    let port_order = BTreeMap::from([(0, vec![4])]);
    let minhop = tables(Engine::Minhop, &subnet, &Settings { port_order, ..exact() });
    assert_eq!(ports(&subnet, &minhop, 0, 2..8), [4, 3, 4, 3, 4, 3]);
}

#[test]
fn weights_make_ways_longer() {
    let subnet = subnet("clos:hosts=8,ports=4");
    let hop_weights = BTreeMap::from([(PortRef { xbar: 0, port: 3 }, 2)]);
    let minhop = tables(Engine::Minhop, &subnet, &Settings { hop_weights, ..exact() });
    assert_eq!(ports(&subnet, &minhop, 0, 2..8), [4; 6]);
    assert_eq!(ports(&subnet, &minhop, 1, 0..2), [3, 4], "the way back weighs what it did");
}

#[test]
fn entries_in_force_stay_while_they_are_right() {
    let subnet = subnet("clos:hosts=8,ports=4");
    let mut previous = tables(Engine::Minhop, &subnet, &exact());
    let slot = |host| subnet.destinations.slots_of_host(host).start;
    for host in 2..6 {
        previous.set_port(0, slot(host), 4);
    }
    previous.set_port(0, slot(6), 1);
    let kept = Settings { previous: Some(previous), ..exact() };
    let found = tables(Engine::Minhop, &subnet, &kept);
    assert_eq!(ports(&subnet, &found, 0, 2..8), [4, 4, 4, 4, 3, 4], "only the entry to a host was wrong");
    let anew = tables(Engine::Minhop, &subnet, &Settings { reassign: true, ..kept });
    assert_eq!(anew, tables(Engine::Minhop, &subnet, &exact()));
}

#[test]
fn several_lids_of_a_host_take_other_ways() {
    let subnet = with_lmc("xgft:h=2;m=4,4;w=1,4", 2);
    let minhop = tables(Engine::Minhop, &subnet, &exact());
    for slot in subnet.destinations.slots_of_host(15).step_by(4) {
        let ways: PortSet = (slot..slot + 4).map(|slot| minhop.port(0, slot)).collect();
        assert_eq!(ways.iter().count(), 4, "four spines are four systems");
    }
}

/// A tree of four spines, which are two systems of two spines each, and two addresses a host.
fn spines_in_pairs() -> Subnet {
    let mut fabric = generate("xgft:h=2;m=4,4;w=1,4").unwrap();
    for (spine, label) in (0..).zip(&mut fabric.xbars[4..]) {
        label.system_guid = Some(0x1000 + spine / 2);
    }
    Subnet::new(&fabric, Some(1)).unwrap()
}

#[test]
fn two_lids_of_a_host_take_ways_through_two_systems_whatever_engine_balances() {
    let subnet = spines_in_pairs();
    for settings in [exact(), Settings::default()] {
        let minhop = tables(Engine::Minhop, &subnet, &settings);
        for host in 4..16 {
            let system = |slot| {
                let far = subnet.topology.far(PortRef { xbar: 0, port: minhop.port(0, slot) });
                let Far::Channel(channel) = far else { panic!("a cable to a spine") };
                subnet.xbar_systems[subnet.topology.head(channel).xbar as usize]
            };
            let systems: BTreeSet<u64> = subnet.destinations.slots_of_host(host).map(system).collect();
            assert_eq!(systems.len(), 2, "host {host}");
        }
    }
}

#[test]
fn scatter_is_as_random_as_its_seed() {
    let subnet = subnet("clos:hosts=32,ports=16");
    let by = |seed| tables(Engine::Minhop, &subnet, &Settings { scatter: Some(seed), ..exact() });
    assert_eq!(by(3), by(3));
    assert_ne!(by(3), by(4));
    let balanced = ports(&subnet, &by(3), 0, 8..16).into_iter().collect::<BTreeSet<_>>();
    assert_eq!(balanced.len(), 8, "all ports serve once before any serves twice");
}

#[test]
fn dor_keeps_to_one_neighbour() {
    let subnet = subnet("mesh:x=3,y=3,hosts=2");
    let dor = tables(Engine::Dor, &subnet, &exact());
    for xbar in 0..9 {
        for to in (0..9).filter(|&to| to != xbar) {
            let slots = subnet.destinations.host_slots_of(to);
            assert_eq!(slots.map(|slot| dor.port(xbar, slot)).collect::<BTreeSet<_>>().len(), 1);
        }
    }
}

#[test]
fn hops_from_a_file_serve_instead_of_the_shortest() {
    let subnet = subnet("clos:hosts=8,ports=4");
    let minhop = tables(Engine::Minhop, &subnet, &exact());
    let mut hops = hop_matrix(Engine::Minhop, &subnet, &exact()).unwrap();
    let same = Settings { hops: Some(hops.clone()), ..Settings::default() };
    assert_eq!(tables(Engine::Minhop, &subnet, &same), minhop);
    let channel = subnet.topology.channels_of(0).start;
    hops.set_by_channel(channel, 3, 9);
    let longer = Settings { hops: Some(hops.clone()), ..exact() };
    assert_eq!(ports(&subnet, &tables(Engine::Minhop, &subnet, &longer), 0, 6..8), [4, 4]);
    let why = Engine::Updn.compute(&subnet, &longer).unwrap_err().why.to_string();
    assert!(why.contains("give a lid matrix to minhop or dor"), "{why}");
    let other = Settings { hops: Some(HopMatrix::unknown(&self::subnet("ring:n=3").topology)), ..exact() };
    assert!(Engine::Dor.compute(&subnet, &other).unwrap_err().why.to_string().contains("of another fabric"));
}

#[test]
fn updn_wants_roots_and_dnup_leaves() {
    let cube = subnet("hypercube:d=3,hosts=2");
    let why = Engine::Updn.compute(&cube, &exact()).unwrap_err().why.to_string();
    assert_eq!(why, "no root is found; name the xbars at the top in a file (--root-guid-file)");
    let settings = Settings { roots: Some(vec![2]), ..exact() };
    let updn = tables(Engine::Updn, &cube, &settings);
    let all = 0..cube.destinations.slot_count() as u32;
    assert!((0..8).all(|xbar| all.clone().all(|slot| hops(&cube, &updn, xbar, slot).is_some())));
}

#[test]
fn tables_are_the_same_on_any_number_of_threads() {
    let subnet = with_lmc("random:xbars=20,ports=16,hosts=60,links=60,seed=9", 1);
    for engine in [Engine::Minhop, Engine::Updn, Engine::Dnup, Engine::Dor] {
        let settings = Settings { scatter: Some(1), roots: Some(vec![4]), ..exact() };
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| tables(engine, &subnet, &settings))
        };
        assert_eq!(on(1), on(3), "{engine}");
    }
}

proptest! {
    /// On any fabric, minhop and dor use the least hops wherever there is a way.
    #[test]
    fn shortest_routes_arrive(seed in 0..500_u64, lmc in 0..2_u8, port_shifting: bool) {
        let map = crate::fabrics::random(seed);
        let hosts = map.hosts.iter().map(|_| Default::default()).collect();
        let xbars = map.xbars.iter().map(|_| Default::default()).collect();
        let subnet = Subnet::new(&mapper_proto::map::Fabric { map, hosts, xbars, ..Default::default() }, Some(lmc));
        // Hosts without LIDs of their own get some; only ports can be out of range.
        let Ok(mut subnet) = subnet else { return Ok(()) };
        subnet.xbar_ports.fill(254);
        for engine in [Engine::Minhop, Engine::Dor] {
            let settings = Settings { port_shifting, ..exact() };
            let tables = tables(engine, &subnet, &settings);
            let matrix = hop_matrix(engine, &subnet, &settings).unwrap();
            for xbar in 0..subnet.topology.xbar_count() as u32 {
                for slot in 0..subnet.destinations.slot_count() as u32 {
                    let (to, last) = match subnet.destinations.end(slot) {
                        SlotEnd::Xbar(to) => (to, 0),
                        SlotEnd::Host { host, .. } => (subnet.xbar_of_host(host).unwrap(), 1),
                    };
                    let least = matrix.least(xbar, to);
                    let expected = (least != HopMatrix::NO_PATH).then(|| usize::from(least) + last);
                    prop_assert_eq!(hops(&subnet, &tables, xbar, slot), expected);
                }
            }
        }
    }
}
