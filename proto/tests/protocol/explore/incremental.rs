//! Remapping of what changed alone.

use std::collections::BTreeMap;
use std::time::Duration;

use mapper_proto::explore::{ExploreSettings, Explorer};
use mapper_proto::map::{Cable, Map, PortRef, is_isomorphic};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::fabrics::{self, Builder, Kinds};
use super::oracle::{OracleFabric, Run, drive, explore, own_host, settings};

/// Maps `before`, then remaps `after` with these suspects (ports of the fabric, told in the numbering
/// of the first map), and requires the map that a full exploration makes. Both runs.
fn remap(before: &Map, after: &Map, suspects: &[PortRef], plain_ports: u8) -> (Run, Run) {
    remap_with(&settings(plain_ports), before, after, suspects)
}

/// Maps and remaps as [`remap`] does, where no tag is believed that is not proved.
fn remap_proving(before: &Map, after: &Map, suspects: &[PortRef], plain_ports: u8) -> (Run, Run) {
    remap_with(&ExploreSettings { prove_tags: true, ..settings(plain_ports) }, before, after, suspects)
}

fn remap_with(settings: &ExploreSettings, before: &Map, after: &Map, suspects: &[PortRef]) -> (Run, Run) {
    let full = explore(&mut OracleFabric::new(before, 0), 0, settings);
    let previous = full.map.as_ref().unwrap();
    let suspects: Vec<PortRef> = suspects.iter().filter_map(|&at| translate(before, previous, at)).collect();
    let mut fabric = OracleFabric::new(after, 0);
    let explorer =
        Explorer::incremental(settings, own_host(&fabric, 0), 9, previous, &BTreeMap::new(), &suspects);
    let run = drive(&mut fabric, 0, settings, explorer);
    let found = run.map.as_ref().unwrap();
    let anew = explore(&mut fabric, 0, settings).map.unwrap();
    is_isomorphic(found, &anew).unwrap_or_else(|why| panic!("{why}"));
    is_isomorphic(found, &fabric.knowable(0)).unwrap();
    (full, run)
}

/// A port of the real fabric in the numbering of a map of it, by walking both from the first host.
fn translate(real: &Map, found: &Map, port: PortRef) -> Option<PortRef> {
    let far = |map: &Map, at: PortRef| {
        map.cables.iter().find_map(|c| if c.a == at { Some(c.b) } else { (c.b == at).then_some(c.a) })
    };
    let own = real.hosts[0].mac;
    let at = |map: &Map| map.hosts.iter().find(|host| host.mac == own).unwrap().at.unwrap();
    let mut twins = vec![(at(real), at(found))];
    let mut next = 0;
    while next < twins.len() {
        let (a, b) = twins[next];
        next += 1;
        let in_found = |p: u8| PortRef { xbar: b.xbar, port: p.wrapping_sub(a.port).wrapping_add(b.port) };
        if a.xbar == port.xbar {
            return Some(in_found(port.port));
        }
        for p in 0..real.xbars[a.xbar as usize].ports {
            if let Some(over) = far(real, PortRef { xbar: a.xbar, port: p })
                && let Some(over_found) = far(found, in_found(p))
                && twins.iter().all(|(known, _)| known.xbar != over.xbar)
            {
                twins.push((over, over_found));
            }
        }
    }
    None
}

fn without(map: &Map, cable: Cable) -> Map {
    let mut map = map.clone();
    map.cables.retain(|&c| c != cable);
    map
}

#[test]
fn one_cable_of_a_clos_costs_little() {
    for tagged in [true, false] {
        let whole = fabrics::clos2(16, 16, tagged);
        let cable = whole.cables[37];
        let cut = without(&whole, cable);
        // Room for a cable to move to: the last leaf has lost a cable before.
        let spare = whole.cables[16 * 8 - 1];
        let before = without(&whole, spare);
        let mut moved = without(&before, cable);
        moved.cables.push(Cable::new(cable.b, spare.a));
        moved.cables.sort_unstable();
        for (name, before, after, suspects) in [
            ("cut", &whole, &cut, vec![cable.a, cable.b]),
            ("cut, seen from one end", &whole, &cut, vec![cable.b]),
            ("mended", &cut, &whole, vec![cable.a, cable.b]),
            ("moved", &before, &moved, vec![cable.a, cable.b, spare.a]),
        ] {
            let (full, run) = remap(before, after, &suspects, 16);
            let share = run.cost.total() as f64 / full.cost.total() as f64;
            assert!(share < 0.05, "{name}, tagged {tagged}: {} of {}", run.cost.total(), full.cost.total());
        }
    }
}

#[test]
fn a_host_that_moves_where_nobody_looked_means_a_full_exploration() {
    let before = fabrics::clos2(4, 8, true);
    let mut after = before.clone();
    let old = after.hosts[5].at.unwrap();
    after.hosts.retain(|host| host.at != Some(PortRef { xbar: 2, port: 1 }));
    let mover = after.hosts.iter().position(|host| host.at == Some(old)).unwrap();
    after.hosts[mover].at = Some(PortRef { xbar: 2, port: 1 });
    // Only the new place is suspect, so the old one is still believed.
    remap(&before, &after, &[PortRef { xbar: 2, port: 1 }], 8);
}

#[test]
fn nothing_suspect_costs_nothing() {
    let map = fabrics::clos2(4, 8, false);
    let (_, run) = remap(&map, &map, &[], 8);
    assert_eq!(run.cost.total(), 0);
}

#[test]
fn random_changes_are_found() {
    for seed in 0..300 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let kinds = [Kinds::Plain, Kinds::Tagged, Kinds::Mixed][seed as usize % 3];
        let before = fabrics::random(&mut rng, kinds, 0, 8);
        let mut after = before.clone();
        let mut suspects = Vec::new();
        for _ in 0..rng.random_range(0..3) {
            if !after.cables.is_empty() {
                let cable = after.cables.swap_remove(rng.random_range(0..after.cables.len()));
                suspects.extend([cable.a, cable.b]);
            }
        }
        if after.hosts.len() > 1 && rng.random_bool(0.5) {
            let host = after.hosts.swap_remove(rng.random_range(1..after.hosts.len()));
            suspects.extend(host.at);
        }
        // The changes are made, and then undone.
        remap(&before, &after, &suspects, 8);
        remap_proving(&before, &after, &suspects, 8);
        if kinds == Kinds::Tagged {
            remap(&after, &before, &suspects, 8);
            remap_proving(&after, &before, &suspects, 8);
        }
    }
}

#[test]
fn a_cable_from_a_crossbar_to_itself_is_found_again() {
    for kinds in 0..8 {
        let is_tagged = |bit: u32| kinds >> bit & 1 == 1;
        let mut builder = Builder::default();
        let [near, middle, far, beyond] =
            [(16, 0), (8, 1), (4, 2), (4, 3)].map(|(ports, bit)| builder.xbar(ports, is_tagged(bit)));
        for at in [(near, 12), (near, 3), (near, 0), (middle, 4)] {
            builder.host(Some(at));
        }
        builder.cable((near, 1), (middle, 7));
        builder.cable((middle, 3), (far, 0));
        builder.cable((far, 2), (beyond, 1));
        let before = builder.map.clone();
        builder.cable((far, 1), (far, 3));
        let after = builder.map;
        let ends = [1, 3].map(|port| PortRef { xbar: far, port });
        for suspects in [&ends[..1], &ends[1..], &ends[..]] {
            remap(&before, &after, suspects, 16);
            remap_proving(&before, &after, suspects, 16);
        }
    }
}

#[test]
fn a_cable_from_a_crossbar_to_itself_is_proved_where_a_nameless_sight_leads_to_it() {
    // Its crossbar is first met as one without a name, and a second time through the cable itself.
    let mut builder = Builder::default();
    for (ports, tagged) in [(6, false), (4, true), (16, false), (4, true), (8, true), (4, true), (4, false)] {
        builder.xbar(ports, tagged);
    }
    for at in [(0, 1), (0, 2), (0, 3), (2, 0), (2, 9), (2, 12), (2, 15), (3, 3), (4, 4)] {
        builder.host(Some(at));
    }
    for (a, b) in [
        ((0, 4), (2, 10)),
        ((0, 0), (1, 2)),
        ((1, 0), (3, 1)),
        ((1, 3), (3, 0)),
        ((1, 1), (4, 5)),
        ((2, 1), (4, 7)),
        ((2, 2), (3, 2)),
        ((4, 3), (5, 0)),
        ((5, 1), (5, 3)),
        ((5, 2), (6, 1)),
    ] {
        builder.cable(a, b);
    }
    for probe_window in [1, 4, 16, 64, 256] {
        let settings = ExploreSettings { prove_tags: true, probe_window, ..settings(16) };
        let mut fabric = OracleFabric::new(&builder.map, 0);
        // Near xbars answer first.
        fabric.hop = Duration::from_micros(20);
        let found = explore(&mut fabric, 0, &settings).map.unwrap();
        is_isomorphic(&found, &fabric.knowable(0)).unwrap();
        assert!(found.contested.is_empty(), "with a window of {probe_window}: {:?}", found.contested);
    }
}

#[test]
fn a_claim_waits_for_the_proof_of_the_name_of_a_sight_on_its_way() {
    // The third crossbar is met through its own cable, by its name; by then the sight through which the way
    // there goes is still nameless, though what it answered is being proved.
    let mut builder = Builder::default();
    for (ports, tagged) in [(16, false), (6, true), (6, true), (6, false), (6, false)] {
        builder.xbar(ports, tagged);
    }
    for at in [(0, 15), (0, 4), (0, 8), (0, 11), (4, 0), (1, 1)] {
        builder.host(Some(at));
    }
    for (a, b) in [
        ((1, 0), (2, 2)),
        ((1, 5), (0, 12)),
        ((2, 0), (2, 1)),
        ((2, 3), (2, 5)),
        ((2, 4), (3, 3)),
        ((0, 1), (4, 3)),
        ((0, 6), (3, 5)),
    ] {
        builder.cable(a, b);
    }
    for host in 0..builder.map.hosts.len() {
        for probe_window in [1, 4, 16, 64, 256] {
            for hop_us in [0, 1, 5, 20, 100] {
                let settings = ExploreSettings { prove_tags: true, probe_window, ..settings(16) };
                let mut fabric = OracleFabric::new(&builder.map, 0);
                fabric.hop = Duration::from_micros(hop_us);
                let found = explore(&mut fabric, host, &settings).map.unwrap();
                is_isomorphic(&found, &fabric.knowable(host)).unwrap();
                assert!(
                    found.contested.is_empty(),
                    "{host}, {probe_window}, {hop_us}: {:?}",
                    found.contested
                );
            }
        }
    }
}
