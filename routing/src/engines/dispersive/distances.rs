//! How far each state is from the source.

use crate::{Orientation, RoutingError, Topology};

/// The distance of a state that no legal route reaches.
const UNREACHED: u16 = u16::MAX;

/// Least steps from the source's xbar to each state: an xbar reached in a phase or an earlier one.
///
/// States are numbered phase by phase, the last first: the last phase of xbar `x` is state `x`.
pub(super) struct Distances {
    pub(super) steps: Vec<u16>,
    /// The states of each phase other than the source's, by rising distance.
    pub(super) by_phase: Vec<Vec<u32>>,
    xbars: u32,
}

impl Distances {
    /// Breadth-first search along legal routes, level by level, at most `most_steps` levels.
    pub(super) fn from(topology: &Topology, orientation: &Orientation, source: u32, most_steps: u16) -> Self {
        let xbars = topology.xbar_count();
        let phases = orientation.phases();
        let mut found = Self {
            steps: vec![UNREACHED; usize::from(phases) * xbars],
            by_phase: vec![Vec::new(); phases.into()],
            xbars: xbars as u32,
        };
        for phase in 0..phases {
            let state = found.state(source, phase);
            found.steps[state as usize] = 0;
        }
        let mut level = vec![vec![source]; phases.into()];
        let mut steps = 0;
        while steps < most_steps && level.iter().any(|xbars| !xbars.is_empty()) {
            steps += 1;
            let first: Vec<usize> = found.by_phase.iter().map(Vec::len).collect();
            for (phase, xbars) in (0..).zip(&level) {
                for &xbar in xbars {
                    found.step(topology, orientation, xbar, phase, steps);
                }
            }
            for ((xbars, states), &first) in level.iter_mut().zip(&found.by_phase).zip(&first) {
                xbars.clear();
                xbars.extend(states[first..].iter().map(|state| state % found.xbars));
            }
        }
        found
    }

    /// Reaches the states that are one step from a state.
    fn step(&mut self, topology: &Topology, orientation: &Orientation, xbar: u32, phase: u8, steps: u16) {
        for channel in topology.channels_of(xbar) {
            let passage = orientation.passage(channel);
            let head = topology.head(channel).xbar;
            let leads_to = |&after: &u8| passage.before(after) == Some(phase);
            for after in (phase..self.by_phase.len() as u8).filter(leads_to) {
                let state = self.state(head, after);
                if self.steps[state as usize] == UNREACHED {
                    self.steps[state as usize] = steps;
                    self.by_phase[usize::from(after)].push(state);
                }
            }
        }
    }

    /// The number of a state.
    pub(super) fn state(&self, xbar: u32, phase: u8) -> u32 {
        (self.by_phase.len() as u32 - 1 - u32::from(phase)) * self.xbars + xbar
    }

    /// The xbar and the phase of a state.
    pub(super) fn xbar_and_phase(&self, state: u32) -> (u32, u8) {
        (state % self.xbars, self.by_phase.len() as u8 - 1 - (state / self.xbars) as u8)
    }

    /// Refuses a fabric that is wider than routes may be long.
    pub(super) fn check_limit(
        &self,
        topology: &Topology,
        from: u32,
        max_hops: u8,
    ) -> Result<(), RoutingError> {
        for &xbar in self.by_phase.iter().next_back().into_iter().flatten().rev() {
            // The route to an xbar `n` steps away is obeyed by `n + 1` xbars.
            let hops = usize::from(self.steps[xbar as usize]) + 1;
            if hops <= max_hops.into() {
                break;
            }
            if let Some(&to) = topology.hosts_of(xbar).first() {
                let (from, to) = (topology.mac(from), topology.mac(to));
                return Err(RoutingError::TooLong { from, to, hops, max_hops });
            }
        }
        Ok(())
    }
}
