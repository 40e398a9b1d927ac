//! The outputs of the log: a file that can be opened anew, and standard error.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::queue::Output;

/// How long to wait for room if standard error is non-blocking.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// A file that lines are appended to.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    /// Whether the last line was not written to its end.
    torn: bool,
}

impl LogFile {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), file: open(path)?, torn: false })
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

impl Output for LogFile {
    fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        if self.torn {
            // A line break ends the half line, so that the new one stands alone.
            self.file.write_all(b"\n")?;
        }
        let written = self.file.write_all(line);
        self.torn = written.is_err();
        written
    }

    fn reopen(&mut self) -> io::Result<()> {
        self.file = open(&self.path)?;
        self.torn = false;
        Ok(())
    }
}

/// Standard error, written to without the standard library. A write that hangs would hold the library's lock,
/// and the error with which the program ends could not be printed.
#[derive(Debug)]
pub(super) struct StandardError;

impl Output for StandardError {
    fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        let stderr = rustix::stdio::stderr();
        let mut rest = line;
        while !rest.is_empty() {
            match rustix::io::write(stderr, rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => rest = &rest[written..],
                Err(rustix::io::Errno::INTR) => {}
                // Another process that shares this descriptor has made it non-blocking.
                Err(rustix::io::Errno::AGAIN) => thread::sleep(RETRY_PAUSE),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_to_the_file_that_has_the_name_after_it_was_opened_anew() {
        let dir = tempfile::tempdir().unwrap();
        let (path, rotated) = (dir.path().join("log"), dir.path().join("log.1"));
        let mut file = LogFile::open(&path).unwrap();
        file.write_line(b"one\n").unwrap();
        std::fs::rename(&path, &rotated).unwrap();
        file.write_line(b"two\n").unwrap();
        file.reopen().unwrap();
        file.write_line(b"three\n").unwrap();
        assert_eq!(std::fs::read_to_string(&rotated).unwrap(), "one\ntwo\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "three\n");
    }

    #[test]
    fn the_old_file_stays_in_use_if_the_new_one_cannot_be_opened() {
        let dir = tempfile::tempdir().unwrap();
        let (path, rotated) = (dir.path().join("log"), dir.path().join("log.1"));
        let mut file = LogFile::open(&path).unwrap();
        std::fs::rename(&path, &rotated).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(file.reopen().is_err());
        file.write_line(b"kept\n").unwrap();
        assert_eq!(std::fs::read_to_string(&rotated).unwrap(), "kept\n");
    }
}
