//! Tags that must be proved.
//!
//! Xbars hold no key, so whoever is cabled to a port can stamp a probe with any tag. Where tags are
//! not trusted ([`ExploreSettings::prove_tags`](super::ExploreSettings::prove_tags)), a stamp with a
//! tag that is known is a *claim*: behind the port `from` is the known xbar, entered by its port `to`.
//! Then a probe out of `to`, along the known way to that xbar, must find `from`; so nothing that the
//! claimant does can prove the claim. If it does not, there is another xbar with that tag, and later
//! claims are tried against both: the liar may have been met first. In the end of several xbars with
//! one tag that with the most hosts and cables is believed. The others are left out of the map, and
//! the ports that lead to them are marked in [`Map::contested`](crate::map::Map::contested).

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;

use super::knowledge::{At, Far};
use super::request::{Ask, Job};
use super::routes::WayOut;
use super::{ExploreError, ExploreOutcome, Explorer, RequestKind};
use crate::wire::{ProbeKind, Route, Stamp};

/// A claim to be proved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Proof {
    /// The port behind which the stamp was made.
    from: At,
    /// The port by which the frame came in, if it is the known xbar that stamped it.
    to: At,
    stamp: Stamp,
    /// How many other xbars with this tag it was not.
    tried: usize,
    /// Frames sent to ask it.
    sent: u8,
    /// The tag and arrival port that the answer must be stamped with; `None` if coming back is proof.
    proof: Option<(u64, u8)>,
}

/// Proofs still to ask, and what is not believed.
#[derive(Debug, Default)]
pub(super) struct Proofs {
    todo: VecDeque<Proof>,
    /// Proofs still to ask of claims from large parts without hosts.
    late: VecDeque<Proof>,
    /// Ports behind which there is no xbar that can be believed.
    ports: Vec<At>,
    /// Sights of such xbars.
    sights: Vec<u32>,
    /// A contradiction that showed itself when a proof was to be asked.
    failed: Option<ExploreError>,
}

impl Proofs {
    pub(super) fn push(&mut self, proof: Proof) {
        self.todo.push_back(proof);
    }

    /// Takes all proofs that are still to be asked.
    pub(super) fn take_all(&mut self) -> Vec<Proof> {
        self.todo.drain(..).chain(self.late.drain(..)).collect()
    }

    /// The contradiction that showed itself when a proof was to be asked, once.
    pub(super) fn take_failure(&mut self) -> Option<ExploreError> {
        self.failed.take()
    }

    /// Notes that nothing behind this port can be believed.
    pub(super) fn disbelieve_port(&mut self, at: At) {
        self.ports.push(at);
    }
}

impl Proof {
    /// The sight whose port leads to what makes the claim.
    pub(super) const fn claimant(&self) -> u32 {
        self.from.node
    }

    /// The sights whose ports it is about.
    pub(super) const fn nodes(&self) -> [u32; 2] {
        [self.from.node, self.to.node]
    }
}

/// A tag that several xbars claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TagConflict {
    /// The tag.
    pub tag: u64,
    /// How many claim it.
    pub claims: usize,
}

impl fmt::Display for TagConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tag, claims } = self;
        write!(
            f,
            "{claims} crossbars claim the tag {tag:016x}: one of them is believed; see what else is there"
        )
    }
}

/// Most xbars that may claim one tag.
const MOST_CLAIMS: usize = 8;

impl Explorer {
    /// The next question for a proof that is not late.
    pub(super) fn next_proof(&mut self) -> Option<Job> {
        for _ in 0..self.proofs.todo.len() {
            let proof = self.proofs.todo.pop_front()?;
            if self.known.xbar(proof.from.node).late {
                self.proofs.late.push_back(proof);
            } else if let Some(job) = self.ask_proof(proof) {
                return Some(job);
            }
        }
        None
    }

    /// What to ask for a proof now. `None` if it waits for other answers, or needs none any more.
    fn ask_proof(&mut self, proof: Proof) -> Option<Job> {
        let from = self.known.root(proof.from);
        let far = self.known.xbar(from.node).far(from.delta).map(|far| self.known.far_root(far));
        if far == Some(Far::Xbar(self.known.root(proof.to))) {
            self.release(&proof);
            return None;
        }
        if !self.comes_from_itself(&proof) {
            return Some(Job::Prove(proof));
        }
        if let Some(node) = self.nameless_on_way(&proof) {
            self.proofs.todo.push_back(proof);
            return (!self.known.xbar(node).identify_waiting).then_some(Job::Identify(node));
        }
        if self.is_on_way(proof.to, proof.from) {
            if self.names_a_sight_on_way_soon(&proof) {
                self.proofs.todo.push_back(proof);
            } else {
                self.unprovable(&proof);
            }
        } else if self.known.numbered(proof.from).is_some() {
            // A probe out of the port by which the way comes in would cross the last cable of the way
            // once more: what is there is known, and it is not this claimant.
            self.release(&proof);
            let tried = self.claimed(proof.from, &proof.stamp, proof.tried + 1);
            self.proofs.failed = tried.err();
        } else {
            return Some(Job::Prove(proof));
        }
        None
    }

    /// Whether the claim is that a cable ends where the way to one of its ends leaves an xbar or comes in: so
    /// it is if that xbar was crossed before, and met again through its own cable.
    fn comes_from_itself(&self, proof: &Proof) -> bool {
        let to = self.known.root(proof.to);
        let entry = self.known.root(At { node: self.known.xbar(to.node).via, delta: 0 });
        to == entry || self.is_on_way(proof.to, proof.from)
    }

    /// A sight on the ways to both ends of a claim that has not been asked often enough for the name of its
    /// xbar. It may be the xbar that the claim is about.
    fn nameless_on_way(&self, proof: &Proof) -> Option<u32> {
        let way_to = |at: At| {
            let via = self.known.xbar(self.known.root(at).node).via;
            std::iter::successors(Some(via), |&node| Some(self.known.parent(node)?.node))
        };
        let is_nameless = |&node: &u32| {
            let xbar = self.known.xbar(node);
            xbar.tag.is_none() && xbar.identify_sent < self.settings.probe_tries
        };
        way_to(proof.from).chain(way_to(proof.to)).find(is_nameless)
    }

    /// Whether another claim is asked, or can be, of what a port on the way to this one's xbar leads to. The
    /// sight behind that port may turn out to be of the xbar that this claim comes from.
    fn names_a_sight_on_way_soon(&self, proof: &Proof) -> bool {
        let via = self.known.xbar(self.known.root(proof.from).node).via;
        let next = |port: &At| self.known.parent(port.node);
        let ports: Vec<At> =
            std::iter::successors(self.known.parent(via), next).map(|port| self.known.root(port)).collect();
        let under_way = self.pending.values().filter_map(|pending| match pending.job {
            Job::Prove(other) => Some(other),
            _ => None,
        });
        let mut others = self.proofs.todo.iter().copied().chain(under_way);
        others.any(|other| ports.contains(&self.known.root(other.from)) && !self.comes_from_itself(&other))
    }

    /// The next question for a proof of a claim from a large part without hosts.
    pub(super) fn next_late_proof(&mut self) -> Option<Job> {
        for _ in 0..self.proofs.late.len() {
            let proof = self.proofs.late.pop_front()?;
            if let Some(job) = self.ask_proof(proof) {
                return Some(job);
            }
        }
        None
    }

    /// Works in the stamp of a probe out of the port `from`, which is not that of one of the first `tried`
    /// xbars that are known by its tag.
    pub(super) fn claimed(&mut self, from: At, stamp: &Stamp, tried: usize) -> Result<(), ExploreError> {
        let root = self.known.root(from);
        let far = self.known.xbar(root.node).far(root.delta).map(|far| self.known.far_root(far));
        let sight = match far {
            Some(Far::Host(_)) => {
                return Err(ExploreError::Contradiction("a host and an xbar on one port"));
            }
            Some(Far::Xbar(sight)) => Some(sight),
            None => None,
        };
        let claimed = self.known.claimed_ports(stamp);
        if let Some(sight) = sight {
            if claimed.contains(&sight) {
                return self.known.adopt_stamp(sight, stamp);
            }
            if self.known.xbar(sight.node).tag.is_some() {
                // The sight showed another tag before. It is the xbar of that tag, or none that is believed.
                return Ok(());
            }
        }
        match claimed.get(tried) {
            Some(&to) => {
                self.hold(from);
                self.hold(to);
                self.proofs.todo.push_back(Proof { from, to, stamp: *stamp, tried, sent: 0, proof: None });
            }
            None if tried >= MOST_CLAIMS => self.disbelieve(from, sight),
            None => {
                let sight = match sight {
                    Some(sight) => sight,
                    None => At { node: self.known.add_node(Some(from))?, delta: 0 },
                };
                return self.known.adopt_stamp(sight, stamp);
            }
        }
        Ok(())
    }

    /// Whether the way to `from` leaves by the port `to`: nothing at the end of a way is a port on it. A sight
    /// that no tag tells apart may be of an xbar on the way, and so does not count.
    fn is_on_way(&self, to: At, from: At) -> bool {
        if self.known.numbered(from).is_none() {
            return false;
        }
        let mut at = self.known.parent(self.known.xbar(from.node).via);
        while let Some(port) = at {
            if self.known.root(port) == to {
                return true;
            }
            at = self.known.parent(port.node);
        }
        false
    }

    /// Gives up on what is behind a port.
    fn disbelieve(&mut self, at: At, sight: Option<At>) {
        if let Some(sight) = sight {
            // Nothing is left to ask of this sight.
            self.known.xbar_mut(sight.node).listed_only = true;
            self.known.resolve(sight.node);
            self.proofs.sights.push(sight.node);
        }
        self.proofs.ports.push(at);
        let at = self.known.root(at);
        self.known.xbar_mut(at.node).port_mut(at.delta).settle();
    }

    /// Keeps a port from being probed while a proof asks what is behind it.
    fn hold(&mut self, at: At) {
        let at = self.known.root(at);
        self.known.xbar_mut(at.node).port_mut(at.delta).waiting += 1;
    }

    pub(super) fn release(&mut self, proof: &Proof) {
        for at in [proof.from, proof.to] {
            let at = self.known.root(at);
            let port = self.known.xbar_mut(at.node).port_mut(at.delta);
            port.waiting = port.waiting.saturating_sub(1);
            self.wake(at.node);
        }
    }

    /// The probe that proves a claim: out of the claimed port to the stamp of the xbar that the claim
    /// came from; or, if that has no tag, out of one port and home by the other.
    pub(super) fn proof_request(&self, proof: &mut Proof) -> Option<(Route, RequestKind)> {
        let to = WayOut::out_of(&self.known, proof.to.node, proof.to.delta)?;
        proof.proof = self.known.numbered(proof.from);
        if proof.proof.is_some() {
            return Self::request_along(&to, Ask::Identify);
        }
        let from = WayOut::out_of(&self.known, proof.from.node, proof.from.delta)?;
        let path = from.compare(&to)?;
        proof.proof = path.stamp;
        let kind = if path.stamp.is_some() { ProbeKind::Identify } else { ProbeKind::Compare };
        Some((path.route, RequestKind::Probe { kind, left: path.left }))
    }

    /// Ends a proof that no route can express: what is behind the port is not believed to be that xbar.
    pub(super) fn unprovable(&mut self, proof: &Proof) {
        self.release(proof);
        let root = self.known.root(proof.from);
        let sight = match self.known.xbar(root.node).far(root.delta).map(|far| self.known.far_root(far)) {
            Some(Far::Xbar(sight)) => Some(sight),
            _ => None,
        };
        self.disbelieve(proof.from, sight);
    }

    /// Works in what came of a proof.
    pub(super) fn proved(
        &mut self,
        mut proof: Proof,
        outcome: Option<ExploreOutcome>,
    ) -> Result<(), ExploreError> {
        let is_proved = match outcome {
            None if proof.sent + 1 < self.settings.probe_tries.saturating_mul(2) => {
                proof.sent += 1;
                self.proofs.todo.push_back(proof);
                return Ok(());
            }
            Some(ExploreOutcome::Returned { stamp }) => {
                let found = stamp.map(|stamp| (stamp.tag, stamp.arrival));
                proof.proof.is_none() || proof.proof == found
            }
            _ => false,
        };
        self.release(&proof);
        if is_proved {
            self.known.learn(proof.from, Far::Xbar(proof.to))?;
            self.known.adopt_stamp(proof.to, &proof.stamp)
        } else {
            self.claimed(proof.from, &proof.stamp, proof.tried + 1)
        }
    }

    /// The xbars that are left out of the map. Of those that show one tag: all but the one with the
    /// most hosts and cables.
    pub(super) fn disbelieved_xbars(&self) -> BTreeSet<u32> {
        let own = self.known.hosts()[0].at.map(|at| self.known.root(at).node);
        let sights = self.proofs.sights.iter().map(|&node| self.known.root(At { node, delta: 0 }).node);
        let mut disbelieved: BTreeSet<u32> = sights.filter(|&node| Some(node) != own).collect();
        disbelieved.extend(self.known.roots().filter(|&root| self.known.xbar(root).left_out));
        let is_impossible = |&root: &u32| {
            let xbar = self.known.xbar(root);
            let (first, last) = xbar.span();
            self.settings.prove_tags
                && !xbar.hosted
                && xbar.tag.is_none()
                && last - first >= i16::from(self.settings.plain_ports)
        };
        disbelieved.extend(self.known.roots().filter(is_impossible));
        // An xbar without hosts, with a port that cannot be believed and at most one other cable, is a liar
        // or of no use.
        let doubtful = self.proofs.ports.iter().map(|&at| self.known.root(at).node);
        let is_dead_end = |&root: &u32| Some(root) != own && self.known.xbar(root).fars().count() < 2;
        disbelieved.extend(doubtful.filter(is_dead_end).filter(|&root| !self.known.xbar(root).hosted));
        for (_, roots) in self.known.shared_tags() {
            let weight = |&root: &u32| {
                let xbar = self.known.xbar(root);
                let hosts = xbar.fars().filter(|(_, far)| matches!(far, Far::Host(_))).count();
                (Some(root) == own, hosts, xbar.fars().count(), Reverse(root))
            };
            let best = roots.iter().copied().max_by_key(weight);
            disbelieved.extend(roots.into_iter().filter(|&root| Some(root) != best));
        }
        disbelieved
    }

    /// The ports that lead to what is not believed.
    pub(super) fn disbelieved_ports(&self, xbars: &BTreeSet<u32>) -> Vec<At> {
        let behind = xbars.iter().flat_map(|&xbar| self.known.neighbours(xbar));
        behind.chain(self.proofs.ports.iter().map(|&at| self.known.root(at))).collect()
    }

    /// The tags that several xbars claim.
    pub fn tag_conflicts(&self) -> Vec<TagConflict> {
        let shared = self.known.shared_tags();
        shared.map(|(tag, roots)| TagConflict { tag, claims: roots.len() }).collect()
    }
}
