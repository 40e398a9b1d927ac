//! Forwarding tables as routes between hosts.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::census::{Census, PairRoutes};
use super::counter::{Counter, Sources};
use crate::host_routes::bits;
use crate::tables::SlotEnd;
use crate::{Attachment, Far, Subnet, Tables, Topology};
use mapper_proto::map::PortRef;

/// No channel leaves by a port, or none leads on.
pub(super) const NOWHERE: u32 = u32::MAX;

/// The channel that leads on from an xbar, and the xbar that it leads to; both [`NOWHERE`] if none does. They stand
/// together since they are needed together, at random places.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChannelStep {
    pub(super) channel: u32,
    pub(super) head: u32,
}

impl ChannelStep {
    const NONE: Self = Self { channel: NOWHERE, head: NOWHERE };
}

/// The routes of forwarding tables, all counted.
///
/// A host with several addresses has a route to each; a frame's sender draws one.
#[derive(Debug)]
pub struct TableRoutes<'a> {
    pub(super) subnet: &'a Subnet,
    pub(super) tables: &'a Tables,
    /// What a port leads to: `steps[port + xbar * ports]`.
    steps: Vec<ChannelStep>,
    ports: usize,
    /// The xbar that each host is cabled to, or [`NOWHERE`].
    starts: Vec<u32>,
    /// The xbar that each slot's host is cabled to, if its table leads to the host; [`NOWHERE`] otherwise.
    pub(super) ends: Vec<u32>,
    /// How many channels the longest route crosses.
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
        let mut steps = vec![ChannelStep::NONE; ports * topology.xbar_count()];
        for channel in 0..topology.channel_count() as u32 {
            let tail = topology.tail(channel);
            // A dead cable leads nowhere.
            if topology.far(tail) == Far::Channel(channel) {
                let head = topology.head(channel).xbar;
                steps[tail.xbar as usize * ports + usize::from(tail.port)] = ChannelStep { channel, head };
            }
        }
        let hosts = 0..topology.host_count() as u32;
        let starts = hosts.map(|host| subnet.xbar_of_host(host).unwrap_or(NOWHERE)).collect();
        let ends = ends(subnet, tables);
        Self { subnet, tables, steps, ports, starts, ends, longest: max_hops, census: OnceLock::new() }
    }

    /// How many channels between xbars the longest route crosses.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// The channel and the xbar that frames go to which leave an xbar by a port.
    pub(super) fn next(&self, xbar: u32, port: u8) -> ChannelStep {
        let port = usize::from(port);
        if port < self.ports { self.steps[xbar as usize * self.ports + port] } else { ChannelStep::NONE }
    }

    /// What each port of an xbar leads to.
    pub(super) fn steps_of(&self, xbar: u32) -> &[ChannelStep] {
        &self.steps[xbar as usize * self.ports..][..self.ports]
    }

    /// How many numbers ports may have.
    pub(super) const fn port_count(&self) -> usize {
        self.ports
    }

    /// What crosses each channel, and the most channels that a route crosses.
    fn count(&self) -> (Census, usize) {
        let topology = &self.subnet.topology;
        let sized = is_of(self.tables, self.subnet);
        let leaves: Vec<u32> =
            (0..topology.xbar_count() as u32).filter(|&xbar| !topology.hosts_of(xbar).is_empty()).collect();
        let words = leaves.len().div_ceil(64);
        // Which leaves' frames cross a channel. All threads set bits here, and the result does not depend on
        // which was first.
        let crossed: Vec<AtomicU64> =
            (0..topology.channel_count() * words).map(|_| AtomicU64::new(0)).collect();
        let hosts: Vec<u32> = leaves.iter().map(|&leaf| cabled(topology, leaf)).collect();
        let sources = Sources::new(self, &leaves, &hosts);
        let counter = || Counter::new(self, &sources, &crossed);
        let mut total = if sized {
            leaves.par_iter().fold(counter, Counter::add_leaf).reduce(counter, |one, other| one.merge(&other))
        } else {
            counter()
        };
        total.spread_common();
        let weight = f64::from(1_u32 << self.subnet.destinations.lmc());
        let senders = |channel: usize| {
            let words = crossed[channel * words..][..words].iter().map(|word| word.load(Ordering::Relaxed));
            let bits = words.enumerate().flat_map(|(at, word)| bits(word).map(move |bit| 64 * at + bit));
            let own = sources.hosts_at(topology.tail(channel as u32).xbar);
            let own = if total.crossings[channel].destinations > 0 { own } else { 0 };
            bits.map(|leaf| hosts[leaf]).sum::<u32>() + own
        };
        let all: u64 = hosts.iter().map(|&hosts| u64::from(hosts)).sum();
        let crossings = total.crossings.iter();
        let census = Census {
            loads: crossings.clone().map(|crossing| crossing.frames as f64 / weight).collect(),
            sources: (0..topology.channel_count()).into_par_iter().map(senders).collect(),
            unroutable: (all * all.saturating_sub(1)).saturating_sub(total.routable),
            destinations: crossings.map(|crossing| crossing.destinations).collect(),
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

/// How many hosts have a live cable to an xbar.
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
        let mut xbar = self.starts[from as usize];
        if xbar == NOWHERE || slots.is_empty() {
            return false;
        }
        let slot = slots.start + (draw & (slots.len() as u32 - 1));
        let end = self.ends[slot as usize];
        if end == NOWHERE {
            return false;
        }
        let ports = self.tables.of_slot(slot);
        let mut left = self.longest;
        while xbar != end {
            let step = self.next(xbar, ports[xbar as usize]);
            if step.channel == NOWHERE || left == 0 {
                return false;
            }
            channels.push(step.channel);
            xbar = step.head;
            left -= 1;
        }
        true
    }

    /// Reads the entries for the host one after the other, as processors fetch memory ahead where it is read so. Routes
    /// read them at random places, and would wait for each.
    fn prepare(&self, to: u32) {
        const LINE_BYTES: usize = 64;
        let slots = self.subnet.destinations.slots_of_host(to);
        for slot in slots.filter(|&slot| self.ends[slot as usize] != NOWHERE) {
            let lines = self.tables.of_slot(slot).iter().step_by(LINE_BYTES);
            std::hint::black_box(lines.fold(0_u8, |sum, &port| sum.wrapping_add(port)));
        }
    }

    fn census(&self) -> &Census {
        self.census.get_or_init(|| self.count().0)
    }

    fn is_service_adapter(&self, host: u32) -> bool {
        self.subnet.is_service_adapter[host as usize]
    }
}
