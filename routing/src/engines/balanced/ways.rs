//! Legal shortest ways to destination xbars, up to 64 of them at once, a bit each.

use super::ports::XbarPorts;
use super::ranks::each_bit;
use super::search::{BLOCK, Finds, Frontier, LevelSearch};

/// Words in a line of the cache of most processors.
const LINE: usize = 8;

/// Steps from a destination whose ends are remembered: see [`Ways::within`].
const NEAR: usize = 8;

/// By which ports of each xbar a legal shortest way leads on to each of some destination xbars.
///
/// Without an order of xbars these are the shortest ways. With one, tables look at the destination only,
/// wherever a frame comes from; so each xbar either *falls* or *rises* towards a destination: one that
/// falls goes on to lower xbars that fall, one that rises to any higher xbar. The shorter of the two
/// is taken, and falling if both are as short. This may leave xbars without a way, though a legal one exists: they
/// would descend to one that rises, because its way down is longer. Then the destination is searched
/// anew, and whatever can fall to it does.
pub(super) struct Ways {
    /// The destinations.
    pub(super) to: Vec<u32>,
    xbars: usize,
    words: usize,
    /// Sets of ports: `masks[destination * stride + xbar * words..]`.
    pub(super) masks: Vec<u64>,
    /// The distance between the masks of two destinations. It is an odd number of cache lines, so that what
    /// is written for one xbar and all destinations lies in different sets of the cache.
    stride: usize,
    /// For each destination the xbars that reach it, near ones first: `order[destination * xbars..]`.
    order: Vec<u32>,
    lengths: Vec<u32>,
    /// After each number of steps, how many xbars reach each destination.
    ends: Vec<[u32; BLOCK]>,
}

impl Ways {
    /// Finds ways to at most [`BLOCK`] xbars. `hosts` are the xbars that have hosts, and so must have a way
    /// if there is any. Without `ordered`, [`Self::order_to`] is left empty.
    pub(super) fn find(ports: &XbarPorts, to: &[u32], parts: &[u32], hosts: &[u32], ordered: bool) -> Self {
        debug_assert!(to.len() <= BLOCK, "a bit each");
        let stride = ((ports.xbars * ports.words).div_ceil(LINE) | 1) * LINE;
        let mut ways = Self {
            to: to.to_vec(),
            xbars: ports.xbars,
            words: ports.words,
            masks: vec![0; to.len() * stride],
            stride,
            order: vec![0; if ordered { to.len() * ports.xbars } else { 0 }],
            lengths: vec![0; to.len()],
            ends: Vec::new(),
        };
        if !ports.weights.is_empty() {
            super::weighted::find(ports, &mut ways);
            return ways;
        }
        let all = u64::MAX >> (BLOCK - to.len().clamp(1, BLOCK));
        let mut noted = Noted { ways: &mut ways, is_first: true };
        let reached = LevelSearch::new(ports, None).run(to, all, &mut noted);
        let missed = missed(&reached, to, all, parts, hosts);
        if missed != 0 {
            let falls = falls(ports, to, missed);
            ways.clear(missed);
            LevelSearch::new(ports, Some(&falls)).run(
                to,
                missed,
                &mut Noted { ways: &mut ways, is_first: false },
            );
        }
        ways
    }

    /// The sets of ports of all xbars for one of the destinations, by its place in [`Self::to`].
    pub(super) fn masks_to(&self, place: usize) -> &[u64] {
        &self.masks[place * self.stride..][..self.xbars * self.words]
    }

    /// Of each destination, the sets of ports of all xbars.
    pub(super) fn masks_mut(&mut self) -> impl Iterator<Item = &mut [u64]> {
        let length = self.xbars * self.words;
        self.masks.chunks_exact_mut(self.stride).map(move |masks| &mut masks[..length])
    }

    /// Sets a word of the set of ports of an xbar for one of the destinations.
    pub(super) fn set_mask(&mut self, place: usize, xbar: u32, word: usize, mask: u64) {
        self.masks[place * self.stride + xbar as usize * self.words + word] = mask;
    }

    /// Has a way to one of the destinations lead on by a numbered port.
    pub(super) fn add_port(&mut self, place: usize, number: usize) {
        self.masks[place * self.stride + number / 64] |= 1 << (number % 64);
    }

    /// Whether a way to a destination leads on by a numbered port.
    pub(super) fn leads(&self, place: usize, number: usize) -> bool {
        self.masks_to(place)[number / 64] >> (number % 64) & 1 == 1
    }

    /// The xbars that reach a destination, near ones first, itself the first.
    pub(super) fn order_to(&self, place: usize) -> &[u32] {
        let start = place * self.xbars;
        self.order.get(start..start + self.lengths[place] as usize).unwrap_or_default()
    }

    /// How many xbars of [`Self::order_to`] are at most so many steps away; perhaps more.
    pub(super) fn within(&self, place: usize, steps: usize) -> usize {
        self.ends.get(steps).map_or(self.lengths[place], |ends| ends[place]) as usize
    }

    /// Adds an xbar that reaches a destination and is no nearer than those before it.
    pub(super) fn push(&mut self, place: usize, xbar: u32) {
        if self.order.is_empty() {
            return;
        }
        self.order[place * self.xbars + self.lengths[place] as usize] = xbar;
        self.lengths[place] += 1;
    }

    fn clear(&mut self, wanted: u64) {
        each_bit(wanted, |place| {
            self.lengths[place] = 0;
            self.masks[place * self.stride..][..self.stride].fill(0);
        });
        // The ends of the first search would be wrong for the second.
        self.ends.clear();
    }
}

/// The destinations that some xbar with hosts, in the same part of the fabric, was not found to reach.
pub(super) fn missed(reached: &[u64], to: &[u32], all: u64, parts: &[u32], hosts: &[u32]) -> u64 {
    let mut missed = 0;
    for &xbar in hosts {
        each_bit(all & !reached[xbar as usize] & !missed, |place| {
            if parts[to[place] as usize] == parts[xbar as usize] {
                missed |= 1 << place;
            }
        });
    }
    missed
}

/// For each xbar the destinations that it can fall to.
fn falls(ports: &XbarPorts, to: &[u32], wanted: u64) -> Vec<u64> {
    let mut falls = vec![0; ports.xbars];
    let mut queue = Vec::new();
    each_bit(wanted, |place| {
        falls[to[place] as usize] |= 1 << place;
        queue.push(to[place]);
    });
    while let Some(xbar) = queue.pop() {
        let bits: u64 = falls[xbar as usize];
        for &above in ports.above(xbar) {
            if bits & !falls[above as usize] != 0 {
                falls[above as usize] |= bits;
                queue.push(above);
            }
        }
    }
    falls
}

/// Ways while they are found.
struct Noted<'a> {
    ways: &'a mut Ways,
    /// Whether it is the first search for them.
    is_first: bool,
}

impl Finds for Noted<'_> {
    fn begin_step(&mut self) {
        if self.is_first && self.ways.ends.len() < NEAR {
            let mut ends = [0; BLOCK];
            ends[..self.ways.lengths.len()].copy_from_slice(&self.ways.lengths);
            self.ways.ends.push(ends);
        }
    }

    fn push(&mut self, place: usize, xbar: u32) {
        self.ways.push(place, xbar);
    }

    /// Notes the ports by which an xbar reaches destinations that it falls or rises to.
    fn note(&mut self, found: &Frontier<'_>, xbar: u32, fall: u64, rise: u64) {
        let words = found.ports.words;
        for word in 0..words {
            let at = xbar as usize * words + word;
            let (live, climbs) = (found.ports.live[at], found.ports.climbs[at]);
            let mut rows = [0_u64; 64];
            let (mut any, mut several, mut common, mut used) = (0, 0, u64::MAX, 0);
            let heads = &found.ports.heads[at * 64..][..64];
            let either = if rise != 0 { climbs } else { 0 } | if fall != 0 { !climbs } else { 0 };
            each_bit(live & either, |bit| {
                let head = heads[bit] as usize;
                let row = if climbs >> bit & 1 == 1 {
                    rise & found.fresh[head]
                } else {
                    fall & found.falling[head]
                };
                if row != 0 {
                    rows[bit] = row;
                    several |= any & row;
                    any |= row;
                    common &= row;
                    used |= 1 << bit;
                }
            });
            let ways = &mut *self.ways;
            if any == common {
                // All these ports lead to all these destinations, as ports upwards in a tree do.
                each_bit(any, |place| ways.set_mask(place, xbar, word, used));
            } else if several == 0 {
                // A single port leads to each destination, as it is downwards in a tree.
                each_bit(used, |bit| {
                    each_bit(rows[bit], |place| ways.set_mask(place, xbar, word, 1 << bit));
                });
            } else {
                transpose(&mut rows);
                each_bit(any, |place| ways.set_mask(place, xbar, word, rows[place]));
            }
        }
    }
}

/// Swaps rows and columns of 64 by 64 bits, by halves (Warren, "Hacker's Delight", 7-3).
fn transpose(rows: &mut [u64; 64]) {
    let (mut width, mut mask) = (32, 0x0000_0000_FFFF_FFFF_u64);
    while width != 0 {
        let mut row = 0;
        while row < 64 {
            let other = row + width;
            let swap = (rows[row] >> width ^ rows[other]) & mask;
            rows[other] ^= swap;
            rows[row] ^= swap << width;
            row = (other + 1) & !width;
        }
        width >>= 1;
        mask ^= mask << width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposing_swaps_rows_and_columns() {
        let mut rows = [0_u64; 64];
        for (row, bits) in rows.iter_mut().enumerate() {
            *bits = (row as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
        let before = rows;
        transpose(&mut rows);
        for (row, bits) in rows.iter().enumerate() {
            for (column, before) in before.iter().enumerate() {
                assert_eq!(bits >> column & 1, before >> row & 1, "{row} {column}");
            }
        }
    }
}
