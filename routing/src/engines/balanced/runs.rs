//! Tests whole rows of entries at once.

use std::ops::Range;

use super::kept::is_right;
use super::ports::XbarPorts;
use super::ways::Ways;
use crate::Tables;

/// The ports by which ways lead on to one destination, as a run of ports for each xbar. Most sets are one run, and
/// entries of runs are tested many at once.
pub(super) struct Runs {
    firsts: Vec<u8>,
    /// One less than how many ports there are.
    spans: Vec<u8>,
    /// The xbars whose sets are no single run. They are tested one by one.
    others: Vec<u32>,
}

/// Entries of a row with a wrong one that are tested at once.
const PIECE: usize = 64;

impl Runs {
    /// The runs of ways to the destination at a place, of which any entry is right. Sets of several words are all tested
    /// one by one.
    pub(super) fn of(ports: &XbarPorts, ways: &Ways, place: usize) -> Self {
        let (masks, to) = (ways.masks_to(place), ways.to[place]);
        if ports.words != 1 {
            let others = (0..ports.xbars as u32).filter(|&xbar| xbar != to).collect();
            return Self { firsts: Vec::new(), spans: Vec::new(), others };
        }
        let (mut firsts, mut spans) = (vec![0; masks.len()], vec![0; masks.len()]);
        // Neighbours in number often have the same set.
        let (mut last, mut run) = (0, (Tables::NONE, 0));
        for (xbar, &mask) in masks.iter().enumerate() {
            if mask != last {
                (last, run) = (mask, run_of(ports, mask));
            }
            (firsts[xbar], spans[xbar]) = run;
        }
        let is_other = |&xbar: &u32| spans[xbar as usize] == ANY.1 && xbar != to;
        let others = (0..masks.len() as u32).filter(is_other).collect();
        (firsts[to as usize], spans[to as usize]) = ANY;
        Self { firsts, spans, others }
    }

    /// Takes in that ways lead to another destination now, and that the sets of these xbars have changed by it.
    pub(super) fn follow(&mut self, ports: &XbarPorts, ways: &Ways, place: usize, changed: &[u32]) {
        self.others.retain(|xbar| !changed.contains(xbar));
        for &xbar in changed.iter().filter(|&&xbar| xbar != ways.to[place]) {
            let run = if ports.words == 1 { run_of(ports, ways.masks_to(place)[xbar as usize]) } else { ANY };
            if run == ANY {
                self.others.push(xbar);
            }
            self.set(xbar, run);
        }
        self.set(ways.to[place], ANY);
    }

    fn set(&mut self, xbar: u32, (first, span): (u8, u8)) {
        if let (Some(at_first), Some(at_span)) =
            (self.firsts.get_mut(xbar as usize), self.spans.get_mut(xbar as usize))
        {
            (*at_first, *at_span) = (first, span);
        }
    }

    /// The xbars whose entries in a row are wrong.
    pub(super) fn wrong(&self, ports: &XbarPorts, masks: &[u64], row: &[u8]) -> Vec<u32> {
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
        let is_wrong = |&xbar: &u32| {
            let set = &masks[xbar as usize * ports.words..][..ports.words];
            !is_right(ports, set, row[xbar as usize])
        };
        wrong.extend(self.others.iter().copied().filter(is_wrong));
        wrong
    }

    /// Whether the same entries are right.
    #[cfg(test)]
    pub(super) fn are_same(&self, other: &Self) -> bool {
        let others = |runs: &Self| std::collections::BTreeSet::from_iter(runs.others.clone());
        (&self.firsts, &self.spans, others(self)) == (&other.firsts, &other.spans, others(other))
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
