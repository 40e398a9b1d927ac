//! Tables that were in force, whose right entries stay, bit for bit.

use std::ops::Range;

use rayon::prelude::*;

use super::fill::Filler;
use super::ports::XbarPorts;
use super::ranks::each_bit;
use super::sweep::{Sweeper, Target};
use super::ways::BLOCK;
use crate::Tables;

/// Most entries of tables that are read as a whole to learn the loads. Of larger tables a sample is read.
const READ_ENTRIES: usize = 8 << 20;
/// Destinations with hosts in a sample.
const SAMPLE: usize = 16;
/// If at most one of so many xbars has a wrong entry for a destination, the wrong ones are chosen one by one.
const FEW: usize = 16;

/// Entries that are tested at once.
const PIECE: usize = 64;

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
        let counted = counted.par_chunks(BLOCK).fold(|| filler.sweeper(), each).map(|sweeper| sweeper.loads);
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
    /// Finds the wrong ones among a target's entries.
    pub(super) fn find<'r>(
        filler: &Filler<'_>,
        target: Target<'_>,
        rows: impl Iterator<Item = &'r [u8]>,
    ) -> Self {
        let ports = filler.ports;
        let masks = target.ways.masks_to(target.place);
        let to = target.ways.to[target.place];
        let runs = Runs::of(ports, masks, to);
        let mut wrong: Vec<u64> = Vec::new();
        for (lane, row) in rows.enumerate() {
            for (piece, part) in row.chunks(PIECE).enumerate() {
                if runs.hold(piece, part) {
                    continue;
                }
                for (xbar, &entry) in (piece * PIECE..).zip(part) {
                    let set = &masks[xbar * ports.words..][..ports.words];
                    if xbar != to as usize && !is_right(ports, set, entry) {
                        wrong.resize(ports.xbars, 0);
                        wrong[xbar] |= 1 << lane;
                    }
                }
            }
        }
        Self { wrong: (0..).zip(wrong).filter(|&(_, lanes)| lanes != 0).collect() }
    }

    /// Whether so few entries are wrong that they are chosen one by one.
    pub(super) fn are_few(&self, xbars: usize) -> bool {
        self.wrong.len() * FEW <= xbars
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
        if self.are_few(xbars) {
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

/// For each xbar one run of ports that are right. Most sets are one run, and runs are tested many at once.
struct Runs {
    firsts: Vec<u8>,
    /// One less than how many ports there are.
    spans: Vec<u8>,
}

impl Runs {
    /// The first runs of sets of one word; of longer sets there are none. Where there is no way, no port is
    /// right, and at the destination itself any port is.
    fn of(ports: &XbarPorts, masks: &[u64], to: u32) -> Self {
        if ports.words != 1 {
            return Self { firsts: Vec::new(), spans: Vec::new() };
        }
        let first = |&mask: &u64| if mask == 0 { Tables::NONE } else { ports.port_of_bit(low(mask)) };
        let span = |&mask: &u64| if mask == 0 { 0 } else { (mask >> low(mask)).trailing_ones() as u8 - 1 };
        let mut runs =
            Self { firsts: masks.iter().map(first).collect(), spans: masks.iter().map(span).collect() };
        runs.spans[to as usize] = u8::MAX;
        runs
    }

    /// Whether all of a piece of entries are of their runs.
    fn hold(&self, piece: usize, part: &[u8]) -> bool {
        let at = piece * PIECE..piece * PIECE + part.len();
        let (Some(firsts), Some(spans)) = (self.firsts.get(at.clone()), self.spans.get(at)) else {
            return false;
        };
        let beyond = |((&entry, &first), &span): ((&u8, &u8), &u8)| entry.wrapping_sub(first) > span;
        !part.iter().zip(firsts).zip(spans).fold(false, |any, entry| any | beyond(entry))
    }
}

fn low(mask: u64) -> usize {
    mask.trailing_zeros() as usize
}

/// Whether all entries but the destination's own lead on by a way. Sets of one word are most, so they are
/// tested without a branch.
pub(super) fn all_lead(ports: &XbarPorts, masks: &[u64], row: &[u8], to: u32) -> bool {
    let lead = |masks: &[u64], row: &[u8]| {
        let bit = |entry: u8| entry.wrapping_sub(ports.first);
        let within = row.iter().fold(0, |most: u8, &entry| most.max(bit(entry))) < 64;
        let all = row.iter().zip(masks).fold(1, |all, (&entry, &mask)| all & mask >> (bit(entry) & 63));
        within && all == 1
    };
    let to = to as usize;
    ports.words == 1 && lead(&masks[..to], &row[..to]) && lead(&masks[to + 1..], &row[to + 1..])
}
