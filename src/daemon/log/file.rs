//! A log file that can be opened anew while lines are written.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A file that lines are appended to.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    file: Mutex<File>,
}

impl LogFile {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), file: Mutex::new(open(path)?) })
    }

    /// Opens the file that has the name now. If that fails the old one stays in use.
    pub(super) fn reopen(&self) -> io::Result<()> {
        let file = open(&self.path)?;
        *self.lock() = file;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, File> {
        // A line that was half written when a thread broke off does no harm to the next.
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

impl Write for &LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().write(bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.lock().write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lock().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_to_the_file_that_has_the_name_after_it_was_opened_anew() {
        let dir = tempfile::tempdir().unwrap();
        let (path, rotated) = (dir.path().join("log"), dir.path().join("log.1"));
        let file = LogFile::open(&path).unwrap();
        (&file).write_all(b"one\n").unwrap();
        std::fs::rename(&path, &rotated).unwrap();
        (&file).write_all(b"two\n").unwrap();
        file.reopen().unwrap();
        (&file).write_all(b"three\n").unwrap();
        assert_eq!(std::fs::read_to_string(&rotated).unwrap(), "one\ntwo\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "three\n");
    }

    #[test]
    fn the_old_file_stays_in_use_if_the_new_one_cannot_be_opened() {
        let dir = tempfile::tempdir().unwrap();
        let (path, rotated) = (dir.path().join("log"), dir.path().join("log.1"));
        let file = LogFile::open(&path).unwrap();
        std::fs::rename(&path, &rotated).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(file.reopen().is_err());
        (&file).write_all(b"kept\n").unwrap();
        assert_eq!(std::fs::read_to_string(&rotated).unwrap(), "kept\n");
    }
}
