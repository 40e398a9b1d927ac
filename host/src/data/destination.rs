//! One host that frames are sent to, and which flow takes which of the routes there.

use std::time::Duration;

use mapper_proto::wire::RoundTrip;
use mapper_proto::{Instant, Mac};

use super::PathId;

/// The number of buckets that the flows to a destination share. Flows in one bucket take one route.
pub(super) const BUCKETS: usize = 64;
/// A bucket that was silent for this long may take another route: its last frame has arrived by then, so
/// no later one can overtake it.
const SILENCE: Duration = Duration::from_secs(1);

/// A route to a destination.
#[derive(Debug, Clone)]
pub(super) struct Path {
    pub(super) id: PathId,
    pub(super) way: RoundTrip,
    /// Whether no cable on it is known to be dead.
    pub(super) alive: bool,
    /// The longest frame that all cables on the route carry, in bytes with the route.
    pub(super) most_bytes: usize,
    /// When a frame took it last; [`Instant::ZERO`] for never.
    pub(super) used: Instant,
    /// How many frames took the route.
    pub(super) frames: u64,
    /// Whether it is on the list of paths in use.
    pub(super) listed: bool,
    /// The longest frame that took the route since the last [`Self::take_longest`], and the answer that it
    /// gave, both in bytes with the route.
    pub(super) longest: (usize, usize),
}

impl Path {
    /// The longest frame that took the route since the last call. If none has, it is the same as at that
    /// call.
    pub(super) fn take_longest(&mut self) -> usize {
        if self.longest.0 > 0 {
            self.longest = (0, self.longest.0);
        }
        self.longest.1
    }
}

/// A host that frames are sent to.
#[derive(Debug)]
pub(super) struct Destination {
    pub(super) mac: Mac,
    /// The value of [`Destinations`](super::destinations::Destinations)' count of changes when the paths were
    /// looked up.
    pub(super) epoch: u64,
    pub(super) paths: Vec<Path>,
    /// The index in `paths` of the path that each bucket of flows takes.
    buckets: [u8; BUCKETS],
    /// When a frame of each bucket was sent last; [`Instant::ZERO`] for never.
    used: [Instant; BUCKETS],
    /// Whether the usable paths are known to have equally many buckets, give or take one.
    even: bool,
}

impl Destination {
    /// A destination without paths.
    pub(super) fn new(mac: Mac) -> Self {
        let used = [Instant::ZERO; BUCKETS];
        Self { mac, epoch: 0, paths: Vec::new(), buckets: [0; BUCKETS], used, even: false }
    }

    /// Replaces the paths. A bucket keeps its route if that is still there and usable. All other buckets, and
    /// those that were silent, are spread evenly. Returns how many buckets in use had to move.
    pub(super) fn replace_paths(&mut self, now: Instant, paths: Vec<Path>) -> u64 {
        debug_assert!(paths.len() <= usize::from(u8::MAX), "more paths than a bucket can name");
        let place_now = |before: &Path| paths.iter().position(|path| path.way == before.way);
        let kept: Vec<Option<usize>> = self.paths.iter().map(place_now).collect();
        self.paths = paths;
        if self.paths.is_empty() {
            self.even = false;
            return 0;
        }
        let usable = self.usable();
        let stays =
            |before: u8| kept.get(usize::from(before)).copied().flatten().filter(|&place| usable[place]);
        let wanted: Vec<Option<usize>> = self.buckets.iter().map(|&before| stays(before)).collect();
        let mut loads = vec![0; self.paths.len()];
        wanted.iter().flatten().for_each(|&place| loads[place] += 1);
        let mut moved = 0;
        for (bucket, wanted) in wanted.into_iter().enumerate() {
            let place = wanted.unwrap_or_else(|| {
                moved += u64::from(!self.is_silent(now, bucket));
                let place = self.least_loaded(&loads, &usable);
                loads[place] += 1;
                place
            });
            self.buckets[bucket] = place as u8;
        }
        self.even = false;
        for bucket in 0..BUCKETS {
            self.even_out(now, bucket);
        }
        moved
    }

    /// The place of the path that the flow with this hash takes now. There must be paths.
    pub(super) fn choose(&mut self, now: Instant, hash: u64) -> usize {
        // The high bits of the hash are mixed best.
        let bucket = (hash >> (u64::BITS - BUCKETS.trailing_zeros())) as usize;
        self.even_out(now, bucket);
        self.used[bucket] = now;
        self.buckets[bucket].into()
    }

    fn is_silent(&self, now: Instant, bucket: usize) -> bool {
        self.used[bucket] == Instant::ZERO || now.since(self.used[bucket]) >= SILENCE
    }

    /// Moves a silent bucket to a path that has too few buckets. So a route that came back gets its share
    /// without any flow's frames overtaking each other.
    fn even_out(&mut self, now: Instant, bucket: usize) {
        if self.even || !self.is_silent(now, bucket) {
            return;
        }
        let usable = self.usable();
        let mut loads = vec![0; self.paths.len()];
        self.buckets.iter().for_each(|&place| loads[usize::from(place)] += 1);
        let place = usize::from(self.buckets[bucket]);
        let least = self.least_loaded(&loads, &usable);
        if loads[place] > loads[least] + 1 {
            loads[place] -= 1;
            loads[least] += 1;
            self.buckets[bucket] = least as u8;
        }
        let loads_usable = || loads.iter().zip(&usable).filter(|&(_, &usable)| usable).map(|(&load, _)| load);
        let (least, most) = (loads_usable().min(), loads_usable().max());
        self.even = least.zip(most).is_none_or(|(least, most): (usize, usize)| most - least <= 1);
    }

    /// For each path, whether flows may take it. Of the paths that are alive, or of all if none is, these are
    /// the ones that carry the longest frames. All frames of a flow, short and long, must take one path, so
    /// that none overtakes another.
    fn usable(&self) -> Vec<bool> {
        let none_alive = !self.paths.iter().any(|path| path.alive);
        let may_serve = |path: &&Path| path.alive || none_alive;
        let most_bytes = self.paths.iter().filter(may_serve).map(|path| path.most_bytes).max();
        self.paths.iter().map(|path| may_serve(&path) && Some(path.most_bytes) == most_bytes).collect()
    }

    /// The usable path with the fewest buckets. Which of several it is depends on the destination, so that
    /// not all destinations prefer the same one.
    fn least_loaded(&self, loads: &[usize], usable: &[bool]) -> usize {
        let count = self.paths.len();
        let first = self.mac.to_u64() as usize % count;
        let turn = |place: usize| (place + count - first) % count;
        let places = (0..count).filter(|&place| usable[place]);
        places.min_by_key(|&place| (loads[place], turn(place))).unwrap_or_default()
    }
}
