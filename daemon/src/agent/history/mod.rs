//! The log of maps on disk: what each map changed, and why it was made.
//!
//! Every agent keeps the log, and not only the global mapper. So the next global mapper goes on where the
//! last one ended, and one can read it on any machine.
//!
//! - [`HistoryFile`]: the file of the log, which is bounded and survives a crash.
//! - [`KeptMaps`]: the last maps themselves, which are bounded, too.
//! - `waiting`: what waits to be written, a bounded number of the newest.
//! - `writer`: the thread that writes both.

mod file;
mod maps;
mod waiting;
mod writer;

use serde::{Deserialize, Serialize};

pub use file::HistoryFile;
pub use maps::KeptMaps;
pub(super) use waiting::MapToKeep;
pub(super) use writer::Writer;

/// How many maps are told at once, and so how many are kept in memory.
pub const MOST_TOLD: usize = 200;
/// The most bytes of an answer.
pub const MAX_HISTORY_BYTES: usize = 8 << 20;

/// A map that came into force at this host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MapEvent {
    /// When it came, in milliseconds since the beginning of 1970, by this machine's clock.
    pub unix_ms: u64,
    /// Its version: the address of the agent that made it, and its number.
    pub version: String,
    /// The agent that made it, by name and address.
    pub leader: String,
    /// How many hosts it has.
    pub hosts: usize,
    /// How many crossbars it has.
    pub xbars: usize,
    /// How many cables between crossbars it has.
    pub cables: usize,
    /// What differs from the map before, a line for each thing.
    pub what: Vec<String>,
    /// Why the map before was given up, or this one made; `None` if this host was not told.
    pub cause: Option<String>,
}

impl MapEvent {
    /// What changed and why, in one line that has at most `most` of the changes.
    pub fn line(&self, most: usize) -> String {
        let mut words = self.what.iter().take(most).cloned().collect::<Vec<_>>().join("; ");
        if let Some(more @ 1..) = self.what.len().checked_sub(most) {
            words += &format!("; and {more} more");
        }
        match &self.cause {
            Some(cause) => format!("map {}: {words} ({cause})", self.version),
            None => format!("map {}: {words}", self.version),
        }
    }
}

/// The answer to a request for an agent's history: the last maps, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct History {
    /// The maps.
    pub events: Vec<MapEvent>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_as_many_changes_as_are_wanted_and_the_cause() {
        let event = MapEvent {
            version: "02:00:00:00:00:01/7".to_owned(),
            what: ["one is gone", "two is new", "three is new"].map(str::to_owned).to_vec(),
            ..MapEvent::default()
        };
        assert_eq!(event.line(3), "map 02:00:00:00:00:01/7: one is gone; two is new; three is new");
        let event = MapEvent { cause: Some("a host is silent".to_owned()), ..event };
        assert_eq!(event.line(1), "map 02:00:00:00:00:01/7: one is gone; and 2 more (a host is silent)");
    }
}
