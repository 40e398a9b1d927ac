//! Trees as they grow over the years: no two switches of a tier are cabled alike, and some by parallel cables.

use mapper_proto::map::Fabric;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::builder::Builder;
use super::spec::{Spec, SpecError};
use super::tree::name;
use super::{MAX_HOSTS, MAX_PORTS, MAX_XBARS};

/// Most tiers.
const MAX_TIERS: u64 = 8;

/// `irregular:h=H;x=X1,..,XH;up=U1,..;hosts=N[;seed=S]`: a tree of H tiers of X1, X2 and so on xbars from the leaves up, and
/// N hosts spread over the leaves. From an xbar of tier i lead 1 to 2 Ui - 1 cables up, Ui in the mean: the first one
/// to a parent in turn, so that few stand alone, the others to parents that are drawn, perhaps to the same one again.
pub(super) fn irregular(spec: &Spec<'_>) -> Result<Fabric, SpecError> {
    spec.only(&["h", "x", "up", "hosts", "seed", "ports"])?;
    let height = spec.number("h", 2..=MAX_TIERS)? as usize;
    let xbars = spec.list_of("x", height, 1..=MAX_XBARS)?;
    let up = spec.list_of("up", height - 1, 1..=MAX_PORTS / 2)?;
    let hosts = spec.number("hosts", 0..=MAX_HOSTS)?;
    spec.check_size(xbars.iter().sum(), hosts)?;
    let mut rng = ChaCha8Rng::seed_from_u64(spec.optional("seed", 0..=u64::MAX)?.unwrap_or(1));
    let cables = draw(&xbars, &up, &mut rng);
    // The ports in use of each xbar: hosts come first, then cables in the order in which they were drawn.
    let leaves = xbars[0];
    let at_leaf = |leaf: u64| hosts / leaves + u64::from(leaf < hosts % leaves);
    let mut used: Vec<u64> = (0..leaves).map(at_leaf).collect();
    used.resize(xbars.iter().sum::<u64>() as usize, 0);
    let mut next_port = |xbar: u32| {
        used[xbar as usize] += 1;
        used[xbar as usize]
    };
    let cabled: Vec<[(u32, u64); 2]> =
        cables.into_iter().map(|ends| ends.map(|xbar| (xbar, next_port(xbar)))).collect();
    let ports = spec.ports(used.iter().copied().max().unwrap_or_default())?;
    let mut builder = Builder::default();
    for (tier, &count) in xbars.iter().enumerate() {
        (1..=count).for_each(|number| {
            builder.xbar(name(tier, height, number), ports);
        });
    }
    (0..leaves).for_each(|leaf| builder.hosts(leaf as u32, 1, at_leaf(leaf)));
    cabled.into_iter().for_each(|[low, high]| builder.cable(low, high));
    Ok(builder.finish())
}

/// The cables, each as the lower and the upper xbar.
fn draw(xbars: &[u64], up: &[u64], rng: &mut ChaCha8Rng) -> Vec<[u32; 2]> {
    let mut cables = Vec::new();
    let mut first = 0;
    for (pair, &up) in xbars.windows(2).zip(up) {
        let (lower, upper) = (pair[0], pair[1]);
        for number in 0..lower {
            let more = rng.random_range(1..2 * up) - 1;
            let parents = std::iter::once(number % upper);
            let drawn: Vec<u64> = (0..more).map(|_| rng.random_range(0..upper)).collect();
            let of = |parent: u64| [(first + number) as u32, (first + lower + parent) as u32];
            cables.extend(parents.chain(drawn).map(of));
        }
        first += lower;
    }
    cables
}

#[cfg(test)]
mod tests {
    use crate::generate;

    #[test]
    fn tiers_have_the_size_that_is_asked_for_and_cables_are_uneven_and_parallel() {
        let spec = "irregular:h=3;x=128,64,24;up=3,4;hosts=512";
        let fabric = generate(spec).unwrap();
        assert_eq!((fabric.map.xbars.len(), fabric.map.hosts.len()), (216, 512));
        assert!((500..800).contains(&fabric.map.cables.len()), "{}", fabric.map.cables.len());
        let mut pairs: Vec<(u32, u32)> =
            fabric.map.cables.iter().map(|cable| (cable.a.xbar, cable.b.xbar)).collect();
        pairs.sort_unstable();
        let cables = pairs.len();
        pairs.dedup();
        assert!(pairs.len() < cables, "some cables are parallel");
        let from = |leaf: u32| pairs.iter().filter(|pair| pair.0 == leaf).count();
        assert!((1..128).any(|leaf| from(leaf) != from(0)), "leaves differ");
        assert_eq!(fabric, generate(spec).unwrap());
        assert_ne!(fabric, generate(&format!("{spec};seed=2")).unwrap());
        let refused = generate("irregular:h=3;x=128,64;up=3,4;hosts=512").unwrap_err();
        assert!(refused.to_string().contains("3 values"), "{refused}");
    }
}
