//! Shortest routes between xbars: a tree to each destination xbar, or one to each address of its hosts.

use std::ops::Range;

use crate::tables::{SlotEnd, Tables};
use crate::{Attachment, Far, Subnet, UnionProof};
use mapper_proto::map::PortRef;

/// How an xbar chooses among the channels that begin a shortest route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Choice {
    /// The least loaded route as a whole; a tree of its own for each address of a host.
    LeastLoadedByHost,
    /// The least loaded route as a whole; one tree for all hosts of an xbar.
    LeastLoaded,
    /// The neighbour behind the first port; parallel cables to it by load. In meshes and cubes whose ports
    /// stand by dimension this is dimension order.
    FirstPort,
}

/// Trees, a column of out ports by xbar each.
pub(super) struct Trees {
    xbars: usize,
    ports: Vec<u8>,
    /// The trees to xbar d: `base[d]..base[d + 1]`.
    base: Vec<u32>,
    /// The busiest channel: how many pairs of hosts send through it.
    pub(super) busiest: u64,
}

impl Trees {
    /// Trees to all xbars.
    pub(super) fn new(subnet: &Subnet, choice: Choice) -> Self {
        let xbars = subnet.topology.xbar_count();
        let mut trees = Self { xbars, ports: Vec::new(), base: vec![0], busiest: 0 };
        let mut grower = Grower::new(subnet, choice);
        for end in 0..xbars as u32 {
            grower.search(end);
            let addresses = subnet.destinations.host_slots_of(end).len();
            let count = if choice == Choice::LeastLoadedByHost { addresses.max(1) } else { 1 };
            let weight = if count > 1 { 1 } else { addresses as u64 };
            for _ in 0..count {
                let start = trees.ports.len();
                trees.ports.resize(start + xbars, Tables::NONE);
                grower.grow(end, weight, &mut trees.ports[start..]);
            }
            trees.base.push((trees.ports.len() / xbars) as u32);
        }
        trees.busiest = grower.loads.iter().copied().max().unwrap_or_default();
        trees
    }

    /// The trees to an xbar.
    pub(super) fn to(&self, xbar: u32) -> Range<u32> {
        self.base[xbar as usize]..self.base[xbar as usize + 1]
    }

    /// The out ports of a tree, by xbar.
    pub(super) fn ports(&self, tree: u32) -> &[u8] {
        &self.ports[tree as usize * self.xbars..][..self.xbars]
    }

    /// Hands on the channels of a tree from an xbar on, in order, until there are no more or `pass` says no.
    pub(super) fn walk(&self, subnet: &Subnet, tree: u32, from: u32, mut pass: impl FnMut(u32) -> bool) {
        let ports = self.ports(tree);
        let mut xbar = from;
        while let Far::Channel(channel) = subnet.topology.far(PortRef { xbar, port: ports[xbar as usize] })
            && pass(channel)
        {
            xbar = subnet.topology.head(channel).xbar;
        }
    }

    /// Whether all frames together can go in one layer.
    pub(super) fn fit_one_layer(&self, subnet: &Subnet, xbar_destinations: bool) -> bool {
        let topology = &subnet.topology;
        let mut union = UnionProof::new(topology);
        let mut marks = vec![u32::MAX; topology.xbar_count()];
        for end in 0..topology.xbar_count() as u32 {
            let leaf = subnet.is_leaf(end);
            if !leaf && !xbar_destinations {
                continue;
            }
            for tree in self.to(end) {
                let sources = 0..topology.xbar_count() as u32;
                for from in sources.filter(|&from| subnet.is_leaf(from) || leaf && xbar_destinations) {
                    let mut last = None;
                    // What lies behind an xbar that was passed for this tree is there already.
                    self.walk(subnet, tree, from, |channel| {
                        if let Some(last) = last.replace(channel) {
                            union.add_dependency(last, channel);
                        }
                        let mark = &mut marks[topology.tail(channel).xbar as usize];
                        std::mem::replace(mark, tree) != tree
                    });
                }
            }
        }
        union.prove_acyclic().is_ok()
    }

    /// The trees as tables.
    pub(super) fn tables(&self, subnet: &Subnet) -> Tables {
        let (topology, all) = (&subnet.topology, &subnet.destinations);
        let xbars = topology.xbar_count();
        let mut tables = Tables::empty(xbars, all.slot_count());
        for end in 0..xbars as u32 {
            let trees_to = self.to(end);
            for (slot, tree) in all.host_slots_of(end).zip(trees_to.clone().cycle()) {
                tables.as_mut_slice()[slot as usize * xbars..][..xbars].copy_from_slice(self.ports(tree));
                if let SlotEnd::Host { host, .. } = all.end(slot)
                    && let Attachment::Port(at) = topology.attachment(host)
                {
                    tables.set_port(end, slot, at.port);
                }
            }
            let own = all.slot_of_xbar(end) as usize;
            tables.as_mut_slice()[own * xbars..][..xbars].copy_from_slice(self.ports(trees_to.start));
        }
        tables
    }

    /// Hops from an xbar to another.
    pub(super) fn hops(&self, subnet: &Subnet, from: u32, to: u32) -> u32 {
        let mut hops = 0;
        self.walk(subnet, self.to(to).start, from, |_| {
            hops += 1;
            true
        });
        hops
    }
}

/// Grows tree after tree, and counts the load of each channel.
struct Grower<'a> {
    subnet: &'a Subnet,
    choice: Choice,
    /// How many pairs of hosts send through each channel so far.
    loads: Vec<u64>,
    /// Hops to the present destination.
    hops: Vec<u32>,
    /// Xbars from near to far.
    reached: Vec<u32>,
    /// The load of the whole route from each xbar.
    costs: Vec<u64>,
    /// Hosts whose frames come by each xbar.
    sources: Vec<u64>,
}

impl<'a> Grower<'a> {
    fn new(subnet: &'a Subnet, choice: Choice) -> Self {
        let xbars = subnet.topology.xbar_count();
        Self {
            subnet,
            choice,
            loads: vec![0; subnet.topology.channel_count()],
            hops: vec![u32::MAX; xbars],
            reached: Vec::with_capacity(xbars),
            costs: vec![0; xbars],
            sources: vec![0; xbars],
        }
    }

    /// Finds the hops from every xbar to a destination.
    fn search(&mut self, end: u32) {
        let topology = &self.subnet.topology;
        self.hops.fill(u32::MAX);
        self.hops[end as usize] = 0;
        self.reached.clear();
        self.reached.push(end);
        let mut at = 0;
        while let Some(&xbar) = self.reached.get(at) {
            at += 1;
            for channel in topology.channels_of(xbar).filter(|&channel| !topology.is_dead(channel)) {
                let next = topology.head(channel).xbar;
                if self.hops[next as usize] == u32::MAX {
                    self.hops[next as usize] = self.hops[xbar as usize] + 1;
                    self.reached.push(next);
                }
            }
        }
    }

    /// Grows a tree to the destination searched for, whose frames each count `weight`.
    fn grow(&mut self, end: u32, weight: u64, ports: &mut [u8]) {
        let topology = &self.subnet.topology;
        self.costs[end as usize] = 0;
        let mut chosen = Vec::with_capacity(self.reached.len());
        for &xbar in &self.reached[1..] {
            let Some(channel) = self.choose(xbar) else { continue };
            let next = topology.head(channel).xbar;
            self.costs[xbar as usize] = self.costs[next as usize] + self.loads[channel as usize];
            ports[xbar as usize] = topology.tail(channel).port;
            chosen.push(channel);
        }
        for &xbar in &self.reached {
            self.sources[xbar as usize] = topology.hosts_of(xbar).len() as u64;
        }
        for &channel in chosen.iter().rev() {
            let (from, to) = (topology.tail(channel).xbar, topology.head(channel).xbar);
            let sources = self.sources[from as usize];
            self.sources[to as usize] += sources;
            self.loads[channel as usize] += sources * weight;
        }
    }

    /// The channel that an xbar's frames leave by.
    fn choose(&self, xbar: u32) -> Option<u32> {
        let topology = &self.subnet.topology;
        let next = |channel: u32| topology.head(channel).xbar as usize;
        let nearer = |channel: &u32| {
            !topology.is_dead(*channel) && self.hops[next(*channel)] < self.hops[xbar as usize]
        };
        let mut channels = topology.channels_of(xbar).filter(nearer);
        match self.choice {
            Choice::FirstPort => {
                let first = channels.next()?;
                let parallel = channels.filter(|&channel| next(channel) == next(first));
                std::iter::once(first).chain(parallel).min_by_key(|&channel| self.loads[channel as usize])
            }
            Choice::LeastLoaded | Choice::LeastLoadedByHost => {
                let cost = |channel: u32| self.costs[next(channel)] + self.loads[channel as usize];
                channels.min_by_key(|&channel| cost(channel))
            }
        }
    }
}
