//! Clusters as they are built: trees of two tiers whose switches carry service adapters, too.

use mapper_proto::map::Fabric;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::builder::Builder;
use super::spec::{Spec, SpecError};
use super::{MAX_HOSTS, MAX_PORTS};

/// Most cables between one leaf and one spine.
const MOST_PARALLEL: u64 = 16;

/// `cluster:leaves=L,spines=S,hosts=H[,service=every|spines|none][,missing=M][,rails=R][,cables=C][,seed=N]`: R rails
/// alike in size, each of L leaves and S spines, H hosts for all leaves of a rail, and C cables (1 unless
/// stated) between a leaf and a spine.
///
/// With `service=every`, one service adapter sits at the last port of every switch; with `service=spines`, of
/// every spine. M pairs of a leaf and a spine, drawn by the seed in each rail, have no cable; every leaf
/// keeps one at least.
pub(super) fn cluster(spec: &Spec<'_>) -> Result<Fabric, SpecError> {
    spec.only(&["leaves", "spines", "hosts", "service", "missing", "rails", "cables", "seed", "ports"])?;
    let leaves = spec.number("leaves", 1..=MAX_PORTS)?;
    let spines = spec.number("spines", 1..=MAX_PORTS)?;
    let hosts = spec.number("hosts", 0..=MAX_HOSTS)?;
    let cables = spec.optional("cables", 1..=MOST_PARALLEL)?.unwrap_or(1);
    let rails = spec.optional("rails", 1..=16)?.unwrap_or(1);
    let missing = spec.optional("missing", 0..=leaves * (spines - 1))?.unwrap_or(0);
    let seed = spec.optional("seed", 0..=u64::MAX)?.unwrap_or(1);
    let service = Service::of(spec.word("service")?.unwrap_or("none"), spec)?;
    let most_hosts = hosts.div_ceil(leaves);
    let ports = spec.ports((most_hosts + spines * cables).max(leaves * cables) + 1)?;
    spec.check_size(rails * (leaves + spines), rails * (hosts + leaves + spines))?;
    let mut builder = Builder::default();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for rail in 1..=rails {
        let first = (rail - 1) * (leaves + spines);
        (1..=leaves).for_each(|leaf| {
            builder.xbar(format!("rail{rail}-leaf{leaf}"), ports);
        });
        (1..=spines).for_each(|spine| {
            builder.xbar(format!("rail{rail}-spine{spine}"), ports);
        });
        let gaps = draw_gaps(&mut rng, leaves, spines, missing);
        for leaf in 0..leaves {
            let here = hosts / leaves + u64::from(leaf < hosts % leaves);
            builder.hosts((first + leaf) as u32, 1, here);
            for spine in (0..spines).filter(|&spine| !gaps[(leaf * spines + spine) as usize]) {
                for cable in 0..cables {
                    let up = most_hosts + spine * cables + cable + 1;
                    let down = leaf * cables + cable + 1;
                    builder.cable(((first + leaf) as u32, up), ((first + leaves + spine) as u32, down));
                }
            }
        }
        let served = match service {
            Service::Every => 0..leaves + spines,
            Service::Spines => leaves..leaves + spines,
            Service::None => 0..0,
        };
        served.for_each(|xbar| builder.host((first + xbar) as u32, ports.into()));
    }
    Ok(builder.finish())
}

/// Which switches carry a service adapter.
#[derive(Clone, Copy)]
enum Service {
    Every,
    Spines,
    None,
}

impl Service {
    fn of(word: &str, spec: &Spec<'_>) -> Result<Self, SpecError> {
        match word {
            "every" => Ok(Self::Every),
            "spines" => Ok(Self::Spines),
            "none" => Ok(Self::None),
            _ => Err(spec.bad("service", word, "every, spines or none")),
        }
    }
}

/// Which pairs of a leaf and a spine have no cable: one entry a pair, at `leaf * spines + spine`.
fn draw_gaps(rng: &mut ChaCha8Rng, leaves: u64, spines: u64, missing: u64) -> Vec<bool> {
    // Each leaf keeps the cables to one spine that is drawn for it.
    let kept: Vec<u64> = (0..leaves).map(|_| rng.random_range(0..spines)).collect();
    let mut pairs: Vec<u64> =
        (0..leaves * spines).filter(|pair| kept[(pair / spines) as usize] != pair % spines).collect();
    pairs.shuffle(rng);
    let mut gaps = vec![false; (leaves * spines) as usize];
    pairs.iter().take(missing as usize).for_each(|&pair| gaps[pair as usize] = true);
    gaps
}

#[cfg(test)]
mod tests {
    use crate::generate;

    #[test]
    fn a_cluster_has_its_service_adapters_and_its_gaps() {
        let spec = "cluster:leaves=24,spines=16,hosts=542,service=every,missing=5,cables=2,seed=3";
        let fabric = generate(spec).unwrap();
        assert_eq!(fabric.map.xbars.len(), 40);
        assert_eq!(fabric.map.hosts.len(), 542 + 40);
        assert_eq!(fabric.map.cables.len(), (24 * 16 - 5) * 2);
        assert_eq!(fabric, generate(spec).unwrap());
    }

    #[test]
    fn rails_are_apart_and_services_are_where_they_are_asked_for() {
        let fabric = generate("cluster:leaves=4,spines=2,hosts=16,service=spines,rails=3").unwrap();
        assert_eq!((fabric.map.xbars.len(), fabric.map.hosts.len()), (18, 3 * 18));
        let rail = |xbar: u32| xbar / 6;
        assert!(fabric.map.cables.iter().all(|cable| rail(cable.a.xbar) == rail(cable.b.xbar)));
    }

    #[test]
    fn a_word_that_says_no_switches_is_refused() {
        let refused = generate("cluster:leaves=4,spines=2,hosts=16,service=some").unwrap_err();
        assert!(refused.to_string().contains("every, spines or none"), "{refused}");
    }
}
