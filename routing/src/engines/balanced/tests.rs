//! The engines of this module are compared with what is right by definition.

mod evenness;
mod settings;

use std::collections::BTreeSet;

use mapper_fabric::generate;
use mapper_proto::PortSet;
use mapper_proto::map::{Fabric, HostLabel, Map, PortRef, XbarLabel};
use proptest::prelude::*;

use super::fill::Filler;
use super::*;
use crate::proof::{ProofRules, prove_tables};
use crate::tables::SlotEnd;
use crate::{Far, Tables, Topology, fabrics};

const ALL: [Engine; 4] = [Engine::Minhop, Engine::Updn, Engine::Dnup, Engine::Dor];

fn subnet_of(map: Map, lmc: Option<u8>) -> Subnet {
    let hosts = vec![HostLabel::default(); map.hosts.len()];
    let xbars = vec![XbarLabel::default(); map.xbars.len()];
    Subnet::new(&Fabric { map, hosts, xbars, ..Default::default() }, lmc).unwrap()
}

fn subnet(spec: &str) -> Subnet {
    Subnet::new(&generate(spec).unwrap(), None).unwrap()
}

/// A generated fabric without `per_mille` of each thousand cables.
fn degraded(spec: &str, per_mille: usize) -> Subnet {
    let mut fabric = generate(spec).unwrap();
    let mut number = 0;
    fabric.map.cables.retain(|_| {
        number += 1;
        number * 7919 % 1000 >= per_mille
    });
    Subnet::new(&fabric, None).unwrap()
}

fn tables(engine: Engine, subnet: &Subnet, settings: &Settings) -> Tables {
    // Tables are taken from the module itself, as an engine may refuse them, for instance dnup if it leaves
    // pairs apart.
    compute(engine, subnet, &settings.only(engine.obeys(settings))).unwrap().tables
}

fn rules() -> ProofRules {
    ProofRules { max_hops: 64, xbar_destinations: false }
}

fn proved(subnet: &Subnet, tables: &Tables) -> crate::TablesProof {
    prove_tables(subnet, tables, &crate::tables::Layers::single(), &rules())
}

/// The steps to an xbar from all others, by the simplest kind of search.
fn distances(topology: &Topology, to: u32) -> Vec<Option<u32>> {
    let mut distances = vec![None; topology.xbar_count()];
    distances[to as usize] = Some(0);
    let mut grown = true;
    while grown {
        grown = false;
        for channel in (0..topology.channel_count() as u32).filter(|&channel| !topology.is_dead(channel)) {
            let (tail, head) = (topology.tail(channel).xbar as usize, topology.head(channel).xbar as usize);
            let offer = distances[head].map(|distance| distance + 1);
            if offer.is_some() && (distances[tail].is_none() || offer < distances[tail]) {
                distances[tail] = offer;
                grown = true;
            }
        }
    }
    distances
}

/// The ports by which a shortest way leads from an xbar.
fn shortest(topology: &Topology, distances: &[Option<u32>], xbar: u32) -> PortSet {
    let nearer = |&channel: &u32| {
        let next = distances[topology.head(channel).xbar as usize].map(|distance| distance + 1);
        !topology.is_dead(channel) && next.is_some() && next == distances[xbar as usize]
    };
    topology.channels_of(xbar).filter(nearer).map(|channel| topology.tail(channel).port).collect()
}

/// Checks that each entry is a right one by the rule of `minhop`.
fn check_minimal(subnet: &Subnet, tables: &Tables) {
    let topology = &subnet.topology;
    for to in 0..topology.xbar_count() as u32 {
        let distances = distances(topology, to);
        for xbar in (0..topology.xbar_count() as u32).filter(|&xbar| xbar != to) {
            let right = shortest(topology, &distances, xbar);
            for slot in subnet.destinations.slots_of(to) {
                let port = tables.port(xbar, slot);
                let fits = if right.is_empty() { port == Tables::NONE } else { right.contains(port) };
                assert!(fits, "xbar {xbar} to {to} by {port}, right {right:?}");
            }
        }
        for slot in subnet.destinations.host_slots_of(to) {
            let SlotEnd::Host { host, .. } = subnet.destinations.end(slot) else { continue };
            let far = topology.far(PortRef { xbar: to, port: tables.port(to, slot) });
            assert_eq!(far, Far::Host(host));
        }
    }
}

/// The xbars that reach another by some legal way, in a search over (xbar, whether the way has fallen).
fn legally_reached(topology: &Topology, order: &Order, from: u32) -> BTreeSet<u32> {
    let mut seen = BTreeSet::from([(from, false)]);
    let mut queue = vec![(from, false)];
    while let Some((xbar, fell)) = queue.pop() {
        for channel in topology.channels_of(xbar) {
            let next = topology.head(channel).xbar;
            let climbs = order.climbs(xbar, next);
            if next != xbar && !(fell && climbs) && seen.insert((next, fell || !climbs)) {
                queue.push((next, fell || !climbs));
            }
        }
    }
    seen.into_iter().map(|(xbar, _)| xbar).collect()
}

/// Follows a route, whose steps must all be legal in the order. Returns whether it arrives.
fn arrives(subnet: &Subnet, tables: &Tables, order: &Order, from: u32, slot: u32) -> bool {
    let (mut at, mut fell) = (from, false);
    for _ in 0..=subnet.topology.xbar_count() {
        if subnet.destinations.slots_of(at).contains(&slot) {
            return true;
        }
        let Far::Channel(channel) = subnet.topology.far(PortRef { xbar: at, port: tables.port(at, slot) })
        else {
            return false;
        };
        let next = subnet.topology.head(channel).xbar;
        assert!(!(fell && order.climbs(at, next)), "up after down at xbar {at} for slot {slot}");
        fell |= !order.climbs(at, next);
        at = next;
    }
    panic!("slot {slot} is not reached from xbar {from}: frames circle");
}

fn check_legal(subnet: &Subnet, tables: &Tables, order: &Order) {
    let topology = &subnet.topology;
    for from in (0..topology.xbar_count() as u32).filter(|&xbar| subnet.is_leaf(xbar)) {
        let reached = legally_reached(topology, order, from);
        for to in 0..topology.xbar_count() as u32 {
            for slot in subnet.destinations.host_slots_of(to) {
                let found = arrives(subnet, tables, order, from, slot);
                assert_eq!(found, reached.contains(&to), "from xbar {from} to {to}");
            }
        }
    }
}

/// The order that an engine keeps to with these roots.
fn order(engine: Engine, subnet: &Subnet, settings: &Settings) -> Option<Order> {
    let roots = Roots { xbars: settings.roots.clone().unwrap_or_default(), ..Roots::none() };
    Order::of(engine, subnet, settings, &Tiers::of(&subnet.topology), &roots)
}

/// A random fabric, roots for it, a cable that will fail, and an LMC.
fn cases() -> impl Strategy<Value = (u64, Vec<u32>, usize, u8)> {
    (any::<u64>(), prop::collection::vec(0..14_u32, 1..4), any::<usize>(), 0..3_u8)
}

fn with_roots(subnet: &Subnet, roots: &[u32]) -> Settings {
    let count = subnet.topology.xbar_count() as u32;
    let mut roots: Vec<u32> = roots.iter().map(|root| root % count).collect();
    roots.sort_unstable();
    roots.dedup();
    Settings { roots: Some(roots), ..Settings::default() }
}

proptest! {
    #[test]
    fn shortest_routes_are_shortest_and_all_that_cables_allow((seed, _, _, lmc) in cases()) {
        let subnet = subnet_of(fabrics::random(seed), Some(lmc));
        for engine in [Engine::Minhop, Engine::Dor] {
            let found = tables(engine, &subnet, &Settings::default());
            // minhop keeps to an order where there are service adapters above the leaves.
            match order(engine, &subnet, &Settings::default()) {
                Some(order) => check_legal(&subnet, &found, &order),
                None => check_minimal(&subnet, &found),
            }
        }
    }

    #[test]
    fn ordered_routes_are_legal_and_all_that_the_order_allows((seed, roots, _, lmc) in cases()) {
        let subnet = subnet_of(fabrics::random(seed), Some(lmc));
        let settings = with_roots(&subnet, &roots);
        for engine in [Engine::Updn, Engine::Dnup] {
            let found = tables(engine, &subnet, &settings);
            check_legal(&subnet, &found, &order(engine, &subnet, &settings).unwrap());
            prop_assert!(proved(&subnet, &found).deadlock_free);
        }
    }

    #[test]
    fn weights_of_1_change_no_way((seed, roots, _, _) in cases()) {
        let subnet = subnet_of(fabrics::random(seed), None);
        let settings = with_roots(&subnet, &roots);
        for order in [None, order(Engine::Updn, &subnet, &settings)] {
            let masks = |ports: &XbarPorts| {
                let chains = Chains::new(&subnet, &settings, ports);
                let to: Vec<u32> = (0..subnet.topology.xbar_count() as u32).collect();
                let alike = Alike::new(&subnet.topology, ports);
                Filler::new(&subnet, ports, &chains, &alike, None, None).ways(&to).masks
            };
            let mut ports = XbarPorts::new(&subnet.topology, &settings, order.as_ref());
            let plain = masks(&ports);
            ports.weights = vec![1; ports.heads.len()];
            let weighted = masks(&ports);
            if order.is_none() {
                prop_assert_eq!(plain, weighted);
            }
        }
    }

    #[test]
    fn what_is_right_stays_and_only_that((seed, roots, cable, lmc) in cases()) {
        let map = fabrics::random(seed);
        let mut cut = map.clone();
        if !cut.cables.is_empty() {
            cut.cables.remove(cable % map.cables.len());
        }
        let (before, after) = (subnet_of(map, Some(lmc)), subnet_of(cut, Some(lmc)));
        for engine in ALL {
            let settings = with_roots(&before, &roots);
            let old = tables(engine, &before, &settings);
            let settings = Settings { previous: Some(old.clone()), ..settings };
            prop_assert_eq!(&tables(engine, &before, &settings), &old);
            let new = tables(engine, &after, &settings);
            check_kept(engine, &after, &settings, &old, &new);
            let reassigned = Settings { reassign: true, ..settings.clone() };
            let fresh = Settings { previous: None, ..settings };
            prop_assert_eq!(tables(engine, &after, &reassigned), tables(engine, &after, &fresh));
        }
    }

    #[test]
    fn threads_change_nothing(seed in any::<u64>(), scatter in prop::option::of(any::<u64>())) {
        let subnet = subnet_of(fabrics::random(seed), None);
        let settings = Settings { scatter, ..with_roots(&subnet, &[0, 3]) };
        for engine in ALL {
            let with = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| tables(engine, &subnet, &settings))
            };
            prop_assert_eq!(with(1), with(2));
        }
    }
}

/// What is computed for one xbar and serves all that are alike is exactly what each of them would get by
/// itself, including the loads.
#[test]
fn xbars_that_are_alike_get_what_they_would_get_alone() {
    let specs = [
        "xgft:h=2;m=6,9;w=1,6",
        "xgft:h=3;m=4,4,8;w=1,4,4",
        "xgft:h=3;m=5,3,4;w=1,2,3",
        "clos:hosts=90,ports=12",
        "cluster:leaves=9,spines=5,hosts=120,service=every,missing=3,cables=2",
        "dragonfly:a=4,h=2,p=2",
        "hypercube:d=4,hosts=3",
    ];
    for (spec, per_mille) in specs.into_iter().flat_map(|spec| [0, 40, 150].map(|share| (spec, share))) {
        let subnet = degraded(spec, per_mille);
        let settings = Settings::default();
        for engine in ALL {
            let tiers = Tiers::of(&subnet.topology);
            let found = (engine == Engine::Updn).then(|| find_roots(&subnet, &settings, &tiers));
            let Ok(roots) = found.unwrap_or_else(|| Ok(Roots::none())) else { continue };
            let tables = tables(engine, &subnet, &settings);
            let order = Order::of(engine, &subnet, &settings, &tiers, &roots);
            let ports = XbarPorts::new(&subnet.topology, &settings, order.as_ref());
            let chains = Chains::new(&subnet, &settings, &ports);
            let first_port = (engine == Engine::Dor).then(|| FirstPort::new(&ports, &settings));
            let alone = Alike::nobody(&subnet.topology, &ports);
            let filler = Filler::new(&subnet, &ports, &chains, &alone, first_port.as_ref(), None);
            assert!(tables == filler.tables(None), "{engine} {spec} {per_mille}");
        }
    }
}

/// Checks that exactly those entries stayed that are still right.
fn check_kept(engine: Engine, subnet: &Subnet, settings: &Settings, old: &Tables, new: &Tables) {
    let order = order(engine, subnet, settings);
    let ports = XbarPorts::new(&subnet.topology, settings, order.as_ref());
    let chains = Chains::new(subnet, settings, &ports);
    let first_port = (engine == Engine::Dor).then(|| FirstPort::new(&ports, settings));
    let alike = Alike::new(&subnet.topology, &ports);
    let filler = Filler::new(subnet, &ports, &chains, &alike, first_port.as_ref(), None);
    for to in 0..subnet.topology.xbar_count() as u32 {
        let ways = filler.ways(&[to]);
        for xbar in (0..subnet.topology.xbar_count() as u32).filter(|&xbar| xbar != to) {
            let set = &ways.masks_to(0)[xbar as usize * ports.words..][..ports.words];
            for slot in subnet.destinations.slots_of(to) {
                let (was, is) = (old.port(xbar, slot), new.port(xbar, slot));
                assert!(kept::is_right(&ports, set, is), "{engine}: xbar {xbar} to {to} by {is}");
                assert_eq!(was == is, kept::is_right(&ports, set, was), "{engine}: xbar {xbar} to {to}");
            }
        }
    }
}

#[test]
fn addresses_of_a_host_are_reached_by_different_spines() {
    let fabric = generate("xgft:h=2;m=4,8;w=1,4").unwrap();
    let subnet = Subnet::new(&fabric, Some(2)).unwrap();
    let found = tables(Engine::Minhop, &subnet, &Settings::default());
    for host in 0..subnet.topology.host_count() as u32 {
        for leaf in 0..8 {
            if subnet.xbar_of_host(host) == Some(leaf) {
                continue;
            }
            let ports: PortSet =
                subnet.destinations.slots_of_host(host).map(|slot| found.port(leaf, slot)).collect();
            assert_eq!(ports.iter().count(), 4, "host {host} from leaf {leaf}");
        }
    }
}
