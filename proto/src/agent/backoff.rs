//! How often one host may make this agent give up its map.
//!
//! A host that can be heard but not mapped, or that never manages to hold the map, must not make
//! the whole network map for ever: each time the wait until it counts again doubles.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{Instant, Mac};

/// Waits by host.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    waits: BTreeMap<Mac, Wait>,
}

#[derive(Debug, Clone, Copy)]
struct Wait {
    until: Instant,
    length: Duration,
}

impl Backoff {
    /// Most hosts kept in mind; past it the one whose wait ends first is forgotten.
    const LIMIT: usize = 256;
    const FIRST: Duration = Duration::from_millis(250);
    const LONGEST: Duration = Duration::from_secs(64);

    /// Whether this host counts at `now`. If so, its next wait begins.
    pub(super) fn counts(&mut self, now: Instant, mac: Mac) -> bool {
        match self.waits.get_mut(&mac) {
            Some(wait) if wait.until > now => false,
            Some(wait) => {
                // A host that has been quiet for long starts afresh.
                let quiet = now.since(wait.until) > Self::LONGEST;
                wait.length = if quiet { Self::FIRST } else { (wait.length * 2).min(Self::LONGEST) };
                wait.until = now + wait.length;
                true
            }
            None => {
                if self.waits.len() >= Self::LIMIT {
                    let first = self.waits.iter().min_by_key(|(_, wait)| wait.until).map(|(mac, _)| *mac);
                    first.map(|mac| self.waits.remove(&mac));
                }
                self.waits.insert(mac, Wait { until: now + Self::FIRST, length: Self::FIRST });
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(backoff.waits.len(), Backoff::LIMIT);
    }
}
