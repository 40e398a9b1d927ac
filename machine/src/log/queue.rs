//! Lines that wait to be written, so that nobody waits for a reader.
//!
//! Standard error may be a terminal that somebody stopped, or a pipe to a program that hangs; a disk
//! may hang, too. So a thread of its own writes, and what does not fit into its queue is lost and
//! counted. Making the descriptor non-blocking would not do: others share it, and would suddenly
//! fail.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tracing::{error, info, warn};

use super::SUPPRESSED;
use crate::privileges;

/// Most bytes of lines that wait: some minutes of a busy log.
const MAX_BYTES: usize = 1 << 20;
/// What a line takes beside its bytes, at least.
const LINE_OVERHEAD_BYTES: usize = 32;
/// While lines go on being lost, this is said so often.
const TELL_INTERVAL: Duration = Duration::from_secs(1);

/// Where lines end up.
pub(super) trait Output: Send + 'static {
    /// Writes a whole line; may take as long as it likes.
    fn write_line(&mut self, line: &[u8]) -> io::Result<()>;

    /// Opens what it writes to anew. If that fails the old one stays in use.
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
    /// There is something to do, or nothing any more.
    changed: Condvar,
    /// Lines lost since the start: there was no room for them, or writing them failed.
    lost: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: VecDeque<Box<[u8]>>,
    bytes: usize,
    reopen: bool,
    /// A line is being written.
    writing: bool,
    /// No more lines will come.
    closed: bool,
}

enum Job {
    Line(Box<[u8]>),
    Reopen,
}

impl LineQueue {
    /// Begins to write to `output`, which is called `to` where the lost lines are told. The thread
    /// has no privileges once this returns.
    ///
    /// # Errors
    /// If there can be no thread, or it cannot give up its privileges.
    pub(super) fn start(to: &'static str, output: impl Output) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (ready, is_ready) = mpsc::channel();
        let theirs = Arc::clone(&shared);
        let run = move || {
            let given_up = privileges::give_up_of_this_thread();
            let goes_on = given_up.is_ok();
            // The thread that started this one waits until this is sent.
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

    /// Lines lost since the start.
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
    /// Takes all of `bytes` for one line. Nothing at all is no line: a formatter leaves those empty
    /// that are not to be written.
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
        // The queue is whole whenever a thread may break off.
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

    /// The last thing is done. Returns whether nothing waits now.
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
            // Lost lines are told of when lines flow again, and not with every line before.
            if idle || told_at.is_none_or(|at| at.elapsed() >= TELL_INTERVAL) {
                warn!(target: SUPPRESSED, lines = lost - told, to, "log lines are lost: they were not read, or could not be written");
                told = lost;
                told_at = Some(Instant::now());
            }
        }
    }
}

/// Says how it went. Nothing is known of the next line then.
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

    /// Writes a line whenever the test lets it, or fails.
    struct Gate {
        permits: mpsc::Receiver<io::Result<()>>,
        written: Arc<Mutex<Vec<Box<[u8]>>>>,
    }

    impl Output for Gate {
        fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
            // When its test has ended, the output lets all lines pass.
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
        // One more line may have left the queue for the output, which takes none.
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
