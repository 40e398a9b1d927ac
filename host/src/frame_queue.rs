//! A queue of frames whose memory is used again.

use std::collections::VecDeque;

/// How much memory an empty queue keeps. A broadcast to thousands of hosts may have needed much more.
const KEPT_BYTES: usize = 256 * 1024;

/// Frames in the order in which they were put in, each in two parts.
///
/// A frame that is taken stays in the queue's memory until a frame is put into the empty queue. So taking a
/// frame costs no copy.
#[derive(Debug, Default)]
pub(crate) struct FrameQueue {
    bytes: Vec<u8>,
    /// For each frame, where its first part ends and where its second part ends.
    ends: VecDeque<(usize, usize)>,
    /// Where the next frame to be taken begins.
    start: usize,
}

impl FrameQueue {
    pub(crate) fn push(&mut self, first: &[u8], second: &[u8]) {
        if self.ends.is_empty() {
            self.start = 0;
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES);
        }
        self.bytes.extend_from_slice(first);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(second);
        self.ends.push_back((middle, self.bytes.len()));
    }

    /// Takes the oldest frame out.
    pub(crate) fn pop(&mut self) -> Option<(&[u8], &[u8])> {
        let (middle, end) = self.ends.pop_front()?;
        let start = std::mem::replace(&mut self.start, end);
        Some((&self.bytes[start..middle], &self.bytes[middle..end]))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_whole_and_in_order() {
        let mut queue = FrameQueue::default();
        queue.push(b"a", b"bc");
        queue.push(b"", b"d");
        assert_eq!(queue.pop(), Some((&b"a"[..], &b"bc"[..])));
        queue.push(b"ef", b"");
        assert_eq!(queue.pop(), Some((&b""[..], &b"d"[..])));
        assert_eq!(queue.pop(), Some((&b"ef"[..], &b""[..])));
        assert_eq!(queue.pop(), None);
        assert!(queue.is_empty());
        queue.push(b"g", b"h");
        assert_eq!(queue.pop(), Some((&b"g"[..], &b"h"[..])));
    }

    #[test]
    fn memory_of_a_burst_is_given_back() {
        let mut queue = FrameQueue::default();
        let frame = vec![1; 9000];
        (0..1000).for_each(|_| queue.push(&[2], &frame));
        while queue.pop().is_some() {}
        queue.push(&[2], &frame);
        assert!(queue.bytes.capacity() <= KEPT_BYTES);
    }
}
