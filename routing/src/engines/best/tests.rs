use super::choice::{self, NEARLY, TablesCandidate};
use super::plan::{Effort, Size};
use super::*;
use crate::engines::{Proof, Setting};
use crate::fabrics::random;
use crate::{Bisection, Mean, Quality, TableRoutes};
use mapper_fabric::generate;
use mapper_proto::map::Fabric;
use proptest::prelude::*;

fn choose(subnet: &Subnet, settings: &Settings) -> Result<Selection, NotRouted> {
    super::choose(subnet, settings, &())
}

fn bisection(subnet: &Subnet, selection: &Selection) -> f64 {
    measured(subnet, selection).0
}

/// The effective bisection and its standard error.
fn measured(subnet: &Subnet, selection: &Selection) -> (f64, f64) {
    let quality = Quality::measure(&TableRoutes::new(subnet, &selection.routing.tables), 1);
    (quality.effective_bisection, quality.effective_bisection_error)
}

#[test]
fn every_engine_has_its_place() {
    let mut sorted = ORDER;
    sorted.sort_unstable();
    assert_eq!(sorted, Engine::ALL);
}

#[test]
fn the_others_say_what_they_would_give_or_why_they_do_not_serve() {
    let subnet = Subnet::new(&generate("hypercube:d=4,hosts=2").unwrap(), None).unwrap();
    let served = choose(&subnet, &Settings::default()).unwrap();
    let named: Vec<Engine> = served.tried.iter().map(|tried| tried.engine).collect();
    let all: Vec<Engine> = ORDER.into_iter().filter(|&engine| engine != served.engine).collect();
    assert_eq!(named, all);
    let (best, error) = measured(&subnet, &served);
    for tried in &served.tried {
        assert!(!tried.why_not.to_string().is_empty(), "{tried:?}");
        let other = tried.why_not.effective_bisection();
        assert!(other.is_none_or(|other| other <= best + 3.0 * error), "{tried:?}");
    }
    assert!(served.tried.iter().filter(|tried| tried.why_not.effective_bisection().is_some()).count() > 1);
}

#[test]
fn one_layer_is_allowed_unless_more_are() {
    let subnet = Subnet::new(&generate("torus:x=5,y=5,hosts=2").unwrap(), None).unwrap();
    let one = choose(&subnet, &Settings::default()).unwrap();
    assert_eq!(one.routing.layers.count, 1);
    let more = choose(&subnet, &Settings { max_layers: Some(4), ..Settings::default() }).unwrap();
    assert!((2..=4).contains(&more.routing.layers.count));
    assert!(bisection(&subnet, &more) > bisection(&subnet, &one));
    let shifted = choose(&subnet, &Settings { first_layer: 3, ..Settings::default() }).unwrap();
    assert_eq!((shifted.routing.layers.first, shifted.routing.layers.count), (3, 1));
}

#[test]
fn who_does_not_obey_what_is_set_is_tried_only_if_nobody_else_serves() {
    let subnet = Subnet::new(&generate("clos:hosts=8,ports=4").unwrap(), None).unwrap();
    let xbars = 0..subnet.topology.xbar_count() as u32;
    let spines: Vec<u32> = xbars.filter(|&xbar| !subnet.is_leaf(xbar)).collect();
    let settings = Settings { roots: Some(spines), ..Settings::default() };
    let served = choose(&subnet, &settings).unwrap();
    assert!(served.engine.obeys(&settings).contains(&Setting::Roots), "{}", served.engine);
    let nue = served.tried.iter().find(|tried| tried.engine == Engine::Nue).unwrap();
    assert!(
        nue.why_not.is_left_out() && nue.why_not.to_string().contains("roots: no effect on nue"),
        "{nue:?}"
    );
    // On a ring no routes from ranks join all pairs without a credit loop.
    let subnet = Subnet::new(&generate("ring:n=5,hosts=1").unwrap(), None).unwrap();
    let settings = Settings { port_order: [(0, vec![1, 2])].into(), ..Settings::default() };
    let served = choose(&subnet, &settings).unwrap();
    assert!(!served.engine.obeys(&settings).contains(&Setting::PortOrder), "{}", served.engine);
}

#[test]
fn what_takes_far_longer_waits() {
    let subnet = Subnet::new(&generate("xgft:h=2;m=18,36;w=1,18").unwrap(), None).unwrap();
    let plan = Plan::new(&subnet, &Settings::default());
    assert_eq!(plan.rounds().count(), 1, "a small fabric");
    let large = Size {
        entries: 1 << 30,
        addresses: 1 << 16,
        channels: 1 << 18,
        leaves: 1 << 11,
        turns: 1 << 24,
        layers: 1,
    };
    assert_eq!(large.effort(Engine::Ftree), Effort::Little);
    assert_eq!(large.effort(Engine::Dnup), Effort::More);
    assert_eq!(large.effort(Engine::Nue), Effort::FarMore);
}

/// A candidate of an engine with so many layers, so good, and measured with an error of 0.001.
fn candidate(
    subnet: &Subnet,
    engine: Engine,
    layers: u8,
    bisection: f64,
    changed: Option<u64>,
) -> TablesCandidate {
    let mut selection =
        crate::engines::select(subnet, &[Engine::Updn], &Settings::default(), Proof::Required).unwrap();
    selection.engine = engine;
    selection.routing.layers.count = layers;
    let bisection = Bisection { mean: bisection, error: 0.001, of_others: bisection, of_hosts: None };
    TablesCandidate { selection, alike: Vec::new(), bisection, changed }
}

/// Which of some candidates is chosen.
fn chosen(candidates: Vec<TablesCandidate>, plan: &Plan) -> Engine {
    choice::choose(candidates, Vec::new(), plan).unwrap().engine
}

#[test]
fn what_is_as_good_as_can_be_measured_is_chosen_by_layers_and_then_for_being_simpler() {
    let subnet = Subnet::new(&generate("clos:hosts=8,ports=4").unwrap(), None).unwrap();
    let plan = Plan::new(&subnet, &Settings::default());
    let of = |tried: &[(Engine, u8, f64)]| {
        let each = |&(engine, layers, bisection): &(Engine, u8, f64)| {
            candidate(&subnet, engine, layers, bisection, None)
        };
        let forth = chosen(tried.iter().map(each).collect(), &plan);
        let back = chosen(tried.iter().rev().map(each).collect(), &plan);
        assert_eq!(forth, back, "the order of candidates decides nothing");
        forth
    };
    use Engine::{Dfsssp, Ftree, Nue, Updn};
    assert_eq!(of(&[(Nue, 1, 0.524), (Updn, 1, 0.523)]), Updn);
    assert_eq!(of(&[(Dfsssp, 4, 0.739), (Nue, 1, 0.738)]), Nue);
    assert_eq!(of(&[(Nue, 1, 0.738), (Ftree, 1, 0.708)]), Nue);
    // An engine that is as good as the second best may be worse than the best.
    assert_eq!(of(&[(Nue, 1, 0.527), (Dfsssp, 1, 0.5255), (Ftree, 1, 0.5239)]), Dfsssp);
}

#[test]
fn where_tables_were_in_force_what_changes_least_is_taken_if_it_is_nearly_as_good() {
    let subnet = Subnet::new(&generate("clos:hosts=8,ports=4").unwrap(), None).unwrap();
    let plan = Plan::new(&subnet, &Settings::default());
    let of = |kept: f64| {
        let kept = candidate(&subnet, Engine::File, 1, kept, Some(3));
        chosen(vec![kept, candidate(&subnet, Engine::Nue, 1, 0.738, Some(576))], &plan)
    };
    assert_eq!((of(0.72), of(0.6)), (Engine::File, Engine::Nue));
}

/// What an engine that was tried beside the one that serves would give.
fn given(served: &Selection, engine: Engine) -> Option<f64> {
    served.tried.iter().find(|tried| tried.engine == engine)?.why_not.effective_bisection()
}

#[test]
fn what_engines_compute_alike_is_told_of_each() {
    // On a whole tree all engines that rank compute D-mod-K, entry by entry or only where frames pass.
    let subnet = Subnet::new(&generate("xgft:h=2;m=6,6;w=1,6").unwrap(), None).unwrap();
    let served = choose(&subnet, &Settings::default()).unwrap();
    assert_eq!(
        (served.engine, served.bisection.map(|one| one.mean)),
        (Engine::Ftree, given(&served, Engine::Updn))
    );
}

#[test]
fn the_best_and_the_next_are_measured_as_the_report_measures_them() {
    for (spec, are_few) in [
        ("cluster:leaves=12,spines=8,hosts=132,missing=3,cables=2,service=every", true),
        ("hypercube:d=4,hosts=2", true),
        ("xgft:h=2;m=18,18;w=1,9", false),
    ] {
        let subnet = Subnet::new(&generate(spec).unwrap(), None).unwrap();
        let served = choose(&subnet, &Settings::default()).unwrap();
        assert_eq!(served.bisection.unwrap().mean, bisection(&subnet, &served), "{spec}");
        let tried = || {
            served.tried.iter().filter_map(|tried| Some((tried.engine, tried.why_not.effective_bisection()?)))
        };
        let (next, told) = tried().max_by(|one, other| one.1.total_cmp(&other.1)).unwrap();
        let alone = crate::engines::select(&subnet, &[next], &Settings::default(), Proof::Required).unwrap();
        assert_eq!(told, bisection(&subnet, &alone), "{next} on {spec}");
        let matchings = Matchings::draw(&subnet, Settings::default().seed);
        for (engine, told) in tried() {
            let alone =
                crate::engines::select(&subnet, &[engine], &Settings::default(), Proof::Required).unwrap();
            let routes = TableRoutes::proved(&subnet, &alone.routing.tables, alone.proof.max_hops);
            let first = matchings.begin(&routes).bisection();
            let is_far_behind = first.mean + 8.0 * first.error < told.max(served.bisection.unwrap().mean);
            let measured = bisection(&subnet, &alone);
            // Only among many hosts a part of the matchings is enough to leave an engine behind.
            assert!(
                told == measured || !are_few && is_far_behind && told == first.mean,
                "{engine} on {spec}: {told}, {measured}, {}",
                first.mean
            );
        }
    }
}

#[test]
fn where_there_are_service_adapters_hosts_alone_decide_among_those_that_are_hardly_worse() {
    let subnet = Subnet::new(&generate("clos:hosts=8,ports=4").unwrap(), None).unwrap();
    let plan = Plan::new(&subnet, &Settings::default());
    let of = |bisection: f64, of_hosts: f64| {
        let mut nue = candidate(&subnet, Engine::Nue, 1, bisection, None);
        let mut ftree = candidate(&subnet, Engine::Ftree, 1, 0.691, None);
        nue.bisection.of_hosts = Some(Mean { value: of_hosts, error: 0.001 });
        ftree.bisection.of_hosts = Some(Mean { value: 0.717, error: 0.001 });
        chosen(vec![nue, ftree], &plan)
    };
    assert_eq!(
        (of(0.690, 0.779), of(0.690, 0.718), of(0.65, 0.779)),
        (Engine::Nue, Engine::Ftree, Engine::Ftree)
    );
}

/// The fabric without one of its cables.
fn without_cable(fabric: &Fabric, cable: usize) -> Fabric {
    let mut fabric = fabric.clone();
    fabric.map.cables.remove(cable);
    fabric
}

#[test]
fn a_fabric_that_did_not_change_keeps_all_entries_and_one_that_lost_a_cable_most() {
    for spec in [
        "cluster:leaves=12,spines=8,hosts=132,missing=3,cables=2,service=every",
        "xgft:h=2;m=6,6;w=1,6",
        "torus:x=4,y=4,hosts=2",
        "random:xbars=12,ports=12,hosts=30,links=24,seed=2",
    ] {
        let fabric = generate(spec).unwrap();
        let subnet = Subnet::new(&fabric, None).unwrap();
        let in_force = choose(&subnet, &Settings::default()).unwrap().routing.tables;
        let settings = Settings { previous: Some(in_force.clone()), ..Settings::default() };
        let again = choose(&subnet, &settings).unwrap();
        assert_eq!(subnet.changed_entries(&again.routing.tables, &in_force), 0, "{spec}");
        let cut = Subnet::new(&without_cable(&fabric, fabric.map.cables.len() / 2), None).unwrap();
        let anew = choose(&cut, &Settings::default()).unwrap();
        let mended = choose(&cut, &settings).unwrap();
        let changed = |selection: &Selection| cut.changed_entries(&selection.routing.tables, &in_force);
        let (few, all) = (changed(&mended), changed(&anew));
        assert!(few > 0 && few <= all && few * 8 < in_force.entry_count() as u64, "{spec}: {few} of {all}");
        assert!(bisection(&cut, &mended) >= 0.9 * bisection(&cut, &anew), "{spec}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever the fabric, no engine that is named alone and uses as many layers is measurably better than
    /// the one chosen.
    #[test]
    fn no_engine_alone_is_better(seed: u64, most in 1_u8..4) {
        let subnet = Subnet::new(&Fabric { map: random(seed), ..Fabric::default() }, None).unwrap();
        let settings = Settings { max_layers: Some(most), ..Settings::default() };
        let Ok(served) = choose(&subnet, &settings) else {
            for engine in ORDER {
                prop_assert!(crate::engines::select(&subnet, &[engine], &settings, Proof::Required).is_err());
            }
            return Ok(());
        };
        prop_assert!(served.proof.holds() && served.routing.layers.count <= most);
        let best = bisection(&subnet, &served);
        for engine in ORDER {
            if let Ok(alone) = crate::engines::select(&subnet, &[engine], &settings, Proof::Required) {
                let (alone, error) = measured(&subnet, &alone);
                // If there are service adapters, the bandwidth of hosts alone decides among those that are
                // hardly worse.
                let share = if served.bisection.is_some_and(|one| one.of_hosts.is_some()) { NEARLY } else { 1.0 };
                let least = share * alone - 2.0 * error;
                prop_assert!(least <= best, "{} against {}", engine, served.engine);
            }
        }
    }
}
