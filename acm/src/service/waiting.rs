//! Requests that wait: questions of which nothing is known yet, and clients that want to hear of a change.

use std::time::Duration;

use mapper_proto::Instant;

use super::{ClientId, Service};
use crate::wire::{Header, Question, Reply, Status};

/// How long a client waits for a change until it is told that there was none, so that it knows that the service is there.
const WATCH: Duration = Duration::from_secs(10);

/// A request that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) client: ClientId,
    header: Header,
    awaited: Awaited,
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

impl Service {
    /// When [`Self::handle_timeout`] has something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.by_deadline.first_key_value().map(|(&(at, _), ())| at)
    }

    /// Gives up what has waited for too long.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((&(at, number), ())) = self.by_deadline.first_key_value() {
            if at > now {
                return;
            }
            let Some(waited) = self.stop_waiting(number) else { continue };
            let reply = match &waited.awaited {
                Awaited::Answer(question) => Reply::Failed(self.give_up(now, question)),
                Awaited::Change(_) => Reply::Changed(self.change),
            };
            self.reply_late(&waited, &reply);
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
        let each = self.waiting_each.entry(client).or_default();
        if self.waiting.len() >= self.settings.most_waiting || *each >= self.settings.most_waiting_each {
            return Err(Status::NO_MEMORY);
        }
        *each += 1;
        let patience = match &awaited {
            Awaited::Answer(question) => {
                self.have_asked(question);
                self.settings.patience()
            }
            Awaited::Change(_) => WATCH,
        };
        let (number, deadline) = (self.next_question, now + patience);
        self.next_question += 1;
        self.by_deadline.insert((deadline, number), ());
        self.waiting.insert(number, Waiting { client, header, awaited, deadline });
        Ok(())
    }

    /// Tries all questions that wait once more.
    pub(super) fn try_waiting(&mut self, now: Instant) {
        let numbers: Vec<u64> = self.waiting.keys().copied().collect();
        for number in numbers {
            let Some(awaited) = self.waiting.get(&number).map(|it| it.awaited.clone()) else { continue };
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
                (None, Awaited::Answer(question)) => self.have_asked(question),
                (None, Awaited::Change(_)) => {}
            }
        }
    }

    fn stop_waiting(&mut self, number: u64) -> Option<Waiting> {
        let waited = self.waiting.remove(&number)?;
        self.by_deadline.remove(&(waited.deadline, number));
        if let Some(each) = self.waiting_each.get_mut(&waited.client) {
            *each -= 1;
            if *each == 0 {
                self.waiting_each.remove(&waited.client);
            }
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
