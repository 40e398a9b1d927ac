//! Which entries of forwarding tables a change changes.

use mapper_routing::Tables;
use mapper_routing::tables::{Destinations, SlotEnd};

use super::Routed;

/// An entry of a table that is another after a change. Nodes are counted as before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChangedEntry {
    /// What the entry leads to.
    pub(crate) to: SlotEnd,
    /// The port before; `None` if it led nowhere.
    pub(crate) was: Option<u8>,
    /// The port after.
    pub(crate) now: Option<u8>,
}

/// Tables of the same fabric before a change and after it.
pub(super) struct ComparedTables<'a> {
    pub(super) then: &'a Tables,
    pub(super) now: &'a Tables,
    pub(super) slots_then: &'a Destinations,
    pub(super) slots_now: &'a Destinations,
    /// The number after the change of each xbar before it.
    pub(super) xbars: &'a [Option<u32>],
}

impl ComparedTables<'_> {
    /// All slots that are there before and after: what they lead to, and their rows of then and now.
    fn slots(&self) -> impl Iterator<Item = (SlotEnd, &[u8], &[u8])> {
        (0..self.then.slot_count() as u32).filter_map(|slot| {
            let end = self.slots_then.end(slot);
            let now = match end {
                SlotEnd::Xbar(xbar) => {
                    let xbar = self.xbars.get(xbar as usize).copied().flatten()?;
                    self.slots_now.slot_of_xbar(xbar)
                }
                SlotEnd::Host { host, path } => self.slots_now.slots_of_host(host).nth(path as usize)?,
            };
            Some((end, self.then.of_slot(slot), self.now.of_slot(now)))
        })
    }
}

impl Routed {
    /// How many entries of each xbar's table are others than in `before`, which is the same fabric before the change. Xbars that
    /// are removed have none that count, nor do entries to nodes that are removed, to hosts without a cable, or an xbar's entry
    /// for itself. `None` if either has no tables.
    pub(crate) fn changed_by_xbar(&self, before: &Self) -> Option<Vec<usize>> {
        let compared = self.tables_with(before)?;
        let mut counts = vec![0; compared.xbars.len()];
        let stays: Vec<(usize, usize)> = compared
            .xbars
            .iter()
            .enumerate()
            .filter_map(|(xbar, now)| Some((xbar, (*now)? as usize)))
            .collect();
        for (end, then, now) in compared.slots() {
            for &(xbar, xbar_now) in &stays {
                if then[xbar] != now[xbar_now] && end != SlotEnd::Xbar(xbar as u32) {
                    counts[xbar] += 1;
                }
            }
        }
        Some(counts)
    }

    /// How many entries of all tables are others than in `before`; see [`Self::changed_by_xbar`].
    pub(crate) fn changed_entries(&self, before: &Self) -> Option<usize> {
        Some(self.changed_by_xbar(before)?.into_iter().sum())
    }

    /// The first `most` entries of an xbar's table that are others than in `before`, in the order of its slots. None if the xbar
    /// is removed, or either has no tables.
    pub(crate) fn changed_of(&self, before: &Self, xbar: u32, most: usize) -> Vec<ChangedEntry> {
        let Some(compared) = self.tables_with(before) else { return Vec::new() };
        let Some(xbar_now) = compared.xbars.get(xbar as usize).copied().flatten() else { return Vec::new() };
        let port = |port: u8| Some(port).filter(|&port| port != Tables::NONE);
        let entries =
            compared.slots().map(|(to, then, now)| (to, then[xbar as usize], now[xbar_now as usize]));
        entries
            .filter(|&(to, was, now)| was != now && to != SlotEnd::Xbar(xbar))
            .map(|(to, was, now)| ChangedEntry { to, was: port(was), now: port(now) })
            .take(most)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use mapper_fabric::generate;
    use mapper_routing::engines::Engine;

    use super::*;

    #[test]
    fn entries_that_lead_over_a_cut_cable_lead_elsewhere_and_all_are_counted_by_xbar() {
        let fabric = generate("clos:hosts=8,ports=4").unwrap();
        let routed = |cuts: &[u32]| {
            Routed::new(&fabric, Engine::Minhop, &cuts.iter().copied().collect::<BTreeSet<_>>()).unwrap()
        };
        let (before, after) = (routed(&[]), routed(&[0]));
        let by_xbar = after.changed_by_xbar(&before).unwrap();
        assert_eq!(Some(by_xbar.iter().sum()), after.changed_entries(&before));
        let cut = fabric.map.cables[0].a;
        assert!(by_xbar[cut.xbar as usize] > 0, "{by_xbar:?}");
        for (xbar, &count) in by_xbar.iter().enumerate() {
            let entries = after.changed_of(&before, xbar as u32, usize::MAX);
            assert_eq!(entries.len(), count);
            assert!(entries.iter().all(|entry| entry.was != entry.now));
        }
        let of_leaf = after.changed_of(&before, cut.xbar, usize::MAX);
        assert!(
            of_leaf.iter().all(|entry| entry.now != Some(cut.port)),
            "nothing leads over it: {of_leaf:?}"
        );
        assert!(of_leaf.iter().any(|entry| entry.was == Some(cut.port)), "{of_leaf:?}");
        assert_eq!(after.changed_of(&before, cut.xbar, 1).len(), 1);
        assert!(before.changed_by_xbar(&before).unwrap().iter().all(|&count| count == 0));
    }
}
