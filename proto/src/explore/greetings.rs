//! Hosts that are asked whether they are where they seem to be.
//!
//! Routes are not signed. So a stranger at a port can send a probe on to an honest host, which answers along
//! what is left of the route, and seems to be at that port, too. A scout has the way back in what its sender
//! signed: from anywhere else than the place that it was sent to, that way leads astray. With
//! [`ExploreSettings::greet_hosts`](super::ExploreSettings::greet_hosts) a host is believed to be where it
//! answered a scout. It costs a round trip, so it is done only when there is reason to.

use std::collections::VecDeque;

use super::knowledge::{At, Far};
use super::request::Ask;
use super::routes::WayOut;
use super::{ExploreError, ExploreOutcome, Explorer, RequestKind};
use crate::wire::Route;

/// A host that answered a probe out of a port, and is to be asked by a scout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Greeting {
    pub(super) at: At,
    /// Scouts sent to it.
    sent: u8,
}

/// Greetings still to ask.
#[derive(Debug, Default)]
pub(super) struct Greetings {
    todo: VecDeque<Greeting>,
}

impl Greetings {
    /// Takes the next greeting to ask.
    pub(super) fn next(&mut self) -> Option<Greeting> {
        self.todo.pop_front()
    }

    /// Drops the greetings that `keep` refuses.
    pub(super) fn retain(&mut self, keep: impl FnMut(&Greeting) -> bool) {
        self.todo.retain(keep);
    }
}

impl Explorer {
    /// Queues a greeting for the host that answered a probe out of a port.
    pub(super) fn answered_probe(&mut self, at: At) {
        let root = self.known.root(at);
        if self.known.xbar(root.node).far(root.delta).is_some() {
            return;
        }
        // Nothing else is asked there, and nothing follows from it, until it has been greeted.
        let xbar = self.known.xbar_mut(root.node);
        xbar.waiting += 1;
        xbar.port_mut(root.delta).waiting += 1;
        self.greetings.todo.push_back(Greeting { at, sent: 0 });
    }

    /// The scout that greets a host.
    pub(super) fn greeting_request(&self, greeting: Greeting) -> Option<(Route, RequestKind)> {
        Self::request_along(&WayOut::out_of(&self.known, greeting.at.node, greeting.at.delta)?, Ask::Scout)
    }

    /// Nothing waits for a greeting any more.
    pub(super) fn let_go(&mut self, greeting: Greeting) {
        let root = self.known.root(greeting.at);
        let xbar = self.known.xbar_mut(root.node);
        xbar.waiting = xbar.waiting.saturating_sub(1);
        let port = xbar.port_mut(root.delta);
        port.waiting = port.waiting.saturating_sub(1);
    }

    /// Takes in what came of a greeting; `None` for silence.
    pub(super) fn greeted(
        &mut self,
        greeting: Greeting,
        outcome: Option<ExploreOutcome>,
    ) -> Result<(), ExploreError> {
        let Greeting { at, sent } = greeting;
        let met = match outcome {
            Some(ExploreOutcome::Host(met)) => Some(met),
            _ if sent + 1 < self.settings.probe_tries => {
                self.greetings.todo.push_back(Greeting { at, sent: sent + 1 });
                return Ok(());
            }
            _ => None,
        };
        self.let_go(greeting);
        let root = self.known.root(at);
        if let Some(met) = met {
            if self.known.xbar(root.node).late {
                self.parts.look_soon();
            }
            let index = self.known.meet(met)?;
            self.known.learn(at, Far::Host(index))?;
        } else {
            self.known.xbar_mut(root.node).port_mut(root.delta).settle();
            self.proofs.disbelieve_port(root);
        }
        self.wake(at.node);
        Ok(())
    }
}
