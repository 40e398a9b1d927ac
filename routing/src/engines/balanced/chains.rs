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

/// A link by which chains may go on.
struct Up {
    link: Link,
    /// Whether it is from a higher tier.
    rises: bool,
    /// Whether its port counts when loads are balanced.
    counts: bool,
    /// How many chains use it.
    used: u32,
}

struct Chooser<'a> {
    subnet: &'a Subnet,
    ports: &'a XbarPorts,
    tiers: Tiers,
    /// How many chains use each xbar.
    by_xbar: Vec<u32>,
    /// For each xbar the links into it by which chains go on.
    ups: Vec<Vec<Up>>,
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
            let Some(best) = self.next(below, step, &earlier) else { break };
            let up = &mut self.ups[below as usize][best];
            let (link, counts) = (up.link, u32::from(up.counts));
            up.used += counts;
            self.by_xbar[link.xbar as usize] += counts;
            self.chains.links.push(link);
            below = link.xbar;
        }
        self.chains.ranges[slot as usize] = start..self.chains.links.len() as u32;
    }

    /// The place of the best link into an xbar among its [`Self::ups`]. Links from a system that no earlier slot of the
    /// same host uses in this place are preferred, then those from such a node; among these it is the least used one.
    fn next(&mut self, below: u32, step: usize, earlier: &[u32]) -> Option<usize> {
        if earlier.is_empty() && self.random.is_none() {
            return self.least_used(below, step);
        }
        let mut best = None;
        for (at, up) in self.ups[below as usize].iter().enumerate().filter(|(_, up)| step == 0 || up.rises) {
            let tie = self.random.as_mut().map_or(0, RngExt::random::<u32>);
            let likeness = if earlier.is_empty() { 0 } else { self.likeness(up.link, step, earlier) };
            let by_xbar = self.by_xbar[up.link.xbar as usize];
            // One number is compared faster than a tuple is.
            let key = [likeness.into(), up.used, by_xbar, tie]
                .iter()
                .fold(0, |key, &part| key << 32 | u128::from(part));
            if best.is_none_or(|(least, _)| key < least) {
                best = Some((key, at));
            }
        }
        best.map(|(_, at)| at)
    }

    /// The place of the least used link into an xbar among its [`Self::ups`], for slots without earlier ones and without
    /// random choices. It is [`Self::next`] for nearly all hosts, without what cannot differ between links there.
    fn least_used(&self, below: u32, step: usize) -> Option<usize> {
        let use_of = |up: &Up| u64::from(up.used) << 32 | u64::from(self.by_xbar[up.link.xbar as usize]);
        let ups = self.ups[below as usize].iter().enumerate().filter(|(_, up)| step == 0 || up.rises);
        ups.map(|(at, up)| (use_of(up), at)).min_by_key(|&(used, _)| used).map(|(_, at)| at)
    }

    /// The links by which chains may go on to the next tier, from which the way in must descend. Where there
    /// are no tiers, the first link of a chain may be any.
    fn ups_of(&self, xbar: u32) -> Vec<Up> {
        let height = self.tiers.height(xbar);
        // If a leaf is the top, ways in to the xbars below it are legal in any order of steps.
        let must_descend = self.ports.has_order() && !self.ports.has_one_top();
        let into = |number: usize| {
            let link = Link { xbar: self.ports.heads[number], port: self.ports.backs[number] };
            let (rises, counts) =
                (self.tiers.height(link.xbar) > height, self.ports.counts(link.port as usize));
            Up { link, rises, counts, used: 0 }
        };
        let mut ups: Vec<Up> = self.ports.numbers_of(xbar).map(into).collect();
        if ups.iter().any(|up| up.rises) {
            let leads_on = |up: &Up| !must_descend || !self.ports.climbs_by(up.link.port as usize);
            ups.retain(|up| up.rises && leads_on(up));
        }
        ups
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
