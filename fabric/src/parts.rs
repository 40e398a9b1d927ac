//! Things that are joined, as xbars are by cables: the parts that they fall into, and what parts fall into in turn.

use std::collections::BTreeMap;

/// Parts that things fall into, as they are joined: union and find. Things are numbered from 0, and at first each is a part of its
/// own.
#[derive(Debug, Clone)]
pub struct Parts {
    /// For each thing itself, or one of its part that has a lower number.
    lower: Vec<u32>,
}

impl Parts {
    /// So many things that nothing joins.
    pub fn new(count: usize) -> Self {
        Self { lower: (0..count as u32).collect() }
    }

    /// The part of a thing, by the least number in it.
    pub fn of(&mut self, mut thing: u32) -> u32 {
        // The path is halved on the way, so that the next one is shorter.
        while self.lower[thing as usize] != thing {
            self.lower[thing as usize] = self.lower[self.lower[thing as usize] as usize];
            thing = self.lower[thing as usize];
        }
        thing
    }

    /// Joins two things. Gives their two parts, the one with the lower number first, unless they are in one part already.
    pub fn join(&mut self, one: u32, other: u32) -> Option<(u32, u32)> {
        let (one, other) = (self.of(one), self.of(other));
        self.lower[one.max(other) as usize] = one.min(other);
        (one != other).then_some((one.min(other), one.max(other)))
    }
}

/// What most hosts of a part stay joined with when the part falls into pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LargestPiece {
    /// The piece with the most hosts; of several, the one with the lowest number.
    pub piece: u32,
    /// How many hosts are in it.
    pub hosts: usize,
    /// How many hosts are in any piece of the part.
    pub all_hosts: usize,
}

/// For each part the largest piece that it falls into. `hosts` has the part and the piece of each host.
pub fn largest_pieces(hosts: impl IntoIterator<Item = (u32, u32)>) -> BTreeMap<u32, LargestPiece> {
    let mut counts: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    hosts.into_iter().for_each(|it| *counts.entry(it).or_default() += 1);
    let mut largest: BTreeMap<u32, LargestPiece> = BTreeMap::new();
    for ((part, piece), hosts) in counts {
        let best = largest.entry(part).or_insert(LargestPiece { piece, hosts, all_hosts: 0 });
        best.all_hosts += hosts;
        if hosts > best.hosts {
            (best.piece, best.hosts) = (piece, hosts);
        }
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_called_by_its_least_number_in_whatever_order_it_is_joined() {
        let mut parts = Parts::new(6);
        assert_eq!(parts.join(5, 3), Some((3, 5)));
        assert_eq!(parts.join(1, 4), Some((1, 4)));
        assert_eq!(parts.join(4, 5), Some((1, 3)));
        assert_eq!(parts.join(3, 1), None, "they are joined already");
        assert_eq!((0..6).map(|thing| parts.of(thing)).collect::<Vec<_>>(), [0, 1, 2, 1, 1, 1]);
    }

    #[test]
    fn the_largest_piece_of_a_part_has_the_most_hosts_or_the_lowest_number() {
        let hosts = [(0, 7), (0, 2), (0, 7), (4, 9), (4, 8)];
        let largest = largest_pieces(hosts);
        assert_eq!(largest[&0], LargestPiece { piece: 7, hosts: 2, all_hosts: 3 });
        assert_eq!(largest[&4], LargestPiece { piece: 8, hosts: 1, all_hosts: 2 });
        assert_eq!(largest.len(), 2);
    }
}
