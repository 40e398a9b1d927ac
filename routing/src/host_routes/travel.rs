//! Routes as they travel: the elements that crossbars obey, in place of the ports that a route leaves by.

use mapper_proto::map::PortRef;
use mapper_proto::wire::{Element, Route};

use super::RoutingError;
use crate::{Attachment, Far, Topology};

/// The port that a route enters each of its xbars by, with the port that it leaves it by.
///
/// # Errors
/// If the hops do not follow the cables.
pub fn turns(topology: &Topology, from: u32, hops: &[PortRef]) -> Result<Vec<(PortRef, u8)>, RoutingError> {
    let mut arrival = match topology.attachment(from) {
        Attachment::Port(at) => Some(at),
        Attachment::Host(_) | Attachment::Nothing => None,
    };
    let mut turns = Vec::with_capacity(hops.len());
    for &hop in hops {
        let at = arrival.filter(|at| at.xbar == hop.xbar).ok_or(RoutingError::NoCable { port: hop })?;
        turns.push((at, hop.port));
        arrival = match topology.far(hop) {
            Far::Channel(channel) => Some(topology.head(channel)),
            Far::Host(_) => None,
            Far::Nothing => return Err(RoutingError::NoCable { port: hop }),
        };
    }
    Ok(turns)
}

/// A route as it travels from a host: deltas between the ports of arrival and departure, and
/// absolute ports where a delta does not fit and the xbar obeys them.
///
/// # Errors
/// If the hops do not follow the cables, or a plain xbar would have to turn by more than 31 ports.
pub fn wire_route(topology: &Topology, from: u32, hops: &[PortRef]) -> Result<Route, RoutingError> {
    turns(topology, from, hops)?.into_iter().map(|(arrival, out)| element(topology, arrival, out)).collect()
}

/// The way back of a route as it travels: from the host that the hops lead to, through the same
/// xbars. What is legal one way is legal the other way.
///
/// # Errors
/// If [`wire_route`] fails.
pub fn wire_way_back(topology: &Topology, from: u32, hops: &[PortRef]) -> Result<Route, RoutingError> {
    let turns = turns(topology, from, hops)?;
    let back = |(arrival, out): (PortRef, u8)| {
        element(topology, PortRef { xbar: arrival.xbar, port: out }, arrival.port)
    };
    turns.into_iter().rev().map(back).collect()
}

fn element(topology: &Topology, arrival: PortRef, out: u8) -> Result<Element, RoutingError> {
    match i8::try_from(i16::from(out) - i16::from(arrival.port)) {
        Ok(delta @ -31..=31) => Ok(Element::Relative(delta)),
        _ if topology.is_tagged(arrival.xbar) => Ok(Element::Absolute(out)),
        _ => Err(RoutingError::DeltaTooLarge { xbar: arrival.xbar, arrival: arrival.port, out }),
    }
}
