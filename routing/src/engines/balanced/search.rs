//! A search by levels from up to 64 destinations at once, a bit each, for whoever wants to know what it finds.

use super::ports::XbarPorts;
use super::ranks::each_bit;

/// Destinations that one search follows.
pub(super) const BLOCK: usize = 64;

/// Takes what a search finds.
pub(super) trait Finds {
    /// Takes in that a step begins.
    fn begin_step(&mut self) {}

    /// Takes in that an xbar is the destination at a place, or reaches it, and is no nearer than those before it.
    fn push(&mut self, _place: usize, _xbar: u32) {}

    /// Takes in that ways lead on from an xbar to the destinations of `fall` by descending, and to those of `rise` by
    /// climbing, over xbars that were found in the step before.
    fn note(&mut self, found: &Frontier<'_>, xbar: u32, fall: u64, rise: u64);
}

/// What the step before found.
pub(super) struct Frontier<'a> {
    pub(super) ports: &'a XbarPorts,
    /// For each xbar the destinations that it was found to reach, and those of them that it falls to.
    pub(super) fresh: &'a [u64],
    pub(super) falling: &'a [u64],
}

/// A search by levels from up to [`BLOCK`] destinations.
pub(super) struct LevelSearch<'a> {
    ports: &'a XbarPorts,
    /// The destinations that each xbar can fall to, if xbars may rise only to others.
    falls: Option<&'a [u64]>,
    reached: Vec<u64>,
    /// Destinations that each xbar was found to reach in the last step, and those of them that it falls to.
    fresh: Vec<u64>,
    falling: Vec<u64>,
    /// The destinations that neighbours offer in this step by rising, and by falling.
    rise: Vec<u64>,
    fall: Vec<u64>,
}

impl<'a> LevelSearch<'a> {
    pub(super) fn new(ports: &'a XbarPorts, falls: Option<&'a [u64]>) -> Self {
        let zeros = || vec![0; ports.xbars];
        let (reached, fresh, falling, rise, fall) = (zeros(), zeros(), zeros(), zeros(), zeros());
        Self { ports, falls, reached, fresh, falling, rise, fall }
    }

    /// Searches from those of the destinations whose bit is set in `wanted`. Returns the destinations that each xbar reaches.
    pub(super) fn run(mut self, to: &[u32], wanted: u64, finds: &mut impl Finds) -> Vec<u64> {
        let mut frontier = Vec::new();
        for (place, &xbar) in to.iter().enumerate() {
            if wanted >> place & 1 == 1 {
                self.reached[xbar as usize] |= 1 << place;
                self.fresh[xbar as usize] |= 1 << place;
                self.falling[xbar as usize] |= 1 << place;
                finds.push(place, xbar);
                frontier.push(xbar);
            }
        }
        while !frontier.is_empty() {
            finds.begin_step();
            frontier = self.step(&frontier, finds);
        }
        self.reached
    }

    /// Takes one step away from the destinations. Returns the xbars that were found to reach any.
    fn step(&mut self, frontier: &[u32], finds: &mut impl Finds) -> Vec<u32> {
        let touched = self.offer(frontier);
        let mut next: Vec<(u32, u64, u64)> = Vec::with_capacity(touched.len());
        for xbar in touched {
            let at = xbar as usize;
            let fall = self.fall[at] & !self.reached[at];
            let no_rise = self.reached[at] | fall | self.falls.map_or(0, |falls| falls[at]);
            let rise = self.rise[at] & !no_rise;
            (self.fall[at], self.rise[at]) = (0, 0);
            if fall | rise != 0 {
                let found = Frontier { ports: self.ports, fresh: &self.fresh, falling: &self.falling };
                finds.note(&found, xbar, fall, rise);
                next.push((xbar, fall, rise));
            }
        }
        for &xbar in frontier {
            (self.fresh[xbar as usize], self.falling[xbar as usize]) = (0, 0);
        }
        for &(xbar, fall, rise) in &next {
            self.reached[xbar as usize] |= fall | rise;
            self.fresh[xbar as usize] = fall | rise;
            self.falling[xbar as usize] = fall;
            each_bit(fall | rise, |place| finds.push(place, xbar));
        }
        next.into_iter().map(|(xbar, ..)| xbar).collect()
    }

    /// Offers what the last step found to neighbours. Returns the neighbours that may gain by it.
    fn offer(&mut self, frontier: &[u32]) -> Vec<u32> {
        let mut touched = Vec::new();
        for &xbar in frontier {
            let (fresh, falling) = (self.fresh[xbar as usize], self.falling[xbar as usize]);
            for &below in self.ports.below(xbar) {
                let at = below as usize;
                let bits = fresh & !self.reached[at];
                if bits != 0 {
                    if self.rise[at] | self.fall[at] == 0 {
                        touched.push(below);
                    }
                    self.rise[at] |= bits;
                }
            }
            for &above in self.ports.above(xbar) {
                let at = above as usize;
                let bits = falling & !self.reached[at];
                if bits != 0 {
                    if self.rise[at] | self.fall[at] == 0 {
                        touched.push(above);
                    }
                    self.fall[at] |= bits;
                }
            }
        }
        touched
    }
}
