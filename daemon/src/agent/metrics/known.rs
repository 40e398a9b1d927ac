//! What the maps have shown since the start of the daemon. The metric of a cable or host that is gone is thus
//! 0, and does not vanish.

use std::collections::{BTreeMap, BTreeSet};

use mapper_proto::Mac;
use mapper_proto::map::{Map, PortRef, host_type};

use super::called::{Before, NamedEnd, XbarName, XbarNames, naming_hosts};
use super::present::Present;
use crate::agent::status::DeadCable;
use mapper_proto::crossbar_tag;

/// The most cables, and the most hosts, that are remembered.
const MAX_KNOWN: usize = 16_384;
/// The most cables, and the most hosts, that are shown one by one. If there are more, only those are shown
/// that have been down since the start.
const MAX_SHOWN: usize = 1024;

/// The cables and hosts of all maps since the start.
#[derive(Debug, Default)]
pub struct KnownFabric {
    cables: Seen<[NamedEnd; 2]>,
    hosts: Seen<Mac>,
    /// Where each host was when a map last had it.
    places: BTreeMap<Mac, NamedEnd>,
    names: XbarNames,
}

impl KnownFabric {
    /// A fabric of which no map has been seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in a map. What the map has is there from now on, and what it lacks is gone.
    pub fn see(&mut self, map: &Map) {
        self.call(map);
        let ends = |cable: &mapper_proto::map::Cable| {
            let mut ends = [self.names.end(cable.a)?, self.names.end(cable.b)?];
            ends.sort_unstable();
            Some(ends)
        };
        let cables: Vec<_> = map.cables.iter().filter_map(ends).collect();
        self.cables.update(cables.into_iter());
        // A phantom only inflates the map, so it cannot be lost.
        let real = || map.hosts.iter().filter(|host| host.host_type != host_type::PHANTOM);
        self.hosts.update(real().map(|host| host.mac));
        let places = real().filter_map(|host| Some((host.mac, self.names.end(host.at?)?)));
        self.places.extend(places);
        self.places.retain(|mac, _| self.hosts.entries.contains_key(mac));
    }

    /// Names the xbars of a map.
    fn call(&mut self, map: &Map) {
        let mut before = Before::default();
        if map.xbars.iter().any(|xbar| xbar.tag.is_none()) {
            for (&[a, b], presence) in &self.cables.entries {
                before.cables.entry(a).or_default().push((b, presence.there));
                before.cables.entry(b).or_default().push((a, presence.there));
            }
            before.hosts = std::mem::take(&mut self.places);
        }
        let strangers = self.names.call(map, &before);
        self.places.append(&mut before.hosts);
        if strangers {
            // Any of the new xbars may be one that is gone, so cables between xbars that are gone may still
            // be there, under new names. They are forgotten rather than called gone.
            let names = self.names.all();
            let lost = |end: &NamedEnd| matches!(end.xbar, XbarName::Plain(_)) && !names.contains(&end.xbar);
            self.cables.entries.retain(|ends, _| !ends.iter().all(lost));
        }
    }

    /// The cables to show, by their ends' names, and whether each is there and not `dead`.
    pub(super) fn cables(&self, dead: &[DeadCable]) -> impl Iterator<Item = (String, String, bool)> {
        let dead: BTreeSet<NamedEnd> = dead.iter().filter_map(|cable| self.end_of_dead(cable)).collect();
        self.cables.shown().map(move |(ends, there)| {
            let up = there && !ends.iter().any(|end| dead.contains(end));
            (ends[0].to_string(), ends[1].to_string(), up)
        })
    }

    /// The cables to show, by their ends' names, and for each end the host that its xbar is called by, if there is one.
    pub(super) fn hosts_of_cables(&self) -> impl Iterator<Item = ([String; 2], [Option<Mac>; 2])> {
        let naming = naming_hosts(self.places.iter().map(|(&mac, &end)| (mac, end)));
        let host = move |end: NamedEnd| naming.get(&end.xbar).copied();
        self.cables.shown().map(move |(ends, _)| (ends.map(|end| end.to_string()), ends.map(&host)))
    }

    /// The host that the xbar with this tag is called by: the one whose node it is, or else the only one there.
    pub fn naming_host_at(&self, tag: u64) -> Option<Mac> {
        let at = self.places.iter().filter(|(_, end)| end.xbar == XbarName::Tagged(tag));
        crossbar_tag::naming_host(Some(tag), at.map(|(&mac, _)| mac))
    }

    fn end_of_dead(&self, cable: &DeadCable) -> Option<NamedEnd> {
        match cable.tag_number() {
            Some(tag) => Some(NamedEnd { xbar: XbarName::Tagged(tag), port: cable.port.into() }),
            None => self.names.end(PortRef { xbar: cable.xbar, port: cable.port }),
        }
    }

    /// The hosts to show, each with whether the last map has it.
    pub(super) fn hosts(&self) -> impl Iterator<Item = (Mac, bool)> + '_ {
        self.hosts.shown().map(|(mac, there)| (*mac, there))
    }

    /// What the last map has.
    pub fn present(&self) -> Present {
        Present {
            hosts: self.hosts.there().map(|&mac| (mac, self.places.get(&mac).copied())).collect(),
            cables: self.cables.there().copied().collect(),
        }
    }

    /// Hosts seen since the start that the last map lacks.
    pub fn gone_hosts(&self) -> impl Iterator<Item = Mac> + '_ {
        self.hosts().filter(|(_, there)| !there).map(|(mac, _)| mac)
    }

    /// Cables seen since the start that the last map lacks, by the names of their ends, and for each end the host whose node
    /// its xbar is, if it is one's.
    pub fn gone_cables(&self) -> impl Iterator<Item = ([String; 2], [Option<Mac>; 2])> {
        let all = self.cables.shown().zip(self.hosts_of_cables());
        all.filter(|((_, there), _)| !there).map(|(_, cable)| cable)
    }

    /// How many cables seen since the start the last map lacks.
    pub(super) fn cables_gone(&self) -> u64 {
        self.cables.gone()
    }

    /// How many hosts seen since the start the last map lacks.
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
            // When there is no room, things that are gone are forgotten for those that are there.
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

    fn there(&self) -> impl Iterator<Item = &K> {
        self.entries.iter().filter(|(_, presence)| presence.there).map(|(key, _)| key)
    }

    fn gone(&self) -> u64 {
        self.entries.values().filter(|presence| !presence.there).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mapper_proto::map::{Cable, Host, Xbar};

    /// A ring of three xbars with a host each and the first `cables` of its three cables; `first` is the
    /// number of each xbar's first port.
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

    /// The map that the next mapper makes of a fabric of plain xbars of which some are off. Xbars are
    /// numbered in another order, and the ports of each from another first port. Hosts of xbars that are off
    /// are gone.
    fn found(fabric: &Map, off: &[u32], round: u32) -> Map {
        let count = fabric.xbars.len() as u32;
        let order: Vec<u32> =
            (0..count).map(|n| (n * 5 + round) % count).filter(|n| !off.contains(n)).collect();
        let place = |port: PortRef| {
            let xbar = order.iter().position(|n| *n == port.xbar)? as u32;
            Some(PortRef { xbar, port: port.port + (round as u8 * 3 + xbar as u8) % 7 })
        };
        let hosts = fabric.hosts.iter().filter_map(|host| Some(Host { at: Some(place(host.at?)?), ..*host }));
        let cables = fabric.cables.iter().filter_map(|c| Some(Cable::new(place(c.a)?, place(c.b)?)));
        Map {
            hosts: hosts.collect(),
            cables: cables.collect(),
            xbars: order.iter().map(|_| Xbar { ports: 32, tag: None, ports_known: false }).collect(),
            ..Map::default()
        }
    }

    #[test]
    fn plain_xbars_that_were_off_are_known_again_with_their_cables() {
        for spec in ["clos:hosts=8,ports=4", "torus:x=4,y=3,hosts=1", "xgft:h=3;m=2,2,2;w=1,2,2"] {
            let fabric = mapper_fabric::generate(spec).unwrap().map;
            let (xbars, all) = (fabric.xbars.len() as u32, fabric.cables.len());
            assert_ne!(xbars % 5, 0, "all xbars get new numbers");
            let at_xbar = |xbars: &[u32]| {
                let at = |port: PortRef| xbars.contains(&port.xbar);
                fabric.cables.iter().filter(|cable| at(cable.a) || at(cable.b)).count()
            };
            let mut known = KnownFabric::new();
            known.see(&found(&fabric, &[], 0));
            for round in 1..4 * xbars {
                let off = [round % xbars, (round / xbars + round + 1) % xbars];
                let off = &off[..1 + (round as usize / 2) % 2];
                known.see(&found(&fabric, off, round));
                assert_eq!(known.cables_gone(), at_xbar(off) as u64, "{spec} without {off:?}");
                // The cables come back one after the other.
                known.see(&found(&fabric, &off[1..], round + 1));
                assert_eq!(known.cables_gone(), at_xbar(&off[1..]) as u64, "{spec} with {} again", off[0]);
                known.see(&found(&fabric, &[], round + 2));
                assert_eq!((known.cables_gone(), ups(&known).len()), (0, all), "{spec} after {off:?}");
            }
        }
    }

    #[test]
    fn a_host_that_moves_to_a_plain_xbar_without_hosts_takes_no_name_along() {
        let mut fabric = mapper_fabric::generate("clos:hosts=8,ports=4").unwrap().map;
        let spine = (0..6).find(|n| fabric.hosts.iter().all(|host| host.at.unwrap().xbar != *n)).unwrap();
        for host in 0..8 {
            let mut known = KnownFabric::new();
            known.see(&found(&fabric, &[], 0));
            let at = fabric.hosts[host].at.replace(PortRef { xbar: spine, port: 9 });
            known.see(&found(&fabric, &[], 1));
            assert_eq!((known.cables_gone(), ups(&known)), (0, vec![true; 8]));
            fabric.hosts[host].at = at;
        }
    }

    #[test]
    fn what_a_fabric_of_strange_plain_xbars_may_still_have_is_not_called_gone() {
        let mut known = KnownFabric::new();
        known.see(&ring(false, 3, 1));
        let mut strange = ring(false, 3, 4);
        (3..).zip(&mut strange.hosts).for_each(|(n, host)| host.mac = Mac::from_position(n));
        known.see(&strange);
        assert_eq!((known.cables_gone(), ups(&known)), (0, vec![true; 3]));
        assert_eq!(known.hosts_gone(), 3);
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
    fn an_end_of_a_cable_belongs_to_the_host_whose_node_its_xbar_is_or_to_the_only_one_there() {
        let mac = |n| Some(Mac::from_position(n));
        let hosts = |known: &KnownFabric| known.hosts_of_cables().map(|(_, hosts)| hosts).collect::<Vec<_>>();
        let all = [[mac(0), mac(1)], [mac(0), mac(2)], [mac(1), mac(2)]];
        let other = |map: &mut Map| map.hosts.push(Host { mac: Mac::from_position(7), ..map.hosts[0] });
        let mut map = ring(true, 3, 1);
        let mut known = KnownFabric::new();
        known.see(&map);
        assert_eq!(hosts(&known), all, "each xbar is a device of its own, and has one host");
        assert_eq!((known.naming_host_at(10), known.naming_host_at(9)), (mac(0), None));
        other(&mut map);
        known.see(&map);
        assert_eq!(hosts(&known), [[None, mac(1)], [None, mac(2)], [mac(1), mac(2)]]);
        assert_eq!(known.naming_host_at(10), None);
        let mut map = ring(true, 3, 1);
        crate::agent::crossbar_tag::make_nodes(&mut map);
        let tag = map.xbars[0].tag.unwrap();
        let mut known = KnownFabric::new();
        known.see(&map);
        assert_eq!((hosts(&known), known.naming_host_at(tag)), (all.to_vec(), mac(0)));
        // A node that is gone is still called by its host.
        map.hosts.truncate(2);
        known.see(&map);
        assert_eq!(hosts(&known), all);
        // A node that is gone is still called by its host if another host is cabled to it, too.
        other(&mut map);
        known.see(&map);
        assert_eq!((hosts(&known), known.naming_host_at(tag)), (all.to_vec(), mac(0)));
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
