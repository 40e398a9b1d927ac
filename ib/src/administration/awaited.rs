//! Requests that wait until ports have answered questions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::tables::{TableOf, Told};
use super::{Asker, MAX_TABLES};
use crate::mad::Data;
use crate::mad::sa::SaMad;
use crate::rmpp::Key;

/// Most requests that wait.
const MAX_REQUESTS: usize = 64;

/// Requests that wait, by who sent them.
pub(super) type WaitingRequests = BTreeMap<Key, (SaMad, Asker)>;

/// Requests, and the parts of tables that are asked for them. All requests are answered once all parts were
/// told.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    requests: WaitingRequests,
    /// The parts that were not told yet, including those that are being asked for.
    open: BTreeSet<TableOf>,
    /// The parts that were not asked for yet.
    unasked: VecDeque<TableOf>,
    told: Told,
}

impl Awaited {
    /// Whether a request waits already.
    pub(super) fn has(&self, key: &Key) -> bool {
        self.requests.contains_key(key)
    }

    /// Has a request wait. Returns false if there is no room.
    pub(super) fn wait(&mut self, key: Key, request: SaMad, asker: Asker, tables: Vec<TableOf>) -> bool {
        let has_room = self.requests.len() < MAX_REQUESTS
            && self.open.len() + self.told.len() + tables.len() <= MAX_TABLES;
        if has_room {
            self.requests.insert(key, (request, asker));
            for table in tables.into_iter().filter(|table| !self.told.contains_key(table)) {
                if self.open.insert(table) {
                    self.unasked.push_back(table);
                }
            }
        }
        has_room
    }

    /// The part of a table to ask for next.
    pub(super) fn poll_table(&mut self) -> Option<TableOf> {
        self.unasked.pop_front()
    }

    /// Takes in a part of a table; `None` if it will not be told. Returns the requests that can be answered
    /// now, and what was told for them.
    pub(super) fn take(&mut self, table: TableOf, data: Option<Data>) -> Option<(WaitingRequests, Told)> {
        if self.open.remove(&table) {
            self.told.insert(table, data);
        }
        let is_all = self.open.is_empty() && !self.requests.is_empty();
        is_all.then(|| (std::mem::take(&mut self.requests), std::mem::take(&mut self.told)))
    }
}
