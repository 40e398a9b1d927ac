//! Resolution: who has a name or an address that the directory does not tell, as not all are announced.
//!
//! It works as ARP does, and as `ibacm` does between its agents. A host that wants to know asks its
//! neighbours in the binary tree over the map's hosts, and each host passes a question on once, to its other
//! neighbours: so it comes to every host, and no host sends it to more than three. All remember the asker's
//! own name or address. A host that has what is asked for tells the asker so, along a route of its own, with
//! the best [`Group`] that both can use. A question that nobody answers is asked again, as often as its
//! [`Patience`] says.
//!
//! An answer counts only if its question was asked, and not anew since, and if it comes from the host that it is about; with keys
//! nobody else can send it. Who asks what this host asks already has it asked anew, unless that was sent a moment ago. Each says at which revision of its record in the directory the owner was. An
//! owner that gives something up raises its revision, which the directory tells all hosts: from then on no
//! earlier answer counts anywhere. After a first answer a short while passes in which another host may say
//! that it has the same; both are named then. A host that gets a name or an address asks for it itself, as
//! with ARP: any other owner says so, and all who know of that owner hear of the new one.

mod asking;
mod body;
mod group;
mod learned;
mod outbox;
mod wanted;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use enum_map::Enum;
use mapper_proto::wire::ServiceNumber;
use mapper_proto::{Instant, Mac, Tally};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use strum::IntoStaticStr;
use thiserror::Error;

use crate::directory::Directory;
use crate::routes::Basis;
use crate::service::{Place, Question, Service};
use asking::{MOST_PENDING, Pending};
use body::{Ask, Own, ResolutionBody};
pub use group::{Group, lesser};
use learned::Learned;
pub use learned::Owner;
use outbox::Outbox;
pub use wanted::Wanted;

/// How many hosts may pass a question on. A tree over as many hosts as a fabric can have is at most half as
/// deep.
const MOST_HOPS: u8 = 64;
/// How many questions of others are remembered, so that none is passed on twice.
const MOST_SEEN: usize = 4096;
/// For how many of the names and addresses that it gets at once a host itself asks who else has them.
const MOST_PROBED: usize = 16;
/// How long a host asks who else has what it gets.
const PROBE: Patience = Patience { timeout: Duration::from_secs(1), retries: 2 };

/// How long a question waits, and how often it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// The time for an answer.
    pub timeout: Duration,
    /// How many more times it is asked.
    pub retries: u32,
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What was asked for.
    pub wanted: Wanted,
    /// The hosts that have it; none if nobody has said so in time.
    pub owners: Vec<Owner>,
}

/// Nothing is asked, as too many questions wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{MOST_PENDING} other questions wait for their answers; ask again later")]
pub struct TooManyQuestions;

/// Why something that another host sent was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Refused {
    /// It was no message of this service.
    Malformed,
    /// A question came from a host that is no neighbour in the tree. That happens for a moment while hosts
    /// have different maps.
    NoNeighbour,
    /// The asker, or the host that answers, is not in the map.
    NotInMap,
    /// It answers a question that this host has not asked, or has asked anew since.
    Unasked,
    /// There was no room for it.
    Full,
}

/// What a liar could make of a question that it heard, for simulators of hostile hosts: an answer that says the sender has
/// what is asked for, and a question of `liar` that says the same of itself. `None` if the bytes are no question.
pub fn lies_about(question: &[u8], liar: Mac, revision: u32) -> Option<[Vec<u8>; 2]> {
    let ResolutionBody::Asks(asks) = body::read(question)? else { return None };
    let ask = asks.into_iter().next()?;
    let (number, wanted) = (ask.number, ask.wanted.clone());
    let own = Own { number, revision, group: Group::default(), wanted: wanted.clone() };
    let number = number.wrapping_add(1);
    let ask = Ask { asker: liar, number, revision, source: Some(wanted), ..ask };
    Some([body::fill(&mut VecDeque::from([own])), body::fill(&mut VecDeque::from([ask]))])
}

/// The service at one host.
#[derive(Debug)]
pub(crate) struct Resolver {
    own: Mac,
    basis: Option<Arc<Basis>>,
    neighbours: Vec<Mac>,
    rng: ChaCha8Rng,
    /// What this host has, and whether all know that by the directory.
    owned: BTreeMap<Wanted, bool>,
    /// The revision of this host's record in the directory.
    revision: u32,
    groups: Vec<Group>,
    pending: BTreeMap<Wanted, Pending>,
    /// What this host asked for lately, by the numbers of its questions.
    asked: BTreeMap<u64, Wanted>,
    asked_order: VecDeque<u64>,
    /// The questions of others that came lately, by asker and number.
    seen: BTreeSet<(Mac, u64)>,
    seen_order: VecDeque<(Mac, u64)>,
    learned: Learned,
    outbox: Outbox,
    found: VecDeque<Found>,
    /// Whether since [`Self::take_changed`] a further owner was learned of something that a host was known to
    /// have.
    changed: bool,
    refused: Tally<Refused>,
    most_queued: usize,
}

impl Resolver {
    /// The service at the host with the address `own`. The numbers of its questions are drawn from `seed`.
    pub(crate) fn new(own: Mac, seed: u64) -> Self {
        Self {
            own,
            basis: None,
            neighbours: Vec::new(),
            rng: ChaCha8Rng::seed_from_u64(seed),
            owned: BTreeMap::new(),
            revision: 0,
            groups: vec![Group::default()],
            pending: BTreeMap::new(),
            asked: BTreeMap::new(),
            asked_order: VecDeque::new(),
            seen: BTreeSet::new(),
            seen_order: VecDeque::new(),
            learned: Learned::default(),
            outbox: Outbox::default(),
            found: VecDeque::new(),
            changed: false,
            refused: Tally::default(),
            most_queued: 0,
        }
    }

    /// Says what this host has, each with whether the directory tells it. Asks who else has what is new.
    /// Returns whether this host has lost something that others may have learned from it, so that its
    /// revision must rise.
    pub(crate) fn set_owned(&mut self, now: Instant, owned: BTreeMap<Wanted, bool>) -> bool {
        let gave_up = self.owned.iter().any(|(had, told)| !told && !owned.contains_key(had));
        let is_new = |(wanted, told): &(&Wanted, &bool)| !**told && !self.owned.contains_key(*wanted);
        let new: Vec<Wanted> =
            owned.iter().filter(is_new).take(MOST_PROBED).map(|(wanted, _)| wanted.clone()).collect();
        self.owned = owned;
        // Messages that have not left this host yet must not say, at the earlier revision, that it has what it has given up.
        self.outbox.withdraw(self.own, |wanted| self.owned.contains_key(wanted));
        for wanted in new {
            // If there is no room, others hear of it when they ask.
            let _asked = self.ask(now, wanted, PROBE);
        }
        gave_up
    }

    /// Says at which revision this host's record is.
    pub(crate) const fn set_revision(&mut self, revision: u32) {
        self.revision = revision;
    }

    /// Says what this host can do, at most [`Group::MOST`].
    pub(crate) fn set_groups(&mut self, groups: Vec<Group>) {
        self.groups = groups;
    }

    /// Who has something, as far as that was learned and still counts.
    pub(crate) fn owners(&self, now: Instant, directory: &Directory, wanted: &Wanted) -> Vec<Owner> {
        let counts = |owner: &Owner| !owner.is_outdated(directory) && self.lists(owner.mac);
        self.learned.owners(now, wanted, counts).collect()
    }

    /// All that was learned and still counts.
    pub(crate) fn all_learned(&self, now: Instant, directory: &Directory) -> Vec<Found> {
        let all = self
            .learned
            .wanted()
            .map(|wanted| Found { wanted: wanted.clone(), owners: self.owners(now, directory, wanted) });
        all.filter(|found| !found.owners.is_empty()).collect()
    }

    /// Whether another host has said that it has what one was known to have, since the last call.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// How often and why what others sent was not taken.
    pub(crate) fn refused(&self) -> &Tally<Refused> {
        &self.refused
    }

    /// The most questions and answers that have waited here at once.
    pub(crate) fn most_queued(&self) -> usize {
        self.most_queued
    }

    /// How many entries its tables and queues have.
    pub(crate) fn load(&self) -> usize {
        self.learned.len() + self.outbox.len() + self.pending.len() + self.seen.len() + self.asked.len()
    }

    fn lists(&self, mac: Mac) -> bool {
        self.basis.as_ref().is_some_and(|basis| basis.lists(mac))
    }

    /// Passes a question on to all neighbours but the one that it came from. Returns whether there was room for all.
    fn pass_on(&mut self, ask: &Ask, from: Option<Mac>) -> bool {
        let mut had_room = true;
        for &to in self.neighbours.iter().filter(|&&to| Some(to) != from && to != ask.asker) {
            if !self.outbox.push_ask(to, ask.clone()) {
                self.refused.count(Refused::Full);
                had_room = false;
            }
        }
        self.most_queued = self.most_queued.max(self.outbox.len());
        had_room
    }

    /// Takes a question of another host.
    fn hear(&mut self, now: Instant, from: Mac, mut ask: Ask) {
        if ask.asker == self.own {
            return;
        }
        if !self.lists(ask.asker) {
            return self.refused.count(Refused::NotInMap);
        }
        if !self.seen.insert((ask.asker, ask.number)) {
            return;
        }
        self.seen_order.push_back((ask.asker, ask.number));
        if self.seen_order.len() > MOST_SEEN
            && let Some(oldest) = self.seen_order.pop_front()
        {
            self.seen.remove(&oldest);
        }
        let best = Group::best(&self.groups, &ask.groups);
        if let Some((source, group)) = ask.source.as_ref().zip(best) {
            let owner = Owner { mac: ask.asker, revision: ask.revision, group };
            self.changed |= self.learned.add(now, source, owner) || self.owned.contains_key(source);
            // Where many hosts start at once, most of their own questions come before they can answer, and
            // tell the same.
            self.end_soon(now, source, owner);
        }
        // A host that has no group in common with the asker is of no use to it, and does not answer.
        if let Some(group) = best.filter(|_| self.owned.contains_key(&ask.wanted)) {
            let own = Own { number: ask.number, revision: self.revision, group, wanted: ask.wanted.clone() };
            if !self.outbox.push_own(ask.asker, own) {
                self.refused.count(Refused::Full);
            }
        }
        if ask.hops_left > 0 {
            ask.hops_left -= 1;
            self.pass_on(&ask, Some(from));
        }
        self.most_queued = self.most_queued.max(self.outbox.len());
    }

    /// Takes the answer to a question of this host.
    fn take(&mut self, now: Instant, from: Mac, own: Own) {
        let Own { number, revision, group, wanted } = own;
        if self.asked.get(&number) != Some(&wanted) {
            return self.refused.count(Refused::Unasked);
        }
        if !self.lists(from) {
            return self.refused.count(Refused::NotInMap);
        }
        let owner = Owner { mac: from, revision, group };
        self.changed |= self.learned.add(now, &wanted, owner);
        self.end_soon(now, &wanted, owner);
    }
}

impl Service for Resolver {
    fn number(&self) -> ServiceNumber {
        ServiceNumber::RESOLUTION
    }

    fn map_changed(&mut self, now: Instant, place: &Place) {
        self.basis = Some(Arc::clone(&place.basis));
        self.neighbours = place.parent.into_iter().chain(place.children.iter().copied()).collect();
        let Self { neighbours, basis, outbox, learned, .. } = self;
        let lists = |mac| basis.as_ref().is_some_and(|basis| basis.lists(mac));
        outbox.keep(|mac| neighbours.contains(&mac), lists);
        learned.retain(lists);
        self.ask_all_again(now);
    }

    fn asked(&mut self, now: Instant, from: Mac, question: &[u8], _: usize) -> Option<Vec<u8>> {
        match body::read(question) {
            None => {
                self.refused.count(Refused::Malformed);
                None
            }
            Some(ResolutionBody::Asks(_)) if !self.neighbours.contains(&from) => {
                self.refused.count(Refused::NoNeighbour);
                None
            }
            Some(ResolutionBody::Asks(asks)) => {
                asks.into_iter().for_each(|ask| self.hear(now, from, ask));
                Some(Vec::new())
            }
            Some(ResolutionBody::Owns(owns)) => {
                owns.into_iter().for_each(|own| self.take(now, from, own));
                Some(Vec::new())
            }
        }
    }

    fn answered(&mut self, _: Instant, to: Mac, _: Option<&[u8]>) {
        // Nothing is sent again here: whoever wants to know asks again.
        self.outbox.sent(to);
    }

    fn poll_question(&mut self, _: Instant) -> Option<Question> {
        let (to, body) = self.outbox.poll()?;
        Some(Question { to, body, room_bytes: 0 })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.outbox.is_due().then_some(Instant::ZERO)
    }
}

#[cfg(test)]
mod tests;
