//! Clusters as they are built: trees of two tiers whose switches carry service adapters, too.

use mapper_proto::map::Fabric;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::builder::Builder;
use super::service::Service;
use super::spec::{Spec, SpecError};
use super::{MAX_HOSTS, MAX_PORTS};

/// Most cables between one leaf and one spine.
const MOST_PARALLEL: u64 = 16;

/// Hosts of a switch for storage.
const STORAGE_HOSTS: u64 = 2;

/// Most spines that a switch for storage is cabled to.
const STORAGE_UPLINKS: u64 = 2;

/// `cluster:leaves=L,spines=S,hosts=H[,service=every|spines|none][,missing=M][,uneven=U][,storage=T][,isolated=I]`
/// `[,rails=R][,cables=C][,seed=N]`: R rails alike in size, each of L leaves and S spines, H hosts for all leaves of a
/// rail, and C cables (1 unless stated) between a leaf and a spine.
///
/// With `service=every`, one service adapter sits at the last port of every switch; with `service=spines`, of
/// every spine. All have the same description, as they have in real fabrics. What follows is drawn by the seed in
/// each rail: M pairs of a leaf and a spine have no cable, but every leaf keeps one at least; U of the other pairs
/// have one cable less; T switches with two hosts for storage each are cabled to two of the spines. I hosts of
/// the whole fabric have no cable.
pub(super) fn cluster(spec: &Spec<'_>) -> Result<Fabric, SpecError> {
    let cluster = Cluster::parse(spec)?;
    let mut builder = Builder::default();
    let mut rng = ChaCha8Rng::seed_from_u64(cluster.seed);
    (0..cluster.rails).for_each(|rail| cluster.build_rail(rail, &mut builder, &mut rng));
    (0..cluster.isolated).for_each(|_| builder.isolated_host());
    Ok(builder.finish())
}

/// What a spec says.
struct Cluster {
    leaves: u64,
    spines: u64,
    hosts: u64,
    cables: u64,
    rails: u64,
    missing: u64,
    uneven: u64,
    storage: u64,
    isolated: u64,
    seed: u64,
    service: Service,
    ports: u8,
}

impl Cluster {
    fn parse(spec: &Spec<'_>) -> Result<Self, SpecError> {
        spec.only(&[
            "leaves", "spines", "hosts", "service", "missing", "uneven", "storage", "isolated", "rails",
            "cables", "seed", "ports",
        ])?;
        let leaves = spec.number("leaves", 1..=MAX_PORTS)?;
        let spines = spec.number("spines", 1..=MAX_PORTS)?;
        let hosts = spec.number("hosts", 0..=MAX_HOSTS)?;
        let cables = spec.optional("cables", 1..=MOST_PARALLEL)?.unwrap_or(1);
        let rails = spec.optional("rails", 1..=16)?.unwrap_or(1);
        let missing = spec.optional("missing", 0..=leaves * (spines - 1))?.unwrap_or(0);
        // A pair that has one cable only has none to spare.
        let most_uneven = if cables > 1 { leaves * spines - missing } else { 0 };
        let uneven = spec.optional("uneven", 0..=most_uneven)?.unwrap_or(0);
        let storage = spec.optional("storage", 0..=MAX_PORTS)?.unwrap_or(0);
        let isolated = spec.optional("isolated", 0..=MAX_HOSTS)?.unwrap_or(0);
        let seed = spec.optional("seed", 0..=u64::MAX)?.unwrap_or(1);
        let service = Service::of(spec)?;
        let at_leaf = hosts.div_ceil(leaves) + spines * cables;
        let at_storage = if storage > 0 { STORAGE_HOSTS + STORAGE_UPLINKS } else { 0 };
        let ports = spec.ports(at_leaf.max(leaves * cables + storage).max(at_storage) + 1)?;
        let xbars = leaves + spines + storage;
        spec.check_size(rails * xbars, rails * (hosts + xbars + storage * STORAGE_HOSTS) + isolated)?;
        Ok(Self {
            leaves,
            spines,
            hosts,
            cables,
            rails,
            missing,
            uneven,
            storage,
            isolated,
            seed,
            service,
            ports,
        })
    }

    /// Adds one rail.
    fn build_rail(&self, rail: u64, builder: &mut Builder, rng: &mut ChaCha8Rng) {
        let name = |kind: &str, number: u64| format!("rail{}-{kind}{}", rail + 1, number + 1);
        let first = (rail * (self.leaves + self.spines + self.storage)) as u32;
        let spine = first + self.leaves as u32;
        let storage = spine + self.spines as u32;
        for (kind, count) in [("leaf", self.leaves), ("spine", self.spines), ("storage", self.storage)] {
            (0..count).for_each(|number| {
                builder.xbar(name(kind, number), self.ports);
            });
        }
        let cables = self.draw_cables(rng);
        let most_hosts = self.hosts.div_ceil(self.leaves);
        for leaf in 0..self.leaves {
            let here = self.hosts / self.leaves + u64::from(leaf < self.hosts % self.leaves);
            builder.hosts(first + leaf as u32, 1, here);
            for (number, &count) in
                (0..).zip(&cables[(leaf * self.spines) as usize..][..self.spines as usize])
            {
                for cable in 0..count {
                    let up = most_hosts + number * self.cables + cable + 1;
                    let down = leaf * self.cables + cable + 1;
                    builder.cable((first + leaf as u32, up), (spine + number as u32, down));
                }
            }
        }
        for number in 0..self.storage {
            let xbar = storage + number as u32;
            builder.hosts(xbar, 1, STORAGE_HOSTS);
            let mut spines: Vec<u64> = (0..self.spines).collect();
            spines.shuffle(rng);
            for (uplink, &to) in (0..).zip(spines.iter().take(STORAGE_UPLINKS as usize)) {
                let down = self.leaves * self.cables + number + 1;
                builder.cable((xbar, STORAGE_HOSTS + uplink + 1), (spine + to as u32, down));
            }
        }
        let served = match self.service {
            Service::Every => first..storage + self.storage as u32,
            Service::Spines => spine..storage,
            Service::None => 0..0,
        };
        served.for_each(|xbar| builder.service_adapter(xbar, self.ports.into()));
    }

    /// How many cables each pair of a leaf and a spine has, leaf by leaf.
    fn draw_cables(&self, rng: &mut ChaCha8Rng) -> Vec<u64> {
        // Each leaf keeps the cables to one spine that is drawn for it.
        let kept: Vec<u64> = (0..self.leaves).map(|_| rng.random_range(0..self.spines)).collect();
        let is_kept = |pair: &u64| kept[(pair / self.spines) as usize] == pair % self.spines;
        let mut pairs: Vec<u64> = (0..self.leaves * self.spines).filter(|pair| !is_kept(pair)).collect();
        pairs.shuffle(rng);
        let mut cables = vec![self.cables; (self.leaves * self.spines) as usize];
        pairs.iter().take(self.missing as usize).for_each(|&pair| cables[pair as usize] = 0);
        if self.uneven > 0 {
            let mut whole: Vec<usize> = (0..cables.len()).filter(|&pair| cables[pair] > 0).collect();
            whole.shuffle(rng);
            whole.iter().take(self.uneven as usize).for_each(|&pair| cables[pair] -= 1);
        }
        cables
    }
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
    fn uplinks_are_uneven_storage_has_its_switches_and_some_hosts_no_cable() {
        let spec = "cluster:leaves=6,spines=3,hosts=24,cables=2,missing=2,uneven=4,storage=2,isolated=3,service=spines";
        let fabric = generate(spec).unwrap();
        assert_eq!(fabric.map.xbars.len(), 6 + 3 + 2);
        assert_eq!(fabric.map.hosts.len(), 24 + 2 * 2 + 3 + 3);
        assert_eq!(fabric.map.cables.len(), (6 * 3 - 2) * 2 - 4 + 2 * 2);
        assert_eq!(fabric.isolated().len(), 3);
        let services = fabric.hosts.iter().filter(|label| label.description == "Aggregation Node");
        assert_eq!(services.count(), 3, "they are told apart by what they are cabled to");
        let refused = generate("cluster:leaves=6,spines=3,hosts=24,uneven=1").unwrap_err();
        assert!(refused.to_string().contains("`uneven`"), "one cable is not less by one: {refused}");
    }

    #[test]
    fn a_word_that_says_no_switches_is_refused() {
        let refused = generate("cluster:leaves=4,spines=2,hosts=16,service=some").unwrap_err();
        assert!(refused.to_string().contains("every, spines or none"), "{refused}");
    }
}
