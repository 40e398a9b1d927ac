//! The dependencies of one layer, kept free of circles.

use super::heading::Heading;
use super::lattice::Lattice;

/// The dependencies of a layer, with an order of its channels in which all of them lead forward.
///
/// The order is kept as dependencies are added (Pearce, Kelly: "A Dynamic Topological Sort Algorithm for
/// Directed Acyclic Graphs", 2006). A channel is numbered `6 * router + heading`.
pub(super) struct Layer<'a> {
    lattice: &'a Lattice,
    /// The headings that follow each channel, a bit each.
    onward: Vec<u8>,
    /// Each channel's place in the order.
    places: Vec<u32>,
    marks: Vec<bool>,
    ahead: Vec<u32>,
    behind: Vec<u32>,
    /// What the route that is being added has brought.
    added: Vec<(u32, u8)>,
}

impl<'a> Layer<'a> {
    /// Without dependencies.
    pub(super) fn new(lattice: &'a Lattice) -> Self {
        let channels = 6 * lattice.router_count();
        Self {
            lattice,
            onward: vec![0; channels],
            places: (0..channels as u32).collect(),
            marks: vec![false; channels],
            ahead: Vec::new(),
            behind: Vec::new(),
            added: Vec::new(),
        }
    }

    /// With these headings after each channel, a bit each. `ranks` rise from each channel to all that follow.
    pub(super) fn with(lattice: &'a Lattice, onward: Vec<u8>, ranks: &[u32]) -> Self {
        let mut order: Vec<u32> = (0..onward.len() as u32).collect();
        order.sort_unstable_by_key(|&channel| (ranks[channel as usize], channel));
        let mut places = vec![0; order.len()];
        (0..).zip(order).for_each(|(place, channel)| places[channel as usize] = place);
        Self { onward, places, ..Self::new(lattice) }
    }

    /// Adds a route, as the channels that it passes. False if a circle would come of it: then nothing is
    /// added.
    pub(super) fn add(&mut self, channels: &[u32]) -> bool {
        self.added.clear();
        for pair in channels.windows(2) {
            let (first, second) = (pair[0], pair[1]);
            let bit = 1 << (second % 6);
            if self.onward[first as usize] & bit != 0 {
                continue;
            }
            if !self.put_in_order(first, second) {
                // An order that suits more dependencies suits those that are left.
                for &(channel, bit) in &self.added {
                    self.onward[channel as usize] &= !bit;
                }
                return false;
            }
            self.onward[first as usize] |= bit;
            self.added.push((first, bit));
        }
        true
    }

    /// Brings a channel before another in the order. False if the other leads to it.
    fn put_in_order(&mut self, first: u32, second: u32) -> bool {
        let (from, to) = (self.places[second as usize], self.places[first as usize]);
        if to < from {
            return true;
        }
        let free = self.find_ahead(second, to);
        if free {
            self.find_behind(first, from);
            self.reorder();
        }
        for &channel in self.ahead.iter().chain(&self.behind) {
            self.marks[channel as usize] = false;
        }
        free
    }

    /// All that a channel leads to, up to a place. False if that is the place of one of them.
    fn find_ahead(&mut self, start: u32, last: u32) -> bool {
        self.ahead.clear();
        self.behind.clear();
        self.ahead.push(start);
        self.marks[start as usize] = true;
        let mut looked_at = 0;
        while let Some(&channel) = self.ahead.get(looked_at) {
            looked_at += 1;
            if self.places[channel as usize] == last {
                return false;
            }
            let Some(heading) = Heading::from_index((channel % 6) as u8) else { continue };
            let Some(head) = self.lattice.next(channel / 6, heading) else { continue };
            for onward in 0..6 {
                let next = 6 * head + onward;
                if self.onward[channel as usize] >> onward & 1 == 1
                    && !self.marks[next as usize]
                    && self.places[next as usize] <= last
                {
                    self.marks[next as usize] = true;
                    self.ahead.push(next);
                }
            }
        }
        true
    }

    /// All that leads to a channel, down to a place.
    fn find_behind(&mut self, start: u32, first: u32) {
        self.behind.push(start);
        self.marks[start as usize] = true;
        let mut looked_at = 0;
        while let Some(&channel) = self.behind.get(looked_at) {
            looked_at += 1;
            for heading in Heading::ALL {
                let Some(router) = self.lattice.next(channel / 6, heading.back()) else { continue };
                let before = 6 * router + heading.index() as u32;
                if self.onward[before as usize] >> (channel % 6) & 1 == 1
                    && !self.marks[before as usize]
                    && self.places[before as usize] >= first
                {
                    self.marks[before as usize] = true;
                    self.behind.push(before);
                }
            }
        }
    }

    /// Gives the places of what was found to those behind first, then to those ahead.
    fn reorder(&mut self) {
        let places = &mut self.places;
        self.behind.sort_unstable_by_key(|&channel| places[channel as usize]);
        self.ahead.sort_unstable_by_key(|&channel| places[channel as usize]);
        let all = || self.behind.iter().chain(&self.ahead);
        let mut free: Vec<u32> = all().map(|&channel| places[channel as usize]).collect();
        free.sort_unstable();
        for (&channel, place) in all().zip(free) {
            places[channel as usize] = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::torus::fabrics::Broken;

    #[test]
    fn a_circle_is_found_and_leaves_nothing_behind() {
        let broken = Broken::new(&[(4, true)], 1);
        let subnet = broken.subnet();
        let lattice = Lattice::new(&broken.grid(&subnet), &subnet.topology);
        let mut layer = Layer::new(&lattice);
        // Channels x+ of a ring of four: 0, 6, 12, 18.
        assert!(layer.add(&[12, 18]));
        assert!(layer.add(&[0, 6, 12]));
        assert!(!layer.add(&[18, 0]));
        assert!(!layer.add(&[6, 12, 18, 0]));
        assert!(layer.add(&[6, 12, 18]));
        // The other way round is free.
        assert!(layer.add(&[1, 19, 13]));
        assert!(!layer.add(&[13, 7, 1]) || !layer.add(&[7, 1, 19]));
    }
}
