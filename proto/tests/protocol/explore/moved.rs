//! Exploration while a cable is moved, and nobody lies.

use mapper_proto::explore::{ExploreSettings, Explorer};
use mapper_proto::map::{Cable, Map, PortRef};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::fabrics::{self, Kinds};
use super::oracle::{OracleFabric, drive_with, own_host, settings};

/// The fabric after one end of a cable has moved to a free port, if it has both.
fn moved(map: &Map, rng: &mut ChaCha8Rng) -> Option<Map> {
    let mut after = map.clone();
    if map.cables.is_empty() {
        return None;
    }
    let cable = after.cables.swap_remove(rng.random_range(0..map.cables.len()));
    let in_use = |at: PortRef| {
        map.hosts.iter().any(|host| host.at == Some(at))
            || map.cables.iter().any(|it| it.a == at || it.b == at)
    };
    let all =
        (0..).zip(&map.xbars).flat_map(|(xbar, it)| (0..it.ports).map(move |port| PortRef { xbar, port }));
    let free: Vec<PortRef> = all.filter(|&at| !in_use(at)).collect();
    let to = *free.get(rng.random_range(0..free.len().max(1)))?;
    let stays = if rng.random_bool(0.5) { cable.a } else { cable.b };
    after.cables.push(Cable::new(stays, to));
    after.cables.sort_unstable();
    Some(after)
}

/// How many of these fabrics had a cable to move. Where nobody lies, a map has no contested ports whenever it was moved:
/// nobody looks there any more, so that what is cabled there later would never be found.
fn moving_hides_no_port(kinds: Kinds, seeds: u64) -> usize {
    let settings = ExploreSettings { prove_tags: true, ..settings(8) };
    let mut tried = 0;
    for seed in 0..seeds {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let map = fabrics::random(&mut rng, kinds, 0, 8);
        let Some(later) = moved(&map, &mut rng) else { continue };
        tried += 1;
        let (mut before, mut after) = (OracleFabric::new(&map, 0), OracleFabric::new(&later, 0));
        let explorer = Explorer::new(&settings, own_host(&before, 0), seed);
        let quiet = drive_with(&mut before, 0, &settings, explorer, |_, outcome| outcome);
        // It is moved while the exploration asks, or just before it ends.
        let moved_at = rng.random_range(0..=quiet.cost.total());
        let explorer = Explorer::new(&settings, own_host(&before, 0), seed);
        let mut asked = 0;
        let run = drive_with(&mut before, 0, &settings, explorer, |request, outcome| {
            asked += 1;
            if asked <= moved_at { outcome } else { after.answer(0, request) }
        });
        // If there is no map, what was found did not make one.
        if let Ok(found) = run.map {
            assert_eq!(found.contested, [], "{kinds:?} fabric {seed}, moved at {moved_at}: {found:?}");
        }
    }
    tried
}

#[test]
fn a_moved_cable_makes_no_port_one_behind_which_nobody_is_believed() {
    for kinds in [Kinds::Plain, Kinds::Mixed, Kinds::Tagged] {
        assert!(moving_hides_no_port(kinds, 600) > 300);
    }
}
