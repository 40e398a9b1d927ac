use mapper_fabric::generate;
use proptest::prelude::*;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::engines::{Engine, Routing, Settings};
use crate::proof::{ProofRules, TableViolation, prove_service_levels, prove_tables};
use crate::tables::ServiceLevels;

fn tables(subnet: &Subnet, engine: Engine, settings: &Settings) -> Tables {
    engine.compute(subnet, settings).unwrap().tables
}

/// The transition where all tables use one layer.
fn in_one_layer(subnet: &Subnet, tables: &[&Tables], new: &Tables) -> Transition {
    transition(subnet, Former { tables, layers: Some(&[Layers::single()]) }, new, &Layers::single())
}

/// A ring whose routes never cross one of its cables: that behind this xbar.
fn ring_cut_at(subnet: &Subnet, cut: u32) -> Tables {
    let count = subnet.topology.xbar_count() as u32;
    let mut tables = Tables::empty(count as usize, subnet.destinations.slot_count());
    for to in 0..count {
        for slot in subnet.destinations.slots_of(to) {
            for xbar in 0..count {
                let along = |xbar: u32| (xbar + count - cut - 1) % count;
                let next = match along(xbar).cmp(&along(to)) {
                    std::cmp::Ordering::Less => (xbar + 1) % count,
                    std::cmp::Ordering::Greater => (xbar + count - 1) % count,
                    std::cmp::Ordering::Equal => {
                        tables.set_port(xbar, slot, subnet.port_of_slot(slot));
                        continue;
                    }
                };
                let out = subnet.topology.channels_of(xbar);
                let channel = out.into_iter().find(|&out| subnet.topology.head(out).xbar == next).unwrap();
                tables.set_port(xbar, slot, subnet.topology.tail(channel).port);
            }
        }
    }
    tables
}

#[test]
fn what_stays_or_only_comes_is_not_emptied() {
    let subnet = Subnet::new(&generate("clos:hosts=16,ports=4").unwrap(), None).unwrap();
    let new = tables(&subnet, Engine::Updn, &Settings::default());
    let nothing = Tables::empty(new.xbar_count(), new.slot_count());
    for old in [&new, &nothing] {
        assert_eq!(in_one_layer(&subnet, &[old], &new), Transition::default());
    }
}

#[test]
fn only_hosts_to_which_several_xbars_turn_round_are_emptied_first() {
    let subnet = Subnet::new(&generate("ring:n=6,hosts=1").unwrap(), None).unwrap();
    let emptied = |from, to| {
        let (old, new) = (ring_cut_at(&subnet, from), ring_cut_at(&subnet, to));
        in_one_layer(&subnet, &[&old], &new).emptied_first
    };
    // The cut moves from the cable behind xbar 0 to the next one. On the way to the host of xbar 1 all
    // other xbars turn round, so that frames could go to and fro between two xbars of which one is new.
    // On the way to all other hosts only xbar 1 turns round.
    let of_the_second: Vec<u32> = subnet.destinations.slots_of(1).collect();
    let first = emptied(0, 1);
    assert!(first.len() == 1 && of_the_second.contains(&first[0]), "{first:?}");
    // Three cables on, three xbars turn round to every host.
    assert_eq!(emptied(0, 3).len(), 6);
}

/// A fabric, and the same without one of its cables.
fn whole_and_cut(spec: &str, cut: usize) -> [Subnet; 2] {
    let whole = generate(spec).unwrap();
    let mut fabric = whole.clone();
    fabric.map.cables.remove(cut % fabric.map.cables.len());
    [whole, fabric].map(|fabric| Subnet::new(&fabric, None).unwrap())
}

#[test]
fn no_engine_has_hosts_wait_after_a_cable_of_a_tree_failed() {
    for spec in ["clos:hosts=72,ports=12", "xgft:h=3;m=3,3,4;w=1,3,3"] {
        for cut in [0, 7, 20] {
            let [whole, cut] = whole_and_cut(spec, cut);
            for engine in Engine::ALL {
                let Ok(old) = engine.compute(&whole, &Settings::default()) else { continue };
                let settings = Settings { previous: Some(old.tables.clone()), ..Settings::default() };
                let new = engine.compute(&cut, &settings).unwrap();
                let layers = Some(std::slice::from_ref(&old.layers));
                let found =
                    transition(&cut, Former { tables: &[&old.tables], layers }, &new.tables, &new.layers);
                let emptied = found.emptied_first.len();
                assert_eq!(emptied, 0, "{engine} on {spec}: {} layers", new.layers.count);
                // With the entries that change last still as before, the new tables close no circle.
                let mut first = new.tables.clone();
                for &(slot, xbar) in &found.last {
                    first.set_port(xbar, slot, old.tables.port(xbar, slot));
                }
                let layers = Some(std::slice::from_ref(&new.layers));
                let then = transition(&cut, Former { tables: &[&first], layers }, &new.tables, &new.layers);
                assert_eq!(then, Transition::default(), "{engine} on {spec}");
            }
        }
    }
}

#[test]
fn frames_that_are_under_way_by_tables_from_before_count_as_well() {
    let [whole, cut] = whole_and_cut("clos:hosts=72,ports=12", 0);
    let old = tables(&whole, Engine::Minhop, &Settings::default());
    let settings = Settings { previous: Some(old.clone()), ..Settings::default() };
    let new = tables(&cut, Engine::Minhop, &settings);
    let found = in_one_layer(&cut, &[&old], &new);
    assert!(!found.last.is_empty());
    let mut first = new.clone();
    for &(slot, xbar) in &found.last {
        first.set_port(xbar, slot, old.port(xbar, slot));
    }
    // Entries that had to change last still do, as long as frames may come there by the tables of before.
    assert_eq!(in_one_layer(&cut, &[&first, &old], &new), found);
    assert_eq!(in_one_layer(&cut, &[&first, &first], &new), Transition::default());
    // Nothing is emptied that could keep frames of before out of the way.
    let ring = Subnet::new(&generate("ring:n=6,hosts=1").unwrap(), None).unwrap();
    let [before, in_force, new] = [3, 0, 1].map(|cut| ring_cut_at(&ring, cut));
    assert!(in_one_layer(&ring, &[&in_force, &before], &new).must_wait);
    assert!(!in_one_layer(&ring, &[&in_force], &new).must_wait);
}

proptest! {
    /// Whatever switches took their new entries: what is in force has no loop and no circle.
    #[test]
    fn no_mixture_of_the_tables_of_a_phase_deadlocks(
        (from, to) in (0..6_u32, 0..6_u32),
        phase in 0..3_u8,
        done in prop::collection::vec(any::<bool>(), 6 * 12),
    ) {
        let subnet = Subnet::new(&generate("ring:n=6,hosts=1").unwrap(), None).unwrap();
        let (old, new) = (ring_cut_at(&subnet, from), ring_cut_at(&subnet, to));
        let emptied = in_one_layer(&subnet, &[&old], &new).emptied_first;
        let mut mixed = old.clone();
        for slot in 0..new.slot_count() as u32 {
            for xbar in 0..6 {
                let (old, new) = (old.port(xbar, slot), new.port(xbar, slot));
                let is_emptied = emptied.contains(&slot) && old != new;
                let empty = if is_emptied { Tables::NONE } else { old };
                let changed = if is_emptied { Tables::NONE } else { new };
                let steps = [old, empty, changed, new];
                let step = usize::from(phase) + usize::from(done[(slot * 6 + xbar) as usize]);
                mixed.set_port(xbar, slot, steps[step]);
            }
        }
        let rules = ProofRules { max_hops: 64, xbar_destinations: false };
        let proof = prove_tables(&subnet, &mixed, &Layers::single(), &rules);
        let bad = proof.violations.iter().find(|violation| {
            matches!(violation, TableViolation::Deadlock { .. } | TableViolation::Loop { .. })
        });
        prop_assert!(bad.is_none(), "{}", proof);
    }
}

/// A torus and its tables in several layers, and the same without a cable.
fn layered(engine: Engine, cut: usize) -> (Subnet, [Routing; 2]) {
    let [whole, cut] = whole_and_cut("torus:x=5,y=5,z=1,hosts=1", cut);
    let old = engine.compute(&whole, &Settings::default()).unwrap();
    let settings = Settings { previous: Some(old.tables.clone()), ..Settings::default() };
    let new = engine.compute(&cut, &settings).unwrap();
    assert!(new.layers.count > 1, "{engine}");
    (cut, [old, new])
}

/// How many slots are emptied first if hosts were told these layers.
fn emptied(subnet: &Subnet, [old, new]: &[Routing; 2], layers: Option<&[Layers]>) -> Vec<u32> {
    transition(subnet, Former { tables: &[&old.tables], layers }, &new.tables, &new.layers).emptied_first
}

#[test]
fn hosts_of_a_torus_that_keep_their_layers_need_not_wait_for_a_failed_cable() {
    for cut in [0, 7, 20] {
        let (subnet, routings) = layered(Engine::Torus, cut);
        let told = [routings[0].layers.clone()];
        assert_eq!(emptied(&subnet, &routings, Some(&told)), Vec::<u32>::new(), "cable {cut}");
        // Whoever does not know their layers has all of them wait to whom routes change.
        let [old, new] = &routings;
        let changed = (0..new.tables.slot_count() as u32).filter(|&slot| {
            let is_host = matches!(subnet.destinations.end(slot), SlotEnd::Host { .. });
            is_host && old.tables.of_slot(slot) != new.tables.of_slot(slot)
        });
        assert_eq!(emptied(&subnet, &routings, None), changed.collect::<Vec<_>>(), "cable {cut}");
    }
}

proptest! {
    /// Whatever switches took their new entries, as long as hosts use the layers that they were told.
    #[test]
    fn no_mixture_of_tables_in_several_layers_deadlocks(
        engine in prop::sample::select(vec![Engine::Torus, Engine::Lash, Engine::Dfsssp]),
        (cut, is_known) in (0..50_usize, any::<bool>()),
        phase in 0..3_u8,
        seed in any::<u64>(),
    ) {
        let (subnet, routings) = layered(engine, cut);
        let [old, new] = &routings;
        let told = [old.layers.clone()];
        let emptied = emptied(&subnet, &routings, is_known.then_some(&told[..]));
        let (xbars, slots) = (new.tables.xbar_count() as u32, new.tables.slot_count() as u32);
        let in_layers = || {
            let mut levels = ServiceLevels::new(&subnet);
            for from in 0..xbars {
                for slot in 0..slots {
                    let SlotEnd::Host { host, .. } = subnet.destinations.end(slot) else { continue };
                    let to = subnet.xbar_of_host(host).unwrap();
                    levels.add(from, slot, old.layers.service_level(from, to));
                }
            }
            levels
        };
        let rules = ProofRules { max_hops: 64, xbar_destinations: false };
        let deadlock = |tables: &Tables, levels| {
            let proof = prove_service_levels(&subnet, tables, &levels, &rules);
            let is_bad = |bad: &&TableViolation| {
                matches!(bad, TableViolation::Deadlock { .. } | TableViolation::Loop { .. })
            };
            proof.violations.iter().find(is_bad).map(|bad| bad.describe(&subnet))
        };
        // Where frames in old layers close a circle by the new tables, they do as soon as the last entries are filled.
        prop_assume!(phase < 2 || deadlock(&new.tables, in_layers()).is_none());
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut mixed = old.tables.clone();
        for slot in 0..slots {
            for xbar in 0..xbars {
                let (old, new) = (old.tables.port(xbar, slot), new.tables.port(xbar, slot));
                let is_emptied = emptied.contains(&slot) && old != new;
                let empty = if is_emptied { Tables::NONE } else { old };
                let changed = if is_emptied { Tables::NONE } else { new };
                let step = usize::from(phase) + usize::from(rng.random_bool(0.5));
                mixed.set_port(xbar, slot, [old, empty, changed, new][step]);
            }
        }
        let bad = deadlock(&mixed, in_layers());
        prop_assert!(bad.is_none(), "{engine}: {bad:?}");
    }
}
