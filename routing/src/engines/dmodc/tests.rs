use mapper_fabric::generate;
use mapper_proto::map::Fabric;
use proptest::prelude::*;

use super::*;
use crate::engines::{Engine, Proof, select};
use crate::{ProofRules, Quality, TableRoutes, Tables, prove_tables};

fn serve(fabric: &Fabric, lmc: Option<u8>) -> (Subnet, Result<Routing, EngineError>) {
    let subnet = Subnet::new(fabric, lmc).unwrap();
    let routing = Dmodc.compute(&subnet, &Settings::default());
    (subnet, routing)
}

#[test]
fn whole_trees_serve_every_shift_without_congestion() {
    for spec in ["clos:hosts=128,ports=8", "clos:hosts=648,ports=36", "xgft:h=3;m=4,4,6;w=1,4,4"] {
        let (subnet, routing) = serve(&generate(spec).unwrap(), None);
        let tables = routing.unwrap().tables;
        let quality = Quality::measure(&TableRoutes::new(&subnet, &tables), 1);
        assert_eq!(quality.congestion_shift, 1, "{spec}");
    }
}

#[test]
fn what_is_no_tree_is_refused_by_the_names_of_two_leaves() {
    let (_, routing) = serve(&generate("ring:n=6,hosts=1").unwrap(), None);
    let why = routing.unwrap_err().why;
    assert_eq!(why.instead(), Some(Engine::Nue));
    assert_eq!(
        why.to_string(),
        "no way leads from xbar2 up and then down to xbar1; name the roots (--root-guid-file), or use nue"
    );
}

#[test]
fn roots_that_are_given_say_what_is_up() {
    // Each xbar has a host, so hosts do not show which way is up.
    let subnet = Subnet::new(&generate("ring:n=6,hosts=1").unwrap(), None).unwrap();
    let settings = Settings { roots: Some(vec![0]), ..Settings::default() };
    let served = select(&subnet, &[Engine::Dmodc], &settings, Proof::Required).unwrap();
    assert_eq!(served.proof.max_hops, 5, "no route passes the xbar that is opposite to the root");
}

proptest! {
    #[test]
    fn trees_that_lost_cables_are_proved_or_refused(
        cut in proptest::collection::btree_set(0..10_000_usize, 0..40), lmc in 0..2_u8,
    ) {
        let mut fabric = generate("clos:hosts=128,ports=8").unwrap();
        let cables = fabric.map.cables.len();
        let cut: std::collections::BTreeSet<usize> = cut.into_iter().map(|cable| cable % cables).collect();
        let mut number = 0..;
        fabric.map.cables.retain(|_| number.next().is_some_and(|number| !cut.contains(&number)));
        let (subnet, routing) = serve(&fabric, Some(lmc));
        if let Ok(routing) = routing {
            let rules = ProofRules { max_hops: Settings::MAX_HOPS, xbar_destinations: false };
            let proof = prove_tables(&subnet, &routing.tables, &routing.layers, &rules);
            prop_assert!(proof.holds(), "{:?}", proof.violations);
        } else {
            prop_assert!(!cut.is_empty());
        }
    }
}

#[test]
fn tables_that_are_mended_are_those_that_are_filled_where_what_was_in_force_stays() {
    let (mut mended, mut filled) = (0, 0);
    for spec in [
        "xgft:h=3;m=3,3,4;w=1,3,3",
        "clos:hosts=128,ports=8",
        "cluster:leaves=9,spines=5,hosts=60,cables=2,missing=3",
        "cluster:leaves=8,spines=4,hosts=40,service=every,missing=2",
    ] {
        for (lmc, roots) in [(0, None), (1, None), (0, Some(&[11, 12][..]))] {
            let whole = generate(spec).unwrap();
            let before = serve(&whole, Some(lmc)).1.unwrap().tables;
            for lost in 0..30 {
                let mut cut = whole.clone();
                for nth in 0..=lost % 4 {
                    cut.map.cables.swap_remove((lost * 7 + nth * 13) % (whole.map.cables.len() - 5));
                }
                let subnet = Subnet::new(&cut, Some(lmc)).unwrap();
                let by_shape = crate::Tiers::of(&subnet.topology);
                let tiers = Tiers::new(&subnet, roots, &by_shape).unwrap();
                let leaves = by_shape.leaves();
                let costs: Vec<Costs<'_>> = leaves.iter().map(|&leaf| Costs::to(&tiers, leaf)).collect();
                let numbers = &Numbers::new(&subnet, leaves, &costs);
                // Some entries of before are senseless.
                let mut before = before.clone();
                for slot in 0..lost as u32 % 3 {
                    before.set_port(slot * 5 % before.xbar_count() as u32, slot * 11, 200);
                }
                let in_force = Some(&before);
                let filling =
                    Filling { subnet: &subnet, tiers: &tiers, leaves, costs: &costs, numbers, in_force };
                let (tables, expected) = (mend::tables(&filling).unwrap(), fill::tables(&filling));
                assert_eq!(tables.changed_entries(&expected), 0, "{spec} {lmc} {lost}");
                mended += tables.changed_entries(&before);
                filled += expected.entry_count();
            }
        }
    }
    assert!(mended > 1000 && mended * 4 < filled, "{mended} of {filled}");
}

#[test]
fn tables_in_which_nearly_all_is_wrong_are_filled_anew() {
    let fabric = generate("xgft:h=3;m=8,8,8;w=1,8,8").unwrap();
    let (subnet, routing) = serve(&fabric, None);
    let tables = routing.unwrap().tables;
    let senseless = Tables::from_ports(tables.xbar_count(), vec![200; tables.entry_count()]);
    assert!(tables.entry_count() > 1 << 17);
    let settings = Settings { previous: Some(senseless), ..Settings::default() };
    assert_eq!(Dmodc.compute(&subnet, &settings).unwrap().tables, tables);
}

/// A fabric without some of its xbars, and without the cables that led to them. No host is at one.
fn without_xbars(fabric: &Fabric, gone: &[u32]) -> Fabric {
    let mut fabric = fabric.clone();
    fabric.map.cables.retain(|cable| !gone.contains(&cable.a.xbar) && !gone.contains(&cable.b.xbar));
    fabric
}

#[test]
fn trees_that_lost_switches_are_served_as_well_as_by_engines_that_count() {
    // Switches of the middle tier and of the top go one after another.
    for (spec, gone) in [
        ("xgft:h=3;m=6,6,6;w=1,6,6", &[36, 50, 73, 88, 101][..]),
        ("clos:hosts=128,ports=8", &[33, 47, 66, 79]),
        ("cluster:leaves=24,spines=16,hosts=542,missing=5,cables=2", &[25, 31]),
    ] {
        let whole = generate(spec).unwrap();
        for count in 1..=gone.len() {
            let subnet = Subnet::new(&without_xbars(&whole, &gone[..count]), None).unwrap();
            let bisection = |engine: Engine| {
                let served = select(&subnet, &[engine], &Settings::default(), Proof::Required)
                    .map_err(|why| why.to_string());
                let tables = served.unwrap().routing.tables;
                Quality::bisection(&TableRoutes::new(&subnet, &tables), 1)
            };
            let (ours, others) =
                (bisection(Engine::Dmodc), bisection(Engine::Updn).max(bisection(Engine::Ftree)));
            assert!(ours >= 0.85 * others, "{spec} without {count} switches: {ours} beside {others}");
        }
    }
}
