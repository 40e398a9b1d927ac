//! Verification: the endless search for changes.
//!
//! A cycle has three phases. Tree: parent and children answer and hold this very map. Links: this
//! agent's share of cables and hosts is as mapped. No-connects: its share of the empty ports is
//! still empty. Then a pause. Any failure makes the map invalid.
//!
//! The pause is not idle: ten times a pause there is a glance at what one frame shows of a whole tagged
//! xbar, its carriers, so that a cable that goes or comes is noticed in a tenth of the time.

use super::cause::Cause;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::checks::{Check, Expected, ProbeCheck, silent_port};
use crate::Instant;
use crate::map::PortRef;
use crate::port_set::PortSet;
use crate::wire::{ProbeKind, Stamp};

/// The phase that a cycle is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Parent and children are being asked.
    Tree,
    /// Cables, xbars and hosts of this agent's share.
    Links,
    /// Empty ports of this agent's share.
    NoConnects,
    /// During the pause: the carriers of tagged xbars of this agent's share, or what this host's cable leads to
    /// if it led nowhere.
    Glance,
}

/// A cycle of verification.
#[derive(Debug)]
pub(super) struct Cycle {
    pub(super) phase: Phase,
    queue: VecDeque<Check>,
    /// Hosts to ask by scouts, by their place in the share.
    hosts: VecDeque<usize>,
    /// Probes under way, by id.
    running: BTreeMap<u32, Running>,
}

#[derive(Debug)]
struct Running {
    check: Check,
    tries_left: u8,
    /// How long an answer to its last try is waited for.
    wait: Duration,
    deadline: Instant,
}

/// How many probes may be under way at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// All of them.
    pub(super) probes: usize,
    /// Those to which an answer is expected.
    pub(super) answers: usize,
}

/// What a cycle wants done, or has found.
#[derive(Debug)]
pub(super) enum Step {
    /// Send this probe under this id.
    Probe(u32, ProbeCheck),
    /// The map no longer holds.
    Failed { cause: Cause, suspect: Option<PortRef> },
    /// There is a cable between these ports that the map lacks.
    Proved([PortRef; 2]),
}

impl Cycle {
    /// A cycle at its beginning.
    pub(super) const fn new() -> Self {
        Self { phase: Phase::Tree, queue: VecDeque::new(), hosts: VecDeque::new(), running: BTreeMap::new() }
    }

    /// Goes on to a phase with its part of the share; hosts are asked by scouts, not here.
    pub(super) fn enter(&mut self, phase: Phase, share: &[Check]) {
        self.phase = phase;
        let of_phase = |check: &&Check| match check {
            Check::Host { .. } => false,
            Check::Silent(_) => phase == Phase::NoConnects || (phase == Phase::Glance && check.is_glance()),
            Check::Returns(_) | Check::Unproved { .. } => phase == Phase::Links,
            Check::Stamped { .. } => phase == Phase::Links || (phase == Phase::Glance && check.is_glance()),
        };
        self.queue.extend(share.iter().filter(of_phase).cloned());
        if phase == Phase::Links {
            let hosts = share.iter().enumerate().filter(|(_, check)| matches!(check, Check::Host { .. }));
            self.hosts.extend(hosts.map(|(index, _)| index));
        }
    }

    /// The next host to ask, by its place in the share.
    pub(super) fn next_host(&mut self) -> Option<usize> {
        self.hosts.pop_front()
    }

    /// Probes under way to which an answer is expected.
    pub(super) fn expected_answers(&self) -> usize {
        self.running.values().filter(|running| running.check.expects_answer()).count()
    }

    /// Queues one more check, which belongs to no phase.
    pub(super) fn add(&mut self, check: Check) {
        self.queue.push_back(check);
    }

    /// Whether checks wait to be sent.
    pub(super) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Checks that wait or are under way.
    pub(super) fn load(&self) -> usize {
        self.queue.len() + self.hosts.len() + self.running.len()
    }

    /// The port that the probe with this id is about, if it is under way.
    pub(super) fn suspect_of(&self, id: u32) -> Option<PortRef> {
        probe_of(&self.running.get(&id)?.check)?.suspect
    }

    /// Whether all probes of the phase are done, and all its hosts asked.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.hosts.is_empty() && self.running.is_empty()
    }

    /// The next probe to send, if there is room for it.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        room: Room,
        tries: u8,
        wait: Duration,
        id: u32,
    ) -> Option<Step> {
        let fits = |check: &Check| !check.expects_answer() || self.expected_answers() < room.answers;
        if self.running.len() >= room.probes || !self.queue.front().is_some_and(fits) {
            return None;
        }
        let check = self.queue.pop_front()?;
        let probe = probe_of(&check)?.clone();
        // A check that expects silence has one try. If an answer is lost, the next cycle will see it.
        let tries = if check.expects_answer() { tries } else { 1 };
        self.running
            .insert(id, Running { check, tries_left: tries.saturating_sub(1), wait, deadline: now + wait });
        Some(Step::Probe(id, probe))
    }

    /// Whether a probe with this id is under way.
    pub(super) fn waits_for(&self, id: u32) -> bool {
        self.running.contains_key(&id)
    }

    /// Judges a probe that came back, with a stamp or without.
    pub(super) fn handle_returned(&mut self, id: u32, stamp: Option<&Stamp>) -> Option<Step> {
        let running = self.running.remove(&id)?;
        match (running.check, stamp) {
            (Check::Returns(_), _) | (Check::Host { .. }, _) => None,
            (Check::Silent(probe), _) => Some(appeared(&probe)),
            (Check::Stamped { probe, .. }, None) => {
                Some(Step::Failed { cause: Cause::IdentityLost, suspect: probe.suspect })
            }
            (Check::Stamped { probe, tag, arrival, in_use }, Some(stamp)) => {
                self.compare_stamp(&probe, (tag, arrival), in_use.as_deref(), stamp)
            }
            (Check::Unproved { probes, ends }, stamp) => self.prove(probes, ends, stamp),
        }
    }

    /// Goes on with the proof of a cable that the map lacks, whose first probe came back.
    fn prove(
        &mut self,
        mut probes: Vec<Expected>,
        ends: [PortRef; 2],
        stamp: Option<&Stamp>,
    ) -> Option<Step> {
        let found = stamp.map(|stamp| (stamp.tag, stamp.arrival));
        if probes.is_empty() || probes.remove(0).stamp.is_some_and(|expected| Some(expected) != found) {
            return None;
        }
        if probes.is_empty() {
            return Some(Step::Proved(ends));
        }
        self.queue.push_back(Check::Unproved { probes, ends });
        None
    }

    fn compare_stamp(
        &mut self,
        probe: &ProbeCheck,
        (tag, arrival): (u64, u8),
        in_use: Option<&PortSet>,
        stamp: &Stamp,
    ) -> Option<Step> {
        let suspect = probe.suspect;
        if stamp.tag != tag {
            let cause = Cause::XbarReplaced { found: stamp.tag, expected: tag };
            return Some(Step::Failed { cause, suspect });
        }
        if stamp.arrival != arrival {
            let cause = Cause::CableMoved { tag, port: stamp.arrival, before: arrival };
            return Some(Step::Failed { cause, suspect });
        }
        let in_use = in_use?;
        for port in 0..=u8::MAX {
            let at = suspect.map(|s| PortRef { xbar: s.xbar, port });
            match (in_use.contains(port), stamp.has_carrier(port)) {
                (true, false) => {
                    let cause = Cause::CarrierLost { tag, port };
                    return Some(Step::Failed { cause, suspect: at });
                }
                (false, true) => self.queue.extend(silent_port(probe, arrival, port)),
                _ => {}
            }
        }
        None
    }

    /// Judges a probe that a host's agent answered.
    pub(super) fn handle_host(&mut self, id: u32) -> Option<Step> {
        match self.running.remove(&id)?.check {
            Check::Silent(probe) => Some(appeared(&probe)),
            Check::Returns(probe) | Check::Stamped { probe, .. } => {
                Some(Step::Failed { cause: Cause::HostForXbar, suspect: probe.suspect })
            }
            Check::Host { .. } | Check::Unproved { .. } => None,
        }
    }

    /// Deals with a probe whose time has run out by `now`. Each try waits twice as long as the one before it until that is
    /// `longest_wait`, and as long as that from then on.
    pub(super) fn expire(&mut self, now: Instant, longest_wait: Duration) -> Option<Step> {
        loop {
            let id = *self.running.iter().find(|(_, r)| r.deadline <= now)?.0;
            let mut running = self.running.remove(&id)?;
            if running.tries_left > 0 {
                let probe = probe_of(&running.check)?.clone();
                running.tries_left -= 1;
                running.wait = running.wait.max((running.wait * 2).min(longest_wait));
                running.deadline = now + running.wait;
                self.running.insert(id, running);
                return Some(Step::Probe(id, probe));
            }
            match running.check {
                Check::Silent(_) | Check::Host { .. } | Check::Unproved { .. } => {}
                Check::Returns(probe) | Check::Stamped { probe, .. } => {
                    let cause = Cause::CableSilent;
                    return Some(Step::Failed { cause, suspect: probe.suspect });
                }
            }
        }
    }

    /// When the next time-out falls due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.running.values().map(|r| r.deadline).min()
    }
}

/// The failure of a check to which something answered that was silent before: at a port that was empty, or an
/// xbar that had no identity.
fn appeared(probe: &ProbeCheck) -> Step {
    let cause = match probe.kind {
        ProbeKind::Identify => Cause::IdentityAppeared,
        ProbeKind::Loopback | ProbeKind::Compare => Cause::PortAnswers,
    };
    Step::Failed { cause, suspect: probe.suspect }
}

fn probe_of(check: &Check) -> Option<&ProbeCheck> {
    match check {
        Check::Unproved { probes, .. } => probes.first().map(|expected| &expected.probe),
        Check::Returns(probe) | Check::Silent(probe) | Check::Stamped { probe, .. } => Some(probe),
        Check::Host { .. } => None,
    }
}
