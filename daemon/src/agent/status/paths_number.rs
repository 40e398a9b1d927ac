//! How often the paths of a host have changed, in a file that other processes of the machine read at any moment.
//!
//! A process that remembers paths must know at once when they may no longer hold. A message would arrive only
//! when the process wakes up for it, and until then it would tell paths through cables that the new map does
//! not have. The agent changes the number in the file before it does anything else with a new map.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The file with the number of an agent.
pub fn paths_number_path(run_dir: &Path, unit: u8) -> PathBuf {
    run_dir.join(format!("{unit}.paths"))
}

/// The agent's side, which raises the number. When it is dropped, the file is removed, and a process that
/// still has it open sees the number rise once more, so that it relies on no path.
#[derive(Debug)]
pub struct PathsNumber {
    path: PathBuf,
    file: File,
    number: u64,
}

impl PathsNumber {
    /// Makes the file. If an agent that was killed has left one behind, it is taken over and its number is
    /// raised.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let number = read(&file).unwrap_or(0);
        let mut opened = Self { path: path.to_owned(), file, number };
        opened.raise()?;
        Ok(opened)
    }

    /// The number as it is now.
    pub const fn get(&self) -> u64 {
        self.number
    }

    /// Says that paths have changed.
    ///
    /// # Errors
    /// If the file cannot be written. Processes that read it then do not know of the change.
    pub fn raise(&mut self) -> io::Result<()> {
        self.number = self.number.wrapping_add(1);
        self.file.write_all_at(&self.number.to_le_bytes(), 0)
    }
}

impl Drop for PathsNumber {
    fn drop(&mut self) {
        // This fails only if the file is gone, or if it could not be written before, of which the agent has
        // warned.
        let _last = self.raise();
        let _removed = std::fs::remove_file(&self.path);
    }
}

/// The side of a process that remembers paths.
#[derive(Debug)]
pub struct PathsNumberReader(File);

impl PathsNumberReader {
    /// Opens the file of an agent.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        File::open(path).map(Self)
    }

    /// The number of now; `None` if the file has none.
    pub fn get(&self) -> Option<u64> {
        read(&self.0)
    }
}

fn read(file: &File) -> Option<u64> {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, 0).ok()?;
    Some(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_the_file_open_sees_each_change_and_the_next_start() {
        let dir = tempfile::tempdir().unwrap();
        let path = paths_number_path(dir.path(), 3);
        assert!(PathsNumberReader::open(&path).is_err());
        let mut agent = PathsNumber::open(&path).unwrap();
        let reader = PathsNumberReader::open(&path).unwrap();
        assert_eq!(reader.get(), Some(agent.get()));
        agent.raise().unwrap();
        let before = agent.get();
        assert_eq!(reader.get(), Some(before));
        // An agent that is killed leaves the file, and the next one goes on with it.
        std::mem::forget(agent);
        let again = PathsNumber::open(&path).unwrap();
        assert!(reader.get() == Some(again.get()) && again.get() != before);
        let last = again.get();
        drop(again);
        assert!(reader.get() != Some(last) && !path.exists());
        std::fs::write(&path, "abc").unwrap();
        assert_eq!(PathsNumberReader::open(&path).unwrap().get(), None);
    }
}
