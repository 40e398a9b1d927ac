//! Actions in words, by the names of both ends.

use std::collections::BTreeSet;

use super::{Action, Turn};
use crate::NodePort;
use crate::sockets::{NodeKind, Socket, Wirings};
use mapper_fabric::wording::plural;

/// The most ends that are listed of one mistake; a turned box has as many as plugs.
const MOST_ENDS: usize = 8;

/// The name of a kind of mistake in JSON.
pub(crate) fn kind(action: &Action, wirings: &Wirings) -> &'static str {
    match action {
        Action::Connect(..) => "missing-cable",
        Action::Disconnect(..) => "extra-cable",
        Action::Move { from, to, .. } if rails(wirings, *from, *to).is_some() => "rail",
        Action::Move { .. } => "moved-plug",
        Action::Swap { plugs: [one, other], .. } if rails(wirings, *one, *other).is_some() => "rail",
        Action::Swap { .. } => "swapped-plugs",
        Action::Turn { turn: Turn::UpsideDown, .. } => "upside-down",
        Action::Turn { turn: Turn::Halves, .. } => "swapped-halves",
        Action::Turn { turn: Turn::Rows, .. } => "swapped-rows",
        Action::Turn { turn: Turn::OneTooHigh | Turn::OneTooLow, .. } => "shifted-plugs",
        Action::ExchangeXbars(..) => "exchanged-xbars",
        Action::ExchangeMachines(..) => "exchanged-hosts",
        Action::Missing { .. } => "missing-node",
        Action::Foreign { .. } => "extra-node",
        Action::Rename { .. } | Action::Relabel { .. } => "label",
    }
}

/// The rails of two interfaces of one machine, counted from 1.
fn rails(wirings: &Wirings, one: Socket, other: Socket) -> Option<[usize; 2]> {
    let kinds = [one, other].map(|socket| wirings.nodes[socket.node as usize].kind);
    match kinds {
        [NodeKind::Host { machine: a, rail: x }, NodeKind::Host { machine: b, rail: y }]
            if a == b && x != y =>
        {
            Some([x + 1, y + 1])
        }
        _ => None,
    }
}

/// What to do.
pub(crate) fn advice(action: &Action, wirings: &Wirings) -> String {
    let port = |socket: &Socket| wirings.port(*socket).to_string();
    let called = |node: &u32| wirings.called(*node);
    match action {
        Action::Connect(a, b) => format!("plug in a cable from {} to {}", port(a), port(b)),
        Action::Disconnect(a, b) => {
            format!("take out the cable from {} to {}: the plan has none there", port(a), port(b))
        }
        Action::Move { from, to, far } => moved(wirings, *from, *to, *far),
        Action::Swap { plugs, fars } => swapped(wirings, *plugs, *fars),
        Action::Turn { xbar, turn, first, count } => turned(called(xbar), *turn, *first, *count),
        Action::ExchangeXbars(one, other) => format!(
            "{} and {} stand in each other's place: exchange the two, or what they are called",
            called(one),
            called(other)
        ),
        Action::ExchangeMachines(one, other) => format!(
            "{} and {} stand in each other's place with all {}: exchange the two machines, or what they are called",
            one.first().map(called).unwrap_or_default(),
            other.first().map(called).unwrap_or_default(),
            plural(one.len(), "plug")
        ),
        Action::Missing { node, cables } => missing(wirings, *node, cables),
        Action::Foreign { node, cables } => foreign(wirings, *node, cables),
        Action::Rename { found, planned, at } => format!(
            "call {} at {} {}, or exchange it: so the plan calls what is there",
            called(found),
            port(at),
            called(planned)
        ),
        Action::Relabel { xbar } => format!(
            "call {} {}: its cables say that it is what the plan calls so",
            wirings.nodes[*xbar as usize].found_as.as_deref().unwrap_or_default(),
            called(xbar)
        ),
    }
}

fn moved(wirings: &Wirings, from: Socket, to: Socket, far: Socket) -> String {
    let what = format!(
        "move the plug at {} to {}; it is that of the cable from {}",
        wirings.port(from),
        wirings.port(to),
        wirings.port(far)
    );
    of_rails(rails(wirings, from, to), what)
}

fn swapped(wirings: &Wirings, [one, other]: [Socket; 2], [of_one, of_other]: [Socket; 2]) -> String {
    let what = format!(
        "swap the plugs at {} and {}: the first is now cabled to {}, the second to {}",
        wirings.port(one),
        wirings.port(other),
        wirings.port(of_one),
        wirings.port(of_other)
    );
    of_rails(rails(wirings, one, other), what)
}

/// What to do, and first, where plugs are those of two rails of a machine, that they are.
fn of_rails(rails: Option<[usize; 2]>, what: String) -> String {
    match rails {
        Some([is, belongs]) => format!("rail {is} is plugged where rail {belongs} belongs: {what}"),
        None => what,
    }
}

fn turned(name: &str, turn: Turn, first: i16, count: i16) -> String {
    let last = first + count - 1;
    let (half, rest) = (first + count / 2 - 1, first + count / 2);
    match turn {
        Turn::UpsideDown => format!(
            "{name} is upside down: turn it over, or move the plug of each port p to port {} - p",
            first + last
        ),
        Turn::Halves => format!(
            "{name} has the plugs of ports {first} to {half} in ports {rest} to {last}, and those in these: exchange \
             the two halves"
        ),
        Turn::Rows => format!(
            "{name} has the two rows of its ports exchanged: swap the plugs of ports {first} and {}, and so on to {} \
             and {last}",
            first + 1,
            last - 1
        ),
        Turn::OneTooHigh => format!("{name} has all plugs one port too high: move each to the port before"),
        Turn::OneTooLow => format!("{name} has all plugs one port too low: move each to the port behind"),
    }
}

fn missing(wirings: &Wirings, node: u32, cables: &[(Socket, Socket)]) -> String {
    let name = wirings.called(node);
    match cables.first() {
        None => format!("switch {name} on: it is not there"),
        Some((near, far)) if cables.len() == 1 => format!(
            "switch {name} on, and see that its cable joins {} and {}: it is not there",
            wirings.port(*near),
            wirings.port(*far)
        ),
        Some((near, far)) => format!(
            "switch {name} on, and see that its {} are in, the first from {} to {}: it is not there",
            plural(cables.len(), "cable"),
            wirings.port(*near),
            wirings.port(*far)
        ),
    }
}

fn foreign(wirings: &Wirings, node: u32, cables: &[(Socket, Socket)]) -> String {
    let name = wirings.called(node);
    match cables.first() {
        None => format!("add {name} to the plan, which does not have it, or take it away"),
        Some((_, far)) if cables.len() == 1 => format!(
            "unplug {name} from {}, or add it to the plan: the plan does not have it",
            wirings.port(*far)
        ),
        Some((_, far)) => format!(
            "unplug {name} ({}, the first to {}), or add it to the plan: the plan does not have it",
            plural(cables.len(), "cable"),
            wirings.port(*far)
        ),
    }
}

/// The ends that an action is about.
pub(crate) fn ends(action: &Action, wirings: &Wirings) -> Vec<NodePort> {
    let node = |node: u32| NodePort { node: wirings.nodes[node as usize].name.clone(), port: None };
    match action {
        Action::Connect(a, b) | Action::Disconnect(a, b) => vec![wirings.port(*a), wirings.port(*b)],
        Action::Move { from, to, far } => [from, to, far].map(|socket| wirings.port(*socket)).into(),
        Action::Swap { plugs, fars } => {
            plugs.iter().chain(fars).map(|socket| wirings.port(*socket)).collect()
        }
        Action::Turn { xbar, .. } | Action::Relabel { xbar } => vec![node(*xbar)],
        Action::ExchangeXbars(one, other) => vec![node(*one), node(*other)],
        Action::ExchangeMachines(one, other) => one.iter().chain(other).map(|&host| node(host)).collect(),
        Action::Missing { node: of, cables } | Action::Foreign { node: of, cables } => {
            let fars = cables.iter().map(|(_, far)| wirings.port(*far));
            let all: BTreeSet<NodePort> = fars.collect();
            std::iter::once(node(*of)).chain(all.into_iter().take(MOST_ENDS)).collect()
        }
        Action::Rename { found, planned, at } => vec![node(*found), node(*planned), wirings.port(*at)],
    }
}
