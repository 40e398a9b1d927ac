//! Which LIDs ports have. No two ports share one, and a port keeps its LID whenever that is possible.

use std::collections::{BTreeMap, BTreeSet};

/// The largest unicast LID.
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

/// The GUID of no port.
const NOBODY: u64 = 0;

/// The LIDs that ports were given, by GUID. Ports that are gone keep theirs, for when they come back.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lids {
    given: BTreeMap<u64, u16>,
}

impl Lids {
    /// The LIDs that were given before.
    pub fn new(given: BTreeMap<u64, u16>) -> Self {
        Self { given }
    }

    /// The first LID of a port.
    pub fn of(&self, guid: u64) -> Option<u16> {
        self.given.get(&guid).copied()
    }

    /// The first LIDs of all ports.
    pub fn all(&self) -> &BTreeMap<u64, u16> {
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
        let mut settled: BTreeMap<u64, u16> = BTreeMap::new();
        let claims: [fn(&Self, &Wanting) -> Option<u16>; 3] = [
            |_, port| Some(port.current).filter(|_| port.is_active),
            |lids, port| lids.of(port.guid),
            |_, port| Some(port.current),
        ];
        for claim in claims {
            for port in
                ports.iter().filter(|port| !settled.contains_key(&port.guid)).copied().collect::<Vec<_>>()
            {
                if let Some(lid) = claim(self, &port).filter(|&lid| taken.take(lid, port.lmc)) {
                    settled.insert(port.guid, lid);
                }
            }
        }
        let mut gone: Vec<(u64, u16)> = self
            .given
            .iter()
            .map(|(&guid, &lid)| (guid, lid))
            .filter(|(guid, _)| !settled.contains_key(guid))
            .collect();
        let is_there: BTreeSet<u64> = ports.iter().map(|port| port.guid).collect();
        gone.retain(|&(guid, lid)| !is_there.contains(&guid) && taken.take(lid, 0));
        // No port has the GUID 0, which stands before all others.
        let kept_free = in_use.iter().rev().filter(|&&lid| taken.take(lid, 0)).map(|&lid| (NOBODY, lid));
        gone.splice(0..0, kept_free.collect::<Vec<_>>());
        let mut without = Vec::new();
        for port in ports.iter().filter(|port| !settled.contains_key(&port.guid)).copied().collect::<Vec<_>>()
        {
            let found = loop {
                match (taken.take_lowest(port.lmc), gone.pop()) {
                    (Some(lid), back) => {
                        gone.extend(back);
                        break Some(lid);
                    }
                    (None, Some((_, lid))) => {
                        taken.lids.remove(&lid);
                        if taken.take(lid, port.lmc) {
                            break Some(lid);
                        }
                    }
                    (None, None) => break None,
                }
            };
            match found {
                Some(lid) => drop(settled.insert(port.guid, lid)),
                None => without.push(port.guid),
            }
        }
        settled.extend(gone.into_iter().filter(|&(guid, _)| guid != NOBODY));
        self.given = settled;
        without
    }
}

/// LIDs that are taken.
#[derive(Default)]
struct Taken {
    lids: BTreeSet<u16>,
    /// The lowest LID that may be free for a port with one LID.
    floor: u16,
}

impl Taken {
    /// Takes a LID and those that follow it, if they are unicast, aligned and all free.
    fn take(&mut self, lid: u16, lmc: u8) -> bool {
        let count = 1_u16 << lmc.min(7);
        let Some(last) = lid.checked_add(count - 1) else { return false };
        if lid == 0
            || last > LAST_LID
            || !lid.is_multiple_of(count)
            || self.lids.range(lid..=last).next().is_some()
        {
            return false;
        }
        self.lids.extend(lid..=last);
        true
    }

    fn take_lowest(&mut self, lmc: u8) -> Option<u16> {
        let count = 1_u16 << lmc.min(7);
        // LIDs that were freed are below the floor, where only ports with several LIDs look. Ports with one
        // LID take them as they are freed.
        let mut lid = if count == 1 { self.floor.max(1) } else { count };
        while lid <= LAST_LID {
            if self.take(lid, lmc) {
                if count == 1 {
                    self.floor = lid + 1;
                }
                return Some(lid);
            }
            lid += count;
        }
        if count == 1 {
            self.floor = lid;
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

    #[test]
    fn what_is_in_use_stays_then_what_was_given_then_the_lowest_that_is_free() {
        let mut lids = Lids::new(BTreeMap::from([(1, 7), (2, 8), (9, 1)]));
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
    fn lids_of_ports_that_are_gone_are_given_away_last() {
        let gone = (0..u64::from(LAST_LID)).map(|guid| (100_000 + guid, guid as u16 + 1)).collect();
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
            given in prop::collection::btree_map(0..60_u64, 0..60_u16, 0..30),
        ) {
            let wanting: Vec<_> = ports
                .iter()
                .map(|(&guid, &(current, is_active, lmc))| Wanting { guid, current, is_active, lmc })
                .collect();
            let mut lids = Lids::new(given);
            prop_assert_eq!(lids.assign(&wanting, &BTreeSet::new()), Vec::<u64>::new());
            let mut seen = BTreeSet::new();
            for port in &wanting {
                let lid = lids.of(port.guid).unwrap();
                for lid in lid..lid + (1 << port.lmc) {
                    prop_assert!(seen.insert(lid), "LID {}", lid);
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
