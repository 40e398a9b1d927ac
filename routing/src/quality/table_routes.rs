//! Forwarding tables as routes between hosts.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::census::{Census, PairRoutes};
use crate::tables::SlotEnd;
use crate::{Attachment, Far, Subnet, Tables, Topology};
use mapper_proto::map::PortRef;

/// No channel leaves by a port, or none leads on.
const NOWHERE: u32 = u32::MAX;

/// The routes of forwarding tables, all counted.
///
/// A host with several addresses has a route to each; a frame's sender draws one.
#[derive(Debug)]
pub struct TableRoutes<'a> {
    subnet: &'a Subnet,
    tables: &'a Tables,
    /// What a port leads to: `channel_of[port + xbar * ports]`.
    channel_of: Vec<u32>,
    ports: usize,
    /// The xbar that each channel leads to.
    heads: Vec<u32>,
    /// The xbar that each slot's host is cabled to, if its table leads to the host; [`NOWHERE`] otherwise.
    ends: Vec<u32>,
    /// No route crosses more channels.
    longest: usize,
    census: OnceLock<Census>,
}

impl<'a> TableRoutes<'a> {
    /// The routes of tables, which must be of this subnet. Tables of another size lead nowhere.
    pub fn new(subnet: &'a Subnet, tables: &'a Tables) -> Self {
        let mut routes = Self::proved(subnet, tables, 0);
        let (census, longest) = routes.count();
        (routes.census, routes.longest) = (OnceLock::from(census), longest);
        routes
    }

    /// The routes of tables that are proved: none is a loop or passes more than `max_hops` xbars. What crosses
    /// each channel is counted when it is asked for.
    pub fn proved(subnet: &'a Subnet, tables: &'a Tables, max_hops: usize) -> Self {
        let topology = &subnet.topology;
        let ports = 1
            + (0..topology.channel_count() as u32)
                .map(|channel| usize::from(topology.tail(channel).port))
                .max()
                .unwrap_or_default();
        let mut channel_of = vec![NOWHERE; ports * topology.xbar_count()];
        for channel in 0..topology.channel_count() as u32 {
            let tail = topology.tail(channel);
            // A dead cable leads nowhere.
            if topology.far(tail) == Far::Channel(channel) {
                channel_of[tail.xbar as usize * ports + usize::from(tail.port)] = channel;
            }
        }
        let heads = (0..topology.channel_count() as u32).map(|channel| topology.head(channel).xbar).collect();
        let ends = ends(subnet, tables);
        Self { subnet, tables, channel_of, ports, heads, ends, longest: max_hops, census: OnceLock::new() }
    }

    /// No route crosses more channels between xbars than this.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// The channel that an xbar sends frames to a slot by, or [`NOWHERE`].
    fn next(&self, xbar: u32, port: u8) -> u32 {
        let port = usize::from(port);
        if port < self.ports { self.channel_of[xbar as usize * self.ports + port] } else { NOWHERE }
    }

    /// What crosses each channel, and the most channels that a route crosses.
    fn count(&self) -> (Census, usize) {
        let topology = &self.subnet.topology;
        let sized = is_of(self.tables, self.subnet);
        let leaves: Vec<u32> =
            (0..topology.xbar_count() as u32).filter(|&xbar| !topology.hosts_of(xbar).is_empty()).collect();
        let words = leaves.len().div_ceil(64);
        // Which leaves' frames cross a channel. All threads set bits here: what comes out does not depend
        // on who was first.
        let crossed: Vec<AtomicU64> =
            (0..topology.channel_count() * words).map(|_| AtomicU64::new(0)).collect();
        let hosts: Vec<u32> = leaves.iter().map(|&leaf| cabled(topology, leaf)).collect();
        let counter = || Counter::new(self, &leaves, &hosts, &crossed);
        let total = if sized {
            leaves.par_iter().fold(counter, Counter::add_leaf).reduce(counter, |one, other| one.merge(&other))
        } else {
            counter()
        };
        let weight = f64::from(1_u32 << self.subnet.destinations.lmc());
        let sources = |channel: usize| {
            let words = crossed[channel * words..][..words].iter().map(|word| word.load(Ordering::Relaxed));
            let bits = words.enumerate().flat_map(|(at, word)| {
                (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| 64 * at + bit)
            });
            bits.map(|leaf| hosts[leaf]).sum()
        };
        let all: u64 = hosts.iter().map(|&hosts| u64::from(hosts)).sum();
        let census = Census {
            loads: total.loads.iter().map(|&load| load as f64 / weight).collect(),
            sources: (0..topology.channel_count()).map(sources).collect(),
            unroutable: (all * all.saturating_sub(1)).saturating_sub(total.routable),
            destinations: total.destinations,
        };
        (census, total.longest)
    }
}

/// Whether tables have the size of a subnet's.
fn is_of(tables: &Tables, subnet: &Subnet) -> bool {
    tables.xbar_count() == subnet.topology.xbar_count()
        && tables.slot_count() == subnet.destinations.slot_count()
}

/// The xbar that each slot's host is cabled to, if its table there leads to the host.
fn ends(subnet: &Subnet, tables: &Tables) -> Vec<u32> {
    let sized = is_of(tables, subnet);
    let end = |slot: u32| match subnet.destinations.end(slot) {
        SlotEnd::Host { host, .. } => match subnet.topology.attachment(host) {
            Attachment::Port(PortRef { xbar, .. }) if sized => {
                let port = tables.port(xbar, slot);
                let leads_there = subnet.topology.far(PortRef { xbar, port }) == Far::Host(host);
                if leads_there { xbar } else { NOWHERE }
            }
            Attachment::Port(_) | Attachment::Host(_) | Attachment::Nothing => NOWHERE,
        },
        SlotEnd::Xbar(_) => NOWHERE,
    };
    (0..subnet.destinations.slot_count() as u32).map(end).collect()
}

/// Hosts whose cable to an xbar lives.
fn cabled(topology: &Topology, xbar: u32) -> u32 {
    let is_cabled = |&&host: &&u32| matches!(topology.attachment(host), Attachment::Port(_));
    topology.hosts_of(xbar).iter().filter(is_cabled).count() as u32
}

impl PairRoutes for TableRoutes<'_> {
    fn topology(&self) -> &Topology {
        &self.subnet.topology
    }

    fn draw(&self, from: u32, to: u32, draw: u32, channels: &mut Vec<u32>) -> bool {
        let slots = self.subnet.destinations.slots_of_host(to);
        let Some(mut xbar) = self.subnet.xbar_of_host(from) else { return false };
        if slots.is_empty() {
            return false;
        }
        let slot = slots.start + (draw & (slots.len() as u32 - 1));
        let end = self.ends[slot as usize];
        if end == NOWHERE {
            return false;
        }
        let ports = self.tables.of_slot(slot);
        for _ in 0..=self.longest {
            if xbar == end {
                return true;
            }
            let channel = self.next(xbar, ports[xbar as usize]);
            if channel == NOWHERE {
                return false;
            }
            channels.push(channel);
            xbar = self.heads[channel as usize];
        }
        false
    }

    fn census(&self) -> &Census {
        self.census.get_or_init(|| self.count().0)
    }
}

/// Counts by destination. All numbers are whole, so their sums do not depend on the order.
struct Counter<'a> {
    routes: &'a TableRoutes<'a>,
    leaves: &'a [u32],
    /// How many hosts each leaf has.
    hosts: &'a [u32],
    crossed: &'a [AtomicU64],
    /// Hosts by addresses that they are sent to.
    loads: Vec<u64>,
    destinations: Vec<u32>,
    /// The last host that was counted at each channel, counted from 1.
    seen: Vec<u32>,
    /// Whether frames for the current slot get on from an xbar: the slot's mark, plus 1 if they arrive.
    known: Vec<u64>,
    mark: u64,
    route: Vec<u32>,
    longest: usize,
    routable: u64,
}

impl<'a> Counter<'a> {
    fn new(
        routes: &'a TableRoutes<'a>,
        leaves: &'a [u32],
        hosts: &'a [u32],
        crossed: &'a [AtomicU64],
    ) -> Self {
        let topology = &routes.subnet.topology;
        Self {
            routes,
            leaves,
            hosts,
            crossed,
            loads: vec![0; topology.channel_count()],
            destinations: vec![0; topology.channel_count()],
            seen: vec![0; topology.channel_count()],
            known: vec![0; topology.xbar_count()],
            mark: 0,
            route: Vec::new(),
            longest: 0,
            routable: 0,
        }
    }

    /// Counts all routes to the hosts of an xbar.
    fn add_leaf(mut self, xbar: &u32) -> Self {
        let routes = self.routes;
        let topology = &routes.subnet.topology;
        for &host in topology.hosts_of(*xbar) {
            let mut reached = vec![false; self.leaves.len()];
            for slot in routes.subnet.destinations.slots_of_host(host) {
                let end = routes.ends[slot as usize];
                if end != NOWHERE {
                    self.add_slot(host, slot, end, &mut reached);
                }
            }
            let pairs = self.hosts.iter().zip(&reached).filter(|&(_, &reached)| reached);
            let pairs: u64 = pairs.map(|(&hosts, _)| u64::from(hosts)).sum();
            // The host is among those of its own leaf, and does not send to itself.
            self.routable += pairs.saturating_sub(1);
        }
        self
    }

    /// Counts the routes to a slot.
    fn add_slot(&mut self, host: u32, slot: u32, end: u32, reached: &mut [bool]) {
        let ports = self.routes.tables.of_slot(slot);
        let words = self.leaves.len().div_ceil(64);
        self.mark += 2;
        self.known[end as usize] = self.mark + 1;
        for (place, &leaf) in self.leaves.iter().enumerate() {
            if !self.arrives(ports, leaf) {
                continue;
            }
            reached[place] = true;
            let hosts = u64::from(self.hosts[place]);
            let (mut xbar, mut steps) = (leaf, 0);
            while xbar != end {
                let channel = self.routes.next(xbar, ports[xbar as usize]) as usize;
                self.loads[channel] += hosts;
                if std::mem::replace(&mut self.seen[channel], host + 1) != host + 1 {
                    self.destinations[channel] += 1;
                }
                let word = &self.crossed[channel * words + place / 64];
                let bit = 1 << (place % 64);
                if word.load(Ordering::Relaxed) & bit == 0 {
                    word.fetch_or(bit, Ordering::Relaxed);
                }
                steps += 1;
                xbar = self.routes.heads[channel];
            }
            self.longest = self.longest.max(steps);
        }
    }

    /// Whether frames get from an xbar to the slot. Each xbar is passed once a slot, so that tables full
    /// of loops cost no more than good ones.
    fn arrives(&mut self, ports: &[u8], from: u32) -> bool {
        self.route.clear();
        let mut xbar = from;
        while self.known[xbar as usize] < self.mark {
            // Until it is known to arrive, it does not: so a loop ends where it closes.
            self.known[xbar as usize] = self.mark;
            self.route.push(xbar);
            match self.routes.next(xbar, ports[xbar as usize]) {
                NOWHERE => break,
                channel => xbar = self.routes.heads[channel as usize],
            }
        }
        let known = self.known[xbar as usize];
        self.route.iter().for_each(|&xbar| self.known[xbar as usize] = known);
        known == self.mark + 1
    }

    fn merge(mut self, other: &Self) -> Self {
        self.loads.iter_mut().zip(&other.loads).for_each(|(sum, load)| *sum += load);
        self.destinations.iter_mut().zip(&other.destinations).for_each(|(sum, count)| *sum += count);
        self.longest = self.longest.max(other.longest);
        self.routable += other.routable;
        self
    }
}
