//! Traffic: who sends to whom.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{Attachment, Tiers, Topology};

/// The most flows of all shifts together, where routes can be looked up as often as wanted.
pub(super) const ALL_FLOWS: usize = 1 << 24;
/// The most flows of shifts where these are only a sample of all. Users wait for the result, and twice as
/// many flows would hardly find a worse shift.
const SOME_FLOWS: usize = 1 << 22;
/// The most flows of all shifts together, where the flows must be kept.
pub(super) const KEPT_FLOWS: usize = 1 << 21;

/// How many flows of random matchings are drawn, and as many of permutations, if that is a number of samples
/// between the two limits below.
const RANDOM_FLOWS: usize = 1 << 18;
/// The fewest matchings and the fewest permutations. With 3,456 hosts, 64 matchings leave a standard error of
/// 0.2 %.
const LEAST_SAMPLES: usize = 64;
/// The most matchings and the most permutations. With 4 hosts, 4,096 matchings leave a standard error below
/// 0.5 %.
const MOST_SAMPLES: usize = 4096;

/// Who sends to whom, in several patterns. Hosts are named by their places in an order.
#[derive(Debug, Clone)]
pub(crate) struct Patterns {
    /// The host at each place.
    pub(super) hosts: Vec<u32>,
    /// Whether the host at each place is a service adapter above the leaves.
    pub(super) is_service: Vec<bool>,
    /// For each matching, the place that each place sends to; itself if it sits out.
    pub(super) matchings: Vec<Vec<u32>>,
    /// For each permutation, the place that each place sends to, perhaps itself.
    pub(super) permutations: Vec<Vec<u32>>,
    /// Who sends to each place in each permutation.
    senders: Vec<Vec<u32>>,
    /// For each shift, how many places farther each place sends.
    pub(super) shifts: Vec<u32>,
    seed: u64,
}

impl Patterns {
    /// Draws matchings and permutations, and chooses shifts of at most so many flows.
    pub(super) fn draw(topology: &Topology, hosts: &[u32], seed: u64, shift_flows: usize) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (mut patterns, mut order) = Self::begin(topology, hosts, seed, &mut rng);
        let count = patterns.hosts.len();
        let permutations = (0..patterns.matchings.len()).map(|_| {
            order.shuffle(&mut rng);
            order.clone()
        });
        patterns.permutations = permutations.collect();
        patterns.senders = patterns.permutations.iter().map(|to| inverse(to)).collect();
        let shift_flows = match count * count.saturating_sub(1) {
            all if all <= shift_flows => shift_flows,
            _ => shift_flows.min(SOME_FLOWS),
        };
        patterns.shifts = shifts(count, shift_flows, &mut rng);
        patterns
    }

    /// Draws only the matchings, which are the same as those of [`Self::draw`].
    pub(super) fn draw_matchings(topology: &Topology, hosts: &[u32], seed: u64) -> Self {
        Self::begin(topology, hosts, seed, &mut ChaCha8Rng::seed_from_u64(seed)).0
    }

    /// Draws matchings. Returns also the last order that was shuffled.
    fn begin(topology: &Topology, hosts: &[u32], seed: u64, rng: &mut ChaCha8Rng) -> (Self, Vec<u32>) {
        let mut listed = vec![false; topology.host_count()];
        let mut first = |host: u32| {
            let cabled =
                (host as usize) < listed.len() && matches!(topology.attachment(host), Attachment::Port(_));
            cabled && !std::mem::replace(&mut listed[host as usize], true)
        };
        let hosts: Vec<u32> = hosts.iter().copied().filter(|&host| first(host)).collect();
        let tiers = Tiers::of(topology);
        let is_service = |&host: &u32| match topology.attachment(host) {
            Attachment::Port(at) => tiers.is_served(at.xbar),
            _ => false,
        };
        let is_service = hosts.iter().map(is_service).collect();
        let count = hosts.len();
        let samples = match count {
            0..2 => 0,
            _ => (RANDOM_FLOWS / count).clamp(LEAST_SAMPLES, MOST_SAMPLES),
        };
        let mut order: Vec<u32> = (0..count as u32).collect();
        let matchings = (0..samples).map(|_| {
            order.shuffle(rng);
            matching(&order)
        });
        let matchings = matchings.collect();
        let (permutations, senders, shifts) = (Vec::new(), Vec::new(), Vec::new());
        (Self { hosts, is_service, matchings, permutations, senders, shifts, seed }, order)
    }

    /// How many patterns there are: matchings, then permutations, then shifts.
    pub(super) fn count(&self) -> usize {
        self.matchings.len() + self.permutations.len() + self.shifts.len()
    }

    /// The place that a place sends to by a pattern, or `None` if it does not send.
    pub(super) fn target(&self, pattern: usize, place: usize) -> Option<usize> {
        let random = self.matchings.len();
        let to = if pattern < random {
            self.matchings[pattern][place] as usize
        } else if let Some(permutation) = self.permutations.get(pattern - random) {
            permutation[place] as usize
        } else {
            let shift = self.shifts[pattern - random - self.permutations.len()];
            (place + shift as usize) % self.hosts.len()
        };
        (to != place).then_some(to)
    }

    /// The place that sends to a place by a pattern, or `None` if nobody does.
    pub(super) fn sender(&self, pattern: usize, place: usize) -> Option<usize> {
        let random = self.matchings.len();
        let from = if pattern < random {
            // Both of a pair send to each other.
            self.matchings[pattern][place] as usize
        } else if let Some(senders) = self.senders.get(pattern - random) {
            senders[place] as usize
        } else {
            let shift = self.shifts[pattern - random - self.permutations.len()] as usize;
            if place < shift { place + self.hosts.len() - shift } else { place - shift }
        };
        (from != place).then_some(from)
    }

    /// Whether a place sends by a pattern, and neither end of the flow is a service adapter above the leaves.
    pub(super) fn joins_others(&self, pattern: usize, place: usize) -> bool {
        let is_other = |to: usize| !self.is_service[place] && !self.is_service[to];
        self.target(pattern, place).is_some_and(is_other)
    }

    /// The number that chooses among the routes of a flow.
    pub(super) fn choice(&self, pattern: usize, place: usize) -> u32 {
        // This is SplitMix64 (Steele, Lea and Flood, 2014) of where the flow stands. It is cheap, and there
        // is no state to pass on.
        let at = (pattern as u64) << 32 | place as u64;
        let mut bits = self.seed.wrapping_add(at.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 32) as u32
    }
}

/// Pairs the first two of an order, the next two, and so on.
fn matching(order: &[u32]) -> Vec<u32> {
    let mut to: Vec<u32> = (0..order.len() as u32).collect();
    for pair in order.chunks_exact(2) {
        (to[pair[0] as usize], to[pair[1] as usize]) = (pair[1], pair[0]);
    }
    to
}

/// Who sends to each place of a permutation.
fn inverse(to: &[u32]) -> Vec<u32> {
    let mut from = vec![0; to.len()];
    (0..).zip(to).for_each(|(place, &to)| from[to as usize] = place);
    from
}

/// All shifts, or one out of each of as many equal ranges as `flows` allows.
fn shifts(hosts: usize, flows: usize, rng: &mut ChaCha8Rng) -> Vec<u32> {
    let all = hosts.saturating_sub(1);
    let count = all.min((flows / hosts.max(1)).max(1));
    if count == all {
        return (1..hosts as u32).collect();
    }
    let bound = |range: usize| 1 + (range * all / count) as u64;
    let one = |range| {
        let (first, next) = (bound(range), bound(range + 1));
        (first + ((u64::from(rng.next_u32()) * (next - first)) >> 32)) as u32
    };
    (0..count).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabrics;
    use crate::quality::hosts_in_order;

    #[test]
    fn matchings_go_both_ways_and_permutations_hit_everybody() {
        let topology = Topology::from_map(&fabrics::ring(7)).unwrap();
        let patterns = Patterns::draw(&topology, &hosts_in_order(&topology), 3, ALL_FLOWS);
        assert_eq!(patterns.matchings.len(), MOST_SAMPLES);
        for (pattern, to) in patterns.matchings.iter().enumerate() {
            assert!((0..7).all(|place| to[to[place] as usize] as usize == place));
            assert_eq!((0..7).filter_map(|place| patterns.target(pattern, place)).count(), 6);
        }
        for to in &patterns.permutations {
            let mut sorted = to.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..7).collect::<Vec<_>>());
        }
        assert_eq!(patterns.shifts, [1, 2, 3, 4, 5, 6]);
        let last = patterns.count() - 1;
        assert_eq!((patterns.target(last, 0), patterns.target(last, 1)), (Some(6), Some(0)));
    }

    #[test]
    fn who_is_sent_to_knows_who_sends() {
        let topology = Topology::from_map(&fabrics::ring(7)).unwrap();
        let patterns = Patterns::draw(&topology, &hosts_in_order(&topology), 3, ALL_FLOWS);
        for pattern in 0..patterns.count() {
            for place in 0..7 {
                let sender = (0..7).find(|&from| patterns.target(pattern, from) == Some(place));
                assert_eq!(patterns.sender(pattern, place), sender, "pattern {pattern}, place {place}");
            }
        }
    }

    #[test]
    fn too_many_shifts_are_sampled_evenly() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let shifts = shifts(1001, 10 * 1001, &mut rng);
        assert_eq!(shifts.len(), 10);
        for (range, &shift) in shifts.iter().enumerate() {
            assert!((1 + 100 * range..=100 * (range + 1)).contains(&(shift as usize)), "{shifts:?}");
        }
    }
}
