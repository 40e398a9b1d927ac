//! The Berkeley NOW.

use mapper_proto::map::Fabric;

use super::builder::Builder;
use super::spec::{Spec, SpecError};

/// Hosts of each subcluster.
const HOSTS: [u64; 3] = [36, 34, 30];
const PORTS: u8 = 8;
const LEAVES: u64 = 7;
const LEAF_HOSTS: u64 = 5;
const UPLINKS: u64 = 3;
const SECONDS: u64 = 4;

/// `now:subclusters=N`: the network of the Berkeley NOW, after Mainwaring, Chun, Schleimer and
/// Wilkerson, "System Area Network Mapping" (SPAA 1997), from eight-port xbars.
///
/// | subclusters | hosts | xbars | cables, those of hosts included |
/// |---|---|---|---|
/// | 1 | 36 | 13 | 64 |
/// | 2 | 70 | 26 | 128 |
/// | 3 | 100 | 40 | 193 |
///
/// The counts are the paper's. It does not publish all of the cabling, so the rest is chosen here. A
/// subcluster has 7 leaves (up to 5 hosts on ports 1 to 5, cables up on 6 to 8), 4 second-level xbars and 2
/// roots. Leaf i is cabled to the second-level xbars i, i+1 and i+2 (modulo 4), and each of these to both
/// roots. The last leaf has a sixth host instead of its first cable up. Of two subclusters, each root is
/// cabled to the root of the same number in the other one. Of three, the second root of each subcluster is
/// cabled to the first root of the next, and all six roots to a further xbar.
pub(super) fn now(spec: &Spec<'_>) -> Result<Fabric, SpecError> {
    spec.only(&["subclusters"])?;
    let subclusters = spec.optional("subclusters", 1..=3)?.unwrap_or(3);
    let mut builder = Builder::default();
    let roots: Vec<[u32; 2]> = ('a'..)
        .zip(&HOSTS[..subclusters as usize])
        .map(|(letter, &hosts)| subcluster(&mut builder, letter, hosts))
        .collect();
    // Ports 1 to 4 of a root lead to the second-level xbars of its subcluster, so others begin behind them.
    match roots[..] {
        [a, b] => {
            builder.cable((a[0], 6), (b[0], 6));
            builder.cable((a[1], 6), (b[1], 6));
        }
        [_, _, _] => {
            let top = builder.xbar("top".to_owned(), PORTS);
            for (port, &root) in (1..).zip(roots.as_flattened()) {
                builder.cable((top, port), (root, 6));
            }
            for (i, from) in roots.iter().enumerate() {
                builder.cable((from[1], 7), (roots[(i + 1) % 3][0], 8));
            }
        }
        _ => {}
    }
    Ok(builder.finish())
}

/// Adds a subcluster; returns its roots.
fn subcluster(builder: &mut Builder, letter: char, hosts: u64) -> [u32; 2] {
    let mut add = |what: &str, count: u64| -> Vec<u32> {
        (1..=count).map(|i| builder.xbar(format!("{letter}-{what}{i}"), PORTS)).collect()
    };
    let (leaves, seconds, roots) = (add("leaf", LEAVES), add("mid", SECONDS), add("root", 2));
    let mut used = [0; SECONDS as usize];
    for (i, &leaf) in (0..).zip(&leaves) {
        // Hosts are dealt out evenly, and the last leaves get one more each of those left over.
        builder.hosts(leaf, 1, hosts / LEAVES + u64::from(i + hosts % LEAVES >= LEAVES));
        for up in u64::from(i + 1 == LEAVES)..UPLINKS {
            let second = ((i + up) % SECONDS) as usize;
            used[second] += 1;
            builder.cable((leaf, LEAF_HOSTS + 1 + up), (seconds[second], used[second]));
        }
    }
    for (i, &second) in (1..).zip(&seconds) {
        builder.cable((second, 7), (roots[0], i));
        builder.cable((second, 8), (roots[1], i));
    }
    [roots[0], roots[1]]
}
