//! Tables that were in force, whose right entries stay, bit for bit.

use std::ops::Range;

use rayon::prelude::*;

use super::fill::Filler;
use super::ports::XbarPorts;
use super::ranks::each_bit;
use super::runs::Runs;
use super::search::BLOCK;
use super::sweep::{Sweeper, Target};
use crate::Tables;

/// Most entries of tables that are read as a whole to learn the loads. Of larger tables a sample is read.
const READ_ENTRIES: usize = 8 << 20;
/// Destinations with hosts in a sample.
const SAMPLE: usize = 16;
/// Destinations of a sample that one thread counts at a time.
const PART: usize = 4;
/// If at most one of so many entries of a target is wrong, the wrong ones are chosen one by one.
const FEW: usize = 16;

/// Whether an entry is right: a port by which a legal shortest way leads on, or none if there is no way.
pub(super) fn is_right(ports: &XbarPorts, set: &[u64], entry: u8) -> bool {
    match ports.bit_of_port(entry) {
        _ if entry == Tables::NONE => set.iter().all(|&word| word == 0),
        Some(bit) => set[bit / 64] >> (bit % 64) & 1 == 1,
        None => false,
    }
}

/// Tables that were in force.
pub(super) struct Previous<'a> {
    pub(super) tables: &'a Tables,
    /// Whether the loads are those of a sample.
    sampled: bool,
}

impl<'a> Previous<'a> {
    pub(super) fn new(tables: &'a Tables) -> Self {
        Self { tables, sampled: tables.entry_count() > READ_ENTRIES }
    }

    /// The rows of some slots.
    pub(super) fn rows(&self, slots: Range<u32>) -> impl Iterator<Item = &'a [u8]> {
        slots.map(|slot| self.tables.of_slot(slot))
    }

    /// Whether each destination's routes are among the loads.
    pub(super) fn counts_all(&self) -> bool {
        !self.sampled
    }

    /// How many routes the right entries lead across each port; of large tables, an estimate.
    pub(super) fn loads<'f>(&self, filler: &'f Filler<'_>) -> Vec<u32> {
        let leaves = filler.leaves();
        let sample = if self.sampled { SAMPLE.min(leaves.len()) } else { leaves.len() };
        let counted: Vec<u32> =
            (0..sample).map(|place| leaves[place * leaves.len() / sample.max(1)]).collect();
        let each = |mut sweeper: Sweeper<'f>, block: &[u32]| {
            let ways = filler.ways(block);
            for target in (0..block.len()).flat_map(|place| filler.targets(&ways, place)) {
                let slots = target.first_slot..target.first_slot + target.lanes as u32;
                let entries: Vec<u8> = self.rows(slots).flatten().copied().collect();
                sweeper.recount(target, &entries, true);
            }
            sweeper
        };
        // Adding wraps, so its order does not matter.
        let add = |mut loads: Vec<u32>, more: Vec<u32>| {
            loads.iter_mut().zip(more).for_each(|(load, more)| *load = load.wrapping_add(more));
            loads
        };
        // A sample in blocks would be one, for one thread.
        let counted = counted
            .par_chunks(if self.sampled { PART } else { BLOCK })
            .fold(|| filler.sweeper(), each)
            .map(|sweeper| sweeper.loads);
        let mut loads = counted.reduce_with(add).unwrap_or_else(|| vec![0; filler.ports.heads.len()]);
        // How many destinations each one that was counted stands for.
        let scale = if self.sampled { (leaves.len() / SAMPLE).max(1) as u32 } else { 1 };
        loads.iter_mut().for_each(|load| *load = load.saturating_mul(scale));
        loads
    }
}

/// The wrong ones among the previous entries of a target.
pub(super) struct Kept {
    /// Xbars with wrong entries, and the slots that they are for.
    pub(super) wrong: Vec<(u32, u64)>,
}

impl Kept {
    /// Finds the wrong ones among a target's entries, by the runs of its place.
    pub(super) fn find<'r>(
        ports: &XbarPorts,
        target: Target<'_>,
        runs: &Runs,
        rows: impl Iterator<Item = &'r [u8]>,
    ) -> Self {
        let masks = target.ways.masks_to(target.place);
        let mut wrong: Vec<u64> = Vec::new();
        for (lane, row) in rows.enumerate() {
            for xbar in runs.wrong(ports, masks, row) {
                wrong.resize(ports.xbars, 0);
                wrong[xbar as usize] |= 1 << lane;
            }
        }
        Self { wrong: (0..).zip(wrong).filter(|&(_, lanes)| lanes != 0).collect() }
    }

    /// Whether so few of the entries of a target are wrong that they are chosen one by one.
    pub(super) fn are_few(&self, target: Target<'_>, xbars: usize) -> bool {
        let wrong: usize = self.wrong.iter().map(|(_, lanes)| lanes.count_ones() as usize).sum();
        wrong * FEW <= xbars * target.lanes
    }

    /// Chooses the wrong entries anew.
    pub(super) fn complete(
        &self,
        filler: &Filler<'_>,
        target: Target<'_>,
        entries: &mut [u8],
        sweeper: &mut Sweeper<'_>,
        counts_all: bool,
    ) {
        let xbars = filler.ports.xbars;
        if self.are_few(target, xbars) {
            sweeper.draw(target.slots());
            for &(xbar, lanes) in &self.wrong {
                let mut column: Vec<u8> =
                    entries.iter().skip(xbar as usize).step_by(xbars).copied().collect();
                let set = target.set(filler.ports, xbar);
                sweeper.choose_singly(target.slots(), set, &mut column, (xbar, lanes));
                each_bit(lanes, |lane| entries[lane * xbars + xbar as usize] = column[lane]);
            }
            return;
        }
        if counts_all {
            sweeper.recount(target, entries, false);
        }
        let mut kept = vec![target.all(); xbars];
        for &(xbar, lanes) in &self.wrong {
            kept[xbar as usize] = target.all() & !lanes;
            each_bit(lanes, |lane| entries[lane * xbars + xbar as usize] = Tables::NONE);
        }
        sweeper.compute(target, entries, Some(&kept));
    }
}
