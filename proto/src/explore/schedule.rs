//! What to ask next.
//!
//! Questions fall into classes, and an earlier class goes first. Work is kept in queues of xbars
//! that may have questions; an xbar is woken when something about it changed, and leaves its queue
//! when it has nothing to ask. Studies begin only when all ports of known xbars have been probed and
//! all glances are over, compares only when retries are over too: what they need may yet turn up
//! for nothing.

use std::cmp::Reverse;
use std::collections::VecDeque;

use super::Explorer;
use super::knowledge::At;
use super::request::{Ask, Job};
use super::xbar::{Stage, XbarState};

/// Kinds of questions, the most urgent first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    /// The first try at a port of a resolved xbar.
    Port,
    /// A glance at a sight near a resolved xbar.
    Glance,
    /// A further try at a port of a resolved xbar.
    Retry,
    /// Studies of sights.
    Study,
    /// Compares.
    Compare,
}

/// Classes that have a queue of xbars.
const QUEUED: [Class; 3] = [Class::Port, Class::Glance, Class::Retry];

/// Port probes under way at once on one plain xbar: what they find may spare the others.
const PLAIN_PORTS_AT_ONCE: u16 = 4;
/// Xbars that may have something to ask, by class.
#[derive(Debug, Default)]
pub(super) struct Queues {
    queues: [VecDeque<u32>; 3],
    under_way: [usize; 5],
}

impl Queues {
    /// Counts a question of this class that is asked.
    pub(super) fn began(&mut self, class: Class) {
        self.under_way[class as usize] += 1;
    }

    /// Counts a question of this class that was answered or given up.
    pub(super) fn done(&mut self, class: Class) {
        self.under_way[class as usize] -= 1;
    }

    /// Whether nothing of these classes is queued or under way.
    fn is_quiet(&self, classes: &[Class]) -> bool {
        classes.iter().all(|&class| {
            self.under_way[class as usize] == 0
                && self.queues.get(class as usize).is_none_or(VecDeque::is_empty)
        })
    }
}

impl Explorer {
    /// The next question, and its class.
    pub(super) fn choose(&mut self) -> Option<(Job, Class)> {
        if self.known.roots().next().is_none() {
            return self.next_of_first_cable().map(|job| (job, Class::Port));
        }
        if let Some(greeting) = self.greetings.next() {
            return Some((Job::Greet(greeting), Class::Port));
        }
        if let Some(job) = self.next_proof() {
            return Some((job, Class::Port));
        }
        if let Some(job) = self.next_recheck() {
            return Some((job, Class::Port));
        }
        loop {
            for class in QUEUED {
                if let Some(job) = self.next_queued(class) {
                    return Some((job, class));
                }
            }
            if let Some(job) = self.next_of_studies(false) {
                return Some((job, Class::Study));
            }
            if let Some(compare) = self.compares.next() {
                return Some((Job::Compare(compare), Class::Compare));
            }
            if !self.advance() {
                return self.next_late().or_else(|| self.next_confirmation());
            }
        }
    }

    /// What to ask next at the cable of the host that explores: both kinds of probe side by side, both again
    /// when they have timed out, and a scout last.
    fn next_of_first_cable(&mut self) -> Option<Job> {
        if self.direct.is_some() || self.pending.len() >= 2 {
            return None;
        }
        let tries = self.settings.probe_tries;
        let sent = self.first_cable_sent;
        if !self.pending.is_empty() && sent.is_multiple_of(2) {
            return None;
        }
        let ask = match sent {
            _ if sent > 2 * tries => return None,
            _ if sent == 2 * tries => Ask::Scout,
            _ if sent.is_multiple_of(2) => Ask::Identify,
            _ => Ask::Loopback,
        };
        self.first_cable_sent += 1;
        Some(Job::FirstCable(ask))
    }

    fn next_queued(&mut self, class: Class) -> Option<Job> {
        while let Some(&node) = self.queues.queues[class as usize].front() {
            if self.known.is_root(node) && self.known.xbar(node).late {
                self.known.xbar_mut(node).queued &= !(1 << class as u8);
                self.wake(node);
            } else if self.known.is_root(node) {
                let job = match class {
                    Class::Port => self.next_port(node),
                    Class::Glance => self.next_glance(node),
                    _ => self.next_retry(node),
                };
                if job.is_some() {
                    return job;
                }
                self.known.xbar_mut(node).queued &= !(1 << class as u8);
            }
            self.queues.queues[class as usize].pop_front();
        }
        None
    }

    /// Queues an xbar for all that it may have to ask.
    pub(super) fn wake(&mut self, node: u32) {
        let node = self.known.root(At { node, delta: 0 }).node;
        let depth = self.known.depth(node);
        let xbar = self.known.xbar_mut(node);
        if xbar.late {
            self.parts.queue(depth, node);
            return;
        }
        let classes: &[Class] = match xbar.stage {
            Stage::Seen => &[Class::Glance],
            Stage::Studied | Stage::Compared => &[],
            Stage::Resolved => &[Class::Port, Class::Retry],
        };
        for &class in classes {
            if xbar.queued >> class as u8 & 1 == 0 {
                xbar.queued |= 1 << class as u8;
                self.queues.queues[class as usize].push_back(node);
            }
        }
    }

    /// Wakes all xbars of which something new is known, and the sights near them.
    pub(super) fn wake_touched(&mut self) {
        for node in self.known.drain_touched() {
            self.wake(node);
            if self.known.xbar(node).stage > Stage::Seen {
                self.wake_neighbours(node);
            }
        }
    }

    pub(super) fn wake_neighbours(&mut self, node: u32) {
        let seen: Vec<u32> = self.known.neighbours(node).map(|at| at.node).collect();
        for neighbour in seen {
            if self.known.xbar(neighbour).stage == Stage::Seen {
                self.wake(neighbour);
            }
        }
    }

    /// The question what is behind a port. `delta` counts from the entry of the root; the question counts from
    /// the entry of the node whose route will be used.
    pub(super) fn port_job(&self, node: u32, delta: i16) -> Option<Job> {
        let xbar = self.known.xbar(node);
        let ask = self.ask(xbar.tag.is_some(), xbar.port(delta).map_or(0, |port| port.sent))?;
        let entry = self.known.root(At { node: xbar.via, delta: 0 }).delta;
        Some(Job::Port(At { node: xbar.via, delta: delta - entry }, ask))
    }

    /// Whether the ports of this xbar are near enough to be probed.
    pub(super) fn is_within_reach(&self, node: u32) -> bool {
        self.known.depth(node) <= self.settings.max_hops
    }

    /// The port of this xbar to probe next, of those never probed.
    ///
    /// On a plain xbar: inside the known span first, then outwards, on the side where less was
    /// silent, as silence may be the xbar's end.
    pub(super) fn new_port(&self, xbar: &XbarState) -> Option<i16> {
        if xbar.listed_only {
            let plain_ports = i16::from(self.settings.plain_ports);
            let is_new =
                |port: &super::xbar::PortState| port.far.is_none() && port.sent == 0 && port.waiting == 0;
            let mut new = xbar.ports().filter(|(_, port)| is_new(port)).map(|(delta, _)| delta);
            return new.find(|&delta| xbar.is_feasible(delta, plain_ports));
        }
        let (first, last) = xbar.span();
        let beyond = |low: bool| {
            let silent = xbar.ports().filter(|&(delta, _)| if low { delta < first } else { delta > last });
            silent.count() as i16
        };
        let (below, above) = (beyond(true), beyond(false));
        let distance = |delta: i16| match delta {
            _ if delta < first => first - delta + 2 * below,
            _ if delta > last => delta - last + 2 * above,
            _ => 0,
        };
        let feasible = xbar.feasible(i16::from(self.settings.plain_ports));
        let new = feasible.filter(|&delta| xbar.port(delta).is_none_or(|p| p.far.is_none() && p.sent == 0));
        new.min_by_key(|&delta| (distance(delta), Reverse(delta)))
    }

    /// The port of this xbar to probe again, of those that stayed silent.
    pub(super) fn silent_port(&self, xbar: &XbarState) -> Option<i16> {
        let plain_ports = i16::from(self.settings.plain_ports);
        let tagged = xbar.tag.is_some();
        let silent = xbar.ports().filter(|&(delta, port)| {
            port.far.is_none()
                && port.waiting == 0
                && port.sent > 0
                && self.ask(tagged, port.sent).is_some()
                && xbar.is_feasible(delta, plain_ports)
        });
        silent.min_by_key(|(delta, port)| (port.sent, *delta)).map(|(delta, _)| delta)
    }

    pub(super) fn may_identify(&self, xbar: &XbarState, tries: u8) -> bool {
        xbar.tag.is_none() && !xbar.identify_waiting && xbar.identify_sent < tries
    }

    pub(super) fn next_port(&self, node: u32) -> Option<Job> {
        let xbar = self.known.xbar(node);
        if xbar.stage != Stage::Resolved {
            return None;
        }
        if self.tags_seen && self.may_identify(xbar, 1) {
            return Some(Job::Identify(xbar.via));
        }
        let plain = xbar.tag.is_none();
        if !self.is_within_reach(node) || (plain && xbar.waiting >= PLAIN_PORTS_AT_ONCE) {
            return None;
        }
        self.port_job(node, self.new_port(xbar)?)
    }

    pub(super) fn next_retry(&self, node: u32) -> Option<Job> {
        let xbar = self.known.xbar(node);
        if xbar.stage != Stage::Resolved {
            return None;
        }
        if self.may_identify(xbar, self.settings.probe_tries) {
            return Some(Job::Identify(xbar.via));
        }
        if !self.is_within_reach(node) || self.new_port(xbar).is_some() {
            return None;
        }
        self.port_job(node, self.silent_port(xbar)?)
    }

    /// Looks through the whole graph for what to do next. Returns whether there is something.
    fn advance(&mut self) -> bool {
        if !std::mem::take(&mut self.dirty) || !self.queues.is_quiet(&[Class::Port, Class::Glance]) {
            return false;
        }
        let admitted = self.admit_studies();
        let quiet = self.queues.is_quiet(&[Class::Retry, Class::Compare]) && self.compares.is_empty();
        let compared = quiet && self.compare_studied();
        admitted || compared
    }
}
