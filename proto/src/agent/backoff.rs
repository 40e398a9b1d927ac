//! How often one host, or one port, may make this agent give up its map.
//!
//! A host that can be heard but not mapped, or that never manages to hold the map, must not make
//! the whole network map for ever: each time the wait until it counts again doubles. A cable whose
//! carrier comes and goes must not either.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Instant;

/// For each host, or each port, how long what it calls for does not count.
#[derive(Debug)]
pub(super) struct Backoff<K> {
    waits: BTreeMap<K, Wait>,
}

impl<K> Default for Backoff<K> {
    fn default() -> Self {
        Self { waits: BTreeMap::new() }
    }
}

#[derive(Debug, Clone, Copy)]
struct Wait {
    until: Instant,
    length: Duration,
}

/// Most waits kept in mind; past it the one that ends first is forgotten.
const LIMIT: usize = 256;

impl<K: Ord + Copy> Backoff<K> {
    const FIRST: Duration = Duration::from_millis(250);
    const LONGEST: Duration = Duration::from_secs(64);

    /// Whether what this host or port calls for counts at `now`. If it does, its next wait begins.
    pub(super) fn counts(&mut self, now: Instant, who: K) -> bool {
        match self.waits.get_mut(&who) {
            Some(wait) if wait.until > now => false,
            Some(wait) => {
                // Whoever has given no cause for long starts afresh.
                let quiet = now.since(wait.until) > Self::LONGEST;
                wait.length = if quiet { Self::FIRST } else { (wait.length * 2).min(Self::LONGEST) };
                wait.until = now + wait.length;
                true
            }
            None => {
                if self.waits.len() >= LIMIT {
                    let first = self.waits.iter().min_by_key(|(_, wait)| wait.until).map(|(who, _)| *who);
                    first.map(|who| self.waits.remove(&who));
                }
                self.waits.insert(who, Wait { until: now + Self::FIRST, length: Self::FIRST });
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mac;

    #[test]
    fn waits_double_and_memory_is_bounded() {
        let mut backoff = Backoff::default();
        let mac = Mac::from_position(1);
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        assert!(backoff.counts(at(0), mac));
        assert!(!backoff.counts(at(249), mac));
        assert!(backoff.counts(at(250), mac));
        assert!(!backoff.counts(at(749), mac));
        assert!(backoff.counts(at(750), mac));
        for i in 0..1000 {
            assert!(backoff.counts(at(751), Mac::from_position(1000 + i)));
        }
        assert_eq!(backoff.waits.len(), LIMIT);
    }
}
