//! How many frames may make this agent work: token buckets (as the "generic cell rate algorithm"
//! of ITU-T I.371 keeps them, by one moment each) for each source, and one for all that are not
//! known to be sound.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{Instant, Mac};

/// Most sources that have a bucket of their own; the rest share one.
const SOURCES: usize = 1024;

/// How often frames may come in the long run, and how many may come at once.
#[derive(Clone, Copy, Debug)]
struct Rate {
    interval: Duration,
    burst: u32,
}

/// What one source may send: more than the liveness checks of all paths and a mapper's probes together.
const SOURCE: Rate = Rate { interval: Duration::from_micros(50), burst: 4096 };
/// What all sources whose session is not proved may send: it costs a few per cent of a processor, and has room
/// for the greetings of a large network that starts.
const STRANGERS: Rate = Rate { interval: Duration::from_micros(20), burst: 8192 };
/// What all sources may send where there are no keys and so nobody is proved: as much as one processor can answer.
const ALL: Rate = Rate { interval: Duration::from_micros(5), burst: 16_384 };

/// How many questions of services are answered: more than one neighbour in the tree asks at once, at the cost
/// of at most a tenth of a processor.
const SERVICES: Rate = Rate { interval: Duration::from_micros(50), burst: 1024 };

/// When the bucket will be full again.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    full_at: Instant,
}

impl Bucket {
    fn take(&mut self, now: Instant, rate: Rate) -> bool {
        let full_at = self.full_at.max(now);
        if full_at.since(now) > rate.interval * rate.burst.saturating_sub(1) {
            return false;
        }
        self.full_at = full_at + rate.interval;
        true
    }
}

/// The buckets of all sources: who may still send, and how much.
#[derive(Debug, Default)]
pub(in crate::agent) struct Limits {
    strangers: Bucket,
    all: Bucket,
    services: Bucket,
    /// The buckets by address. An address that is proved (true) and one that is only claimed have a bucket each.
    sources: BTreeMap<(bool, Mac), Bucket>,
    /// The buckets that sources beyond [`SOURCES`] share: one for claimed addresses, one for proved ones.
    others: [Bucket; 2],
}

impl Limits {
    /// Whether one more signed frame may be checked whose session is not proved.
    pub(super) fn allow_stranger(&mut self, now: Instant) -> bool {
        self.strangers.take(now, STRANGERS)
    }

    /// Whether one more frame may come that says it is from this address, where there are no keys.
    pub(super) fn allow_unsigned(&mut self, now: Instant, mac: Mac) -> bool {
        self.all.take(now, ALL) && self.allow_source(now, mac)
    }

    /// Whether one more question of a service may be answered.
    pub(in crate::agent) fn allow_service(&mut self, now: Instant) -> bool {
        self.services.take(now, SERVICES)
    }

    /// Whether one more frame may come that says it is from this address.
    pub(super) fn allow_source(&mut self, now: Instant, mac: Mac) -> bool {
        self.take(now, (false, mac))
    }

    /// Whether one more frame may come that is proved to be from this address.
    pub(super) fn allow_peer(&mut self, now: Instant, mac: Mac) -> bool {
        self.take(now, (true, mac))
    }

    fn take(&mut self, now: Instant, source: (bool, Mac)) -> bool {
        if self.sources.len() >= SOURCES && !self.sources.contains_key(&source) {
            // A bucket that is full again is as good as none, so it is forgotten.
            self.sources.retain(|_, bucket| bucket.full_at > now);
            if self.sources.len() >= SOURCES {
                return self.others[usize::from(source.0)].take(now, SOURCE);
            }
        }
        self.sources.entry(source).or_default().take(now, SOURCE)
    }

    /// How many sources have a bucket.
    pub(in crate::agent) fn len(&self) -> usize {
        self.sources.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_followed_by_the_rate() {
        let mut limits = Limits::default();
        let mac = Mac::from_position(1);
        let mut allowed = |now| (0..9000_u32).filter(|_| limits.allow_source(now, mac)).count();
        let now = Instant::ZERO + Duration::from_secs(9);
        assert_eq!(allowed(now), 4096);
        assert_eq!(allowed(now + SOURCE.interval * 10), 10);
        assert_eq!(allowed(now + Duration::from_secs(60)), 4096, "a rest fills the bucket, and no more");
    }

    #[test]
    fn sources_do_not_use_up_each_others_share() {
        let mut limits = Limits::default();
        let now = Instant::ZERO;
        while limits.allow_source(now, Mac::from_position(1)) {}
        assert!(limits.allow_source(now, Mac::from_position(2)));
        assert!(limits.allow_peer(now, Mac::from_position(1)), "who only says so uses up nobody's share");
    }

    #[test]
    fn made_up_sources_share_what_is_left() {
        let mut limits = Limits::default();
        let now = Instant::ZERO;
        let allowed = (0..100_000).filter(|&nth| limits.allow_source(now, Mac::from_position(nth))).count();
        assert_eq!(allowed, SOURCES + SOURCE.burst as usize);
        assert_eq!(limits.len(), SOURCES);
        assert!(limits.allow_source(now + Duration::from_secs(1), Mac::from_position(7_000_000)));
        assert_eq!(limits.len(), 1, "who has been quiet is forgotten");
    }
}
