//! Engines that rank, on clusters whose spines have service adapters.

use mapper_fabric::generate;
use mapper_proto::Mac;
use mapper_proto::map::{Fabric, PortRef};
use proptest::prelude::*;
use rayon::prelude::*;

use crate::engines::dispersive::AllHosts;
use crate::engines::{Engine, Proof, Selection, Settings, best, select};
use crate::tables::{Layers, Tables};
use crate::{
    HostRoutes, ProofRules, Quality, RouteOptions, Shape, SourceRoutes, Subnet, TableRoutes, TableViolation,
    Tiers, prove_tables,
};

const RANKING: [Engine; 5] = [Engine::Minhop, Engine::Updn, Engine::Dnup, Engine::Ftree, Engine::Dmodc];

/// Engines that take shortest routes, wherever these turn. Such routes may close circles, or need layers.
const SHORTEST: [Engine; 3] = [Engine::Lash, Engine::Sssp, Engine::Dfsssp];

fn serve(subnet: &Subnet, engine: Engine) -> Result<Selection, String> {
    select(subnet, &[engine], &Settings::default(), Proof::Required).map_err(|why| why.to_string())
}

/// The fabric without the service adapters of its spines.
fn without_services(fabric: &Fabric) -> Fabric {
    let subnet = Subnet::new(fabric, None).unwrap();
    let tiers = Tiers::of(&subnet.topology);
    let mut fabric = fabric.clone();
    let keeps: Vec<bool> =
        fabric.map.hosts.iter().map(|host| host.at.is_none_or(|at| !tiers.is_served(at.xbar))).collect();
    let mut kept = keeps.iter();
    fabric.map.hosts.retain(|_| *kept.next().unwrap());
    let mut kept = keeps.iter();
    fabric.hosts.retain(|_| *kept.next().unwrap());
    fabric
}

/// The hosts that are no service adapters of spines.
fn others(subnet: &Subnet) -> Vec<u32> {
    let tiers = Tiers::of(&subnet.topology);
    let is_other = |host: &u32| subnet.xbar_of_host(*host).is_some_and(|xbar| !tiers.is_served(xbar));
    crate::hosts_in_order(&subnet.topology).into_iter().filter(is_other).collect()
}

/// The effective bisection of the hosts that are no service adapters of spines.
fn bisection_of_others(subnet: &Subnet, selection: &Selection) -> f64 {
    let routes = TableRoutes::new(subnet, &selection.routing.tables);
    Quality::measure_among(&routes, &others(subnet), 1).effective_bisection
}

/// The shape that agents see, and that bisection by their routes, which are proved.
fn bisection_by_agents(subnet: &Subnet) -> Result<(Shape, f64), TestCaseError> {
    let all = AllHosts::new(&subnet.topology, RouteOptions::default(), false);
    let (proof, _) = all.prove().unwrap();
    prop_assert!(proof.holds());
    let mut tables: Vec<HostRoutes> = Vec::new();
    all.for_each(|table| {
        tables.push(table.clone());
        Ok::<_, crate::RoutingError>(())
    })
    .unwrap();
    let routes = SourceRoutes::new(&subnet.topology, &tables);
    let bisection = Quality::measure_among(&routes, &others(subnet), 1).effective_bisection;
    Ok((all.orientation().shape().clone(), bisection))
}

fn bisection(subnet: &Subnet, selection: &Selection) -> f64 {
    Quality::measure(&TableRoutes::new(subnet, &selection.routing.tables), 1).effective_bisection
}

#[test]
fn a_real_clusters_shape_is_served_nearly_as_well_as_without_service_adapters() {
    for (cables, at_least) in [(1, 0.0), (2, 0.60)] {
        let spec = format!("cluster:leaves=24,spines=16,hosts=542,missing=5,cables={cables}");
        let plain = Subnet::new(&generate(&spec).unwrap(), None).unwrap();
        let served = Subnet::new(&generate(&format!("{spec},service=every")).unwrap(), None).unwrap();
        for engine in RANKING {
            let (before, after) = (serve(&plain, engine).unwrap(), serve(&served, engine).unwrap());
            assert!(after.routing.layers.count == 1, "{engine:?}");
            let (before, after) = (bisection(&plain, &before), bisection(&served, &after));
            assert!(after >= at_least && after >= 0.95 * before, "{engine:?}: {before} to {after}");
        }
    }
}

#[test]
fn a_leaf_that_lost_its_cable_to_a_spine_reaches_that_spine_itself_by_few_more_entries_that_are_proved() {
    let rules = ProofRules { max_hops: 64, xbar_destinations: true };
    for spec in ["clos:hosts=32,ports=8", "xgft:h=3;m=3,3,4;w=1,3,3"] {
        let whole = generate(spec).unwrap();
        for engine in [Engine::Ftree, Engine::Dmodc, Engine::Updn, Engine::Dnup] {
            for cut in (0..whole.map.cables.len()).step_by(7) {
                let mut fabric = whole.clone();
                fabric.map.cables.remove(cut);
                let subnet = Subnet::new(&fabric, None).unwrap();
                let Ok(tables) = engine.compute(&subnet, &Settings::default()).map(|of| of.tables) else {
                    continue;
                };
                let proof = prove_tables(&subnet, &tables, &Layers::single(), &rules);
                assert!(proof.holds(), "{engine:?} on {spec} without cable {cut}");
                let again = Settings { previous: Some(tables.clone()), ..Settings::default() };
                let kept = engine.compute(&subnet, &again).unwrap().tables;
                assert!(kept == tables, "{engine:?} on {spec} without cable {cut} changes right tables");
            }
        }
    }
}

#[test]
fn shortest_routes_in_layers_spread_over_all_cables_beside_service_adapters() {
    // With one tree to each xbar, all routes to its hosts go through one cable. With one tree to each host a
    // second layer may be needed.
    let spec = "cluster:leaves=24,spines=16,hosts=542,missing=5,cables=2";
    let plain = Subnet::new(&generate(spec).unwrap(), None).unwrap();
    let served = Subnet::new(&generate(&format!("{spec},service=every")).unwrap(), None).unwrap();
    for engine in [Engine::Lash, Engine::Dfsssp] {
        let (before, after) = (serve(&plain, engine).unwrap(), serve(&served, engine).unwrap());
        assert!(after.routing.layers.count <= 2, "{engine:?}: {}", after.routing.layers.count);
        let (before, after) = (bisection(&plain, &before), bisection(&served, &after));
        assert!(after >= 0.60 && after >= 0.95 * before, "{engine:?}: {before} to {after}");
    }
}

#[test]
fn reverse_hops_that_join_no_service_adapter_take_no_route_from_one() {
    let spec = "cluster:leaves=8,spines=4,hosts=80,missing=2,service=every";
    let subnet = Subnet::new(&generate(spec).unwrap(), None).unwrap();
    let plain = serve(&subnet, Engine::Ftree).unwrap().routing.tables;
    for (io_nodes, is_told) in [(Vec::new(), true), (vec![0], false)] {
        let settings =
            Settings { max_reverse_hops: 1, io_nodes: io_nodes.into_iter().collect(), ..Settings::default() };
        let served = select(&subnet, &[Engine::Ftree], &settings, Proof::Required).unwrap();
        assert_eq!(
            served.routing.notes.iter().any(|note| note.contains("no effect without I/O nodes")),
            is_told
        );
        assert!(!is_told || served.routing.tables == plain);
    }
}

/// A tree with a service adapter on every xbar.
fn with_services(spec: &str) -> Fabric {
    let mut fabric = generate(spec).unwrap();
    for xbar in 0..fabric.map.xbars.len() as u32 {
        let (mut host, mut label) = (fabric.map.hosts[0], fabric.hosts[0].clone());
        host.mac = Mac::from_position(1_000_000 + xbar);
        host.at = Some(PortRef { xbar, port: 200 });
        label.name = format!("service{xbar}");
        fabric.map.hosts.push(host);
        fabric.hosts.push(label);
        fabric.map.xbars[xbar as usize].ports = 200;
    }
    fabric
}

#[test]
fn deep_trees_with_an_adapter_on_every_xbar_are_served_as_well_as_without() {
    for spec in ["clos:hosts=512,ports=16", "xgft:h=3;m=8,4,6;w=1,4,4", "xgft:h=4;m=6,3,2,3;w=1,2,2,2"] {
        let fabric = with_services(spec);
        let served = Subnet::new(&fabric, None).unwrap();
        let plain = Subnet::new(&without_services(&fabric), None).unwrap();
        assert!(plain.topology.host_count() < served.topology.host_count());
        for engine in RANKING {
            let (before, after) = (serve(&plain, engine).unwrap(), serve(&served, engine).unwrap());
            assert!(after.routing.layers.count == 1, "{engine:?}");
            let (before, after) =
                (bisection_of_others(&plain, &before), bisection_of_others(&served, &after));
            assert!(after >= 0.95 * before, "{spec}, {engine:?}: {before} to {after}");
        }
    }
}

/// A cluster whose rails' spines have service adapters, and how many spines that are.
fn cluster() -> impl Strategy<Value = (Fabric, u64)> {
    let switches = (6_u64..14, 2_u64..8, 3_u64..16, 1_u64..3);
    let oddities = (0_u64..6, 1_u64..3, 0_u64..4, 0_u64..2);
    let service = prop::sample::select(vec!["every", "spines"]);
    (switches, oddities, service, any::<u64>()).prop_map(|(switches, oddities, service, seed)| {
        let (leaves, spines, hosts_per_leaf, rails) = switches;
        let (missing, cables, uneven, storage) = oddities;
        let hosts = leaves * hosts_per_leaf;
        let missing = missing.min(leaves * (spines - 1) / 4);
        let uneven = if cables > 1 { uneven } else { 0 };
        let spec = format!(
            "cluster:leaves={leaves},spines={spines},hosts={hosts},missing={missing},cables={cables},uneven={uneven},\
             storage={storage},isolated=2,rails={rails},service={service},seed={seed}"
        );
        (generate(&spec).unwrap(), rails * spines)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Whatever cluster an engine serves without the service adapters of its spines, it serves with them, in one layer
    /// and without a cost to the other hosts.
    #[test]
    fn service_adapters_on_spines_cost_no_other_host_its_bandwidth((fabric, spines) in cluster()) {
        let served = Subnet::new(&fabric, None).unwrap();
        let plain = Subnet::new(&without_services(&fabric), None).unwrap();
        prop_assert_eq!(Tiers::of(&served.topology).served().len() as u64, spines);
        let engines: Vec<Engine> = RANKING.into_iter().chain(SHORTEST).collect();
        engines.par_iter().try_for_each(|&engine| cost_is_small(&plain, &served, engine))?;
    }

    /// If agents see a Clos without the service adapters of its spines, they also see one with them, and the
    /// adapters cost the other hosts nothing. If cables are missing so that it is no Clos, agents search for
    /// a root, which may be another one with the adapters.
    #[test]
    fn service_adapters_on_spines_cost_agents_nothing((fabric, _) in cluster()) {
        let served = Subnet::new(&fabric, None).unwrap();
        let plain = Subnet::new(&without_services(&fabric), None).unwrap();
        let ((whole, before), (shape, after)) = (bisection_by_agents(&plain)?, bisection_by_agents(&served)?);
        if whole == (Shape::Clos { tiers: 2 }) {
            prop_assert_eq!(shape, whole);
            prop_assert!(after >= 0.95 * before, "agents: {before} to {after}");
        }
    }
}

/// Whether an engine serves a cluster with the service adapters of its spines as well as without.
fn cost_is_small(plain: &Subnet, served: &Subnet, engine: Engine) -> Result<(), TestCaseError> {
    let Ok(before) = serve(plain, engine) else { return Ok(()) };
    let after = match serve(served, engine) {
        Ok(after) => after,
        // Routes to spines turn at leaves, which may close a circle.
        Err(_) if engine == Engine::Sssp => return Ok(()),
        Err(why) => return Err(TestCaseError::fail(format!("{engine:?}: {why}"))),
    };
    prop_assert!(after.routing.layers.count == 1 || SHORTEST.contains(&engine));
    let (before, after) = (bisection_of_others(plain, &before), bisection_of_others(served, &after));
    // Engines that balance while they choose routes do so unevenly in a small cluster, to the one
    // side or the other, and lash takes a second layer only if that is worth much.
    let share = match engine {
        Engine::Lash => 0.6,
        _ if SHORTEST.contains(&engine) => 0.85,
        _ => 0.95,
    };
    prop_assert!(after >= share * before, "{engine:?}: {before} to {after}");
    Ok(())
}

/// The name of a cluster without service adapters.
fn plain_cluster() -> impl Strategy<Value = String> {
    let switches = (6_u64..24, 2_u64..12, 4_u64..20, 1_u64..3);
    let oddities = (0_u64..8, 1_u64..4, 0_u64..4, 0_u64..4, any::<u64>());
    (switches, oddities).prop_map(|(switches, (missing, cables, uneven, storage, seed))| {
        let (leaves, spines, hosts_per_leaf, rails) = switches;
        let (hosts, missing) = (leaves * hosts_per_leaf, missing.min(leaves * (spines - 1) / 4));
        let uneven = if cables > 1 { uneven } else { 0 };
        format!(
            "cluster:leaves={leaves},spines={spines},hosts={hosts},missing={missing},cables={cables},uneven={uneven},\
             storage={storage},rails={rails},seed={seed}"
        )
    })
}

/// The name of a tree of three tiers without service adapters.
fn plain_tree() -> impl Strategy<Value = String> {
    (8_u64..14, 3_u64..7, 3_u64..7, 2_u64..7, 2_u64..6).prop_map(|(hosts, leaves, branches, mids, tops)| {
        format!("xgft:h=3;m={hosts},{leaves},{branches};w=1,{mids},{tops}")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Where no engine is named, the hosts of a cluster get as much of its cables whether its switches have service
    /// adapters or not, in two tiers or three.
    #[test]
    fn the_best_serves_hosts_as_well_beside_service_adapters(spec in prop_oneof![plain_cluster(), plain_tree()]) {
        let plain = Subnet::new(&generate(&spec).unwrap(), None).unwrap();
        let fabric = generate(&format!("{spec};service=every")).unwrap();
        let served = Subnet::new(&fabric, None).unwrap();
        let choose = |subnet: &Subnet| {
            best::choose(subnet, &Settings::default(), &()).map_err(|why| TestCaseError::fail(why.to_string()))
        };
        let (before, after) = (bisection(&plain, &choose(&plain)?), choose(&served)?);
        prop_assert!(after.routing.layers.count == 1);
        let mut hosts = crate::hosts_in_order(&served.topology);
        hosts.retain(|&host| fabric.hosts[host as usize].description != "Aggregation Node");
        let routes = TableRoutes::new(&served, &after.routing.tables);
        let after = Quality::measure_among(&routes, &hosts, 1).effective_bisection;
        prop_assert!(after >= 0.95 * before, "{before} to {after}");
    }
}

/// A plain cluster or tree, and the cables that fail later on.
fn cables_that_fail() -> impl Strategy<Value = (String, Vec<prop::sample::Index>)> {
    (prop_oneof![plain_cluster(), plain_tree()], prop::collection::vec(any::<prop::sample::Index>(), 1..6))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Whatever cables fail, entries by which xbars above the leaves are reached close no circle with any others,
    /// whether tables are computed anew or mended.
    #[test]
    fn entries_to_xbars_themselves_close_no_circle((spec, failed) in cables_that_fail()) {
        let whole = generate(&spec).unwrap();
        let before = Subnet::new(&whole, None).unwrap();
        let mut fabric = whole.clone();
        for index in failed {
            fabric.map.cables.remove(index.index(fabric.map.cables.len()));
        }
        let subnet = Subnet::new(&fabric, None).unwrap();
        let rules = ProofRules { max_hops: 64, xbar_destinations: true };
        for engine in [Engine::Ftree, Engine::Dmodc, Engine::Updn, Engine::Dnup] {
            let previous = engine.compute(&before, &Settings::default()).ok().map(|of| of.tables);
            for previous in [None, previous] {
                let settings = Settings { previous, ..Settings::default() };
                let Ok(tables) = engine.compute(&subnet, &settings).map(|of| of.tables) else { continue };
                let proof = prove_tables(&subnet, &tables, &Layers::single(), &rules);
                let circle = proof.violations.iter().find(|violation| {
                    matches!(violation, TableViolation::Deadlock { .. } | TableViolation::Loop { .. })
                });
                prop_assert_eq!(circle, None, "{:?}", engine);
                for end in 0..subnet.topology.xbar_count() as u32 {
                    let own = tables.of_slot(subnet.destinations.slot_of_xbar(end));
                    for slot in subnet.destinations.host_slots_of(end) {
                        let lacks = |row: &[u8]| -> Vec<u32> {
                            let all = (0..).zip(row).filter(|&(xbar, &port)| xbar != end && port == Tables::NONE);
                            all.map(|(xbar, _)| xbar).collect()
                        };
                        prop_assert_eq!(lacks(own), lacks(tables.of_slot(slot)), "{:?} to {}", engine, end);
                    }
                }
            }
        }
    }
}
