//! What a mistake costs.

use std::collections::{BTreeMap, BTreeSet};

use super::advice::Action;
use super::sockets::{NodeKind, Socket, Wiring, Wirings};
use mapper_fabric::parts::{Parts, largest_pieces};
use mapper_fabric::wording::plural;

/// What hurts most comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Hosts are cut off from most others that the plan joins them with.
    CutsOff,
    /// Two xbars have fewer cables between them than planned.
    Bandwidth,
    /// Nothing is lost: something is not where, or not called as, the plan says.
    Label,
}

impl Severity {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CutsOff => "cuts-off",
            Self::Bandwidth => "bandwidth",
            Self::Label => "label",
        }
    }
}

/// What one mistake costs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Cost {
    pub(super) severity: Severity,
    /// How much, among those that are as severe: hosts, or thousandths of the bandwidth between two xbars.
    pub(super) weight: usize,
    /// In words; empty if nothing is lost.
    pub(super) effect: String,
}

/// How many actions are tried out alone to see which hosts they join again; others are judged by what they touch.
const MOST_TRIED: usize = 500;

/// How many hosts are named.
const MOST_NAMED: usize = 4;

/// What is lost by all mistakes together.
pub(super) struct Losses<'a> {
    wirings: &'a Wirings,
    /// The part of the plan that each node is in, by the part's smallest node.
    planned_parts: Vec<u32>,
    /// For each node whether it is apart from most hosts of its part of the plan.
    apart: Vec<bool>,
    /// How many cables pairs of xbars are planned to have, and have.
    pairs: BTreeMap<(u32, u32), [usize; 2]>,
    tried: usize,
}

impl<'a> Losses<'a> {
    pub(super) fn of(wirings: &'a Wirings) -> Self {
        let planned_parts = parts(wirings.nodes.len(), &wirings.planned);
        let mut pairs: BTreeMap<(u32, u32), [usize; 2]> = BTreeMap::new();
        for (at, wiring) in [&wirings.planned, &wirings.found].into_iter().enumerate() {
            for (a, b) in
                wiring.cables().filter(|(a, b)| !wirings.is_host(a.node) && !wirings.is_host(b.node))
            {
                pairs.entry((a.node.min(b.node), a.node.max(b.node))).or_default()[at] += 1;
            }
        }
        let apart = apart(wirings, &planned_parts, &wirings.found);
        Self { wirings, planned_parts, apart, pairs, tried: 0 }
    }

    /// What the mistake costs that an action mends.
    pub(super) fn cost(&mut self, action: &Action) -> Cost {
        let touched = action.touched(self.wirings);
        let hosts = self.cut_off(action, &touched);
        if !hosts.is_empty() {
            let effect = format!("cuts off {}", self.named(&hosts));
            return Cost { severity: Severity::CutsOff, weight: hosts.len(), effect };
        }
        self.lost_bandwidth(&touched).unwrap_or(Cost {
            severity: Severity::Label,
            weight: 0,
            effect: String::new(),
        })
    }

    /// The hosts that an action alone joins again; or if it joins none alone, those apart that it touches.
    fn cut_off(&mut self, action: &Action, touched: &BTreeSet<Socket>) -> Vec<u32> {
        let is_apart = |socket: &Socket| self.apart[socket.node as usize];
        if !touched.iter().any(is_apart) {
            return Vec::new();
        }
        let is_host = |node: &u32| self.wirings.is_host(*node);
        let of_touched: BTreeSet<u32> = touched
            .iter()
            .filter(|socket| is_apart(socket))
            .map(|socket| socket.node)
            .filter(is_host)
            .collect();
        let is_one_host = matches!(action, Action::Missing { node, .. } if self.wirings.is_host(*node));
        if is_one_host || self.tried == MOST_TRIED {
            return of_touched.into_iter().collect();
        }
        self.tried += 1;
        let mut mended = self.wirings.found.clone();
        action.apply(&mut mended);
        let after = apart(self.wirings, &self.planned_parts, &mended);
        let all = 0..self.wirings.nodes.len() as u32;
        let joined = |node: &u32| self.apart[*node as usize] && !after[*node as usize];
        let joined: Vec<u32> = all.filter(is_host).filter(joined).collect();
        if joined.is_empty() { of_touched.into_iter().collect() } else { joined }
    }

    /// The pair of xbars of a planned cable at these sockets that lost the greatest part of its cables.
    fn lost_bandwidth(&self, touched: &BTreeSet<Socket>) -> Option<Cost> {
        let wirings = self.wirings;
        let planned = touched.iter().filter_map(|&socket| Some((socket, wirings.planned.far(socket)?)));
        let wrong = planned.filter(|&(socket, far)| wirings.found.far(socket) != Some(far));
        let pair = |(a, b): (Socket, Socket)| (a.node.min(b.node), a.node.max(b.node));
        let lost = wrong.filter_map(|cable| {
            let [planned, found] = *self.pairs.get(&pair(cable))?;
            (found < planned).then(|| (1000 * (planned - found) / planned, pair(cable), planned, found))
        });
        let (weight, (a, b), planned, found) =
            lost.max_by_key(|&(weight, pair, ..)| (weight, std::cmp::Reverse(pair)))?;
        let effect = format!(
            "{} and {} have {found} of {} between them",
            wirings.called(a),
            wirings.called(b),
            plural(planned, "cable")
        );
        Some(Cost { severity: Severity::Bandwidth, weight, effect })
    }

    fn named(&self, hosts: &[u32]) -> String {
        let mut names: Vec<String> =
            hosts.iter().take(MOST_NAMED).map(|&host| self.wirings.called(host).to_owned()).collect();
        if hosts.len() > MOST_NAMED {
            names.push(format!("{} more", hosts.len() - MOST_NAMED));
        }
        match names.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
            _ => names.concat(),
        }
    }
}

/// The connected part of each node, as its smallest node.
fn parts(nodes: usize, wiring: &Wiring) -> Vec<u32> {
    let mut parts = Parts::new(nodes);
    for (a, b) in wiring.cables() {
        parts.join(a.node, b.node);
    }
    (0..nodes as u32).map(|node| parts.of(node)).collect()
}

/// For each planned node whether it is apart from most hosts of its part of the plan.
fn apart(wirings: &Wirings, planned_parts: &[u32], wiring: &Wiring) -> Vec<bool> {
    let now = parts(wirings.nodes.len(), wiring);
    let nodes = wirings.nodes.iter().enumerate();
    let hosts = nodes.filter(|(_, it)| it.is_planned && matches!(it.kind, NodeKind::Host { .. }));
    let mut main = largest_pieces(hosts.map(|(node, _)| (planned_parts[node], now[node])));
    // A single host is apart from nobody.
    main.retain(|_, largest| largest.all_hosts > 1);
    let is_apart = |(node, about): (usize, &super::sockets::Node)| {
        about.is_planned && main.get(&planned_parts[node]).is_some_and(|main| main.piece != now[node])
    };
    wirings.nodes.iter().enumerate().map(is_apart).collect()
}
