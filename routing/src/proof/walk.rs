//! Walks a route from its port numbers alone.

use mapper_proto::map::PortRef;

use super::Violation;
use crate::{Attachment, Far, Subnet, Tables, Topology};

/// Where a frame has come to.
#[derive(PartialEq, Eq)]
enum FrameAt {
    Xbar(u32),
    Host(u32),
}

/// The channels that a route takes between xbars, found from its port numbers alone.
///
/// # Errors
/// If the route does not lead along cables from one host to the other, passes an xbar twice, or has
/// more hops than `max_hops`.
pub fn walk(
    topology: &Topology,
    from: u32,
    to: u32,
    hops: &[PortRef],
    max_hops: usize,
) -> Result<Vec<u32>, Violation> {
    let (from_mac, to_mac) = (topology.mac(from), topology.mac(to));
    if hops.len() > max_hops {
        return Err(Violation::TooLong { from: from_mac, to: to_mac, hops: hops.len(), max_hops });
    }
    let mut at = match topology.attachment(from) {
        Attachment::Port(port) => FrameAt::Xbar(port.xbar),
        Attachment::Host(other) => FrameAt::Host(other),
        Attachment::Nothing => FrameAt::Host(from),
    };
    let mut channels = Vec::with_capacity(hops.len());
    let mut visited: Vec<u32> = Vec::with_capacity(hops.len());
    for &hop in hops {
        if at != FrameAt::Xbar(hop.xbar) {
            return Err(Violation::Astray { from: from_mac, to: to_mac, hop });
        }
        if visited.contains(&hop.xbar) {
            return Err(Violation::Loop { from: from_mac, to: to_mac, xbar: hop.xbar });
        }
        visited.push(hop.xbar);
        at = match topology.far(hop) {
            Far::Channel(channel) => {
                channels.push(channel);
                FrameAt::Xbar(topology.head(channel).xbar)
            }
            Far::Host(host) => FrameAt::Host(host),
            Far::Nothing => return Err(Violation::Broken { from: from_mac, to: to_mac, hop }),
        };
    }
    if at == FrameAt::Host(to) {
        Ok(channels)
    } else {
        Err(Violation::WrongEnd { from: from_mac, to: to_mac })
    }
}

/// The ports that frames from a host to a slot leave by, or `None` if they do not get there.
pub fn walk_tables(subnet: &Subnet, tables: &Tables, from: u32, slot: u32) -> Option<Vec<PortRef>> {
    let mut xbar = subnet.xbar_of_host(from)?;
    let mut hops = Vec::new();
    // A route without a loop passes each xbar once at most.
    for _ in 0..subnet.topology.xbar_count() {
        let hop = PortRef { xbar, port: tables.port(xbar, slot) };
        hops.push(hop);
        match subnet.topology.far(hop) {
            Far::Channel(channel) => xbar = subnet.topology.head(channel).xbar,
            Far::Host(host) => {
                return subnet.destinations.slots_of_host(host).contains(&slot).then_some(hops);
            }
            Far::Nothing => return None,
        }
    }
    None
}
