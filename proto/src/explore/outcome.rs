//! What follows from the outcome of a question.

use super::knowledge::{At, Far};
use super::request::{Ask, Compare, Job, Pending};
use super::schedule::Class;
use super::xbar::Stage;
use super::{ExploreError, ExploreOutcome, Explorer, Met};
use crate::wire::Stamp;

impl Explorer {
    /// Works in what came of a job: `None` for silence.
    pub(super) fn work_in(
        &mut self,
        pending: &Pending,
        outcome: Option<ExploreOutcome>,
    ) -> Result<(), ExploreError> {
        match pending.job {
            Job::FirstCable(ask) => self.first_cable(ask, outcome),
            Job::Port(at, ask) => self.port(at, ask, pending.class, outcome),
            Job::Identify(node) => self.identified(node, outcome),
            Job::Compare(compare) => self.compared(compare, outcome),
            Job::Prove(proof) => self.proved(proof, outcome),
            Job::Greet(greeting) => self.greeted(greeting, outcome),
            Job::Recheck(node) => self.rechecked(node, outcome),
            Job::Confirm { host, sent } => self.confirmed(host, sent, outcome),
        }
    }

    fn unexpected(&mut self) {
        self.cost.unexpected += 1;
    }

    /// Works in what was learned of the end of our own cable.
    fn first_cable(&mut self, ask: Ask, outcome: Option<ExploreOutcome>) -> Result<(), ExploreError> {
        let first = self.known.roots().next();
        match outcome {
            Some(ExploreOutcome::Returned { stamp: Some(stamp) }) if ask == Ask::Identify => {
                self.tags_seen = true;
                let node = first.map_or_else(|| self.known.add_node(None), Ok)?;
                self.known.learn_stamp(At { node, delta: 0 }, &stamp)
            }
            Some(ExploreOutcome::Returned { .. }) if ask == Ask::Loopback && first.is_none() => {
                self.known.add_node(None)?;
                Ok(())
            }
            Some(ExploreOutcome::Host(met)) => {
                if first.is_some() {
                    return Err(ExploreError::Contradiction("an xbar and a host at the end of our cable"));
                }
                self.direct = Some(self.known.meet(met)?);
                Ok(())
            }
            Some(ExploreOutcome::Returned { .. }) if ask == Ask::Loopback => Ok(()),
            Some(ExploreOutcome::OwnHost) | None => Ok(()),
            Some(_) => {
                self.unexpected();
                Ok(())
            }
        }
    }

    /// Works in what was learned of what is behind a port.
    fn port(
        &mut self,
        at: At,
        ask: Ask,
        class: Class,
        outcome: Option<ExploreOutcome>,
    ) -> Result<(), ExploreError> {
        let root = self.known.root(at);
        let behind_hosts = self.is_behind_hosts(root.node);
        let was_seen = self.known.xbar(root.node).stage == Stage::Seen;
        let xbar = self.known.xbar_mut(root.node);
        xbar.waiting = xbar.waiting.saturating_sub(1);
        xbar.glanced += u8::from(class == Class::Glance);
        let probes = xbar.glanced;
        let port = xbar.port_mut(root.delta);
        port.waiting = port.waiting.saturating_sub(1);

        if xbar.tag.is_none() && self.known.parent(at.node).is_some() {
            self.guess.probed(behind_hosts, at.delta, matches!(outcome, Some(ExploreOutcome::Host(_))));
        }
        self.note_port_answer(root.node, outcome.is_some());
        match outcome {
            None => {}
            Some(ExploreOutcome::Host(met)) => self.host_answered(at, ask, met)?,
            Some(ExploreOutcome::OwnHost) if ask != Ask::Scout => self.led_home(at)?,
            Some(ExploreOutcome::Returned { stamp: Some(stamp) }) if ask == Ask::Identify => {
                self.stamped(at, &stamp)?;
            }
            Some(ExploreOutcome::Returned { .. }) if ask == Ask::Loopback => self.returned(at)?,
            Some(_) => self.unexpected(),
        }
        if class == Class::Glance && was_seen {
            self.note_glance(at.node, behind_hosts, probes);
        }
        self.wake(at.node);
        Ok(())
    }

    /// Works in that a host's agent is behind the port.
    pub(super) fn host_answered(&mut self, at: At, ask: Ask, met: Met) -> Result<(), ExploreError> {
        if self.settings.greet_hosts && ask != Ask::Scout {
            self.answered_probe(at);
            return Ok(());
        }
        if self.known.xbar(at.node).late {
            self.parts.look_soon();
        }
        let index = self.known.meet(met)?;
        self.known.learn(at, Far::Host(index))
    }

    /// Learns from how a glance ended, once it has.
    fn note_glance(&mut self, node: u32, behind_hosts: bool, probes: u8) {
        if self.known.xbar(node).stage == Stage::Resolved {
            self.guess.succeeded(behind_hosts, probes);
        } else if self.is_glance_over(node) && !self.known.xbar(node).glance_failed {
            self.known.xbar_mut(node).glance_failed = true;
            self.guess.failed(behind_hosts);
        }
    }

    /// Works in that a probe arrived here with its turn still to be obeyed: the port is our own, or a stranger
    /// behind it threw the probe back like that, as routes are not signed. Where strangers may be about, what
    /// else is on that xbar has to tell whether it is our own: it is if the cable by which the way came in is
    /// that of the port of our own xbar that is as far from our port.
    fn led_home(&mut self, at: At) -> Result<(), ExploreError> {
        if !self.settings.prove_tags {
            return self.known.learn(at, Far::Host(0));
        }
        let own = self.known.hosts()[0].at.map(|own| self.known.root(own));
        if let (Some(from), Some(own)) = (self.known.parent(at.node), own) {
            let to = At { node: own.node, delta: own.delta - at.delta };
            self.compares.push(Compare { sight: at.node, from, to, sent: 0, stamp: None, is_of_home: true });
        }
        let at = self.known.root(at);
        let port = self.known.xbar_mut(at.node).port_mut(at.delta);
        port.may_be_own = true;
        port.settle();
        self.proofs.disbelieve_port(at);
        Ok(())
    }

    /// Works in that a loopback probe came back, so that an xbar is behind the port.
    fn returned(&mut self, at: At) -> Result<(), ExploreError> {
        let root = self.known.root(at);
        match self.known.xbar(root.node).far(root.delta) {
            Some(Far::Xbar(_)) => Ok(()),
            Some(Far::Host(_)) => Err(ExploreError::Contradiction("a host and an xbar on one port")),
            None => {
                // Behind a tagged xbar an identify probe was sent before this one, and was not answered.
                let identify_sent = u8::from(self.known.xbar(root.node).tag.is_some());
                let node = self.known.add_node(Some(at))?;
                self.known.xbar_mut(node).identify_sent += identify_sent;
                Ok(())
            }
        }
    }

    /// Works in that a tagged xbar is behind the port.
    pub(super) fn stamped(&mut self, at: At, stamp: &Stamp) -> Result<(), ExploreError> {
        self.tags_seen = true;
        if self.settings.prove_tags {
            return self.claimed(at, stamp, 0);
        }
        let root = self.known.root(at);
        let arrival = match (self.known.stamped_port(stamp), self.known.xbar(root.node).far(root.delta)) {
            (Some(known), _) => {
                self.known.learn(at, Far::Xbar(known))?;
                known
            }
            (None, Some(Far::Xbar(far))) => far,
            (None, Some(Far::Host(_))) => {
                return Err(ExploreError::Contradiction("a host and an xbar on one port"));
            }
            (None, None) => At { node: self.known.add_node(Some(at))?, delta: 0 },
        };
        self.known.learn_stamp(arrival, stamp)
    }

    /// Works in whether the xbar that a node is a sight of is tagged.
    fn identified(&mut self, node: u32, outcome: Option<ExploreOutcome>) -> Result<(), ExploreError> {
        self.known.xbar_mut(node).identify_waiting = false;
        match outcome {
            None => {}
            Some(ExploreOutcome::Returned { stamp: Some(stamp) }) => self.named(node, &stamp)?,
            Some(_) => self.unexpected(),
        }
        self.wake(node);
        Ok(())
    }

    /// Works in the stamp of the xbar that a node is a sight of.
    pub(super) fn named(&mut self, node: u32, stamp: &Stamp) -> Result<(), ExploreError> {
        self.tags_seen = true;
        match self.known.parent(node).filter(|_| self.settings.prove_tags) {
            Some(from) => self.claimed(from, stamp, 0),
            None => self.known.learn_stamp(At { node, delta: 0 }, stamp),
        }
    }

    /// Works in whether two ports are the ends of one cable.
    fn compared(
        &mut self,
        mut compare: Compare,
        outcome: Option<ExploreOutcome>,
    ) -> Result<(), ExploreError> {
        match outcome {
            Some(ExploreOutcome::Returned { stamp }) => {
                let proof = stamp.map(|stamp| (stamp.tag, stamp.arrival));
                if compare.stamp.is_none() || compare.stamp == proof {
                    return self.known.learn(compare.to, Far::Xbar(compare.from));
                }
                // The probe met another tagged xbar, or this one by another port.
                self.compares.refute(&compare);
            }
            Some(_) => {
                self.unexpected();
                self.compares.refute(&compare);
            }
            None => {
                compare.sent += 1;
                if compare.sent >= self.settings.probe_tries {
                    self.compares.refute(&compare);
                } else if compare.is_of_home || self.known.xbar(compare.sight).stage == Stage::Compared {
                    self.compares.push(compare);
                }
            }
        }
        Ok(())
    }
}
