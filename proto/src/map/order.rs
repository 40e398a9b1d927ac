//! The order of a map's hosts, and the tree that it makes.

use std::cmp::Reverse;

use super::Map;
use crate::Mac;

impl Map {
    /// Puts hosts by falling rank, cables with their smaller end first and in rising order, contested
    /// ports in rising order, and drops what stands twice. Xbars keep their places.
    pub fn sort_canonical(&mut self) {
        self.hosts.sort_by_key(|host| Reverse(host.rank()));
        for cable in &mut self.cables {
            *cable = super::Cable::new(cable.a, cable.b);
        }
        self.cables.sort_unstable();
        self.cables.dedup();
        self.contested.sort_unstable();
        self.contested.dedup();
        self.lossy.sort_unstable();
    }

    /// Where the host with this address stands in [`Map::hosts`]. Looks at one host after the
    /// other: for many look-ups build a [`HostIndex`].
    pub fn host_index(&self, mac: Mac) -> Option<usize> {
        self.hosts.iter().position(|host| host.mac == mac)
    }

    /// The host above the one at `index` in the tree, counted from 0; `None` for the root and for
    /// an index beyond the hosts.
    pub const fn parent_index(&self, index: usize) -> Option<usize> {
        if index == 0 || index >= self.hosts.len() { None } else { Some((index - 1) / 2) }
    }

    /// The hosts below the one at `index` in the tree, counted from 0: at most two.
    pub fn children_indices(&self, index: usize) -> impl Iterator<Item = usize> + use<> {
        let first = index.saturating_mul(2).saturating_add(1);
        let end = self.hosts.len().min(first.saturating_add(2));
        first..end
    }
}

/// Finds hosts by address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostIndex {
    by_mac: Vec<(Mac, u32)>,
}

impl HostIndex {
    /// The index of this map's hosts.
    pub fn new(map: &Map) -> Self {
        let mut by_mac: Vec<_> = (0..).zip(&map.hosts).map(|(index, host)| (host.mac, index)).collect();
        by_mac.sort_unstable();
        Self { by_mac }
    }

    /// Where the host with this address stands in [`Map::hosts`]; the first, if it stands twice.
    pub fn find(&self, mac: Mac) -> Option<u32> {
        let at = self.by_mac.partition_point(|&(other, _)| other < mac);
        self.by_mac.get(at).filter(|&&(other, _)| other == mac).map(|&(_, index)| index)
    }

    /// Addresses that stand more than once, in rising order.
    pub fn duplicates(&self) -> impl Iterator<Item = Mac> + '_ {
        self.by_mac.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[0].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{Cable, Host, PortRef};

    fn map_of(hosts: &[(u8, u32)]) -> Map {
        let host = |&(level, position): &(u8, u32)| Host {
            mac: Mac::from_position(position),
            level,
            host_type: 4,
            at: None,
        };
        Map { hosts: hosts.iter().map(host).collect(), ..Map::default() }
    }

    #[test]
    fn the_highest_rank_stands_first() {
        let mut map = map_of(&[(1, 5), (1, 9), (3, 1), (0, 99)]);
        let port = |xbar, port| PortRef { xbar, port };
        let cable = Cable { a: port(1, 2), b: port(0, 9) };
        map.cables = vec![cable, Cable::new(port(0, 1), port(0, 2)), Cable::new(cable.a, cable.b)];
        map.sort_canonical();
        assert_eq!(map.hosts, map_of(&[(3, 1), (1, 9), (1, 5), (0, 99)]).hosts);
        assert_eq!(map.cables, [Cable::new(port(0, 1), port(0, 2)), Cable::new(port(0, 9), port(1, 2))]);
        assert_eq!(map.host_index(Mac::from_position(5)), Some(2));
        assert_eq!(map.host_index(Mac::from_position(6)), None);
    }

    #[test]
    fn the_index_finds_every_host_and_tells_those_that_stand_twice() {
        let index = HostIndex::new(&map_of(&[(1, 5), (0, 9), (3, 1), (0, 5)]));
        assert_eq!(index.find(Mac::from_position(5)), Some(0));
        assert_eq!(index.find(Mac::from_position(9)), Some(1));
        assert_eq!(index.find(Mac::from_position(7)), None);
        assert_eq!(index.duplicates().collect::<Vec<_>>(), [Mac::from_position(5)]);
    }

    #[test]
    fn counted_from_1_n_is_the_parent_of_2n_and_2n_plus_1() {
        let map = map_of(&[(1, 0); 100]);
        assert_eq!(map.parent_index(0), None);
        assert_eq!(map.parent_index(100), None);
        for n in 2..=100 {
            assert_eq!(map.parent_index(n - 1), Some(n / 2 - 1));
            assert!(map.children_indices(n / 2 - 1).any(|child| child == n - 1));
        }
        assert_eq!(map.children_indices(49).collect::<Vec<_>>(), [99]);
        assert_eq!(map.children_indices(50).count(), 0);
        assert_eq!(map.children_indices(usize::MAX).count(), 0);
    }
}
