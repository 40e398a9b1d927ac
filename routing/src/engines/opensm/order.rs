//! In which order destinations are served.

use crate::Subnet;
use crate::engines::{Settings, SubnetNode};
use crate::tables::SlotEnd;

/// A node that tables lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// The xbar that its routes lead to: the node itself, or that of the host.
    pub(super) xbar: u32,
    /// Its first slot; the others follow.
    pub(super) slot: u32,
    /// Whether it is the xbar itself. Routes to xbars do not count.
    pub(super) is_xbar: bool,
}

/// All destinations, in the order in which each xbar chooses ports for them.
///
/// First come those that the user puts first. Then come the hosts, those of the xbar with most hosts first,
/// and then the xbars by GUID.
pub(super) struct DestinationOrder(pub(super) Vec<Target>);

impl DestinationOrder {
    pub(super) fn new(subnet: &Subnet, settings: &Settings) -> Self {
        let slots = subnet.destinations.slot_count();
        let mut order = Vec::with_capacity(slots);
        let mut placed = vec![false; slots];
        let mut place = |target: Target| {
            if !std::mem::replace(&mut placed[target.slot as usize], true) {
                order.push(target);
            }
        };
        settings.order_first.iter().filter_map(|&node| target(subnet, node)).for_each(&mut place);
        for xbar in by_load(subnet) {
            hosts_of(subnet, xbar).for_each(&mut place);
        }
        let mut xbars: Vec<u32> = (0..subnet.topology.xbar_count() as u32).collect();
        xbars.sort_by_key(|&xbar| (guid(subnet, xbar), xbar));
        xbars.into_iter().filter_map(|xbar| target(subnet, SubnetNode::Xbar(xbar))).for_each(place);
        Self(order)
    }
}

/// Xbars by falling number of hosts, then by GUID.
fn by_load(subnet: &Subnet) -> Vec<u32> {
    let mut xbars: Vec<u32> = (0..subnet.topology.xbar_count() as u32).collect();
    xbars.sort_by_cached_key(|&xbar| {
        let hosts = subnet.topology.hosts_of(xbar).iter();
        let cabled = hosts.filter(|&&host| subnet.xbar_of_host(host).is_some()).count();
        (std::cmp::Reverse(cabled), guid(subnet, xbar), xbar)
    });
    xbars
}

/// The hosts of an xbar, by port.
fn hosts_of(subnet: &Subnet, xbar: u32) -> impl Iterator<Item = Target> + '_ {
    let paths = 1 << subnet.destinations.lmc();
    let slots = subnet.destinations.host_slots_of(xbar).step_by(paths);
    let cabled = |slot: &u32| match subnet.destinations.end(*slot) {
        SlotEnd::Host { host, .. } => subnet.xbar_of_host(host).is_some(),
        SlotEnd::Xbar(_) => false,
    };
    slots.filter(cabled).map(move |slot| Target { xbar, slot, is_xbar: false })
}

/// A node that the user named; `None` if it is not there, or has no cable.
fn target(subnet: &Subnet, node: SubnetNode) -> Option<Target> {
    match node {
        SubnetNode::Xbar(xbar) if (xbar as usize) < subnet.topology.xbar_count() => {
            Some(Target { xbar, slot: subnet.destinations.slot_of_xbar(xbar), is_xbar: true })
        }
        SubnetNode::Host(host) if (host as usize) < subnet.topology.host_count() => {
            let slot = subnet.destinations.slots_of_host(host).next()?;
            Some(Target { xbar: subnet.xbar_of_host(host)?, slot, is_xbar: false })
        }
        SubnetNode::Xbar(_) | SubnetNode::Host(_) => None,
    }
}

/// An xbar's GUID as a little-endian machine sorts it that holds it in network order.
fn guid(subnet: &Subnet, xbar: u32) -> u64 {
    subnet.xbar_guids[xbar as usize].swap_bytes()
}
