//! Single plugs.
//!
//! Planned and found cables make chains and circles of sockets: a planned cable, a found one, and so on. In a chain
//! whose end is free each move of a plug mends a cable, from that end on. In a circle of n planned cables n - 1 swaps
//! do, as the last mends two. So no chain or circle takes more moves than made it.

use std::collections::BTreeSet;

use super::{Action, Search};
use crate::sockets::{NodeKind, Socket};

impl Search<'_> {
    pub(super) fn plugs(&mut self) {
        let mut wrong: BTreeSet<(Socket, Socket)> =
            self.planned.cables().filter(|&(a, b)| self.now.far(a) != Some(b)).collect();
        let mut to_see: Vec<(Socket, Socket)> = wrong.iter().rev().copied().collect();
        while !self.is_enough() {
            // A plug that moves frees a socket, and so the next cable of the chain: that is seen next.
            while let Some((a, b)) = to_see.pop() {
                if !wrong.contains(&(a, b)) {
                    continue;
                }
                let (at_a, at_b) = (self.now.far(a), self.now.far(b));
                let (action, freed) = match (at_a, at_b) {
                    (None, None) => (Action::Connect(a, b), None),
                    (Some(from), None) => (Action::Move { from, to: b, far: a }, Some(from)),
                    (None, Some(from)) => (Action::Move { from, to: a, far: b }, Some(from)),
                    (Some(_), Some(_)) => continue,
                };
                wrong.remove(&(a, b));
                self.act(action);
                to_see.extend(freed.and_then(|freed| self.wanted(freed)));
            }
            let Some((a, b)) = wrong.pop_first() else { break };
            if let (Some(x), Some(y)) = (self.now.far(a), self.now.far(b)) {
                self.act(self.swap([a, b], [x, y]));
                wrong.remove(&(x.min(y), x.max(y)));
            }
        }
        let extra: Vec<(Socket, Socket)> =
            self.now.cables().filter(|&(a, b)| self.planned.far(a) != Some(b)).collect();
        extra.into_iter().for_each(|(a, b)| self.act(Action::Disconnect(a, b)));
    }

    /// The cable that the plan has in a socket.
    fn wanted(&self, socket: Socket) -> Option<(Socket, Socket)> {
        let far = self.planned.far(socket)?;
        Some((socket.min(far), socket.max(far)))
    }

    /// The swap that joins `a` and `b`, which are cabled to `x` and `y`: of the two that do, the handier.
    fn swap(&self, [a, b]: [Socket; 2], [x, y]: [Socket; 2]) -> Action {
        let far_ends = Action::Swap { plugs: [b, x], fars: [y, a] };
        let near_ends = Action::Swap { plugs: [a, y], fars: [x, b] };
        if self.reach([a, y]) < self.reach([b, x]) { near_ends } else { far_ends }
    }

    /// How far apart two plugs are for the person who swaps them.
    fn reach(&self, plugs: [Socket; 2]) -> u8 {
        let [one, other] = plugs.map(|plug| self.wirings.nodes[plug.node as usize].kind);
        match (one, other) {
            (NodeKind::Host { machine: a, .. }, NodeKind::Host { machine: b, .. }) if a == b => 0,
            (NodeKind::Xbar { .. }, NodeKind::Xbar { .. }) if plugs[0].node == plugs[1].node => 1,
            (NodeKind::Xbar { .. }, NodeKind::Xbar { .. }) => 2,
            (NodeKind::Host { .. }, NodeKind::Host { .. }) => 3,
            _ => 4,
        }
    }
}
