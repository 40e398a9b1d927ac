//! Tests whole rows of entries at once.

use std::collections::BTreeSet;

use super::kept::is_right;
use super::ports::XbarPorts;
use super::ways::Ways;
use crate::engines::port_runs::{PortRuns, Run};

/// The ports by which ways lead on to one destination, as a run of ports for each xbar. Most sets are one run, and
/// entries of runs are tested many at once. Sets of several words are all tested one by one.
#[cfg_attr(test, derive(Debug, PartialEq))]
pub(super) struct Runs {
    runs: PortRuns,
    /// The xbars whose sets are no single run. They are tested one by one.
    others: BTreeSet<u32>,
    /// The xbar of the destination. Its own entry is not tested, as any port is right there.
    to: u32,
}

impl Runs {
    /// The runs of ways to the destination at a place.
    pub(super) fn of(ports: &XbarPorts, ways: &Ways, place: usize) -> Self {
        let (masks, to) = (ways.masks_to(place), ways.to[place]);
        let length = if ports.words == 1 { masks.len() } else { 0 };
        let mut runs = PortRuns::any(length);
        // Neighbours in number often have the same set.
        let (mut last, mut run) = (0, PortRuns::NOWHERE);
        let mut others = BTreeSet::new();
        for (xbar, &mask) in (0..).zip(&masks[..length]) {
            if mask != last {
                (last, run) = (mask, run_of(ports, mask));
            }
            runs.set(xbar, run);
            if run == PortRuns::ANY && xbar != to {
                others.insert(xbar);
            }
        }
        if ports.words == 1 {
            runs.set(to, PortRuns::ANY);
        }
        Self { runs, others, to }
    }

    /// Takes in that ways lead to another destination now, and that the sets of these xbars have changed by it.
    pub(super) fn follow(&mut self, ports: &XbarPorts, ways: &Ways, place: usize, changed: &[u32]) {
        self.to = ways.to[place];
        if ports.words != 1 {
            return;
        }
        for &xbar in changed {
            let set = ways.masks_to(place)[xbar as usize];
            let run = if xbar == self.to { PortRuns::ANY } else { run_of(ports, set) };
            if run == PortRuns::ANY && xbar != self.to {
                self.others.insert(xbar);
            } else {
                self.others.remove(&xbar);
            }
            self.runs.set(xbar, run);
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
        let mut wrong = self.runs.beyond(row);
        wrong.extend(self.others.iter().copied().filter(is_wrong));
        wrong
    }
}

/// The run of ports of a set; no port where there is no way, and [`PortRuns::ANY`] if the set is no single run.
fn run_of(ports: &XbarPorts, mask: u64) -> Run {
    if mask == 0 {
        return PortRuns::NOWHERE;
    }
    let low = mask.trailing_zeros();
    let run = mask >> low;
    let is_single = run & run.wrapping_add(1) == 0;
    if is_single { (ports.port_of_bit(low as usize), run.count_ones() as u8 - 1) } else { PortRuns::ANY }
}
