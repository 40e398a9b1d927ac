//! What waits to be written to disk: lines of the log and maps, a bounded number of each, the newest.

use std::collections::VecDeque;
use std::sync::Arc;

use mapper_formats::json::NamesByAddress;
use mapper_proto::map::Map;

use super::MapEvent;

/// How many lines wait at most. When there are more, the oldest are given up.
pub(super) const MOST_LINES: usize = 64;
/// How many maps wait at most. They are few, as a map may be large.
pub(super) const MOST_MAPS: usize = 4;

/// A map that is to be kept, with the names that are known in it.
#[derive(Debug, Clone, Default)]
pub(in crate::agent) struct MapToKeep {
    pub(in crate::agent) map: Arc<Map>,
    pub(in crate::agent) names: NamesByAddress,
}

/// A map that waits.
#[derive(Debug)]
pub(super) struct WaitingMap {
    /// Its place among all maps that came.
    number: u64,
    /// When it came.
    pub(super) unix_ms: u64,
    pub(super) map: MapToKeep,
}

/// What waits to be written, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// The lines of what maps changed.
    lines: VecDeque<MapEvent>,
    maps: VecDeque<Arc<WaitingMap>>,
    /// How many maps have come.
    came: u64,
}

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.maps.is_empty()
    }

    /// Adds a map and its line. The oldest line is given up when there are too many, and a map is when so many newer ones
    /// have come as wait at most: so one that can never be written does not wait for ever beside others that can.
    pub(super) fn add(&mut self, line: MapEvent, map: MapToKeep) {
        self.came += 1;
        self.maps.push_back(Arc::new(WaitingMap { number: self.came, unix_ms: line.unix_ms, map }));
        self.maps.retain(|map| map.number + MOST_MAPS as u64 > self.came);
        self.lines.push_back(line);
        if self.lines.len() > MOST_LINES {
            self.lines.pop_front();
        }
    }

    /// Takes the oldest line out.
    pub(super) fn take_line(&mut self) -> Option<MapEvent> {
        self.lines.pop_front()
    }

    /// Puts the line that was taken out back, as it could not be written. If too many have come meanwhile, it is the one
    /// that is given up.
    pub(super) fn put_back(&mut self, line: MapEvent) {
        if self.lines.len() < MOST_LINES {
            self.lines.push_front(line);
        }
    }

    /// The oldest map that came after `last`; without `last`, the oldest of all. It waits on.
    pub(super) fn map_after(&self, last: Option<&WaitingMap>) -> Option<Arc<WaitingMap>> {
        let is_after = |map: &&Arc<WaitingMap>| last.is_none_or(|last| map.number > last.number);
        self.maps.iter().find(is_after).cloned()
    }

    /// Has a map wait no more, as it is written.
    pub(super) fn remove(&mut self, written: &WaitingMap) {
        self.maps.retain(|map| map.number != written.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(waiting: &mut Waiting, unix_ms: u64) {
        waiting.add(MapEvent { unix_ms, ..MapEvent::default() }, MapToKeep::default());
    }

    fn times_of_maps(waiting: &Waiting) -> Vec<u64> {
        waiting.maps.iter().map(|map| map.unix_ms).collect()
    }

    #[test]
    fn the_newest_lines_and_maps_wait() {
        let mut waiting = Waiting::default();
        (1..=100).for_each(|unix_ms| add(&mut waiting, unix_ms));
        assert_eq!(times_of_maps(&waiting), [97, 98, 99, 100]);
        let line = waiting.take_line().unwrap();
        assert_eq!(line.unix_ms, 100 - MOST_LINES as u64 + 1);
        waiting.put_back(line.clone());
        assert_eq!(waiting.take_line(), Some(line.clone()));
        add(&mut waiting, 101);
        waiting.put_back(line.clone());
        assert_eq!(waiting.lines.len(), MOST_LINES);
        assert_ne!(waiting.take_line(), Some(line), "its place was taken meanwhile");
    }

    #[test]
    fn a_map_waits_until_it_is_written_or_enough_newer_ones_have_come() {
        let mut waiting = Waiting::default();
        (1..=3).for_each(|unix_ms| add(&mut waiting, unix_ms));
        let first = waiting.map_after(None).unwrap();
        let second = waiting.map_after(Some(&first)).unwrap();
        waiting.remove(&second);
        assert_eq!(times_of_maps(&waiting), [1, 3]);
        add(&mut waiting, 4);
        assert_eq!(times_of_maps(&waiting), [1, 3, 4]);
        add(&mut waiting, 5);
        assert_eq!(times_of_maps(&waiting), [3, 4, 5], "there is room for it, but it would wait for ever");
    }
}
