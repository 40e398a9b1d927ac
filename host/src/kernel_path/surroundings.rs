//! What ways are derived from beside routes: what kernels can do, and which ports lead to which neighbours.

use std::collections::BTreeMap;

use mapper_fib::crossbar::CabledPort;
use mapper_fib::segments::{LeftUnused, Packing};
use mapper_proto::Mac;
use mapper_proto::map::PortRef;
use mapper_proto::wire::{HelloEnd, HelloFlags};

use super::LeftRoutes;

/// The port of a host that has no crossbar of its own: its one interface.
pub const CABLE: u8 = 0;

/// What the kernel of this machine can do, as far as the user lets it be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KernelAbilities {
    /// It sends and obeys segments.
    pub segments: bool,
    /// It knows several elements in one address.
    pub compressed: bool,
    /// When it goes by destination. Where this host has no crossbar of its own, it sends so, and forwards nothing.
    pub by_destination: ByDestination,
    /// What it takes off the MTU of a route by segments.
    pub left_unused: LeftUnused,
}

/// What a host is to know of its kernel from the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelStart {
    /// From this the nonces of probes are drawn. It must be random, so that nobody can guess them.
    pub seed: u64,
    /// The number of the interface of users' frames, which carries what no kernel does.
    pub tap: u32,
    /// What an earlier run has left in the kernel.
    pub left: LeftRoutes,
    /// What the kernel can do.
    pub abilities: KernelAbilities,
    /// The number of the own crossbar's port to this agent, if they are in one machine.
    pub agent_port: Option<u8>,
}

/// When a host's kernel sends packets by their destination, and forwards them so where the host has a crossbar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum ByDestination {
    /// Never.
    #[default]
    Never,
    /// Only for the sake of others: where all crossbars of the map are those of nodes that can, and the kernel of a host does nothing else.
    WithOthers,
    /// Always, and by nothing else.
    Always,
    /// Always, and by nothing else, at a host without a crossbar of its own, which forwards nothing for others.
    Alone,
}

/// What the user of a machine wants its packets to go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preference {
    /// What its kernel and those of others do best.
    Best,
    /// By their destination.
    Destination,
    /// By anything but their destination.
    NotDestination,
}

impl ByDestination {
    /// When a kernel goes by destination that obeys segments, or does not, at a host that has a crossbar of its own and `forwards`
    /// for others, or none.
    pub const fn of(preference: Preference, obeys_segments: bool, forwards: bool) -> Self {
        match preference {
            Preference::Destination => Self::Always,
            Preference::Best if !obeys_segments => Self::Always,
            Preference::Best if forwards => Self::WithOthers,
            Preference::Best | Preference::NotDestination => Self::Never,
        }
    }

    /// What a host says of its kernel that goes so. One without a crossbar does so for nobody else's sake, as nobody's packets pass it.
    pub(crate) const fn told(self, has_crossbar: bool) -> Self {
        match self {
            _ if has_crossbar => self,
            Self::Never | Self::WithOthers => Self::Never,
            Self::Always | Self::Alone => Self::Alone,
        }
    }

    /// Whether nothing else is to be had of the kernel.
    pub(super) const fn is_needed(self) -> bool {
        matches!(self, Self::Always | Self::Alone)
    }

    /// Whether the kernel can forward for others, as that of a node.
    pub(crate) const fn forwards(self) -> bool {
        matches!(self, Self::WithOthers | Self::Always)
    }
}

impl KernelAbilities {
    /// How elements are packed at first: as tightly as this kernel can.
    pub(super) const fn packing(self) -> Packing {
        if self.compressed { Packing::Compressed } else { Packing::Full }
    }
}

/// What ways are derived from, beside the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub(super) abilities: KernelAbilities,
    pub(super) agent_port: Option<u8>,
    pub(super) ports: &'a BTreeMap<u8, KernelPort>,
    pub(super) narrow: &'a BTreeMap<PortRef, u16>,
    pub(super) tables: TablesByDestination,
}

/// Which tables by destination packets may go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TablesByDestination {
    /// No tables, as this host does not go by destination.
    Unused,
    /// What the table of this map has in common with those that were in use before, as not all hosts are
    /// known to have this map.
    ///
    /// A host without a newer map uses the tables of the map before, and a host with one uses a part of them.
    /// So all hosts together use a part of the tables of one map, in which no packet goes in a circle.
    Alike,
    /// The whole table of this map, which all hosts have. Hosts that still use [`Self::Alike`] use a part of
    /// it.
    OfThisMap,
}

impl TablesByDestination {
    /// The tables that a host uses which goes by destination, or not. `complete` says whether all hosts have its map.
    ///
    /// That holds for a host without a crossbar, too. No table leads through it, so it closes no circle whatever it sends; but what
    /// it sent before others have the map would go by the tap interface of the next host, and not by its own.
    pub(super) const fn of(goes_by_destination: bool, complete: bool) -> Self {
        match (goes_by_destination, complete) {
            (true, true) => Self::OfThisMap,
            (true, false) => Self::Alike,
            (false, _) => Self::Unused,
        }
    }
}

impl Surroundings<'_> {
    pub(super) const fn packing(&self) -> Packing {
        self.abilities.packing()
    }
}

/// A port of this host that leads to the fabric, and whose neighbour is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelPort {
    /// The port and its neighbour.
    pub cabled: CabledPort,
    /// The tag of the crossbar at the other end; `None` for a host, or a crossbar without one.
    pub tag: Option<u64>,
    /// The address by which the fabric knows the host at the other end, if there is one without a crossbar.
    pub host: Option<Mac>,
    /// The longest frame that both ends of the cable carry, in bytes behind the Ethernet header.
    pub mtu: u32,
    /// Whether the neighbour's kernel obeys segments, or may do so, as a host without a crossbar says only that it does not.
    pub by_segments: bool,
    /// Whether the neighbour's kernel forwards by destination, or takes what is for itself and is all that is behind the port.
    pub by_destination: bool,
}

impl KernelPort {
    /// A port whose neighbour has told this of itself and its kernel.
    pub(super) fn of(cabled: CabledPort, mtu: u32, end: HelloEnd, flags: HelloFlags) -> Self {
        let does = |flag| flags.contains(flag);
        let (tag, host) = match end {
            HelloEnd::Xbar { tag, .. } => (tag, None),
            HelloEnd::Host { mac } => (None, Some(mac)),
        };
        // A host without a crossbar forwards nothing, and takes what is for itself.
        let is_host = host.is_some();
        let by_segments = does(HelloFlags::SRV6) || is_host && !does(HelloFlags::ROUTES);
        Self { cabled, tag, host, mtu, by_segments, by_destination: does(HelloFlags::ROUTES) || is_host }
    }
}

/// The neighbour's address and port.
pub(super) const fn far_end(port: &KernelPort) -> (Mac, u8) {
    (port.cabled.neighbour, port.cabled.neighbour_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_neighbour_says_of_its_kernel_means_another_thing_where_it_has_no_crossbar() {
        let mac = Mac::from_position(1);
        let cabled = CabledPort {
            port: 1,
            interface: 11,
            name: "e1".to_owned(),
            neighbour: mac,
            neighbour_port: 2,
            sends_segments: true,
        };
        let does = |end, flags| {
            let port = KernelPort::of(cabled.clone(), 1500, end, flags);
            (port.tag, port.host, port.by_segments, port.by_destination)
        };
        let (xbar, host) = (HelloEnd::Xbar { tag: Some(7), port: 2 }, HelloEnd::Host { mac });
        let both = HelloFlags::SRV6.with(HelloFlags::ROUTES);
        assert_eq!(does(xbar, HelloFlags::NONE), (Some(7), None, false, false));
        assert_eq!(does(xbar, HelloFlags::SRV6), (Some(7), None, true, false));
        assert_eq!(does(xbar, both), (Some(7), None, true, true));
        assert_eq!(does(host, HelloFlags::NONE), (None, Some(mac), true, true));
        assert_eq!(does(host, HelloFlags::ROUTES), (None, Some(mac), false, true));
    }

    #[test]
    fn a_kernel_without_segments_goes_by_destination_unless_its_user_does_not_want_that() {
        use ByDestination::{Always, Never, WithOthers};
        use Preference::{Best, Destination, NotDestination};
        let of = |preference, obeys_segments| {
            [true, false].map(|forwards| ByDestination::of(preference, obeys_segments, forwards))
        };
        assert_eq!([of(Best, true), of(Best, false)], [[WithOthers, Never], [Always; 2]]);
        assert_eq!([of(Destination, true), of(Destination, false)], [[Always; 2]; 2]);
        assert_eq!([of(NotDestination, true), of(NotDestination, false)], [[Never; 2]; 2]);
    }
}
