//! Near to far: the slots whose chains can be joined get the ports that lead there.

use super::super::ranks::each_bit;
use super::super::spread::Spread;
use super::{Sweeper, Target};

impl Sweeper<'_> {
    /// How far from the destination chains reach: beyond, only their tops matter.
    fn near(&self, target: Target<'_>) -> usize {
        let longest = (0..target.lanes).map(|lane| self.chain(target, lane).len()).max().unwrap_or_default();
        target.ways.within(target.place, longest)
    }

    /// Gives ports to all slots whose chains can be joined: at their tops if possible, else further down.
    pub(super) fn near_to_far(&mut self, target: Target<'_>, entries: &mut [u8], kept: Option<&[u64]>) {
        let (ports, words) = (self.ports, self.ports.words);
        let (near, masks) = (self.near(target), target.ways.masks_to(target.place));
        for (place, &xbar) in target.ways.order_to(target.place).iter().enumerate().skip(1) {
            let at = xbar as usize;
            let mut open = target.all();
            let mut by_top = 0;
            if let Some(kept) = kept {
                open &= !kept[at];
                by_top |= self.kept_by_top(target, entries, xbar, kept[at]);
            }
            if place < near && self.in_chain[at] & open != 0 {
                open = self.follow_chain(target, entries, xbar, open);
            }
            for word in 0..words {
                let number = (at * words + word) * 64;
                let mut mask = masks[at * words + word];
                while mask != 0 && open != 0 {
                    let bit = mask.trailing_zeros() as usize;
                    mask &= mask - 1;
                    let join = self.by_top[ports.heads[number + bit] as usize] & open;
                    if join != 0 {
                        by_top |= join;
                        open &= !join;
                        let set = &masks[at * words..][..words];
                        self.enter(target, entries, xbar, number + bit, set, join);
                    }
                }
            }
            self.by_top[at] |= by_top;
            if place < near && open != 0 {
                open = self.join_below_top(target, entries, xbar, open);
            }
            self.open[at] = open;
            self.decides |= open != 0 && self.sources[at] > 0;
        }
    }

    /// The slots that kept entries lead to by the tops of their chains.
    fn kept_by_top(&self, target: Target<'_>, entries: &[u8], xbar: u32, kept: u64) -> u64 {
        let mut by_top = 0;
        each_bit(kept, |lane| {
            if let Some(number) = self.entry(entries, xbar, lane) {
                by_top |= self.by_top[self.ports.heads[number] as usize] & 1 << lane;
            }
        });
        by_top & target.all()
    }

    /// At an xbar that is in chains: these go on along their own links. Returns the slots left.
    fn follow_chain(&self, target: Target<'_>, entries: &mut [u8], xbar: u32, open: u64) -> u64 {
        let mut left = open;
        each_bit(self.in_chain[xbar as usize] & open, |lane| {
            if let Some(link) = self.chain(target, lane).iter().find(|link| link.xbar == xbar) {
                let bit = link.port as usize - xbar as usize * self.ports.words * 64;
                entries[lane * self.ports.xbars + xbar as usize] = self.ports.port_of_bit(bit);
                left &= !(1 << lane);
            }
        });
        left
    }

    /// Joins chains wherever they can be. Returns the slots left.
    fn join_below_top(&self, target: Target<'_>, entries: &mut [u8], xbar: u32, open: u64) -> u64 {
        let words = self.ports.words;
        let set = &target.ways.masks_to(target.place)[xbar as usize * words..][..words];
        let mut left = open;
        for (word, &mask) in set.iter().enumerate() {
            each_bit(mask, |bit| {
                let number = (xbar as usize * words + word) * 64 + bit;
                let join = self.in_chain[self.ports.heads[number] as usize] & left;
                if join != 0 {
                    left &= !join;
                    self.enter(target, entries, xbar, number, set, join);
                }
            });
        }
        left
    }

    /// Enters a port for slots; if several of the set lead to the same xbar, they take turns.
    fn enter(
        &self,
        target: Target<'_>,
        entries: &mut [u8],
        xbar: u32,
        number: usize,
        set: &[u64],
        lanes: u64,
    ) {
        let (ports, xbars) = (self.ports, self.ports.xbars);
        let base = xbar as usize * ports.words * 64;
        let head = ports.heads[number];
        let twins = ports.has_parallel(xbar).then(|| {
            let same = |&bit: &usize| set[bit / 64] >> (bit % 64) & 1 == 1 && ports.heads[base + bit] == head;
            (0..ports.words * 64).filter(same).collect::<Vec<usize>>()
        });
        match twins {
            Some(twins) if twins.len() > 1 => each_bit(lanes, |lane| {
                let turn = target.ways.to[target.place] as usize + lane;
                let bit = twins[turn % twins.len()];
                entries[lane * xbars + xbar as usize] = ports.port_of_bit(bit);
            }),
            _ => each_bit(lanes, |lane| {
                entries[lane * xbars + xbar as usize] = ports.port_of_bit(number - base);
            }),
        }
    }

    /// As [`Self::near_to_far`] for hosts of several addresses.
    pub(super) fn near_to_far_spread(
        &mut self,
        target: Target<'_>,
        entries: &mut [u8],
        kept: Option<&[u64]>,
        spread: &Spread<'_>,
    ) {
        let words = self.ports.words;
        let masks = target.ways.masks_to(target.place);
        for &xbar in target.ways.order_to(target.place).iter().skip(1) {
            let at = xbar as usize;
            let kept = kept.map_or(0, |kept| kept[at]);
            let mut by_top = self.kept_by_top(target, entries, xbar, kept);
            for lane in (0..target.lanes).filter(|lane| kept >> lane & 1 == 0) {
                let numbers = Spread::numbers(&masks[at * words..][..words], at * words * 64);
                let best = numbers.min_by_key(|&number| {
                    let head = self.ports.heads[number] as usize;
                    let entry = |lane: usize| entries[lane * self.ports.xbars + at];
                    let like = spread.likeness(self.ports, entry, lane, number);
                    let chain = self.chain(target, lane).iter().any(|link| link.port as usize == number);
                    let top = self.by_top[head] >> lane & 1 == 1;
                    let joins = self.in_chain[head] >> lane & 1 == 1;
                    (like, !chain, !top, !joins, self.loads[number], (number + lane) % 64)
                });
                if let Some(number) = best {
                    let bit = number - at * words * 64;
                    entries[lane * self.ports.xbars + at] = self.ports.port_of_bit(bit);
                    by_top |= self.by_top[self.ports.heads[number] as usize] & 1 << lane;
                }
            }
            self.by_top[at] |= by_top;
            self.open[at] = 0;
        }
    }
}
