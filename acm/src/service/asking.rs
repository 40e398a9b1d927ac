//! Which names and addresses agents are asked to find out, as nothing is known of them here.
//!
//! An agent is asked a bounded number of questions at once, and a question that nobody can answer takes as long
//! as all its tries. So clients take turns: one that asks many questions waits for those, and holds up nobody
//! else. The questions that no client waits for, as they were asked without delay, have one turn together.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;
use std::time::Duration;

use mapper_proto::Instant;

use super::ClientId;
#[cfg(doc)]
use super::Service;
use crate::fabric::Wanted;

/// The most questions for one agent that no client waits for. Those that clients wait for are bounded by how
/// many requests may wait.
const MOST_OF_NOBODY: usize = 4096;
/// How long a question waits for its turn at most.
pub(super) const QUEUED_FOR: Duration = Duration::from_secs(20);
/// How long an agent that could not ask is not given any question.
const PAUSE: Duration = Duration::from_millis(200);

/// A question for an agent: who has a name or an address, or which path leads there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The agent's number on this machine.
    pub unit: u8,
    /// What is asked for.
    pub wanted: Wanted,
    /// Whether the path to it is asked for, of an agent at a port of InfiniBand. Then [`Service::handle_path`] takes what
    /// came of it, else [`Service::handle_asked`].
    pub seeks_path: bool,
    /// How long the agent waits for an answer before it asks again.
    pub timeout: Duration,
    /// How many more times it asks.
    pub retries: u32,
}

/// On whose behalf an agent is asked: a client's that waits, or nobody's.
type Turn = Option<ClientId>;

/// A question that waits for its turn, or is under way.
#[derive(Debug)]
struct Asked {
    /// On whose behalf it is asked, with its place in the queue of each while it waits for its turn.
    wanted_by: BTreeMap<Turn, u64>,
    is_under_way: bool,
    /// When it is given up if it has not come to its turn until then.
    until: Instant,
}

/// The questions for one agent, each once.
#[derive(Debug, Default)]
struct Queue {
    asked: BTreeMap<Wanted, Asked>,
    /// What is to be asked on behalf of each, in the order in which it came. None of these is empty.
    turns: BTreeMap<Turn, BTreeMap<u64, Wanted>>,
    /// Who had a turn last.
    last: Turn,
    next_place: u64,
    under_way: usize,
    /// Until when the agent is left alone, as it could not ask.
    pauses_until: Option<Instant>,
}

impl Queue {
    fn push(&mut self, now: Instant, wanted: &Wanted, turn: Turn) {
        let is_full = turn.is_none() && self.turns.get(&None).is_some_and(|own| own.len() >= MOST_OF_NOBODY);
        if is_full && !self.asked.contains_key(wanted) {
            return;
        }
        let fresh = || Asked { wanted_by: BTreeMap::new(), is_under_way: false, until: now };
        let asked = self.asked.entry(wanted.clone()).or_insert_with(fresh);
        asked.until = now + QUEUED_FOR;
        if let Entry::Vacant(place) = asked.wanted_by.entry(turn) {
            place.insert(self.next_place);
            if !asked.is_under_way {
                self.turns.entry(turn).or_default().insert(self.next_place, wanted.clone());
            }
            self.next_place += 1;
        }
    }

    /// The next question, if fewer than `most` are under way.
    fn poll(&mut self, now: Instant, most: usize) -> Option<Wanted> {
        while self.under_way < most && self.pauses_until.is_none() {
            let after = (Bound::Excluded(self.last), Bound::Unbounded);
            let next = self.turns.range(after).next().or_else(|| self.turns.first_key_value());
            let (&turn, own) = next?;
            let (_, wanted) = own.first_key_value()?;
            let wanted = wanted.clone();
            self.leave_queue(&wanted);
            let Some(asked) = self.asked.get_mut(&wanted) else { continue };
            if asked.until <= now {
                self.asked.remove(&wanted);
                continue;
            }
            asked.is_under_way = true;
            self.under_way += 1;
            self.last = turn;
            return Some(wanted);
        }
        None
    }

    /// Takes a question out of all turns.
    fn leave_queue(&mut self, wanted: &Wanted) {
        let Some(asked) = self.asked.get(wanted) else { return };
        for (turn, place) in &asked.wanted_by {
            remove_place(&mut self.turns, *turn, *place);
        }
    }

    /// Takes in that a question has ended that was under way.
    fn end(&mut self, wanted: &Wanted) -> Option<Asked> {
        let asked = self.asked.remove(wanted)?;
        if asked.is_under_way {
            self.under_way -= 1;
        }
        Some(asked)
    }

    /// Puts a question that could not be asked behind the others of each who wants to know.
    fn put_back(&mut self, now: Instant, wanted: &Wanted) {
        self.pauses_until = Some(now + PAUSE);
        let Some(asked) = self.end(wanted).filter(|asked| asked.until > now) else { return };
        for turn in asked.wanted_by.into_keys() {
            self.push(now, wanted, turn);
        }
        if let Some(again) = self.asked.get_mut(wanted) {
            again.until = asked.until;
        }
    }

    /// Takes in that a client does not want to know any more. What nobody else wants to know is not asked.
    fn leave(&mut self, client: ClientId, wanted: &Wanted) {
        let Some(asked) = self.asked.get_mut(wanted) else { return };
        if let Some(place) = asked.wanted_by.remove(&Some(client)) {
            remove_place(&mut self.turns, Some(client), place);
        }
        if asked.wanted_by.is_empty() && !asked.is_under_way {
            self.asked.remove(wanted);
        }
    }
}

fn remove_place(turns: &mut BTreeMap<Turn, BTreeMap<u64, Wanted>>, turn: Turn, place: u64) {
    if let Some(own) = turns.get_mut(&turn) {
        own.remove(&place);
        if own.is_empty() {
            turns.remove(&turn);
        }
    }
}

/// The questions for agents.
#[derive(Debug, Default)]
pub(super) struct Asking {
    units: BTreeMap<u8, Queue>,
}

impl Asking {
    /// Has an agent asked on behalf of a client that waits, or of nobody.
    pub(super) fn push(&mut self, now: Instant, unit: u8, wanted: &Wanted, turn: Turn) {
        self.units.entry(unit).or_default().push(now, wanted, turn);
    }

    /// The next question for an agent that has fewer than `most` to answer.
    pub(super) fn poll(&mut self, now: Instant, most: usize) -> Option<(u8, Wanted)> {
        self.units.iter_mut().find_map(|(&unit, queue)| Some((unit, queue.poll(now, most)?)))
    }

    /// Whether a question waits for its turn at an agent that can be asked.
    pub(super) fn has_some(&self) -> bool {
        self.units.values().any(|queue| queue.pauses_until.is_none() && !queue.turns.is_empty())
    }

    /// Takes in that a question has come to its end.
    pub(super) fn end(&mut self, unit: u8, wanted: &Wanted) {
        if let Some(queue) = self.units.get_mut(&unit) {
            queue.end(wanted);
        }
    }

    /// Takes in that an agent could not ask. It is asked again after a pause.
    pub(super) fn fail(&mut self, now: Instant, unit: u8, wanted: &Wanted) {
        if let Some(queue) = self.units.get_mut(&unit) {
            queue.put_back(now, wanted);
        }
    }

    /// Whether a client waits for something that no agent has been asked for yet.
    pub(super) fn is_queued(&self, client: ClientId, wanted: &Wanted) -> bool {
        let asked = self.units.values().filter_map(|queue| queue.asked.get(wanted));
        asked.into_iter().any(|asked| !asked.is_under_way && asked.wanted_by.contains_key(&Some(client)))
    }

    /// Takes in that a client does not want to know any more.
    pub(super) fn leave(&mut self, client: ClientId, wanted: &Wanted) {
        self.units.values_mut().for_each(|queue| queue.leave(client, wanted));
    }

    /// Forgets the questions for an agent that is gone.
    pub(super) fn forget_unit(&mut self, unit: u8) {
        self.units.remove(&unit);
    }

    /// When an agent may be asked again that could not ask.
    pub(super) fn next_wake(&self) -> Option<Instant> {
        self.units.values().filter_map(|queue| queue.pauses_until).min()
    }

    /// Ends the pauses that are over.
    pub(super) fn wake(&mut self, now: Instant) {
        for queue in self.units.values_mut() {
            queue.pauses_until = queue.pauses_until.filter(|&at| at > now);
        }
    }
}
