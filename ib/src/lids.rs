//! Which LIDs ports have. No two ports share one, and a port keeps its LID whenever that is possible.

use std::collections::{BTreeMap, BTreeSet};

/// The largest unicast LID. Those above are for multicast.
pub const LAST_LID: u16 = 0xBFFF;

/// A port that needs a LID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanting {
    /// The port's GUID.
    pub guid: u64,
    /// The LID that it has; 0 for none.
    pub current: u16,
    /// Whether it carries packets, so that others may know it by its LID.
    pub is_active: bool,
    /// The port is to have 2^lmc LIDs.
    pub lmc: u8,
}

/// The LIDs of a port: 2^lmc, from the first on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LidRange {
    /// The first one.
    pub first: u16,
    /// The LID mask control.
    pub lmc: u8,
}

impl LidRange {
    /// The last one, or the last LID that there is.
    pub fn last(self) -> u16 {
        self.first.saturating_add(count_of(self.lmc) - 1).min(LAST_LID)
    }
}

/// How many LIDs a port with this LMC has.
fn count_of(lmc: u8) -> u16 {
    1 << lmc.min(7)
}

/// The GUID of no port.
const NOBODY: u64 = 0;

/// The LIDs that ports were given, by GUID. Ports that are gone keep theirs, for when they come back.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lids {
    given: BTreeMap<u64, LidRange>,
}

impl Lids {
    /// The LIDs that were given before.
    pub fn new(given: BTreeMap<u64, LidRange>) -> Self {
        Self { given }
    }

    /// The first LID of a port.
    pub fn of(&self, guid: u64) -> Option<u16> {
        self.given.get(&guid).map(|range| range.first)
    }

    /// The LIDs of all ports.
    pub fn all(&self) -> &BTreeMap<u64, LidRange> {
        &self.given
    }

    /// Gives each port a LID. An active port keeps the one that it has. Any other port gets the one that it
    /// was given before, or else the one that it has, or else the lowest that is free. If two ports claim one
    /// LID, the one with the lower GUID gets it. LIDs of ports that are gone are given to others only if no
    /// others are left, those of the highest GUIDs first. Last of all come those `in_use`, to which tables
    /// lead: hosts may go on sending there, and no proof counts packets to a port that is gone.
    ///
    /// Returns the ports that got none, as all LIDs are taken.
    pub fn assign(&mut self, ports: &[Wanting], in_use: &BTreeSet<u16>) -> Vec<u64> {
        let mut ports = ports.to_vec();
        ports.sort_unstable_by_key(|port| port.guid);
        let mut taken = Taken::default();
        let mut settled = self.claimed(&ports, &mut taken);
        let mut gone = self.kept_for_gone(&ports, in_use, &mut taken);
        ports.retain(|port| !settled.contains_key(&port.guid));
        let without = give_rest(&ports, &mut taken, &mut settled, &mut gone);
        settled.extend(gone.into_iter().filter(|&(guid, _)| guid != NOBODY));
        self.given = settled;
        without
    }

    /// The LIDs of ports that have or had some which nobody else claims with more right.
    fn claimed(&self, ports: &[Wanting], taken: &mut Taken) -> BTreeMap<u64, LidRange> {
        let mut settled = BTreeMap::new();
        let claims: [fn(&Self, &Wanting) -> Option<u16>; 3] = [
            |_, port| Some(port.current).filter(|_| port.is_active),
            |lids, port| lids.of(port.guid),
            |_, port| Some(port.current),
        ];
        for claim in claims {
            for port in ports {
                if settled.contains_key(&port.guid) {
                    continue;
                }
                let range = claim(self, port).map(|first| LidRange { first, lmc: port.lmc });
                if let Some(range) = range.filter(|&range| taken.take(range)) {
                    settled.insert(port.guid, range);
                }
            }
        }
        settled
    }

    /// The LIDs that wait for ports that are gone, and those in use that are nobody's, the first to be given away last. Where
    /// others have some of a port's LIDs by now, its first one is kept.
    fn kept_for_gone(
        &self,
        ports: &[Wanting],
        in_use: &BTreeSet<u16>,
        taken: &mut Taken,
    ) -> Vec<(u64, LidRange)> {
        let is_there: BTreeSet<u64> = ports.iter().map(|port| port.guid).collect();
        let mut gone = Vec::new();
        for (&guid, &range) in self.given.iter().filter(|(guid, _)| !is_there.contains(guid)) {
            let kept = [range, LidRange { lmc: 0, ..range }].into_iter().find(|&range| taken.take(range));
            gone.extend(kept.map(|range| (guid, range)));
        }
        // No port has the GUID 0, which stands before all others.
        let in_use = in_use.iter().rev().map(|&first| LidRange { first, lmc: 0 });
        let kept_free = in_use.filter(|&range| taken.take(range)).map(|range| (NOBODY, range));
        gone.splice(0..0, kept_free.collect::<Vec<_>>());
        gone
    }
}

/// Gives the other ports the lowest LIDs that are free, and once none is, those of `gone`, the last first. Returns the ports for
/// which none was left.
fn give_rest(
    ports: &[Wanting],
    taken: &mut Taken,
    settled: &mut BTreeMap<u64, LidRange>,
    gone: &mut Vec<(u64, LidRange)>,
) -> Vec<u64> {
    let mut without = Vec::new();
    for port in ports {
        let found = loop {
            if let Some(range) = taken.take_lowest(port.lmc) {
                break Some(range);
            }
            match gone.pop() {
                Some((_, range)) => taken.free(range),
                None => break None,
            }
        };
        match found {
            Some(range) => drop(settled.insert(port.guid, range)),
            None => without.push(port.guid),
        }
    }
    without
}

/// LIDs that are taken.
#[derive(Default)]
struct Taken {
    lids: BTreeSet<u16>,
    /// The lowest LID that may be free for a port with one LID, but for those that were freed.
    floor: u16,
    /// LIDs that were taken and are free again.
    freed: BTreeSet<u16>,
}

impl Taken {
    /// Takes LIDs, if they are unicast, aligned and all free.
    fn take(&mut self, LidRange { first, lmc }: LidRange) -> bool {
        let count = count_of(lmc);
        let Some(last) = first.checked_add(count - 1) else { return false };
        if first == 0
            || last > LAST_LID
            || !first.is_multiple_of(count)
            || self.lids.range(first..=last).next().is_some()
        {
            return false;
        }
        for lid in first..=last {
            self.lids.insert(lid);
            self.freed.remove(&lid);
        }
        true
    }

    fn free(&mut self, range: LidRange) {
        for lid in range.first..=range.last() {
            self.lids.remove(&lid);
            self.freed.insert(lid);
        }
    }

    fn take_lowest(&mut self, lmc: u8) -> Option<LidRange> {
        let count = count_of(lmc);
        if let Some(&first) = self.freed.first().filter(|_| count == 1) {
            let range = LidRange { first, lmc };
            return self.take(range).then_some(range);
        }
        let mut first = if count == 1 { self.floor.max(1) } else { count };
        while first <= LAST_LID {
            let range = LidRange { first, lmc };
            if self.take(range) {
                if count == 1 {
                    self.floor = first + 1;
                }
                return Some(range);
            }
            first += count;
        }
        if count == 1 {
            self.floor = first;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn port(guid: u64, current: u16, is_active: bool) -> Wanting {
        Wanting { guid, current, is_active, lmc: 0 }
    }

    fn one(first: u16) -> LidRange {
        LidRange { first, lmc: 0 }
    }

    #[test]
    fn what_is_in_use_stays_then_what_was_given_then_the_lowest_that_is_free() {
        let mut lids = Lids::new(BTreeMap::from([(1, one(7)), (2, one(8)), (9, one(1))]));
        let without = lids.assign(
            &[port(1, 3, true), port(2, 5, false), port(3, 0, false), port(4, 3, true)],
            &BTreeSet::new(),
        );
        assert!(without.is_empty());
        // Port 1 is known by LID 3, port 2 gets its own again, and LID 1 waits for port 9.
        assert_eq!([1, 2, 3, 4, 9].map(|guid| lids.of(guid)), [Some(3), Some(8), Some(2), Some(4), Some(1)]);
    }

    #[test]
    fn a_mask_gives_aligned_blocks() {
        let mut lids = Lids::default();
        let wide = |guid, current| Wanting { guid, current, is_active: true, lmc: 2 };
        lids.assign(&[port(1, 4, true), wide(2, 4), wide(3, 6)], &BTreeSet::new());
        assert_eq!([1, 2, 3].map(|guid| lids.of(guid)), [Some(4), Some(8), Some(12)]);
    }

    #[test]
    fn a_port_that_is_gone_keeps_all_its_lids() {
        let wide = Wanting { lmc: 2, ..port(1, 0, false) };
        let mut lids = Lids::default();
        lids.assign(&[wide], &BTreeSet::new());
        assert_eq!(lids.all()[&1], LidRange { first: 4, lmc: 2 });
        // Ports that come while it is gone get none of its LIDs.
        let others: Vec<_> = (2..7).map(|guid| port(guid, 0, false)).collect();
        lids.assign(&others, &BTreeSet::new());
        assert_eq!([2, 3, 4, 5, 6].map(|guid| lids.of(guid)), [1, 2, 3, 8, 9].map(Some));
        lids.assign(&[&others[..], &[wide]].concat(), &BTreeSet::new());
        assert_eq!(lids.of(1), Some(4));
    }

    #[test]
    fn where_others_have_some_of_the_lids_of_a_port_that_is_gone_its_first_one_is_kept() {
        let mut lids = Lids::new(BTreeMap::from([(9, LidRange { first: 4, lmc: 2 })]));
        lids.assign(&[port(1, 6, true)], &BTreeSet::new());
        assert_eq!(lids.all(), &BTreeMap::from([(1, one(6)), (9, one(4))]));
    }

    #[test]
    fn all_lids_of_a_port_that_is_gone_are_given_away_when_no_others_are_left() {
        let mut lids = Lids::new(BTreeMap::from([(100_000, LidRange { first: 8, lmc: 3 })]));
        let many: Vec<_> = (1..=u64::from(LAST_LID)).map(|guid| port(guid, 0, false)).collect();
        assert!(lids.assign(&many, &BTreeSet::new()).is_empty());
        assert_eq!(lids.of(u64::from(LAST_LID)), Some(15));
    }

    #[test]
    fn lids_of_ports_that_are_gone_are_given_away_last() {
        let gone = (0..u64::from(LAST_LID)).map(|guid| (100_000 + guid, one(guid as u16 + 1))).collect();
        let mut lids = Lids::new(gone);
        assert!(lids.assign(&[port(1, 0, false)], &BTreeSet::new()).is_empty());
        assert_eq!(lids.of(1), Some(LAST_LID));
        let many: Vec<_> = (1..=u64::from(LAST_LID) + 1).map(|guid| port(guid, 0, false)).collect();
        assert_eq!(lids.assign(&many, &BTreeSet::new()), [u64::from(LAST_LID) + 1]);
    }

    proptest! {
        #[test]
        fn no_two_have_one_lid_and_nothing_changes_when_asked_again(
            ports in prop::collection::btree_map(0..40_u64, (0..60_u16, any::<bool>(), 0..3_u8), 0..30),
            given in prop::collection::btree_map(0..60_u64, (0..60_u16, 0..3_u8), 0..30),
        ) {
            let wanting: Vec<_> = ports
                .iter()
                .map(|(&guid, &(current, is_active, lmc))| Wanting { guid, current, is_active, lmc })
                .collect();
            let given = given.into_iter().map(|(guid, (first, lmc))| (guid, LidRange { first, lmc }));
            let mut lids = Lids::new(given.collect());
            prop_assert_eq!(lids.assign(&wanting, &BTreeSet::new()), Vec::<u64>::new());
            let mut seen = BTreeSet::new();
            for port in &wanting {
                let lid = lids.of(port.guid).unwrap();
                for lid in lid..lid + (1 << port.lmc) {
                    prop_assert!(seen.insert(lid), "LID {}", lid);
                }
            }
            for (guid, range) in lids.all().iter().filter(|(guid, _)| !ports.contains_key(guid)) {
                for lid in range.first..=range.last() {
                    prop_assert!(seen.insert(lid), "LID {} of port {}, which is gone", lid, guid);
                }
            }
            let settled: Vec<_> = wanting
                .iter()
                .map(|port| Wanting { current: lids.of(port.guid).unwrap(), is_active: true, ..*port })
                .collect();
            let before = lids.clone();
            lids.assign(&settled, &BTreeSet::new());
            for port in &settled {
                prop_assert_eq!(lids.of(port.guid), before.of(port.guid));
            }
        }
    }
}
