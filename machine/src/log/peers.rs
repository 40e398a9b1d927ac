//! Limits how many lines are written about each peer.

use std::collections::BTreeMap;
use std::time::Duration;

use mapper_proto::{Instant, Mac};

/// Allows one line about each peer in an interval, and remembers a bounded number of peers.
#[derive(Debug)]
pub struct RateLimit {
    interval: Duration,
    capacity: usize,
    last: BTreeMap<Mac, Instant>,
}

impl RateLimit {
    /// Allows one line about each peer in an `interval`, for at most `capacity` peers.
    pub const fn new(interval: Duration, capacity: usize) -> Self {
        Self { interval, capacity, last: BTreeMap::new() }
    }

    /// Whether a line about `peer` may be written now.
    pub fn allows(&mut self, now: Instant, peer: Mac) -> bool {
        if self.last.get(&peer).is_some_and(|&last| now.since(last) < self.interval) {
            return false;
        }
        if self.last.len() >= self.capacity {
            let interval = self.interval;
            self.last.retain(|_, last| now.since(*last) < interval);
        }
        // That many peers are a sign of an attack, so nothing is written about further ones.
        if self.last.len() >= self.capacity && !self.last.contains_key(&peer) {
            return false;
        }
        self.last.insert(peer, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn one_line_a_peer_a_minute() {
        let mut limit = RateLimit::new(MINUTE, 8);
        let (a, b) = (Mac::from_position(1), Mac::from_position(2));
        let start = Instant::ZERO;
        assert!(limit.allows(start, a));
        assert!(!limit.allows(start + MINUTE / 2, a));
        assert!(limit.allows(start + MINUTE / 2, b));
        assert!(limit.allows(start + MINUTE, a));
    }

    #[test]
    fn a_flood_of_peers_is_bounded() {
        let mut limit = RateLimit::new(MINUTE, 8);
        let allowed = (0..1000).filter(|&n| limit.allows(Instant::ZERO, Mac::from_position(n))).count();
        assert_eq!(allowed, 8);
        assert!(limit.allows(Instant::ZERO + MINUTE, Mac::from_position(999)));
    }
}
