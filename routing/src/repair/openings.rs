//! Turns that are safe beside an orientation's legal ones while certain cables are dead.

use std::ops::Range;

use crate::{Direction, Orientation, Topology};

/// The turns that dead cables open: see [`repair`](super::repair).
#[derive(Clone, Debug)]
pub(super) struct Openings {
    /// For each channel, the part that it is in. Channels of one part could reach each other in a circle.
    circle: Vec<u32>,
    /// For each xbar that lost its last up channel, the xbar below through which it goes out.
    exit: Vec<Option<u32>>,
}

impl Openings {
    /// The openings of a topology that lost cables, for an orientation of the whole one.
    pub(super) fn of(cut: &Topology, whole: &Orientation) -> Self {
        let exit = (0..cut.xbar_count() as u32).map(|xbar| exit(cut, whole, xbar)).collect();
        Self { circle: circles(cut), exit }
    }

    /// Whether a route may go on from one live channel to the next that [`onward`] lists.
    pub(super) fn allows(&self, cut: &Topology, whole: &Orientation, first: u32, second: u32) -> bool {
        let (tail, middle, head) = (cut.tail(first).xbar, cut.head(first).xbar, cut.head(second).xbar);
        if whole.allows(first, second) || self.circle[first as usize] != self.circle[second as usize] {
            return true;
        }
        let through = |top: u32| self.exit[top as usize] == Some(middle);
        through(tail) && whole.is_above(head, tail) || through(head) && whole.is_above(tail, head)
    }
}

/// The channels on which a route may go on from a channel as far as cables go: not back to the xbar
/// that it comes from, and not along a dead cable or one that ends where it begins.
pub(crate) fn onward(topology: &Topology, channel: u32) -> impl Iterator<Item = u32> + '_ {
    let next = topology.channels_of(topology.head(channel).xbar);
    next.filter(move |&next| leads_on(topology, channel, next))
}

fn leads_on(topology: &Topology, first: u32, second: u32) -> bool {
    let (from, at, to) = (topology.tail(first).xbar, topology.head(first).xbar, topology.head(second).xbar);
    from != at && at != to && to != from && !topology.is_dead(first) && !topology.is_dead(second)
}

/// The first xbar below a top that lost all its up channels from which another one, earlier in the
/// order than the top, is a step up.
fn exit(cut: &Topology, whole: &Orientation, top: u32) -> Option<u32> {
    let channels = || cut.channels_of(top).filter(|&channel| !cut.is_dead(channel));
    let leads_up = |channel: u32| whole.direction(channel) == Direction::Up;
    if channels().any(leads_up) || !cut.channels_of(top).any(leads_up) {
        return None;
    }
    let higher = |channel: u32| !cut.is_dead(channel) && whole.is_above(cut.head(channel).xbar, top);
    let below = channels().map(|channel| cut.head(channel).xbar).filter(|&below| below != top);
    below
        .filter(|&below| cut.channels_of(below).any(higher))
        .reduce(|first, below| if whole.is_above(below, first) { below } else { first })
}

/// The strongly connected parts of the live channels, any way on from a channel being a step
/// (Tarjan, 1972).
fn circles(cut: &Topology) -> Vec<u32> {
    PartSearch::new(cut).run()
}

/// The number of a channel that the search has not come to yet.
const NEW: u32 = u32::MAX;

struct PartSearch<'a> {
    cut: &'a Topology,
    /// The order in which channels were met.
    number: Vec<u32>,
    /// The earliest channel of the same part that is known to be reached.
    low: Vec<u32>,
    part: Vec<u32>,
    /// Channels met whose part is not complete.
    open: Vec<u32>,
    met: u32,
}

/// A channel on the way, with the channels out of its head that are still to be looked at.
struct WayStep {
    channel: u32,
    next: Range<u32>,
}

impl<'a> PartSearch<'a> {
    fn new(cut: &'a Topology) -> Self {
        let count = cut.channel_count();
        let (number, low, part) = (vec![NEW; count], vec![NEW; count], vec![NEW; count]);
        Self { cut, number, low, part, open: Vec::new(), met: 0 }
    }

    fn run(mut self) -> Vec<u32> {
        let mut way = Vec::new();
        for start in 0..self.cut.channel_count() as u32 {
            if self.number[start as usize] == NEW {
                way.push(self.meet(start));
                self.follow(&mut way);
            }
        }
        self.part
    }

    fn meet(&mut self, channel: u32) -> WayStep {
        self.number[channel as usize] = self.met;
        self.low[channel as usize] = self.met;
        self.met += 1;
        self.open.push(channel);
        WayStep { channel, next: self.cut.channels_of(self.cut.head(channel).xbar) }
    }

    fn follow(&mut self, way: &mut Vec<WayStep>) {
        while let Some(step) = way.last_mut() {
            let channel = step.channel;
            let Some(next) = step.next.next() else {
                way.pop();
                self.close(channel);
                if let Some(before) = way.last() {
                    let low = self.low[channel as usize];
                    self.lower(before.channel, low);
                }
                continue;
            };
            if !leads_on(self.cut, channel, next) {
                continue;
            }
            if self.number[next as usize] == NEW {
                let step = self.meet(next);
                way.push(step);
            } else if self.part[next as usize] == NEW {
                self.lower(channel, self.number[next as usize]);
            }
        }
    }

    fn lower(&mut self, channel: u32, number: u32) {
        let low = &mut self.low[channel as usize];
        *low = number.min(*low);
    }

    /// Completes a part, if this channel was the first of it to be met.
    fn close(&mut self, channel: u32) {
        let first = self.number[channel as usize];
        if self.low[channel as usize] != first {
            return;
        }
        while let Some(member) = self.open.pop() {
            self.part[member as usize] = first;
            if member == channel {
                break;
            }
        }
    }
}
