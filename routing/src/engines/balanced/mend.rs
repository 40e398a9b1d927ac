//! Mends tables that were in force, if little of the fabric has changed: all entries are checked, and few are
//! chosen anew.

use rayon::prelude::*;

use super::fill::{Filler, own_port};
use super::kept::{Kept, Previous};
use super::own_rows::OwnRows;
use super::ranks::each_bit;
use super::runs::Runs;
use super::search::BLOCK;
use super::spread::Spread;
use super::sweep::{Slots, Target};
use super::twins::Twins;
use super::ways::Ways;
use crate::tables::{Entry, Tables};

/// Most pairs of a target and an xbar with wrong entries for it that are chosen one by one.
pub(super) const MOST_SINGLE: usize = 1 << 16;
/// Most targets of which so much is wrong that they are chosen anew as a whole.
const MOST_WHOLE: usize = 256;

/// What a check of all entries found to be wrong.
#[derive(Default)]
pub(super) struct Wrong {
    /// Entries for which there is no choice, as they have to be: at hosts' own xbars, and for xbars' own slots.
    fixed: Vec<Entry>,
    /// The entries that are to be chosen one by one, in the order of slots.
    single: Vec<Single>,
    /// The ports by which ways lead on, for each of [`Self::single`].
    sets: Vec<u64>,
    /// The targets that are to be chosen anew as a whole.
    whole: Vec<Slots>,
}

/// Slots whose entries at an xbar are wrong.
struct Single {
    slots: Slots,
    xbar: u32,
    lanes: u64,
}

impl Previous<'_> {
    /// Checks all entries.
    pub(super) fn check(&self, filler: &Filler<'_>) -> Wrong {
        let (ports, leaves) = (filler.ports, filler.leaves());
        let are_shortest = !filler.reduces_ways() && ports.weights.is_empty();
        let mut twins = if are_shortest { Twins::of(ports, leaves) } else { Twins::apart(ports) };
        let mut own = OwnRows::default();
        if are_shortest {
            let alone = twins.take_alone(|xbar| leaves.binary_search(&xbar).is_err());
            let rows = alone.par_chunks(BLOCK).map(|to| OwnRows::check(filler, self, to));
            own = rows.reduce(OwnRows::default, OwnRows::join);
            twins.add_alone(&own.left);
        }
        let check = |mut wrong: Wrong, classes: &[Vec<u32>]| {
            wrong.check_classes(filler, self, classes);
            wrong
        };
        let wrong = twins.parts().into_par_iter().fold(Wrong::default, check);
        let of_own = Wrong { fixed: own.fixed, ..Wrong::default() };
        wrong.reduce(Wrong::default, Wrong::join).join(of_own).in_order_of_slots(filler.ports.words)
    }
}

impl Wrong {
    /// Checks the entries for the xbars of some classes and for their hosts.
    fn check_classes(&mut self, filler: &Filler<'_>, previous: &Previous<'_>, classes: &[Vec<u32>]) {
        let to: Vec<u32> = classes.iter().filter_map(|class| class.first().copied()).collect();
        let mut ways = filler.unordered_ways(&to);
        for (place, class) in classes.iter().enumerate() {
            let mut runs = Runs::of(filler.ports, &ways, place);
            for (nth, &xbar) in class.iter().enumerate() {
                if nth > 0 {
                    let changed = ways.turn_to_twin(filler.ports, place, xbar);
                    runs.follow(filler.ports, &ways, place, &changed);
                }
                self.check_xbar(filler, previous, (&ways, place), &runs);
            }
        }
    }

    /// Checks the entries for the xbar at a place of some ways, and for its hosts.
    fn check_xbar(
        &mut self,
        filler: &Filler<'_>,
        previous: &Previous<'_>,
        (ways, place): (&Ways, usize),
        runs: &Runs,
    ) {
        let (ports, masks, to) = (filler.ports, ways.masks_to(place), ways.to[place]);
        let own = filler.subnet.destinations.slot_of_xbar(to);
        // Where everything is to be computed anew, no more need be found out.
        let wrong_own = if self.is_little() {
            runs.wrong(ports, masks, previous.tables.of_slot(own))
        } else {
            Vec::new()
        };
        self.fixed.extend(wrong_own.into_iter().map(|xbar| {
            let set = &masks[xbar as usize * ports.words..][..ports.words];
            Entry { slot: own, xbar, port: own_port(ports, set, to, xbar) }
        }));
        for target in filler.targets(ways, place) {
            let slots = target.slots();
            self.note(filler, target, &Kept::find(ports, target, runs, previous.rows(slots.range())));
            for slot in slots.range() {
                let (port, is) = (filler.subnet.port_of_slot(slot), previous.tables.port(to, slot));
                self.fixed.extend((is != port).then_some(Entry { slot, xbar: to, port }));
            }
        }
    }

    /// The same in the order of slots, in which entries are chosen.
    fn in_order_of_slots(mut self, words: usize) -> Self {
        let mut single: Vec<(Single, &[u64])> =
            self.single.into_iter().zip(self.sets.chunks_exact(words)).collect();
        single.sort_by_key(|(single, _)| single.slots.first);
        let sets = single.iter().flat_map(|(_, set)| set.iter().copied()).collect();
        self.single = single.into_iter().map(|(single, _)| single).collect();
        self.sets = sets;
        self.whole.sort_unstable_by_key(|slots| slots.first);
        self
    }

    /// All slots with wrong entries, by rising number.
    fn slots(&self) -> Vec<u32> {
        let fixed = self.fixed.iter().map(|entry| entry.slot);
        let single = self.single.iter().flat_map(|single| {
            (single.slots.range())
                .enumerate()
                .filter(|&(lane, _)| single.lanes >> lane & 1 == 1)
                .map(|(_, slot)| slot)
        });
        let mut all: Vec<u32> =
            fixed.chain(single).chain(self.whole.iter().flat_map(|slots| slots.range())).collect();
        all.sort_unstable();
        all
    }

    fn note(&mut self, filler: &Filler<'_>, target: Target<'_>, kept: &Kept) {
        let slots = target.slots();
        if !self.is_little() {
            // Everything is to be computed anew, so no more need be found out.
        } else if kept.are_few(target, filler.ports.xbars) {
            for &(xbar, lanes) in &kept.wrong {
                self.single.push(Single { slots, xbar, lanes });
                self.sets.extend(target.set(filler.ports, xbar));
            }
        } else {
            self.whole.push(slots);
        }
    }

    /// Joins what was found of other slots.
    fn join(mut self, mut other: Self) -> Self {
        self.fixed.append(&mut other.fixed);
        self.single.append(&mut other.single);
        self.sets.append(&mut other.sets);
        self.whole.append(&mut other.whole);
        self
    }

    /// Whether entries have to be chosen, for which the loads must be known.
    pub(super) fn is_to_choose(&self) -> bool {
        !self.single.is_empty() || !self.whole.is_empty() || !self.is_little()
    }

    /// Whether so little is wrong that one thread chooses it.
    pub(super) fn is_little(&self) -> bool {
        self.fixed.len().max(self.single.len()) <= MOST_SINGLE && self.whole.len() <= MOST_WHOLE
    }

    /// The tables with all wrong entries chosen anew, whole targets last. `loads` are those of the right
    /// entries.
    pub(super) fn mend(self, filler: &Filler<'_>, previous: &Previous<'_>, loads: Vec<u32>) -> Tables {
        let (xbars, words) = (filler.ports.xbars, filler.ports.words);
        let mut tables = previous.tables.clone();
        tables.own_rows(&self.slots());
        self.fixed.into_iter().for_each(|entry| tables.set(entry));
        let mut sweeper = filler.sweeper();
        sweeper.loads = loads;
        let mut drawn = None;
        for (single, set) in self.single.iter().zip(self.sets.chunks_exact(words)) {
            let Single { slots, xbar, lanes } = *single;
            // Random numbers go on from xbar to xbar, and begin anew with each target.
            if drawn.replace(slots.first) != Some(slots.first) {
                sweeper.draw(slots);
            }
            // The entries of the host's other slots matter only where hosts have several.
            let mut column: Vec<u8> = if Spread::of(filler.subnet, slots).is_some() {
                slots.range().map(|slot| tables.port(xbar, slot)).collect()
            } else {
                vec![Tables::NONE; slots.lanes]
            };
            sweeper.choose_singly(slots, set, &mut column, (xbar, lanes));
            each_bit(lanes, |lane| tables.set_port(xbar, slots.first + lane as u32, column[lane]));
        }
        let mut entries = Vec::new();
        for slots in self.whole {
            entries.clear();
            slots.range().for_each(|slot| entries.extend_from_slice(tables.of_slot(slot)));
            let ways = filler.ways(&[slots.to]);
            for target in filler.targets(&ways, 0).filter(|target| target.first_slot == slots.first) {
                let runs = Runs::of(filler.ports, &ways, 0);
                let kept = Kept::find(filler.ports, target, &runs, entries.chunks_exact(xbars));
                kept.complete(filler, target, &mut entries, &mut sweeper, previous.counts_all());
            }
            filler.fill_at_home(slots, &mut entries);
            slots.range().zip(entries.chunks_exact(xbars)).for_each(|(slot, row)| tables.set_row(slot, row));
        }
        tables
    }
}
