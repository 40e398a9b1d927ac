//! Which hosts the kernel sends packets to, by its counts. Ways to these hosts are tried more often.

use std::collections::BTreeMap;
use std::time::Duration;

use mapper_fib::NexthopId;
use mapper_proto::{Instant, Mac};

use super::destination::KernelDestination;
use super::{KernelPath, PROBE_PAUSE, RECHECK_USED_EVERY};

/// The most hosts at once that connections are looked up anew to, as each costs the kernel some messages. Of more the others have their
/// turn at the next count.
const MOST_REFRESHED: usize = 64;

/// How often the packets that the kernel sent are counted while users' packets take some of its ways. This is also how soon a
/// further way is watched after packets begin to take it.
const COUNT_USED_EVERY: Duration = Duration::from_millis(100);
/// How often packets are counted while they take none of the kernel's ways. To list the nexthops is most of what an agent at rest
/// costs. Dead cables are found without it, by the hellos that the ends of a cable send each other.
/// [`WAY_LEFT_WITHIN`](super::WAY_LEFT_WITHIN) counts on it.
const COUNT_UNUSED_EVERY: Duration = Duration::from_millis(250);
/// The time between two counts is multiplied by one more for each so many nexthops, as the kernel lists all of them.
const COUNTED_AT_ONCE: usize = 256;
/// The most that the time between two counts is multiplied by.
const MAX_COUNT_PAUSES: usize = 5;

/// How long after a count of so many nexthops the next one is due. `any_is_used` says whether packets take any of them.
pub(crate) fn next_count_after(any_is_used: bool, nexthops: usize) -> Duration {
    let every = if any_is_used { COUNT_USED_EVERY } else { COUNT_UNUSED_EVERY };
    every * nexthops.div_ceil(COUNTED_AT_ONCE).clamp(1, MAX_COUNT_PAUSES) as u32
}

impl KernelPath {
    /// Takes in how many packets each nexthop has taken since it was installed. Where the kernel does not
    /// count, all are taken to be used. Returns whether any way is used, or may be.
    pub(crate) fn count(&mut self, now: Instant, counts: &BTreeMap<NexthopId, u64>) -> bool {
        let mut used_ways = 0;
        // Packets that are counted for the first time may have come since the last count.
        let before = std::mem::replace(&mut self.counted_at, now);
        let since = if before == Instant::ZERO { now } else { before };
        for (&mac, destination) in &mut self.destinations {
            let was_used = destination.is_used(now);
            destination.count(now, counts);
            if destination.is_used(now) {
                used_ways += destination.ways.len() as u32;
                // Ways that were tried now and then are tried more often from now on.
                for way in destination.ways.iter().filter(|_| !was_used) {
                    let due = way.used_from(since).max(now);
                    self.prober.hasten(due, mac, way.number);
                }
            }
        }
        self.refresh(now);
        self.recheck_used_every = (PROBE_PAUSE * used_ways).max(RECHECK_USED_EVERY);
        used_ways > 0 || self.left.may_lead_on()
    }

    /// Has the kernel look up anew where packets go that it looks up once for many, to some hosts at once. They have their turn in a
    /// circle, so that none waits for ever where there are many.
    fn refresh(&mut self, now: Instant) {
        let all = || self.destinations.keys().copied();
        let turn = self.refreshed_last;
        let in_turn = all().filter(|&mac| Some(mac) > turn).chain(all().filter(|&mac| Some(mac) <= turn));
        let in_turn: Vec<Mac> = in_turn.collect();
        let mut refreshed = 0;
        for mac in in_turn {
            let changes = self.destinations.get_mut(&mac).map_or_else(Vec::new, |it| it.refresh(now));
            if changes.is_empty() {
                continue;
            }
            self.changes.extend(changes);
            self.refreshed_last = Some(mac);
            refreshed += 1;
            if refreshed == MOST_REFRESHED {
                return;
            }
        }
    }

    /// The hosts that the kernel has sent packets to lately, and those to which it may send by what an earlier run has left.
    pub(crate) fn used(&self, now: Instant) -> impl Iterator<Item = Mac> + '_ {
        let may_be_used = |mac: Mac, it: &KernelDestination| !it.is_carried() && self.left.may_lead_to(mac);
        let used = move |(&mac, it): (&Mac, &KernelDestination)| {
            (it.is_used(now) || may_be_used(mac, it)).then_some(mac)
        };
        self.destinations.iter().filter_map(used)
    }

    /// Whether the kernel sends packets to any host, or may do so by what an earlier run has left. If not, they need not be
    /// counted.
    pub fn may_carry(&self) -> bool {
        self.carries() || self.left.may_lead_on()
    }
}
