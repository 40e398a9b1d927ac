//! How to get from tables in force to new ones, so that no mixture of both can deadlock.

mod frame_layers;
mod search;
#[cfg(test)]
mod tests;

use crate::tables::{Layers, SlotEnd};
use crate::{Subnet, Tables};
use search::CircleSearch;

/// In which order the entries of new tables may come into force.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Transition {
    /// Slots whose old entries are to be emptied, wherever new ones differ, before any other entry changes.
    pub emptied_first: Vec<u32>,
    /// Entries, by slot and xbar, that are to change after all others. By the new tables no host's frames pass them, so
    /// nobody waits for them.
    pub last: Vec<(u32, u32)>,
    /// Whether nothing may change before all frames are gone that are under way by tables from before those in force.
    pub must_wait: bool,
}

/// What frames may go by until new tables are in force everywhere.
#[derive(Debug, Clone, Copy)]
pub struct Former<'a> {
    /// The tables in force, and then those that were in force so recently that frames may be under way by them.
    pub tables: &'a [&'a Tables],
    /// The layers that hosts were told with these tables, in any order; `None` if nobody knows what they were told.
    pub layers: Option<&'a [Layers]>,
}

/// How to get from the tables in force to new ones.
///
/// Switches take their new entries one by one, so for a while each may go by either table. Of such a mixture, every
/// dependency of a channel on the next counts that frames of a slot could make by any choice of old and new entries;
/// loops show as circles, too. What closes no circle together with all new dependencies may change in any order. If some slots
/// do close one, entries that no host's frames pass by the new tables stay as they are until no frame goes by an old entry any
/// more: often they alone close it, as those of a spine that lost its cable to a leaf and would send frames that still
/// come to it round by another leaf. Slots for which that does not do are emptied first: an empty entry drops frames, and makes
/// no dependency. Then
///
/// - until all of them are empty, what is in force is a part of the old tables;
/// - while others change, it is what was searched here for circles;
/// - and while emptied ones are filled and the last ones change, frames go by a part of the new tables.
///
/// Between these three, frames that are under way get the time to arrive. Frames by tables from before those in force count as
/// those by the tables in force, but nothing that is emptied now takes them away: where they are in the way, they are to be waited
/// for.
///
/// Each layer is searched by itself, with frames in the layers that hosts were told, or in all if that is not known: nobody is told
/// new ones before all is written. What comes then is beyond any order: hosts go on with a layer until they ask
/// again, and where such frames close a circle by new entries, these are left out here.
///
/// As in [`prove_tables`](super::prove_tables), frames begin at xbars with hosts, and those to xbars' own addresses do not
/// count.
pub fn transition(subnet: &Subnet, former: Former<'_>, new: &Tables, layers: &Layers) -> Transition {
    let Some((in_force, before)) = former.tables.split_first() else { return Transition::default() };
    let is_host = |slot: &u32| matches!(subnet.destinations.end(*slot), SlotEnd::Host { .. });
    let slots: Vec<u32> = (0..new.slot_count() as u32).filter(is_host).collect();
    // An entry that led nowhere so far makes no dependency, unless frames come there by tables from before.
    let counts = |old: u8| old != Tables::NONE || !before.is_empty();
    let changes = |slot: &u32| {
        let mut pairs = in_force.of_slot(*slot).iter().zip(new.of_slot(*slot));
        pairs.any(|(&old, &new)| old != new && counts(old))
    };
    let changed: Vec<u32> = slots.iter().copied().filter(changes).collect();
    if changed.is_empty() {
        return Transition::default();
    }
    let Some(mut search) = CircleSearch::new(subnet, former, (new, layers), (&slots, &changed)) else {
        return Transition { must_wait: !before.is_empty(), emptied_first: changed, last: Vec::new() };
    };
    search.settle(&changed);
    let Transition { mut emptied_first, mut last, .. } = search.found;
    emptied_first.sort_unstable();
    last.sort_unstable();
    Transition { must_wait: !before.is_empty() && !emptied_first.is_empty(), emptied_first, last }
}
