//! Running in the background: fork and pid file.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rustix::fs::FlockOperation;
use rustix::pipe::PipeFlags;
use thiserror::Error;

use super::fork::{Side, fork};

/// A daemon that cannot run in the background.
#[derive(Debug, Error)]
pub enum ProcessError {
    /// Another process holds the pid file.
    #[error(
        "{} is held by a running process; stop that one first, or name another pid file",
        path.display()
    )]
    AlreadyRunning {
        /// The pid file.
        path: PathBuf,
    },
    /// The pid file cannot be written.
    #[error("cannot write the pid file {}", path.display())]
    PidFile {
        /// The pid file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The kernel refused.
    #[error("cannot run in the background: {doing}")]
    Detach {
        /// What was being done.
        doing: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// Which process returns from [`detach`].
#[derive(Debug)]
pub enum Detached {
    /// The one that was started: the daemon is ready or has failed; leave with this status.
    Parent(ExitCode),
    /// The daemon. Standard error still leads to whoever started it.
    Daemon(Starter),
}

/// The way back to the process that waits for the daemon to be ready.
#[derive(Debug)]
pub struct Starter {
    pipe: OwnedFd,
}

/// Forks. The parent waits until the daemon says that it is ready, or ends. Call it while the
/// process has one thread.
///
/// # Errors
/// If the kernel refuses.
pub fn detach() -> Result<Detached, ProcessError> {
    let failed = |doing| move |source| ProcessError::Detach { doing, source };
    let (read, write) =
        rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|e| failed("making a pipe")(e.into()))?;
    match fork().map_err(failed("forking"))? {
        Side::Parent => {
            drop(write);
            let mut ready = [0];
            let heard = File::from(read).read_exact(&mut ready);
            // A daemon that fails says why on the standard error that it shares with us.
            Ok(Detached::Parent(if heard.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }))
        }
        Side::Child => {
            rustix::process::setsid().map_err(|e| failed("leaving the terminal")(e.into()))?;
            Ok(Detached::Daemon(Starter { pipe: write }))
        }
    }
}

impl Starter {
    /// Lets the parent go, and the standard streams with it.
    ///
    /// # Errors
    /// If `/dev/null` cannot be opened.
    pub fn ready(self) -> Result<(), ProcessError> {
        let failed = |source| ProcessError::Detach { doing: "closing the standard streams", source };
        let null = OpenOptions::new().read(true).write(true).open("/dev/null").map_err(failed)?;
        rustix::stdio::dup2_stdin(&null).map_err(|e| failed(e.into()))?;
        rustix::stdio::dup2_stdout(&null).map_err(|e| failed(e.into()))?;
        rustix::stdio::dup2_stderr(&null).map_err(|e| failed(e.into()))?;
        // A parent that has been killed meanwhile is no reason to stop.
        let _parent_may_be_gone = File::from(self.pipe).write_all(&[1]);
        Ok(())
    }
}

/// A file with this process's id, held as long as the process runs.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
    /// The lock on it tells a running daemon's file from one that was left behind.
    _locked: File,
}

impl PidFile {
    /// Writes it.
    ///
    /// # Errors
    /// If another process holds it, or it cannot be written.
    pub fn create(path: &Path) -> Result<Self, ProcessError> {
        let failed = |source| ProcessError::PidFile { path: path.to_owned(), source };
        let mut file =
            OpenOptions::new().create(true).truncate(false).write(true).open(path).map_err(failed)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(ProcessError::AlreadyRunning { path: path.to_owned() });
            }
            Err(error) => return Err(failed(error.into())),
        }
        file.set_len(0).map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Self { path: path.to_owned(), _locked: file })
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // Nothing is left to be done about a directory that has gone.
        let _already_gone = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_file_is_held_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pid");
        let held = PidFile::create(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("{}\n", std::process::id()));
        assert!(matches!(PidFile::create(&path), Err(ProcessError::AlreadyRunning { .. })));
        drop(held);
        assert!(!path.exists());
    }

    #[test]
    fn a_pid_file_left_behind_is_taken_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pid");
        std::fs::write(&path, "123456789\n").unwrap();
        let _held = PidFile::create(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
    }

    #[test]
    fn a_pid_file_where_there_is_no_directory_is_an_error() {
        let error = PidFile::create(Path::new("/nonexistent/mapper/pid")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/mapper/pid"));
    }
}
