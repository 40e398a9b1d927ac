//! An early end for what is not there any more.
//!
//! A tagged xbar names the ports with carrier, so several questions in a row that nothing behind such ports
//! answers are suspicious. Then it is asked whether it is still there itself, and so are all xbars before
//! it, up to one with hosts. If one of them is not, all that is reached only by it is given up at once, and not
//! after all tries of each question. If it is, it will be trusted for twice as long the next time.

use super::knowledge::At;
use super::request::{Ask, Job};
use super::routes::WayOut;
use super::{ExploreError, ExploreOutcome, Explorer, RequestKind};
use crate::wire::Route;

impl Explorer {
    /// The xbar and those before it, as far as no host is known on them.
    fn hostless_way(&self, node: u32) -> Vec<u32> {
        let mut way = Vec::new();
        let mut next = Some(self.known.root(At { node, delta: 0 }).node);
        while let Some(node) = next.filter(|&node| !self.known.xbar(node).hosted) {
            way.push(node);
            let before = self.known.parent(self.known.xbar(node).via);
            next = before.map(|at| self.known.root(at).node);
        }
        way
    }

    /// Notes whether something answered a question to a port of this xbar.
    pub(super) fn note_port_answer(&mut self, node: u32, answered: bool) {
        let xbar = self.known.xbar(node);
        // Behind the ports of a plain xbar silence is the rule.
        let is_telling = answered || xbar.tag.is_some() || xbar.late;
        if xbar.hosted || !is_telling {
            return;
        }
        for node in self.hostless_way(node) {
            let xbar = self.known.xbar_mut(node);
            if answered {
                xbar.silent_in_a_row = 0;
                continue;
            }
            xbar.silent_in_a_row = xbar.silent_in_a_row.saturating_add(1);
            if xbar.silent_in_a_row >= xbar.silence_allowed && xbar.checks_sent == 0 {
                xbar.checks_sent = 1;
                self.parts.checks.push_back(node);
            }
        }
    }

    /// The next xbar to ask whether it is still there.
    pub(super) fn next_recheck(&mut self) -> Option<Job> {
        let node = self.parts.checks.pop_front()?;
        Some(Job::Recheck(self.known.root(At { node, delta: 0 }).node))
    }

    /// The probe that shows whether an xbar is still there.
    pub(super) fn recheck_request(&self, node: u32) -> Option<(Route, RequestKind)> {
        let xbar = self.known.xbar(node);
        let ask = if xbar.tag.is_some() { Ask::Identify } else { Ask::Loopback };
        Self::request_along(&WayOut::to(&self.known, xbar.via)?, ask)
    }

    /// Works in whether an xbar is still there.
    pub(super) fn rechecked(
        &mut self,
        node: u32,
        outcome: Option<ExploreOutcome>,
    ) -> Result<(), ExploreError> {
        let tries = self.settings.probe_tries;
        let xbar = self.known.xbar_mut(node);
        match outcome {
            None if xbar.checks_sent < tries => {
                xbar.checks_sent += 1;
                self.parts.checks.push_back(node);
            }
            None => {
                xbar.checks_sent = 0;
                self.parts.gone.push(node);
            }
            Some(_) => {
                xbar.checks_sent = 0;
                xbar.silent_in_a_row = 0;
                xbar.silence_allowed = xbar.silence_allowed.saturating_mul(2);
            }
        }
        Ok(())
    }
}
