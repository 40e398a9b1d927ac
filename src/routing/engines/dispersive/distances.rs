//! How far each state is from the source.

use crate::routing::{Direction, Orientation, RoutingError, Topology};

/// The distance of a state that no legal route reaches.
const UNREACHED: u16 = u16::MAX;

/// Least steps from the source's xbar to each state: xbar `x` falling is state `x`, and rising is
/// state `xbars + x`. A rising state counts as falling, too: it may go on either way.
pub(super) struct Distances {
    pub(super) steps: Vec<u16>,
    /// Falling states other than the source's, by rising distance.
    pub(super) falling: Vec<u32>,
    /// Rising states other than the source's, by rising distance.
    pub(super) rising: Vec<u32>,
}

impl Distances {
    /// Breadth-first search along legal routes, level by level, at most `most_steps` levels.
    pub(super) fn from(topology: &Topology, orientation: &Orientation, source: u32, most_steps: u16) -> Self {
        let xbars = topology.xbar_count();
        let mut found = Self { steps: vec![UNREACHED; 2 * xbars], falling: Vec::new(), rising: Vec::new() };
        let mut falling = vec![source];
        let mut rising = vec![source];
        found.steps[source as usize] = 0;
        found.steps[xbars + source as usize] = 0;
        let mut steps = 0;
        while steps < most_steps && !(falling.is_empty() && rising.is_empty()) {
            steps += 1;
            let (first_falling, first_rising) = (found.falling.len(), found.rising.len());
            for &xbar in &rising {
                for channel in topology.channels_of(xbar) {
                    if orientation.direction(channel) == Direction::Up {
                        let head = topology.head(channel).xbar as usize;
                        found.reach(xbars, head, true, steps);
                        found.reach(xbars, head, false, steps);
                    }
                }
            }
            for &xbar in &falling {
                for channel in topology.channels_of(xbar) {
                    if orientation.direction(channel) == Direction::Down {
                        found.reach(xbars, topology.head(channel).xbar as usize, false, steps);
                    }
                }
            }
            falling = found.falling[first_falling..].to_vec();
            rising = found.rising[first_rising..].iter().map(|state| state - xbars as u32).collect();
        }
        found
    }

    fn reach(&mut self, xbars: usize, xbar: usize, rising: bool, steps: u16) {
        let state = if rising { xbars + xbar } else { xbar };
        if self.steps[state] == UNREACHED {
            self.steps[state] = steps;
            if rising { &mut self.rising } else { &mut self.falling }.push(state as u32);
        }
    }

    /// Refuses a fabric that is wider than routes may be long.
    pub(super) fn check_limit(
        &self,
        topology: &Topology,
        from: u32,
        max_hops: u8,
    ) -> Result<(), RoutingError> {
        for &xbar in self.falling.iter().rev() {
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
