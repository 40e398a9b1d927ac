//! What xbars are called, the same from map to map.
//!
//! A tagged xbar is called by its tag. A plain xbar has no identity: it is numbered when it is first seen,
//! and recognized in later maps by what is cabled to it, by its hosts above all. It is recognized even if
//! many maps in between lacked it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use mapper_proto::Mac;
use mapper_proto::map::{Map, PortRef};

use mapper_proto::crossbar_tag;

/// How often the names that were found are put to the vote again, with the votes of all xbars that are named
/// by then. A first vote can be wrong: a host that has moved to an xbar without hosts takes the name of its
/// old xbar along.
const MAX_REVISIONS: usize = 3;

/// An xbar's name in labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum XbarName {
    /// A tagged xbar, by its tag.
    Tagged(u64),
    /// A plain xbar, by the number that it got here.
    Plain(u32),
}

/// One end of a cable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NamedEnd {
    /// The xbar.
    pub(super) xbar: XbarName,
    /// Its port, as it was numbered when the xbar was first seen.
    pub(super) port: i16,
}

/// The hosts that xbars are called by ([`crossbar_tag::naming_host`]), by where hosts are.
pub(super) fn naming_hosts(places: impl Iterator<Item = (Mac, NamedEnd)>) -> BTreeMap<XbarName, Mac> {
    let mut at: BTreeMap<XbarName, Vec<Mac>> = BTreeMap::new();
    for (mac, end) in places {
        at.entry(end.xbar).or_default().push(mac);
    }
    let naming = |(xbar, hosts)| {
        let tag = match xbar {
            XbarName::Tagged(tag) => Some(tag),
            XbarName::Plain(_) => None,
        };
        Some((xbar, crossbar_tag::naming_host(tag, hosts)?))
    };
    at.into_iter().filter_map(naming).collect()
}

impl fmt::Display for NamedEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.xbar {
            XbarName::Tagged(tag) => write!(f, "{tag:#018x}:{}", self.port),
            XbarName::Plain(number) => write!(f, "plain{number}:{}", self.port),
        }
    }
}

/// The name of an xbar of a map, and by how much its ports are numbered higher than when it was first seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Called {
    name: XbarName,
    offset: i16,
}

impl Called {
    fn end(self, port: u8) -> NamedEnd {
        NamedEnd { xbar: self.name, port: i16::from(port).saturating_sub(self.offset) }
    }
}

/// What earlier maps have shown.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// All ends that each end was ever cabled to, and whether the last map had that cable.
    pub(super) cables: BTreeMap<NamedEnd, Vec<(NamedEnd, bool)>>,
    /// Where each host was when a map last had it.
    pub(super) hosts: BTreeMap<Mac, NamedEnd>,
}

/// The names of the xbars of the last map.
#[derive(Debug, Default)]
pub(super) struct XbarNames {
    called: Vec<Called>,
    last_plain: u32,
}

impl XbarNames {
    /// Names the xbars of a map. Returns whether it has a plain xbar that nothing is known of.
    pub(super) fn call(&mut self, map: &Map, before: &Before) -> bool {
        let recalled = Recall::new(map, before).run();
        let strangers = recalled.iter().any(Option::is_none);
        let mut number = || {
            self.last_plain = self.last_plain.wrapping_add(1);
            Called { name: XbarName::Plain(self.last_plain), offset: 0 }
        };
        self.called = recalled.into_iter().map(|called| called.unwrap_or_else(&mut number)).collect();
        strangers
    }

    /// The end at this port of the last map; `None` if it has no such xbar.
    pub(super) fn end(&self, port: PortRef) -> Option<NamedEnd> {
        self.called.get(port.xbar as usize).map(|called| called.end(port.port))
    }

    /// The names of all xbars of the last map.
    pub(super) fn all(&self) -> BTreeSet<XbarName> {
        self.called.iter().map(|called| called.name).collect()
    }
}

/// A guess at an xbar's name: the xbar's number in the new map, the name, and by how much its ports are
/// numbered higher than when it was first seen.
type Candidate = (u32, XbarName, i16);
/// How many ends of cables vote for a guess, and whether one of these cables was in the last map.
type Weight = (u32, bool);

/// The search for the names of a map's xbars.
struct Recall<'a> {
    map: &'a Map,
    before: &'a Before,
    called: Vec<Option<Called>>,
    taken: BTreeSet<XbarName>,
}

impl<'a> Recall<'a> {
    fn new(map: &'a Map, before: &'a Before) -> Self {
        Self { map, before, called: tagged(map), taken: BTreeSet::new() }
    }

    fn run(mut self) -> Vec<Option<Called>> {
        self.grow();
        for _ in 0..MAX_REVISIONS {
            let votes = self.votes(&tagged(self.map));
            let found = std::mem::replace(&mut self.called, tagged(self.map));
            self.taken.clear();
            self.elect(votes);
            self.grow();
            if self.called == found {
                break;
            }
        }
        self.called
    }

    /// Names the xbars that can be recognized by their hosts, then those that can be by cables to xbars that
    /// have a name already.
    fn grow(&mut self) {
        while {
            let votes = self.votes(&self.called);
            self.elect(votes)
        } {}
    }

    /// The votes of hosts, and of cables to xbars that have a name, for the xbars that have no name in
    /// `named`.
    fn votes(&self, named: &[Option<Called>]) -> BTreeMap<Candidate, Weight> {
        let mut votes = BTreeMap::new();
        let mut vote = |at: PortRef, was: NamedEnd, there: bool| {
            let is_open = named.get(at.xbar as usize).is_some_and(Option::is_none);
            if is_open && matches!(was.xbar, XbarName::Plain(_)) {
                let offset = i16::from(at.port).saturating_sub(was.port);
                let (count, lately): &mut Weight = votes.entry((at.xbar, was.xbar, offset)).or_default();
                *count += 1;
                *lately |= there;
            }
        };
        for host in &self.map.hosts {
            if let (Some(at), Some(was)) = (host.at, self.before.hosts.get(&host.mac)) {
                vote(at, *was, true);
            }
        }
        for cable in &self.map.cables {
            for (near, far) in [(cable.a, cable.b), (cable.b, cable.a)] {
                let Some(Some(called)) = self.called.get(near.xbar as usize) else { continue };
                let were = self.before.cables.get(&called.end(near.port));
                were.into_iter().flatten().for_each(|&(was, there)| vote(far, was, there));
            }
        }
        votes
    }

    /// Gives names, those with the most votes first. Returns whether it gave any.
    fn elect(&mut self, votes: BTreeMap<Candidate, Weight>) -> bool {
        let mut votes: Vec<_> = votes.into_iter().collect();
        // The sort is stable, so guesses with equal votes stay in the order of the xbars' numbers.
        votes.sort_by_key(|&(_, weight)| Reverse(weight));
        let mut any = false;
        for ((xbar, name, offset), _) in votes {
            let called = &mut self.called[xbar as usize];
            if called.is_none() && self.taken.insert(name) {
                *called = Some(Called { name, offset });
                any = true;
            }
        }
        any
    }
}

/// The names that tags give.
fn tagged(map: &Map) -> Vec<Option<Called>> {
    let called = |tag| Called { name: XbarName::Tagged(tag), offset: 0 };
    map.xbars.iter().map(|xbar| xbar.tag.map(called)).collect()
}
