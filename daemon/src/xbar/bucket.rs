//! A bound on how often something is done.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::Instant;

/// A token bucket. It allows `per_second` actions a second for any length of time, and as many at once as its
/// capacity.
#[derive(Debug)]
pub(super) struct TokenBucket {
    capacity: u32,
    per_second: u32,
    tokens: Cell<u32>,
    filled_at: Cell<Instant>,
}

impl TokenBucket {
    /// A full bucket.
    pub(super) const fn new(per_second: u32, capacity: u32, now: Instant) -> Self {
        Self { capacity, per_second, tokens: Cell::new(capacity), filled_at: Cell::new(now) }
    }

    /// Takes a token, if there is one.
    pub(super) fn take(&self, now: Instant) -> bool {
        self.fill(now);
        let left = self.tokens.get().checked_sub(1);
        self.tokens.set(left.unwrap_or(0));
        left.is_some()
    }

    fn fill(&self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.filled_at.get());
        let earned = elapsed.as_nanos() * u128::from(self.per_second) / NANOS_PER_SECOND;
        let missing = self.capacity - self.tokens.get();
        if earned >= u128::from(missing) {
            self.tokens.set(self.capacity);
            self.filled_at.set(now);
        } else if earned > 0 {
            self.tokens.set(self.tokens.get() + earned as u32);
            // The part of the time that made no whole token counts towards the next one.
            let nanos = earned * NANOS_PER_SECOND / u128::from(self.per_second);
            self.filled_at.set(self.filled_at.get() + Duration::from_nanos(nanos as u64));
        }
    }
}

const NANOS_PER_SECOND: u128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_at_once_as_fit_in_and_then_so_many_a_second() {
        let start = Instant::now();
        let bucket = TokenBucket::new(1000, 5, start);
        let taken = |now| std::iter::repeat_with(|| bucket.take(now)).take_while(|&taken| taken).count();
        assert_eq!(taken(start), 5);
        assert_eq!(taken(start + Duration::from_micros(2900)), 2);
        assert_eq!(taken(start + Duration::from_micros(3100)), 1, "0.9 ms were kept");
        assert_eq!(taken(start + Duration::from_secs(1000)), 5);
    }

    #[test]
    fn many_short_waits_earn_as_much_as_a_long_one() {
        let start = Instant::now();
        let bucket = TokenBucket::new(1000, 1, start);
        let taken = (0..100_000).filter(|&n| bucket.take(start + Duration::from_micros(n * 10))).count();
        assert_eq!(taken, 1000);
    }
}
