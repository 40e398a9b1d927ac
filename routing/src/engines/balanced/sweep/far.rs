//! The pass from far to near: routes are counted, and slots that were left open get ports by the loads.

use rand::RngExt;

use super::super::ranks::each_bit;
use super::super::spread::Spread;
use super::super::turns::BitsInTurn;
use super::{Slots, Sweeper, Target};
use crate::Tables;

impl Sweeper<'_> {
    /// Counts the routes, and gives the least loaded ports to slots that were left open and for which frames
    /// pass.
    pub(super) fn far_to_near(&mut self, target: Target<'_>) {
        let order = target.ways.order_to(target.place);
        for &xbar in order {
            self.passing[xbar as usize] = 0;
        }
        for &xbar in order.iter().skip(1).rev() {
            let at = xbar as usize;
            let class = self.class_of[at];
            let active = if self.sources[at] > 0 { target.all() } else { self.passing[at] };
            if active != 0 {
                let alone =
                    self.passing[at] != 0 || self.open[at] & active != 0 || !self.ports.all_count(xbar);
                match class.filter(|_| !alone) {
                    Some(class) => self.count_shared(xbar, class, target.lanes),
                    None => self.count_alone(target, xbar, active),
                }
            }
            if let Some(class) = class {
                self.hand_on(xbar, class, target.lanes);
            }
        }
    }

    /// Counts the routes that leave an xbar, slot by slot, and chooses the ports that are open.
    fn count_alone(&mut self, target: Target<'_>, xbar: u32, active: u64) {
        let (at, lanes, to) = (xbar as usize, target.lanes, target.slots().to as usize);
        let base = at * self.ports.words * 64;
        let open = self.open[at] & active;
        let (passing, sources) = (self.passing[at], self.sources[at]);
        let mut column = *self.columns.of(xbar);
        each_bit(active, |lane| {
            let number = if open >> lane & 1 == 1 {
                self.least_loaded(target.set(self.ports, xbar), base, to + lane)
            } else {
                self.number(xbar, column[lane])
            };
            let Some(number) = number else { return };
            column[lane] = self.ports.port_of_bit(number - base);
            let routes = if passing == 0 { sources } else { self.routes[at * lanes + lane] };
            self.count(number, routes);
            self.pass(number, lane, lanes, routes);
        });
        if open != 0 {
            self.columns.put(xbar, column);
        }
    }

    /// Notes routes of a slot that come to the xbar behind a port.
    pub(super) fn pass(&mut self, number: usize, lane: usize, lanes: usize, routes: u32) {
        let head = self.ports.heads[number] as usize;
        if self.passing[head] == 0 {
            self.routes[head * lanes..][..lanes].fill(self.sources[head]);
        }
        self.passing[head] |= 1 << lane;
        self.routes[head * lanes + lane] += routes;
    }

    fn count(&mut self, number: usize, routes: u32) {
        let counts = self.ports.counted[number / 64] >> (number % 64) & 1;
        self.loads[number] = self.loads[number].wrapping_add(routes * counts as u32);
    }

    /// Chooses an xbar's entries for some slots one by one: see [`Self::choose_one`].
    pub(in super::super) fn choose_singly(
        &mut self,
        slots: Slots,
        set: &[u64],
        column: &mut [u8],
        (xbar, lanes): (u32, u64),
    ) {
        // Wrong entries do not count while others are chosen.
        each_bit(lanes, |lane| column[lane] = Tables::NONE);
        each_bit(lanes, |lane| self.choose_one(slots, set, column, xbar, lane));
    }

    /// Adds the routes of entries that are there to the loads, or takes them away.
    pub(in super::super) fn recount(&mut self, target: Target<'_>, entries: &[u8], add: bool) {
        let lanes = target.lanes;
        let order = target.ways.order_to(target.place);
        self.only_singly = false;
        for &xbar in order {
            self.routes[xbar as usize * lanes..][..lanes].fill(self.sources[xbar as usize]);
        }
        for &xbar in order.iter().skip(1).rev() {
            for lane in 0..lanes {
                let routes = self.routes[xbar as usize * lanes + lane];
                if routes == 0 {
                    continue;
                }
                let port = entries[lane * self.ports.xbars + xbar as usize];
                let Some(number) = self.number(xbar, port) else { continue };
                if target.ways.leads(target.place, number) {
                    self.count(number, if add { routes } else { routes.wrapping_neg() });
                    let head = self.ports.heads[number] as usize;
                    self.routes[head * lanes + lane] += routes;
                }
            }
        }
    }

    /// Finds the load of the least loaded way on from each xbar.
    pub(super) fn look_ahead(&mut self, target: Target<'_>) {
        let (words, masks) = (self.ports.words, target.ways.masks_to(target.place));
        for (place, &xbar) in target.ways.order_to(target.place).iter().enumerate() {
            let at = xbar as usize;
            let mut least = if place == 0 { 0 } else { u64::MAX };
            for (word, &mask) in (at * words..).zip(&masks[at * words..(at + 1) * words]) {
                each_bit(mask, |bit| least = least.min(self.way_load(word * 64 + bit)));
            }
            self.ahead[at] = least;
        }
    }

    /// The load of the least loaded way that begins with a port.
    fn way_load(&self, number: usize) -> u64 {
        u64::from(self.loads[number]) + self.ahead[self.ports.heads[number] as usize]
    }

    /// Chooses a single entry by the loads that are known, and counts it as the routes of the xbar's hosts.
    /// `set`: the ports by which ways lead on; `column`: the xbar's entries, by slot.
    fn choose_one(&mut self, slots: Slots, set: &[u64], column: &mut [u8], xbar: u32, lane: usize) {
        self.decides = false;
        let base = xbar as usize * self.ports.words * 64;
        let number = match Spread::of(self.subnet, slots) {
            Some(spread) => Spread::numbers(set, base).min_by_key(|&number| {
                (spread.likeness(self.ports, |lane| column[lane], lane, number), self.loads[number])
            }),
            None => self.least_loaded(set, base, slots.to as usize + lane),
        };
        column[lane] = number.map_or(Tables::NONE, |number| {
            let routes = self.sources[xbar as usize].max(1);
            self.count(number, routes);
            if self.ports.counts(number) {
                self.singly.push((number, routes));
            }
            self.ports.port_of_bit(number - base)
        });
    }

    /// Where the search for a port begins, if not at random.
    pub(super) fn turn(&mut self, fixed: usize) -> usize {
        self.random.as_mut().map_or(fixed, |random| random.random::<u32>() as usize)
    }

    /// The least loaded port of a set, whose first port has the number `base`. Among equally loaded ones it
    /// depends on the turn.
    fn least_loaded(&mut self, set: &[u64], base: usize, turn: usize) -> Option<usize> {
        let mut turns = BitsInTurn::new(set, self.turn(turn));
        let count: u32 = set.iter().map(|word| word.count_ones()).sum();
        let mut best: Option<(u64, usize)> = None;
        for _ in 0..count {
            let Some(bit) = turns.next() else { break };
            let load = if self.decides { self.way_load(base + bit) } else { self.loads[base + bit].into() };
            if best.is_none_or(|(least, _)| load < least) {
                best = Some((load, base + bit));
            }
        }
        best.map(|(_, number)| number)
    }
}
