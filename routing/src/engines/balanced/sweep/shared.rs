//! Shares entries between xbars that are alike: what was computed for the first of them serves all.

use super::{Sweeper, Target};

/// The xbar of a class that a target's entries were computed for.
#[derive(Clone, Default)]
pub(super) struct First {
    /// The number of the target.
    target: u64,
    pub(super) xbar: u32,
    /// How many hosts the xbars of the class have whose routes were counted together.
    sources: u32,
    /// For each port, by its bit in a set, how many slots' entries name it. Empty until it is asked for.
    uses: Vec<u32>,
}

impl Sweeper<'_> {
    /// The class of an xbar whose entries may serve others, or may be those of another.
    pub(super) fn class(&self, target: Target<'_>, xbar: u32) -> Option<u32> {
        let may = self.in_chain[xbar as usize] == 0 && self.random.is_none();
        if may { self.alike.class(xbar, target.set(self.ports, xbar)) } else { None }
    }

    /// Gives an xbar what was chosen for another of its class with the same ways on. Returns whether there is one.
    pub(super) fn share(&mut self, target: Target<'_>, xbar: u32, class: u32) -> bool {
        let first = &self.firsts[class as usize];
        let of = first.xbar;
        if first.target != self.target || target.set(self.ports, of) != target.set(self.ports, xbar) {
            return false;
        }
        self.columns.share(xbar, of);
        self.by_top[xbar as usize] = self.by_top[of as usize];
        self.open[xbar as usize] = self.open[of as usize];
        self.class_of[xbar as usize] = Some(class);
        true
    }

    /// Makes what was chosen for an xbar available to others of its class.
    pub(super) fn lead(&mut self, xbar: u32, class: u32) {
        let first = &mut self.firsts[class as usize];
        (first.target, first.xbar, first.sources) = (self.target, xbar, 0);
        first.uses.clear();
        self.class_of[xbar as usize] = Some(class);
    }

    /// Counts the routes of an xbar's hosts together with those of its class.
    pub(super) fn count_shared(&mut self, xbar: u32, class: u32, lanes: usize) {
        let (width, sources) = (self.ports.words * 64, self.sources[xbar as usize]);
        let first = &mut self.firsts[class as usize];
        first.sources += sources;
        if first.uses.is_empty() {
            first.uses.resize(width, 0);
            let bits = self.columns.of(xbar)[..lanes].iter().filter_map(|&port| self.ports.bit_of_port(port));
            bits.for_each(|bit| first.uses[bit] += 1);
        }
        let loads = &mut self.loads[xbar as usize * width..][..width];
        for (load, uses) in loads.iter_mut().zip(&first.uses) {
            *load = load.wrapping_add(uses * sources);
        }
    }

    /// Hands on the routes that were counted together. To be called at the first xbar of the class, which is
    /// the last one of it in the pass from far to near.
    pub(super) fn hand_on(&mut self, xbar: u32, class: u32, lanes: usize) {
        let first = &mut self.firsts[class as usize];
        let sources = std::mem::take(&mut first.sources);
        if first.xbar != xbar || sources == 0 {
            first.sources = sources;
            return;
        }
        let column = *self.columns.of(xbar);
        for (lane, &port) in column[..lanes].iter().enumerate() {
            if let Some(number) = self.number(xbar, port) {
                self.pass(number, lane, lanes, sources);
            }
        }
    }
}
