//! Tables that were in force. Their trees stay as far as they lead on and their turns close no circle.

use super::search::{SearchEnd, TreeSearch};
use super::turns::Turns;
use super::{Address, Router};
use crate::engines::filling::{self, NO_CHANNEL};
use crate::tables::Tables;
use crate::{Subnet, Topology};

impl<'a> Router<'a> {
    /// Routes in layers that keep the trees of tables that were in force as far as these are right.
    ///
    /// Turns of escape trees block what those tables may need, so they are used from the start only if some address
    /// finds no route otherwise.
    pub(super) fn keeping(
        subnet: &'a Subnet,
        xbar_destinations: bool,
        in_force: &Tables,
        layers: &[Vec<u32>],
    ) -> Self {
        let mut router = Self::new(subnet, xbar_destinations);
        if layers.iter().all(|ends| router.keep(in_force, ends, false)) {
            return router;
        }
        let mut router = Self::new(subnet, xbar_destinations);
        layers.iter().for_each(|ends| {
            router.keep(in_force, ends, true);
        });
        router
    }

    /// Routes all addresses of some xbars in a layer of their own. Returns false if some address has no
    /// route, which is impossible if the turns of the escape trees are used first.
    fn keep(&mut self, in_force: &Tables, ends: &[u32], escape_first: bool) -> bool {
        let topology = &self.subnet.topology;
        let mut turns = Turns::new(topology, &self.trees.places(topology));
        if escape_first {
            self.trees.use_turns(topology, &self.sends, &mut turns);
        }
        let sends = self.sends.clone();
        let mut search = TreeSearch::new(self.subnet, &sends);
        let mut broken = Vec::new();
        for address in self.addresses(ends) {
            let row = in_force.of_slot(address.slot);
            let leads_on = read(topology, row, address.end, &sends, &mut search.next);
            if leads_on && search.use_turns_of_senders(address.end, &mut turns) {
                self.keep_row(&address, row);
                self.count(&address, &mut search, 1);
            } else {
                broken.push(address);
            }
        }
        for address in &broken {
            filling::read_tree(topology, in_force.of_slot(address.slot), &mut search.preferred);
            if search.find(address.end, &self.loads, &mut turns) == SearchEnd::Tree {
                self.take_found(address, &mut search);
            } else if escape_first {
                self.escape(address, &mut search);
                self.escaped += 1;
            } else {
                return false;
            }
        }
        self.keep_own_addresses(in_force, ends, &mut search, &mut turns);
        true
    }

    /// Keeps the entries of xbars' own addresses that lead on. Where they do not, an xbar with hosts is
    /// reached as its first host is.
    fn keep_own_addresses(
        &mut self,
        in_force: &Tables,
        ends: &[u32],
        search: &mut TreeSearch<'_>,
        turns: &mut Turns<'_>,
    ) {
        let topology = &self.subnet.topology;
        let destinations = &self.subnet.destinations;
        let counts = self.sends.iter().all(|&sends| sends);
        let mut is_end = vec![false; topology.xbar_count()];
        ends.iter().for_each(|&end| is_end[end as usize] = true);
        for end in 0..topology.xbar_count() as u32 {
            let slot = destinations.slot_of_xbar(end);
            let first = destinations.host_slots_of(end).next();
            // These xbars were routed already, as addresses of their own.
            if is_end[end as usize] && first.is_none() {
                continue;
            }
            // The turns that frames to it make count only in the layer of the xbar.
            if counts && !is_end[end as usize] {
                continue;
            }
            let row = in_force.of_slot(slot);
            let leads_on = read(topology, row, end, &self.sends, &mut search.next);
            if leads_on && (!counts || search.use_turns_of_senders(end, turns)) {
                self.keep_row(&Address { end, slot, weight: 0, is_adapter: false, escapes: false }, row);
            } else if let Some(first) = first.filter(|_| is_end[end as usize]) {
                filling::read_tree(topology, self.tables.of_slot(first), &mut search.next);
                self.write(slot, end, &search.next);
            }
        }
    }

    /// Writes a row that stays, with the port that the host has now.
    fn keep_row(&mut self, address: &Address, row: &[u8]) {
        self.tables.set_row(address.slot, row);
        self.tables.set_port(address.end, address.slot, self.subnet.port_of_slot(address.slot));
    }
}

/// Reads the channels of a row. Returns false if frames of a sender would not arrive, or if an entry leads
/// nowhere or round in a circle.
fn read(topology: &Topology, row: &[u8], end: u32, sends: &[bool], next: &mut [u32]) -> bool {
    filling::read_tree(topology, row, next);
    let part = topology.component(end);
    let entries = (0..).zip(next.iter().zip(row));
    let is_broken = |(xbar, (&channel, &port)): (u32, (&u32, &u8))| {
        xbar != end
            && if channel == NO_CHANNEL {
                port != Tables::NONE || sends[xbar as usize] && topology.component(xbar) == part
            } else {
                topology.is_dead(channel) || topology.component(xbar) != part
            }
    };
    !entries.into_iter().any(is_broken) && all_arrive(topology, end, sends, next)
}

/// Whether no entries lead round in a circle, and those of xbars that send lead to the end.
fn all_arrive(topology: &Topology, end: u32, sends: &[bool], next: &[u32]) -> bool {
    /// What is known of an xbar.
    #[derive(Clone, Copy, PartialEq)]
    enum Known {
        Nothing,
        /// It is on the way that is followed.
        Passed,
        Arrives,
        Ends,
    }
    let mut known = vec![Known::Nothing; next.len()];
    known[end as usize] = Known::Arrives;
    let mut way = Vec::new();
    for (from, &sends) in sends.iter().enumerate() {
        let mut at = from;
        while known[at] == Known::Nothing && next[at] != NO_CHANNEL {
            known[at] = Known::Passed;
            way.push(at);
            at = topology.head(next[at]).xbar as usize;
        }
        let found = match known[at] {
            Known::Passed => return false,
            Known::Nothing => Known::Ends,
            known => known,
        };
        known[at] = found;
        way.drain(..).for_each(|xbar| known[xbar] = found);
        if found == Known::Ends && sends && topology.component(from as u32) == topology.component(end) {
            return false;
        }
    }
    true
}
