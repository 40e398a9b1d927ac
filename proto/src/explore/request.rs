//! What is asked of the fabric, and the frame that asks it.

use super::greetings::Greeting;
use super::knowledge::At;
use super::proofs::Proof;
use super::routes::WayOut;
use super::schedule::Class;
use super::{Explorer, RequestKind};
use crate::Instant;
use crate::wire::{Element, ProbeKind, Route};

/// How to ask what is behind a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ask {
    /// Answered by any xbar and by any host's agent.
    Loopback,
    /// Answered by a tagged xbar and by any host's agent.
    Identify,
    /// Answered by any host's agent.
    Scout,
}

/// A question to the fabric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Job {
    /// What is at the end of our own cable?
    FirstCable(Ask),
    /// What is behind this port? The port is named by the delta from the entry of the node whose route is used.
    Port(At, Ask),
    /// Is the xbar at the end of the way to this node tagged?
    Identify(u32),
    /// Are these two ports the ends of one cable?
    Compare(Compare),
    /// Is the xbar behind this port the one whose tag it shows?
    Prove(Proof),
    /// Is the host that answered a probe where it seems to be?
    Greet(Greeting),
    /// Is this xbar still there?
    Recheck(u32),
    /// Is this host, whose address another has too, still there? `sent` counts how often it was asked before.
    Confirm { host: u32, sent: u8 },
}

/// A pair of ports that may be the ends of one cable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Compare {
    /// The sight whose identity is in question.
    pub(super) sight: u32,
    /// A port of a resolved xbar that leads to it.
    pub(super) from: At,
    /// A port of a resolved xbar that leads to an xbar not resolved.
    pub(super) to: At,
    /// Frames sent to ask it.
    pub(super) sent: u8,
    /// The tag and arrival port that a stamp must show to be proof.
    pub(super) stamp: Option<(u64, u8)>,
    /// Whether the question is if the sight is our own xbar, as a probe of it came home by our own port.
    pub(super) is_of_home: bool,
}

/// A question under way.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) job: Job,
    pub(super) class: Class,
    /// Whether it was asked late.
    pub(super) late: bool,
    /// When it was asked.
    pub(super) sent_at: Instant,
}

impl Job {
    /// The sights that the question is about.
    pub(super) fn nodes(&self) -> impl Iterator<Item = u32> + use<> {
        let nodes = match *self {
            Self::FirstCable(_) | Self::Confirm { .. } => [None; 3],
            Self::Port(at, _) | Self::Greet(Greeting { at, .. }) => [Some(at.node), None, None],
            Self::Identify(node) | Self::Recheck(node) => [Some(node), None, None],
            Self::Compare(Compare { sight, from, to, .. }) => [Some(sight), Some(from.node), Some(to.node)],
            Self::Prove(proof) => {
                let [from, to] = proof.nodes();
                [Some(from), Some(to), None]
            }
        };
        nodes.into_iter().flatten()
    }
}

impl Explorer {
    /// How the port is asked at the try after `sent` others. `None` when all tries are used up.
    ///
    /// Behind a tagged xbar there is likely another, so the first probe identifies; what does not
    /// answer that may be plain. The last of several tries is a scout.
    pub(super) fn ask(&self, tagged: bool, sent: u8) -> Option<Ask> {
        let tries = self.settings.probe_tries;
        let sent = match (tagged, sent) {
            (true, 0) => return Some(Ask::Identify),
            (true, _) => sent - 1,
            (false, _) => sent,
        };
        if sent >= tries {
            None
        } else if tries >= 3 && sent == tries - 1 {
            Some(Ask::Scout)
        } else {
            Some(Ask::Loopback)
        }
    }

    /// The frame for a job. `None` if no route can express it.
    pub(super) fn request(&self, job: &mut Job) -> Option<(Route, RequestKind)> {
        match job {
            Job::FirstCable(ask) => Self::request_along(&WayOut::default(), *ask),
            Job::Port(at, ask) => {
                let way = WayOut::out_of(&self.known, at.node, at.delta)?;
                if way.hops() > self.settings.max_hops {
                    return None;
                }
                Self::request_along(&way, *ask)
            }
            Job::Identify(node) => Self::request_along(&WayOut::to(&self.known, *node)?, Ask::Identify),
            Job::Confirm { host, .. } => self.confirmation_request(*host),
            Job::Greet(greeting) => self.greeting_request(*greeting),
            Job::Recheck(node) => self.recheck_request(*node),
            Job::Prove(proof) => self.proof_request(proof),
            Job::Compare(compare) => {
                let to = WayOut::out_of(&self.known, compare.to.node, compare.to.delta)?;
                let from = WayOut::out_of(&self.known, compare.from.node, compare.from.delta)?;
                let path = to.compare(&from)?;
                let left = path.left;
                compare.stamp = path.stamp;
                let kind = if path.stamp.is_some() { ProbeKind::Identify } else { ProbeKind::Compare };
                Some((path.route, RequestKind::Probe { kind, left }))
            }
        }
    }

    pub(super) fn request_along(way: &WayOut, ask: Ask) -> Option<(Route, RequestKind)> {
        match ask {
            Ask::Loopback => {
                let (route, left) = way.and_back(Element::Relative(0))?;
                Some((route, RequestKind::Probe { kind: ProbeKind::Loopback, left }))
            }
            Ask::Identify => {
                let (route, left) = way.and_back(Element::Identify)?;
                Some((route, RequestKind::Probe { kind: ProbeKind::Identify, left }))
            }
            Ask::Scout => Some((way.there(), RequestKind::Scout { way_back: way.way_back() })),
        }
    }

    /// Counts a frame by what it is for.
    pub(super) fn count(&mut self, job: &Job, kind: &RequestKind) {
        let cost = &mut self.cost;
        *match (job, kind) {
            (Job::Compare(_) | Job::Prove(_), _) => &mut cost.compares,
            (_, RequestKind::Probe { kind: ProbeKind::Identify, .. }) => &mut cost.identifies,
            (_, RequestKind::Probe { .. }) => &mut cost.loopbacks,
            (_, RequestKind::Scout { .. }) => &mut cost.scouts,
        } += 1;
    }

    /// Notes that a frame for this job is under way.
    pub(super) fn sent(&mut self, job: &Job) {
        match *job {
            Job::FirstCable(_) | Job::Compare(_) | Job::Prove(_) => {}
            Job::Recheck(_) | Job::Confirm { .. } | Job::Greet(_) => {}
            Job::Port(at, _) => {
                let at = self.known.root(at);
                let xbar = self.known.xbar_mut(at.node);
                xbar.waiting += 1;
                let port = xbar.port_mut(at.delta);
                port.sent += 1;
                port.waiting += 1;
            }
            Job::Identify(node) => {
                let xbar = self.known.xbar_mut(node);
                xbar.identify_sent += 1;
                xbar.identify_waiting = true;
            }
        }
    }

    /// Notes that a job cannot be asked.
    pub(super) fn give_up(&mut self, job: &Job) {
        match *job {
            Job::Prove(proof) => self.unprovable(&proof),
            // No route leads there, so the host is taken for what it said.
            Job::FirstCable(_) | Job::Confirm { .. } => {}
            Job::Greet(greeting) => self.let_go(greeting),
            Job::Recheck(node) => self.known.xbar_mut(node).checks_sent = 0,
            Job::Port(at, _) => {
                let at = self.known.root(at);
                self.known.xbar_mut(at.node).port_mut(at.delta).never();
            }
            Job::Identify(node) => self.known.xbar_mut(node).identify_sent = self.settings.probe_tries,
            Job::Compare(compare) => self.compares.refute(&compare),
        }
    }
}
