//! One host's routes, kept as trees and written out on demand.

mod error;
mod travel;

use std::sync::Arc;

use mapper_proto::map::PortRef;
use mapper_proto::wire::Route;

pub use error::RoutingError;
pub use travel::{turns, wire_route, wire_way_back};

use super::engines::dispersive::{self, Beyond};
use super::{Attachment, Orientation, Topology};

/// What a user may set of a host's routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouteOptions {
    /// Most routes to a destination (`--num-passes`), 1 to [`Self::MAX_PASSES`].
    pub passes: u8,
    /// Most xbars on a route, 1 to [`Self::MAX_HOPS`].
    pub max_hops: u8,
}

impl RouteOptions {
    /// Most routes to a destination that can be asked for.
    pub const MAX_PASSES: u8 = 64;
    /// Longest limit that still fits [`Route::MAX_BYTES`] in two-byte elements.
    pub const MAX_HOPS: u8 = (Route::MAX_BYTES / 2) as u8;
}

impl Default for RouteOptions {
    /// 8 routes of at most 11 hops.
    fn default() -> Self {
        Self { passes: 8, max_hops: 11 }
    }
}

/// Where a host's routes begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// Cabled to nothing.
    Nothing,
    /// Cabled to the only other host.
    Host(u32),
    /// Cabled to this xbar.
    Xbar(u32),
}

impl Source {
    /// Where a host is cabled to.
    pub(super) fn of(topology: &Topology, host: u32) -> Self {
        match topology.attachment(host) {
            Attachment::Nothing => Self::Nothing,
            Attachment::Host(other) => Self::Host(other),
            Attachment::Port(at) => Self::Xbar(at.xbar),
        }
    }
}

/// One host's routes to all others: up to [`RouteOptions::passes`] different ones a destination.
///
/// They are kept as a few shortest-path trees out of the host's xbar, one for each search with a byte for
/// each state, and written out on demand. A tree has a state for each xbar and phase of the orientation,
/// which stands for reaching the xbar in this phase or an earlier one. (The two phases of up*/down* are by up
/// channels alone, and by any.) A state is entered by one channel, which also gives the phase before it, so a
/// route is read backwards from its destination's state of the last phase. Each search whose route to an xbar
/// differs from all earlier ones has its bit set there. The hosts of an xbar take turns over these bits, so
/// that routes to neighbours spread, too.
///
/// The topology passed to its methods must be the one it was computed from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostRoutes {
    pub(super) from: u32,
    pub(super) source: Source,
    pub(super) options: RouteOptions,
    pub(super) xbars: usize,
    /// How many phases the orientation has.
    pub(super) phases: u8,
    /// The channel by which search f enters xbar x in phase p or an earlier one: `entries[(phases f + phases
    /// - 1 - p) xbars + x]`. It is stored as the place of the reverse channel among the channels out of x.
    pub(super) entries: Vec<u8>,
    /// For each channel, the last phase in which routes may take its reverse. It is shared with the
    /// orientation.
    pub(super) backwards: Arc<[u8]>,
    /// For each xbar, the searches (a bit each) whose route there differs from all earlier ones.
    pub(super) distinct: Vec<u64>,
    /// For each xbar, the searches (a bit each) whose route there crosses a dead cable; empty if
    /// no cable is known dead.
    pub(super) lost: Vec<u64>,
}

impl HostRoutes {
    /// Computes a host's routes by the engine [`dispersive`].
    ///
    /// # Errors
    /// If an option is out of range, there is no such host, or a destination is farther than
    /// [`RouteOptions::max_hops`]. Destinations that no cable leads to are no error: see
    /// [`Self::unreachable`].
    pub fn compute(
        topology: &Topology,
        orientation: &Orientation,
        from: u32,
        options: &RouteOptions,
    ) -> Result<Self, RoutingError> {
        dispersive::compute(topology, orientation, from, options, Beyond::Refused)
    }

    /// The host whose routes these are.
    pub fn from(&self) -> u32 {
        self.from
    }

    /// What was asked for.
    pub fn options(&self) -> &RouteOptions {
        &self.options
    }

    /// How many routes lead to a host.
    pub fn count_to(&self, topology: &Topology, to: u32) -> usize {
        match (self.source, topology.attachment(to)) {
            _ if to == self.from => 0,
            (Source::Host(other), _) => usize::from(other == to),
            (Source::Xbar(_), Attachment::Port(at)) => match self.lost_to(at.xbar) {
                0 => self.distinct_to(at.xbar).count_ones().min(self.options.passes.into()) as usize,
                _ => self.searches_to(topology, to, at.xbar).count_ones() as usize,
            },
            _ => 0,
        }
    }

    /// The routes to a host, each the ports to leave by, in order. All are different. A host cabled
    /// straight to this one has one route without hops.
    pub fn routes_to<'a>(
        &'a self,
        topology: &'a Topology,
        to: u32,
    ) -> impl Iterator<Item = Vec<PortRef>> + 'a {
        let at = match (self.source, topology.attachment(to)) {
            (Source::Xbar(_), Attachment::Port(at)) if to != self.from => Some(at),
            _ => None,
        };
        let direct = (self.source == Source::Host(to)).then(Vec::new);
        let searches = at.map_or(0, |at| self.searches_to(topology, to, at.xbar));
        direct.into_iter().chain(bits(searches).filter_map(move |search| {
            let at = at?;
            let mut hops: Vec<PortRef> =
                self.entered(topology, search, at.xbar).map(|channel| topology.head(channel)).collect();
            hops.reverse();
            hops.push(at);
            Some(hops)
        }))
    }

    /// The hosts that no route leads to, though the map lists them. Phantoms are not among them.
    pub fn unreachable<'a>(&'a self, topology: &'a Topology) -> impl Iterator<Item = u32> + 'a {
        (0..topology.host_count() as u32)
            .filter(|&to| to != self.from && !topology.is_phantom(to) && self.count_to(topology, to) == 0)
    }

    /// The searches (a bit each) that serve a host at an xbar.
    fn searches_to(&self, topology: &Topology, to: u32, xbar: u32) -> u64 {
        let neighbours = topology.hosts_of(xbar);
        let turn = neighbours.binary_search(&to).unwrap_or_default();
        let passes = usize::from(self.options.passes);
        let start = self.first_turn(xbar) + turn * passes;
        let (all, lost) = (self.distinct_to(xbar), self.lost_to(xbar));
        // Routes that are left stay with their hosts. A host that has lost all of its routes gets those of
        // others.
        match window(all, start, passes) & !lost {
            0 if lost != 0 => window(all & !lost, start, passes),
            kept => kept,
        }
    }

    /// The xbar that a host is cabled to, and the searches (a bit each) that serve the host; `None` if that
    /// host or this one is not cabled to an xbar.
    pub(super) fn searches_to_host(&self, topology: &Topology, to: u32) -> Option<(u32, u64)> {
        match (self.source, topology.attachment(to)) {
            (Source::Xbar(_), Attachment::Port(at)) if to != self.from => {
                Some((at.xbar, self.searches_to(topology, to, at.xbar)))
            }
            _ => None,
        }
    }

    /// The searches (a bit each) that serve any host at an xbar.
    pub(super) fn searches_used(&self, topology: &Topology, xbar: u32) -> u64 {
        if self.lost_to(xbar) != 0 {
            let hosts = topology.hosts_of(xbar).iter();
            return hosts.fold(0, |used, &host| used | self.searches_to(topology, host, xbar));
        }
        let hosts = topology.hosts_of(xbar).len() - usize::from(self.starts_at(xbar));
        let routes = hosts * usize::from(self.options.passes);
        window(self.distinct_to(xbar), self.first_turn(xbar), routes)
    }

    /// For each search that serves hosts at an xbar, how many hosts it serves. A host with n routes counts
    /// 1/n.
    pub(super) fn load_by_search(
        &self,
        topology: &Topology,
        xbar: u32,
    ) -> impl Iterator<Item = (usize, f64)> {
        let mut loads = [0.0; u64::BITS as usize];
        for &host in topology.hosts_of(xbar).iter().filter(|&&host| host != self.from) {
            let searches = self.searches_to(topology, host, xbar);
            bits(searches).for_each(|search| loads[search] += 1.0 / f64::from(searches.count_ones()));
        }
        loads.into_iter().enumerate().filter(|&(_, load)| load > 0.0)
    }

    /// Whether the table can be of this topology.
    pub(super) fn fits(&self, topology: &Topology) -> bool {
        self.xbars == topology.xbar_count()
            && self.backwards.len() == topology.channel_count()
            && (self.from as usize) < topology.host_count()
            && self.source == Source::of(topology, self.from)
    }

    /// Whether the host is cabled to this xbar.
    pub(super) fn starts_at(&self, xbar: u32) -> bool {
        self.source == Source::Xbar(xbar)
    }

    /// The searches (a bit each) that found different routes to an xbar; none for a host that is
    /// cabled to no xbar.
    fn distinct_to(&self, xbar: u32) -> u64 {
        self.distinct.get(xbar as usize).copied().unwrap_or_default()
    }

    /// The searches (a bit each) whose route to an xbar crosses a dead cable.
    fn lost_to(&self, xbar: u32) -> u64 {
        self.lost.get(xbar as usize).copied().unwrap_or_default()
    }

    /// The search whose turn is first at an xbar, which is not the same everywhere.
    fn first_turn(&self, xbar: u32) -> usize {
        xbar as usize + self.from as usize
    }

    /// The reverse of the channel by which a search enters a state, if it enters that state.
    pub(super) fn entry(&self, topology: &Topology, search: usize, phase: u8, xbar: u32) -> Option<u32> {
        if self.starts_at(xbar) {
            return None;
        }
        let channels = topology.channels_of(xbar);
        let row = search * usize::from(self.phases) + usize::from(self.last_phase() - phase);
        let place = self.entries[row * self.xbars + xbar as usize];
        let channel = channels.start + u32::from(place);
        (channel < channels.end).then_some(channel)
    }

    /// The phase of the state before one that is entered by the reverse of the channel `back`.
    pub(super) fn phase_before(&self, phase: u8, back: u32) -> u8 {
        self.backwards[back as usize].min(phase)
    }

    /// The phase of the states that routes end in.
    pub(super) fn last_phase(&self) -> u8 {
        self.phases - 1
    }

    /// The way from an xbar back to the source, as the reverses of the channels of its route.
    pub(super) fn entered<'a>(
        &'a self,
        topology: &'a Topology,
        search: usize,
        xbar: u32,
    ) -> impl Iterator<Item = u32> + 'a {
        let (mut xbar, mut phase) = (xbar, self.last_phase());
        // No route is longer than the limit, which also bounds the walk if a table is damaged.
        std::iter::from_fn(move || {
            let channel = self.entry(topology, search, phase, xbar)?;
            phase = self.phase_before(phase, channel);
            xbar = topology.head(channel).xbar;
            Some(channel)
        })
        .take(self.options.max_hops.into())
    }
}

/// The set bits of a word, lowest first.
pub(super) fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
        word &= word - 1;
        Some(bit)
    })
}

/// `length` of the set bits of `word` from the `start`-th on, in a circle; all if there are no more.
fn window(word: u64, start: usize, length: usize) -> u64 {
    let count = word.count_ones() as usize;
    if length >= count {
        return word;
    }
    let start = start % count;
    let chosen = |place: usize| (place + count - start) % count < length;
    bits(word).enumerate().filter(|&(place, _)| chosen(place)).fold(0, |all, (_, bit)| all | 1 << bit)
}
