//! For each xbar a run of ports of which its entries may be. Whole rows of entries are compared with them at once.

use std::ops::Range;

use crate::Tables;

/// The first port of a run, and one less than how many ports there are.
pub(super) type Run = (u8, u8);

/// A run of ports for each xbar.
#[cfg_attr(test, derive(Debug, PartialEq))]
#[derive(Clone)]
pub(super) struct PortRuns {
    firsts: Vec<u8>,
    spans: Vec<u8>,
}

/// Entries of a row with a wrong one that are compared at once.
const PIECE: usize = 64;

impl PortRuns {
    /// The run of which every entry is.
    pub(super) const ANY: Run = (0, u8::MAX);
    /// The run of which an entry is that leads nowhere.
    pub(super) const NOWHERE: Run = (Tables::NONE, 0);

    /// Runs of which all entries of so many xbars are.
    pub(super) fn any(xbars: usize) -> Self {
        Self { firsts: vec![Self::ANY.0; xbars], spans: vec![Self::ANY.1; xbars] }
    }

    /// Sets the run of each xbar by its kind.
    pub(super) fn set_by(&mut self, kinds: &[u32], of_kind: &[Run]) {
        for ((first, span), &kind) in self.firsts.iter_mut().zip(&mut self.spans).zip(kinds) {
            (*first, *span) = of_kind[kind as usize];
        }
    }

    /// Sets the run of an xbar.
    pub(super) fn set(&mut self, xbar: u32, (first, span): Run) {
        (self.firsts[xbar as usize], self.spans[xbar as usize]) = (first, span);
    }

    /// The xbars whose entries in a row are not of their runs.
    pub(super) fn beyond(&self, row: &[u8]) -> Vec<u32> {
        let mut beyond = Vec::new();
        // Nearly all rows have none, which is seen at once.
        if self.is_any_beyond(row, 0..self.firsts.len()) {
            for start in (0..self.firsts.len()).step_by(PIECE) {
                let piece = start..self.firsts.len().min(start + PIECE);
                if self.is_any_beyond(row, piece.clone()) {
                    beyond.extend(piece.filter(|&at| self.is_beyond(row, at)).map(|at| at as u32));
                }
            }
        }
        beyond
    }

    fn is_any_beyond(&self, row: &[u8], at: Range<usize>) -> bool {
        let runs = self.firsts[at.clone()].iter().zip(&self.spans[at.clone()]);
        // There is no branch, so that many are compared by one instruction.
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

/// Some ports as a run, if they are one. `None` if there are none.
pub(super) fn run_of(ports: impl Iterator<Item = u8>) -> Option<Run> {
    let (mut least, mut most, mut count) = (u8::MAX, 0, 0_usize);
    for port in ports {
        (least, most, count) = (port.min(least), port.max(most), count + 1);
    }
    let span = most.checked_sub(least)?;
    (count == usize::from(span) + 1).then_some((least, span))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_beyond_their_runs_are_found_wherever_they_stand() {
        // The lengths are of less than a piece, of whole pieces, and of some pieces and a bit.
        for xbars in [1, 63, 64, 65, 128, 200] {
            let mut runs = PortRuns::any(xbars);
            let mut row = vec![7; xbars];
            assert_eq!(runs.beyond(&row), [0; 0]);
            (0..xbars as u32).for_each(|xbar| runs.set(xbar, (5, 3)));
            assert_eq!(runs.beyond(&row), [0; 0]);
            for at in [0, xbars / 2, xbars - 1] {
                for (wrong, entry) in [(false, 5), (false, 8), (true, 4), (true, 9), (true, Tables::NONE)] {
                    row[at] = entry;
                    assert_eq!(runs.beyond(&row), if wrong { vec![at as u32] } else { Vec::new() });
                }
                row[at] = 7;
            }
            runs.set(0, PortRuns::NOWHERE);
            assert_eq!(runs.beyond(&row), [0]);
            row[0] = Tables::NONE;
            assert_eq!(runs.beyond(&row), [0; 0]);
        }
        let mut by_kind = PortRuns::any(3);
        by_kind.set_by(&[1, 0, 1], &[PortRuns::ANY, (2, 0)]);
        assert_eq!(by_kind.beyond(&[2, 9, 1]), [2]);
    }

    #[test]
    fn ports_are_a_run_if_none_is_missing_between() {
        let run = |ports: &[u8]| run_of(ports.iter().copied());
        assert_eq!(run(&[]), None);
        assert_eq!(run(&[4]), Some((4, 0)));
        assert_eq!(run(&[6, 4, 5]), Some((4, 2)));
        assert_eq!(run(&[4, 6]), None);
        let all: Vec<u8> = (0..Tables::NONE).collect();
        assert_eq!(run(&all), Some((0, 254)));
        assert_ne!(run(&all), Some(PortRuns::ANY));
    }
}
