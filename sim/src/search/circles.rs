//! For how long the routes in force may close circles.
//!
//! Routes of one map, and all repairs of them, are proved to close no circle whatever hosts know, as long as cables are
//! where the map has them. That cannot be proved for routes of different maps, which are in use together from when the
//! first host has a new map until the last one has it, nor for routes on cables that were moved. Such circles must be over
//! soon, and so must those by turns that a dead cable opened, once the cable is back.

use std::time::Duration;

use mapper_proto::Instant;

use crate::world::{Circle, CircleCause};

/// The longest time after the last thing of which agents have to learn for which hosts' routes of different maps, or of maps
/// that no longer hold, may close a circle together. A new map takes no longer.
const MAX_CIRCLE: Duration = Duration::from_secs(5);
/// The longest time that a host may use turns which dead cables opened after one of these cables has come
/// back. It lasts until a test of the cable is answered, and some tests may be lost.
const MAX_REVIVAL: Duration = Duration::from_millis(250);

/// The longest circles of the routes in force through a run.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// Of those of different maps, or of cables that were moved.
    pub(super) circle: Duration,
    /// Of those by turns that a dead cable opened which has come back.
    pub(super) revival: Duration,
}

impl Watch {
    /// Checks circles, and notes the longest. `disturbed_at` says when something last happened, up to a moment, of which agents have
    /// to learn, and `computing` how much longer than by default hosts take to compute the routes for that.
    ///
    /// # Errors
    /// If one may not be, or lasts too long, in words.
    pub(super) fn check(
        &mut self,
        circles: &[Circle],
        disturbed_at: impl Fn(Instant) -> Instant,
        computing: Duration,
    ) -> Result<(), String> {
        for Circle { closed_at, from, until, cause, why } in circles {
            let lasted = until.since(*from);
            let (longest, too_long) = match cause {
                CircleCause::OneMap => return Err(format!("{why}, from {from:?} to {until:?}")),
                CircleCause::Revival => (&mut self.revival, lasted > MAX_REVIVAL + computing),
                // That it was by turns of dead cables in between lets nobody wait longer for the new map.
                CircleCause::Maps => {
                    let undisturbed = until.since(disturbed_at(*until).max(*closed_at));
                    (&mut self.circle, undisturbed > MAX_CIRCLE + computing)
                }
            };
            *longest = lasted.max(*longest);
            if too_long {
                return Err(format!("{why}, for {lasted:?} from {from:?} on"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// Whether a circle may be that closed at the first of these moments, in milliseconds, has had this cause from the second on, and
    /// was there until the third, if something happened at this moment.
    fn may_be([closed_at, from, until]: [u64; 3], cause: CircleCause, disturbed_at: u64) -> bool {
        let [closed_at, from, until] = [closed_at, from, until].map(ms);
        let circle = Circle { closed_at, from, until, cause, why: String::new() };
        Watch::default().check(&[circle], |_| ms(disturbed_at), Duration::ZERO).is_ok()
    }

    #[test]
    fn a_circle_of_different_maps_is_over_soon_after_the_last_disturbance() {
        let maps = |times, disturbed_at| may_be(times, CircleCause::Maps, disturbed_at);
        assert!(maps([100, 100, 5100], 0) && !maps([100, 100, 5101], 0));
        assert!(maps([100, 100, 9000], 4000) && !maps([100, 100, 9001], 4000));
        assert!(!maps([100, 3000, 5101], 0), "it was there all the while");
    }

    #[test]
    fn a_circle_of_one_map_may_not_be_and_one_by_turns_of_dead_cables_is_over_at_once() {
        assert!(!may_be([1, 1, 2], CircleCause::OneMap, 1));
        let revival = |until| may_be([100, 200, until], CircleCause::Revival, 200);
        assert!(revival(450) && !revival(451));
    }
}
