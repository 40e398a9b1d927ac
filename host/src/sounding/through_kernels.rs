//! The ways of users' packets through the kernels to one host, and the segments that turn at each crossbar on them.

use std::net::Ipv6Addr;

use mapper_fib::segments::{self, Element, Packing};
use mapper_proto::map::PortRef;
use mapper_proto::wire::{Element as Turn, Route};

use super::EchoWay;

/// What crossbars on a way go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelCourse {
    /// The segments in the packet.
    Segments(Packing),
    /// The destination. Crossbars decide by their tables which others a packet passes.
    Destination,
}

/// A way through the kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelWay {
    /// The ports by which the way leaves its crossbars. Where crossbars go by the destination, only the own
    /// crossbar's port is known; where others lead it is a matter of their tables.
    pub hops: Vec<PortRef>,
    /// What crossbars on the way go by.
    pub course: KernelCourse,
    /// Whether users' packets may take it now.
    pub is_proved: bool,
    /// The longest packet that it carries, in bytes.
    pub mtu: u32,
    /// The port of this host that it leaves by.
    pub(crate) port: u8,
    /// Whether the first crossbar is in this machine.
    pub(crate) has_own_crossbar: bool,
    /// The way back, as the agents' frames go.
    pub(crate) back: Route,
    /// An IPv6 address of this host and one of the other; `None` if one of the two has none.
    pub(crate) ends: Option<(Ipv6Addr, Ipv6Addr)>,
}

impl KernelWay {
    /// An echo that the host at the way's end answers; `None` if there is none.
    pub fn to_host(&self) -> Option<EchoWay> {
        let segments = match self.course {
            KernelCourse::Destination => Vec::new(),
            KernelCourse::Segments(packing) => {
                let route: Vec<_> = self.there(self.hops.len()).chain([Element::DeliverV6]).collect();
                segments::segments(&route, packing)?
            }
        };
        Some(EchoWay::Kernels { port: self.port, segments, ends: self.ends?, hop_limit: None })
    }

    /// An echo that turns at one of the crossbars of [`Self::hops`], counted from 0, and comes home to this host's own
    /// kernel. `None` if that crossbar is in this machine, goes by the destination, or takes too many segments.
    pub fn to_crossbar(&self, at: usize) -> Option<EchoWay> {
        let KernelCourse::Segments(packing) = self.course else { return None };
        if at >= self.hops.len() || self.has_own_crossbar && at == 0 {
            return None;
        }
        let arrivals = self.arrivals()?;
        let home = arrivals.get(..=at)?.iter().rev().map(|&port| Element::Port(port));
        let route: Vec<_> = self.there(at).chain(home).chain([Element::DeliverV6]).collect();
        let (own, _) = self.ends?;
        let segments = segments::segments(&route, packing)?;
        Some(EchoWay::Kernels { port: self.port, segments, ends: (own, own), hop_limit: None })
    }

    /// An echo to the host at the way's end whose hop limit ends at a crossbar on it, counted from 0, as crossbars go by the
    /// destination. `None` if that crossbar is in this machine, or crossbars go by segments.
    pub fn to_crossbar_by_destination(&self, at: usize) -> Option<EchoWay> {
        if self.course != KernelCourse::Destination || self.has_own_crossbar && at == 0 {
            return None;
        }
        let forwarding = if self.has_own_crossbar { at } else { at + 1 };
        let hop_limit = Some(u8::try_from(forwarding).ok()?);
        Some(EchoWay::Kernels { port: self.port, segments: Vec::new(), ends: self.ends?, hop_limit })
    }

    /// The elements that lead out of the first `crossbars` crossbars.
    fn there(&self, crossbars: usize) -> impl Iterator<Item = Element> + '_ {
        let own = usize::from(self.has_own_crossbar);
        let rest = self.hops.iter().take(crossbars).skip(own);
        [Element::FirstPort(self.port)].into_iter().chain(rest.map(|hop| Element::Port(hop.port)))
    }

    /// The ports by which it enters the crossbars, which the way back leaves by.
    fn arrivals(&self) -> Option<Vec<u8>> {
        let turns: Vec<Turn> = self.back.elements().collect();
        if turns.len() != self.hops.len() {
            return None;
        }
        let arrival = |(hop, turn): (&PortRef, Turn)| match turn {
            Turn::Absolute(port) => Some(port),
            Turn::Relative(delta) => hop.port.checked_add_signed(delta),
            Turn::Identify => None,
        };
        self.hops.iter().zip(turns.into_iter().rev()).map(arrival).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mapper_fib::segments::elements;

    const ENDS: (Ipv6Addr, Ipv6Addr) =
        (Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2));

    /// Out of crossbar 0 by port 2, into 1 by 5, out of it by 3, into 2 by 40, and out of that by 7.
    fn way(has_own_crossbar: bool) -> KernelWay {
        let hops = [(0, 2), (1, 3), (2, 7)].map(|(xbar, port)| PortRef { xbar, port }).to_vec();
        // Home: from 7 to 40, from 3 to 5, and from 2 to the port of this host, which is 9.
        let back = [Turn::Absolute(40), Turn::Relative(2), Turn::Relative(7)].into_iter().collect();
        let course = KernelCourse::Segments(Packing::Compressed);
        let port = if has_own_crossbar { 2 } else { 0 };
        KernelWay { hops, course, is_proved: true, mtu: 1460, port, has_own_crossbar, back, ends: Some(ENDS) }
    }

    /// An echo by the destination out of this port.
    fn limited(port: u8, hop_limit: Option<u8>) -> EchoWay {
        EchoWay::Kernels { port, segments: Vec::new(), ends: ENDS, hop_limit }
    }

    fn route(echo: Option<EchoWay>) -> (Vec<Element>, Ipv6Addr) {
        let Some(EchoWay::Kernels { segments, ends, .. }) = echo else { panic!("{echo:?}") };
        (elements(&segments).unwrap(), ends.1)
    }

    #[test]
    fn an_echo_turns_at_each_crossbar_but_the_own_one() {
        use Element::{DeliverV6, FirstPort, Port};
        let way = way(true);
        assert_eq!(way.to_crossbar(0), None);
        assert_eq!(route(way.to_crossbar(1)), (vec![FirstPort(2), Port(5), Port(9), DeliverV6], ENDS.0));
        let (far, _) = route(way.to_crossbar(2));
        assert_eq!(far, [FirstPort(2), Port(3), Port(40), Port(5), Port(9), DeliverV6]);
        assert_eq!(route(way.to_host()), (vec![FirstPort(2), Port(3), Port(7), DeliverV6], ENDS.1));
        assert_eq!(way.to_crossbar(3), None);
    }

    #[test]
    fn of_an_agent_without_a_crossbar_the_first_one_can_be_asked_too() {
        use Element::{DeliverV6, FirstPort, Port};
        let way = way(false);
        assert_eq!(route(way.to_crossbar(0)).0, [FirstPort(0), Port(9), DeliverV6]);
        assert_eq!(route(way.to_crossbar(1)).0, [FirstPort(0), Port(2), Port(5), Port(9), DeliverV6]);
        assert_eq!(route(way.to_host()).0, [FirstPort(0), Port(2), Port(3), Port(7), DeliverV6]);
    }

    #[test]
    fn at_crossbars_that_go_by_the_destination_no_echo_turns_but_its_hop_limit_ends() {
        let way = KernelWay { course: KernelCourse::Destination, ..way(true) };
        assert_eq!(way.to_crossbar(1), None);
        assert_eq!(way.to_host(), Some(limited(2, None)));
        assert_eq!(way.to_crossbar_by_destination(0), None, "it is in this machine");
        assert_eq!(way.to_crossbar_by_destination(2), Some(limited(2, Some(2))));
        assert_eq!(way.to_crossbar_by_destination(256), None, "there is no such limit");
        let by_cable = KernelWay { has_own_crossbar: false, ..way };
        assert_eq!(by_cable.to_crossbar_by_destination(0), Some(limited(2, Some(1))));
        let by_segments = self::way(true);
        assert_eq!(by_segments.to_crossbar_by_destination(1), None);
    }
}
