//! Compares measures with what can be said without measuring.

use mapper_fabric::generate;
use proptest::prelude::*;

use super::*;
use crate::engines::{Engine, Settings};
use crate::{Attachment, HostRoutes, Orientation, RouteOptions, Subnet, Tables, fabrics};
use mapper_proto::map::{Fabric, HostLabel, Map, XbarLabel};

/// Labels for a map that was built by hand.
fn labelled(map: Map) -> Fabric {
    let name = |kind: &str, i: usize| format!("{kind}{i}");
    let hosts = (0..map.hosts.len()).map(|i| HostLabel {
        name: name("h", i),
        node_port: 1,
        node_ports: 1,
        ..HostLabel::default()
    });
    let xbars = (0..map.xbars.len()).map(|i| XbarLabel { name: name("x", i), ..XbarLabel::default() });
    Fabric { hosts: hosts.collect(), xbars: xbars.collect(), map, ..Fabric::default() }
}

/// Hops from each xbar to one.
fn hops_to(topology: &Topology, end: u32) -> Vec<u32> {
    let mut hops = vec![u32::MAX; topology.xbar_count()];
    hops[end as usize] = 0;
    let mut queue = std::collections::VecDeque::from([end]);
    while let Some(xbar) = queue.pop_front() {
        for channel in topology.channels_of(xbar) {
            let next = topology.head(channel).xbar as usize;
            if hops[next] == u32::MAX {
                hops[next] = hops[xbar as usize] + 1;
                queue.push_back(next as u32);
            }
        }
    }
    hops
}

/// Shortest routes; among equally short channels, `choose` takes one by their number and the slot.
fn shortest(subnet: &Subnet, choose: impl Fn(u32, u32, usize) -> usize) -> Tables {
    let (topology, destinations) = (&subnet.topology, &subnet.destinations);
    let mut tables = Tables::empty(topology.xbar_count(), destinations.slot_count());
    for end in 0..topology.xbar_count() as u32 {
        let hops = hops_to(topology, end);
        for slot in destinations.host_slots_of(end) {
            for xbar in 0..topology.xbar_count() as u32 {
                let nearer: Vec<u32> = topology
                    .channels_of(xbar)
                    .filter(|&channel| {
                        hops[topology.head(channel).xbar as usize].checked_add(1) == Some(hops[xbar as usize])
                    })
                    .collect();
                if let Some(&channel) = nearer.get(choose(xbar, slot, nearer.len())) {
                    tables.set_port(xbar, slot, topology.tail(channel).port);
                }
            }
            let tables::SlotEnd::Host { host, .. } = destinations.end(slot) else { continue };
            let Attachment::Port(at) = topology.attachment(host) else { continue };
            tables.set_port(end, slot, at.port);
        }
    }
    tables
}

use crate::tables;

fn subnet(spec: &str) -> Subnet {
    Subnet::new(&generate(spec).unwrap(), None).unwrap()
}

#[test]
fn service_adapters_are_told_apart_from_other_hosts() {
    // The flows inside the leaf share no cable; those of the spine's two adapters share the only one.
    let mut fabric = fabrics::Builder::new(2);
    (0..10).for_each(|_| fabric.host(0));
    (0..2).for_each(|_| fabric.host(1));
    fabric.cable(0, 1);
    let topology = Topology::from_map(&fabric.build()).unwrap();
    let tables = host_tables(&topology);
    let quality = Quality::measure(&SourceRoutes::new(&topology, &tables), 1);
    assert_eq!((quality.hosts, quality.service_adapters), (12, 2));
    assert!(quality.effective_bisection < 1.0);
    assert!((quality.effective_bisection_of_others - 1.0).abs() < 1e-9);
    assert_eq!(quality.effective_bisection_of_hosts, Some(1.0));
    let plain = Topology::from_map(&fabrics::fat_tree(4)).unwrap();
    let quality = Quality::measure(&SourceRoutes::new(&plain, &host_tables(&plain)), 1);
    assert_eq!(quality.service_adapters, 0);
    assert!((quality.effective_bisection_of_others - quality.effective_bisection).abs() < 1e-9);
    assert_eq!(quality.effective_bisection_of_hosts, None);
}

#[test]
fn hosts_alone_are_measured_as_if_service_adapters_sent_nothing_wherever_they_stand() {
    let spec = "cluster:leaves=8,spines=4,hosts=80,cables=2";
    let measured = |spec: &str| {
        let subnet = subnet(spec);
        let tables = Engine::Ftree.compute(&subnet, &Settings::default()).unwrap().tables;
        Quality::measure(&TableRoutes::new(&subnet, &tables), 1)
    };
    let (plain, served) = (measured(spec), measured(&format!("{spec},service=every")));
    let of_hosts = served.effective_bisection_of_hosts.unwrap();
    assert!((of_hosts / plain.effective_bisection - 1.0).abs() < 0.02, "{of_hosts}");
    assert!(served.effective_bisection < of_hosts, "{}", served.effective_bisection);
}

#[test]
fn what_matchings_show_bit_by_bit_is_what_they_show_at_once() {
    // With so many hosts a quarter of the matchings comes first.
    let subnet = subnet("xgft:h=2;m=64,72;w=1,16");
    let tables = Engine::Dmodc.compute(&subnet, &Settings::default()).unwrap().tables;
    let routes = TableRoutes::new(&subnet, &tables);
    let matchings = Matchings::draw(&subnet, 1);
    let mut measured = matchings.begin(&routes);
    let first = measured.bisection();
    matchings.complete(&routes, &mut measured);
    let (all, quality) = (measured.bisection(), Quality::measure(&routes, 1));
    assert_eq!((all.mean, all.error), (quality.effective_bisection, quality.effective_bisection_error));
    assert!(first != all && (first.mean - all.mean).abs() < 4.0 * first.error, "{first:?} and {all:?}");
    assert_eq!(Quality::measure_knowing(&routes, 1, Some(all)), quality);
}

/// D-mod-K (Zahavi, 2010): on the way up, digits of the destination's number choose the channel. On the way
/// down there is only one.
fn d_mod_k(subnet: &Subnet, arity: &[u32]) -> Tables {
    let topology = &subnet.topology;
    let place: Vec<u32> = {
        let hosts = hosts_in_order(topology);
        let mut place = vec![0; hosts.len()];
        (0..).zip(&hosts).for_each(|(at, &host)| place[host as usize] = at);
        place
    };
    let leaf_of = |xbar: u32| hops_to_leaf(topology, xbar);
    shortest(subnet, |xbar, slot, count| {
        let tables::SlotEnd::Host { host, .. } = subnet.destinations.end(slot) else { return 0 };
        let below: u32 = arity[..leaf_of(xbar)].iter().product();
        (place[host as usize] / below) as usize % count.max(1)
    })
}

/// How far an xbar is from the nearest one with hosts.
fn hops_to_leaf(topology: &Topology, xbar: u32) -> usize {
    let hops = hops_to(topology, xbar);
    let leaf = (0..topology.xbar_count()).filter(|&xbar| !topology.hosts_of(xbar as u32).is_empty());
    leaf.map(|leaf| hops[leaf]).min().unwrap() as usize
}

#[test]
fn a_full_fat_tree_under_d_mod_k_has_shift_congestion_1() {
    // As to the congestion risk, a channel up from a leaf has the leaf's hosts as sources, and one from the
    // tier above has all hosts of its part. Of the destinations it has each part's share.
    for (spec, arity, risk) in [
        ("xgft:h=2;m=4,4;w=1,4", &[4, 4][..], 3),
        ("xgft:h=3;m=3,3,4;w=1,3,3", &[3, 3, 3], 3),
        ("xgft:h=3;m=4,4,8;w=1,4,4", &[4, 4, 4], 7),
    ] {
        let subnet = subnet(spec);
        let tables = d_mod_k(&subnet, arity);
        let routes = TableRoutes::new(&subnet, &tables);
        let quality = Quality::measure(&routes, 1);
        assert_eq!((quality.congestion_shift, quality.unroutable), (1, 0), "{spec}");
        assert_eq!((quality.shifts, quality.all_shifts), (quality.hosts - 1, quality.hosts - 1));
        // A channel down to a leaf carries all that is sent to one of its hosts from elsewhere, and so does
        // one up from a leaf: each leaf's up channels share its hosts' destinations evenly.
        let (hosts, leaf) = (quality.hosts as f64, f64::from(arity[0]));
        assert_eq!(quality.edge_forwarding_index, hosts - leaf, "{spec}");
        assert_eq!(quality.congestion_a2a, risk, "{spec}");
        assert!(quality.effective_bisection > 0.4 && quality.effective_bisection < 0.95);
        assert!(quality.effective_bisection_error < 0.005 * quality.effective_bisection);
    }
}

#[test]
fn a_ring_both_ways_round() {
    // Five xbars with a host each: two hosts are one or two hops away, each way round.
    let subnet = subnet("ring:n=5,hosts=1");
    let tables = shortest(&subnet, |_, _, _| 0);
    let routes = TableRoutes::new(&subnet, &tables);
    let quality = Quality::measure(&routes, 1);
    assert_eq!(routes.longest(), 2);
    // 5 x (1 + 2) channels crossed each way round, over 5 channels.
    assert_eq!(quality.loads, [3.0; 10]);
    assert_eq!(quality.edge_forwarding_index, 3.0);
    // Two sources, two destinations: 1-2 and 1-3 and 0-2 over channel 1-2.
    assert_eq!(quality.congestion_a2a, 2);
    // If everybody sends two hops on, each channel is crossed by two.
    assert_eq!(quality.congestion_shift, 2);
    assert_eq!(quality.tiers.len(), 1);
    let tier = &quality.tiers[0];
    assert_eq!(
        (tier.heading(), tier.channels, tier.min, tier.mean, tier.max),
        (TierHeading::Level, 10, 3.0, 3.0, 3.0)
    );
    assert_eq!(tier.histogram, [0, 0, 0, 0, 0, 0, 0, 0, 0, 10]);
}

#[test]
fn one_xbar_is_in_nobodys_way() {
    let mut builder = fabrics::Builder::new(1);
    (0..6).for_each(|_| builder.host(0));
    let subnet = Subnet::new(&labelled(builder.build()), None).unwrap();
    let tables = shortest(&subnet, |_, _, _| 0);
    let quality = Quality::measure(&TableRoutes::new(&subnet, &tables), 1);
    assert_eq!((quality.edge_forwarding_index, quality.effective_bisection), (0.0, 1.0));
    assert_eq!((quality.congestion_a2a, quality.congestion_shift, quality.unroutable), (0, 0, 0));
    assert_eq!(quality.congestion_random_permutation, 0.0);
}

#[test]
fn two_leaves_and_one_cable_can_be_computed_by_hand() {
    // There are two xbars with two hosts each, and one cable. Of the three matchings of four hosts, one stays
    // at home, and two send two flows across each way.
    let mut builder = fabrics::Builder::new(2);
    for xbar in [0, 0, 1, 1] {
        builder.host(xbar);
    }
    builder.cable(0, 1);
    let subnet = Subnet::new(&labelled(builder.build()), None).unwrap();
    let tables = shortest(&subnet, |_, _, _| 0);
    let quality = Quality::measure(&TableRoutes::new(&subnet, &tables), 7);
    assert_eq!(
        (quality.edge_forwarding_index, quality.congestion_a2a, quality.congestion_shift),
        (4.0, 2, 2)
    );
    let exact = (1.0 + 0.5 + 0.5) / 3.0;
    assert!((quality.effective_bisection - exact).abs() < 4.0 * quality.effective_bisection_error);
    assert!(quality.effective_bisection_error < 0.01 * exact);
    // Of the 24 permutations, 4 send both hosts across, 16 send one each way, and 4 send none.
    assert!((quality.congestion_random_permutation - (2.0 * 4.0 + 16.0) / 24.0).abs() < 0.05);
}

#[test]
fn what_has_no_route_does_not_count_and_is_told() {
    let subnet = subnet("ring:n=5,hosts=1");
    let mut tables = shortest(&subnet, |_, _, _| 0);
    let slot = subnet.destinations.slots_of_host(0).start;
    // Frames for the first host go round for ever from the third and fourth xbar.
    let towards = |from: u32, to: u32| {
        let mut channels = subnet.topology.channels_of(from);
        let channel = channels.find(|&channel| subnet.topology.head(channel).xbar == to).unwrap();
        subnet.topology.tail(channel).port
    };
    tables.set_port(2, slot, towards(2, 3));
    tables.set_port(3, slot, towards(3, 2));
    let quality = Quality::measure(&TableRoutes::new(&subnet, &tables), 1);
    assert_eq!(quality.unroutable, 2);
    // If the host's own xbar sends frames for it elsewhere, they arrive from nowhere.
    tables.set_port(0, slot, 200);
    let quality = Quality::measure(&TableRoutes::new(&subnet, &tables), 1);
    assert_eq!(quality.unroutable, 4);
    let none = Tables::empty(5, subnet.destinations.slot_count());
    let quality = Quality::measure(&TableRoutes::new(&subnet, &none), 1);
    assert_eq!((quality.unroutable, quality.edge_forwarding_index), (20, 0.0));
    let foreign = Tables::empty(4, 3);
    assert_eq!(Quality::measure(&TableRoutes::new(&subnet, &foreign), 1).unroutable, 20);
}

#[test]
fn several_addresses_share_a_pairs_traffic() {
    let fabric = labelled(fabrics::clos(3, 2, 2));
    let subnet = Subnet::new(&fabric, Some(1)).unwrap();
    // Even addresses are reached over the first spine, odd ones over the second.
    let tables = shortest(&subnet, |_, slot, count| match subnet.destinations.end(slot) {
        tables::SlotEnd::Host { path, .. } => usize::from(path) % count.max(1),
        tables::SlotEnd::Xbar(_) => 0,
    });
    let quality = Quality::measure(&TableRoutes::new(&subnet, &tables), 1);
    assert_eq!(quality.loads, [4.0; 12], "of 2 hosts' traffic to 4 others a half each");
    assert_eq!((quality.congestion_a2a, quality.unroutable), (2, 0));
    assert!(
        quality.tiers[0]
            .to_string()
            .starts_with("tier 0 to 1 (up): 6 channels, 4 to 4 routes each, mean 4.0;")
    );
}

/// All tables of a topology.
fn host_tables(topology: &Topology) -> Vec<HostRoutes> {
    let orientation = Orientation::new(topology, false);
    let hosts = 0..topology.host_count() as u32;
    hosts
        .map(|host| HostRoutes::compute(topology, &orientation, host, &RouteOptions::default()).unwrap())
        .collect()
}

#[test]
fn source_routes_are_measured_alike_from_tables_lists_and_block_by_block() {
    for map in [fabrics::fat_tree(4), fabrics::random(3), fabrics::random(8), fabrics::ring(6)] {
        let topology = Topology::from_map(&map).unwrap();
        let tables = host_tables(&topology);
        let quality = Quality::measure(&SourceRoutes::new(&topology, &tables), 5);
        let mut lists = RouteLists::new(&topology);
        for table in &tables {
            for to in 0..topology.host_count() as u32 {
                table.routes_to(&topology, to).for_each(|hops| lists.add(table.from(), to, &hops).unwrap());
            }
        }
        let listed = Quality::measure(&lists.counted(), 5);
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(close(&quality.loads, &listed.loads));
        let same = |quality: &Quality| {
            let Quality { hosts, unroutable, congestion_a2a, congestion_shift, shifts, .. } = *quality;
            let drawn = (quality.effective_bisection, quality.congestion_random_permutation);
            (hosts, unroutable, congestion_a2a, congestion_shift, shifts, drawn)
        };
        assert_eq!(same(&quality), same(&listed));
        let all = crate::engines::dispersive::AllHosts::new(&topology, RouteOptions::default(), false);
        let (proof, by_block, _) = all.prove_and_measure(5).unwrap();
        assert!(proof.holds());
        assert_eq!(by_block, quality);
        let mut loads = ChannelLoads::new(&topology);
        tables.iter().for_each(|table| loads.add_table(table));
        assert!((loads.edge_forwarding_index() - quality.edge_forwarding_index).abs() < 1e-9);
    }
}

/// What the patterns of traffic show if they are walked pattern by pattern and source by source: the
/// bisection, its error, the mean of permutations, and the largest shift.
fn walked(routes: &impl PairRoutes, patterns: &Patterns) -> (f64, f64, f64, u32) {
    let topology = routes.topology();
    let flows = |pattern: usize| -> Vec<Vec<u32>> {
        let places = 0..patterns.hosts.len();
        let flow = |place: usize| {
            let to = patterns.hosts[patterns.target(pattern, place)?];
            let mut channels = Vec::new();
            let choice = patterns.choice(pattern, place);
            routes.draw(patterns.hosts[place], to, choice, &mut channels).then_some(channels)
        };
        places.filter_map(flow).collect()
    };
    let loads = |flows: &[Vec<u32>]| {
        let mut loads = vec![0_u32; topology.channel_count()];
        flows.iter().flatten().for_each(|&channel| loads[channel as usize] += 1);
        loads
    };
    let bandwidth = |pattern: usize| {
        let flows = flows(pattern);
        let loads = loads(&flows);
        let gets = |flow: &Vec<u32>| {
            let shared = flow.iter().map(|&channel| loads[channel as usize]).max();
            1.0 / f64::from(shared.unwrap_or(1))
        };
        if flows.is_empty() { 1.0 } else { flows.iter().map(gets).sum::<f64>() / flows.len() as f64 }
    };
    let (matchings, permutations) = (patterns.matchings.len(), patterns.permutations.len());
    let bandwidths: Vec<f64> = (0..matchings).map(bandwidth).collect();
    let count = bandwidths.len() as f64;
    let (mean, error) = match matchings {
        0 => (1.0, 0.0),
        _ => {
            let mean = bandwidths.iter().sum::<f64>() / count;
            let squares: f64 = bandwidths.iter().map(|one| (one - mean).powi(2)).sum();
            (mean, (squares / (count - 1.0) / count).sqrt())
        }
    };
    let busiest = |pattern: usize| loads(&flows(pattern)).into_iter().max().unwrap_or_default();
    let total: u64 = (matchings..matchings + permutations).map(|pattern| u64::from(busiest(pattern))).sum();
    let permutation = if permutations == 0 { 0.0 } else { total as f64 / permutations as f64 };
    let shift = (matchings + permutations..patterns.count()).map(busiest).max().unwrap_or_default();
    (mean, error, permutation, shift)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Patterns that are looked at together show what each shows alone, also with several addresses a host
    /// and with routes that are missing; and the bisection alone is that of the whole measure.
    #[test]
    fn patterns_show_what_a_walk_by_source_shows(seed in any::<u64>(), choice in any::<u32>(), lmc in 0_u8..3) {
        let subnet = Subnet::new(&labelled(fabrics::random(seed)), Some(lmc)).unwrap();
        let mut tables = shortest(&subnet, |xbar, slot, count| {
            (choice.wrapping_mul(xbar + 7).wrapping_add(slot) as usize) % count.max(1)
        });
        if choice.is_multiple_of(3) {
            tables.set_port(0, choice % tables.slot_count() as u32, Tables::NONE);
        }
        let routes = TableRoutes::new(&subnet, &tables);
        let order = hosts_in_order(&subnet.topology);
        let patterns = Patterns::draw(&subnet.topology, &order, seed, patterns::ALL_FLOWS);
        let quality = Quality::measure(&routes, seed);
        let Quality { effective_bisection, effective_bisection_error, .. } = quality;
        let Quality { congestion_random_permutation, congestion_shift, .. } = quality;
        prop_assert_eq!(
            (effective_bisection, effective_bisection_error, congestion_random_permutation, congestion_shift),
            walked(&routes, &patterns)
        );
        let uncounted = TableRoutes::proved(&subnet, &tables, routes.longest());
        prop_assert_eq!(Quality::bisection(&uncounted, seed), effective_bisection);
        prop_assert_eq!(uncounted.census(), routes.census());
    }

    /// Counting by destination and counting by source give the same result, whatever the number of threads. In trees most
    /// leaves of a group have the same entries, but for some that were changed.
    #[test]
    fn tables_and_their_routes_are_measured_alike(
        seed in any::<u64>(),
        choice in any::<u32>(),
        tree in proptest::option::of(0..3_usize),
        changes in proptest::collection::vec((any::<u32>(), any::<u32>(), any::<u32>()), 0..6),
    ) {
        let subnet = match tree {
            None => Subnet::new(&labelled(fabrics::random(seed)), None).unwrap(),
            Some(tree) => subnet(["xgft:h=2;m=3,4;w=1,3", "xgft:h=3;m=2,3,3;w=1,2,2", "clos:hosts=12,ports=8"][tree]),
        };
        let topology = &subnet.topology;
        let mut tables = shortest(&subnet, |xbar, slot, count| {
            let xbar = if tree.is_some() { 0 } else { xbar };
            (choice.wrapping_mul(xbar + 7).wrapping_add(slot) as usize) % count.max(1)
        });
        for (xbar, slot, port) in changes {
            let (xbar, slot) = (xbar % tables.xbar_count() as u32, slot % tables.slot_count() as u32);
            let mut channels = topology.channels_of(xbar);
            if let Some(channel) = channels.nth(port as usize % channels.len().max(1)) {
                tables.set_port(xbar, slot, topology.tail(channel).port);
            }
        }
        let routes = TableRoutes::new(&subnet, &tables);
        let mut lists = RouteLists::new(topology);
        let mut channels = Vec::new();
        let hosts = 0..topology.host_count() as u32;
        for (from, to) in hosts.clone().flat_map(|from| hosts.clone().map(move |to| (from, to))) {
            channels.clear();
            if from != to && routes.draw(from, to, 0, &mut channels) {
                let Attachment::Port(at) = topology.attachment(to) else { panic!("{to} has no cable") };
                let hops: Vec<_> = channels.iter().map(|&channel| topology.tail(channel)).chain([at]).collect();
                lists.add(from, to, &hops).unwrap();
            }
        }
        let one = Quality::measure(&routes, seed);
        let other = Quality::measure(&lists.counted(), seed);
        prop_assert_eq!(&one, &other);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        prop_assert_eq!(one, pool.install(|| Quality::measure(&TableRoutes::new(&subnet, &tables), seed)));
    }
}
