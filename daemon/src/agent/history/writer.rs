//! Writes the file of maps in a thread of its own, as a disk may be slow, or full for a while.

use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mapper_formats::json::map_to_json;
use tracing::{info, warn};

use super::waiting::{MOST_LINES, MOST_MAPS, MapToKeep, Waiting, WaitingMap};
use super::{HistoryFile, KeptMaps, MapEvent};

/// How long after a failure the writer tries again.
const AGAIN_AFTER: Duration = Duration::from_secs(30);

/// What the writer and its thread share. It is never locked while the disk is waited for.
#[derive(Debug, Default)]
struct Shared {
    waiting: Waiting,
    /// Whether something came since the thread last looked.
    has_news: bool,
    /// Whether nothing more will come.
    is_over: bool,
    /// Why the last attempt to write failed, in words.
    failure: Option<String>,
}

/// Where the writer leaves for its thread what is to be written.
#[derive(Debug, Default)]
struct Desk {
    shared: Mutex<Shared>,
    changed: Condvar,
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Shared)) {
        change(&mut self.lock());
        self.changed.notify_one();
    }

    /// Waits until something comes, or until it is time to try again what waits. Returns whether nothing more will come.
    fn wait(&self, again_after: Duration) -> bool {
        let is_quiet = |shared: &mut Shared| !shared.has_news && !shared.is_over;
        let shared = self.lock();
        let mut shared = match shared.waiting.is_empty() {
            true => self.changed.wait_while(shared, is_quiet).unwrap_or_else(PoisonError::into_inner),
            false => {
                let waited = self.changed.wait_timeout_while(shared, again_after, is_quiet);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        shared.has_news = false;
        shared.is_over
    }
}

/// Who writes the files.
#[derive(Debug)]
pub(in crate::agent) struct Writer {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread. It ends with the writer, once it has written what waits, if that can be written.
    ///
    /// # Errors
    /// If there can be no such thread.
    pub(in crate::agent) fn start(file: HistoryFile, maps: KeptMaps) -> io::Result<Self> {
        Self::start_with(file, maps, AGAIN_AFTER)
    }

    fn start_with(file: HistoryFile, maps: KeptMaps, again_after: Duration) -> io::Result<Self> {
        let desk = Arc::new(Desk::default());
        let disk = Disk { file, maps, desk: Arc::clone(&desk) };
        let thread =
            thread::Builder::new().name("history".to_owned()).spawn(move || disk.serve(again_after))?;
        Ok(Self { desk, thread: Some(thread) })
    }

    /// Has a map written. If too many wait for a disk that does not answer, the oldest are given up.
    pub(in crate::agent) fn write(&self, event: MapEvent, map: MapToKeep) {
        self.desk.change(|shared| {
            shared.waiting.add(event, map);
            shared.has_news = true;
        });
    }

    /// Why maps cannot be written, in words; `None` if they can.
    pub(in crate::agent) fn failure(&self) -> Option<String> {
        self.desk.lock().failure.clone()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.desk.change(|shared| shared.is_over = true);
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, there is nothing left to wait for.
            let _ended = thread.join();
        }
    }
}

/// The files, in the hands of the thread.
struct Disk {
    file: HistoryFile,
    maps: KeptMaps,
    desk: Arc<Desk>,
}

impl Disk {
    fn serve(&self, again_after: Duration) {
        loop {
            let is_over = self.desk.wait(again_after);
            let lines = self.write_lines();
            let maps = self.write_maps();
            self.show(match (lines, maps) {
                (Err(error), _) => Some((self.file.path(), error)),
                (Ok(()), Err(error)) => Some((self.maps.dir(), error)),
                (Ok(()), Ok(())) => None,
            });
            if is_over {
                return;
            }
        }
    }

    /// Writes the lines that wait, in their order, up to the first that cannot be written.
    fn write_lines(&self) -> io::Result<()> {
        loop {
            // A statement of its own, so that the lock is not held while the line is written.
            let line = self.desk.lock().waiting.take_line();
            let Some(line) = line else { return Ok(()) };
            if let Err(error) = self.file.append(&line) {
                self.desk.lock().waiting.put_back(line);
                return Err(error);
            }
        }
    }

    /// Writes all maps that wait and can be written. If some cannot, the error is that of the first.
    fn write_maps(&self) -> io::Result<()> {
        let mut outcome = Ok(());
        let mut last: Option<Arc<WaitingMap>> = None;
        loop {
            let next = self.desk.lock().waiting.map_after(last.as_deref());
            let Some(next) = next else { return outcome };
            match self.write_map(&next) {
                Ok(()) => self.desk.lock().waiting.remove(&next),
                Err(error) => outcome = outcome.and(Err(error)),
            }
            last = Some(next);
        }
    }

    fn write_map(&self, WaitingMap { unix_ms, map, .. }: &WaitingMap) -> io::Result<()> {
        let text = serde_json::to_string(&map_to_json(&map.map, &map.names))? + "\n";
        self.maps.keep(*unix_ms, &text)
    }

    /// Shows what came of an attempt to write all: that it failed, with the file or directory and the error. A failure is
    /// logged once, and so is its end.
    fn show(&self, failed: Option<(&Path, io::Error)>) {
        let mut shared = self.desk.lock();
        let before = shared.failure.take();
        shared.failure = failed.map(|(path, error)| {
            let path = path.display();
            if before.is_none() {
                warn!(%path, "the history of maps cannot be written: {error}");
            }
            format!(
                "the history of maps cannot be written to {path}: {error}; until it can, the last {MOST_LINES} lines and \
                 {MOST_MAPS} maps wait"
            )
        });
        if before.is_some() && shared.failure.is_none() {
            info!(file = %self.file.path().display(), "maps are written again");
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
        let (file, maps) =
            (HistoryFile::new(folder.join("eth1.history")), KeptMaps::new(folder.join("eth1.maps")));
        // A file stands where the directory of all is to be.
        std::fs::write(&folder, "").unwrap();
        let writer = Writer::start_with(file.clone(), maps.clone(), Duration::from_millis(5)).unwrap();
        (1..=2).for_each(|unix_ms| write(&writer, unix_ms));
        while writer.failure().is_none() {
            thread::yield_now();
        }
        let told = writer.failure().unwrap();
        assert!(
            told.contains("eth1.history") && told.ends_with("the last 64 lines and 4 maps wait"),
            "{told}"
        );
        std::fs::remove_file(&folder).unwrap();
        std::fs::create_dir_all(&folder).unwrap();
        while writer.failure().is_some() {
            thread::yield_now();
        }
        write(&writer, 3);
        drop(writer);
        let numbers: Vec<u64> = file.read(9).iter().map(|event| event.unix_ms).collect();
        assert_eq!(numbers, [1, 2, 3]);
        assert!((1..4).all(|unix_ms| maps.read(unix_ms).unwrap().contains("mapper.map/1")));
    }

    #[test]
    fn a_map_that_cannot_be_kept_is_tried_again_though_its_line_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = HistoryFile::new(dir.path().join("eth1.history"));
        // A file stands where the directory of maps is to be.
        let maps = KeptMaps::new(dir.path().join("eth1.maps"));
        std::fs::write(maps.dir(), "").unwrap();
        let writer = Writer::start_with(file.clone(), maps.clone(), Duration::from_millis(5)).unwrap();
        write(&writer, 7);
        while writer.failure().is_none() {
            thread::yield_now();
        }
        assert!(writer.failure().unwrap().contains("eth1.maps"));
        assert_eq!(file.read(9).len(), 1);
        std::fs::remove_file(maps.dir()).unwrap();
        while writer.failure().is_some() {
            thread::yield_now();
        }
        assert!(maps.read(7).unwrap().contains("mapper.map/1"), "no other map had to come");
        assert_eq!(file.read(9).len(), 1, "its line is there once");
    }

    #[test]
    fn what_was_given_to_it_is_written_before_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        let file = HistoryFile::new(dir.path().join("eth1.history"));
        let writer = Writer::start(file.clone(), KeptMaps::new(dir.path().join("eth1.maps"))).unwrap();
        (0..20).for_each(|unix_ms| write(&writer, unix_ms));
        assert_eq!(writer.failure(), None);
        drop(writer);
        assert_eq!(file.read(99).len(), 20);
    }

    /// A writer of the files of a directory, and its maps.
    fn writer_in(dir: &std::path::Path) -> (Writer, KeptMaps) {
        let maps = KeptMaps::new(dir.join("eth1.maps"));
        (Writer::start(HistoryFile::new(dir.join("eth1.history")), maps.clone()).unwrap(), maps)
    }

    fn write(writer: &Writer, unix_ms: u64) {
        writer.write(MapEvent { unix_ms, ..MapEvent::default() }, MapToKeep::default());
    }

    fn times_of(maps: &KeptMaps) -> Vec<u64> {
        (0..99).filter(|&unix_ms| maps.read(unix_ms).is_some()).collect()
    }

    #[test]
    fn of_the_maps_that_wait_long_the_newest_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        // A file stands where the directory of maps is to be.
        std::fs::write(dir.path().join("eth1.maps"), "").unwrap();
        let (writer, maps) = writer_in(dir.path());
        (1..=20).for_each(|unix_ms| write(&writer, unix_ms));
        while writer.failure().is_none() {
            thread::yield_now();
        }
        std::fs::remove_file(maps.dir()).unwrap();
        write(&writer, 21);
        drop(writer);
        // Map 17 is among them if the thread was just trying to write it.
        let times = times_of(&maps);
        assert!(times.ends_with(&[18, 19, 20, 21]) && times.len() <= 5, "{times:?}");
    }

    #[test]
    fn a_map_that_can_never_be_kept_is_in_no_other_ones_way() {
        let dir = tempfile::tempdir().unwrap();
        // A directory stands where a map is to be.
        std::fs::create_dir_all(dir.path().join("eth1.maps/1.json")).unwrap();
        let (writer, maps) = writer_in(dir.path());
        (1..=2).for_each(|unix_ms| write(&writer, unix_ms));
        while writer.failure().is_none() || times_of(&maps) != [2] {
            thread::yield_now();
        }
        (3..=5).for_each(|unix_ms| write(&writer, unix_ms));
        while writer.failure().is_some() {
            thread::yield_now();
        }
        drop(writer);
        assert_eq!(times_of(&maps), [2, 3, 4, 5]);
    }
}
