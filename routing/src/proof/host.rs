//! What an agent proves of its own table.

use super::Violation;
use crate::host_routes::bits;
use crate::{Attachment, Far, HostRoutes, Orientation, Topology};

/// What was proved of a host's table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Proof {
    /// How many destinations routes lead to.
    pub reachable: usize,
    /// How many hosts the map lists that no cable leads to.
    pub unreachable: usize,
    /// How many routes there are.
    pub routes: usize,
    /// How many hops the longest route has.
    pub longest_hops: usize,
}

/// Proves a host's table against the orientation that all hosts of the map share.
///
/// Every host that cables lead to has a route; each route leads to its destination along cables,
/// keeps the limit on hops and passes no xbar twice; each step from channel to channel is legal; and
/// the orientation lets no circle of legal steps close. As all hosts share it, the union of their
/// routes is free of deadlock if each host's table passes.
///
/// The trees are proved, not each route, which comes to the same. A route is read from a tree by
/// walking back from its destination's state, and every state's walk back begins with one step that
/// does not depend on where the walk came from. So it is enough that from each state which a route
/// passes
/// - the step back is along a cable that the orientation lets pass no later than in the state's phase, to
///   the state of the last phase before it (so all steps of a route are legal);
/// - the state before is one step nearer to the source, found by counting from the source (so the
///   walk ends there, and its length is what was counted);
/// - if an xbar has several states, those of later phases are no farther. A walk back never goes to a later
///   phase, and always comes nearer, so it cannot pass two of them.
///
/// # Errors
/// The first violation found.
pub fn prove_host(
    topology: &Topology,
    orientation: &Orientation,
    routes: &HostRoutes,
) -> Result<Proof, Violation> {
    let proof = prove_routes(topology, orientation, routes)?;
    let missed = routes.unreachable(topology).find(|&to| topology.connected(routes.from(), to));
    match missed {
        Some(to) => Err(Violation::NoRoute { from: topology.mac(routes.from()), to: topology.mac(to) }),
        None => Ok(proof),
    }
}

/// Proves of each route of a host what [`prove_host`] does, but not that there is one to every host.
///
/// # Errors
/// The first violation found.
pub fn prove_routes(
    topology: &Topology,
    orientation: &Orientation,
    routes: &HostRoutes,
) -> Result<Proof, Violation> {
    orientation.prove(topology)?;
    if !routes.fits(topology) || routes.phases != orientation.phases() {
        return Err(Violation::OtherTopology);
    }
    let longest_hops = HostTrees::new(topology, orientation, routes).prove()?;
    let mut proof = Proof { longest_hops, ..Proof::default() };
    for to in (0..topology.host_count() as u32).filter(|&to| to != routes.from() && !topology.is_phantom(to))
    {
        let count = routes.count_to(topology, to);
        let sound = match topology.attachment(to) {
            Attachment::Port(at) => topology.far(at) == Far::Host(to),
            Attachment::Host(other) => other == routes.from(),
            Attachment::Nothing => count == 0,
        };
        let (from_mac, to_mac) = (topology.mac(routes.from()), topology.mac(to));
        if count > 0 && !sound {
            return Err(Violation::WrongEnd { from: from_mac, to: to_mac });
        }
        proof.routes += count;
        proof.reachable += usize::from(count > 0);
        proof.unreachable += usize::from(count == 0);
    }
    Ok(proof)
}

/// The steps from the source to the states of each tree, as they are counted.
struct HostTrees<'a> {
    topology: &'a Topology,
    orientation: &'a Orientation,
    routes: &'a HostRoutes,
    /// The steps to xbar `x` in phase `p` stand at `phases x + p`. They are [`UNCOUNTED`] until that state is
    /// passed.
    steps: Vec<u8>,
    /// The places in `steps` of the states on the current walk back that are not counted yet.
    walk: Vec<usize>,
}

const UNCOUNTED: u8 = u8::MAX;

impl<'a> HostTrees<'a> {
    fn new(topology: &'a Topology, orientation: &'a Orientation, routes: &'a HostRoutes) -> Self {
        Self { topology, orientation, routes, steps: Vec::new(), walk: Vec::new() }
    }

    /// Proves the trees, and tells how many hops the longest route has.
    fn prove(mut self) -> Result<usize, Violation> {
        let mut longest = 0;
        let xbars = self.topology.xbar_count() as u32;
        let phases = usize::from(self.orientation.phases());
        let ends: Vec<(u32, u64)> = (0..xbars)
            .filter(|&xbar| !self.topology.hosts_of(xbar).is_empty())
            .map(|xbar| (xbar, self.routes.searches_used(self.topology, xbar)))
            .filter(|&(_, searches)| searches != 0)
            .collect();
        let searches = ends.iter().fold(0, |all, (_, searches)| all | searches);
        for search in bits(searches) {
            self.steps.clear();
            self.steps.resize(phases * xbars as usize, UNCOUNTED);
            for &(xbar, _) in ends.iter().filter(|(_, searches)| searches >> search & 1 == 1) {
                let hops = usize::from(self.count(search, xbar)?) + 1;
                longest = longest.max(hops);
                if hops > self.routes.options().max_hops.into() {
                    let (from, to) = self.names(xbar);
                    let max_hops = self.routes.options().max_hops.into();
                    return Err(Violation::TooLong { from, to, hops, max_hops });
                }
            }
            for (xbar, steps) in self.steps.chunks_exact(phases).enumerate() {
                let counted = steps.iter().filter(|&&steps| steps != UNCOUNTED);
                if !counted.is_sorted_by(|earlier, later| earlier >= later) {
                    let (from, to) = self.names(xbar as u32);
                    return Err(Violation::Loop { from, to, xbar: xbar as u32 });
                }
            }
        }
        Ok(longest)
    }

    /// Walks back from an xbar to the source or to a state already counted, and counts the states
    /// passed.
    fn count(&mut self, search: usize, end: u32) -> Result<u8, Violation> {
        let phases = self.orientation.phases();
        let (mut xbar, mut phase) = (end, phases - 1);
        self.walk.clear();
        let mut steps = loop {
            let place = usize::from(phases) * xbar as usize + usize::from(phase);
            let counted = self.steps[place];
            if counted != UNCOUNTED {
                break counted;
            }
            if self.routes.starts_at(xbar) {
                break 0;
            }
            self.walk.push(place);
            if self.walk.len() > self.routes.options().max_hops.into() {
                let (from, to) = self.names(end);
                let (hops, max_hops) = (self.walk.len() + 1, self.routes.options().max_hops.into());
                return Err(Violation::TooLong { from, to, hops, max_hops });
            }
            (xbar, phase) = self.step_back(search, end, xbar, phase)?;
        };
        for &place in self.walk.iter().rev() {
            steps += 1;
            self.steps[place] = steps;
        }
        Ok(steps)
    }

    /// The state before a state, if the step between them is legal.
    fn step_back(&self, search: usize, end: u32, xbar: u32, phase: u8) -> Result<(u32, u8), Violation> {
        let (from, to) = self.names(end);
        let Some(back) = self.routes.entry(self.topology, search, phase, xbar) else {
            return Err(Violation::NoRoute { from, to });
        };
        let entered = self.topology.head(back);
        // The port number leads from the state before to this one.
        if self.topology.far(entered) != Far::Channel(self.topology.reverse(back)) {
            return Err(Violation::Broken { from, to, hop: entered });
        }
        // The routes read the phase before from a table of their own: it must be the orientation's.
        let before = self.routes.phase_before(phase, back);
        match self.orientation.passage_back(back).before(phase) {
            Some(legal) if legal == before => Ok((entered.xbar, before)),
            _ => {
                let arrival = self.topology.tail(back);
                Err(Violation::IllegalTurn { from, to, arrival: entered, out: arrival.port })
            }
        }
    }

    /// The source, and a host at an xbar (or the source again, if it has none).
    fn names(&self, xbar: u32) -> (mapper_proto::Mac, mapper_proto::Mac) {
        let from = self.routes.from();
        let to = self.topology.hosts_of(xbar).first().copied().unwrap_or(from);
        (self.topology.mac(from), self.topology.mac(to))
    }
}
