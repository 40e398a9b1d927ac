//! What Linux does with a packet, as far as a set of objects says: for tests and the simulator, which have no
//! kernel.

use std::net::{IpAddr, Ipv6Addr};

use mapper_proto::Mac;

use crate::object::{GroupId, IpPrefix, Nexthop, Objects, Route, RouteKey, Rule, Strips, Table};
use crate::segments::{BLOCK_BITS, ELEMENT_BITS, Packing};

/// A packet of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// The segments in its outer header, the one in the destination address first; none if it has no outer header.
    pub segments: Vec<Ipv6Addr>,
    /// The destination address of the packet inside.
    pub inner: IpAddr,
    /// How often it may be forwarded still.
    pub hop_limit: u8,
}

/// A machine: what its kernel holds of ours, and its own addresses.
#[derive(Debug, Clone, Copy)]
pub struct Machine<'a> {
    /// What its kernel holds.
    pub objects: &'a Objects,
    /// Its addresses.
    pub addresses: &'a [IpAddr],
}

/// What becomes of a packet at one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// It leaves by this interface, to the neighbour with this link address.
    Leaves {
        /// The number of the interface.
        interface: u32,
        /// The link address of the neighbour.
        to: Mac,
        /// The packet as it leaves.
        packet: Packet,
    },
    /// The packet inside is delivered here.
    Delivered {
        /// The destination address of the packet inside.
        inner: IpAddr,
    },
    /// It is dropped, for this reason.
    Dropped(&'static str),
}

impl Packet {
    /// A packet to this address, without an outer header, or with these segments in one.
    pub const fn new(inner: IpAddr, segments: Vec<Ipv6Addr>) -> Self {
        Self { segments, inner, hop_limit: 64 }
    }

    /// The address that it is forwarded by now.
    fn destination(&self) -> IpAddr {
        self.segments.first().map_or(self.inner, |&segment| segment.into())
    }
}

impl Machine<'_> {
    /// What the machine does with a packet that came in by the interface of this name, or that is its own if there
    /// is no name. `flow` chooses among the nexthops of a group.
    pub fn step(&self, arrival: Option<&str>, mut packet: Packet, flow: usize) -> Step {
        // A packet meets as many elements here as are obeyed without leaving: never more than a few.
        for _ in 0..8 {
            let destination = packet.destination();
            if self.addresses.contains(&destination) {
                return deliver(&packet);
            }
            let Some(route) = self.route(arrival, destination) else { return Step::Dropped("no route") };
            match *route {
                Route::Gateway { interface, gateway } => {
                    return self.leave(interface, gateway.into(), packet);
                }
                Route::Link { .. } => return Step::Dropped("it is not for a kernel to carry"),
                Route::Group { group, .. } => match self.member(group, flow) {
                    Some(Nexthop::Gateway { interface, gateway }) => {
                        return self.leave(*interface, *gateway, packet);
                    }
                    Some(Nexthop::Segments { segments, .. }) if packet.segments.is_empty() => {
                        packet.segments.clone_from(segments);
                    }
                    Some(Nexthop::Segments { .. }) => return Step::Dropped("an outer header inside another"),
                    None => return Step::Dropped("a group without members"),
                },
                Route::DeliverV4 { .. } if packet.inner.is_ipv4() => return self.unpack(&packet),
                Route::DeliverV6 { .. } if packet.inner.is_ipv6() => return self.unpack(&packet),
                Route::DeliverV4 { .. } | Route::DeliverV6 { .. } => {
                    return Step::Dropped("another version of IP inside");
                }
                Route::Strip { packing, .. } => {
                    let strips = match packing {
                        Packing::Compressed => Strips::Element,
                        Packing::Full => Strips::Segment,
                    };
                    if !strip(&mut packet, strips) {
                        return Step::Dropped("no further segment");
                    }
                }
                Route::StripAndLeave { towards, strips, .. } => {
                    if !strip(&mut packet, strips) {
                        return Step::Dropped("no further segment");
                    }
                    return match self.look_up(Table::Segments, towards.into()) {
                        Some(&Route::Gateway { interface, gateway }) => {
                            self.leave(interface, gateway.into(), packet)
                        }
                        _ => Step::Dropped("no route to the next hop"),
                    };
                }
            }
        }
        Step::Dropped("elements without end")
    }

    /// The route for an address: segments are obeyed where the rule of the interface says so.
    fn route(&self, arrival: Option<&str>, destination: IpAddr) -> Option<&Route> {
        let fits = |interface: &str, to: &IpPrefix| Some(interface) == arrival && to.contains(destination);
        let (mut obeys, mut drops, mut passes) = (false, false, false);
        for rule in &self.objects.rules {
            match rule {
                Rule::Passing { interface } => {
                    passes |= Some(interface.as_str()) == arrival && destination.is_ipv6();
                }
                Rule::Segments { interface, to } => obeys |= fits(interface, to),
                Rule::Unknown { interface, to } => drops |= fits(interface, to),
                Rule::TooLong => {}
            }
        }
        let in_segments = if obeys { self.look_up(Table::Segments, destination) } else { None };
        let in_passing = || if passes { self.look_up(Table::Passing, destination) } else { None };
        let in_main = || if drops { None } else { self.look_up(Table::Main, destination) };
        in_segments.or_else(in_passing).or_else(in_main)
    }

    /// The route with the longest prefix for an address.
    fn look_up(&self, table: Table, to: IpAddr) -> Option<&Route> {
        let fits = |(key, _): &(&RouteKey, &Route)| key.table == table && key.to.contains(to);
        self.objects.routes.iter().filter(fits).max_by_key(|(key, _)| key.to.bits).map(|(_, route)| route)
    }

    fn member(&self, group: GroupId, flow: usize) -> Option<&Nexthop> {
        let members = self.objects.groups.get(&group)?;
        self.objects.nexthops.get(members.get(flow % members.len().max(1))?)
    }

    fn leave(&self, interface: u32, gateway: IpAddr, mut packet: Packet) -> Step {
        if gateway.is_ipv4() && packet.destination().is_ipv6() {
            return Step::Dropped("a neighbour of the other version of IP");
        }
        let Some(&to) = self.objects.neighbours.get(&(interface, gateway)) else {
            return Step::Dropped("the neighbour is not known");
        };
        packet.hop_limit = packet.hop_limit.saturating_sub(1);
        if packet.hop_limit == 0 {
            return Step::Dropped("it went too far");
        }
        Step::Leaves { interface, to, packet }
    }

    /// Takes the outer header off.
    fn unpack(&self, packet: &Packet) -> Step {
        match packet.segments.len() {
            0 | 1 => deliver(packet),
            _ => Step::Dropped("segments left"),
        }
    }
}

/// Takes the first element off, or two. False if there is no further one.
fn strip(packet: &mut Packet, strips: Strips) -> bool {
    let elements = match strips {
        Strips::Segment => None,
        Strips::Element => Some(1),
        Strips::TwoElements => Some(2),
    };
    let Some(first) = packet.segments.first_mut() else { return false };
    let low = 128 - u32::from(BLOCK_BITS);
    let block = first.to_bits() >> low << low;
    let behind = |count: u32| {
        first.to_bits() << (u32::from(BLOCK_BITS) + count * u32::from(ELEMENT_BITS)) >> u32::from(BLOCK_BITS)
    };
    if let Some(rest) = elements.map(behind).filter(|&rest| rest != 0) {
        *first = Ipv6Addr::from_bits(block | rest);
        return true;
    }
    packet.segments.remove(0);
    !packet.segments.is_empty()
}

const fn deliver(packet: &Packet) -> Step {
    Step::Delivered { inner: packet.inner }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crossbar::{CabledPort, Delivery, Role, by_segments, neighbours};
    use crate::object::NexthopId;
    use crate::segments::{Element, segments, towards_port};

    /// Two ports of a machine; what leaves by port n goes to the address n.
    fn ports() -> [CabledPort; 2] {
        [1, 2].map(|port: u8| CabledPort {
            port,
            interface: 10 + u32::from(port),
            name: format!("e{port}"),
            neighbour: Mac::from_position(port.into()),
            neighbour_port: port,
            sends_segments: true,
        })
    }

    /// A machine with these ports that obeys segments.
    fn machine(packing: Packing) -> Objects {
        let delivery = Delivery { v4: Some([10, 1, 0, 1].into()), v6: true, agent_port: Some(3) };
        by_segments(&ports(), Role::Crossbar, delivery, packing)
    }

    fn packet(route: &[Element], packing: Packing) -> Packet {
        let inner = match route.last() {
            Some(Element::DeliverV4) => IpAddr::from([10, 1, 0, 3]),
            _ => IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 3]),
        };
        Packet::new(inner, segments(route, packing).unwrap())
    }

    fn step(objects: &Objects, arrival: Option<&str>, packet: Packet) -> Step {
        Machine { objects, addresses: &[] }.step(arrival, packet, 0)
    }

    #[test]
    fn a_route_is_obeyed_element_by_element_however_it_is_packed() {
        // The neighbours' ports are 1 and 2, so of the first elements some are known here, and some are not.
        for (packing, sender) in
            [Packing::Compressed, Packing::Full].into_iter().flat_map(|packing| [(packing, 2), (packing, 7)])
        {
            for last in [Element::DeliverV4, Element::DeliverV6] {
                let route = [Element::FirstPort(sender), Element::Port(1), Element::Port(3), last];
                let objects = machine(packing);
                let packet = packet(&route, packing);
                if sender == 2 {
                    let left = step(&objects, None, packet.clone());
                    assert!(matches!(left, Step::Leaves { interface: 12, .. }), "{left:?}");
                }
                let Step::Leaves { interface: 11, to, packet } = step(&objects, Some("e1"), packet) else {
                    panic!("it leaves the first crossbar by port 1")
                };
                assert_eq!(to, Mac::from_position(1));
                let inner = packet.inner;
                assert_eq!(step(&objects, Some("e2"), packet), Step::Delivered { inner });
            }
        }
    }

    #[test]
    fn elements_that_are_obeyed_at_one_machine_are_looked_up_at_once() {
        let objects = machine(Packing::Compressed);
        let looked_up = |elements: &[Element]| {
            let [address] = segments(elements, Packing::Compressed).unwrap()[..] else {
                panic!("one address")
            };
            Machine { objects: &objects, addresses: &[] }.look_up(Table::Segments, address.into()).cloned()
        };
        let (first, out, home) = (Element::FirstPort(2), Element::Port(1), Element::Port(3));
        let deliver = Element::DeliverV4;
        let leaves = looked_up(&[first, out, home, deliver]);
        assert!(
            matches!(leaves, Some(Route::StripAndLeave { interface: 11, strips: Strips::TwoElements, .. })),
            "{leaves:?}"
        );
        for at_home in [&[home, deliver][..], &[first, home, deliver], &[deliver]] {
            assert!(matches!(looked_up(at_home), Some(Route::DeliverV4 { .. })), "{at_home:?}");
        }
    }

    #[test]
    fn a_neighbour_of_ipv4_takes_packets_of_ipv4_alone() {
        let mut objects = neighbours(&ports());
        let gateway = crate::segments::NEIGHBOUR_V4.into();
        objects.nexthops.insert(NexthopId(1), Nexthop::Gateway { interface: 11, gateway });
        objects.groups.insert(GroupId(1), vec![NexthopId(1)]);
        let hosts: [IpAddr; 2] = [[10, 1, 0, 3].into(), [0xfd00, 0, 0, 0, 0, 0, 0, 3].into()];
        for to in hosts {
            let key = RouteKey { table: Table::Main, to: IpPrefix::host(to) };
            objects.routes.insert(key, Route::Group { group: GroupId(1), source: None, mtu: 1500 });
        }
        let [v4, v6] = hosts.map(|to| step(&objects, None, Packet::new(to, Vec::new())));
        assert!(
            matches!(v4, Step::Leaves { interface: 11, to, .. } if to == Mac::from_position(1)),
            "{v4:?}"
        );
        assert!(matches!(v6, Step::Dropped(_)), "{v6:?}");
    }

    #[test]
    fn what_a_crossbar_does_not_know_goes_by_no_other_route_of_it() {
        // Among the routes of this machine's own packets is one for it, too. That leads back to the neighbour that sent it, whose
        // kernel would deliver it there.
        let mut objects = machine(Packing::Compressed);
        objects.routes.retain(|key, _| key.table != Table::Segments);
        let route = [Element::FirstPort(1), Element::Port(3), Element::DeliverV4];
        let packet = packet(&route, Packing::Compressed);
        assert_eq!(step(&objects, Some("e1"), packet.clone()), Step::Dropped("no route"));
        let sent = step(&objects, None, packet);
        assert!(matches!(sent, Step::Leaves { interface: 11, .. }), "the machine itself sends: {sent:?}");
    }

    #[test]
    fn segments_are_obeyed_from_ports_of_the_fabric_alone() {
        let route = [Element::Port(1), Element::Port(3), Element::DeliverV4];
        let packet = packet(&route, Packing::Compressed);
        for other in [None, Some("lo"), Some("e3")] {
            assert_eq!(step(&machine(Packing::Compressed), other, packet.clone()), Step::Dropped("no route"));
        }
    }

    #[test]
    fn a_kernel_that_obeys_no_segments_forwards_none_and_its_own_machine_can_say_by_which_port_a_packet_leaves()
     {
        let objects = neighbours(&ports());
        let route = [Element::FirstPort(2), Element::Port(1), Element::Port(3), Element::DeliverV4];
        for (packing, arrival) in [Packing::Compressed, Packing::Full]
            .into_iter()
            .flat_map(|packing| [(packing, "e1"), (packing, "e2")])
        {
            assert_eq!(step(&objects, Some(arrival), packet(&route, packing)), Step::Dropped("no route"));
        }
        let machine = Machine { objects: &objects, addresses: &[] };
        let towards = machine.look_up(Table::Main, towards_port(2).into());
        assert!(matches!(towards, Some(Route::Gateway { interface: 12, .. })), "{towards:?}");
    }

    #[test]
    fn a_kernel_that_knows_no_compressed_elements_drops_them() {
        let route = [Element::Port(1), Element::Port(3), Element::DeliverV4];
        let compressed = packet(&route, Packing::Compressed);
        assert_eq!(
            step(&machine(Packing::Full), Some("e1"), compressed),
            Step::Dropped("no further segment")
        );
    }
}
