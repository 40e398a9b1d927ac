//! Routes between roots, which go down to a hub and up again.
//!
//! Up*/down* has no way from one root to another. A way down and up again is safe if no channel can come to
//! wait for itself. So some xbars become *hubs*, where frames may turn from down to up, one by one from the
//! lowest, each only if the dependencies of all legal turns and those at the hubs have no cycle (Dally and
//! Seitz, "Deadlock-free message routing in multiprocessor interconnection networks", 1987).

use mapper_proto::map::PortRef;

use super::ranks::Order;
use crate::{Far, Subnet, Tables, Topology};

/// Most xbars that are tried as hubs.
const MOST_TRIED: usize = 32;

/// Adds entries by which the roots reach each other. Returns how many pairs still do not.
pub(super) fn connect(subnet: &Subnet, order: &Order, roots: &[u32], tables: &mut Tables) -> usize {
    let topology = &subnet.topology;
    let mut lowest: Vec<u32> = (0..topology.xbar_count() as u32).collect();
    lowest.sort_by_key(|&xbar| std::cmp::Reverse(order.place(xbar)));
    let mut turns = HubTurns { topology, order, is_hub: vec![false; topology.xbar_count()] };
    let mut apart = count_apart(subnet, roots, tables);
    for hub in lowest.into_iter().take(MOST_TRIED) {
        if apart == 0 {
            break;
        }
        turns.is_hub[hub as usize] = true;
        if turns.have_cycle() {
            turns.is_hub[hub as usize] = false;
            continue;
        }
        for &root in roots {
            for slot in subnet.destinations.slots_of(root) {
                turns.extend(root, slot, tables);
            }
        }
        apart = count_apart(subnet, roots, tables);
    }
    apart
}

/// How many pairs of roots that cables join have no route.
fn count_apart(subnet: &Subnet, roots: &[u32], tables: &Tables) -> usize {
    let topology = &subnet.topology;
    let apart = |from: u32, to: u32| {
        from != to
            && topology.component(from) == topology.component(to)
            && tables.port(from, subnet.destinations.slot_of_xbar(to)) == Tables::NONE
    };
    roots.iter().map(|&to| roots.iter().filter(|&&from| apart(from, to)).count()).sum()
}

/// The turns that frames may take: never up after down, except at hubs.
struct HubTurns<'a> {
    topology: &'a Topology,
    order: &'a Order,
    is_hub: Vec<bool>,
}

impl HubTurns<'_> {
    fn climbs(&self, channel: u32) -> bool {
        self.order.climbs(self.topology.tail(channel).xbar, self.topology.head(channel).xbar)
    }

    fn is_usable(&self, channel: u32) -> bool {
        !self.topology.is_dead(channel)
            && self.topology.tail(channel).xbar != self.topology.head(channel).xbar
    }

    fn allows(&self, first: u32, second: u32) -> bool {
        let at = self.topology.head(first).xbar;
        let comes_back = self.topology.head(second).xbar == self.topology.tail(first).xbar;
        !comes_back && (self.climbs(first) || !self.climbs(second) || self.is_hub[at as usize])
    }

    /// Whether some turns close a circle, by a depth-first search over all channels.
    fn have_cycle(&self) -> bool {
        let mut state = vec![WalkState::New; self.topology.channel_count()];
        let mut stack: Vec<(u32, u32)> = Vec::new();
        for start in (0..state.len() as u32).filter(|&channel| self.is_usable(channel)) {
            if state[start as usize] != WalkState::New {
                continue;
            }
            state[start as usize] = WalkState::Open;
            stack.push((start, self.topology.channels_of(self.topology.head(start).xbar).start));
            while let Some((channel, next)) = stack.last_mut() {
                let channel = *channel;
                if *next == self.topology.channels_of(self.topology.head(channel).xbar).end {
                    state[channel as usize] = WalkState::Done;
                    stack.pop();
                    continue;
                }
                let follower = *next;
                *next += 1;
                if !self.is_usable(follower) || !self.allows(channel, follower) {
                    continue;
                }
                match state[follower as usize] {
                    WalkState::Open => return true,
                    WalkState::Done => {}
                    WalkState::New => {
                        state[follower as usize] = WalkState::Open;
                        let first = self.topology.channels_of(self.topology.head(follower).xbar).start;
                        stack.push((follower, first));
                    }
                }
            }
        }
        false
    }

    /// Gives xbars without a route to a slot one that leads on to xbars that have one, by turns that are
    /// allowed.
    fn extend(&self, to: u32, slot: u32, tables: &mut Tables) {
        let xbars = self.topology.xbar_count() as u32;
        let mut queue: Vec<u32> =
            (0..xbars).filter(|&xbar| xbar == to || tables.port(xbar, slot) != Tables::NONE).collect();
        let mut next = 0;
        while let Some(&xbar) = queue.get(next) {
            next += 1;
            let onward = match self.topology.far(PortRef { xbar, port: tables.port(xbar, slot) }) {
                Far::Channel(channel) if xbar != to => Some(channel),
                _ => None,
            };
            for back in self.topology.channels_of(xbar).filter(|&channel| self.is_usable(channel)) {
                let channel = self.topology.reverse(back);
                let from = self.topology.tail(channel);
                let is_open = from.xbar != to && tables.port(from.xbar, slot) == Tables::NONE;
                if is_open && onward.is_none_or(|onward| self.allows(channel, onward)) {
                    tables.set_port(from.xbar, slot, from.port);
                    queue.push(from.xbar);
                }
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WalkState {
    New,
    Open,
    Done,
}
