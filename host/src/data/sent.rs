//! Keeps the frames sent last, so that one that could not be delivered can be sent again.

use std::collections::VecDeque;
use std::time::Duration;

use mapper_proto::wire::Data;
use mapper_proto::{Instant, Mac};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// How many bytes of frames are kept at most.
const CAPACITY_BYTES: usize = 4 * 1024 * 1024;
/// How many bytes the ring has when its first frame comes.
const FIRST_BYTES: usize = 16 * 1024;
/// How many frames are kept at most.
const CAPACITY_FRAMES: usize = 1 << SEQUENCE_BITS;
/// How long a frame is kept. A notice comes within a round trip, which takes much less.
const MAX_AGE: Duration = Duration::from_millis(50);
/// How many bits of a token say which frame it is. The others are secret.
const SEQUENCE_BITS: u32 = 15;

/// A frame that was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    /// The token that it carries.
    pub(super) token: u64,
    /// The host that it was sent to.
    pub(super) to: Mac,
    /// How often it had been sent before.
    pub(super) tries: u8,
    /// When it was sent.
    at: Instant,
    /// Where in the ring its bytes begin: the route, then the frame.
    start: usize,
    length: usize,
    route_bytes: u8,
    /// Whether a notice about this frame has come.
    answered: bool,
}

/// A ring of frames sent lately, bounded in bytes, number and age.
///
/// A token has 48 bits of a stream cipher, which nobody can guess who did not see the frame, as only this
/// process has the key. Another 15 bits are the frame's sequence number, by which the frame is found.
///
/// The ring grows to its capacity as far as frames need it: a host that sends little takes little memory.
pub(super) struct SentFrames {
    bytes: Vec<u8>,
    /// How long `bytes` may become.
    capacity_bytes: usize,
    /// Where the bytes of the newest frame end.
    end: usize,
    /// The frames that are kept, oldest first.
    frames: VecDeque<Sent>,
    /// The sequence number of the oldest frame that is kept.
    first: u64,
    secrets: ChaCha8Rng,
}

impl SentFrames {
    /// A ring without frames. `secret` is the key of the tokens, so it must be random.
    pub(super) fn new(secret: u64) -> Self {
        Self::with_capacity(secret, CAPACITY_BYTES)
    }

    fn with_capacity(secret: u64, capacity_bytes: usize) -> Self {
        Self {
            bytes: Vec::new(),
            capacity_bytes,
            end: 0,
            frames: VecDeque::new(),
            first: 0,
            secrets: ChaCha8Rng::seed_from_u64(secret),
        }
    }

    /// Makes room for a route and a frame of `frame_bytes` bytes. `write` gets the frame's token and the room
    /// behind the route, and writes the frame there. Returns route and frame as they are to be sent, or
    /// `None` if together they are longer than the ring, or if `write` returned `None`.
    pub(super) fn push(
        &mut self,
        now: Instant,
        (to, tries): (Mac, u8),
        route: &[u8],
        frame_bytes: usize,
        write: impl FnOnce(u64, &mut [u8]) -> Option<usize>,
    ) -> Option<(&[u8], &[u8])> {
        let length = route.len() + frame_bytes;
        let start = self.make_room(now, length)?;
        let sequence = self.first + self.frames.len() as u64;
        let mask = (1 << SEQUENCE_BITS) - 1;
        let token = Data::user_token(self.secrets.next_u64() & !mask | sequence & mask);
        let (route_room, frame_room) = self.bytes[start..start + length].split_at_mut(route.len());
        route_room.copy_from_slice(route);
        write(token, frame_room)?;
        let route_bytes = route.len() as u8;
        self.frames.push_back(Sent {
            token,
            to,
            tries,
            at: now,
            start,
            length,
            route_bytes,
            answered: false,
        });
        self.end = start + length;
        Some(self.bytes[start..start + length].split_at(route.len()))
    }

    /// Forgets the oldest frames until there is room for one of this length. Returns where in the ring it is.
    fn make_room(&mut self, now: Instant, length: usize) -> Option<usize> {
        if length > self.capacity_bytes {
            return None;
        }
        while self.frames.front().is_some_and(|oldest| now.since(oldest.at) > MAX_AGE)
            || self.frames.len() >= CAPACITY_FRAMES
        {
            self.forget_oldest();
        }
        loop {
            if let Some(start) = self.room(length) {
                return Some(start);
            }
            if self.bytes.len() < self.capacity_bytes {
                self.grow(length);
            } else {
                self.forget_oldest();
            }
        }
    }

    /// Where in the ring there is room for so many bytes.
    fn room(&self, length: usize) -> Option<usize> {
        let Some(oldest) = self.frames.front() else { return (length <= self.bytes.len()).then_some(0) };
        // The frames lie either between `oldest.start` and `end`, or around the end of the ring. If
        // `oldest.start` equals `end`, the ring is full.
        let wrapped = self.end <= oldest.start;
        let limit = if wrapped { oldest.start } else { self.bytes.len() };
        if limit - self.end >= length {
            return Some(self.end);
        }
        (!wrapped && oldest.start >= length).then_some(0)
    }

    /// Makes the ring at least twice as long, and longer by `length`, as far as it may be. Its frames lie at the
    /// front of it then, in their order.
    fn grow(&mut self, length: usize) {
        let wanted = (2 * self.bytes.len()).max(self.bytes.len() + length).max(FIRST_BYTES);
        let mut bytes = vec![0; wanted.min(self.capacity_bytes)];
        self.end = 0;
        for sent in &mut self.frames {
            let end = self.end + sent.length;
            bytes[self.end..end].copy_from_slice(&self.bytes[sent.start..sent.start + sent.length]);
            sent.start = self.end;
            self.end = end;
        }
        self.bytes = bytes;
    }

    fn forget_oldest(&mut self) {
        self.first += u64::from(self.frames.pop_front().is_some());
    }

    /// The frame that a notice is about, if it was sent lately and no notice of it came before.
    pub(super) fn take(&mut self, now: Instant, token: u64) -> Option<Sent> {
        let mask = (1 << SEQUENCE_BITS) - 1;
        let place = token.wrapping_sub(self.first) & mask;
        let sent = self.frames.get_mut(place as usize)?;
        if sent.token != token || sent.answered || now.since(sent.at) > MAX_AGE {
            return None;
        }
        sent.answered = true;
        Some(*sent)
    }

    /// The route and the frame that were sent. `sent` must come from [`Self::take`], and nothing be
    /// sent since.
    pub(super) fn route_and_frame(&self, sent: &Sent) -> (&[u8], &[u8]) {
        self.bytes[sent.start..sent.start + sent.length].split_at(sent.route_bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Instant = Instant::from_nanos(1_000_000_000);

    fn push(ring: &mut SentFrames, now: Instant, route: &[u8], frame: &[u8]) -> u64 {
        let mut sent = 0;
        let written = |token: u64, room: &mut [u8]| {
            sent = token;
            room.copy_from_slice(frame);
            Some(room.len())
        };
        let out = ring.push(now, (Mac::from_position(1), 0), route, frame.len(), written).unwrap();
        assert_eq!(out, (route, frame));
        sent
    }

    #[test]
    fn a_frame_is_found_by_its_token_once() {
        let mut ring = SentFrames::new(1);
        let token = push(&mut ring, NOW, &[0x81], b"hello");
        let other = push(&mut ring, NOW, &[0x82], b"world");
        let sent = ring.take(NOW, token).unwrap();
        assert_eq!(ring.route_and_frame(&sent), (&[0x81][..], &b"hello"[..]));
        assert!(ring.take(NOW, token).is_none(), "again");
        assert!(ring.take(NOW, other ^ 1 << 40).is_none(), "guessed");
        assert!(ring.take(NOW, other).is_some());
    }

    #[test]
    fn what_is_old_is_forgotten() {
        let mut ring = SentFrames::new(1);
        let token = push(&mut ring, NOW, &[], b"hello");
        assert!(ring.take(NOW + MAX_AGE + Duration::from_nanos(1), token).is_none());
        assert!(ring.take(NOW + MAX_AGE, token).is_some());
    }

    #[test]
    fn tokens_of_another_process_are_others() {
        let token = |secret| push(&mut SentFrames::new(secret), NOW, &[], b"x");
        assert_eq!(token(1), token(1));
        assert_ne!(token(1), token(2));
    }

    #[test]
    fn the_number_of_frames_is_bounded() {
        let mut ring = SentFrames::new(1);
        let first = push(&mut ring, NOW, &[], b"x");
        for _ in 0..CAPACITY_FRAMES {
            push(&mut ring, NOW, &[], b"x");
        }
        assert_eq!(ring.frames.len(), CAPACITY_FRAMES);
        assert!(ring.take(NOW, first).is_none());
    }

    #[test]
    fn one_that_is_longer_than_the_ring_is_not_kept() {
        let mut ring = SentFrames::with_capacity(1, 10);
        let write = |_, room: &mut [u8]| Some(room.len());
        assert!(ring.push(NOW, (Mac::default(), 0), &[], 11, write).is_none());
    }

    #[test]
    fn memory_is_taken_as_frames_need_it() {
        let mut ring = SentFrames::new(1);
        assert_eq!(ring.bytes.len(), 0);
        let first = push(&mut ring, NOW, &[0x81], &[7; 1400]);
        assert_eq!(ring.bytes.len(), FIRST_BYTES);
        for _ in 0..4000 {
            push(&mut ring, NOW, &[0x82], &[8; 1400]);
        }
        assert_eq!(ring.bytes.len(), CAPACITY_BYTES);
        assert!(ring.take(NOW, first).is_none(), "it had to go");
        let frames = ring.frames.len();
        assert!(frames > CAPACITY_BYTES / 1401 - 2, "{frames}");
    }

    #[test]
    fn frames_move_with_a_ring_that_grows() {
        let mut ring = SentFrames::new(1);
        // The first are forgotten, so that the ring goes round its end before it grows.
        let later = NOW + 2 * MAX_AGE;
        for _ in 0..9 {
            push(&mut ring, NOW, &[], &[1; 1400]);
        }
        let tokens: Vec<_> = (0..40u8).map(|n| push(&mut ring, later, &[n], &[n; 1400])).collect();
        for (n, token) in (0..).zip(tokens) {
            let sent = ring.take(later, token).unwrap();
            assert_eq!(ring.route_and_frame(&sent), (&[n][..], &[n; 1400][..]));
        }
    }

    proptest! {
        /// The model keeps all frames. The ring must have kept the newest of them unharmed, and as many as
        /// fit.
        #[test]
        fn frames_that_are_kept_are_whole(
            lengths in proptest::collection::vec(1..40usize, 1..200),
            capacity in 40..200usize,
        ) {
            let mut ring = SentFrames::with_capacity(3, capacity);
            let mut model = Vec::new();
            for (i, length) in lengths.into_iter().enumerate() {
                let frame = vec![i as u8; length];
                let token = push(&mut ring, NOW, &[], &frame);
                model.push((token, frame));
                let kept = ring.frames.len();
                let bytes: usize = model.iter().rev().take(kept).map(|(_, frame)| frame.len()).sum();
                prop_assert!(bytes <= capacity);
                // At the ring's end less than the longest frame is unused, and the next older frame is longer
                // than what is left besides.
                prop_assert!(kept == model.len() || bytes + 2 * 40 > capacity);
                for (sent, (token, frame)) in ring.frames.iter().rev().zip(model.iter().rev()) {
                    prop_assert_eq!(sent.token, *token);
                    prop_assert_eq!(ring.route_and_frame(sent).1, &frame[..]);
                }
            }
        }
    }
}
