//! For each host a way in, which its routes join, chosen so that hosts share channels as little as possible.
//!
//! In a tree the routes to a host are determined by the xbar of the top tier that they turn at. If hosts
//! choose the ways down to them so that every channel serves as few hosts as any other, and all sources go
//! through the top of the host's own way down, then channels downwards hardly ever carry two flows of a
//! permutation at once. This is what D-mod-K does by the numbers of a full tree (Zahavi, "Fat-trees
//! routing and node ordering providing contention free traffic for MPI global collectives", 2012).

use std::ops::Range;
use std::sync::OnceLock;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::ports::XbarPorts;
use crate::engines::Settings;
use crate::engines::settings::SubnetNode;
use crate::tables::SlotEnd;
use crate::{Attachment, Subnet, Tiers};

/// One step of a chain: an xbar, and the port by which it leads towards the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Link {
    pub(super) xbar: u32,
    /// The number of the port.
    pub(super) port: u32,
}

/// For each host's slot a *chain*: the xbars by which its routes come in, from the one next to its own
/// up to the top tier. In a fabric without tiers a chain is one xbar.
///
/// Chains are chosen when one is first asked for, as tables in which little is to be mended may need none.
pub(super) struct Chains<'a> {
    subnet: &'a Subnet,
    settings: &'a Settings,
    ports: &'a XbarPorts,
    chosen: OnceLock<Chosen>,
}

/// The chains of all slots.
struct Chosen {
    links: Vec<Link>,
    /// For each slot, where its links are. The range is empty for xbars' own slots.
    ranges: Vec<Range<u32>>,
}

impl<'a> Chains<'a> {
    /// The chains of a fabric with these ports.
    pub(super) fn new(subnet: &'a Subnet, settings: &'a Settings, ports: &'a XbarPorts) -> Self {
        Self { subnet, settings, ports, chosen: OnceLock::new() }
    }

    /// The chain of a slot, the link next to the host's xbar first.
    pub(super) fn of_slot(&self, slot: u32) -> &[Link] {
        self.chosen.get_or_init(|| Chosen::new(self.subnet, self.settings, self.ports)).of_slot(slot)
    }
}

impl Chosen {
    /// Chooses chains, slot by slot, hosts that are to be served first before all others. Service adapters come last, as
    /// they hardly send: so the hosts are balanced as if there were none.
    fn new(subnet: &Subnet, settings: &Settings, ports: &XbarPorts) -> Self {
        let slots = subnet.destinations.slot_count();
        let mut chooser = Chooser {
            subnet,
            ports,
            tiers: Tiers::of(&subnet.topology),
            by_port: vec![0; ports.heads.len()],
            by_xbar: vec![0; ports.xbars],
            ups: Vec::new(),
            random: settings.scatter.map(ChaCha8Rng::seed_from_u64),
            chains: Self { links: Vec::new(), ranges: vec![0..0; slots] },
        };
        chooser.ups = (0..ports.xbars as u32).map(|xbar| chooser.ups_of(xbar)).collect();
        let mut served = vec![false; slots];
        let first = settings.order_first.iter().flat_map(|&node| match node {
            SubnetNode::Host(host) if (host as usize) < subnet.topology.host_count() => {
                subnet.destinations.slots_of_host(host)
            }
            // Routes to an xbar's own slot are not balanced, so it gets no chain.
            SubnetNode::Host(_) | SubnetNode::Xbar(_) => 0..0,
        });
        let is_of_host = |&slot: &u32| !subnet.leads_to_service_adapter(slot);
        for slot in first.chain((0..slots as u32).filter(is_of_host)).chain(0..slots as u32) {
            if !std::mem::replace(&mut served[slot as usize], true) {
                chooser.serve(slot);
            }
        }
        chooser.chains
    }

    fn of_slot(&self, slot: u32) -> &[Link] {
        let range = &self.ranges[slot as usize];
        &self.links[range.start as usize..range.end as usize]
    }
}

struct Chooser<'a> {
    subnet: &'a Subnet,
    ports: &'a XbarPorts,
    tiers: Tiers,
    /// How many chains use each port, and each xbar.
    by_port: Vec<u32>,
    by_xbar: Vec<u32>,
    /// For each xbar the links into it by which chains go on.
    ups: Vec<Vec<Link>>,
    random: Option<ChaCha8Rng>,
    chains: Chosen,
}

impl Chooser<'_> {
    fn serve(&mut self, slot: u32) {
        let SlotEnd::Host { host, path } = self.subnet.destinations.end(slot) else { return };
        let Attachment::Port(at) = self.subnet.topology.attachment(host) else { return };
        let start = self.chains.links.len() as u32;
        let earlier: Vec<u32> = (slot - u32::from(path)..slot).collect();
        let mut below = at.xbar;
        for step in 0.. {
            let Some(link) = self.next(below, step, &earlier) else { break };
            let counts = u32::from(self.ports.counts(link.port as usize));
            self.by_port[link.port as usize] += counts;
            self.by_xbar[link.xbar as usize] += counts;
            self.chains.links.push(link);
            below = link.xbar;
        }
        self.chains.ranges[slot as usize] = start..self.chains.links.len() as u32;
    }

    /// The best link into an xbar. Links from a system that no earlier slot of the same host uses in this
    /// place are preferred, then those from such a node; among these it is the least used one.
    fn next(&mut self, below: u32, step: usize, earlier: &[u32]) -> Option<Link> {
        let mut best: Option<((u8, u32, u32, u32), Link)> = None;
        for at in 0..self.ups[below as usize].len() {
            let link = self.ups[below as usize][at];
            if step > 0 && self.tiers.height(link.xbar) <= self.tiers.height(below) {
                continue;
            }
            let tie = self.random.as_mut().map_or(0, RngExt::random::<u32>);
            let (port, xbar) = (self.by_port[link.port as usize], self.by_xbar[link.xbar as usize]);
            let key = (self.likeness(link, step, earlier), port, xbar, tie);
            if best.is_none_or(|(least, _)| key < least) {
                best = Some((key, link));
            }
        }
        best.map(|(_, link)| link)
    }

    /// The links by which chains may go on to the next tier, from which the way in must descend. Where there
    /// are no tiers, the first link of a chain may be any.
    fn ups_of(&self, xbar: u32) -> Vec<Link> {
        let height = self.tiers.height(xbar);
        let has_higher = self.has_higher(xbar);
        // If a leaf is the top, ways in to the xbars below it are legal in any order of steps.
        let must_descend = self.ports.has_order() && !self.ports.has_one_top();
        let is_up = |link: &Link| {
            if self.tiers.height(link.xbar) > height {
                return !must_descend || !self.ports.climbs_by(link.port as usize);
            }
            !has_higher
        };
        let into = |number: usize| Link { xbar: self.ports.heads[number], port: self.ports.backs[number] };
        self.ports.numbers_of(xbar).map(into).filter(is_up).collect()
    }

    fn has_higher(&self, xbar: u32) -> bool {
        let height = self.tiers.height(xbar);
        self.ports.numbers_of(xbar).any(|number| self.tiers.height(self.ports.heads[number]) > height)
    }

    /// How much a link is like one in the same place of an earlier chain: 0 if it is from another system, 1
    /// from another node of the same system, 2 by another port of the same node, 3 if it is equal.
    fn likeness(&self, link: Link, step: usize, earlier: &[u32]) -> u8 {
        let like = |&slot: &u32| {
            let other = self.chains.of_slot(slot).get(step)?;
            let systems = &self.subnet.xbar_systems;
            Some(if other.port == link.port {
                3
            } else if other.xbar == link.xbar {
                2
            } else {
                u8::from(systems[other.xbar as usize] == systems[link.xbar as usize])
            })
        };
        earlier.iter().filter_map(like).max().unwrap_or_default()
    }
}
