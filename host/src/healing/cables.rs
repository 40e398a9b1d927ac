//! The cables of a map by their ports, and how each is tested.

use std::collections::BTreeSet;
use std::sync::Arc;

use mapper_proto::Mac;
use mapper_proto::agent::CableTest;
use mapper_proto::map::ways::{Ways, turn};
use mapper_proto::map::{Attached, Cable, Map, MapVersion, PortRef};
use mapper_proto::wire::{Element, Route};
use mapper_routing::Far;

use crate::routes::Basis;

/// A cable, named by the lower of its ports in the map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CableEnd {
    /// The lower of its two ports, or the only port of a cable to a host.
    pub(super) at: PortRef,
    /// Whether the cable leads to a host.
    pub(super) is_host: bool,
}

/// What the tests of a cable are like, wherever it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct TestLike {
    /// How long their frames are, in bytes.
    pub(super) frame_bytes: usize,
    /// How many answers in a row show that the cable lives.
    pub(super) answers: u32,
    /// Whether a test may have several frames, any of which may be answered.
    pub(super) may_repeat: bool,
}

/// The cables of a map.
#[derive(Debug)]
pub(super) struct Cables {
    basis: Arc<Basis>,
    own: Mac,
    /// This host's own port, if it is at an xbar.
    home: Option<PortRef>,
    /// The ways from that port to all xbars, and the dead cables that they avoid.
    ways: Option<(BTreeSet<PortRef>, Ways)>,
}

impl Cables {
    /// The cables of a map, as seen from the host with this address.
    pub(super) fn new(basis: Arc<Basis>, own: Mac) -> Self {
        let home = basis.map().hosts.iter().find(|host| host.mac == own).and_then(|host| host.at);
        Self { basis, own, home, ways: None }
    }

    pub(super) fn version(&self) -> MapVersion {
        self.basis.map().version
    }

    /// The address of the host whose view this is.
    pub(super) fn own(&self) -> Mac {
        self.own
    }

    /// The port that this host is at.
    pub(super) fn home(&self) -> Option<PortRef> {
        self.home
    }

    /// Whether another map shows the same hosts, xbars and cables by the same numbers, and other cables as lossy.
    pub(super) fn differs_in_losses_alone(&self, other: &Self) -> bool {
        let (one, other) = (self.basis.map(), other.basis.map());
        one.lossy != other.lossy
            && (&one.hosts, &one.xbars, &one.cables) == (&other.hosts, &other.xbars, &other.cables)
    }

    /// Whether no way leads around the cable in this port.
    pub(super) fn joins_alone(&self, at: PortRef) -> bool {
        self.basis.map().routable().joins_alone(at)
    }

    /// How many cables routes go around at most as they lose frames.
    pub(super) fn most_lossy(&self) -> usize {
        self.basis.map().most_lossy()
    }

    /// The cable in a port, if there is one.
    pub(super) fn at(&self, port: PortRef) -> Option<CableEnd> {
        match self.basis.ports().at(port)? {
            Attached::Host(_) => Some(CableEnd { at: port, is_host: true }),
            Attached::Xbar(other) => Some(CableEnd { at: port.min(other), is_host: false }),
        }
    }

    /// Whether no route leads over the cable in a port, as the map shows that it loses frames.
    pub(super) fn is_left_out(&self, at: PortRef) -> bool {
        self.basis.topology().far(at) == Far::Nothing && self.at(at).is_some()
    }

    /// The cables that no route leads over, as the map shows that they lose frames.
    pub(super) fn left_out(&self) -> impl Iterator<Item = PortRef> + '_ {
        self.basis.map().lossy.iter().map(|cable| cable.a).filter(|&at| self.is_left_out(at))
    }

    /// All cables between xbars at the xbar to which the cable in this port leads.
    pub(super) fn beside(&self, at: PortRef) -> Vec<PortRef> {
        let Some(Attached::Xbar(PortRef { xbar, .. })) = self.basis.ports().at(at) else { return Vec::new() };
        let its =
            self.basis.map().cables.iter().filter(|cable| (cable.a.xbar == xbar) != (cable.b.xbar == xbar));
        its.map(|cable| cable.a.min(cable.b)).collect()
    }

    /// The cable in a port of a tagged xbar. The ports of tagged xbars have their real numbers in the map.
    pub(super) fn at_tag(&self, tag: u64, port: u8) -> Option<CableEnd> {
        let xbar = self.basis.xbar(tag)?;
        self.at(PortRef { xbar, port })
    }

    /// The cable that was in this port of another map, if it is certain that it is in this one: all its ends are at tagged xbars and
    /// where they were, or the map is this one.
    pub(super) fn counterpart(&self, other: &Self, at: PortRef) -> Option<CableEnd> {
        if other.version() == self.version() {
            return self.at(at);
        }
        let ends: Vec<_> = other.tags_of(at).collect();
        let found = self.at_tag(ends.first()?.0, ends.first()?.1)?;
        let here: Vec<_> = self.tags_of(found.at).collect();
        let is_whole = other.at(at)?.is_host || ends.len() == 2;
        let is_same = here.len() == ends.len() && ends.iter().all(|end| here.contains(end));
        (is_whole && is_same && found.is_host == other.at(at)?.is_host).then_some(found)
    }

    /// The ends of a cable that are at tagged xbars, each as tag and port.
    pub(super) fn tags_of(&self, at: PortRef) -> impl Iterator<Item = (u64, u8)> + '_ {
        let other = match self.basis.ports().at(at) {
            Some(Attached::Xbar(other)) => Some(other),
            Some(Attached::Host(_)) | None => None,
        };
        let tagged = |end: PortRef| Some((self.basis.map().xbars.get(end.xbar as usize)?.tag?, end.port));
        [Some(at), other].into_iter().flatten().filter_map(tagged)
    }

    /// The test of a cable: a route that leads over live cables to one of its ends, across it, and back.
    /// The cable of this host itself is crossed by what its xbar sends straight back. `None` if live cables lead to neither end.
    pub(super) fn test_of(
        &mut self,
        at: PortRef,
        dead: &BTreeSet<PortRef>,
        TestLike { frame_bytes, answers, may_repeat }: TestLike,
    ) -> Option<CableTest> {
        let home = self.home?;
        if at == home {
            let route = Route::from_iter([Element::Relative(0)]);
            return Some(CableTest { route, left: 1, to: self.own, frame_bytes, answers, may_repeat });
        }
        if self.ways.as_ref().is_none_or(|(without, _)| without != dead) {
            self.ways = Some((dead.clone(), self.ways_without(home, dead)));
        }
        let (_, ways) = self.ways.as_ref()?;
        let (ends, to) = match self.basis.ports().at(at)? {
            Attached::Xbar(other) => ([Some(at), Some(other)], self.own),
            Attached::Host(host) => ([Some(at), None], self.basis.map().hosts.get(host as usize)?.mac),
        };
        let ways = ends.into_iter().flatten().filter_map(|end| Some((end, ways.to(end.xbar)?)));
        let (near, way) = ways.min_by_key(|(_, way)| way.crossings.len())?;
        let mut route: Route = way.forward();
        route.extend([
            turn(way.entry.port, near.port),
            Element::Relative(0),
            turn(near.port, way.entry.port),
        ]);
        let back = way.back();
        // When the frame has crossed the cable, these elements are left: the turn back into the cable, the
        // turn from the cable to the way back, and the way back.
        let left = u8::try_from(back.hops() + 2).ok()?;
        route.extend(back.elements());
        Some(CableTest { route, left, to, frame_bytes, answers, may_repeat })
    }

    fn ways_without(&self, home: PortRef, dead: &BTreeSet<PortRef>) -> Ways {
        let is_dead = |end: PortRef| self.at(end).is_some_and(|cable| dead.contains(&cable.at));
        let leads_over = |cable: &&Cable| !is_dead(cable.a) && !self.is_left_out(cable.a);
        let cables = self.basis.map().cables.iter().filter(leads_over).copied().collect();
        Ways::new(&Map { xbars: self.basis.map().xbars.clone(), cables, ..Map::default() }, home)
    }
}
