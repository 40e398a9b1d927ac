//! One agent's share of the verification of a map.
//!
//! The shares of all agents together cover the fabric once a cycle, so a cycle costs O(fabric),
//! not O(hosts x fabric). What is near is checked by who is near: an xbar and its ports by the
//! hosts on it in turn, a hostless one by the hosts of the nearest xbar that has some, which reach it
//! by the same way ([`Forest`]).
//!
//! # Why no change goes unnoticed
//!
//! A plain xbar has no name. Agents that come in by different cables, each counting ports from its own,
//! may all be content with different xbars, or with one that each sees shifted. So all that is said of
//! an xbar is said of what is at the end of *one* way, that of the forest, and checks tie these together:
//!
//! 1. The hosts on one xbar ask each other in a circle, port to port: they hang where the map says, but
//!    for one offset. A host that nothing else in its share must answer asks the xbar at its own cable
//!    to send a frame straight back.
//! 2. A cable is crossed from the one end's way to the other end's, the whole of it: home, if both ends
//!    are in one tree of the forest; else to a host at the root of the other tree, which answers; or only
//!    to the last tagged xbar on the other way, which stamps it. A frame that is sent back along the
//!    reverse of a way arrives only if it began at that way's end, as a way backwards is as definite as
//!    forwards. So this cable joins just these two ports. Behind a cable of the forest is by definition
//!    the end of the way: a frame turns there and comes home.
//! 3. A tagged xbar tells its name and the port by which the way enters it.
//! 4. All other ports of a plain xbar stay silent.
//!
//! If all of that holds, then taking each xbar of the map for what is at the end of its way preserves
//! ports in use, empty ports and cables: it is a covering of the fabric by the map. A covering is
//! equally many-sheeted everywhere, and a host, which has an address, has one sheet. So the map is that
//! of the fabric, whatever was plugged and unplugged since. The price is one frame a cable, and a reply
//! for one that joins two trees.
//!
//! Cables that lose frames, and that routes leave out, are not checked and not taken: what is sent over them gets lost, and each loss
//! would call for a new map. Their ports are no empty ones. A tagged xbar still tells when one of them loses its carrier.

mod cables;

use crate::Mac;
use crate::map::forest::Forest;
use crate::map::ways::{CablesByXbar, Way, Ways, turn};
use crate::map::{Cable, Map, PortRef, host_type};
use crate::port_set::PortSet;
use crate::wire::{Element, ProbeKind, RoundTrip, Route};

/// Something that must hold, and the frame that shows whether it does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Check {
    /// A probe that must come back.
    Returns(ProbeCheck),
    /// A probe that must come back with a tagged xbar's stamp.
    Stamped {
        /// The probe.
        probe: ProbeCheck,
        /// The xbar's identity.
        tag: u64,
        /// The port by which it must come in.
        arrival: u8,
        /// The ports that the map shows in use, if this check also compares the carriers:
        /// bit `p % 8` of byte `p / 8`.
        in_use: Option<Box<PortSet>>,
    },
    /// A probe that nothing must answer: an empty port, or an xbar without identity.
    Silent(ProbeCheck),
    /// A scout that this host's agent must answer.
    Host {
        /// The host.
        mac: Mac,
        /// The way there and back.
        way: RoundTrip,
        /// The port it hangs on.
        suspect: Option<PortRef>,
    },
    /// A cable that exploration could not prove, and so left out. If all of its probes come back as they
    /// must, one after the other, it is there.
    Unproved {
        /// The probes still to be sent, the first one now.
        probes: Vec<Expected>,
        /// The ports that the cable would join.
        ends: [PortRef; 2],
    },
}

/// A probe, and what it must bring back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Expected {
    /// The probe.
    pub(super) probe: ProbeCheck,
    /// The tag and the arrival port that it must be stamped with, if coming back is not enough.
    pub(super) stamp: Option<(u64, u8)>,
}

impl Check {
    /// Whether the check passes only once something in the fabric has answered.
    const fn must_be_answered(&self) -> bool {
        !matches!(self, Self::Silent(_) | Self::Unproved { .. })
    }

    /// Whether a frame of the check normally comes back. Where it does not, silence is believed after one try.
    pub(super) const fn expects_answer(&self) -> bool {
        match self {
            Self::Returns(_) | Self::Stamped { .. } | Self::Host { .. } => true,
            Self::Silent(_) | Self::Unproved { .. } => false,
        }
    }

    /// Whether the check is done more often than the others, as it shows much at once: the carriers of a whole
    /// xbar, or whether this host's cable, which led nowhere, leads somewhere now.
    pub(super) fn is_glance(&self) -> bool {
        match self {
            Self::Stamped { in_use, .. } => in_use.is_some(),
            Self::Silent(probe) => probe.kind == ProbeKind::Loopback && probe.route.hops() == 1,
            Self::Returns(_) | Self::Host { .. } | Self::Unproved { .. } => false,
        }
    }
}

/// A probe of verification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ProbeCheck {
    /// The whole way, there and back.
    pub(super) route: Route,
    /// The elements left over where it turns, the turning one included.
    pub(super) left: u8,
    /// What kind of probe.
    pub(super) kind: ProbeKind,
    /// What has changed if the check fails.
    pub(super) suspect: Option<PortRef>,
}

/// A port of [`PortRef`] that stands for any empty port of a plain xbar whose numbers are not known.
pub(super) const SOME_EMPTY_PORT: u8 = u8::MAX;

/// Works out the share of the agent at `own`, an index into the map's hosts. `cables` are the cables between xbars that are
/// checked, if such cables are checked at all, and `neighbours` those that ways lead over.
pub(super) fn share(
    map: &Map,
    neighbours: &CablesByXbar,
    own: usize,
    cables: Option<&[Cable]>,
) -> Vec<Check> {
    match map.hosts.get(own).and_then(|host| host.at) {
        Some(at) => Planner::new(map, neighbours, own, at).plan(cables),
        None => share_without_xbar(map, own),
    }
}

/// Two hosts and a cable, or a host alone.
fn share_without_xbar(map: &Map, own: usize) -> Vec<Check> {
    let other = map.hosts.iter().enumerate().find(|(i, h)| *i != own && h.host_type != host_type::PHANTOM);
    match other {
        Some((_, host)) => {
            vec![Check::Host { mac: host.mac, way: RoundTrip::default(), suspect: None }]
        }
        None => vec![Check::Silent(ProbeCheck {
            route: Route::from_iter([Element::Relative(0)]),
            left: 1,
            kind: ProbeKind::Loopback,
            suspect: None,
        })],
    }
}

struct Planner<'a> {
    map: &'a Map,
    own: usize,
    /// The port that this agent's host is cabled to.
    at: PortRef,
    forest: Forest,
    /// Hosts by xbar, and where each xbar's begin in there; one more at the end.
    by_xbar: Vec<u32>,
    starts: Vec<u32>,
    /// Ports in use on each xbar.
    used: Vec<PortSet>,
}

impl<'a> Planner<'a> {
    fn new(map: &'a Map, neighbours: &CablesByXbar, own: usize, at: PortRef) -> Self {
        let mut starts = vec![0_u32; map.xbars.len() + 1];
        let mut used = vec![PortSet::default(); map.xbars.len()];
        for at in map.hosts.iter().filter_map(|host| host.at) {
            starts[at.xbar as usize + 1] += 1;
            used[at.xbar as usize].insert(at.port);
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut by_xbar = vec![0; starts.last().copied().unwrap_or_default() as usize];
        let mut next = starts.clone();
        for (index, host) in (0..).zip(&map.hosts) {
            if let Some(at) = host.at {
                let place = &mut next[at.xbar as usize];
                by_xbar[*place as usize] = index;
                *place += 1;
            }
        }
        for cable in &map.cables {
            used[cable.a.xbar as usize].insert(cable.a.port);
            used[cable.b.xbar as usize].insert(cable.b.port);
        }
        for contested in &map.contested {
            used[contested.at.xbar as usize].insert(contested.at.port);
        }
        Self { map, own, at, forest: Forest::new(map, neighbours), by_xbar, starts, used }
    }

    /// The hosts on an xbar.
    fn on(&self, xbar: u32) -> &[u32] {
        let xbar = xbar as usize;
        &self.by_xbar[self.starts[xbar] as usize..self.starts[xbar + 1] as usize]
    }

    /// The host that looks after a port of an xbar: one of those at the root of its tree, which all
    /// reach it by the same way.
    fn owner(&self, xbar: u32, port: u8) -> Option<usize> {
        let near = self.on(self.forest.root(xbar)?);
        let turn = (xbar as usize).wrapping_mul(31).wrapping_add(usize::from(port));
        near.get(turn % near.len().max(1)).map(|&host| host as usize)
    }

    fn is_own(&self, xbar: u32, port: u8) -> bool {
        self.owner(xbar, port) == Some(self.own)
    }

    /// The way of this host to an xbar, if that is in the tree of its own.
    fn way(&self, xbar: u32) -> Option<Way> {
        self.forest.way(self.at, xbar)
    }

    fn plan(&self, cables: Option<&[Cable]>) -> Vec<Check> {
        let mut checks = Vec::new();
        if let Some(cables) = cables {
            for cable in cables {
                let (near, far) = self.ends(cable);
                if self.is_own(near.xbar, near.port) {
                    checks.extend(self.cable(near, far));
                }
            }
            self.unproved_cables(&mut checks);
        }
        for (index, xbar) in (0..).zip(&self.map.xbars) {
            if self.forest.root(index) != Some(self.at.xbar) {
                continue;
            }
            match xbar.tag {
                Some(tag) if self.is_own(index, 0) => checks.extend(self.xbar(index, tag)),
                Some(_) => {}
                None => {
                    if self.is_own(index, 0) {
                        checks.extend(self.no_identity(index));
                    }
                    self.empty_ports(index, &mut checks);
                }
            }
        }
        self.next_host(&mut checks);
        if !checks.iter().any(Check::must_be_answered) {
            checks.push(own_cable(self.at));
        }
        checks
    }

    /// A plain xbar tells no identity. One that does has taken its place, or was taken for plain
    /// when its stamps were lost.
    fn no_identity(&self, xbar: u32) -> Option<Check> {
        // A check without a suspect port has the whole fabric explored anew, should it fail.
        let probe = ProbeCheck { suspect: None, ..self.ask_identity(xbar)?.0 };
        Some(Check::Silent(probe))
    }

    /// A tagged xbar's stamp: its identity, and the carriers of all its ports in one frame.
    fn xbar(&self, xbar: u32, tag: u64) -> Option<Check> {
        let (probe, arrival) = self.ask_identity(xbar)?;
        let in_use = Some(Box::new(self.used[xbar as usize]));
        Some(Check::Stamped { probe, tag, arrival, in_use })
    }

    /// An identify probe to an xbar, and the port by which it comes in.
    fn ask_identity(&self, xbar: u32) -> Option<(ProbeCheck, u8)> {
        let way = self.way(xbar)?;
        let mut route = way.forward();
        route.push(Element::Identify);
        let back = way.back();
        let left = back.hops() as u8 + 1;
        route.extend(back.elements());
        let probe = ProbeCheck { route, left, kind: ProbeKind::Identify, suspect: Some(way.entry) };
        Some((probe, way.entry.port))
    }

    /// The empty ports of a plain xbar that are in this share: each must stay silent.
    fn empty_ports(&self, xbar: u32, checks: &mut Vec<Check>) {
        let Some(way) = self.way(xbar) else { return };
        let used = &self.used[xbar as usize];
        let ports = i16::from(self.map.xbars[xbar as usize].ports);
        let in_use = || used.iter().map(i16::from);
        let (Some(low), Some(high)) = (in_use().min(), in_use().max()) else { return };
        // Two ports of one xbar differ by less than its port count.
        for port in high - ports + 1..low + ports {
            let number = u8::try_from(port).ok();
            if number.is_some_and(|p| used.contains(p)) {
                continue;
            }
            let delta = port - i16::from(way.entry.port);
            let Some(delta) = i8::try_from(delta).ok().filter(|d| (-31..=31).contains(d)) else { continue };
            if self.is_own(xbar, port.rem_euclid(256) as u8) {
                let suspect = PortRef { xbar, port: number.unwrap_or(SOME_EMPTY_PORT) };
                checks.push(Check::Silent(loopback(&way, delta, suspect)));
            }
        }
    }

    /// The next host on the same xbar, in a circle; a host that is alone on its xbar is checked
    /// by its parent and children in the tree.
    fn next_host(&self, checks: &mut Vec<Check>) {
        let at = self.at;
        let near = self.on(at.xbar);
        let Some(position) = near.iter().position(|&h| h as usize == self.own) else { return };
        let next = near[(position + 1) % near.len()] as usize;
        let (host, Some(there)) = (&self.map.hosts[next], self.map.hosts[next].at) else { return };
        if next != self.own {
            checks.push(Check::Host {
                mac: host.mac,
                way: RoundTrip {
                    there: Route::from_iter([turn(at.port, there.port)]),
                    back: Route::from_iter([turn(there.port, at.port)]),
                },
                suspect: host.at,
            });
        }
    }
}

/// The check that shows whether there is an xbar at this host's cable, which sends a frame straight back.
fn own_cable(at: PortRef) -> Check {
    let route = Route::from_iter([Element::Relative(0)]);
    Check::Returns(ProbeCheck { route, left: 1, kind: ProbeKind::Loopback, suspect: Some(at) })
}

/// The check that shows whether the cable at a port is dead, along a way that does not cross it.
/// `home` is this host's own port. `None` without such a way.
pub(super) fn doubted(map: &Map, ways: &Ways, home: PortRef, at: PortRef) -> Option<Check> {
    if at == home {
        return Some(own_cable(at));
    }
    if let Some(host) = map.hosts.iter().find(|host| host.at == Some(at)) {
        let way = ways.to(at.xbar)?.to_port(at.port);
        return Some(Check::Host { mac: host.mac, way, suspect: Some(at) });
    }
    let cable = map.cables.iter().find(|cable| cable.a == at || cable.b == at)?;
    let ends = [cable.a, cable.b].map(|end| Some((ways.to(end.xbar)?, end)));
    // The end that is nearer: the way to the other may cross the cable.
    let (way, near) = ends.into_iter().flatten().min_by_key(|(way, _)| way.crossings.len())?;
    let mut route = way.forward();
    route.extend([turn(way.entry.port, near.port), Element::Relative(0), turn(near.port, way.entry.port)]);
    let back = way.back();
    let left = back.hops() as u8 + 2;
    route.extend(back.elements());
    Some(Check::Returns(ProbeCheck { route, left, kind: ProbeKind::Loopback, suspect: Some(at) }))
}

/// The probe that shows whether a port of a tagged xbar that has carrier, but nothing in the map,
/// is still silent: all xbars and all hosts with an agent answer a loopback probe. `stamped` is
/// the check whose stamp showed the carrier.
pub(super) fn silent_port(stamped: &ProbeCheck, arrival: u8, port: u8) -> Option<Check> {
    let xbar = stamped.suspect?.xbar;
    let mut route = Route::new();
    let mut back = Vec::new();
    let mut turned = false;
    for element in stamped.route.elements() {
        match (element, turned) {
            (Element::Identify, false) => turned = true,
            (_, false) => route.push(element),
            (_, true) => back.push(element),
        }
    }
    route.extend([turn(arrival, port), Element::Relative(0)]);
    let left = back.len() as u8 + 2;
    route.push(turn(port, arrival));
    route.extend(back);
    let suspect = Some(PortRef { xbar, port });
    Some(Check::Silent(ProbeCheck { route, left, kind: ProbeKind::Loopback, suspect }))
}

/// A loopback probe out of the port `delta` from the way's entry.
fn loopback(way: &Way, delta: i8, suspect: PortRef) -> ProbeCheck {
    let mut route = way.forward();
    route.extend([Element::Relative(delta), Element::Relative(0), Element::Relative(-delta)]);
    let back = way.back();
    let left = back.hops() as u8 + 2;
    route.extend(back.elements());
    ProbeCheck { route, left, kind: ProbeKind::Loopback, suspect: Some(suspect) }
}
