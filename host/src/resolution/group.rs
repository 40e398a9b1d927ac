//! Groups: what an endpoint can do, and the best that two of them can do together.
//!
//! `ibacm` has a multicast group for each rate, MTU and service level that its endpoints join, and assumes
//! that the path between two endpoints is as good as the best group that both are in. Here nothing has to be
//! joined: a group is what an endpoint can do in one layer, and what two groups have in common is the lesser
//! rate and the lesser MTU.

use std::cmp::Reverse;

/// What an endpoint can do in a layer, or two of them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Group {
    /// The data rate in Mb/s; 0 if that is not known.
    pub rate_mbps: u32,
    /// The longest frame on the link, in bytes; 0 if that is not known.
    pub mtu_bytes: u16,
    /// The layer of routes, which is a service level.
    pub layer: u8,
}

impl Group {
    /// The most groups that an endpoint names, which is also the limit of `ibacm`.
    pub const MOST: usize = 6;
    /// How many bytes a group takes in a message.
    const BYTES: usize = 7;

    /// What a host can do in one layer, from the rate and the MTU of each of its interfaces: one group for
    /// each that differs, the best first. If there are too many, the last ones are left out. An interface
    /// that does not say how fast it is makes no group if others do.
    pub fn of_interfaces(layer: u8, interfaces: impl IntoIterator<Item = (u32, u16)>) -> Vec<Self> {
        let group = |(rate_mbps, mtu_bytes)| Self { rate_mbps, mtu_bytes, layer };
        let mut groups: Vec<Self> = interfaces.into_iter().map(group).collect();
        groups.sort_unstable_by_key(|&group| Reverse(group));
        groups.dedup();
        if groups.first().is_some_and(|best| best.rate_mbps > 0) {
            groups.retain(|group| group.rate_mbps > 0);
        }
        groups.truncate(Self::MOST);
        if groups.is_empty() {
            // An unknown rate or MTU limits nothing.
            groups.push(group((0, 0)));
        }
        groups
    }

    /// The best group that both can use, in one of the layers that both have: the one with the highest rate,
    /// of these the one with the longest frames, of these the first. `None` if they have no layer in common.
    pub fn best(ours: &[Self], theirs: &[Self]) -> Option<Self> {
        let pairs = ours.iter().flat_map(|one| theirs.iter().map(move |other| (one, other)));
        let common = pairs.filter(|(one, other)| one.layer == other.layer).map(|(one, other)| Self {
            rate_mbps: lesser(one.rate_mbps, other.rate_mbps),
            mtu_bytes: lesser(one.mtu_bytes, other.mtu_bytes),
            layer: one.layer,
        });
        common.max_by_key(|group| (group.rate_mbps, group.mtu_bytes, u8::MAX - group.layer))
    }

    pub(super) fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend(self.rate_mbps.to_be_bytes());
        bytes.extend(self.mtu_bytes.to_be_bytes());
        bytes.push(self.layer);
    }

    /// Reads a group off the beginning of `bytes`.
    pub(super) fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (&[a, b, c, d, e, f, layer], rest) = bytes.split_first_chunk::<{ Self::BYTES }>()?;
        *bytes = rest;
        let (rate_mbps, mtu_bytes) = (u32::from_be_bytes([a, b, c, d]), u16::from_be_bytes([e, f]));
        Some(Self { rate_mbps, mtu_bytes, layer })
    }
}

/// The lesser of two values, where 0 stands for one that is not known.
pub fn lesser<T: Ord + Default + Copy>(one: T, other: T) -> T {
    match (one == T::default(), other == T::default()) {
        (true, _) => other,
        (_, true) => one,
        _ => one.min(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_that_differ_make_groups_of_their_own() {
        let groups =
            Group::of_interfaces(0, [(25_000, 9_000), (0, 9_000), (100_000, 1_500), (25_000, 9_000)]);
        let group = |rate_mbps, mtu_bytes| Group { rate_mbps, mtu_bytes, layer: 0 };
        assert_eq!(groups, [group(100_000, 1_500), group(25_000, 9_000)]);
        assert_eq!(Group::best(&groups, &[group(10_000, 9_000)]), Some(group(10_000, 9_000)));
        assert_eq!(Group::best(&groups, &[group(40_000, 9_000)]), Some(group(40_000, 1_500)));
        assert_eq!(Group::of_interfaces(2, [(0, 1_500)]), [Group { layer: 2, ..group(0, 1_500) }]);
        assert_eq!(Group::of_interfaces(2, []), [Group { layer: 2, ..group(0, 0) }]);
        let many = Group::of_interfaces(0, (1..=9).map(|rate| (rate, 1_500)));
        assert_eq!((many.len(), many[0]), (Group::MOST, group(9, 1_500)));
    }

    #[test]
    fn the_best_group_is_what_both_can_do() {
        let group = |rate_mbps, mtu_bytes, layer| Group { rate_mbps, mtu_bytes, layer };
        let ours = [group(25_000, 9_000, 0), group(100_000, 1_500, 1)];
        assert_eq!(Group::best(&ours, &[group(10_000, 1_500, 0)]), Some(group(10_000, 1_500, 0)));
        let both = [group(10_000, 9_000, 0), group(40_000, 9_000, 1)];
        assert_eq!(Group::best(&ours, &both), Some(group(40_000, 1_500, 1)));
        assert_eq!(Group::best(&ours, &[group(0, 0, 0)]), Some(ours[0]), "what is not known limits nothing");
        assert_eq!(Group::best(&ours, &[group(10_000, 1_500, 2)]), None);
        let alike = [group(10_000, 1_500, 3), group(10_000, 1_500, 2)];
        assert_eq!(Group::best(&alike, &alike), Some(alike[1]));
    }
}
