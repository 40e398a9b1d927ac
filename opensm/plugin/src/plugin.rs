//! What one OpenSM asked and was told.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use mapper_opensm::{Answer, Options, Request, Worker};

/// Writes a line into OpenSM's log.
pub(crate) type Log<'a> = &'a dyn Fn(bool, &str);

/// What one OpenSM asked and was told.
pub(crate) struct Plugin {
    options: Options,
    /// The last tables that were proved, unless those of a later request were not.
    answer: Option<Answer>,
    /// The engine that served last.
    serving: Option<String>,
    /// Where each switch's table stands in the answer, by GUID.
    tables: BTreeMap<u64, usize>,
}

impl Plugin {
    /// Where the package puts the program that computes.
    const WORKER: &'static str = "/usr/lib/mapper/mapper-opensm-engine";

    /// The plugin with these options. `None` if they are wrong, which it writes into the log.
    pub(crate) fn new(options: &str, log: Log<'_>) -> Option<Self> {
        match options.parse() {
            Ok(options) => Some(Self { options, answer: None, serving: None, tables: BTreeMap::new() }),
            Err(error) => {
                log(true, &format!("event_plugin_options: {error}"));
                None
            }
        }
    }

    /// Has tables computed. Returns whether there are some.
    pub(crate) fn compute(&mut self, request: Request, log: Log<'_>) -> bool {
        self.answer = None;
        self.tables.clear();
        let program = self.options.worker.clone().unwrap_or_else(|| PathBuf::from(Self::WORKER));
        let limit = Duration::from_secs(self.options.limit_s.into());
        let request = Request { options: self.options.clone(), serving: self.serving.clone(), ..request };
        match (Worker { program, limit }).run(&request) {
            Ok(Ok(answer)) => {
                answer.said.iter().for_each(|line| log(false, line));
                let places = answer.tables.iter().enumerate();
                self.tables = places.map(|(place, table)| (table.guid, place)).collect();
                self.serving = Some(answer.engine.clone());
                self.answer = Some(answer);
                true
            }
            Ok(Err(declined)) => {
                declined.said.iter().for_each(|line| log(true, line));
                false
            }
            Err(error) => {
                log(true, &format!("{error}: left to OpenSM's next engine"));
                false
            }
        }
    }

    /// A switch's table, by LID.
    pub(crate) fn table(&self, guid: u64) -> Option<&[u8]> {
        let table = self.answer.as_ref()?.tables.get(*self.tables.get(&guid)?)?;
        Some(&table.ports)
    }

    /// How many layers the tables use.
    pub(crate) fn layers(&self) -> u8 {
        self.answer.as_ref().map_or(1, |answer| answer.layer_count)
    }

    /// The level from one LID to another.
    pub(crate) fn level(&self, from: u16, to: u16) -> Option<u8> {
        self.answer.as_ref()?.level(from, to)
    }
}
