//! Tests whole rows of entries at once.

use std::collections::BTreeSet;
use std::ops::Range;

use super::kept::is_right;
use super::ports::XbarPorts;
use super::ways::Ways;
use crate::Tables;

/// The ports by which ways lead on to one destination, as a run of ports for each xbar. Most sets are one run, and
/// entries of runs are tested many at once. Sets of several words are all tested one by one.
#[cfg_attr(test, derive(Debug, PartialEq))]
pub(super) struct Runs {
    firsts: Vec<u8>,
    /// One less than how many ports there are.
    spans: Vec<u8>,
    /// The xbars whose sets are no single run. They are tested one by one.
    others: BTreeSet<u32>,
    /// The destination, of which any entry is right.
    to: u32,
}

/// Entries of a row with a wrong one that are tested at once.
const PIECE: usize = 64;

impl Runs {
    /// The runs of ways to the destination at a place.
    pub(super) fn of(ports: &XbarPorts, ways: &Ways, place: usize) -> Self {
        let (masks, to) = (ways.masks_to(place), ways.to[place]);
        let length = if ports.words == 1 { masks.len() } else { 0 };
        let mut runs = Self { firsts: vec![0; length], spans: vec![0; length], others: BTreeSet::new(), to };
        let (firsts, spans) = (runs.firsts.as_mut_slice(), runs.spans.as_mut_slice());
        // Neighbours in number often have the same set.
        let (mut last, mut run) = (0, (Tables::NONE, 0));
        for (xbar, &mask) in masks[..length].iter().enumerate() {
            if mask != last {
                (last, run) = (mask, run_of(ports, mask));
            }
            (firsts[xbar], spans[xbar]) = run;
        }
        let is_other = |&xbar: &u32| spans[xbar as usize] == ANY.1 && xbar != to;
        runs.others = (0..length as u32).filter(is_other).collect();
        runs.set(to, ANY);
        runs
    }

    /// Takes in that ways lead to another destination now, and that the sets of these xbars have changed by it.
    pub(super) fn follow(&mut self, ports: &XbarPorts, ways: &Ways, place: usize, changed: &[u32]) {
        self.to = ways.to[place];
        if ports.words != 1 {
            return;
        }
        for &xbar in changed {
            let run = if xbar == self.to { ANY } else { run_of(ports, ways.masks_to(place)[xbar as usize]) };
            if run == ANY && xbar != self.to {
                self.others.insert(xbar);
            } else {
                self.others.remove(&xbar);
            }
            self.set(xbar, run);
        }
    }

    fn set(&mut self, xbar: u32, run: (u8, u8)) {
        let places = self.firsts.get_mut(xbar as usize).zip(self.spans.get_mut(xbar as usize));
        if let Some((first, span)) = places {
            (*first, *span) = run;
        }
    }

    /// The xbars whose entries in a row are wrong.
    pub(super) fn wrong(&self, ports: &XbarPorts, masks: &[u64], row: &[u8]) -> Vec<u32> {
        let is_wrong = |&xbar: &u32| {
            let set = &masks[xbar as usize * ports.words..][..ports.words];
            !is_right(ports, set, row[xbar as usize])
        };
        if ports.words != 1 {
            return (0..ports.xbars as u32).filter(|&xbar| xbar != self.to).filter(is_wrong).collect();
        }
        let mut wrong = Vec::new();
        // Nearly all rows are right, which is seen at once.
        if self.is_any_beyond(row, 0..self.firsts.len()) {
            for start in (0..self.firsts.len()).step_by(PIECE) {
                let piece = start..self.firsts.len().min(start + PIECE);
                if self.is_any_beyond(row, piece.clone()) {
                    wrong.extend(piece.filter(|&at| self.is_beyond(row, at)).map(|at| at as u32));
                }
            }
        }
        wrong.extend(self.others.iter().copied().filter(is_wrong));
        wrong
    }

    fn is_any_beyond(&self, row: &[u8], at: Range<usize>) -> bool {
        let runs = self.firsts[at.clone()].iter().zip(&self.spans[at.clone()]);
        // There is no branch, so that many are tested by one instruction.
        row[at]
            .iter()
            .zip(runs)
            .fold(false, |any, (&entry, (&first, &span))| any | lies_beyond(entry, first, span))
    }

    fn is_beyond(&self, row: &[u8], at: usize) -> bool {
        lies_beyond(row[at], self.firsts[at], self.spans[at])
    }
}

/// Whether an entry is not of a run of ports.
fn lies_beyond(entry: u8, first: u8, span: u8) -> bool {
    entry.wrapping_sub(first) > span
}

/// The run of which every entry is.
const ANY: (u8, u8) = (0, u8::MAX);

/// The first port of a set, and one less than how many there are; no port where there is no way, and [`ANY`] if the set
/// is no single run.
fn run_of(ports: &XbarPorts, mask: u64) -> (u8, u8) {
    if mask == 0 {
        return (Tables::NONE, 0);
    }
    let low = mask.trailing_zeros();
    let run = mask >> low;
    let is_single = run & run.wrapping_add(1) == 0;
    if is_single { (ports.port_of_bit(low as usize), run.count_ones() as u8 - 1) } else { ANY }
}
