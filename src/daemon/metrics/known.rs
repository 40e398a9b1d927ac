//! What the maps have shown since the start, so that a cable or host that is gone reads 0 and does
//! not vanish.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use mapper_proto::Mac;
use mapper_proto::map::{Correspondence, Map, PortRef, host_type};

use crate::daemon::status::DeadCable;

/// Most cables, and most hosts, that are remembered.
const MAX_KNOWN: usize = 16_384;
/// Most cables, and most hosts, that are shown one by one. Of more than that, only those are shown
/// that have been down since the start.
const MAX_SHOWN: usize = 1024;

/// An xbar's name in labels: the same from map to map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum XbarName {
    Tagged(u64),
    /// A plain xbar has no identity: it is numbered when it is first seen, and known again by what
    /// is cabled to it.
    Plain(u32),
}

/// One end of a cable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    xbar: XbarName,
    port: i16,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.xbar {
            XbarName::Tagged(tag) => write!(f, "{tag:#018x}:{}", self.port),
            XbarName::Plain(number) => write!(f, "plain{number}:{}", self.port),
        }
    }
}

/// How an xbar of the last map is called, and its port numbers less those that it was first seen
/// with.
#[derive(Debug, Clone, Copy)]
struct Called {
    name: XbarName,
    offset: i16,
}

/// The cables and hosts of all maps since the start.
#[derive(Debug, Default)]
pub struct KnownFabric {
    cables: Seen<[End; 2]>,
    hosts: Seen<Mac>,
    last: Map,
    called: Vec<Called>,
    next_plain: u32,
}

impl KnownFabric {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in a map: what is in it is there, what it lacks is gone.
    pub fn see(&mut self, map: &Map) {
        self.called = self.call(map);
        let ends = |cable: &mapper_proto::map::Cable| {
            let mut ends = [self.end(cable.a), self.end(cable.b)];
            ends.sort_unstable();
            ends
        };
        let cables: Vec<_> = map.cables.iter().map(ends).collect();
        self.cables.update(cables.into_iter());
        // Phantoms only inflate a map: they cannot be lost.
        let real = map.hosts.iter().filter(|host| host.host_type != host_type::PHANTOM);
        self.hosts.update(real.map(|host| host.mac));
        self.last = map.clone();
    }

    /// Names the xbars of a map: tagged ones by tag, plain ones as they were called before.
    fn call(&mut self, map: &Map) -> Vec<Called> {
        let mut plain = BTreeMap::new();
        if map.xbars.iter().any(|xbar| xbar.tag.is_none()) {
            let guess = Correspondence::guess(&self.last, map);
            for (older, called) in (0..).zip(&self.called) {
                // Any port tells how far the numbers moved; from the middle no offset leads out.
                if let Some(port) = guess.port(PortRef { xbar: older, port: 128 }) {
                    let offset = called.offset + i16::from(port.port) - 128;
                    plain.insert(port.xbar, Called { offset, ..*called });
                }
            }
        }
        let mut called = Vec::with_capacity(map.xbars.len());
        for (index, xbar) in (0..).zip(&map.xbars) {
            let as_before = plain.get(&index).filter(|called| matches!(called.name, XbarName::Plain(_)));
            called.push(match (xbar.tag, as_before) {
                (Some(tag), _) => Called { name: XbarName::Tagged(tag), offset: 0 },
                (None, Some(called)) => *called,
                (None, None) => {
                    self.next_plain += 1;
                    Called { name: XbarName::Plain(self.next_plain), offset: 0 }
                }
            });
        }
        called
    }

    fn end(&self, port: PortRef) -> End {
        let Called { name, offset } = self.called[port.xbar as usize];
        End { xbar: name, port: i16::from(port.port) - offset }
    }

    /// The cables to show, by their ends' names, and whether each is there and not `dead`.
    pub(super) fn cables(&self, dead: &[DeadCable]) -> impl Iterator<Item = (String, String, bool)> {
        let dead: BTreeSet<End> = dead.iter().filter_map(|cable| self.end_of_dead(cable)).collect();
        self.cables.shown().map(move |(ends, there)| {
            let up = there && !ends.iter().any(|end| dead.contains(end));
            (ends[0].to_string(), ends[1].to_string(), up)
        })
    }

    fn end_of_dead(&self, cable: &DeadCable) -> Option<End> {
        match cable.tag_number() {
            Some(tag) => Some(End { xbar: XbarName::Tagged(tag), port: cable.port.into() }),
            None if (cable.xbar as usize) < self.called.len() => {
                Some(self.end(PortRef { xbar: cable.xbar, port: cable.port }))
            }
            None => None,
        }
    }

    /// The hosts to show, and whether the last map has each.
    pub(super) fn hosts(&self) -> impl Iterator<Item = (Mac, bool)> + '_ {
        self.hosts.shown().map(|(mac, there)| (*mac, there))
    }

    /// Hosts seen since the start that the last map lacks.
    pub fn gone_hosts(&self) -> impl Iterator<Item = Mac> + '_ {
        self.hosts().filter(|(_, there)| !there).map(|(mac, _)| mac)
    }

    /// Cables seen since the start that the last map lacks, by the names of their ends.
    pub fn gone_cables(&self) -> impl Iterator<Item = [String; 2]> {
        self.cables(&[]).filter(|(_, _, up)| !up).map(|(a, b, _)| [a, b])
    }

    /// Cables seen since the start that the last map lacks.
    pub(super) fn cables_gone(&self) -> u64 {
        self.cables.gone()
    }

    /// Hosts seen since the start that the last map lacks.
    pub(super) fn hosts_gone(&self) -> u64 {
        self.hosts.gone()
    }
}

/// Things of one kind, and which of them are there now.
#[derive(Debug)]
struct Seen<K> {
    entries: BTreeMap<K, Presence>,
}

#[derive(Debug, Clone, Copy)]
struct Presence {
    there: bool,
    was_gone: bool,
}

impl<K> Default for Seen<K> {
    fn default() -> Self {
        Self { entries: BTreeMap::new() }
    }
}

impl<K: Ord + Copy> Seen<K> {
    fn update(&mut self, now: impl Iterator<Item = K>) {
        for presence in self.entries.values_mut() {
            presence.there = false;
        }
        let mut new = Vec::new();
        for key in now {
            match self.entries.get_mut(&key) {
                Some(presence) => presence.there = true,
                None => new.push(key),
            }
        }
        let mut gone = Vec::new();
        for (key, presence) in self.entries.iter_mut().filter(|(_, presence)| !presence.there) {
            presence.was_gone = true;
            gone.push(*key);
        }
        for key in new {
            // Room is made at the cost of what is gone.
            if self.entries.len() >= MAX_KNOWN
                && gone.pop().is_none_or(|gone| self.entries.remove(&gone).is_none())
            {
                return;
            }
            self.entries.insert(key, Presence { there: true, was_gone: false });
        }
    }

    fn shown(&self) -> impl Iterator<Item = (&K, bool)> {
        let all = self.entries.len() <= MAX_SHOWN;
        let wanted = self.entries.iter().filter(move |(_, presence)| all || presence.was_gone);
        wanted.take(MAX_SHOWN).map(|(key, presence)| (key, presence.there))
    }

    fn gone(&self) -> u64 {
        self.entries.values().filter(|presence| !presence.there).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mapper_proto::map::{Cable, Host, Xbar};

    /// A ring of three xbars with a host each, less one cable if so wanted; `first` is the number
    /// of the first port.
    fn ring(tags: bool, cables: usize, first: u8) -> Map {
        let port = |xbar, port| PortRef { xbar, port: port + first };
        let all = [(0, 1), (1, 2), (0, 2)];
        let cable = |&(a, b): &(u32, u32)| match (a, b) {
            (0, 2) => Cable::new(port(0, 2), port(2, 1)),
            _ => Cable::new(port(a, 1), port(b, 2)),
        };
        let host = |n: u32| Host { mac: Mac::from_position(n), level: 1, host_type: 4, at: Some(port(n, 0)) };
        let xbar = |n: u64| Xbar { ports: 16, tag: tags.then_some(n + 10), ports_known: tags };
        Map {
            hosts: (0..3).map(host).collect(),
            xbars: (0..3).map(xbar).collect(),
            cables: all[..cables].iter().map(cable).collect(),
            ..Map::default()
        }
    }

    fn ups(known: &KnownFabric) -> Vec<bool> {
        known.cables(&[]).map(|(_, _, up)| up).collect()
    }

    #[test]
    fn a_cable_that_is_gone_reads_down_until_it_returns() {
        for tags in [true, false] {
            let mut known = KnownFabric::new();
            known.see(&ring(tags, 3, 1));
            assert_eq!(ups(&known), [true; 3]);
            known.see(&ring(tags, 2, 1));
            assert_eq!((ups(&known).len(), known.cables_gone()), (3, 1), "tags: {tags}");
            known.see(&ring(tags, 3, 1));
            assert_eq!((ups(&known), known.cables_gone()), (vec![true; 3], 0), "tags: {tags}");
        }
    }

    #[test]
    fn the_cables_of_plain_xbars_keep_their_names_when_ports_are_counted_anew() {
        let mut known = KnownFabric::new();
        known.see(&ring(false, 3, 1));
        let before: Vec<_> = known.cables(&[]).collect();
        known.see(&ring(false, 3, 4));
        assert_eq!(known.cables(&[]).collect::<Vec<_>>(), before);
    }

    #[test]
    fn a_cable_that_is_known_dead_reads_down_before_any_new_map() {
        for (tag, names) in [
            (Some("000000000000000a"), ["0x000000000000000a:2", "0x000000000000000b:3"]),
            (None, ["plain1:2", "plain2:3"]),
        ] {
            let mut known = KnownFabric::new();
            known.see(&ring(tag.is_some(), 3, 1));
            let dead = DeadCable { tag: tag.map(str::to_owned), port: 2, ..DeadCable::default() };
            let down: Vec<_> = known.cables(&[dead]).filter(|(_, _, up)| !up).collect();
            assert_eq!(down, [(names[0].to_owned(), names[1].to_owned(), false)]);
        }
    }

    #[test]
    fn a_host_that_is_gone_stays_known() {
        let mut known = KnownFabric::new();
        known.see(&ring(true, 3, 1));
        let mut less = ring(true, 3, 1);
        less.hosts.truncate(2);
        known.see(&less);
        assert_eq!(known.hosts().map(|(_, there)| there).collect::<Vec<_>>(), [true, true, false]);
    }

    #[test]
    fn phantoms_are_never_lost() {
        let mut known = KnownFabric::new();
        let mut inflated = ring(true, 3, 1);
        let phantom = |n| Host { mac: Mac::from_u64(n), level: 0, host_type: host_type::PHANTOM, at: None };
        inflated.hosts.extend((1..=100).map(phantom));
        known.see(&inflated);
        assert_eq!((known.hosts().count(), known.hosts_gone()), (3, 0));
        known.see(&ring(true, 3, 1));
        assert_eq!((known.gone_hosts().count(), known.hosts_gone()), (0, 0));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_gone_are_forgotten_first() {
        let mut seen = Seen::default();
        seen.update(0..MAX_KNOWN);
        seen.update(1..MAX_KNOWN + 10);
        assert_eq!(seen.entries.len(), MAX_KNOWN);
        seen.update(2..MAX_KNOWN + 1);
        assert_eq!(seen.entries.len(), MAX_KNOWN);
        assert_eq!(seen.shown().count(), 1, "only the one that was gone is shown");
    }
}
