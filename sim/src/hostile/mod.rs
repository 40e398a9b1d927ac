//! A hostile agent, which attacks the others.
//!
//! It listens, learns the ways to its neighbours, and at a bounded rate sends them frames that are cut short,
//! too long, garbled, replayed or forged. A seed decides all of it.

mod endless;
mod forge;

use std::collections::VecDeque;
use std::time::Duration;

use mapper_proto::agent::Transmit;
use mapper_proto::wire::{
    Element, Info, MAX_FRAME_BYTES, Message, Reason, Route, ServiceNumber, split_route,
};
use mapper_proto::{Instant, Mac};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::node::SimulatedHost;

pub use endless::EndlessTree;

/// A message that a hostile agent heard, parts of which it uses in forged messages.
#[derive(Clone, Debug)]
struct Overheard {
    /// The id of the message.
    id: u32,
    info: Info,
}

/// A hostile agent.
#[derive(Debug)]
pub struct Hostile {
    own: Mac,
    rng: ChaCha8Rng,
    interval: Duration,
    next_at: Instant,
    outbox: Option<Transmit>,
    /// Frames heard, newest last.
    frames: VecDeque<Vec<u8>>,
    /// Routes that lead to victims.
    ways: VecDeque<Route>,
    overheard: VecDeque<Overheard>,
    /// Questions of who has a name.
    questions: VecDeque<Vec<u8>>,
}

impl Hostile {
    /// How many frames, ways and messages it remembers at most.
    const MEMORY: usize = 64;

    /// A hostile agent that starts now and sends a frame every `interval`.
    pub fn new(own: Mac, seed: u64, now: Instant, interval: Duration) -> Self {
        Self {
            own,
            rng: ChaCha8Rng::seed_from_u64(seed),
            interval,
            next_at: now + interval,
            outbox: None,
            frames: VecDeque::new(),
            ways: VecDeque::new(),
            overheard: VecDeque::new(),
            questions: VecDeque::new(),
        }
    }

    fn attack(&mut self) -> Transmit {
        let route = self.route();
        let frame = match self.rng.random_range(0..8) {
            0 => self.truncated(),
            1 => self.oversized(),
            2 => self.garbled(),
            3 => self.replayed(),
            _ => self.forged(),
        };
        Transmit { route, frame }
    }

    /// A route, mostly to a victim and sometimes to anywhere.
    fn route(&mut self) -> Route {
        if !self.ways.is_empty() && self.rng.random_bool(0.8) {
            return self.ways[self.rng.random_range(0..self.ways.len())].clone();
        }
        let hops = self.rng.random_range(0..7);
        (0..hops)
            .map(|_| match self.rng.random_range(0..8) {
                0 => Element::Absolute(self.rng.random_range(0..=u8::MAX)),
                1 => Element::Identify,
                _ => Element::Relative(self.rng.random_range(-8..8)),
            })
            .collect()
    }

    fn replayed(&mut self) -> Vec<u8> {
        if self.frames.is_empty() {
            return self.noise(64);
        }
        self.frames[self.rng.random_range(0..self.frames.len())].clone()
    }

    fn truncated(&mut self) -> Vec<u8> {
        let mut frame = self.replayed();
        frame.truncate(self.rng.random_range(0..=frame.len()));
        frame
    }

    fn garbled(&mut self) -> Vec<u8> {
        let mut frame = self.replayed();
        for _ in 0..self.rng.random_range(1..8) {
            if let Some(last) = frame.len().checked_sub(1) {
                frame[self.rng.random_range(0..=last)] = self.rng.random_range(0..=u8::MAX);
            }
        }
        frame
    }

    fn oversized(&mut self) -> Vec<u8> {
        let bytes = self.rng.random_range(MAX_FRAME_BYTES..MAX_FRAME_BYTES + 4096);
        let mut frame = self.replayed();
        frame.resize(bytes, 0);
        frame
    }

    fn noise(&mut self, bytes: usize) -> Vec<u8> {
        let mut frame = vec![0; bytes];
        self.rng.fill_bytes(&mut frame);
        frame
    }

    fn listen(&mut self, payload: &[u8]) {
        let Ok((left, frame)) = split_route(payload) else { return };
        remember(&mut self.frames, frame[..frame.len().min(MAX_FRAME_BYTES)].to_vec());
        let Ok((message, _)) = Message::decode(frame) else { return };
        let (id, info) = match message {
            Message::Probe(probe) => {
                // The first element that is left is the turn, and the way back follows it.
                remember(&mut self.ways, left.elements().skip(1).collect());
                (probe.id, probe.info)
            }
            Message::Scout(scout) => {
                remember(&mut self.ways, scout.way.back);
                if let Reason::Service { service: ServiceNumber::RESOLUTION, question, .. } = scout.reason {
                    remember(&mut self.questions, question);
                }
                (scout.id, scout.info)
            }
            Message::Reply(reply) => (reply.id, reply.info),
        };
        remember(&mut self.overheard, Overheard { id, info });
    }
}

fn remember<T>(memory: &mut VecDeque<T>, thing: T) {
    if memory.len() == Hostile::MEMORY {
        memory.pop_front();
    }
    memory.push_back(thing);
}

impl SimulatedHost for Hostile {
    fn handle_frame(&mut self, _now: Instant, payload: &[u8]) {
        self.listen(payload);
    }

    fn replays(&self) -> bool {
        true
    }

    fn handle_timeout(&mut self, now: Instant) {
        if now >= self.next_at {
            self.next_at = now + self.interval;
            self.outbox = Some(self.attack());
        }
    }

    fn poll_transmit(&mut self) -> Option<Transmit> {
        self.outbox.take()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.next_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a hostile agent sends in ten virtual seconds, when it heard the given payloads.
    fn attacks(seed: u64, heard: &[Vec<u8>]) -> Vec<Transmit> {
        let interval = Duration::from_millis(10);
        let mut hostile = Hostile::new(Mac::from_position(1), seed, Instant::ZERO, interval);
        heard.iter().for_each(|payload| hostile.handle_frame(Instant::ZERO, payload));
        let mut sent = Vec::new();
        for _ in 0..1000 {
            let now = hostile.poll_timeout().unwrap();
            hostile.handle_timeout(now);
            sent.extend(std::iter::from_fn(|| hostile.poll_transmit()));
        }
        sent
    }

    #[test]
    fn it_sends_at_its_rate_and_the_same_for_a_seed() {
        let sent = attacks(1, &[]);
        assert_eq!(sent.len(), 1000);
        assert_eq!(sent, attacks(1, &[]));
        assert_ne!(sent, attacks(2, &[]));
    }

    #[test]
    fn it_sends_well_formed_lies_and_nonsense() {
        let sent = attacks(1, &[]);
        let decodes = |t: &&Transmit| Message::decode(&t.frame).is_ok();
        let good = sent.iter().filter(decodes).count();
        assert!(good > 200, "{good}");
        assert!(sent.len() - good > 200, "{good}");
        assert!(sent.iter().any(|t| t.frame.len() > MAX_FRAME_BYTES));
    }

    #[test]
    fn its_memory_is_bounded() {
        let mut hostile = Hostile::new(Mac::from_position(1), 1, Instant::ZERO, Duration::from_millis(1));
        for i in 0..1000_u32 {
            hostile.handle_frame(Instant::ZERO, &i.to_be_bytes());
        }
        assert_eq!(hostile.frames.len(), Hostile::MEMORY);
    }
}
