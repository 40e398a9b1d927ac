//! The file of maps: a line of JSON for each.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::MapEvent;

/// The most bytes of a file. A file that has reached them takes the place of the older one, which is
/// forgotten.
const MOST_BYTES: u64 = 1 << 20;

/// A file of maps, and beside it an older one.
///
/// A line is appended at once and is on disk before the next one. If a crash cuts off a line, the rest of it
/// is no JSON, and is passed over when the file is read. If the disk has no room for a line, nothing of it is
/// left.
#[derive(Debug, Clone)]
pub struct HistoryFile {
    path: PathBuf,
    most_bytes: u64,
}

impl HistoryFile {
    /// The file at this path, which need not be there yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path, most_bytes: MOST_BYTES }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn older(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".1");
        name.into()
    }

    /// Appends a map.
    ///
    /// # Errors
    /// If the file cannot be written. It is left as it was.
    pub fn append(&self, event: &MapEvent) -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        let mut file = self.open()?;
        let mut length = file.metadata()?.len();
        if length > 0 && length + line.len() as u64 > self.most_bytes {
            std::fs::rename(&self.path, self.older())?;
            file = self.open()?;
            length = 0;
        }
        if !ends_with_newline(&mut file, length)? {
            line.insert(0, b'\n');
        }
        let written = file.write_all(&line).and_then(|()| file.sync_data());
        if written.is_err() {
            // What was written of the line is removed. If that fails, too, the first error is the one that is
            // returned.
            let _may_fail_too = file.set_len(length);
        }
        written
    }

    fn open(&self) -> io::Result<File> {
        OpenOptions::new().read(true).append(true).create(true).open(&self.path)
    }

    /// The last maps, at most `most` of them, the oldest first. Lines that are no map are left out.
    pub fn read(&self, most: usize) -> Vec<MapEvent> {
        let mut events = Vec::new();
        for path in [self.older(), self.path.clone()] {
            let mut text = Vec::new();
            let read = File::open(path).and_then(|file| file.take(2 * MOST_BYTES).read_to_end(&mut text));
            if read.is_ok() {
                let lines = text.split(|&byte| byte == b'\n');
                events.extend(lines.filter_map(|line| serde_json::from_slice::<MapEvent>(line).ok()));
            }
        }
        events.drain(..events.len().saturating_sub(most));
        events
    }
}

fn ends_with_newline(file: &mut File, length: u64) -> io::Result<bool> {
    if length == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: u64) -> MapEvent {
        MapEvent { unix_ms: number, what: vec!["x".repeat(100)], ..MapEvent::default() }
    }

    fn numbers(file: &HistoryFile, most: usize) -> Vec<u64> {
        file.read(most).iter().map(|event| event.unix_ms).collect()
    }

    #[test]
    fn the_last_maps_are_kept_in_two_files_that_do_not_grow() {
        let dir = tempfile::tempdir().unwrap();
        let file = HistoryFile { path: dir.path().join("eth1.history"), most_bytes: 2000 };
        assert!(numbers(&file, 9).is_empty());
        (0..100).for_each(|number| file.append(&event(number)).unwrap());
        let kept = numbers(&file, 1000);
        assert!(kept.len() > 5 && kept.is_sorted() && kept.last() == Some(&99), "{kept:?}");
        assert_eq!(numbers(&file, 3), [97, 98, 99]);
        let bytes: u64 = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum();
        assert!(bytes <= 4000, "{bytes}");
    }

    #[test]
    fn a_line_that_a_crash_cut_short_costs_itself_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = HistoryFile::new(dir.path().join("eth1.history"));
        (0..3).for_each(|number| file.append(&event(number)).unwrap());
        let text = std::fs::read(file.path()).unwrap();
        std::fs::write(file.path(), &text[..text.len() - 20]).unwrap();
        file.append(&event(3)).unwrap();
        assert_eq!(numbers(&file, 9), [0, 1, 3]);
        std::fs::write(file.path(), [0xff; 100]).unwrap();
        file.append(&event(4)).unwrap();
        assert_eq!(numbers(&file, 9), [4]);
    }
}
