//! The pass from near to far: slots whose chains can be joined get the ports that lead there.

use super::super::ranks::each_bit;
use super::super::spread::Spread;
use super::super::turns::BitsInTurn;
use super::columns::{Column, EMPTY};
use super::{Sweeper, Target};

impl Sweeper<'_> {
    /// How many xbars are so near to the destination that chains reach them. Beyond, only the tops of chains
    /// matter.
    fn near(&self, target: Target<'_>) -> usize {
        let longest = (0..target.lanes).map(|lane| self.chain(target, lane).len()).max().unwrap_or_default();
        target.ways.within(target.place, longest)
    }

    /// Gives ports to all slots whose chains can be joined: at their tops if possible, else further down.
    pub(super) fn near_to_far(&mut self, target: Target<'_>, entries: &[u8], kept: Option<&[u64]>) {
        let near = self.near(target);
        for (place, &xbar) in target.ways.order_to(target.place).iter().enumerate().skip(1) {
            let at = xbar as usize;
            let class = if kept.is_none() { self.class(target, xbar) } else { None };
            if !class.is_some_and(|class| self.share(target, xbar, class)) {
                let kept = kept.map_or(0, |kept| kept[at]);
                let mut column = self.kept_column(target, entries, xbar, kept);
                self.join(target, (xbar, place < near), &mut column, target.all() & !kept);
                if self.sources[at] == 0 && self.open[at] != 0 {
                    self.take_turns(target, xbar, &mut column);
                }
                self.columns.put(xbar, column);
                if let Some(class) = class {
                    self.lead(xbar, class);
                }
            }
            self.decides |= self.open[at] != 0 && self.sources[at] > 0;
        }
    }

    /// The entries of an xbar that are kept. Notes which of them lead by the tops of their chains.
    fn kept_column(&mut self, target: Target<'_>, entries: &[u8], xbar: u32, kept: u64) -> Column {
        let mut column = EMPTY;
        each_bit(kept & target.all(), |lane| {
            column[lane] = entries[lane * self.ports.xbars + xbar as usize];
            if let Some(number) = self.number(xbar, column[lane]) {
                self.by_top[xbar as usize] |= self.by_top[self.ports.heads[number] as usize] & 1 << lane;
            }
        });
        column
    }

    /// Gives ports to those of an xbar's open slots whose chains can be joined. `near` says whether chains
    /// may reach so far.
    fn join(&mut self, target: Target<'_>, (xbar, near): (u32, bool), column: &mut Column, mut open: u64) {
        let at = xbar as usize;
        if near && self.in_chain[at] & open != 0 {
            open = self.follow_chain(target, column, xbar, open);
        }
        let mut by_top = 0;
        let set = target.set(self.ports, xbar);
        for (word, &mask) in set.iter().enumerate() {
            let number = (at * self.ports.words + word) * 64;
            let mut mask = mask;
            while mask != 0 && open != 0 {
                let bit = mask.trailing_zeros() as usize;
                mask &= mask - 1;
                let join = self.by_top[self.ports.heads[number + bit] as usize] & open;
                if join != 0 {
                    by_top |= join;
                    open &= !join;
                    self.enter(target, column, number + bit, set, join);
                }
            }
        }
        self.by_top[at] |= by_top;
        if near && open != 0 {
            open = self.join_below_top(target, column, xbar, open);
        }
        self.open[at] = open;
    }

    /// At an xbar that is in chains, has these go on along their own links. Returns the slots that are left.
    fn follow_chain(&self, target: Target<'_>, column: &mut Column, xbar: u32, open: u64) -> u64 {
        let mut left = open;
        each_bit(self.in_chain[xbar as usize] & open, |lane| {
            if let Some(link) = self.chain(target, lane).iter().find(|link| link.xbar == xbar) {
                let bit = link.port as usize - xbar as usize * self.ports.words * 64;
                column[lane] = self.ports.port_of_bit(bit);
                left &= !(1 << lane);
            }
        });
        left
    }

    /// Joins chains wherever possible. Returns the slots that are left.
    fn join_below_top(&self, target: Target<'_>, column: &mut Column, xbar: u32, open: u64) -> u64 {
        let set = target.set(self.ports, xbar);
        let mut left = open;
        for (word, &mask) in set.iter().enumerate() {
            each_bit(mask, |bit| {
                let number = (xbar as usize * self.ports.words + word) * 64 + bit;
                let join = self.in_chain[self.ports.heads[number] as usize] & left;
                if join != 0 {
                    left &= !join;
                    self.enter(target, column, number, set, join);
                }
            });
        }
        left
    }

    /// Gives an xbar's open slots its ports in turn. This is for slots for which no frames may pass.
    fn take_turns(&mut self, target: Target<'_>, xbar: u32, column: &mut Column) {
        let turn = self.turn(target.slots().to as usize);
        let mut turns = BitsInTurn::new(target.set(self.ports, xbar), turn);
        each_bit(self.open[xbar as usize], |lane| {
            if let Some(bit) = turns.next() {
                column[lane] = self.ports.port_of_bit(bit);
            }
        });
    }

    /// Enters a port for slots. If several ports of the set lead to the same xbar, they take turns.
    fn enter(&self, target: Target<'_>, column: &mut Column, number: usize, set: &[u64], lanes: u64) {
        let ports = self.ports;
        let xbar = ports.xbar_of(number);
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
                column[lane] = ports.port_of_bit(bit);
            }),
            _ => each_bit(lanes, |lane| column[lane] = ports.port_of_bit(number - base)),
        }
    }

    /// Does for hosts with several addresses what [`Self::near_to_far`] does for hosts with one.
    pub(super) fn near_to_far_spread(
        &mut self,
        target: Target<'_>,
        entries: &[u8],
        kept: Option<&[u64]>,
        spread: &Spread<'_>,
    ) {
        let words = self.ports.words;
        for &xbar in target.ways.order_to(target.place).iter().skip(1) {
            let at = xbar as usize;
            let kept = kept.map_or(0, |kept| kept[at]);
            let mut column = self.kept_column(target, entries, xbar, kept);
            for lane in (0..target.lanes).filter(|lane| kept >> lane & 1 == 0) {
                let numbers = Spread::numbers(target.set(self.ports, xbar), at * words * 64);
                let best = numbers.min_by_key(|&number| {
                    let head = self.ports.heads[number] as usize;
                    let like = spread.likeness(self.ports, |lane| column[lane], lane, number);
                    let chain = self.chain(target, lane).iter().any(|link| link.port as usize == number);
                    let top = self.by_top[head] >> lane & 1 == 1;
                    let joins = self.in_chain[head] >> lane & 1 == 1;
                    (like, !chain, !top, !joins, self.loads[number], (number + lane) % 64)
                });
                if let Some(number) = best {
                    column[lane] = self.ports.port_of_bit(number - at * words * 64);
                    self.by_top[at] |= self.by_top[self.ports.heads[number] as usize] & 1 << lane;
                }
            }
            self.open[at] = 0;
            self.columns.put(xbar, column);
        }
    }
}
