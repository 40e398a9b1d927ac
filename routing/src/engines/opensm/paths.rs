//! The choice among least-hop ports where more than their counters decides.
//!
//! The LIDs of a host are to be reached by ways that differ: through systems that its earlier LIDs do not
//! use, or else through other nodes of the same systems. Ports may be shifted, too, so that the same ports do
//! not serve the same destinations on all xbars.

/// A node that earlier LIDs of a destination lead through.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used {
    pub(super) node: u32,
    pub(super) system: u64,
    /// The port by which it is entered; it counts only where frames keep to one neighbour.
    pub(super) arrival: u8,
    /// How many LIDs lead through it.
    pub(super) paths: u32,
}

impl Used {
    /// Whether this is a node, entered by this port if one is given.
    pub(super) fn is(&self, node: u32, arrival: Option<u8>) -> bool {
        self.node == node && arrival.is_none_or(|arrival| self.arrival == arrival)
    }
}

/// A least-hop port.
#[derive(Clone, Copy, Debug)]
pub(super) struct PortCandidate {
    /// Its place among the xbar's channels.
    pub(super) place: u8,
    /// How many destinations it serves.
    pub(super) count: u32,
    /// The neighbour, its system, and its port.
    pub(super) node: u32,
    pub(super) system: u64,
    pub(super) arrival: u8,
}

/// What is known of a candidate's neighbour.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    system: bool,
    node: bool,
    /// How many of the destination's LIDs use it; `None` if it is new.
    paths: Option<u32>,
}

/// The candidates of one choice, in the order in which they are tried.
#[derive(Default)]
pub(super) struct Paths {
    candidates: Vec<(PortCandidate, Seen)>,
}

/// The best candidates so far.
struct Best {
    any: Option<PortCandidate>,
    other_system: Option<PortCandidate>,
    other_node: Option<PortCandidate>,
    /// The fewest LIDs of the destination that lead through a neighbour.
    paths: u32,
}

impl Best {
    const fn none() -> Self {
        Self { any: None, other_system: None, other_node: None, paths: u32::MAX }
    }
}

/// Puts a candidate in a place if it is less loaded than what is there.
fn improve(place: &mut Option<PortCandidate>, candidate: PortCandidate) -> bool {
    let better = place.is_none_or(|best| candidate.count < best.count);
    if better {
        *place = Some(candidate);
    }
    better
}

impl Paths {
    pub(super) fn clear(&mut self) {
        self.candidates.clear();
    }

    pub(super) fn push(&mut self, candidate: PortCandidate) {
        self.candidates.push((candidate, Seen::default()));
    }

    /// Finds out for each candidate whether earlier LIDs lead through its neighbour.
    pub(super) fn look_up(&mut self, used: &[Used], one_neighbour: bool) {
        let mut seen = Seen::default();
        for (candidate, place) in &mut self.candidates {
            if one_neighbour {
                let same = used.iter().find(|used| used.is(candidate.node, Some(candidate.arrival)));
                *place = Seen { paths: Some(same.map_or(0, |used| used.paths)), ..Seen::default() };
                continue;
            }
            seen.system = used.iter().any(|used| used.system == candidate.system);
            let same = used.iter().find(|used| seen.system && used.is(candidate.node, None));
            // If the system is new, that shows nothing of the node, so what was found before stays.
            if seen.system {
                seen.node = same.is_some();
            }
            seen.paths = same.map(|used| used.paths);
            *place = seen;
        }
    }

    /// The places of all candidates with the smallest counter.
    pub(super) fn least_loaded(&self) -> Vec<u8> {
        let least = self.candidates.iter().map(|(candidate, _)| candidate.count).min();
        let all = self.candidates.iter().filter(|(candidate, _)| Some(candidate.count) == least);
        all.map(|(candidate, _)| candidate.place).collect()
    }

    /// The place of the best candidate. With `spread` it is one through a system that is not used yet, or
    /// else through a node that is not used yet. With `shift` the scan starts the further on, the higher the
    /// counters are.
    pub(super) fn best(&self, spread: bool, shift: bool) -> u8 {
        let best = if shift { self.shifted(spread) } else { self.scanned(spread) };
        let other = best.other_system.or(best.other_node).filter(|_| spread);
        other.or(best.any).map_or(0, |best| best.place)
    }

    fn scanned(&self, spread: bool) -> Best {
        let mut best = Best::none();
        for &(candidate, seen) in &self.candidates {
            if spread && seen.paths.is_none() {
                let place = if seen.system { &mut best.other_node } else { &mut best.other_system };
                if improve(place, candidate) {
                    best.paths = 0;
                }
            }
            Self::weigh(&mut best, candidate, seen.paths);
        }
        best
    }

    fn shifted(&self, spread: bool) -> Best {
        let mut best = Best::none();
        let count = self.candidates.len();
        let total =
            self.candidates.iter().fold(0_u32, |sum, (candidate, _)| sum.wrapping_add(candidate.count));
        for i in 0..count {
            let (candidate, seen) = self.candidates[(total as usize / count + i) % count];
            if spread {
                let is_other_system = !seen.system && improve(&mut best.other_system, candidate);
                if is_other_system || !seen.node && improve(&mut best.other_node, candidate) {
                    best.paths = 0;
                }
            }
            let paths = (seen.system || seen.node).then(|| seen.paths.unwrap_or_default());
            Self::weigh(&mut best, candidate, paths);
        }
        best
    }

    /// Takes a candidate if it is less loaded, or equally loaded and its neighbour is used by fewer of the
    /// destination's LIDs.
    fn weigh(best: &mut Best, candidate: PortCandidate, paths: Option<u32>) {
        let fewer = paths.filter(|&paths| paths < best.paths);
        let is_equal = best.any.is_some_and(|best| best.count == candidate.count);
        if improve(&mut best.any, candidate) || is_equal && fewer.is_some() {
            best.any = Some(candidate);
            best.paths = fewer.unwrap_or(best.paths);
        }
    }
}
