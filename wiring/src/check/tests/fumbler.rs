//! Makes mistakes that people make, drawn from a seed.

use std::collections::{BTreeMap, BTreeSet};

use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::*;
use super::{cabled, wirings};
use crate::sockets::{NodeKind, Socket, Wiring};

/// Makes mistakes of all kinds, no two at the same plugs if they are to be `apart`.
struct Fumbler<'a> {
    wirings: &'a Wirings,
    wiring: Wiring,
    used: BTreeSet<Socket>,
    apart: bool,
    random: ChaCha8Rng,
}

/// A mistake: its kind, and the nodes that it is about.
pub(super) type Mistake = (&'static str, BTreeSet<u32>);

impl Fumbler<'_> {
    fn free_sockets(&self, xbar: u32) -> Vec<Socket> {
        let NodeKind::Xbar { ports: [ports, _] } = self.wirings.nodes[xbar as usize].kind else {
            return Vec::new();
        };
        let all = (1..=i16::from(ports)).map(|port| Socket { node: xbar, port });
        let is_free = |socket: &Socket| {
            self.wiring.far(*socket).is_none() && self.wirings.planned.far(*socket).is_none()
        };
        all.filter(is_free).collect()
    }

    /// Takes sockets for a mistake, or refuses if another has them.
    fn take(&mut self, sockets: &[Socket]) -> bool {
        let fars: Vec<Socket> = sockets.iter().filter_map(|&socket| self.wiring.far(socket)).collect();
        let all: Vec<Socket> = sockets.iter().copied().chain(fars).collect();
        if self.apart && all.iter().any(|socket| self.used.contains(socket)) {
            return false;
        }
        self.used.extend(all);
        true
    }

    fn plug(&mut self) -> Socket {
        let cables: Vec<(Socket, Socket)> = self.wiring.cables().collect();
        let &(a, b) = cables.choose(&mut self.random).unwrap();
        // The end at an xbar: nobody moves the machine's end elsewhere but by mistaking rails.
        if self.wirings.is_host(a.node) { b } else { a }
    }

    fn xbar(&mut self) -> u32 {
        let hosts =
            self.wirings.nodes.iter().filter(|node| matches!(node.kind, NodeKind::Host { .. })).count();
        self.random.random_range(hosts as u32..self.wirings.nodes.len() as u32)
    }

    /// Makes a mistake of some kind, unless its plugs are taken.
    fn fumble(&mut self) -> Option<Mistake> {
        match self.random.random_range(0..12) {
            0 => self.swap_plugs(),
            1 => self.move_plug(),
            2 => self.forget_cable(),
            3 => self.add_cable(),
            4 => self.turn_xbar(advice::Turn::UpsideDown, "upside-down"),
            5 => self.turn_xbar(advice::Turn::Halves, "swapped-halves"),
            6 => self.turn_xbar(advice::Turn::Rows, "swapped-rows"),
            7 => self.exchange_xbars(),
            8 => self.shift_plugs(advice::Turn::OneTooHigh),
            9 => self.shift_plugs(advice::Turn::OneTooLow),
            10 => self.exchange_machines(),
            _ => self.mistake_rails(),
        }
    }

    fn swap_plugs(&mut self) -> Option<Mistake> {
        let (one, other) = (self.plug(), self.plug());
        let fars = [self.wiring.far(one)?, self.wiring.far(other)?];
        let is_one = one == other || fars[0] == other;
        (!is_one && self.take(&[one, other])).then(|| {
            advice::Action::Swap { plugs: [one, other], fars }.apply(&mut self.wiring);
            ("swapped-plugs", [one, other, fars[0], fars[1]].map(|socket| socket.node).into())
        })
    }

    fn move_plug(&mut self) -> Option<Mistake> {
        let from = self.plug();
        let free = self.free_sockets(from.node);
        let (&to, far) = (free.choose(&mut self.random)?, self.wiring.far(from)?);
        self.take(&[from, to]).then(|| {
            advice::Action::Move { from, to, far }.apply(&mut self.wiring);
            ("moved-plug", [from.node, far.node].into())
        })
    }

    fn forget_cable(&mut self) -> Option<Mistake> {
        let one = self.plug();
        let far = self.wiring.far(one)?;
        self.take(&[one]).then(|| {
            self.wiring.disconnect(one);
            ("missing-cable", [one.node, far.node].into())
        })
    }

    fn add_cable(&mut self) -> Option<Mistake> {
        let (x, y) = (self.xbar(), self.xbar());
        let (x, y) = (*self.free_sockets(x).first()?, *self.free_sockets(y).last()?);
        (x.node != y.node && self.take(&[x, y])).then(|| {
            self.wiring.connect(x, y);
            ("extra-cable", [x.node, y.node].into())
        })
    }

    /// Puts all plugs of an xbar into other ports of it, by a rule that needs an even count of ports.
    fn turn_xbar(&mut self, turn: advice::Turn, name: &'static str) -> Option<Mistake> {
        let (xbar, ports) = self.xbar_and_ports()?;
        let sockets = self.plugged(xbar);
        (ports % 2 == 0 && sockets.len() > 5 && self.take(&sockets))
            .then(|| self.turn(xbar, turn, ports, name))
    }

    /// Puts all plugs of an xbar one port off. The port at the edge must be free.
    fn shift_plugs(&mut self, turn: advice::Turn) -> Option<Mistake> {
        let (xbar, ports) = self.xbar_and_ports()?;
        let edge = if turn == advice::Turn::OneTooHigh { 1 } else { ports };
        let sockets = self.plugged(xbar);
        let has_room = sockets.iter().all(|socket| socket.port != edge);
        (has_room && sockets.len() > 5 && self.take(&sockets))
            .then(|| self.turn(xbar, turn, ports, "shifted-plugs"))
    }

    fn turn(&mut self, xbar: u32, turn: advice::Turn, count: i16, name: &'static str) -> Mistake {
        advice::Action::Turn { xbar, turn, first: 1, count }.apply(&mut self.wiring);
        (name, [xbar].into())
    }

    /// Some xbar, and how many ports it has.
    fn xbar_and_ports(&mut self) -> Option<(u32, i16)> {
        let xbar = self.xbar();
        match self.wirings.nodes[xbar as usize].kind {
            NodeKind::Xbar { ports: [ports, _] } => Some((xbar, ports.into())),
            NodeKind::Host { .. } => None,
        }
    }

    /// The sockets of a node that hold plugs.
    fn plugged(&self, node: u32) -> Vec<Socket> {
        self.wiring.of_node(node).map(|(socket, _)| socket).collect()
    }

    fn exchange_xbars(&mut self) -> Option<Mistake> {
        let (one, other) = (self.xbar(), self.xbar());
        let nodes = [one.min(other), one.max(other)];
        let sockets = nodes.map(|node| self.plugged(node)).concat();
        let joined =
            sockets.iter().any(|&at| self.wiring.far(at).is_some_and(|far| nodes.contains(&far.node)));
        (one != other && !joined && sockets.len() > 8 && self.take(&sockets)).then(|| {
            advice::Action::ExchangeXbars(nodes[0], nodes[1]).apply(&mut self.wiring);
            ("exchanged-xbars", nodes.into())
        })
    }

    fn exchange_machines(&mut self) -> Option<Mistake> {
        let mut machines: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (node, about) in (0..).zip(&self.wirings.nodes) {
            if let NodeKind::Host { machine, .. } = about.kind {
                machines.entry(machine).or_default().push(node);
            }
        }
        // If two machines with one interface each are exchanged, that is the same as two swapped plugs.
        let machines: Vec<Vec<u32>> = machines.into_values().filter(|nodes| nodes.len() > 1).collect();
        let (one, other) = (machines.choose(&mut self.random)?, machines.choose(&mut self.random)?);
        let nodes: BTreeSet<u32> = one.iter().chain(other).copied().collect();
        let sockets: Vec<Socket> = nodes.iter().map(|&node| Socket { node, port: 0 }).collect();
        let all_cabled = sockets.iter().all(|&socket| self.wiring.far(socket).is_some());
        (one != other && all_cabled && self.take(&sockets)).then(|| {
            advice::Action::ExchangeMachines(one.clone(), other.clone()).apply(&mut self.wiring);
            ("exchanged-hosts", nodes)
        })
    }

    /// Swaps the plugs at the two interfaces of a machine.
    fn mistake_rails(&mut self) -> Option<Mistake> {
        let hosts = self.wirings.nodes.iter().enumerate().filter_map(|(node, about)| match about.kind {
            NodeKind::Host { machine, rail: 1 } => Some([machine, node as u32]),
            _ => None,
        });
        let nodes = *hosts.collect::<Vec<_>>().choose(&mut self.random)?;
        let plugs = nodes.map(|node| Socket { node, port: 0 });
        let fars = [self.wiring.far(plugs[0])?, self.wiring.far(plugs[1])?];
        self.take(&plugs).then(|| {
            advice::Action::Swap { plugs, fars }.apply(&mut self.wiring);
            ("rail", nodes.into())
        })
    }
}

/// Makes `count` mistakes. Returns the fabric with them, and which they are.
pub(super) fn fumbled(plan: &Fabric, count: usize, seed: u64, apart: bool) -> (Fabric, Vec<Mistake>) {
    let wirings = wirings(plan, plan);
    let random = ChaCha8Rng::seed_from_u64(seed);
    let wiring = wirings.found.clone();
    let mut fumbler = Fumbler { wirings: &wirings, wiring, used: BTreeSet::new(), apart, random };
    let mut mistakes = Vec::new();
    for _ in 0..100 * count {
        if mistakes.len() < count {
            mistakes.extend(fumbler.fumble());
        }
    }
    (cabled(plan, &fumbler.wiring), mistakes)
}
