//! The checks of cables between xbars.

use super::{Check, Expected, Planner, ProbeCheck};
use crate::Mac;
use crate::map::ways::{Crossing, Way, turn};
use crate::map::{Cable, Host, PortRef};
use crate::wire::{Element, ProbeKind, RoundTrip, Route};

/// Most ports behind which nothing is believed that are tried for a cable, each with each.
const MOST_UNPROVED: usize = 32;

impl Planner<'_> {
    /// The cables that may join ports behind which nothing was believed. Exploration asks a few times for
    /// the proof of a cable that a tag claims: with much loss all of them get lost now and then, and a map
    /// without the cable must not stay for ever.
    pub(super) fn unproved_cables(&self, checks: &mut Vec<Check>) {
        let nobody = self.map.contested.iter().filter(|contested| contested.mac == Mac::NOBODY);
        let ports: Vec<PortRef> = nobody.map(|contested| contested.at).take(MOST_UNPROVED).collect();
        for (index, &a) in ports.iter().enumerate() {
            if self.is_own(a.xbar, a.port) {
                checks.extend(ports[index + 1..].iter().filter_map(|&b| self.unproved(a, b)));
            }
        }
        checks.extend(ports.iter().filter_map(|&at| self.unproved_home(at)));
    }

    /// The check of what a port behind which nothing was believed may be: the port that this very host hangs on. Then the
    /// plain xbar that it belongs to in the map is the host's own, which the map has twice, and the cable by which the map enters
    /// it joins another port of the host's own xbar. Exploration asks a few times for the proof of that cable, too; without it each
    /// frame goes the ways that a map of two xbars has, so nothing else would ever show that they are one.
    fn unproved_home(&self, at: PortRef) -> Option<Check> {
        let is_tagged = |xbar: u32| self.map.xbars[xbar as usize].tag.is_some();
        if at.xbar == self.at.xbar || is_tagged(at.xbar) || is_tagged(self.at.xbar) {
            return None;
        }
        let way = self.way(at.xbar)?;
        let from = way.crossings.last()?;
        let entry = i16::from(way.entry.port) + i16::from(self.at.port) - i16::from(at.port);
        let to = PortRef { xbar: self.at.xbar, port: u8::try_from(entry).ok()? };
        self.unproved(PortRef { xbar: from.xbar, port: from.leave }, to)
    }

    /// The check of a cable that is not in the map. What is cabled to one of its ends may pretend to be
    /// the other end, but not what is behind the other end: so it is crossed from both. `None` if this host
    /// reaches only one of them.
    fn unproved(&self, a: PortRef, b: PortRef) -> Option<Check> {
        let probes = vec![self.crossing(a, b)?, self.crossing(b, a)?];
        Some(Check::Unproved { probes, ends: [a, b] }).filter(fits)
    }

    /// The probe that leaves by `near` and comes in by `far`, if there is a cable between: stamped there, or
    /// home by the way of that end where it has no tag.
    fn crossing(&self, near: PortRef, far: PortRef) -> Option<Expected> {
        let ours = self.way(near.xbar)?;
        let mut route = ours.forward();
        route.push(turn(ours.entry.port, near.port));
        let tag = self.map.xbars[far.xbar as usize].tag;
        let probe = if tag.is_some() {
            identifying(route, &route_of([turn(near.port, ours.entry.port)], &ours), near)
        } else {
            let theirs = self.way(far.xbar)?;
            returning(route, near, turn(far.port, theirs.entry.port), &theirs)
        };
        Some(Expected { probe, stamp: tag.map(|tag| (tag, far.port)) })
    }

    /// The ends of a cable, that from which it is checked first: the nearer one if the forest leads
    /// over it, else one whose other end tells its name, else one with hosts.
    pub(super) fn ends(&self, cable: &Cable) -> (PortRef, PortRef) {
        let is_tagged = |end: PortRef| self.map.xbars[end.xbar as usize].tag.is_some();
        let (a, b) = (cable.a, cable.b);
        let from_b = if self.forest.crosses(a, b) || self.forest.crosses(b, a) {
            self.forest.crosses(b, a)
        } else if is_tagged(a) != is_tagged(b) {
            is_tagged(a)
        } else {
            self.on(a.xbar).is_empty()
        };
        if from_b { (b, a) } else { (a, b) }
    }

    /// The cable between two ports: a frame that crosses it and comes home by the far xbar's own
    /// way, or is answered at the root of that, or brings a stamp from there. `None` if this host has
    /// no way there, or no route can hold it.
    pub(super) fn cable(&self, near: PortRef, far: PortRef) -> Option<Check> {
        let ours = self.way(near.xbar)?;
        let mut route = ours.forward();
        route.push(turn(ours.entry.port, near.port));
        let check = if let Some(tag) = self.map.xbars[far.xbar as usize].tag {
            let back = route_of([turn(near.port, ours.entry.port)], &ours);
            stamped(route, &back, (tag, far.port), near)
        } else {
            let host = self.map.hosts[self.owner(far.xbar, far.port)?];
            let theirs = self.way(far.xbar).or_else(|| self.forest.way(host.at?, far.xbar))?;
            let tagged = |crossing: &Crossing| self.map.xbars[crossing.xbar as usize].tag;
            let stamping = theirs.crossings.iter().rposition(|crossing| tagged(crossing).is_some());
            match stamping.filter(|_| !self.forest.crosses(near, far)) {
                Some(last) => {
                    let tag = tagged(&theirs.crossings[last])?;
                    stamped_beyond(route, (near, far), (&ours, &theirs), (tag, last))
                }
                None if self.forest.root(far.xbar) == Some(self.at.xbar) => {
                    let turn = turn(far.port, theirs.entry.port);
                    Check::Returns(returning(route, near, turn, &theirs))
                }
                None => joint(route, (near, far), (&ours, &theirs), &host),
            }
        };
        Some(check).filter(fits)
    }
}

/// Whether the check's frame can be sent.
fn fits(check: &Check) -> bool {
    let fits = |route: &Route| route.as_bytes().len() <= Route::MAX_BYTES;
    match check {
        Check::Returns(probe) | Check::Silent(probe) | Check::Stamped { probe, .. } => fits(&probe.route),
        Check::Host { way, .. } => fits(&way.there) && fits(&way.back),
        Check::Unproved { probes, .. } => probes.iter().all(|expected| fits(&expected.probe.route)),
    }
}

/// These elements, and the way back to the host that it begins at.
fn route_of(elements: impl IntoIterator<Item = Element>, way: &Way) -> Route {
    elements.into_iter().chain(way.back().elements()).collect()
}

/// A frame that has crossed the cable at `near` and goes home along a way, once it has turned there.
fn returning(mut route: Route, near: PortRef, turn: Element, home: &Way) -> ProbeCheck {
    route.push(turn);
    let back = home.back();
    let left = back.hops() as u8 + 1;
    route.extend(back.elements());
    ProbeCheck { route, left, kind: ProbeKind::Compare, suspect: Some(near) }
}

/// A frame that is stamped at the end of `route`.
fn identifying(mut route: Route, back: &Route, near: PortRef) -> ProbeCheck {
    let left = back.hops() as u8 + 1;
    route.push(Element::Identify);
    route.extend(back.elements());
    ProbeCheck { route, left, kind: ProbeKind::Identify, suspect: Some(near) }
}

/// A frame that is stamped at the end of `route`, where it comes in by a known port of a tagged xbar.
fn stamped(route: Route, back: &Route, (tag, arrival): (u64, u8), near: PortRef) -> Check {
    Check::Stamped { probe: identifying(route, back, near), tag, arrival, in_use: None }
}

/// A cable to a plain xbar behind a tagged one, the `last` on `theirs`: that stamps the frame with
/// the port where it comes in, and it retraces its steps. To go on would prove less, as an element
/// that names a port of the tagged xbar leads on from wherever the frame came in.
fn stamped_beyond(
    mut route: Route,
    (near, far): (PortRef, PortRef),
    (ours, theirs): (&Way, &Way),
    (tag, last): (u64, usize),
) -> Check {
    let behind = &theirs.crossings[last + 1..];
    route.push(turn(far.port, theirs.entry.port));
    route.extend(behind.iter().rev().map(|crossing| turn(crossing.leave, crossing.arrival)));
    let retraced = behind.iter().map(|crossing| turn(crossing.arrival, crossing.leave));
    let over = [turn(theirs.entry.port, far.port), turn(near.port, ours.entry.port)];
    let back = route_of(retraced.chain(over), ours);
    stamped(route, &back, (tag, theirs.crossings[last].leave), near)
}

/// A cable that joins two trees: the host at the root of the other one answers. `ours` and `theirs` are
/// the ways to the two ends.
fn joint(
    mut route: Route,
    (near, far): (PortRef, PortRef),
    (ours, theirs): (&Way, &Way),
    host: &Host,
) -> Check {
    route.push(turn(far.port, theirs.entry.port));
    route.extend(theirs.back().elements());
    let mut back = theirs.forward();
    let over = [turn(theirs.entry.port, far.port), turn(near.port, ours.entry.port)];
    back.extend(route_of(over, ours).elements());
    Check::Host { mac: host.mac, way: RoundTrip { there: route, back }, suspect: host.at }
}
