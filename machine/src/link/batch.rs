//! Batches of frames that are received or sent by one system call.

use std::io::IoSlice;

use super::ethernet::MAX_FRAME_BYTES;

/// How many frames a batch holds.
pub const BATCH_FRAMES: usize = 64;
/// The distance from the start of one frame to that of the next. It is not a power of two, as then the
/// headers of a batch would compete for a few lines of the processor's cache.
const STRIDE_BYTES: usize = MAX_FRAME_BYTES + 192;
/// The bytes at which a queue of frames is sent.
const QUEUE_BYTES: usize = 128 * 1024;

/// Frames that were received together, in the order of their arrival.
#[derive(Debug)]
pub struct Batch {
    /// The room for all frames, in which frame n begins at n times [`STRIDE_BYTES`].
    bytes: Vec<u8>,
    /// How long each frame is.
    lengths: Vec<usize>,
    /// Bit n says that frame n was too long and that its end is missing.
    cut_off: u64,
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Batch {
    /// An empty batch with room for [`BATCH_FRAMES`] frames of [`MAX_FRAME_BYTES`] bytes.
    pub fn new() -> Self {
        Self {
            bytes: vec![0; BATCH_FRAMES * STRIDE_BYTES],
            lengths: Vec::with_capacity(BATCH_FRAMES),
            cut_off: 0,
        }
    }

    /// How many frames are in it.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether no frame is in it.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Whether there is no room for another frame, in which case more frames probably wait.
    pub(crate) fn is_full(&self) -> bool {
        self.lengths.len() == BATCH_FRAMES
    }

    /// How many bytes all its frames have together.
    pub(crate) fn total_bytes(&self) -> usize {
        self.lengths.iter().sum()
    }

    /// Frame `nth` with its header; empty beyond the last frame.
    pub fn frame(&self, nth: usize) -> &[u8] {
        let length = self.lengths.get(nth).copied().unwrap_or(0);
        &self.bytes[nth.min(BATCH_FRAMES - 1) * STRIDE_BYTES..][..length]
    }

    /// Frame `nth` with its header, to be changed in place; empty beyond the last frame.
    pub fn frame_mut(&mut self, nth: usize) -> &mut [u8] {
        let length = self.lengths.get(nth).copied().unwrap_or(0);
        &mut self.bytes[nth.min(BATCH_FRAMES - 1) * STRIDE_BYTES..][..length]
    }

    /// All frames.
    pub fn frames(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|nth| self.frame(nth))
    }

    /// Whether frame `nth` was longer than [`MAX_FRAME_BYTES`], so that its end is missing.
    pub const fn is_cut_off(&self, nth: usize) -> bool {
        nth < BATCH_FRAMES && self.cut_off & (1 << nth) != 0
    }

    /// Forgets all frames.
    pub fn clear(&mut self) {
        self.lengths.clear();
        self.cut_off = 0;
    }

    /// Adds a frame. Returns false if there is no room or it is too long.
    pub(super) fn push(&mut self, frame: &[u8]) -> bool {
        if self.is_full() || frame.len() > MAX_FRAME_BYTES {
            return false;
        }
        let begin = self.len() * STRIDE_BYTES;
        self.bytes[begin..][..frame.len()].copy_from_slice(frame);
        self.lengths.push(frame.len());
        true
    }

    /// The rooms for its frames, into which the kernel writes.
    pub(super) fn places(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.bytes.chunks_exact_mut(STRIDE_BYTES).map(|place| &mut place[..MAX_FRAME_BYTES])
    }

    /// Adds the next frame, whose bytes the kernel has written already.
    pub(super) fn add_placed(&mut self, length: usize, cut_off: bool) {
        if self.is_full() {
            return;
        }
        self.cut_off |= u64::from(cut_off) << self.len();
        self.lengths.push(length.min(MAX_FRAME_BYTES));
    }
}

/// Frames that wait to be sent together.
#[derive(Debug, Default)]
pub(super) struct SendQueue {
    bytes: Vec<u8>,
    /// Where each frame ends.
    ends: Vec<usize>,
}

impl SendQueue {
    /// Adds a frame that is given in parts.
    pub(super) fn push(&mut self, parts: [&[u8]; 3]) {
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.ends.push(self.bytes.len());
    }

    /// Whether the queue is to be sent before more is added.
    pub(super) fn is_full(&self) -> bool {
        self.ends.len() >= BATCH_FRAMES || self.bytes.len() >= QUEUE_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// The frames, each in two parts as sending wants them; the second is empty.
    pub(super) fn frames(&self) -> Vec<[IoSlice<'_>; 2]> {
        let mut begin = 0;
        let frame = |&end: &usize| {
            let bytes = &self.bytes[begin..end];
            begin = end;
            [IoSlice::new(bytes), IoSlice::new(&[])]
        };
        self.ends.iter().map(frame).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_keeps_frames_in_order_and_takes_no_more_than_it_holds() {
        let mut batch = Batch::new();
        for nth in 0..BATCH_FRAMES {
            assert!(!batch.is_full());
            assert!(batch.push(&vec![nth as u8; nth]));
        }
        assert!(batch.is_full() && !batch.push(&[1]));
        for (nth, frame) in batch.frames().enumerate() {
            assert_eq!(frame, vec![nth as u8; nth]);
        }
        assert!(batch.frame(BATCH_FRAMES).is_empty());
        assert_eq!(batch.total_bytes(), (0..BATCH_FRAMES).sum::<usize>());
        batch.clear();
        assert!(batch.is_empty() && !batch.push(&vec![0; MAX_FRAME_BYTES + 1]));
    }

    #[test]
    fn a_frame_that_was_cut_off_is_marked() {
        let mut batch = Batch::new();
        batch.add_placed(60, false);
        batch.add_placed(MAX_FRAME_BYTES + 5, true);
        assert_eq!((batch.is_cut_off(0), batch.is_cut_off(1)), (false, true));
        assert_eq!(batch.frame(1).len(), MAX_FRAME_BYTES);
        batch.clear();
        assert!(!batch.is_cut_off(1));
    }
}
