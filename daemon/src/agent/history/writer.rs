//! Writes the file of maps in a thread of its own, as a disk may be slow, or full for a while.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mapper_formats::json::{Names, map_to_json};
use mapper_proto::map::Map;
use tracing::{info, warn};

use super::{HistoryFile, KeptMaps, MapEvent};

/// How many maps wait to be written at most. When there are more, the oldest are given up.
const MOST_WAITING: usize = 64;
/// How long after a failure the writer tries again.
const AGAIN_AFTER: Duration = Duration::from_secs(30);

/// How many of these wait together with the map itself, which may be large. The maps of the others are not
/// kept.
const MOST_MAPS_WAITING: usize = 4;

/// A map that is to be kept, with the names that are known in it.
#[derive(Debug, Clone, Default)]
pub(in crate::agent) struct MapToKeep {
    pub(in crate::agent) map: Arc<Map>,
    pub(in crate::agent) names: Names,
}

/// A map that comes to be written.
#[derive(Debug, Clone)]
struct Coming {
    event: MapEvent,
    /// The map itself, with a share of the counter of all maps that wait.
    map: Option<(MapToKeep, Arc<()>)>,
}

/// What waits to be written, the oldest first.
#[derive(Debug, Default)]
struct Waiting {
    /// The lines of what maps changed.
    events: VecDeque<MapEvent>,
    /// The maps themselves, each with the time at which it came.
    maps: VecDeque<(u64, MapToKeep, Arc<()>)>,
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.events.is_empty() && self.maps.is_empty()
    }

    /// Adds a map. When too many lines wait, the oldest are given up.
    fn add(&mut self, Coming { event, map }: Coming) {
        self.maps.extend(map.map(|(map, share)| (event.unix_ms, map, share)));
        self.events.push_back(event);
        while self.events.len() > MOST_WAITING {
            self.events.pop_front();
        }
    }

    /// Writes all lines, then all maps. What cannot be written waits on.
    fn write(&mut self, file: &HistoryFile, maps: &KeptMaps) -> io::Result<()> {
        while let Some(event) = self.events.front() {
            file.append(event)?;
            self.events.pop_front();
        }
        while let Some((unix_ms, MapToKeep { map, names }, _)) = self.maps.front() {
            let text = serde_json::to_string(&map_to_json(map, names))? + "\n";
            maps.keep(*unix_ms, &text)?;
            self.maps.pop_front();
        }
        Ok(())
    }
}

/// Who writes the files.
#[derive(Debug)]
pub(in crate::agent) struct Writer {
    events: Option<SyncSender<Coming>>,
    /// The counter of maps that wait: each of them holds a share of it.
    maps_waiting: Arc<()>,
    failure: Arc<Mutex<Option<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread. It ends with the writer, once it has written what waits, if that can be written.
    ///
    /// # Errors
    /// If there can be no such thread.
    pub(in crate::agent) fn start(file: HistoryFile, maps: KeptMaps) -> io::Result<Self> {
        let (events, coming) = sync_channel(MOST_WAITING);
        let failure = Arc::new(Mutex::new(None));
        let shown = Arc::clone(&failure);
        let thread = thread::Builder::new()
            .name("history".to_owned())
            .spawn(move || serve(&file, &maps, &coming, &shown, AGAIN_AFTER))?;
        Ok(Self { events: Some(events), maps_waiting: Arc::default(), failure, thread: Some(thread) })
    }

    /// Has a map written. If too many wait for a disk that does not answer, the map is given up.
    pub(in crate::agent) fn write(&self, event: MapEvent, map: MapToKeep) {
        if let Some(events) = &self.events {
            let has_room = Arc::strong_count(&self.maps_waiting) <= MOST_MAPS_WAITING;
            let map = has_room.then(|| (map, Arc::clone(&self.maps_waiting)));
            let _given_up_where_the_disk_hangs = events.try_send(Coming { event, map });
        }
    }

    /// Why maps cannot be written, in words; `None` if they can.
    pub(in crate::agent) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.events = None;
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, there is nothing left to wait for.
            let _ended = thread.join();
        }
    }
}

fn serve(
    file: &HistoryFile,
    maps: &KeptMaps,
    coming: &Receiver<Coming>,
    failure: &Mutex<Option<String>>,
    again_after: Duration,
) {
    maps.remove_half_written();
    let mut waiting = Waiting::default();
    loop {
        let next = match waiting.is_empty() {
            true => coming.recv().map_err(|_| RecvTimeoutError::Disconnected),
            false => coming.recv_timeout(again_after),
        };
        let is_over = matches!(next, Err(RecvTimeoutError::Disconnected));
        if let Ok(map) = next {
            waiting.add(map);
        }
        let outcome = waiting.write(file, maps);
        let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Ok(()) if failure.take().is_some() => {
                info!(file = %file.path().display(), "maps are written again");
            }
            Ok(()) => {}
            Err(error) => {
                if failure.is_none() {
                    warn!(file = %file.path().display(), "the history of maps cannot be written: {error}");
                }
                *failure = Some(format!(
                    "the history of maps cannot be written to {}: {error}; the last {MOST_WAITING} maps are kept until it can",
                    file.path().display()
                ));
            }
        }
        if is_over {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_is_told_and_written_when_it_can() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("state");
        let file = HistoryFile::new(folder.join("eth1.history"));
        let (events, coming) = sync_channel(9);
        let failure = Arc::new(Mutex::new(None));
        let (shown, written) = (Arc::clone(&failure), file.clone());
        let maps = KeptMaps::new(folder.join("eth1.maps"));
        let kept = maps.clone();
        let thread = thread::spawn(move || serve(&written, &kept, &coming, &shown, Duration::from_millis(5)));
        let send = |unix_ms| {
            let event = MapEvent { unix_ms, ..MapEvent::default() };
            events.send(Coming { event, map: Some((MapToKeep::default(), Arc::default())) }).unwrap();
        };
        send(1);
        send(2);
        while failure.lock().unwrap().is_none() {
            thread::yield_now();
        }
        assert!(failure.lock().unwrap().as_ref().unwrap().contains("eth1.history"));
        std::fs::create_dir(&folder).unwrap();
        while failure.lock().unwrap().is_some() {
            thread::yield_now();
        }
        send(3);
        drop(events);
        thread.join().unwrap();
        let numbers: Vec<u64> = file.read(9).iter().map(|event| event.unix_ms).collect();
        assert_eq!(numbers, [1, 2, 3]);
        assert!((1..4).all(|unix_ms| maps.read(unix_ms).unwrap().contains("mapper.map/1")));
    }

    #[test]
    fn a_map_that_cannot_be_kept_is_tried_again_though_its_line_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = HistoryFile::new(dir.path().join("eth1.history"));
        let folder = dir.path().join("eth1.maps");
        // A file stands where the directory of maps is to be.
        std::fs::write(&folder, "").unwrap();
        let maps = KeptMaps::new(folder.clone());
        let mut waiting = Waiting::default();
        let map = Some((MapToKeep::default(), Arc::default()));
        waiting.add(Coming { event: MapEvent { unix_ms: 7, ..MapEvent::default() }, map });
        assert!(waiting.write(&file, &maps).is_err());
        assert_eq!(file.read(9).len(), 1);
        assert!(!waiting.is_empty(), "so whoever waits for more maps does not wait for ever");
        std::fs::remove_file(&folder).unwrap();
        waiting.write(&file, &maps).unwrap();
        assert!(waiting.is_empty() && maps.read(7).unwrap().contains("mapper.map/1"));
        assert_eq!(file.read(9).len(), 1, "its line is there once");
    }

    #[test]
    fn what_was_given_to_it_is_written_before_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        let file = HistoryFile::new(dir.path().join("eth1.history"));
        let writer = Writer::start(file.clone(), KeptMaps::new(dir.path().join("eth1.maps"))).unwrap();
        let write = |unix_ms| writer.write(MapEvent { unix_ms, ..MapEvent::default() }, MapToKeep::default());
        (0..20).for_each(write);
        assert_eq!(writer.failure(), None);
        drop(writer);
        assert_eq!(file.read(99).len(), 20);
    }
}
