//! Whether engines lead hosts' frames the same ways, so that one of them need be proved and measured for all.

use std::sync::OnceLock;

use rayon::prelude::*;

use crate::engines::Routing;
use crate::host_routes::bits;
use crate::{Far, Subnet, Topology};

/// The xbars that frames between hosts pass by one routing, for each slot of a host. They are looked up when they are needed,
/// and then known for all that this routing is compared with.
#[derive(Debug)]
pub(super) struct Passed {
    /// For each xbar, the words of its hosts' slots, as many for each slot as xbars need that have a bit each.
    by_end: Vec<OnceLock<Box<[u64]>>>,
}

impl Passed {
    /// Nothing is looked up yet.
    pub(super) fn new(subnet: &Subnet) -> Self {
        Self { by_end: (0..subnet.topology.xbar_count()).map(|_| OnceLock::new()).collect() }
    }

    fn words_of(&self, look: &Look<'_>, routing: &Routing, to: u32) -> &[u64] {
        self.by_end[to as usize].get_or_init(|| look.passed(routing, to))
    }
}

/// Whether frames between hosts go the same ways in the same layers by two routings. What is proved and
/// measured of one is then true of the other, except what is proved of xbars' own addresses.
///
/// Entries that no such frame comes by may differ, as each engine fills them in its own way. In a tree of
/// three tiers each xbar of the middle tier has many such entries, although all engines that rank lead all
/// frames there alike.
pub(super) fn lead_hosts_alike(subnet: &Subnet, (one, passed): (&Routing, &Passed), other: &Routing) -> bool {
    if one.layers != other.layers || one.tables.slot_count() != other.tables.slot_count() {
        return false;
    }
    let look = Look::new(subnet);
    let is_alike = |to: u32| {
        subnet.destinations.host_slots_of(to).enumerate().all(|(at, slot)| {
            let rows = (one.tables.of_slot(slot), other.tables.of_slot(slot));
            rows.0 == rows.1 || {
                let words = passed.words_of(&look, one, to);
                are_equal_where(&words[at * look.words..][..look.words], rows)
            }
        })
    };
    (0..subnet.topology.xbar_count() as u32).into_par_iter().all(is_alike)
}

/// Whether two rows of tables have the same entries at the xbars whose bits are set.
fn are_equal_where(words: &[u64], (one, other): (&[u8], &[u8])) -> bool {
    let mut parts = words.iter().zip(one.chunks(64).zip(other.chunks(64)));
    parts.all(|(&word, (one, other))| one == other || bits(word).all(|xbar| one[xbar] == other[xbar]))
}

/// What it takes to follow frames between hosts.
struct Look<'a> {
    subnet: &'a Subnet,
    heads: Heads,
    leaves: Vec<u32>,
    words: usize,
}

impl<'a> Look<'a> {
    fn new(subnet: &'a Subnet) -> Self {
        let xbars = subnet.topology.xbar_count();
        let leaves = (0..xbars as u32).filter(|&xbar| subnet.is_leaf(xbar)).collect();
        Self { subnet, heads: Heads::of(&subnet.topology), leaves, words: xbars.div_ceil(64) }
    }

    /// The xbars that frames for hosts of an xbar pass, slot by slot.
    fn passed(&self, routing: &Routing, to: u32) -> Box<[u64]> {
        let topology = &self.subnet.topology;
        let slots = self.subnet.destinations.host_slots_of(to);
        let mut passed = vec![0; slots.len() * self.words].into_boxed_slice();
        for (slot, words) in slots.zip(passed.chunks_exact_mut(self.words)) {
            let row = routing.tables.of_slot(slot);
            let leaves = self.leaves.iter().copied();
            for from in leaves.filter(|&from| topology.component(from) == topology.component(to)) {
                self.follow(row, from, words);
            }
        }
        passed
    }

    /// Notes the xbars that frames pass which begin at an xbar, to the first one that other frames were seen to pass.
    fn follow(&self, row: &[u8], from: u32, passed: &mut [u64]) {
        let mut xbar = from;
        loop {
            let (word, bit) = (&mut passed[xbar as usize / 64], 1 << (xbar % 64));
            if std::mem::replace(word, *word | bit) & bit != 0 {
                break;
            }
            let Some(next) = self.heads.behind(xbar, row[xbar as usize]) else { break };
            xbar = next;
        }
    }
}

/// The xbars that ports lead to, as one array: ways of large fabrics have millions of steps.
struct Heads {
    /// By `xbar * ports + port`; [`Self::NONE`] where no xbar is.
    heads: Vec<u32>,
    ports: usize,
}

impl Heads {
    const NONE: u32 = u32::MAX;

    fn of(topology: &Topology) -> Self {
        let channels = 0..topology.channel_count() as u32;
        let last = channels.clone().map(|channel| usize::from(topology.tail(channel).port)).max();
        let ports = last.map_or(0, |last| last + 1);
        let mut heads = vec![Self::NONE; ports * topology.xbar_count()];
        // A dead cable leads nowhere.
        for channel in
            channels.filter(|&channel| topology.far(topology.tail(channel)) == Far::Channel(channel))
        {
            let tail = topology.tail(channel);
            heads[tail.xbar as usize * ports + usize::from(tail.port)] = topology.head(channel).xbar;
        }
        Self { heads, ports }
    }

    fn behind(&self, xbar: u32, port: u8) -> Option<u32> {
        let port = usize::from(port);
        let head = (port < self.ports).then(|| self.heads[xbar as usize * self.ports + port])?;
        (head != Self::NONE).then_some(head)
    }
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;
    use mapper_proto::map::Fabric;
    use proptest::prelude::*;

    use super::*;
    use crate::engines::{Engine, Settings};
    use crate::fabrics::random;
    use crate::{ProofRules, prove_tables, walk_tables};

    #[test]
    fn engines_that_rank_lead_hosts_of_a_whole_tree_alike_though_their_tables_differ() {
        let subnet = Subnet::new(&generate("xgft:h=3;m=4,4,6;w=1,4,4").unwrap(), None).unwrap();
        let compute = |engine: Engine| engine.compute(&subnet, &Settings::default()).unwrap();
        let (ftree, passed) = (compute(Engine::Ftree), Passed::new(&subnet));
        for engine in [Engine::Dmodc, Engine::Updn, Engine::Minhop] {
            let other = compute(engine);
            assert!(other.tables != ftree.tables, "{engine}");
            assert!(lead_hosts_alike(&subnet, (&ftree, &passed), &other), "{engine}");
        }
        assert!(!lead_hosts_alike(&subnet, (&ftree, &passed), &compute(Engine::Dor)));
    }

    /// Whether each host's way to each address of all others is the same, followed pair by pair.
    fn are_ways_same(subnet: &Subnet, one: &Routing, other: &Routing) -> bool {
        let topology = &subnet.topology;
        let hosts = 0..topology.host_count() as u32;
        let mut pairs = hosts.clone().flat_map(|from| hosts.clone().map(move |to| (from, to)));
        pairs.all(|(from, to)| {
            let way = |routing: &Routing, slot| walk_tables(subnet, &routing.tables, from, slot);
            !topology.connected(from, to)
                || subnet.destinations.slots_of_host(to).all(|slot| way(one, slot) == way(other, slot))
        })
    }

    proptest! {
        /// Tables of which some entries were changed are alike just if all pairs' ways are the same, and then
        /// the same is proved of both.
        #[test]
        fn tables_are_alike_if_all_ways_are(
            seed: u64, entries in proptest::collection::vec((any::<u32>(), any::<u32>(), any::<u32>()), 0..6),
        ) {
            let subnet = Subnet::new(&Fabric { map: random(seed), ..Fabric::default() }, None).unwrap();
            let one = Engine::Sssp.compute(&subnet, &Settings::default()).unwrap();
            let mut other = one.clone();
            let (xbars, slots) = (one.tables.xbar_count() as u32, one.tables.slot_count() as u32);
            for (xbar, slot, port) in entries {
                let xbar = xbar % xbars;
                let channels = subnet.topology.channels_of(xbar);
                // The entry gets another cable, so that the tables still lead somewhere.
                let Some(channel) = channels.clone().nth(port as usize % channels.len().max(1)) else { continue };
                other.tables.set_port(xbar, slot % slots, subnet.topology.tail(channel).port);
            }
            let alike = lead_hosts_alike(&subnet, (&one, &Passed::new(&subnet)), &other);
            prop_assert!(alike || !are_ways_same(&subnet, &one, &other));
            if alike {
                prop_assert!(are_ways_same(&subnet, &one, &other));
                let rules = ProofRules { max_hops: Settings::MAX_HOPS, xbar_destinations: false };
                let prove = |of: &Routing| prove_tables(&subnet, &of.tables, &of.layers, &rules);
                prop_assert_eq!(prove(&one), prove(&other));
            }
        }
    }
}
