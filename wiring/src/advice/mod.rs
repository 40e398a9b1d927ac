//! The fewest moves by which a person turns the found wiring into the planned one.
//!
//! Nodes that are missing, foreign or called otherwise come first, then whole boxes that are upside down or
//! exchanged ([`boxes`]), as one move there mends many cables; what is left are single plugs ([`plugs`]).

mod boxes;
mod plugs;
mod wording;

use std::collections::BTreeSet;

use super::sockets::{NodeKind, Socket, Wiring, Wirings};

pub(super) use wording::{advice, ends, kind};

/// How the plugs of one xbar are rearranged as a whole.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Turn {
    /// The first port is where the last belongs: the box is mounted the wrong way round.
    UpsideDown,
    /// The two halves of the ports are exchanged, as uplinks and ports of hosts.
    Halves,
    /// Each odd port and the next are exchanged, as the two rows of a front panel.
    Rows,
    /// All plugs are one port too high.
    OneTooHigh,
    /// All plugs are one port too low.
    OneTooLow,
}

impl Turn {
    const ALL: [Self; 5] = [Self::UpsideDown, Self::Halves, Self::Rows, Self::OneTooHigh, Self::OneTooLow];

    /// Where the plug of a port belongs, the ports being `first` and `count - 1` more.
    pub(super) fn right_port(self, port: i16, first: i16, count: i16) -> i16 {
        let at = port - first;
        let right = match self {
            Self::UpsideDown => count - 1 - at,
            Self::Halves => (at + count / 2) % count,
            Self::Rows => at ^ 1,
            Self::OneTooHigh => (at + count - 1) % count,
            Self::OneTooLow => (at + 1) % count,
        };
        first + right
    }

    /// Whether ports of this number can be rearranged so.
    fn suits(self, count: i16) -> bool {
        count >= 3 && (!matches!(self, Self::Halves | Self::Rows) || count % 2 == 0)
    }
}

/// Something that a person does once.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Action {
    /// Plug in a cable.
    Connect(Socket, Socket),
    /// Take a cable out.
    Disconnect(Socket, Socket),
    /// Move a plug to a free socket; the other end, `far`, stays.
    Move { from: Socket, to: Socket, far: Socket },
    /// Swap two plugs; the other ends of the cables stay.
    Swap { plugs: [Socket; 2], fars: [Socket; 2] },
    /// Turn a box, or move all its plugs alike.
    Turn { xbar: u32, turn: Turn, first: i16, count: i16 },
    /// Exchange two xbars with each other, or what they are called.
    ExchangeXbars(u32, u32),
    /// Exchange two machines, given by their interfaces in the order of rails, or what they are called.
    ExchangeMachines(Vec<u32>, Vec<u32>),
    /// Bring a node up that is not there, with its cables, near end first.
    Missing { node: u32, cables: Vec<(Socket, Socket)> },
    /// Take a node away that nobody planned, with its cables, near end first.
    Foreign { node: u32, cables: Vec<(Socket, Socket)> },
    /// Give what is cabled to a socket the name that the plan has there.
    Rename { found: u32, planned: u32, at: Socket },
    /// Give an xbar the name that the plan has for it.
    Relabel { xbar: u32 },
}

impl Action {
    /// Does this to the wiring.
    pub(super) fn apply(&self, wiring: &mut Wiring) {
        match self {
            Self::Connect(a, b) => wiring.connect(*a, *b),
            Self::Disconnect(a, _) => wiring.disconnect(*a),
            Self::Move { from, to, far } => {
                wiring.disconnect(*from);
                wiring.connect(*to, *far);
            }
            Self::Swap { plugs: [one, other], fars: [of_one, of_other] } => {
                wiring.disconnect(*one);
                wiring.disconnect(*other);
                wiring.connect(*one, *of_other);
                wiring.connect(*other, *of_one);
            }
            Self::Turn { .. } | Self::ExchangeXbars(..) | Self::ExchangeMachines(..) => {
                let sockets = self.rearranged(wiring);
                wiring.rearrange(&sockets, |socket| self.place(socket));
            }
            Self::Missing { cables, .. } => cables.iter().for_each(|&(a, b)| wiring.connect(a, b)),
            Self::Foreign { cables, .. } => cables.iter().for_each(|&(a, _)| wiring.disconnect(a)),
            Self::Rename { found, planned, at } => {
                wiring.disconnect(Socket { node: *found, port: 0 });
                wiring.connect(Socket { node: *planned, port: 0 }, *at);
            }
            Self::Relabel { .. } => {}
        }
    }

    /// Where the plug in a socket goes if boxes are rearranged.
    fn place(&self, socket: Socket) -> Socket {
        match self {
            Self::Turn { xbar, turn, first, count } if socket.node == *xbar => {
                let is_in = (*first..*first + *count).contains(&socket.port);
                let port = if is_in { turn.right_port(socket.port, *first, *count) } else { socket.port };
                Socket { port, ..socket }
            }
            Self::ExchangeXbars(one, other) if socket.node == *one => Socket { node: *other, ..socket },
            Self::ExchangeXbars(one, other) if socket.node == *other => Socket { node: *one, ..socket },
            Self::ExchangeMachines(one, other) => {
                let mut pairs = one.iter().zip(other).flat_map(|(&a, &b)| [(a, b), (b, a)]);
                let to = pairs.find_map(|(from, to)| (from == socket.node).then_some(to));
                Socket { node: to.unwrap_or(socket.node), ..socket }
            }
            _ => socket,
        }
    }

    /// The sockets with plugs of boxes that are rearranged.
    fn rearranged(&self, wiring: &Wiring) -> Vec<Socket> {
        let nodes: Vec<u32> = match self {
            Self::Turn { xbar, .. } => vec![*xbar],
            Self::ExchangeXbars(one, other) => vec![*one, *other],
            Self::ExchangeMachines(one, other) => one.iter().chain(other).copied().collect(),
            _ => Vec::new(),
        };
        nodes.into_iter().flat_map(|node| wiring.of_node(node).map(|(socket, _)| socket)).collect()
    }

    /// All sockets whose plugs it changes, in plan or found wiring, and the ends of what it mends.
    pub(super) fn touched(&self, wirings: &Wirings) -> BTreeSet<Socket> {
        let mut touched: BTreeSet<Socket> = match self {
            Self::Connect(a, b) | Self::Disconnect(a, b) => [*a, *b].into(),
            Self::Move { from, to, far } => [*from, *to, *far].into(),
            Self::Swap { plugs, fars } => plugs.iter().chain(fars).copied().collect(),
            Self::Turn { .. } | Self::ExchangeXbars(..) | Self::ExchangeMachines(..) => {
                let sockets = [self.rearranged(&wirings.found), self.rearranged(&wirings.planned)];
                sockets.concat().into_iter().collect()
            }
            Self::Missing { cables, .. } | Self::Foreign { cables, .. } => {
                cables.iter().flat_map(|&(a, b)| [a, b]).collect()
            }
            Self::Rename { at, .. } => [*at].into(),
            Self::Relabel { .. } => BTreeSet::new(),
        };
        if let Self::Missing { node, .. } | Self::Foreign { node, .. } = self {
            touched.insert(Socket { node: *node, port: 0 });
        }
        touched
    }
}

/// What is to be done, in an order in which it can be done.
pub(super) fn find(wirings: &Wirings) -> Vec<Action> {
    Search::of(wirings, usize::MAX).run()
}

/// As [`find`], if that is less than so many actions.
pub(super) fn find_fewer_than(wirings: &Wirings, count: usize) -> Option<Vec<Action>> {
    let actions = Search::of(wirings, count).run();
    (actions.len() < count).then_some(actions)
}

/// A search under way.
struct Search<'a> {
    wirings: &'a Wirings,
    /// What is still to be reached.
    planned: Wiring,
    /// What there is once all actions are carried out.
    now: Wiring,
    actions: Vec<Action>,
    /// The search ends when there are so many actions.
    most: usize,
}

impl<'a> Search<'a> {
    fn of(wirings: &'a Wirings, most: usize) -> Self {
        let (planned, now) = (wirings.planned.clone(), wirings.found.clone());
        Self { wirings, planned, now, actions: Vec::new(), most }
    }

    fn run(mut self) -> Vec<Action> {
        self.names();
        self.nodes();
        self.boxes();
        self.plugs();
        self.actions
    }

    /// Whether nobody wants to know of further actions.
    const fn is_enough(&self) -> bool {
        self.actions.len() >= self.most
    }

    fn act(&mut self, action: Action) {
        action.apply(&mut self.now);
        self.actions.push(action);
    }

    /// Finds nodes that are in their place under another name.
    fn names(&mut self) {
        for node in 0..self.wirings.nodes.len() as u32 {
            let here = &self.wirings.nodes[node as usize];
            if here.found_as.is_some() {
                self.actions.push(Action::Relabel { xbar: node });
            }
            if !here.is_planned || here.is_found || !self.wirings.is_host(node) {
                continue;
            }
            let Some(at) = self.planned.far(Socket { node, port: 0 }) else { continue };
            let Some(there) = self.now.far(at) else { continue };
            if self.wirings.is_host(there.node) && !self.wirings.nodes[there.node as usize].is_planned {
                self.act(Action::Rename { found: there.node, planned: node, at });
            }
        }
    }

    /// Finds nodes that are not there, and those that nobody planned. Hosts behind an xbar that is not there
    /// belong to its mistake.
    fn nodes(&mut self) {
        let renamed: BTreeSet<u32> = self
            .actions
            .iter()
            .flat_map(|action| match action {
                Action::Rename { found, planned, .. } => vec![*found, *planned],
                _ => Vec::new(),
            })
            .collect();
        let nodes = &self.wirings.nodes;
        let count = nodes.len() as u32;
        let is_left = |node: &u32| !renamed.contains(node);
        let xbars_first = (0..count).filter(|&node| !self.wirings.is_host(node));
        let hosts = (0..count).filter(|&node| self.wirings.is_host(node));
        let in_order: Vec<u32> = xbars_first.chain(hosts).filter(is_left).collect();
        for node in in_order {
            let here = &nodes[node as usize];
            if here.is_planned && !here.is_found {
                let cables: Vec<(Socket, Socket)> = self.planned.of_node(node).collect();
                let was_cabled = self.wirings.planned.of_node(node).next().is_some();
                if cables.is_empty() && was_cabled && self.wirings.is_host(node) {
                    continue;
                }
                cables.iter().for_each(|&(socket, _)| self.planned.disconnect(socket));
                // Who sits in the sockets of the missing cables is seen when plugs are looked at.
                self.actions.push(Action::Missing { node, cables });
            } else if !here.is_planned {
                let cables: Vec<(Socket, Socket)> = self.now.of_node(node).collect();
                let was_cabled = self.wirings.found.of_node(node).next().is_some();
                if cables.is_empty() && was_cabled && self.wirings.is_host(node) {
                    continue;
                }
                self.act(Action::Foreign { node, cables });
            }
        }
    }

    /// Whether the socket holds what the plan says, or nothing as the plan says.
    fn is_right(&self, socket: Socket) -> bool {
        self.now.far(socket) == self.planned.far(socket)
    }

    /// Nodes with a plug that is not as planned, by rising number.
    fn wrong_nodes(&self) -> BTreeSet<u32> {
        let wrong = |(a, b): (Socket, Socket), other: &Wiring| {
            if other.far(a) == Some(b) { Vec::new() } else { vec![a.node, b.node] }
        };
        let missing = self.planned.cables().flat_map(|cable| wrong(cable, &self.now));
        let extra = self.now.cables().flat_map(|cable| wrong(cable, &self.planned));
        missing.chain(extra).collect()
    }

    /// The interfaces of a host's machine, in the order of rails.
    fn machines(&self) -> std::collections::BTreeMap<u32, Vec<u32>> {
        let mut machines: std::collections::BTreeMap<u32, Vec<(usize, u32)>> = Default::default();
        for (node, about) in (0..).zip(&self.wirings.nodes) {
            if let NodeKind::Host { machine, rail } = about.kind
                && about.is_planned
            {
                machines.entry(machine).or_default().push((rail, node));
            }
        }
        let sorted = |(machine, mut nodes): (u32, Vec<(usize, u32)>)| {
            nodes.sort_unstable();
            (machine, nodes.into_iter().map(|(_, node)| node).collect())
        };
        machines.into_iter().map(sorted).collect()
    }
}
