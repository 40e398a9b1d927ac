//! The trees to begin with: those of an engine whose routes keep to an order of xbars.

use super::escape::{NO_WAY, find_hops, roots};
use crate::engines::shared::Shared;
use crate::engines::{Engine, Routing, Settings};
use crate::tables::Tables;
use crate::{Far, Subnet, Tiers, Topology};
use mapper_proto::map::PortRef;

/// The hops of an xbar whose entry was not looked at yet.
const UNKNOWN: u32 = u32::MAX - 1;

/// Tables in which each destination has a route from all that send frames.
pub(super) struct Seed {
    pub(super) tables: Tables,
    /// Whether the fabric is a tree in which all these routes are shortest, so that trees that are grown
    /// freely would have no other turns.
    pub(super) is_enough: bool,
}

impl Seed {
    /// The tables of dnup if they serve all pairs, or else tables whose routes go up to the middle of the
    /// fabric and down again, which do.
    pub(super) fn find(
        subnet: &Subnet,
        xbar_destinations: bool,
        shared: &Shared<'_>,
        ends: &[u32],
    ) -> Option<Self> {
        let settings = Settings { xbar_destinations, ..Settings::default() };
        let by_dnup = || match shared.dnup(&settings) {
            Some(computed) => computed.clone().ok(),
            None => Engine::Dnup.compute(subnet, &settings).ok(),
        };
        let from_middle = || {
            let settings = Settings { roots: Some(roots(subnet)), ..settings.clone() };
            Engine::Updn.compute(subnet, &settings).ok()
        };
        let seed = |routing: Routing| Self::of(routing.tables, subnet, &settings, ends);
        by_dnup().and_then(seed).or_else(|| from_middle().and_then(seed))
    }

    /// Tables, if they serve all pairs.
    fn of(tables: Tables, subnet: &Subnet, settings: &Settings, ends: &[u32]) -> Option<Self> {
        let mut hops = SeedHops::new(&subnet.topology);
        let sends = |xbar: &u32| settings.xbar_destinations || subnet.is_leaf(*xbar);
        let senders: Vec<u32> = (0..subnet.topology.xbar_count() as u32).filter(sends).collect();
        let mut is_enough = is_tree(&subnet.topology);
        for &end in ends {
            hops.find_shortest(end);
            let hosts = subnet.destinations.host_slots_of(end);
            let own = subnet.destinations.slot_of_xbar(end);
            let alone = hosts.is_empty().then_some(own);
            for slot in hosts.chain(alone) {
                hops.forget_ways(end);
                for &sender in &senders {
                    let along = hops.along(tables.of_slot(slot), sender);
                    let shortest = hops.shortest[sender as usize];
                    if along == NO_WAY && shortest != NO_WAY {
                        return None;
                    }
                    is_enough &= along == shortest;
                }
            }
        }
        Some(Self { tables, is_enough })
    }
}

/// Whether all cables between xbars lead up or down.
fn is_tree(topology: &Topology) -> bool {
    let tiers = Tiers::of(topology);
    let height = |xbar: u32| tiers.heights()[xbar as usize];
    let leads_across =
        |channel: u32| height(topology.tail(channel).xbar) == height(topology.head(channel).xbar);
    !(0..topology.channel_count() as u32).any(leads_across)
}

/// How far xbars are from one.
struct SeedHops<'a> {
    topology: &'a Topology,
    /// On the shortest way.
    shortest: Vec<u32>,
    /// Along the entries of a row, or [`UNKNOWN`].
    along: Vec<u32>,
    queue: Vec<u32>,
}

impl<'a> SeedHops<'a> {
    fn new(topology: &'a Topology) -> Self {
        let xbars = topology.xbar_count();
        Self { topology, shortest: vec![NO_WAY; xbars], along: vec![UNKNOWN; xbars], queue: Vec::new() }
    }

    /// Finds the hops on the shortest ways to an xbar.
    fn find_shortest(&mut self, end: u32) {
        find_hops(self.topology, end, &mut self.shortest, &mut self.queue);
    }

    /// Forgets what is known of another row, as one to an xbar comes next.
    fn forget_ways(&mut self, end: u32) {
        self.along.fill(UNKNOWN);
        self.along[end as usize] = 0;
    }

    /// The hops from an xbar along the entries of a row, or [`NO_WAY`] if they lead elsewhere.
    fn along(&mut self, row: &[u8], from: u32) -> u32 {
        let Self { topology, along, queue: way, .. } = self;
        way.clear();
        let mut at = from;
        while along[at as usize] == UNKNOWN {
            // This mark stays if the way ends, or comes back to this xbar.
            along[at as usize] = NO_WAY;
            way.push(at);
            match topology.far(PortRef { xbar: at, port: row[at as usize] }) {
                Far::Channel(channel) if !topology.is_dead(channel) => at = topology.head(channel).xbar,
                _ => break,
            }
        }
        let mut hops = along[at as usize];
        if hops != NO_WAY {
            for &xbar in way.iter().rev() {
                hops += 1;
                along[xbar as usize] = hops;
            }
        }
        along[from as usize]
    }
}
