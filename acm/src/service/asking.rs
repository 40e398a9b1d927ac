//! Which names and addresses agents are asked to find out, as nothing is known of them here.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use crate::wire::Address;

/// The most questions for agents that wait until others have their answers.
const MOST_QUEUED: usize = 4096;

/// A question for an agent: who has a name or an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The agent's number on this machine.
    pub unit: u8,
    /// What is asked for, as [`Address::into_key`] writes it.
    pub wanted: Address,
    /// How long the agent waits for an answer before it asks again.
    pub timeout: Duration,
    /// How many more times it asks.
    pub retries: u32,
}

/// The questions for agents, each once.
#[derive(Debug, Default)]
pub(super) struct Asking {
    under_way: BTreeSet<(u8, Address)>,
    waiting: VecDeque<(u8, Address)>,
}

impl Asking {
    /// Puts a question behind the others, unless it waits already, or is under way.
    pub(super) fn push(&mut self, unit: u8, wanted: &Address) {
        let key = (unit, wanted.clone());
        if !self.under_way.contains(&key) && self.waiting.len() < MOST_QUEUED && !self.waiting.contains(&key)
        {
            self.waiting.push_back(key);
        }
    }

    /// The next question, if the agent that it is for has fewer than `most` to answer.
    pub(super) fn poll(&mut self, most: usize) -> Option<(u8, Address)> {
        let under_way = |unit| self.under_way.iter().filter(|(of, _)| *of == unit).count();
        let at = self.waiting.iter().position(|(unit, _)| under_way(*unit) < most)?;
        let key = self.waiting.remove(at)?;
        self.under_way.insert(key.clone());
        Some(key)
    }

    /// Whether a question waits.
    pub(super) fn has_some(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes in that a question has come to its end.
    pub(super) fn end(&mut self, unit: u8, wanted: &Address) {
        self.under_way.remove(&(unit, wanted.clone()));
    }

    /// Forgets a question that nobody waits for any more, unless it is under way.
    pub(super) fn forget(&mut self, wanted: &Address) {
        self.waiting.retain(|(_, waiting)| waiting != wanted);
    }

    /// Forgets the questions that wait for an agent that is gone.
    pub(super) fn forget_unit(&mut self, unit: u8) {
        self.waiting.retain(|(of, _)| *of != unit);
    }
}
