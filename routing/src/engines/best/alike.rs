//! Whether engines lead hosts' frames the same ways, so that one of them need be proved and measured for all.

use rayon::prelude::*;

use crate::engines::Routing;
use crate::{Far, Subnet, Topology};

/// Whether frames between hosts go the same ways in the same layers by two routings. What is proved and
/// measured of one is then true of the other, except what is proved of xbars' own addresses.
///
/// Entries that no such frame comes by may differ, as each engine fills them in its own way. In a tree of
/// three tiers each xbar of the middle tier has many such entries, although all engines that rank lead all
/// frames there alike.
pub(super) fn lead_hosts_alike(subnet: &Subnet, one: &Routing, other: &Routing) -> bool {
    if one.layers != other.layers || one.tables.slot_count() != other.tables.slot_count() {
        return false;
    }
    let xbars = 0..subnet.topology.xbar_count() as u32;
    let heads = Heads::of(&subnet.topology);
    let leaves: Vec<u32> = xbars.clone().filter(|&xbar| subnet.is_leaf(xbar)).collect();
    let is_alike = |passed: &mut Vec<u32>, to: u32| {
        let is_joined = |&from: &u32| subnet.topology.component(from) == subnet.topology.component(to);
        subnet.destinations.host_slots_of(to).all(|slot| {
            let rows = (one.tables.of_slot(slot), other.tables.of_slot(slot));
            let mut leaves = leaves.iter().copied().filter(is_joined);
            rows.0 == rows.1 || leaves.all(|from| is_way_alike(&heads, rows, (from, slot), passed))
        })
    };
    let passed = || vec![u32::MAX; subnet.topology.xbar_count()];
    xbars.into_par_iter().map_init(passed, is_alike).all(|alike| alike)
}

/// Whether frames for a slot that begin at an xbar go the same way by two rows of tables. They are followed
/// to the first xbar that `passed` notes, which other frames for this slot were seen to pass.
fn is_way_alike(
    heads: &Heads,
    (one, other): (&[u8], &[u8]),
    (from, slot): (u32, u32),
    passed: &mut [u32],
) -> bool {
    let mut xbar = from;
    while std::mem::replace(&mut passed[xbar as usize], slot) != slot {
        let port = one[xbar as usize];
        if other[xbar as usize] != port {
            return false;
        }
        let Some(next) = heads.behind(xbar, port) else { break };
        xbar = next;
    }
    true
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
        let ftree = compute(Engine::Ftree);
        for engine in [Engine::Dmodc, Engine::Updn, Engine::Minhop] {
            let other = compute(engine);
            assert!(other.tables != ftree.tables && lead_hosts_alike(&subnet, &other, &ftree), "{engine}");
        }
        assert!(!lead_hosts_alike(&subnet, &compute(Engine::Dor), &ftree));
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
            let alike = lead_hosts_alike(&subnet, &one, &other);
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
