//! Cables that lose frames, as this agent's maps show them.

use super::cause::Cause;
use super::machine::Agent;
use crate::Instant;
use crate::map::{TaggedPort, decode_pieces};

impl Agent {
    /// Says which ports hold cables that carry frames and lose many, those first that were found first. The maps that this agent
    /// makes show these cables, so that all hosts route around them; if it is the global mapper and its map shows others,
    /// it makes a new one.
    pub fn set_lossy(&mut self, now: Instant, ports: Vec<TaggedPort>) {
        self.note_time(now);
        if self.lossy == ports {
            return;
        }
        self.lossy = ports;
        let own = self.held.as_ref().filter(|held| held.valid && held.version.mac == self.settings.mac);
        let map = own.and_then(|held| decode_pieces(held.version, &held.pieces).ok());
        if map.is_some_and(|map| map.lossy != map.cables_in(&self.lossy)) {
            self.map_again(now, Cause::LossyCables);
        }
        self.pump(now);
    }
}
