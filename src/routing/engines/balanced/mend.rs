//! Tables that were in force of a fabric of which little changed: all entries are checked, few chosen anew.

use std::ops::Range;

use rayon::prelude::*;

use super::fill::Filler;
use super::kept::{Kept, Previous};
use super::ranks::each_bit;
use super::sweep::{Slots, Sweeper, Target};
use super::ways::BLOCK;
use crate::routing::Tables;

/// Most pairs of a target and an xbar with wrong entries for it that are chosen one by one.
const MOST_SINGLE: usize = 1 << 16;
/// Most targets of which more is wrong.
const MOST_WHOLE: usize = 256;

/// What a check of all entries found.
pub(super) struct Checked {
    /// How many routes the right entries lead across each port; of large tables, an estimate.
    pub(super) loads: Vec<u32>,
    /// What is wrong, in the order of slots.
    single: Vec<Single>,
    /// The ports by which ways lead on, for each of [`Self::single`].
    sets: Vec<u64>,
    /// The targets of which more is wrong.
    whole: Vec<Slots>,
    counts_all: bool,
}

/// Slots whose entries at an xbar are wrong.
struct Single {
    slots: Slots,
    xbar: u32,
    lanes: u64,
}

/// What one thread works with.
struct Checker<'a> {
    filler: &'a Filler<'a>,
    previous: &'a Previous<'a>,
    counted: &'a [bool],
    sweeper: Sweeper<'a>,
    found: Checked,
}

impl Previous<'_> {
    /// Copies all entries and checks them; those at hosts' own xbars and of xbars' own slots are mended.
    pub(super) fn check(&self, filler: &Filler<'_>, entries: &mut [u8]) -> Checked {
        let counted = self.counted(filler);
        let mut jobs: Vec<(Range<u32>, &mut [u8])> = Vec::new();
        let mut rest = entries;
        for start in (0..filler.ports.xbars as u32).step_by(BLOCK) {
            let block = start..(filler.ports.xbars as u32).min(start + BLOCK as u32);
            let len = filler.slots(block.clone()).len() * filler.ports.xbars;
            let (mine, others) = std::mem::take(&mut rest).split_at_mut(len);
            rest = others;
            jobs.push((block, mine));
        }
        let checker = || Checker {
            filler,
            previous: self,
            counted: &counted,
            sweeper: filler.sweeper(),
            found: Checked::nothing(self.counts_all()),
        };
        let found = jobs.into_par_iter().fold(checker, |mut checker, (block, mine)| {
            checker.check(block, mine);
            checker
        });
        let found = found.map(|checker| Checked { loads: checker.sweeper.loads, ..checker.found });
        let mut found = found.reduce(|| Checked::nothing(self.counts_all()), Checked::join);
        found.loads.resize(filler.ports.heads.len(), 0);
        let scale = self.scale(filler);
        found.loads.iter_mut().for_each(|load| *load = load.saturating_mul(scale));
        found
    }
}

impl Checker<'_> {
    fn check(&mut self, block: Range<u32>, entries: &mut [u8]) {
        let xbars = self.filler.ports.xbars;
        entries.copy_from_slice(self.previous.of_slots(self.filler.slots(block.clone())));
        let to: Vec<u32> = block.collect();
        let ways = self.filler.ways(&to);
        let mut rest = entries;
        for (place, &xbar) in to.iter().enumerate() {
            let (own, others) = std::mem::take(&mut rest).split_at_mut(xbars);
            self.filler.fill_own(&ways, place, own, true);
            rest = others;
            for target in self.filler.targets(&ways, place) {
                let (mine, others) = std::mem::take(&mut rest).split_at_mut(target.lanes * xbars);
                rest = others;
                if self.counted[xbar as usize] {
                    self.sweeper.recount(target, mine, true);
                }
                let kept = Kept::find(self.filler, target, mine);
                self.note(target, &kept);
                self.filler.fill_at_home(target.slots(), mine);
            }
        }
    }

    fn note(&mut self, target: Target<'_>, kept: &Kept) {
        let (found, slots) = (&mut self.found, target.slots());
        if !found.is_little() {
            // All is to be done anew: more need not be known.
        } else if kept.are_few(self.filler.ports.xbars) {
            for &(xbar, lanes) in &kept.wrong {
                found.single.push(Single { slots, xbar, lanes });
                found.sets.extend(target.set(self.filler.ports, xbar));
            }
        } else {
            found.whole.push(slots);
        }
    }
}

impl Checked {
    fn nothing(counts_all: bool) -> Self {
        Self { loads: Vec::new(), single: Vec::new(), sets: Vec::new(), whole: Vec::new(), counts_all }
    }

    /// Joins what was found of later slots. Adding loads wraps, so it does not depend on the order.
    fn join(mut self, mut later: Self) -> Self {
        if self.loads.is_empty() {
            return later;
        }
        for (load, later) in self.loads.iter_mut().zip(&later.loads) {
            *load = load.wrapping_add(*later);
        }
        self.single.append(&mut later.single);
        self.sets.append(&mut later.sets);
        self.whole.append(&mut later.whole);
        self
    }

    /// Whether little is wrong: so little that it is chosen by one thread.
    pub(super) fn is_little(&self) -> bool {
        self.single.len() <= MOST_SINGLE && self.whole.len() <= MOST_WHOLE
    }

    /// Chooses what is wrong anew, whole targets last.
    pub(super) fn mend(mut self, filler: &Filler<'_>, entries: &mut [u8]) {
        let (xbars, words) = (filler.ports.xbars, filler.ports.words);
        let rows = |slots: Slots| slots.first as usize * xbars..(slots.first as usize + slots.lanes) * xbars;
        let mut sweeper = filler.sweeper();
        sweeper.loads = std::mem::take(&mut self.loads);
        let mut drawn = None;
        for (single, set) in self.single.iter().zip(self.sets.chunks_exact(words)) {
            let Single { slots, xbar, lanes } = *single;
            // Random numbers go on from xbar to xbar, and begin anew with each target.
            if drawn.replace(slots.first) != Some(slots.first) {
                sweeper.draw(slots);
            }
            let mine = &mut entries[rows(slots)];
            each_bit(lanes, |lane| mine[lane * xbars + xbar as usize] = Tables::NONE);
            each_bit(lanes, |lane| sweeper.choose_one(slots, set, mine, xbar, lane));
        }
        for slots in self.whole {
            let ways = filler.ways(&[slots.to]);
            for target in filler.targets(&ways, 0).filter(|target| target.first_slot == slots.first) {
                let mine = &mut entries[rows(slots)];
                Kept::find(filler, target, mine).complete(
                    filler,
                    target,
                    mine,
                    &mut sweeper,
                    self.counts_all,
                );
                filler.fill_at_home(slots, mine);
            }
        }
    }
}
