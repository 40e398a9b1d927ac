//! Runs a daemon in the background, by fork and pid file.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::pipe::PipeFlags;
use thiserror::Error;

use super::fork::{Side, fork};
use super::log;

/// How long to wait until a process that was killed releases its pid file.
const RELEASE_LIMIT: Duration = Duration::from_secs(1);
/// How often the pid file is tried during that time.
const RELEASE_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How many bytes of a pid file are read, which is more than any process id with its newline has.
const MAX_PID_BYTES: u64 = 16;

/// Why a daemon cannot run in the background.
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
    /// The file that was named is no pid file. It is left as it is.
    #[error(
        "{} is no pid file: it holds something else than a process id; name another, or remove it",
        path.display()
    )]
    NoPidFile {
        /// What was named as pid file.
        path: PathBuf,
    },
    /// The pid file cannot be written.
    #[error("cannot write the pid file {}", path.display())]
    PidFile {
        /// The pid file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The kernel refused.
    #[error("cannot run in the background: {doing}")]
    Detach {
        /// What was being done.
        doing: &'static str,
        /// What the system says.
        source: io::Error,
    },
}

/// Which process returns from [`detach`].
#[derive(Debug)]
pub(crate) enum Detached {
    /// The process that was started. The daemon is ready or has failed, and this process is to exit with this
    /// status.
    Parent(ExitCode),
    /// The daemon. Its standard error still belongs to whoever started it.
    Daemon(Starter),
}

/// The pipe to the parent process, which waits for the daemon to be ready.
#[derive(Debug)]
pub struct Starter {
    pipe: OwnedFd,
}

/// Forks. The parent waits until the daemon says that it is ready, or ends. To be called while the process
/// has one thread.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn detach() -> Result<Detached, ProcessError> {
    let failed = |doing| move |source| ProcessError::Detach { doing, source };
    let (read, write) =
        rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|e| failed("making a pipe")(e.into()))?;
    match fork().map_err(failed("forking"))? {
        Side::Parent => {
            drop(write);
            let mut ready = [0];
            let heard = File::from(read).read_exact(&mut ready);
            // A daemon that fails prints the reason to standard error, which both processes share.
            Ok(Detached::Parent(if heard.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }))
        }
        Side::Child => {
            rustix::process::setsid().map_err(|e| failed("leaving the terminal")(e.into()))?;
            Ok(Detached::Daemon(Starter { pipe: write }))
        }
    }
}

impl Starter {
    /// Tells the parent that the daemon is ready, and closes the standard streams.
    ///
    /// # Errors
    /// If `/dev/null` cannot be opened.
    pub fn ready(self) -> Result<(), ProcessError> {
        let failed = |source| ProcessError::Detach { doing: "closing the standard streams", source };
        let null = OpenOptions::new().read(true).write(true).open("/dev/null").map_err(failed)?;
        // Whoever started the daemon is to see the lines that were logged so far.
        log::flush();
        rustix::stdio::dup2_stdin(&null).map_err(|e| failed(e.into()))?;
        rustix::stdio::dup2_stdout(&null).map_err(|e| failed(e.into()))?;
        rustix::stdio::dup2_stderr(&null).map_err(|e| failed(e.into()))?;
        // The daemon goes on even if the parent has been killed meanwhile.
        let _parent_may_be_gone = File::from(self.pipe).write_all(&[1]);
        Ok(())
    }
}

/// A file with this process's id, held as long as the process runs.
#[derive(Debug)]
pub(crate) struct PidFile {
    path: PathBuf,
    /// The open file, whose lock tells a running daemon's pid file from one that was left behind.
    _locked: File,
}

impl PidFile {
    /// Writes the pid file. A process that still holds it is waited for, up to a second, as it may have been
    /// killed just now.
    ///
    /// # Errors
    /// If another process holds the file, it is a file of another kind, or it cannot be written.
    pub(crate) fn create(path: &Path) -> Result<Self, ProcessError> {
        let failed = |source| ProcessError::PidFile { path: path.to_owned(), source };
        let give_up_at = Instant::now() + RELEASE_LIMIT;
        let mut file = loop {
            if let Some(file) = open_locked(path)? {
                break file;
            }
            if Instant::now() >= give_up_at {
                return Err(ProcessError::AlreadyRunning { path: path.to_owned() });
            }
            thread::sleep(RELEASE_POLL_INTERVAL);
        };
        file.set_len(0).map_err(failed)?;
        file.rewind().map_err(failed)?;
        file.write_all(format!("{}\n", std::process::id()).as_bytes()).map_err(failed)?;
        Ok(Self { path: path.to_owned(), _locked: file })
    }
}

/// Opens and locks what may be a pid file. `None` if another process holds it, or has just removed it.
fn open_locked(path: &Path) -> Result<Option<File>, ProcessError> {
    let failed = |source| ProcessError::PidFile { path: path.to_owned(), source };
    let no_pid_file = || ProcessError::NoPidFile { path: path.to_owned() };
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    // Without this flag, opening a pipe would wait for its reader.
    options.custom_flags(libc::O_NONBLOCK);
    let mut file = options.open(path).map_err(failed)?;
    let opened = file.metadata().map_err(failed)?;
    if !opened.is_file() {
        return Err(no_pid_file());
    }
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(failed(error.into())),
    }
    let mut text = Vec::new();
    Read::by_ref(&mut file).take(MAX_PID_BYTES).read_to_end(&mut text).map_err(failed)?;
    if !is_pid_text(&text) {
        return Err(no_pid_file());
    }
    // A daemon that ended between the opening and the locking above has removed the file.
    let is_there = std::fs::metadata(path).is_ok_and(|there| there.ino() == opened.ino());
    Ok(is_there.then_some(file))
}

/// Whether this is the text of a pid file, which is a number and a newline, or nothing yet.
fn is_pid_text(text: &[u8]) -> bool {
    match text.split_last() {
        None => true,
        Some((last, digits)) => *last == b'\n' && !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // This fails if the file or its directory is gone, and then nothing is to be done.
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
    fn what_is_no_pid_file_is_refused_and_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("precious");
        for text in ["interface = \"eth1\"\n", "12", "\n", "1\n2\n", "12345678901234567890123\n"] {
            std::fs::write(&path, text).unwrap();
            let error = PidFile::create(&path).unwrap_err();
            assert!(matches!(error, ProcessError::NoPidFile { .. }), "{text:?}: {error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert!(matches!(PidFile::create(Path::new("/dev/null")), Err(ProcessError::NoPidFile { .. })));
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        assert!(matches!(PidFile::create(&pipe), Err(ProcessError::NoPidFile { .. })));
        assert!(pipe.exists());
    }

    #[test]
    fn a_pid_file_whose_process_is_just_ending_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pid");
        let ending = PidFile::create(&path).unwrap();
        let _next = std::thread::scope(|scope| {
            let next = scope.spawn(|| PidFile::create(&path));
            drop(ending);
            next.join().unwrap().unwrap()
        });
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
    }

    #[test]
    fn a_pid_file_where_there_is_no_directory_is_an_error() {
        let error = PidFile::create(Path::new("/nonexistent/mapper/pid")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/mapper/pid"));
    }
}
