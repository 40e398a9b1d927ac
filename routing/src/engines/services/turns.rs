//! Whether entries that turn upwards close a circle with routes that only go up and then down.
//!
//! All other routes keep to an order, so each of their turns from one channel to the next is one of an order's legal
//! turns, and legal turns alone close no circle. A circle needs a turn of the entries that leads down and then up
//! again. So it is enough to know from which channels that such turns lead up to which others of them are reached by legal
//! turns, whichever of these any route takes. That takes one search of the fabric for each of these channels, where a proof
//! walks all routes.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::Order;
use crate::engines::Settings;
use crate::engines::acyclic::AcyclicGraph;
use crate::{Far, Subnet, Tables, Topology};
use mapper_proto::map::PortRef;

/// The most channels up that are searched from. With more of them a proof of all tables may take less time.
const MOST_SEARCHES: usize = 512;

/// A turn from a channel that leads down to one that leads up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct UpTurn {
    /// The channel that leads down to where the turn is.
    from: u32,
    /// The channel that leads up from there.
    to: u32,
}

/// Whether it is certain that no circle of channels can wait for each other, and that these routes arrive.
///
/// `routes` says for some slots of which xbars frames begin; the routes that all other frames take keep to the order.
pub(super) fn close_no_circle(
    subnet: &Subnet,
    order: &Order,
    tables: &Tables,
    routes: impl Iterator<Item = (u32, u32, u32)>,
) -> bool {
    let mut turns = Vec::new();
    for (from, slot, end) in routes {
        if !note_turns(&subnet.topology, order, |xbar| tables.port(xbar, slot), (from, end), &mut turns) {
            return false;
        }
    }
    turns.sort_unstable();
    turns.dedup();
    are_acyclic(&subnet.topology, order, &turns)
}

/// Adds the turns upwards of a route. Returns whether the route arrives.
fn note_turns(
    topology: &Topology,
    order: &Order,
    port: impl Fn(u32) -> u8,
    (from, end): (u32, u32),
    turns: &mut Vec<UpTurn>,
) -> bool {
    let climbs = |channel: u32| order.climbs(topology.tail(channel).xbar, topology.head(channel).xbar);
    let (mut at, mut last) = (from, None);
    for _ in 1..Settings::MAX_HOPS {
        if at == end {
            return true;
        }
        let Far::Channel(channel) = topology.far(PortRef { xbar: at, port: port(at) }) else { return false };
        if topology.is_dead(channel) {
            return false;
        }
        if let Some(last) = last.filter(|&last| !climbs(last) && climbs(channel)) {
            turns.push(UpTurn { from: last, to: channel });
        }
        last = Some(channel);
        at = topology.head(channel).xbar;
    }
    at == end
}

/// Whether it is certain that the turns close no circle together with all legal turns.
fn are_acyclic(topology: &Topology, order: &Order, turns: &[UpTurn]) -> bool {
    let mut upwards: Vec<u32> = turns.iter().map(|turn| turn.to).collect();
    upwards.sort_unstable();
    upwards.dedup();
    if upwards.len() > MOST_SEARCHES {
        return false;
    }
    // The channels up to which routes may come to turn after each of these channels.
    let nexts = |&channel: &u32| -> BTreeSet<u32> {
        let onward = Onward::after(topology, order, channel);
        turns.iter().filter(|turn| onward.leads_to(topology, turn.from)).map(|turn| turn.to).collect()
    };
    let nexts: Vec<BTreeSet<u32>> = upwards.par_iter().map(nexts).collect();
    let number_of: BTreeMap<u32, u32> = upwards.into_iter().zip(0..).collect();
    let mut graph = AcyclicGraph::new(nexts.len());
    (0..).zip(nexts).all(|(number, nexts)| nexts.iter().all(|next| graph.insert(number, number_of[next])))
}

/// By which neighbour an xbar is entered while going up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entered {
    Never,
    /// By this xbar only.
    By(u32),
    BySeveral,
}

/// Where routes may go after a channel that leads up.
///
/// No route comes back to the xbar that it just left, as tables would lead it round for ever.
struct Onward {
    /// How each xbar is entered while going up.
    above: Vec<Entered>,
    /// The xbars that are entered while going down.
    is_below: Vec<bool>,
}

impl Onward {
    fn after(topology: &Topology, order: &Order, channel: u32) -> Self {
        let (from, start) = (topology.tail(channel).xbar, topology.head(channel).xbar);
        let mut above = vec![Entered::Never; topology.xbar_count()];
        above[start as usize] = Entered::By(from);
        let mut climbed = vec![start];
        let mut next = 0;
        while let Some(&xbar) = climbed.get(next) {
            next += 1;
            for head in heads(topology, xbar).filter(|&head| order.climbs(xbar, head)) {
                above[head as usize] = match above[head as usize] {
                    Entered::Never => {
                        climbed.push(head);
                        Entered::By(xbar)
                    }
                    Entered::By(one) if one == xbar => Entered::By(one),
                    Entered::By(_) | Entered::BySeveral => Entered::BySeveral,
                };
            }
        }
        let mut onward = Self { above, is_below: vec![false; topology.xbar_count()] };
        let mut falling: Vec<u32> = Vec::new();
        for &xbar in &climbed {
            onward.fall(topology, order, xbar, onward.above[xbar as usize], &mut falling);
        }
        while let Some(xbar) = falling.pop() {
            onward.fall(topology, order, xbar, Entered::BySeveral, &mut falling);
        }
        onward
    }

    /// Marks the xbars to which steps down lead from an xbar, and adds those that were not marked before.
    fn fall(&mut self, topology: &Topology, order: &Order, xbar: u32, entered: Entered, met: &mut Vec<u32>) {
        for head in heads(topology, xbar).filter(|&head| order.climbs(head, xbar)) {
            if entered != Entered::By(head) && !std::mem::replace(&mut self.is_below[head as usize], true) {
                met.push(head);
            }
        }
    }

    /// Whether a route may come to leave by a channel that leads down.
    fn leads_to(&self, topology: &Topology, channel: u32) -> bool {
        let (tail, head) = (topology.tail(channel).xbar as usize, topology.head(channel).xbar);
        self.is_below[tail]
            || !matches!(self.above[tail], Entered::Never) && self.above[tail] != Entered::By(head)
    }
}

/// The xbars that an xbar's live cables lead to.
fn heads(topology: &Topology, xbar: u32) -> impl Iterator<Item = u32> + '_ {
    let live = topology.channels_of(xbar).filter(|&channel| !topology.is_dead(channel));
    live.map(|channel| topology.head(channel).xbar)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mapper_fabric::generate;

    /// Two leaves, two spines and the cables between them, with the spines above the leaves.
    fn square() -> (Subnet, Order, [u32; 2], [u32; 2]) {
        let subnet = Subnet::new(&generate("xgft:h=2;m=2,2;w=1,2").unwrap(), None).unwrap();
        let tiers = crate::Tiers::of(&subnet.topology);
        let ranks: Vec<u32> = tiers.heights().iter().map(|&height| u32::MAX - height).collect();
        let order = Order::updn(&subnet, &Settings::default(), &ranks);
        let of = |height| -> [u32; 2] {
            let xbars =
                (0..subnet.topology.xbar_count() as u32).filter(|&xbar| tiers.height(xbar) == Some(height));
            xbars.collect::<Vec<u32>>().try_into().unwrap()
        };
        let (leaves, spines) = (of(0), of(1));
        (subnet, order, leaves, spines)
    }

    fn channel(topology: &Topology, from: u32, to: u32) -> u32 {
        topology.channels_of(from).find(|&channel| topology.head(channel).xbar == to).unwrap()
    }

    #[test]
    fn turns_at_one_leaf_close_no_circle_but_turns_at_two_do() {
        let (subnet, order, [left, right], [one, other]) = square();
        let topology = &subnet.topology;
        let turn = |from: u32, at: u32, to: u32| UpTurn {
            from: channel(topology, from, at),
            to: channel(topology, at, to),
        };
        let there_and_back = [turn(one, left, other), turn(other, left, one)];
        assert!(are_acyclic(topology, &order, &there_and_back));
        let around = [turn(one, left, other), turn(other, right, one)];
        assert!(!are_acyclic(topology, &order, &around));
    }

    #[test]
    fn the_turns_of_a_route_are_noted_and_a_route_that_goes_round_does_not_arrive() {
        let (subnet, order, [left, right], [one, other]) = square();
        let topology = &subnet.topology;
        let port = |from: u32, to: u32| topology.tail(channel(topology, from, to)).port;
        let mut turns = Vec::new();
        let by_left = |xbar: u32| if xbar == one { port(one, left) } else { port(left, other) };
        assert!(note_turns(topology, &order, by_left, (one, other), &mut turns));
        assert_eq!(
            turns,
            [UpTurn { from: channel(topology, one, left), to: channel(topology, left, other) }]
        );
        let round = |xbar: u32| if xbar == one { port(one, left) } else { port(left, one) };
        assert!(!note_turns(topology, &order, round, (one, right), &mut turns));
    }
}
