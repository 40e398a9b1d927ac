//! A queue of log lines, so that whoever logs never waits for a reader.
//!
//! Standard error may be a terminal that somebody stopped, or a pipe to a program that hangs; a disk
//! may hang, too. So a thread of its own writes the lines, and lines that do not fit into its queue are lost
//! and counted. Making the descriptor non-blocking is no alternative: other processes share it, and their
//! writes would fail.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tracing::{error, info, warn};

use super::SUPPRESSED;
use crate::privileges;

/// How many bytes of lines wait at most, which is some minutes of a busy log.
const MAX_BYTES: usize = 1 << 20;
/// How many bytes a line takes besides its text, at least.
const LINE_OVERHEAD_BYTES: usize = 32;
/// How often it is logged that lines are lost, while more and more are.
const TELL_INTERVAL: Duration = Duration::from_secs(1);

/// Where lines end up.
pub(super) trait Output: Send + 'static {
    /// Writes a whole line, however long that takes.
    fn write_line(&mut self, line: &[u8]) -> io::Result<()>;

    /// Opens the output anew. If that fails, the old one stays in use.
    fn reopen(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes lines in without ever waiting, and has a thread write them.
#[derive(Debug)]
pub(super) struct LineQueue {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// Notified when there is something to do, and when something was done.
    changed: Condvar,
    /// How many lines were lost since the start, as there was no room for them or they could not be written.
    lost: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: VecDeque<Box<[u8]>>,
    bytes: usize,
    reopen: bool,
    /// Whether the thread is writing a line or opening the output anew.
    writing: bool,
    /// Whether no more lines will come.
    closed: bool,
}

enum Job {
    Line(Box<[u8]>),
    Reopen,
}

impl LineQueue {
    /// Starts the thread that writes to `output`, which lines about lost lines call `to`. The thread has no
    /// privileges once this returns.
    ///
    /// # Errors
    /// If no thread can be started, or it cannot give up its privileges.
    pub(super) fn start(to: &'static str, output: impl Output) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (ready, is_ready) = mpsc::channel();
        let theirs = Arc::clone(&shared);
        let run = move || {
            let given_up = privileges::give_up_of_this_thread();
            let goes_on = given_up.is_ok();
            // Whoever starts the queue waits for this message.
            let _heard = ready.send(given_up);
            if goes_on {
                theirs.write_all_lines(to, output);
            }
        };
        let _detached = thread::Builder::new().name("log".to_owned()).spawn(run)?;
        match is_ready.recv() {
            Ok(Ok(())) => Ok(Self { shared }),
            Ok(Err(error)) => Err(io::Error::other(error)),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// How many lines were lost since the start.
    pub(super) fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// Has the output opened anew, before the next line is written.
    pub(super) fn reopen(&self) {
        self.shared.lock().reopen = true;
        self.shared.changed.notify_all();
    }

    /// Waits until all lines are written, but not beyond `deadline`. Returns whether they are.
    pub(super) fn flush(&self, deadline: Instant) -> bool {
        let mut waiting = self.shared.lock();
        while !waiting.lines.is_empty() || waiting.writing || waiting.reopen {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.shared.changed.wait_timeout(waiting, left);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    fn push(&self, line: &[u8]) {
        let mut waiting = self.shared.lock();
        let bytes = line.len() + LINE_OVERHEAD_BYTES;
        if waiting.bytes + bytes > MAX_BYTES {
            self.shared.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.bytes += bytes;
        waiting.lines.push_back(line.into());
        drop(waiting);
        self.shared.changed.notify_all();
    }
}

impl Drop for LineQueue {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
    }
}

impl Write for &LineQueue {
    /// Takes all of `bytes` as one line. Empty text is not a line: the formatter leaves a line empty that is
    /// not to be written.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !bytes.is_empty() {
            self.push(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // A thread that panicked while it held the lock left the queue consistent.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next thing to do; `None` if nothing will come any more.
    fn next(&self) -> Option<Job> {
        let mut waiting = self.lock();
        loop {
            if std::mem::take(&mut waiting.reopen) {
                waiting.writing = true;
                return Some(Job::Reopen);
            }
            if let Some(line) = waiting.lines.pop_front() {
                waiting.bytes -= line.len() + LINE_OVERHEAD_BYTES;
                waiting.writing = true;
                return Some(Job::Line(line));
            }
            if waiting.closed {
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Notes that the last job is done. Returns whether no line waits now.
    fn done(&self) -> bool {
        let mut waiting = self.lock();
        waiting.writing = false;
        let idle = waiting.lines.is_empty();
        drop(waiting);
        self.changed.notify_all();
        idle
    }

    fn write_all_lines(&self, to: &'static str, mut output: impl Output) {
        let mut told = 0;
        let mut told_at: Option<Instant> = None;
        while let Some(job) = self.next() {
            let flows = match job {
                Job::Line(line) => match output.write_line(&line) {
                    Ok(()) => true,
                    Err(_) => {
                        self.lost.fetch_add(1, Ordering::Relaxed);
                        false
                    }
                },
                Job::Reopen => reopen(&mut output),
            };
            let lost = self.lost.load(Ordering::Relaxed);
            let idle = self.done();
            if !flows || lost == told {
                continue;
            }
            // Lost lines are logged when the queue is empty again, and until then only now and then.
            if idle || told_at.is_none_or(|at| at.elapsed() >= TELL_INTERVAL) {
                warn!(target: SUPPRESSED, lines = lost - told, to, "log lines are lost: they were not read, or could not be written");
                told = lost;
                told_at = Some(Instant::now());
            }
        }
    }
}

/// Opens the output anew and logs how that went. Returns false, as this does not tell whether lines can be
/// written.
fn reopen(output: &mut impl Output) -> bool {
    match output.reopen() {
        Ok(()) => info!("the log file is opened anew"),
        Err(error) => error!(%error, "cannot open the log file anew; the old one stays in use"),
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An output that writes a line, or fails, whenever the test lets it.
    struct Gate {
        permits: mpsc::Receiver<io::Result<()>>,
        written: Arc<Mutex<Vec<Box<[u8]>>>>,
    }

    impl Output for Gate {
        fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
            // Once the test has dropped its end, all lines are written.
            self.permits.recv().unwrap_or(Ok(()))?;
            self.written.lock().unwrap().push(line.into());
            Ok(())
        }
    }

    struct Gated {
        queue: LineQueue,
        permits: mpsc::Sender<io::Result<()>>,
        written: Arc<Mutex<Vec<Box<[u8]>>>>,
    }

    fn gated() -> Gated {
        let (permits, permitted) = mpsc::channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let output = Gate { permits: permitted, written: Arc::clone(&written) };
        let queue = LineQueue::start("a gate", output).unwrap();
        Gated { queue, permits, written }
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn lines_that_nobody_reads_are_lost_and_counted_and_hold_nobody_up() {
        let Gated { queue, permits, written } = gated();
        let line = [b'x'; 1000];
        let fit = MAX_BYTES / (line.len() + LINE_OVERHEAD_BYTES);
        for _ in 0..3 * fit {
            (&queue).write_all(&line).unwrap();
        }
        // Beside the lines in the queue, one may have left it for the output, which takes none.
        let lost = queue.lost() as usize;
        assert!((2 * fit - 1..=2 * fit).contains(&lost), "{lost} of {}", 3 * fit);
        assert!(!queue.flush(Instant::now()), "they wait");
        drop(permits);
        assert!(queue.flush(Instant::now() + LONG));
        assert_eq!(written.lock().unwrap().len() + lost, 3 * fit);
        (&queue).write_all(b"later").unwrap();
        assert!(queue.flush(Instant::now() + LONG));
        assert_eq!(&**written.lock().unwrap().last().unwrap(), b"later");
        assert_eq!(queue.lost() as usize, lost);
    }

    #[test]
    fn a_line_that_cannot_be_written_is_counted_and_the_next_is_tried() {
        let Gated { queue, permits, written } = gated();
        permits.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
        permits.send(Ok(())).unwrap();
        (&queue).write_all(b"one").unwrap();
        (&queue).write_all(b"two").unwrap();
        assert!(queue.flush(Instant::now() + LONG));
        assert_eq!(queue.lost(), 1);
        assert_eq!(*written.lock().unwrap(), [Box::from(*b"two")]);
    }

    #[test]
    fn nothing_is_no_line() {
        let Gated { queue, permits, written } = gated();
        drop(permits);
        (&queue).write_all(b"").unwrap();
        assert!(queue.flush(Instant::now() + LONG));
        assert!(written.lock().unwrap().is_empty());
    }
}
