//! What waits to be sent to other hosts.

use std::collections::{BTreeMap, VecDeque};

use mapper_proto::Mac;

use super::body::{Ask, Own, fill};
use super::wanted::Wanted;

/// The most questions that wait for one neighbour, and of these the most of one asker.
const MOST_ASKS: usize = 256;
const MOST_ASKS_OF_ONE: usize = 64;
/// The most answers that wait for one asker, and the most hosts for which something waits.
const MOST_OWNS: usize = 64;
const MOST_HOSTS: usize = 1024;

/// What waits for one host.
#[derive(Debug, Default)]
struct HostQueue {
    asks: VecDeque<Ask>,
    owns: VecDeque<Own>,
    /// Whether a message to the host is under way. There is one at a time.
    is_under_way: bool,
}

impl HostQueue {
    fn is_empty(&self) -> bool {
        self.asks.is_empty() && self.owns.is_empty()
    }
}

/// What waits for all hosts. Each queue is bounded, and what finds no room is not sent: whoever asked will
/// ask again.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    by_host: BTreeMap<Mac, HostQueue>,
}

impl Outbox {
    /// Puts a question behind others for a neighbour. Returns whether there was room.
    pub(super) fn push_ask(&mut self, to: Mac, ask: Ask) -> bool {
        let Some(queue) = self.queue(to) else { return false };
        let of_asker = queue.asks.iter().filter(|other| other.asker == ask.asker).count();
        let has_room = queue.asks.len() < MOST_ASKS && of_asker < MOST_ASKS_OF_ONE;
        if has_room {
            queue.asks.push_back(ask);
        }
        has_room
    }

    /// Puts an answer behind others for an asker. Returns whether there was room.
    pub(super) fn push_own(&mut self, to: Mac, own: Own) -> bool {
        let Some(queue) = self.queue(to) else { return false };
        let has_room = queue.owns.len() < MOST_OWNS;
        if has_room {
            queue.owns.push_back(own);
        }
        has_room
    }

    /// Takes out what says that this host has something that it has given up.
    pub(super) fn withdraw(&mut self, own: Mac, has: impl Fn(&Wanted) -> bool) {
        for queue in self.by_host.values_mut() {
            queue.owns.retain(|answer| has(&answer.wanted));
            for ask in queue.asks.iter_mut().filter(|ask| ask.asker == own) {
                ask.source.take_if(|source| !has(source));
            }
        }
        self.by_host.retain(|_, queue| queue.is_under_way || !queue.is_empty());
    }

    /// Takes out this asker's questions for something.
    pub(super) fn take_back(&mut self, asker: Mac, wanted: &Wanted) {
        for queue in self.by_host.values_mut() {
            queue.asks.retain(|ask| ask.asker != asker || ask.wanted != *wanted);
        }
        self.by_host.retain(|_, queue| queue.is_under_way || !queue.is_empty());
    }

    fn queue(&mut self, to: Mac) -> Option<&mut HostQueue> {
        let has_room = self.by_host.len() < MOST_HOSTS || self.by_host.contains_key(&to);
        has_room.then(|| self.by_host.entry(to).or_default())
    }

    /// The next message, and to whom. Answers go before questions.
    pub(super) fn poll(&mut self) -> Option<(Mac, Vec<u8>)> {
        let is_due = |(_, queue): &(&Mac, &mut HostQueue)| !queue.is_under_way && !queue.is_empty();
        let (&to, queue) = self.by_host.iter_mut().find(is_due)?;
        queue.is_under_way = true;
        let message = if queue.owns.is_empty() { fill(&mut queue.asks) } else { fill(&mut queue.owns) };
        Some((to, message))
    }

    /// Whether a question of this asker waits for a neighbour.
    pub(super) fn holds(&self, asker: Mac, wanted: &Wanted) -> bool {
        let mut asks = self.by_host.values().flat_map(|queue| &queue.asks);
        asks.any(|ask| ask.asker == asker && ask.wanted == *wanted)
    }

    /// Whether [`Self::poll`] has a message.
    pub(super) fn is_due(&self) -> bool {
        self.by_host.values().any(|queue| !queue.is_under_way && !queue.is_empty())
    }

    /// Takes in that the message to this host is no longer under way, whether it was answered or not.
    pub(super) fn sent(&mut self, to: Mac) {
        let Some(queue) = self.by_host.get_mut(&to) else { return };
        queue.is_under_way = false;
        if queue.is_empty() {
            self.by_host.remove(&to);
        }
    }

    /// Forgets the questions for hosts that are no neighbours any more, and all that waits for hosts that are gone.
    pub(super) fn keep(&mut self, is_neighbour: impl Fn(Mac) -> bool, is_listed: impl Fn(Mac) -> bool) {
        for (&mac, queue) in &mut self.by_host {
            if !is_neighbour(mac) {
                queue.asks.clear();
            }
            if !is_listed(mac) {
                queue.owns.clear();
            }
        }
        self.by_host.retain(|_, queue| queue.is_under_way || !queue.is_empty());
    }

    /// How many questions and answers wait.
    pub(super) fn len(&self) -> usize {
        self.by_host.values().map(|queue| queue.asks.len() + queue.owns.len()).sum()
    }
}
