//! Telling xbars apart where neither hosts nor tags nor neighbours do.
//!
//! A sight Y at the end of a cable from port Z.q is a known xbar W only if that cable's other end is
//! a port W.p whose far end is unknown. So Y is compared with such *open* ports only, and of those
//! only with the ones that fit what is known of both: a compare probe out of W.p and home by the
//! reverse of the way out of Z.q comes back if and only if Z.q and W.p are the two ends of one cable.
//! If none does, Y is a new xbar.

use std::collections::{BTreeSet, VecDeque};

use super::Explorer;
use super::knowledge::{At, Far};
use super::request::Compare;
use super::xbar::{Stage, XbarState};

/// Compares still to ask, and those whose answer was no.
#[derive(Debug, Default)]
pub(super) struct Compares {
    todo: VecDeque<Compare>,
    /// Pairs of ports that are not the ends of one cable. Either may stand first, under any of its names.
    refuted: Vec<(At, At)>,
    /// Questions ever queued, retries counted.
    queued: usize,
    /// Whether there were more questions than [`Compares::MOST`].
    pub(super) overflowed: bool,
}

impl Compares {
    /// Most compares of an exploration: many times what real fabrics need (a torus of 100 xbars with a
    /// single host: under 4,000), and a bound on what a fabric can cost that a host makes believe.
    const MOST: usize = 1 << 18;

    pub(super) fn is_empty(&self) -> bool {
        self.todo.is_empty()
    }

    pub(super) fn next(&mut self) -> Option<Compare> {
        self.todo.pop_front()
    }

    pub(super) fn push(&mut self, compare: Compare) {
        self.todo.push_back(compare);
        self.queued += 1;
    }

    /// Drops the questions that `keep` refuses, and makes room for others: from now on at most half of
    /// [`Self::MOST`] counts as used.
    pub(super) fn retain(&mut self, keep: impl FnMut(&Compare) -> bool) {
        self.todo.retain(keep);
        self.queued = self.queued.min(Self::MOST / 2);
        self.overflowed = false;
    }

    /// Notes that the two ports are not the ends of one cable.
    pub(super) fn refute(&mut self, compare: &Compare) {
        self.refuted.push((compare.from, compare.to));
    }
}

fn pair(a: At, b: At) -> (At, At) {
    (a.min(b), a.max(b))
}

impl Explorer {
    /// Queues what is left to ask of the sights whose study is over; those of which nothing is left to ask are
    /// new xbars. Returns whether there was something to do.
    pub(super) fn compare_studied(&mut self) -> bool {
        let sights: Vec<u32> =
            self.studies.iter().copied().filter(|&s| self.known.xbar(s).stage == Stage::Compared).collect();
        if sights.is_empty() {
            return false;
        }
        let mut asked = self.refuted_pairs();
        let mut open = self.open_ports();
        let mut changed = false;
        for sight in sights {
            let Some((entry, from)) = self.resolved_neighbour(sight) else { continue };
            let may_be: Vec<At> =
                open.iter().copied().filter(|&to| self.may_be_entry(sight, entry, to)).collect();
            let mut is_new = true;
            for to in may_be {
                let is_refuted = asked.contains(&pair(from, to));
                // If another sight already asks about this pair, its answer is waited for.
                let is_waited_for = self.compares.todo.iter().any(|c| pair(c.from, c.to) == pair(from, to));
                is_new &= is_refuted && !is_waited_for;
                if self.compares.queued >= Compares::MOST {
                    self.compares.overflowed = true;
                    return false;
                }
                if !is_refuted {
                    asked.insert(pair(from, to));
                    let compare = Compare { sight, from, to, sent: 0, stamp: None, is_of_home: false };
                    self.compares.push(compare);
                    changed = true;
                }
            }
            if is_new {
                self.known.resolve(sight);
                self.wake_touched();
                open = self.open_ports();
                changed = true;
            }
        }
        changed
    }

    /// The pairs known not to be one cable, as far as they still matter.
    fn refuted_pairs(&mut self) -> BTreeSet<(At, At)> {
        let (known, refuted) = (&self.known, &mut self.compares.refuted);
        let is_open = |at: At| {
            matches!(known.xbar(at.node).far(at.delta).map(|far| known.far_root(far)),
                Some(Far::Xbar(far)) if known.xbar(far.node).stage < Stage::Resolved)
        };
        for (a, b) in refuted.iter_mut() {
            (*a, *b) = pair(known.root(*a), known.root(*b));
        }
        refuted.retain(|&(a, b)| is_open(a) && is_open(b));
        refuted.iter().copied().collect()
    }

    /// Ports of resolved xbars that lead to xbars not resolved.
    fn open_ports(&self) -> Vec<At> {
        let mut open = Vec::new();
        for node in self.known.roots() {
            let xbar = self.known.xbar(node);
            if xbar.stage < Stage::Resolved {
                continue;
            }
            for (delta, far) in xbar.fars() {
                if let Far::Xbar(far) = self.known.far_root(far)
                    && self.known.xbar(far.node).stage < Stage::Resolved
                {
                    open.push(At { node, delta });
                }
            }
        }
        open
    }

    /// A port of this sight whose cable leads to a resolved xbar, and the port of that: those
    /// nearest to us.
    fn resolved_neighbour(&self, sight: u32) -> Option<(i16, At)> {
        let fars = self.known.xbar(sight).fars().filter_map(|(delta, far)| match self.known.far_root(far) {
            Far::Xbar(at) if self.known.xbar(at.node).stage == Stage::Resolved => Some((delta, at)),
            _ => None,
        });
        fars.min_by_key(|&(delta, at)| (self.known.depth(at.node), at, delta))
    }

    /// Whether nothing known speaks against the port `entry` of this sight being the port `to`.
    fn may_be_entry(&self, sight: u32, entry: i16, to: At) -> bool {
        let (a, b) = (self.known.xbar(sight), self.known.xbar(to.node));
        let shift = to.delta - entry;
        let ends = |x: &XbarState, shift: i16| {
            let (first, last) = x.span();
            (first + shift, last + shift)
        };
        let (a_ends, b_ends) = (ends(a, shift), ends(b, 0));
        let wide = a_ends.1.max(b_ends.1) - a_ends.0.min(b_ends.0);
        if b.tag.is_none() && wide >= i16::from(self.settings.plain_ports) {
            return false;
        }
        a.fars().all(|(delta, far)| self.may_lead(b, delta + shift, far))
            && b.fars().all(|(delta, far)| self.may_lead(a, delta - shift, far))
    }

    /// Whether the port at `delta` of `xbar` may lead to `far`.
    fn may_lead(&self, xbar: &XbarState, delta: i16, far: Far) -> bool {
        let known = xbar.far(delta).map(|known| self.known.far_root(known));
        match (known, self.known.far_root(far)) {
            // If the far ends were one port, the two xbars would have been joined already.
            (Some(Far::Xbar(a)), Far::Xbar(b)) => {
                let is_resolved = |at: At| self.known.xbar(at.node).stage == Stage::Resolved;
                !(is_resolved(a) && is_resolved(b)) || a == b
            }
            (Some(Far::Host(a)), Far::Host(b)) => a == b,
            (Some(_), _) => false,
            (None, Far::Host(0)) if xbar.port(delta).is_some_and(|port| port.may_be_own) => true,
            // All tries were silent, or the port cannot be asked, or it has no carrier.
            (None, _) => xbar
                .port(delta)
                .map_or(xbar.tag.is_none(), |port| self.ask(xbar.tag.is_some(), port.sent).is_some()),
        }
    }
}
