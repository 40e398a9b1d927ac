//! In which order destinations are served.

use crate::routing::engines::{Settings, settings::Node};
use crate::routing::{Attachment, Subnet};

/// A node that tables lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// The xbar that its routes lead to: itself, or the host's.
    pub(super) xbar: u32,
    /// Its first slot; the others follow.
    pub(super) slot: u32,
    /// Whether it is the xbar itself. Routes to xbars do not count.
    pub(super) is_xbar: bool,
}

/// All destinations, in the order in which each xbar chooses ports for them.
///
/// Those that the user puts first come first, and then all others by GUID. If the user names none,
/// hosts come first, those of the xbar with most hosts foremost, then xbars by GUID.
pub(super) struct Order(pub(super) Vec<Target>);

impl Order {
    pub(super) fn new(subnet: &Subnet, settings: &Settings) -> Self {
        let (xbars, hosts) = (subnet.topology.xbar_count(), subnet.topology.host_count());
        let mut order = Vec::with_capacity(xbars + hosts);
        let mut placed = Placed { xbars: vec![false; xbars], hosts: vec![false; hosts] };
        if settings.order_first.is_empty() {
            for xbar in by_load(subnet) {
                order.extend(host_slots(subnet, xbar));
            }
            placed.hosts.fill(true);
        } else {
            let named = settings.order_first.iter().filter(|&&node| placed.place(node));
            order.extend(named.filter_map(|&node| target(subnet, node)));
        }
        let mut rest: Vec<(u64, Node)> = placed.rest().map(|node| (guid(subnet, node), node)).collect();
        rest.sort_unstable();
        order.extend(rest.into_iter().filter_map(|(_, node)| target(subnet, node)));
        Self(order)
    }
}

/// Which nodes have their place.
struct Placed {
    xbars: Vec<bool>,
    hosts: Vec<bool>,
}

impl Placed {
    /// Marks a node as placed; false if it is none or was placed before.
    fn place(&mut self, node: Node) -> bool {
        let place = match node {
            Node::Xbar(xbar) => self.xbars.get_mut(xbar as usize),
            Node::Host(host) => self.hosts.get_mut(host as usize),
        };
        place.is_some_and(|placed| !std::mem::replace(placed, true))
    }

    fn rest(&self) -> impl Iterator<Item = Node> {
        let open = |placed: &[bool]| {
            let open = (0..).zip(placed.to_vec()).filter(|(_, placed)| !placed);
            open.map(|(place, _): (u32, _)| place)
        };
        open(&self.xbars).map(Node::Xbar).chain(open(&self.hosts).map(Node::Host))
    }
}

/// Xbars by falling number of hosts, then by GUID.
fn by_load(subnet: &Subnet) -> Vec<u32> {
    let mut xbars: Vec<u32> = (0..subnet.topology.xbar_count() as u32).collect();
    xbars.sort_by_cached_key(|&xbar| {
        let hosts = subnet.topology.hosts_of(xbar).iter();
        let cabled = hosts.filter(|&&host| subnet.xbar_of_host(host).is_some()).count();
        (std::cmp::Reverse(cabled), guid(subnet, Node::Xbar(xbar)), xbar)
    });
    xbars
}

/// The hosts of an xbar, by port.
fn host_slots(subnet: &Subnet, xbar: u32) -> impl Iterator<Item = Target> {
    let paths = 1 << subnet.destinations.lmc();
    let slots = subnet.destinations.host_slots_of(xbar).step_by(paths);
    slots.map(move |slot| Target { xbar, slot, is_xbar: false })
}

fn target(subnet: &Subnet, node: Node) -> Option<Target> {
    match node {
        Node::Xbar(xbar) => {
            Some(Target { xbar, slot: subnet.destinations.slot_of_xbar(xbar), is_xbar: true })
        }
        Node::Host(host) => match subnet.topology.attachment(host) {
            Attachment::Port(at) => {
                let slot = subnet.destinations.slots_of_host(host).start;
                Some(Target { xbar: at.xbar, slot, is_xbar: false })
            }
            Attachment::Host(_) | Attachment::Nothing => None,
        },
    }
}

/// A node's GUID as a little-endian machine sorts it that holds it in network order.
fn guid(subnet: &Subnet, node: Node) -> u64 {
    match node {
        Node::Xbar(xbar) => subnet.xbar_guids[xbar as usize].swap_bytes(),
        Node::Host(host) => subnet.host_port_guids[host as usize].swap_bytes(),
    }
}
