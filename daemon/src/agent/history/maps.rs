//! The last maps themselves, each in a file, so that one can see a fabric as it was.

use std::fs::DirEntry;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mapper_machine::whole_file;

/// The most maps that are kept.
const MOST_MAPS: usize = 200;
/// The most bytes of all maps together.
const MOST_BYTES: u64 = 16 << 20;

/// How long ago a file that is not whole was last written if it is taken for what a crash left.
const HALF_WRITTEN_AFTER: Duration = Duration::from_secs(600);

/// A directory of maps, each as `mapper.map/1` in a file that is named by the time at which the map came, in milliseconds since the
/// beginning of 1970. The oldest are forgotten when there are too many.
#[derive(Debug, Clone)]
pub struct KeptMaps {
    dir: PathBuf,
    most_maps: usize,
    most_bytes: u64,
}

impl KeptMaps {
    /// The maps of this directory, which need not be there yet.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir, most_maps: MOST_MAPS, most_bytes: MOST_BYTES }
    }

    /// The path of the directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn path(&self, unix_ms: u64) -> PathBuf {
        self.dir.join(format!("{unix_ms}.json"))
    }

    /// Keeps the map that came at this time. A map that is larger than all maps together may be is not kept.
    ///
    /// # Errors
    /// If the map cannot be written. Nothing of it is left.
    pub(super) fn keep(&self, unix_ms: u64, text: &str) -> io::Result<()> {
        let bytes = text.len() as u64;
        if bytes > self.most_bytes {
            return Ok(());
        }
        std::fs::create_dir_all(&self.dir)?;
        self.remove_half_written();
        let mut kept = self.kept()?;
        let mut sum: u64 = kept.iter().map(|&(_, bytes)| bytes).sum();
        while kept.len() >= self.most_maps || sum + bytes > self.most_bytes {
            let Some((oldest, bytes)) = kept.pop() else { break };
            std::fs::remove_file(self.path(oldest))?;
            sum -= bytes;
        }
        whole_file::replace(&self.path(unix_ms), text)
    }

    /// Removes files that a crash left half written. Those that were written to lately stay, as agents of other
    /// namespaces may share the directory and be writing theirs, and so do those of which the clock says nothing, as it
    /// was set back since.
    fn remove_half_written(&self) {
        for entry in std::fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().ends_with(".new") && is_left(&entry) {
                // A file that cannot be removed takes room and does no other harm.
                let _stays = std::fs::remove_file(entry.path());
            }
        }
    }

    /// The times of all maps, the newest first, and how many bytes each has.
    fn kept(&self) -> io::Result<Vec<(u64, u64)>> {
        let mut kept = Vec::new();
        for entry in std::fs::read_dir(&self.dir)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if let Some(time) = name.strip_suffix(".json").and_then(|time| time.parse().ok()) {
                kept.push((time, entry.metadata()?.len()));
            }
        }
        kept.sort_unstable_by_key(|&(time, _)| std::cmp::Reverse(time));
        Ok(kept)
    }

    /// The map that came at this time, as `mapper.map/1`, if it is kept.
    pub fn read(&self, unix_ms: u64) -> Option<String> {
        std::fs::read_to_string(self.path(unix_ms)).ok()
    }
}

/// Whether nobody has written to a file for so long that nobody is about to.
fn is_left(entry: &DirEntry) -> bool {
    let written = entry.metadata().and_then(|file| file.modified());
    written.is_ok_and(|written| written.elapsed().is_ok_and(|since| since >= HALF_WRITTEN_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_maps_are_kept_as_far_as_there_is_room_for_them() {
        let dir = tempfile::tempdir().unwrap();
        let maps = KeptMaps { dir: dir.path().join("eth1.maps"), most_maps: 4, most_bytes: 100 };
        assert_eq!(maps.read(1), None);
        (1..9).for_each(|time| maps.keep(time, &format!("map {time}")).unwrap());
        let times = || maps.kept().unwrap().iter().map(|&(time, _)| time).collect::<Vec<_>>();
        assert_eq!(times(), [8, 7, 6, 5]);
        assert_eq!(maps.read(6).unwrap(), "map 6");
        maps.keep(10, &"x".repeat(90)).unwrap();
        assert_eq!(times(), [10, 8, 7], "a large one takes the room of several");
        maps.keep(11, &"x".repeat(101)).unwrap();
        assert_eq!(times(), [10, 8, 7], "and one that is too large takes none");
        maps.keep(12, "map 12").unwrap();
        assert_eq!(times(), [12, 10]);
        assert_eq!(std::fs::read_dir(maps.dir()).unwrap().count(), 2);
    }

    #[test]
    fn what_a_crash_left_half_written_is_removed_and_not_what_another_agent_is_writing() {
        let dir = tempfile::tempdir().unwrap();
        let maps = KeptMaps::new(dir.path().join("eth1.maps"));
        std::fs::create_dir(maps.dir()).unwrap();
        let half_written = |name: &str| {
            let path = maps.dir().join(name);
            std::fs::write(&path, "half a map").unwrap();
            (std::fs::File::options().write(true).open(&path).unwrap(), path)
        };
        let (old, old_path) = half_written("7.json.77.new");
        let (_, new_path) = half_written("8.json.78.new");
        let (future, future_path) = half_written("9.json.79.new");
        let now = old.metadata().unwrap().modified().unwrap();
        old.set_modified(now - HALF_WRITTEN_AFTER).unwrap();
        future.set_modified(now + 2 * HALF_WRITTEN_AFTER).unwrap();
        maps.keep(10, "map").unwrap();
        assert!(!old_path.exists());
        assert!(new_path.exists() && future_path.exists());
    }

    #[test]
    fn what_cannot_be_written_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("taken"), "").unwrap();
        assert!(KeptMaps::new(dir.path().join("taken")).keep(1, "map").is_err());
    }
}
