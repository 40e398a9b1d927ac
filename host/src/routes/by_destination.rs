//! What a host's routes say where crossbars send packets on by their destination.

use mapper_proto::Mac;
use mapper_proto::map::PortRef;
use mapper_routing::{Attachment, Far};

use super::RouteTable;

/// Where crossbars go by the destination, a way to a host as the tables of a map have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WayByDestination {
    /// The port by which it leaves each xbar, in order.
    pub hops: Vec<PortRef>,
    /// The place in `hops` of the first xbar of another machine that has several ports that are equally near. There and farther on it
    /// is one of several ways. `None` if there is no other.
    pub forks_at: Option<usize>,
}

impl RouteTable {
    /// Whether there are routes by destination of the xbar that this host is cabled to.
    pub(crate) const fn has_next_hops(&self) -> bool {
        self.next_hops.is_some()
    }

    /// The port that a host, by its number, is cabled to, if it is a port of an xbar.
    pub(crate) fn home_of(&self, host: u32) -> Option<PortRef> {
        match self.basis.topology.attachment(host) {
            Attachment::Port(home) => Some(home),
            _ => None,
        }
    }

    /// The host that this one is cabled to, if there is no xbar between them.
    pub(crate) fn only_other(&self) -> Option<Mac> {
        match self.basis.topology.attachment(self.whole.from()) {
            Attachment::Host(other) => Some(self.basis.topology.mac(other)),
            _ => None,
        }
    }

    /// The host that is cabled to a port, if one is.
    pub fn host_at(&self, port: PortRef) -> Option<Mac> {
        match self.basis.topology.far(port) {
            Far::Host(host) => Some(self.basis.topology.mac(host)),
            _ => None,
        }
    }

    /// The ports by which packets to a host may leave the xbar that this host is cabled to, where crossbars go by the destination, and
    /// how many bytes a frame may have on all ways to that host's xbar, if some cable on them carries shorter ones than others.
    /// Whichever cables are dead, these are the ports of the whole map. For a host at the same xbar it is the host's own port.
    pub(crate) fn next_hops_to(&self, host: u32) -> impl Iterator<Item = (PortRef, Option<u16>)> + '_ {
        let topology = &self.basis.topology;
        let homes = self.next_hops.as_ref().zip(self.home()).zip(self.home_of(host));
        homes.into_iter().flat_map(move |((hops, own), home)| {
            let hop = move |&channel: &u32| (topology.tail(channel), hops.most_bytes(home.xbar, channel));
            let last = (home.xbar == own.xbar).then_some((home, None));
            hops.towards(home.xbar).iter().map(hop).chain(last)
        })
    }

    /// Whether the tables by destination of the xbar that this host is cabled to lead to a host, or nothing is between the two.
    pub(crate) fn has_way_by_destination(&self, host: u32) -> bool {
        self.only_other() == Some(self.basis.topology.mac(host)) || self.next_hops_to(host).next().is_some()
    }

    /// The ports by which packets of this host to another one leave the xbars on their way, where crossbars go by the destination and
    /// this host has none of its own; of several that are equally short, one.
    pub fn way_by_cable(&self, host: u32) -> WayByDestination {
        let mut firsts = self.next_hops_to(host).map(|(hop, _)| hop);
        let Some(first) = firsts.next() else { return WayByDestination { hops: Vec::new(), forks_at: None } };
        let way = self.way_by_destination(first, host);
        WayByDestination { forks_at: firsts.next().map(|_| 0).or(way.forks_at), ..way }
    }

    /// The ports by which packets to a host leave the xbars on their way, where crossbars go by the destination and packets
    /// leave the own xbar by `first`; of several that are equally short, one. It takes a search of the fabric for each xbar on
    /// the way.
    pub fn way_by_destination(&self, first: PortRef, host: u32) -> WayByDestination {
        let topology = &self.basis.topology;
        let (mut hops, mut forks_at) = (vec![first], None);
        let Attachment::Port(home) = topology.attachment(host) else {
            return WayByDestination { hops, forks_at };
        };
        let mut far = topology.far(first);
        while let Far::Channel(arrival) = far {
            let at = topology.head(arrival).xbar;
            if at == home.xbar {
                hops.push(home);
                break;
            }
            let turns = self.basis.order_by_destination().turns(topology, at, home.xbar);
            let mut outs = turns.into_iter().filter(|turn| turn.0 == arrival);
            let Some((_, out)) = outs.next() else { break };
            if outs.next().is_some() && forks_at.is_none() {
                forks_at = Some(hops.len());
            }
            hops.push(topology.tail(out));
            far = Far::Channel(out);
        }
        WayByDestination { hops, forks_at }
    }

    /// The turns that packets to a host take at the own xbar, where crossbars go by the destination: the port of another xbar
    /// that they come from, and the own one that they leave by.
    pub(crate) fn turns_to(&self, host: u32) -> Vec<(PortRef, PortRef)> {
        let topology = &self.basis.topology;
        let (Some(own), Attachment::Port(home)) = (self.home(), topology.attachment(host)) else {
            return Vec::new();
        };
        let turns = self.basis.order_by_destination().turns(topology, own.xbar, home.xbar);
        turns.into_iter().map(|(arrival, out)| (topology.tail(arrival), topology.tail(out))).collect()
    }

    /// Whether packets that come from a port and leave by another one behind it close no circle with those that go by the
    /// destination in this map.
    pub(crate) fn allows_by_destination(&self, (from, by): (PortRef, PortRef)) -> bool {
        let topology = &self.basis.topology;
        match (topology.far(from), topology.far(by)) {
            (Far::Channel(arrival), Far::Channel(out)) if topology.head(arrival).xbar == by.xbar => {
                self.basis.order_by_destination().allows((arrival, out))
            }
            // Where the map has no such cable, no packet comes in and none waits. One that loses frames is there, and routes leave it out.
            _ => !self.leaves_out(from) && !self.leaves_out(by),
        }
    }
}
