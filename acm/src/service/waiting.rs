//! Requests that wait: questions of which nothing is known yet, and clients that want to hear of a change.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mapper_proto::Instant;

use super::asking::QUEUED_FOR;
use super::{ClientId, Service, Settings};
use crate::fabric::Wanted;
use crate::wire::{Header, Question, Reply, Sought, Status};

/// How long a client waits for a change until it is told that there was none, so that it knows that the service is there.
const WATCH: Duration = Duration::from_secs(10);

/// A request that waits.
#[derive(Debug, Clone)]
struct Waiting {
    client: ClientId,
    header: Header,
    awaited: Awaited,
    since: Instant,
    deadline: Instant,
}

/// What a request waits for.
#[derive(Debug, Clone)]
pub(super) enum Awaited {
    /// The answer to a question.
    Answer(Question),
    /// Another change than that of this number.
    Change(u32),
}

impl Awaited {
    /// What agents are asked for.
    fn wanted(&self) -> Option<Wanted> {
        match self {
            Self::Answer(Question { sought: Sought::Destination { destination, .. }, .. }) => {
                Some(Wanted::Address(destination.clone().into_key()))
            }
            Self::Answer(Question { sought: Sought::Path(path), .. }) => Wanted::along(path),
            Self::Change(_) => None,
        }
    }
}

/// All requests that wait, by number, and by what may end their waiting.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    all: BTreeMap<u64, Waiting>,
    by_deadline: BTreeSet<(Instant, u64)>,
    by_client: BTreeMap<ClientId, BTreeSet<u64>>,
    by_wanted: BTreeMap<Wanted, BTreeSet<(ClientId, u64)>>,
    for_a_change: BTreeSet<u64>,
    next: u64,
}

impl Waiters {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    fn of_client(&self, client: ClientId) -> usize {
        self.by_client.get(&client).map_or(0, BTreeSet::len)
    }

    fn insert(&mut self, waiting: Waiting) {
        let number = self.next;
        self.next += 1;
        self.by_deadline.insert((waiting.deadline, number));
        self.by_client.entry(waiting.client).or_default().insert(number);
        if let Some(wanted) = waiting.awaited.wanted() {
            self.by_wanted.entry(wanted).or_default().insert((waiting.client, number));
        }
        if matches!(waiting.awaited, Awaited::Change(_)) {
            self.for_a_change.insert(number);
        }
        self.all.insert(number, waiting);
    }

    fn remove(&mut self, number: u64) -> Option<Waiting> {
        let waiting = self.all.remove(&number)?;
        self.by_deadline.remove(&(waiting.deadline, number));
        self.for_a_change.remove(&number);
        if let Some(own) = self.by_client.get_mut(&waiting.client) {
            own.remove(&number);
            if own.is_empty() {
                self.by_client.remove(&waiting.client);
            }
        }
        if let Some(wanted) = waiting.awaited.wanted()
            && let Some(all) = self.by_wanted.get_mut(&wanted)
        {
            all.remove(&(waiting.client, number));
            if all.is_empty() {
                self.by_wanted.remove(&wanted);
            }
        }
        Some(waiting)
    }

    /// Has a request wait until another moment.
    fn put_off(&mut self, number: u64, deadline: Instant) {
        if let Some(waiting) = self.all.get_mut(&number) {
            self.by_deadline.remove(&(waiting.deadline, number));
            waiting.deadline = deadline;
            self.by_deadline.insert((deadline, number));
        }
    }

    /// Whether a client waits for this name or address.
    fn wants(&self, client: ClientId, wanted: &Wanted) -> bool {
        let all = self.by_wanted.get(wanted);
        all.is_some_and(|all| all.range((client, 0)..=(client, u64::MAX)).next().is_some())
    }

    fn with_wanted(&self, wanted: &Wanted) -> Vec<u64> {
        self.by_wanted.get(wanted).into_iter().flatten().map(|&(_, number)| number).collect()
    }
}

impl Service {
    /// When [`Self::handle_timeout`] has something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let deadline = self.waiting.by_deadline.first().map(|&(at, _)| at);
        deadline.into_iter().chain(self.asking.next_wake()).min()
    }

    /// Gives up what has waited for too long, and lets agents be asked again that could not ask.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.asking.wake(now);
        while let Some(&(at, number)) = self.waiting.by_deadline.first() {
            if at > now {
                return;
            }
            if let Some(until) = self.queued_until(number).filter(|&until| until > now) {
                self.waiting.put_off(number, until);
                continue;
            }
            let Some(waited) = self.stop_waiting(number) else { continue };
            let reply = match &waited.awaited {
                // No agent has said that nobody has the address, so that is not remembered.
                Awaited::Answer(Question { sought: Sought::Destination { .. }, .. }) => {
                    Reply::Failed(Status::TIMED_OUT)
                }
                Awaited::Answer(_) => Reply::Failed(Status::NO_DATA),
                Awaited::Change(_) => Reply::Changed(self.change),
            };
            self.reply_late(&waited, &reply);
        }
    }

    /// Until when a question waits for its turn to be asked, if it does.
    fn queued_until(&self, number: u64) -> Option<Instant> {
        let waiting = self.waiting.all.get(&number)?;
        let wanted = waiting.awaited.wanted()?;
        let is_queued = self.asking.is_queued(waiting.client, &wanted);
        is_queued.then(|| waiting.since + self.settings.patience() + QUEUED_FOR)
    }

    /// Begins the waiting time anew of all requests for what an agent is asked only now.
    pub(super) fn is_asked_now(&mut self, now: Instant, wanted: &Wanted) {
        let deadline = now + self.settings.patience();
        for number in self.waiting.with_wanted(wanted) {
            self.waiting.put_off(number, deadline);
        }
    }

    /// Has a request wait, if there is room.
    pub(super) fn wait(
        &mut self,
        now: Instant,
        client: ClientId,
        header: Header,
        awaited: Awaited,
    ) -> Result<(), Status> {
        let Settings { most_waiting, most_waiting_each, .. } = self.settings;
        if self.waiting.len() >= most_waiting || self.waiting.of_client(client) >= most_waiting_each {
            return Err(Status::NO_MEMORY);
        }
        let patience = match &awaited {
            Awaited::Answer(question) => {
                self.have_asked(now, question, Some(client));
                self.settings.patience()
            }
            Awaited::Change(_) => WATCH,
        };
        self.waiting.insert(Waiting { client, header, awaited, since: now, deadline: now + patience });
        Ok(())
    }

    /// Tries all requests that wait once more.
    pub(super) fn try_waiting(&mut self, now: Instant) {
        let numbers: Vec<u64> = self.waiting.all.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.try_once_more(now, number));
    }

    /// Tries those requests once more that wait for this name or address, or for any change.
    pub(super) fn try_waiting_for(&mut self, now: Instant, wanted: &Wanted) {
        let mut numbers = self.waiting.with_wanted(wanted);
        numbers.extend(&self.waiting.for_a_change);
        numbers.into_iter().for_each(|number| self.try_once_more(now, number));
    }

    fn try_once_more(&mut self, now: Instant, number: u64) {
        let Some(Waiting { client, awaited, .. }) = self.waiting.all.get(&number).cloned() else { return };
        let reply = match &awaited {
            Awaited::Answer(question) => self.resolve(now, question),
            Awaited::Change(seen) => (*seen != self.change).then_some(Reply::Changed(self.change)),
        };
        match (reply, &awaited) {
            (Some(reply), _) => {
                if let Some(waited) = self.stop_waiting(number) {
                    self.reply_late(&waited, &reply);
                }
            }
            (None, Awaited::Answer(question)) => self.have_asked(now, question, Some(client)),
            (None, Awaited::Change(_)) => {}
        }
    }

    /// Takes in that a client is gone: nothing of it waits any more.
    pub fn drop_client(&mut self, client: ClientId) {
        let numbers: Vec<u64> = self.waiting.by_client.get(&client).into_iter().flatten().copied().collect();
        for number in numbers {
            self.stop_waiting(number);
        }
    }

    fn stop_waiting(&mut self, number: u64) -> Option<Waiting> {
        let waited = self.waiting.remove(number)?;
        if let Some(wanted) = waited.awaited.wanted().filter(|it| !self.waiting.wants(waited.client, it)) {
            self.asking.leave(waited.client, &wanted);
        }
        Some(waited)
    }

    fn reply_late(&mut self, waited: &Waiting, reply: &Reply) {
        self.count_failure(reply);
        let mut bytes = Vec::new();
        reply.emit(waited.header, &mut bytes);
        self.replies.push_back((waited.client, bytes));
    }
}
