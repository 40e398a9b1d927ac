//! Hosts that a map does not list any more, and which ways to them the kernel may go on sending along.

use std::sync::Arc;

use mapper_proto::Instant;
use mapper_proto::map::PortRef;

use super::Numbers;
use super::destination::Destination;
use super::way::{Course, Way};
use crate::routes::RouteTable;

/// A host that the map does not list any more.
#[derive(Debug)]
pub(super) struct Unlisted {
    pub(super) destination: Destination,
    /// Until when the kernel goes on sending to it.
    pub(super) until: Instant,
    /// The table of the last map that listed it: the ways' hops are of that map.
    pub(super) table: Arc<RouteTable>,
}

impl Unlisted {
    /// Forgets the ways by segments that are none by the map of this table. Returns whether there were some.
    pub(super) fn lose_illegal_ways(&mut self, table: &RouteTable, numbers: &mut Numbers) -> bool {
        let before = &self.table;
        let is_lost = |way: &Way| way.course != Course::Destination && !is_legal(&way.hops, before, table);
        self.destination.lose_ways(is_lost, numbers)
    }
}

/// Whether the hops of a route of the map before lead as that map said by the map of now, too, and close no circle with its
/// routes. The crossbars at the route's end may be gone with the host.
fn is_legal(hops: &[PortRef], before: &RouteTable, now: &RouteTable) -> bool {
    let in_this_map = |hop: &PortRef| {
        let xbar = before.tag(hop.xbar).and_then(|tag| now.xbar(tag))?;
        Some(PortRef { xbar, port: hop.port })
    };
    let known: Vec<PortRef> = hops.iter().map_while(in_this_map).collect();
    let is_gone = |hop: &PortRef| in_this_map(hop).is_none();
    let leads_on = |pair: &[PortRef]| now.far_port(pair[0]).is_some_and(|far| far.xbar == pair[1].xbar);
    hops[known.len()..].iter().all(is_gone)
        && known.windows(2).all(leads_on)
        && known.last().is_none_or(|&last| now.far_port(last).is_none())
        && now.closes_no_circle(&known)
}
