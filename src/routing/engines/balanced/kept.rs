//! Tables that were in force: what is right in them stays, bit for bit.

use std::ops::Range;

use rayon::prelude::*;

use super::fill::Filler;
use super::ports::Ports;
use super::ranks::each_bit;
use super::sweep::{Sweeper, Target};
use crate::routing::Tables;

/// Entries of tables that are read as a whole to learn the loads. Of larger ones a sample is read.
const READ_ENTRIES: usize = 8 << 20;
/// Destinations with hosts in a sample.
const SAMPLE: usize = 64;
/// Destinations that are read at a time.
const PIECE: usize = 16;
/// If at most one of so many xbars has a wrong entry for a destination, these are chosen one by one.
const FEW: usize = 16;

/// Whether an entry is right: a port by which a legal shortest way leads on, or none if there is no way.
pub(super) fn is_right(ports: &Ports, set: &[u64], entry: u8) -> bool {
    match ports.bit_of_port(entry) {
        _ if entry == Tables::NONE => set.iter().all(|&word| word == 0),
        Some(bit) => set[bit / 64] >> (bit % 64) & 1 == 1,
        None => false,
    }
}

/// Tables that were in force.
pub(super) struct Previous<'a> {
    tables: &'a Tables,
    /// Whether the loads are those of a sample.
    sampled: bool,
}

impl<'a> Previous<'a> {
    pub(super) fn new(tables: &'a Tables) -> Self {
        Self { tables, sampled: tables.as_slice().len() > READ_ENTRIES }
    }

    /// The entries of some slots.
    pub(super) fn of_slots(&self, slots: Range<u32>) -> &'a [u8] {
        let xbars = self.tables.xbar_count();
        &self.tables.as_slice()[slots.start as usize * xbars..slots.end as usize * xbars]
    }

    /// Whether each destination's routes are among the loads.
    pub(super) fn counts_all(&self) -> bool {
        !self.sampled
    }

    /// How many routes the right entries lead across each port; in large tables, an estimate.
    pub(super) fn loads(&self, filler: &Filler<'_>) -> Vec<u32> {
        let leaves = filler.leaves();
        let to: Vec<u32> = if self.sampled && leaves.len() > SAMPLE {
            (0..SAMPLE).map(|place| leaves[place * leaves.len() / SAMPLE]).collect()
        } else {
            leaves.to_vec()
        };
        let scale = (leaves.len() / to.len().max(1)).max(1) as u32;
        let count = |to: &[u32]| {
            let (ways, mut sweeper) = (filler.ways(to), filler.sweeper());
            for place in 0..to.len() {
                for target in filler.targets(&ways, place) {
                    let slots = target.first_slot..target.first_slot + target.lanes as u32;
                    sweeper.recount(target, self.of_slots(slots), true);
                }
            }
            sweeper.loads
        };
        let none = || vec![0; filler.ports.heads.len()];
        // Adding wraps and so does not depend on the order.
        let mut loads = to.par_chunks(PIECE).map(count).reduce(none, |mut sum, loads| {
            sum.iter_mut().zip(&loads).for_each(|(sum, load)| *sum = sum.wrapping_add(*load));
            sum
        });
        loads.iter_mut().for_each(|load| *load = load.saturating_mul(scale));
        loads
    }
}

/// What is wrong among the previous entries of a target.
pub(super) struct Kept {
    /// Xbars with wrong entries, and the slots that they are for.
    wrong: Vec<(u32, u64)>,
}

impl Kept {
    /// Finds the wrong ones among a target's entries.
    pub(super) fn find(filler: &Filler<'_>, target: Target<'_>, entries: &[u8]) -> Self {
        let ports = filler.ports;
        let masks = target.ways.masks_to(target.place);
        let to = target.ways.to[target.place];
        let mut wrong: Vec<u64> = Vec::new();
        for (lane, row) in entries.chunks_exact(ports.xbars).enumerate() {
            if all_lead(ports, masks, row) {
                continue;
            }
            wrong.resize(ports.xbars, 0);
            for (xbar, (set, &entry)) in (0..).zip(masks.chunks_exact(ports.words).zip(row)) {
                if xbar != to && !is_right(ports, set, entry) {
                    wrong[xbar as usize] |= 1 << lane;
                }
            }
        }
        Self { wrong: (0..).zip(wrong).filter(|&(_, lanes)| lanes != 0).collect() }
    }

    /// Chooses what is wrong anew.
    pub(super) fn complete(
        &self,
        filler: &Filler<'_>,
        target: Target<'_>,
        entries: &mut [u8],
        sweeper: &mut Sweeper<'_>,
        counts_all: bool,
    ) {
        let xbars = filler.ports.xbars;
        if self.wrong.len() * FEW <= xbars {
            sweeper.draw(target);
            for &(xbar, lanes) in &self.wrong {
                each_bit(lanes, |lane| entries[lane * xbars + xbar as usize] = Tables::NONE);
                each_bit(lanes, |lane| sweeper.choose_one(target, entries, xbar, lane));
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

/// Whether all entries but the destination's own lead on by a way. Sets of one word are most, so they are
/// tested without a branch.
fn all_lead(ports: &Ports, masks: &[u64], row: &[u8]) -> bool {
    if ports.words != 1 {
        return false;
    }
    let leads = |(&entry, &mask): (&u8, &u64)| {
        let bit = entry.wrapping_sub(ports.first);
        mask >> (bit & 63) & u64::from(bit < 64)
    };
    let leading: u64 = row.iter().zip(masks).map(leads).map(|leads| leads & 1).sum();
    leading as usize + 1 == ports.xbars
}
