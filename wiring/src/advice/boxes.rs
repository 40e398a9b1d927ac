//! Whole boxes: xbars upside down, and xbars or machines in each other's place.

use std::collections::BTreeMap;

use super::{Action, Search, Turn};
use crate::sockets::{NodeKind, Socket};

/// How many more cables a move of a whole box must mend than it spoils. A swap of two plugs mends two, so with three
/// a box is the smaller number of moves.
const LEAST_GAIN: i64 = 3;

/// How many boxes are looked for. A fabric with more of them is another fabric; its plugs are told one by one.
const MOST_BOXES: usize = 256;

impl Search<'_> {
    /// Finds boxes to be turned or exchanged, each time the one that mends most.
    pub(super) fn boxes(&mut self) {
        for _ in 0..MOST_BOXES {
            if self.is_enough() {
                return;
            }
            let candidates = self.candidates();
            let gains = candidates.into_iter().map(|action| (self.gain(&action), action));
            // Of moves that mend as much the first one counts.
            let best = gains.max_by(|(one, of), (other, of_other)| one.cmp(other).then(of_other.cmp(of)));
            match best {
                Some((gain, action)) if gain >= LEAST_GAIN => self.act(action),
                _ => return,
            }
        }
    }

    /// All that might be done to boxes with at least as many wrong plugs as must be mended.
    fn candidates(&self) -> Vec<Action> {
        let mut candidates = Vec::new();
        let mut exchanges: BTreeMap<(u32, u32), i64> = BTreeMap::new();
        let machines = self.machines();
        for node in self.wrong_nodes() {
            match self.wirings.nodes[node as usize].kind {
                NodeKind::Xbar { ports } => candidates.extend(self.turns(node, ports)),
                NodeKind::Host { .. } => {}
            }
            for (socket, far) in self.now.of_node(node).filter(|(socket, _)| !self.is_right(*socket)) {
                // Where the plug at the far end should lead, if this node stands in another's place.
                let Some(meant) = self.planned.far(far).filter(|meant| self.is_other(*meant, socket)) else {
                    continue;
                };
                let [one, other] = [self.box_of(node), self.box_of(meant.node)];
                *exchanges.entry((one.min(other), one.max(other))).or_default() += 1;
            }
        }
        for ((one, other), votes) in exchanges {
            if votes < LEAST_GAIN || one == other {
                continue;
            }
            candidates.push(match (machines.get(&one), machines.get(&other)) {
                (Some(a), Some(b)) => Action::ExchangeMachines(a.clone(), b.clone()),
                _ => Action::ExchangeXbars(one, other),
            });
        }
        candidates
    }

    /// Whether a socket is the same one of another box of the same kind.
    fn is_other(&self, meant: Socket, socket: Socket) -> bool {
        let kinds = [meant.node, socket.node].map(|node| self.wirings.nodes[node as usize].kind);
        meant.node != socket.node
            && match kinds {
                [NodeKind::Xbar { .. }, NodeKind::Xbar { .. }] => meant.port == socket.port,
                [NodeKind::Host { machine: a, rail: x }, NodeKind::Host { machine: b, rail: y }] => {
                    a != b && x == y
                }
                _ => false,
            }
    }

    /// The xbar, or the machine of an interface.
    fn box_of(&self, node: u32) -> u32 {
        match self.wirings.nodes[node as usize].kind {
            NodeKind::Host { machine, .. } => machine,
            NodeKind::Xbar { .. } => node,
        }
    }

    /// All ways to turn an xbar, whose number of ports the plan or the found fabric says.
    fn turns(&self, xbar: u32, ports: [u8; 2]) -> Vec<Action> {
        let sockets = self.now.of_node(xbar).chain(self.planned.of_node(xbar)).map(|(socket, _)| socket.port);
        let (lowest, highest) =
            sockets.fold((i16::MAX, i16::MIN), |(low, high), port| (low.min(port), high.max(port)));
        let first = i16::from(lowest > 0);
        let mut counts: Vec<i16> = ports.map(i16::from).into();
        counts.dedup();
        let fits = |count: &i16| lowest >= first && highest < first + count;
        let mut turns = Vec::new();
        for count in counts.into_iter().filter(fits) {
            let of_kind = Turn::ALL.into_iter().filter(|turn| turn.suits(count));
            turns.extend(of_kind.map(|turn| Action::Turn { xbar, turn, first, count }));
        }
        turns
    }

    /// How many more planned cables there are after an action than before.
    fn gain(&self, action: &Action) -> i64 {
        let sockets = action.rearranged(&self.now);
        let mut gain = 0;
        for &socket in &sockets {
            let Some(far) = self.now.far(socket) else { continue };
            let (to, far_to) = (action.place(socket), action.place(far));
            // A cable between two sockets that are both moved is seen from both ends, and counts half each time.
            let weight = if sockets.binary_search(&far).is_ok() || sockets.contains(&far) { 1 } else { 2 };
            gain += weight * i64::from(self.planned.far(to) == Some(far_to));
            gain -= weight * i64::from(self.planned.far(socket) == Some(far));
        }
        gain / 2
    }
}
