//! Undelivered frames that have no other route yet. Many destinations have only one route, and the repaired
//! table, which avoids the dead cable, comes within milliseconds.

use std::collections::VecDeque;
use std::time::Duration;

use mapper_proto::{Instant, Mac};

/// How long a frame waits at most. The table comes much sooner, or not at all.
const PATIENCE: Duration = Duration::from_millis(50);
/// How many bytes of frames wait at most.
const CAPACITY_BYTES: usize = 1024 * 1024;

/// A user's frame that waits for a route.
#[derive(Debug)]
pub(super) struct WaitingFrame {
    pub(super) to: Mac,
    /// How often the frame had been sent before the last time.
    pub(super) tries: u8,
    pub(super) frame: Vec<u8>,
    since: Instant,
}

/// Frames that wait, in the order in which they were sent.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    frames: VecDeque<WaitingFrame>,
    bytes: usize,
}

impl Waiting {
    /// Has a frame wait. Returns false if there is no room.
    pub(super) fn push(&mut self, now: Instant, to: Mac, tries: u8, frame: &[u8]) -> bool {
        let fits = self.bytes + frame.len() <= CAPACITY_BYTES;
        if fits {
            self.bytes += frame.len();
            self.frames.push_back(WaitingFrame { to, tries, frame: frame.to_vec(), since: now });
        }
        fits
    }

    /// Drops the frames that have waited too long. Returns how many there were.
    pub(super) fn expire(&mut self, now: Instant) -> u64 {
        let before = self.frames.len();
        while let Some(oldest) = self.frames.front().filter(|oldest| now.since(oldest.since) > PATIENCE) {
            self.bytes -= oldest.frame.len();
            self.frames.pop_front();
        }
        (before - self.frames.len()) as u64
    }

    /// Takes out all frames that wait.
    pub(super) fn take(&mut self) -> VecDeque<WaitingFrame> {
        self.bytes = 0;
        std::mem::take(&mut self.frames)
    }
}
