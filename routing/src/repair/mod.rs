//! Routes around dead cables, before there is a new map, and why they cannot deadlock.
//!
//! # The trouble
//! When a cable dies, hosts learn of it at different times. Until they all have routes of a new
//! map, some use routes of the whole map and others routes around what they hold for dead: a static
//! reconfiguration without any agreement on when. Each set of routes may be free of deadlock and
//! their union not (Duato, Lysne, Pang and Pinkston, "A theory for deadlock-free dynamic network
//! reconfiguration", 2005). So what a host may do must be safe whatever the others know.
//!
//! # The rules
//! Let O be the orientation of the whole map, D the cables that a host holds for dead, G the
//! topology, and G - D what is left. A *turn* is a step from a channel to the next; steps back to
//! the xbar that the first channel comes from do not count, as no route passes an xbar twice.
//!
//! 1. Routes that cross no cable of D stay. They are legal in O.
//! 2. A destination that has no such route gets routes of G - D that are legal in O.
//! 3. A destination that still has none gets a route that may also make turns that D opens:
//!    - a turn whose two channels lie in no common circle of G - D, whatever turns were allowed (on
//!      a ring that lost a cable, and wherever a cable is the only way, these are all turns);
//!    - *exits*: a top that D robbed of its last up channel may be left and entered through one
//!      xbar below it: the first in the order of O from which another xbar that stands before the
//!      top is one step up. The turns are top, below, other, and the same backwards.
//! 4. A destination that has no route even then must wait for the new map.
//!
//! # Why the union of all hosts' routes is free of deadlock
//! Let T be the cables that are dead, and each host's D some part of T, not the same one and not
//! in any order. A frame that would cross a cable of T is dropped, so nothing waits for it. It is to
//! be shown that all turns that any host may make close no circle in G - T.
//!
//! *The rules only open more turns as D grows*: a turn of G - T that D opens, T opens, too. For turns
//! outside of circles, as taking cables out closes no circle. For exits, as a top stays one, and the
//! xbars that stood before the chosen one did not qualify with more cables. So it is enough to look
//! at the turns that T opens.
//!
//! *Legal turns and exits close no circle.* Legal turns alone do not. In a circle with exits, look
//! at an exit out of a top x. No channel leads down to x, so all channels from the exit before up to
//! x lead up. That exit is not one into a top: from a top only down channels lead on, so the top
//! would be x itself, and x would be left for the xbar that it was entered from, which is a step
//! back. So it is one out of a top y to an xbar q from which up channels lead to x, or which is x. q
//! stands before y, so x does. All exits of the circle, then, lead out of tops, each before the last
//! one: which cannot be in a circle. And a circle whose exits all lead into tops is one of the former
//! kind, read backwards.
//!
//! *Turns between channels that lie in no common circle add none*, whatever the others are.
//!
//! So long as what hosts hold for dead is dead, then, no circle closes. A host may be wrong, as frames get
//! lost for other reasons too, and then the turns of rule 3 and the routes of another host across the cable
//! can close one. So only cables of which it is known that nothing passes open turns
//! ([`DeadCables::proved`]). While a cable is back, and some host still uses turns that it opened and another
//! routes across it again, that is not proved. So a host that hears anything from behind a cable repairs
//! again at once; see [`LiveRoutes::opened`].
//!
//! # What is proved at run time
//! Nothing of this is trusted. [`repair`] proves each route on G - D as [`prove_host`](super::prove_host)
//! does, walks each route of rule 3 turn by turn, and searches all turns that O and D allow for a
//! circle with [`UnionProof`], before it hands out anything.

mod detours;
mod kept;
mod openings;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mapper_proto::map::PortRef;
use thiserror::Error;

use super::{
    Attachment, Cycle, HostRoutes, Orientation, RouteOptions, RoutingError, Topology, UnionProof, Violation,
    prove_routes, walk,
};
use openings::Openings;
pub(super) use openings::onward;

/// Why repaired routes are not handed out: a fault of this program. The old ones stay.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RepairError {
    /// Routes could not be computed.
    #[error("no routes around the dead cables")]
    Routing(#[from] RoutingError),
    /// A route is unsafe.
    #[error("the routes around the dead cables are refused")]
    Refused(#[from] Violation),
    /// Turns close a circle.
    #[error("the turns around the dead cables are refused")]
    Circle(#[from] Cycle),
}

/// Why a host of the map is out of reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum OutOfReach {
    /// No cables lead there.
    #[error("no live cable leads there")]
    NotConnected,
    /// Cables lead there, but no route.
    #[error("no route around the dead cables is short and safe; the next map brings one")]
    NoSafeRoute,
}

/// The cables that a host routes around. Each is named by a port that holds it, at either end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeadCables {
    /// All cables that are held for dead.
    pub avoided: BTreeSet<PortRef>,
    /// The dead ports that were asked and gave no answer, or have no carrier. Only they open turns.
    pub proved: BTreeSet<PortRef>,
}

impl From<BTreeSet<PortRef>> for DeadCables {
    /// Cables that are dead beyond doubt.
    fn from(dead: BTreeSet<PortRef>) -> Self {
        Self { proved: dead.clone(), avoided: dead }
    }
}

/// One host's routes over the cables that are not known dead.
///
/// The topology passed to its methods must be the one of [`repair`], or without dead cables the one
/// that the routes were computed from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LiveRoutes {
    /// Routes of the whole map.
    kept: Arc<HostRoutes>,
    /// Routes around the dead cables, for hosts that have no other; `None` if there are no such hosts.
    around: Option<HostRoutes>,
    /// Ways from xbar to xbar with turns that the dead cables opened, to xbars whose hosts have no
    /// other routes.
    detours: BTreeMap<u32, Vec<PortRef>>,
}

impl LiveRoutes {
    /// The routes of a map of which no cable is known dead.
    pub fn whole(routes: Arc<HostRoutes>) -> Self {
        Self { kept: routes, around: None, detours: BTreeMap::new() }
    }

    /// The host whose routes these are.
    pub fn from(&self) -> u32 {
        self.kept.from()
    }

    /// How many routes lead to a host.
    pub fn count_to(&self, topology: &Topology, to: u32) -> usize {
        match self.table_to(topology, to) {
            Some(table) => table.count_to(topology, to),
            None => usize::from(self.detour_to(topology, to).is_some()),
        }
    }

    /// The routes to a host, each the ports to leave by, in order. All are different.
    pub fn routes_to<'a>(
        &'a self,
        topology: &'a Topology,
        to: u32,
    ) -> impl Iterator<Item = Vec<PortRef>> + 'a {
        let table = self.table_to(topology, to);
        let detour = if table.is_none() { self.detour_to(topology, to) } else { None };
        table.into_iter().flat_map(move |table| table.routes_to(topology, to)).chain(detour)
    }

    /// The hosts of the map that no route leads to now, and why. Phantoms are not among them.
    pub fn unreachable<'a>(&'a self, topology: &'a Topology) -> impl Iterator<Item = (u32, OutOfReach)> + 'a {
        let others = (0..topology.host_count() as u32)
            .filter(|&to| to != self.from() && !topology.is_phantom(to) && self.count_to(topology, to) == 0);
        others.map(|to| match topology.connected(self.from(), to) {
            true => (to, OutOfReach::NoSafeRoute),
            false => (to, OutOfReach::NotConnected),
        })
    }

    /// Whether some route makes turns that are only open because cables are dead.
    pub fn opened(&self) -> bool {
        !self.detours.is_empty()
    }

    /// The table that serves a host.
    fn table_to(&self, topology: &Topology, to: u32) -> Option<&HostRoutes> {
        [Some(&*self.kept), self.around.as_ref()]
            .into_iter()
            .flatten()
            .find(|table| table.count_to(topology, to) > 0)
    }

    fn detour_to(&self, topology: &Topology, to: u32) -> Option<Vec<PortRef>> {
        let Attachment::Port(at) = topology.attachment(to) else { return None };
        let ports = self.detours.get(&at.xbar)?;
        Some(ports.iter().copied().chain([at]).collect())
    }

    /// The xbars with hosts that cables lead to and no route.
    fn missed<'a>(&'a self, topology: &'a Topology) -> impl Iterator<Item = u32> + 'a {
        self.unreachable(topology).filter(|&(_, why)| why == OutOfReach::NoSafeRoute).filter_map(|(to, _)| {
            match topology.attachment(to) {
                Attachment::Port(at) => Some(at.xbar),
                Attachment::Host(_) | Attachment::Nothing => None,
            }
        })
    }

    /// Proves each route on the topology that is left.
    fn prove(
        &self,
        cut: &Topology,
        orientation: &Orientation,
        openings: Option<(&Topology, &Openings)>,
    ) -> Result<(), Violation> {
        prove_routes(cut, orientation, &self.kept)?;
        self.around.as_ref().map(|routes| prove_routes(cut, orientation, routes)).transpose()?;
        let max_hops = self.kept.options().max_hops.into();
        for &xbar in self.detours.keys() {
            for &to in cut.hosts_of(xbar) {
                let Some(hops) = self.detour_to(cut, to) else { continue };
                let channels = walk(cut, self.from(), to, &hops, max_hops)?;
                let allows = |pair: &[u32]| {
                    openings.is_some_and(|(gone, open)| open.allows(gone, orientation, pair[0], pair[1]))
                };
                if let Some(turn) = channels.windows(2).find(|pair| !allows(pair)) {
                    let (from, to) = (cut.mac(self.from()), cut.mac(to));
                    let (arrival, out) = (cut.head(turn[0]), cut.tail(turn[1]).port);
                    return Err(Violation::IllegalTurn { from, to, arrival, out });
                }
            }
        }
        Ok(())
    }
}

/// Routes around dead cables: `routes` are of the whole `topology` and `whole` its orientation. Returns the
/// topology that is left, numbered as before, and the routes on it, proved.
///
/// Start from the routes of the whole map each time, also when more cables die or some come back.
///
/// # Errors
/// If a proof fails.
pub fn repair(
    topology: &Topology,
    whole: &Orientation,
    routes: &HostRoutes,
    dead: &DeadCables,
) -> Result<(Topology, LiveRoutes), RepairError> {
    let cut = topology.without(&dead.avoided);
    let orientation = whole.carried_to(&cut);
    let (from, options): (u32, &RouteOptions) = (routes.from(), routes.options());
    let compute = || HostRoutes::compute_within(&cut, &orientation, from, options);
    let kept = match routes.less_dead(&cut) {
        Some(kept) => kept,
        None => compute()?,
    };
    let mut live = LiveRoutes::whole(Arc::new(kept));
    let mut openings = None;
    if live.missed(&cut).next().is_some() {
        live.around = Some(compute()?);
        let missed: BTreeSet<u32> = live.missed(&cut).collect();
        if !missed.is_empty() {
            let gone = topology.without(&dead.proved);
            let open = Openings::of(&gone, whole);
            let allows = |first, second| open.allows(&gone, whole, first, second);
            live.detours = detours::detours(&cut, from, missed.into_iter(), options.max_hops, allows);
            let mut union = UnionProof::new(&gone);
            union.add_turns(allows);
            union.prove_acyclic()?;
            openings = Some((gone, open));
        }
    }
    live.prove(&cut, &orientation, openings.as_ref().map(|(gone, open)| (gone, open)))?;
    Ok((cut, live))
}
