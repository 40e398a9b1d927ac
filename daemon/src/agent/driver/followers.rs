//! Programs on the machine that wait for names, addresses or paths to change.

use std::collections::VecDeque;

use mapper_machine::status::Client;
use tracing::warn;

use crate::agent::status::{Change, PathsNumber};

/// How many programs may wait for a change at once. Each takes one of the places for requests, so some places
/// must be left for others.
const MOST_WAITING: usize = 4;

/// The programs that wait to be told of a change, and how often there was one.
#[derive(Debug, Default)]
pub(crate) struct Followers {
    number: u64,
    waiting: VecDeque<Client>,
    /// The file that shows other processes at once how often paths have changed.
    paths: Option<PathsNumber>,
}

impl Followers {
    /// Sets the file that shows other processes at once that paths have changed.
    pub(crate) fn tell_of_paths(&mut self, paths: PathsNumber) {
        self.paths = Some(paths);
    }

    /// How often paths have changed, if others see it at once.
    pub(crate) fn paths_number(&self) -> Option<u64> {
        self.paths.as_ref().map(PathsNumber::get)
    }

    /// Takes in that paths have changed. It is to be called before anything else is done with a new map, so
    /// that no program relies on paths that were told before.
    pub(crate) fn paths_changed(&mut self) {
        if let Some(Err(error)) = self.paths.as_mut().map(PathsNumber::raise) {
            warn!(%error, "programs hear of new paths a moment late, as the file with their number cannot be written");
            self.paths = None;
        }
    }

    /// Tells a client the number of the last change as soon as that differs from the number `seen`. If too
    /// many wait, the one that has waited for longest is given up, as it may be a program that has ended.
    pub(crate) fn follow(&mut self, seen: Option<u64>, client: Client) {
        if seen != Some(self.number) {
            return self.tell(client);
        }
        self.waiting.push_back(client);
        if self.waiting.len() > MOST_WAITING {
            drop(self.waiting.pop_front());
        }
    }

    /// Tells all who wait that something has changed.
    pub(crate) fn changed(&mut self) {
        self.number += 1;
        while let Some(client) = self.waiting.pop_front() {
            self.tell(client);
        }
    }

    fn tell(&self, client: Client) {
        let change = Change { number: self.number };
        drop(tokio::spawn(client.answer_json(move || serde_json::to_vec(&change))));
    }
}
