//! Requests that wait for what ports are asked.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::tables::{TableOf, Told};
use super::{Asker, MAX_TABLES};
use crate::mad::Data;
use crate::mad::sa::SaMad;
use crate::rmpp::Key;

/// Most requests that wait.
const MAX_REQUESTS: usize = 64;

/// Requests that wait, by whose they are.
pub(super) type Requests = BTreeMap<Key, (SaMad, Asker)>;

/// Requests, and what is asked for them. All are answered as soon as all is told.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    requests: Requests,
    /// What nobody told yet, those under way among them.
    open: BTreeSet<TableOf>,
    /// What nobody was asked yet.
    unasked: VecDeque<TableOf>,
    told: Told,
}

impl Awaited {
    /// Whether a request waits already.
    pub(super) fn has(&self, key: &Key) -> bool {
        self.requests.contains_key(key)
    }

    /// Has a request wait; false if there is no room.
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

    /// What to ask next.
    pub(super) fn poll_table(&mut self) -> Option<TableOf> {
        self.unasked.pop_front()
    }

    /// A part of a table was told, or is not. Returns the requests that can be answered now, and with what.
    pub(super) fn take(&mut self, table: TableOf, data: Option<Data>) -> Option<(Requests, Told)> {
        if self.open.remove(&table) {
            self.told.insert(table, data);
        }
        let is_all = self.open.is_empty() && !self.requests.is_empty();
        is_all.then(|| (std::mem::take(&mut self.requests), std::mem::take(&mut self.told)))
    }
}
