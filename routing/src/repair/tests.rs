//! What must be true of routes around dead cables.

use std::collections::{BTreeSet, VecDeque};

use mapper_fabric::generate;
use mapper_proto::map::{Map, PortRef};
use proptest::prelude::*;
use rand::seq::IteratorRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::openings::Openings;
use super::*;
use crate::Shape;
use crate::fabrics::{self, Builder};

type Dead = BTreeSet<PortRef>;

/// A map, and all that its hosts hold while no cable is dead.
struct Whole {
    topology: Topology,
    orientation: Orientation,
    tables: Vec<HostRoutes>,
}

impl Whole {
    fn new(map: &Map) -> Self {
        let topology = Topology::from_map(map).unwrap();
        let orientation = Orientation::new(&topology, false);
        let options = RouteOptions { max_hops: 24, passes: 4 };
        let tables = (0..topology.host_count() as u32)
            .map(|host| HostRoutes::compute(&topology, &orientation, host, &options).unwrap())
            .collect();
        Self { topology, orientation, tables }
    }

    fn repair(&self, host: u32, dead: &Dead) -> (Topology, LiveRoutes) {
        let dead = DeadCables::from(dead.clone());
        repair(&self.topology, &self.orientation, &self.tables[host as usize], &dead).unwrap()
    }

    fn hosts(&self) -> std::ops::Range<u32> {
        0..self.topology.host_count() as u32
    }

    /// Adds all routes of a host as they were handed out to what frames can wait for.
    fn add(&self, union: &mut UnionProof<'_>, live: &LiveRoutes, cut: &Topology) {
        for to in self.hosts() {
            for hops in live.routes_to(cut, to) {
                let channels = walk(&self.topology, live.from(), to, &hops, 24).unwrap();
                channels.windows(2).for_each(|pair| union.add_dependency(pair[0], pair[1]));
            }
        }
    }

    /// Repairs at each host around a part of `truth`, and proves the union of all routes, and of all
    /// turns that anyone may make.
    fn prove_any_mixture(&self, truth: &Dead, parts: &[Dead]) {
        let left = self.topology.without(truth);
        let mut routes = UnionProof::new(&left);
        let mut turns = UnionProof::new(&left);
        for (host, part) in self.hosts().zip(parts) {
            let (cut, live) = self.repair(host, part);
            self.add(&mut routes, &live, &cut);
            self.check_each(&cut, &live, part);
            let open = Openings::of(&cut, &self.orientation);
            turns.add_turns(|first, second| open.allows(&cut, &self.orientation, first, second));
        }
        routes.prove_acyclic().unwrap();
        turns.prove_acyclic().unwrap();
    }

    /// Every host is reached over live cables if a legal route leads there, and for one that is not reached
    /// the reason is told.
    fn check_each(&self, cut: &Topology, live: &LiveRoutes, dead: &Dead) {
        let legal = legal_xbars(cut, &self.orientation, live.from());
        let missing: BTreeSet<u32> = live.unreachable(cut).map(|(to, _)| to).collect();
        for to in self.hosts().filter(|&to| to != live.from()) {
            let all: Vec<_> = live.routes_to(cut, to).collect();
            assert_eq!(all.len(), live.count_to(cut, to));
            assert_eq!(all.is_empty(), missing.contains(&to));
            assert!(all.iter().flatten().all(|hop| !dead.contains(hop)));
            assert!(all.iter().all(|hops| walk(cut, live.from(), to, hops, 24).is_ok()));
            if let Attachment::Port(at) = cut.attachment(to)
                && legal.contains(&at.xbar)
            {
                assert!(!all.is_empty(), "a legal route to {to} is missed");
            }
        }
    }

    /// All pairs of hosts that live cables connect have routes, for every host's table.
    fn assert_all_pairs(&self, dead: &Dead) {
        for host in self.hosts() {
            let (cut, live) = self.repair(host, dead);
            let missed: Vec<_> =
                live.unreachable(&cut).filter(|&(_, why)| why == OutOfReach::NoSafeRoute).collect();
            assert_eq!(missed, [], "host {host} around {dead:?}");
        }
    }
}

/// The xbars to which legal live routes lead from a host, from a plain search over xbars and phases.
fn legal_xbars(cut: &Topology, orientation: &Orientation, from: u32) -> BTreeSet<u32> {
    let Attachment::Port(at) = cut.attachment(from) else { return BTreeSet::new() };
    let mut reached = BTreeSet::from([(at.xbar, 0)]);
    let mut queue = VecDeque::from([(at.xbar, 0)]);
    while let Some((xbar, phase)) = queue.pop_front() {
        for channel in cut.channels_of(xbar).filter(|&channel| !cut.is_dead(channel)) {
            let passage = orientation.passage(channel);
            let leads_to = |&after: &u8| passage.before(after).is_some_and(|before| before >= phase);
            let Some(after) = (phase..orientation.phases()).find(leads_to) else { continue };
            let next = (cut.head(channel).xbar, after);
            if reached.insert(next) {
                queue.push_back(next);
            }
        }
    }
    reached.into_iter().map(|(xbar, _)| xbar).collect()
}

/// A torus or mesh that is routed by direction order.
fn grid(seed: u64) -> Map {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let kind = if rng.random_bool(0.5) { "torus" } else { "mesh" };
    let [x, y] = [0, 1].map(|_| rng.random_range(3..=5));
    let z = rng.random_range(1..=3);
    let map = generate(&format!("{kind}:x={x},y={y},z={z},hosts=1")).unwrap().map;
    let topology = Topology::from_map(&map).unwrap();
    assert!(matches!(Orientation::new(&topology, false).shape(), Shape::Grid { .. }));
    map
}

/// A tree of xbars with a few more cables, some of them parallel, and a host at each xbar.
fn sparse(seed: u64) -> Map {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let xbars = rng.random_range(3..=16);
    let mut builder = Builder::new(xbars as usize);
    (0..xbars).for_each(|xbar| builder.host(xbar));
    for xbar in 1..xbars {
        let near = rng.random_range(0..3).min(xbar - 1);
        builder.cable(xbar, xbar - 1 - near);
    }
    for _ in 0..rng.random_range(1..=xbars) {
        builder.cable(rng.random_range(0..xbars), rng.random_range(0..xbars));
    }
    builder.build()
}

/// Some ports that hold cables, of either end.
fn some_dead(map: &Map, most: usize, rng: &mut ChaCha8Rng) -> Dead {
    let count = rng.random_range(1..=most);
    let cables = map.cables.iter().flat_map(|cable| [cable.a, cable.b]);
    let hosts = map.hosts.iter().filter_map(|host| host.at).filter(|at| at.xbar % 5 == 0);
    cables.chain(hosts).sample(rng, count).into_iter().collect()
}

fn some_of(dead: &Dead, rng: &mut ChaCha8Rng) -> Dead {
    let share = rng.random_range(0.0..=1.0);
    dead.iter().copied().filter(|_| rng.random_bool(share)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn hosts_that_know_of_different_dead_cables_cannot_deadlock(seed: u64, kind in 0..3, most in 1..=6_usize) {
        let map = match kind {
            0 => fabrics::random(seed),
            1 => sparse(seed),
            _ => grid(seed),
        };
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 1);
        let whole = Whole::new(&map);
        let truth = some_dead(&map, most, &mut rng);
        let parts: Vec<_> = whole.hosts().map(|_| some_of(&truth, &mut rng)).collect();
        whole.prove_any_mixture(&truth, &parts);
    }

    #[test]
    fn the_more_is_dead_the_more_turns_are_open(seed: u64, most in 1..=6_usize) {
        let map = sparse(seed);
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 1);
        let whole = Whole::new(&map);
        let truth = some_dead(&map, most, &mut rng);
        let (all, some) = (
            whole.topology.without(&truth),
            whole.topology.without(&some_of(&truth, &mut rng)),
        );
        let (wide, narrow) =
            (Openings::of(&all, &whole.orientation), Openings::of(&some, &whole.orientation));
        for first in 0..all.channel_count() as u32 {
            for second in onward(&all, first) {
                let was = narrow.allows(&some, &whole.orientation, first, second);
                prop_assert!(!was || wide.allows(&all, &whole.orientation, first, second));
            }
        }
    }

    #[test]
    fn routes_that_live_stay_with_the_hosts_that_they_serve(seed: u64, dense: bool) {
        let map = if dense { fabrics::random(seed) } else { sparse(seed) };
        let whole = Whole::new(&map);
        let dead = some_dead(&map, 3, &mut ChaCha8Rng::seed_from_u64(seed ^ 1));
        for host in whole.hosts() {
            let (cut, live) = whole.repair(host, &dead);
            for to in whole.hosts() {
                let lives = |hops: &Vec<PortRef>| walk(&cut, host, to, hops, 24).is_ok();
                let before: Vec<_> =
                    whole.tables[host as usize].routes_to(&whole.topology, to).filter(lives).collect();
                if !before.is_empty() {
                    prop_assert_eq!(before, live.routes_to(&cut, to).collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn a_cable_may_be_named_by_either_end(seed: u64) {
        let map = sparse(seed);
        let whole = Whole::new(&map);
        let cable = map.cables[seed as usize % map.cables.len()];
        let one = |port| whole.repair(0, &Dead::from([port])).1;
        prop_assert_eq!(one(cable.a), one(cable.b));
    }
}

#[test]
fn on_a_ring_less_a_cable_all_pairs_have_routes_at_once() {
    for xbars in 3..=8 {
        let map = fabrics::ring(xbars);
        let whole = Whole::new(&map);
        for cable in &map.cables {
            let dead = Dead::from([cable.a]);
            whole.assert_all_pairs(&dead);
            for knowing in 0..1 << xbars {
                let parts: Vec<_> = whole
                    .hosts()
                    .map(|host| if knowing >> host & 1 == 1 { dead.clone() } else { Dead::new() })
                    .collect();
                whole.prove_any_mixture(&dead, &parts);
            }
        }
    }
}

#[test]
fn on_a_clos_less_a_cable_all_pairs_have_routes_at_once() {
    for map in [fabrics::clos(4, 2, 2), fabrics::clos(3, 3, 1), fabrics::fat_tree(4)] {
        let whole = Whole::new(&map);
        for cable in &map.cables {
            whole.assert_all_pairs(&Dead::from([cable.b]));
        }
    }
}

/// Xbar 0 stands above 1 and 2, and these two above 3 and 4, which are cabled to each other, too.
fn diamond() -> Map {
    let mut builder = Builder::new(5);
    (0..5).for_each(|xbar| builder.host(xbar));
    for (x, y) in [(0, 1), (0, 2), (1, 3), (2, 3), (1, 4), (2, 4), (3, 4), (0, 1), (0, 2)] {
        builder.cable(x, y);
    }
    builder.build()
}

#[test]
fn a_top_that_lost_its_way_up_goes_out_through_an_xbar_below() {
    let map = diamond();
    let topology = Topology::from_map(&map).unwrap();
    let orientation = Orientation::new(&topology, true);
    assert!((0..3).all(|xbar| orientation.is_above(xbar, xbar + 1)));
    let whole = Whole { orientation: Orientation::new(&topology, true), ..Whole::new(&map) };
    let between = |x: u32, y: u32| -> Dead {
        let joins = |cable: &&mapper_proto::map::Cable| (cable.a.xbar, cable.b.xbar) == (x, y);
        map.cables.iter().filter(joins).map(|cable| cable.a).collect()
    };
    let (cut, live) = whole.repair(2, &between(0, 2));
    let hops = live.routes_to(&cut, 0).next().unwrap();
    assert_eq!(hops.iter().map(|hop| hop.xbar).collect::<Vec<_>>(), [2, 3, 1, 0]);
    assert!(live.opened());
    // Xbar 1 may not do so as well, but must wait: else 1 and 2 could lose their ways up, and each go out through
    // the other.
    let (cut, live) = whole.repair(1, &between(0, 1));
    assert_eq!(live.unreachable(&cut).next(), Some((0, OutOfReach::NoSafeRoute)));
}

#[test]
fn a_cable_that_may_be_alive_opens_no_turns() {
    let map = fabrics::ring(6);
    let whole = Whole::new(&map);
    for cable in &map.cables {
        let avoided = Dead::from([cable.a]);
        let doubted = DeadCables { avoided: avoided.clone(), proved: Dead::new() };
        let mut without = 0;
        for host in whole.hosts() {
            let routes = &whole.tables[host as usize];
            let (cut, live) = repair(&whole.topology, &whole.orientation, routes, &doubted).unwrap();
            assert!(!live.opened());
            let legal = |&(_, why): &(u32, OutOfReach)| why == OutOfReach::NoSafeRoute;
            without += live.unreachable(&cut).filter(legal).count();
            let (cut, live) = whole.repair(host, &avoided);
            assert_eq!(live.unreachable(&cut).count(), 0);
        }
        // Some pairs must wait, except where the ring may not be passed anyway.
        assert_eq!(without > 0, whole.hosts().any(|host| whole.repair(host, &avoided).1.opened()));
    }
}

#[test]
fn a_host_whose_own_cable_is_dead_is_out_of_reach_and_reaches_no_one() {
    let map = fabrics::clos(4, 2, 2);
    let whole = Whole::new(&map);
    let dead = Dead::from([map.hosts[3].at.unwrap()]);
    let (cut, live) = whole.repair(3, &dead);
    assert_eq!(live.unreachable(&cut).count(), 7);
    let (cut, live) = whole.repair(0, &dead);
    assert_eq!(live.unreachable(&cut).collect::<Vec<_>>(), [(3, OutOfReach::NotConnected)]);
    assert!(!live.opened());
}

#[test]
fn parallel_cables_stand_in_for_each_other() {
    let mut builder = Builder::new(2);
    (0..2).for_each(|xbar| builder.host(xbar));
    (0..2).for_each(|_| builder.cable(0, 1));
    let map = builder.build();
    let whole = Whole::new(&map);
    let (cut, live) = whole.repair(0, &Dead::from([map.cables[0].b]));
    let routes: Vec<_> = live.routes_to(&cut, 1).map(|hops| hops[0]).collect();
    assert_eq!(routes, [map.cables[1].a]);
}

#[test]
fn ports_without_cables_change_nothing() {
    let whole = Whole::new(&fabrics::ring(4));
    let nowhere = [(0, 60), (0, 0), (9, 1)].map(|(xbar, port)| PortRef { xbar, port });
    let (cut, live) = whole.repair(0, &Dead::from(nowhere));
    assert_eq!(live.unreachable(&cut).count(), 0);
    assert!(!live.opened());
}
