//! The questions of this host: when each is asked again, is given up, or has its answer.

use std::time::Duration;

use mapper_proto::Instant;
use rand::RngExt;

use super::body::Ask;
use super::{Found, MOST_HOPS, Owner, Patience, Resolver, TooManyQuestions, Wanted};
use crate::directory::Directory;

/// The most questions of this host at once.
pub(super) const MOST_PENDING: usize = 256;
/// How many numbers of its questions are remembered.
const MOST_ASKED: usize = 1024;
/// How long after a first answer other hosts may still say that they have the same. Who asks what was asked so short a time
/// ago is told the same.
const GRACE: Duration = Duration::from_millis(20);
/// How often at most a question is prolonged for somebody who asks the same meanwhile. It is bounded so that
/// whoever asked first is told in time.
const MOST_RENEWALS: u8 = 3;

/// How often at most a question that has not left this host yet waits for another of its time-outs.
pub(super) const MOST_WAITS: u8 = 10;

/// A question of this host.
#[derive(Debug)]
pub(super) struct Pending {
    patience: Patience,
    tries_left: u32,
    /// Whether there was room for it in the queues of all neighbours when it was asked last.
    had_room: bool,
    /// How many more time-outs the question may wait to leave this host.
    waits_left: u8,
    /// How many more times the question may be prolonged for somebody who asks the same meanwhile.
    renewals_left: u8,
    /// When it was asked last.
    asked_at: Instant,
    /// When it is asked again or given up, or when it is told who has answered.
    due_at: Instant,
    owners: Vec<Owner>,
}

impl Resolver {
    /// Asks who has something. [`Self::poll_found`] tells what came of it.
    pub(crate) fn ask(
        &mut self,
        now: Instant,
        wanted: Wanted,
        patience: Patience,
    ) -> Result<(), TooManyQuestions> {
        if let Some(pending) = self.pending.get_mut(&wanted) {
            // Whoever joins a question that nobody has answered is told that there is no owner only once it
            // was asked as often as a new question would be: the owner may have come meanwhile.
            if pending.renewals_left > 0 {
                pending.renewals_left -= 1;
                pending.tries_left = pending.tries_left.max(patience.retries.max(1));
                // Whoever joins it does not wait longer than for a question of its own, either.
                pending.patience.timeout = pending.patience.timeout.min(patience.timeout);
                pending.due_at = pending.due_at.min(now + patience.timeout);
                if now.since(pending.asked_at) >= GRACE {
                    self.ask_anew(now, wanted);
                }
            }
            return Ok(());
        }
        if self.pending.len() >= MOST_PENDING {
            return Err(TooManyQuestions);
        }
        self.learned.forget(&wanted);
        let due_at = now + patience.timeout;
        let pending = Pending {
            patience,
            tries_left: patience.retries,
            had_room: false,
            waits_left: MOST_WAITS,
            renewals_left: MOST_RENEWALS,
            asked_at: now,
            due_at,
            owners: Vec::new(),
        };
        self.pending.insert(wanted.clone(), pending);
        self.ask_anew(now, wanted);
        Ok(())
    }

    /// Sends a question so that what is still under way as an answer to an earlier one does not count, as it may be true no
    /// more.
    fn ask_anew(&mut self, now: Instant, wanted: Wanted) {
        self.asked.retain(|_, asked| *asked != wanted);
        self.outbox.take_back(self.own, &wanted);
        self.send(now, wanted);
    }

    /// What came of a question that has ended.
    pub(crate) fn poll_found(&mut self) -> Option<Found> {
        self.found.pop_front()
    }

    /// Asks again what nobody has answered, and ends what has waited for long enough. What was answered by hosts of which
    /// the directory has newer records counts as not answered: an answer may be on its way for long, as a message waits at
    /// a host that does not know its sender's session yet.
    pub(crate) fn handle_timeout(&mut self, now: Instant, directory: &Directory) {
        while let Some(wanted) =
            self.pending.iter().find(|(_, pending)| pending.due_at <= now).map(|(wanted, _)| wanted.clone())
        {
            let Some(pending) = self.pending.get_mut(&wanted) else { return };
            pending.owners.retain(|owner| !owner.is_outdated(directory));
            let is_here_still = !pending.had_room || self.outbox.holds(self.own, &wanted);
            if pending.owners.is_empty() && is_here_still && pending.waits_left > 0 {
                // While the agent maps, services ask nothing, so a question that has not left this host
                // cannot have been answered.
                pending.waits_left -= 1;
                pending.due_at = now + pending.patience.timeout;
                if !pending.had_room {
                    self.send(now, wanted);
                }
            } else if pending.owners.is_empty() && pending.tries_left > 0 {
                pending.tries_left -= 1;
                pending.due_at = now + pending.patience.timeout;
                self.send(now, wanted);
            } else if let Some(pending) = self.pending.remove(&wanted) {
                self.found.push_back(Found { wanted, owners: pending.owners });
            }
        }
    }

    /// When [`Self::handle_timeout`] has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.pending.values().map(|pending| pending.due_at).min()
    }

    /// Sends a question of this host to all neighbours.
    fn send(&mut self, now: Instant, wanted: Wanted) {
        let number = self.rng.random_range(0..=u64::MAX);
        self.asked.insert(number, wanted.clone());
        self.asked_order.push_back(number);
        if self.asked_order.len() > MOST_ASKED
            && let Some(oldest) = self.asked_order.pop_front()
        {
            self.asked.remove(&oldest);
        }
        // Names and addresses of the asker that the directory tells need no mention, as all hosts know them.
        let untold = self.owned.iter().find(|(_, told)| !**told).map(|(source, _)| source.clone());
        let source = if self.owned.contains_key(&wanted) { Some(wanted.clone()) } else { untold };
        let (asker, revision, groups) = (self.own, self.revision, self.groups.clone());
        let ask = Ask { asker, number, hops_left: MOST_HOPS, revision, groups, source, wanted };
        let had_room = self.pass_on(&ask, None);
        if let Some(pending) = self.pending.get_mut(&ask.wanted) {
            (pending.had_room, pending.asked_at) = (had_room, now);
        }
    }

    /// Takes in an owner, if this host asks for what it has. For a short while others may still say that they
    /// have it, too.
    pub(super) fn end_soon(&mut self, now: Instant, wanted: &Wanted, owner: Owner) {
        let Some(pending) = self.pending.get_mut(wanted) else { return };
        if pending.owners.is_empty() {
            pending.due_at = now + GRACE;
        }
        match pending.owners.iter_mut().find(|known| known.mac == owner.mac) {
            Some(known) if owner.is_from_before(known.revision) => {}
            Some(known) => *known = owner,
            None => pending.owners.push(owner),
        }
    }

    /// Asks again all questions that nobody has answered, as the map is new: a host that has come may have
    /// what was asked for, and messages under way may have got lost.
    pub(super) fn ask_all_again(&mut self, now: Instant) {
        let mut all = Vec::new();
        for (wanted, pending) in self.pending.iter_mut().filter(|(_, pending)| pending.owners.is_empty()) {
            // Hosts have the time-out of a whole try to answer, as often as the question may still wait.
            if pending.waits_left > 0 {
                pending.waits_left -= 1;
                pending.due_at = now + pending.patience.timeout;
            }
            all.push(wanted.clone());
        }
        all.into_iter().for_each(|wanted| self.send(now, wanted));
    }
}
