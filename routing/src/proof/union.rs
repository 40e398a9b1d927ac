//! The channel dependencies of many tables together, and the search for a cycle among them.

use std::fmt;

use mapper_proto::map::PortRef;

use super::{Violation, walk};
use crate::host_routes::bits;
use crate::repair::onward;
use crate::{HostRoutes, Topology};

/// A circle of channels that can wait for each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle {
    /// The ports that the channels leave, in the order in which frames pass. The last one leads to
    /// the xbar of the first.
    pub ports: Vec<PortRef>,
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("routes can wait for each other in a circle: out of ")?;
        for (i, port) in self.ports.iter().chain(self.ports.first()).enumerate() {
            let then = if i == 0 { "" } else { ", then " };
            write!(f, "{then}xbar {} port {}", port.xbar, port.port)?;
        }
        Ok(())
    }
}

impl std::error::Error for Cycle {}

/// The union of many hosts' channel dependencies.
///
/// A route that goes on from one channel to the next holds the first while it waits for the second. Routes
/// are free of deadlock if these dependencies close no circle (Dally and Seitz, 1987). The union is searched
/// for a circle as it is, without trust in any orientation. Where tables use several layers, make one union
/// for each layer.
#[derive(Clone, Debug)]
pub struct UnionProof<'a> {
    topology: &'a Topology,
    /// The dependencies of channel c are the bits from `base[c]` on, one for each channel out of its head.
    base: Vec<u32>,
    dependencies: Vec<u64>,
    /// States that the table being added has passed, by phase and xbar: the number of its last search that did.
    passed: Vec<u32>,
    searches: u32,
}

/// Numbers for all dependencies: those of channel c begin at `base[c]`, one for each channel out of its head.
pub(crate) fn dependency_base(topology: &Topology) -> Vec<u32> {
    let mut base = Vec::with_capacity(topology.channel_count() + 1);
    let mut total = 0;
    for channel in 0..topology.channel_count() as u32 {
        base.push(total);
        total += topology.channels_of(topology.head(channel).xbar).len() as u32;
    }
    base.push(total);
    base
}

impl<'a> UnionProof<'a> {
    /// A union that has no routes yet.
    pub fn new(topology: &'a Topology) -> Self {
        let base = dependency_base(topology);
        let total = base.last().copied().unwrap_or_default() as usize;
        Self { topology, base, dependencies: vec![0; total.div_ceil(64)], passed: Vec::new(), searches: 0 }
    }

    /// Adds a host's table, which must be of this topology.
    ///
    /// # Errors
    /// If it is of another topology.
    pub fn add_table(&mut self, routes: &HostRoutes) -> Result<(), Violation> {
        if !routes.fits(self.topology) {
            return Err(Violation::OtherTopology);
        }
        let xbars = self.topology.xbar_count() as u32;
        let states = usize::from(routes.phases) * self.topology.xbar_count();
        if self.passed.len() < states {
            self.passed.resize(states, 0);
        }
        let first = self.searches;
        self.searches += u64::BITS;
        for xbar in (0..xbars).filter(|&xbar| !self.topology.hosts_of(xbar).is_empty()) {
            for search in bits(routes.searches_used(self.topology, xbar)) {
                self.add_branch(routes, search, first + 1 + search as u32, xbar);
            }
        }
        Ok(())
    }

    /// Adds the route of a search to an xbar, except for the part that other routes of the search passed.
    fn add_branch(&mut self, routes: &HostRoutes, search: usize, mark: u32, end: u32) {
        let (mut xbar, mut phase) = (end, routes.last_phase());
        let mut later = None;
        while let Some(back) = routes.entry(self.topology, search, phase, xbar) {
            let channel = self.topology.reverse(back);
            if let Some(later) = later {
                self.add_dependency(channel, later);
            }
            let state = &mut self.passed[usize::from(phase) * self.topology.xbar_count() + xbar as usize];
            if std::mem::replace(state, mark) == mark {
                break;
            }
            later = Some(channel);
            phase = routes.phase_before(phase, back);
            xbar = self.topology.head(back).xbar;
        }
    }

    /// Adds a route of any origin, given as the ports to leave by.
    ///
    /// # Errors
    /// If it does not lead from one host to the other: see [`walk`].
    pub fn add_route(&mut self, from: u32, to: u32, hops: &[PortRef]) -> Result<(), Violation> {
        let channels = walk(self.topology, from, to, hops, usize::MAX)?;
        for pair in channels.windows(2) {
            self.add_dependency(pair[0], pair[1]);
        }
        Ok(())
    }

    /// Adds every turn from a channel to the next that `allows` lets pass, whether or not a route
    /// makes it. No route passes an xbar twice, so turns back to the xbar that a channel comes from
    /// are left out.
    pub fn add_turns(&mut self, allows: impl Fn(u32, u32) -> bool) {
        for first in 0..self.topology.channel_count() as u32 {
            for second in onward(self.topology, first).filter(|&second| allows(first, second)) {
                self.add_dependency(first, second);
            }
        }
    }

    /// Adds that frames wait in the first channel for the second. Nothing waits for a dead channel,
    /// or in one: a frame that would cross it is dropped.
    pub(crate) fn add_dependency(&mut self, first: u32, second: u32) {
        if self.topology.is_dead(first) || self.topology.is_dead(second) {
            return;
        }
        let out = self.topology.channels_of(self.topology.head(first).xbar);
        debug_assert!(out.contains(&second), "channel {second} does not follow channel {first}");
        let bit = self.base[first as usize] + second - out.start;
        self.dependencies[bit as usize / 64] |= 1 << (bit % 64);
    }

    /// Adds what another union of the same topology holds.
    pub fn merge(&mut self, other: &Self) {
        for (word, other) in self.dependencies.iter_mut().zip(&other.dependencies) {
            *word |= other;
        }
    }

    /// How many different dependencies there are.
    pub fn dependency_count(&self) -> usize {
        self.dependencies.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Searches the dependencies for a circle, depth first.
    ///
    /// # Errors
    /// The first circle found.
    pub fn prove_acyclic(&self) -> Result<(), Cycle> {
        let channels = self.topology.channel_count();
        let mut state = vec![ChannelState::New; channels];
        // Channels on the way, each with the next of its dependencies to look at.
        let mut way: Vec<(u32, u32)> = Vec::new();
        for start in 0..channels as u32 {
            if state[start as usize] != ChannelState::New {
                continue;
            }
            way.push((start, self.base[start as usize]));
            state[start as usize] = ChannelState::OnTheWay;
            while let Some((channel, bit)) = way.last_mut() {
                let channel = *channel;
                let Some(found) = self.next_bit(*bit, self.base[channel as usize + 1]) else {
                    state[channel as usize] = ChannelState::Done;
                    way.pop();
                    continue;
                };
                *bit = found + 1;
                let out = self.topology.channels_of(self.topology.head(channel).xbar);
                let next = out.start + found - self.base[channel as usize];
                match state[next as usize] {
                    ChannelState::Done => {}
                    ChannelState::New => {
                        state[next as usize] = ChannelState::OnTheWay;
                        way.push((next, self.base[next as usize]));
                    }
                    ChannelState::OnTheWay => return Err(self.cycle(&way, next)),
                }
            }
        }
        Ok(())
    }

    /// The first set bit from `bit` on, before `end`.
    fn next_bit(&self, bit: u32, end: u32) -> Option<u32> {
        let mut at = bit;
        while at < end {
            let word = self.dependencies[at as usize / 64] >> (at % 64);
            if word != 0 {
                let found = at + word.trailing_zeros();
                return (found < end).then_some(found);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    fn cycle(&self, way: &[(u32, u32)], first: u32) -> Cycle {
        let circle = way.iter().skip_while(|&&(channel, _)| channel != first);
        Cycle { ports: circle.map(|&(channel, _)| self.topology.tail(channel)).collect() }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ChannelState {
    New,
    OnTheWay,
    Done,
}
