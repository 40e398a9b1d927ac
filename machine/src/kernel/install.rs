//! Installs changes.

use std::io;
use std::time::Duration;

use mapper_fib::object::TOO_LONG;
use mapper_fib::{Change, Rule};
use rustix::thread::CapabilitySet;

use super::{
    Kernel, KernelError, RTM_DELNEIGH, RTM_DELNEXTHOP, RTM_DELROUTE, RTM_DELRULE, RTM_NEWNEIGH,
    RTM_NEWNEXTHOP, RTM_NEWROUTE, RTM_NEWRULE, mark, neighbour, nexthop, route, rule,
};
use crate::netlink::message::{Header, add_flags, write};
use crate::netlink::socket::{NLM_F_ACK, NLM_F_REQUEST, Refused};

const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_EXCL: u16 = 0x200;
const NLM_F_CREATE: u16 = 0x400;

/// How many changes are sent at once. If the kernel refuses all of them, its answers still fit the buffer of a
/// socket, which holds some 200 kB, an answer taking up to 1.3.
const MOST_AT_ONCE: usize = 128;
/// How many bytes are sent at once, which the buffer of a socket holds several times.
const MOST_BYTES: usize = 32 * 1024;

/// How often what the kernel had no memory for is tried again, and how long it gets each time. It keeps some
/// memory ready for what segments need on each processor, and gets more only after it was asked for too much: a few
/// pages at a time.
const MEMORY_TRIES: usize = 500;
const MEMORY_WAIT: Duration = Duration::from_millis(1);

impl Kernel {
    /// Carries changes out, in their order, and returns those that the kernel refused, by their place. The others
    /// hold. To remove what is not there is no error.
    pub fn apply(&mut self, changes: &[Change]) -> Vec<(usize, KernelError)> {
        let mut failed = Vec::new();
        let (marks, places): (Vec<_>, Vec<_>) =
            (0..changes.len()).partition(|&at| mark_of(&changes[at]).is_some());
        let mut rest = &places[..];
        while !rest.is_empty() {
            match self.send_some(changes, rest).and_then(|(sent, refused)| {
                let refused = self.again_for_memory(changes, refused)?;
                Ok((sent, refused))
            }) {
                Ok((sent, refused)) => {
                    rest = &rest[sent..];
                    let error =
                        |(at, refused)| Some((at, error(&changes[at], refused, may_change_network())?));
                    failed.extend(refused.into_iter().filter_map(error));
                }
                Err(source) => {
                    failed.extend(rest.iter().map(|&at| (at, no_answer(&changes[at], &source))));
                    break;
                }
            }
        }
        failed.extend(marks.into_iter().filter_map(|at| Some((at, self.mark(&changes[at])?))));
        failed
    }

    /// Carries out a change of what is marked. Returns why not, if the kernel does not.
    fn mark(&mut self, change: &Change) -> Option<KernelError> {
        match self.marking.set(mark_of(change)?) {
            Ok(refused) => error(change, refused?, may_change_network()),
            Err(source) if source.raw_os_error() == Some(libc::EPROTONOSUPPORT) => {
                Some(KernelError::Refused { what: object_name(change), said: None, source })
            }
            Err(source) => Some(no_answer(change, &source)),
        }
    }

    /// Tries those changes again that the kernel had no memory for, and with them those that it refused because
    /// they name these. Returns what stays refused.
    fn again_for_memory(&mut self, changes: &[Change], mut refused: Refusals) -> io::Result<Refusals> {
        for _ in 0..MEMORY_TRIES {
            if !refused.iter().any(|(_, refused)| refused.errno == libc::ENOMEM) {
                break;
            }
            std::thread::sleep(MEMORY_WAIT);
            let places: Vec<_> = refused.iter().map(|(at, _)| *at).collect();
            // The refused changes were sent together before, so they are sent together now.
            refused = self.send_some(changes, &places)?.1;
        }
        Ok(refused)
    }

    /// Sends the first of the changes at these places, as many as go at once. Returns how many these were, and
    /// which of them the kernel refused.
    fn send_some(&mut self, changes: &[Change], places: &[usize]) -> io::Result<(usize, Refusals)> {
        let mut bytes = Vec::with_capacity(MOST_BYTES);
        let first = self.socket.next_sequence();
        let (mut sequence, mut sent) = (first, 0);
        let mut start_of_last = 0;
        for &at in places.iter().take(MOST_AT_ONCE) {
            if sent > 0 {
                if bytes.len() >= MOST_BYTES {
                    break;
                }
                sequence = self.socket.next_sequence();
            }
            start_of_last = bytes.len();
            encode(&mut bytes, &changes[at], sequence);
            sent += 1;
        }
        add_flags(&mut bytes[start_of_last..], NLM_F_ACK);
        let refused = self.socket.exchange(&bytes, sequence)?;
        let place = |refused: Refused| {
            let at = places.get(refused.sequence.wrapping_sub(first) as usize)?;
            Some((*at, refused))
        };
        Ok((sent, refused.into_iter().filter_map(place).collect()))
    }
}

/// What a change says of marks, if it is about them: above which length packets get one.
const fn mark_of(change: &Change) -> Option<Option<u32>> {
    match change {
        Change::PutMark(above) => Some(Some(*above)),
        Change::RemoveMark => Some(None),
        _ => None,
    }
}

/// Changes by their places, and what the kernel said of them.
type Refusals = Vec<(usize, Refused)>;

/// The error of a change that may or may not have been carried out, as the kernel gave no answer.
fn no_answer(change: &Change, source: &io::Error) -> KernelError {
    let source = source.raw_os_error().map_or_else(|| source.kind().into(), io::Error::from_raw_os_error);
    KernelError::NoAnswer { doing: format!("changing {}", object_name(change)), source }
}

/// What the kernel's refusal means; `None` if all is as it was to be. `may_change` says whether this process may change
/// the network's settings.
fn error(change: &Change, refused: Refused, may_change: bool) -> Option<KernelError> {
    let is_there = refused.errno == libc::EEXIST && matches!(change, Change::PutRule(_));
    // The kernel says ESRCH of routes, ENOENT of all else, and ENODEV where the interface is gone with all that
    // was on it.
    let is_gone = change.removes() && [libc::ENOENT, libc::ESRCH, libc::ENODEV].contains(&refused.errno);
    if is_there || is_gone {
        return None;
    }
    let what = object_name(change);
    let is_mark = mark_of(change).is_some();
    Some(match refused.errno {
        // The table that marks packets has an owner. Whoever may change the network's settings is refused only for that.
        libc::EPERM if is_mark && may_change => KernelError::Owned { what },
        libc::EPERM => KernelError::NotPermitted { what },
        errno => {
            let source = io::Error::from_raw_os_error(errno);
            KernelError::Refused { what, said: refused.said, source }
        }
    })
}

/// Whether this process may change the network's settings. If that is not known, it may not.
fn may_change_network() -> bool {
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::NET_ADMIN))
}

/// What people call the object that a change is about; by what iproute2 takes, where it has numbers.
pub fn object_name(change: &Change) -> String {
    match change {
        Change::PutNeighbour { interface, ip, .. } | Change::RemoveNeighbour { interface, ip } => {
            format!("neighbour {ip} on interface number {interface}")
        }
        Change::PutNexthop(id, _) | Change::RemoveNexthop(id) => format!("nexthop id {}", id.number()),
        Change::PutGroup(id, _) | Change::RemoveGroup(id) => format!("group of nexthops id {}", id.number()),
        Change::PutRule(rule) | Change::RemoveRule(rule) => {
            let then = rule::table(rule)
                .map_or("blackhole".to_owned(), |table| format!("lookup {}", table.number()));
            match rule {
                Rule::Segments { interface, to } | Rule::Unknown { interface, to } => {
                    format!("rule `iif {interface} to {to} {then}`")
                }
                Rule::Passing { interface } => format!("rule `iif {interface} {then}`"),
                Rule::TooLong => format!("rule `fwmark {TOO_LONG:#x} {then}`"),
            }
        }
        Change::PutMark(_) | Change::RemoveMark => format!("table `inet {}` of nftables", mark::TABLE),
        Change::PutRoute(key, _) | Change::RemoveRoute(key) => {
            format!("route {} in table {}", key.to, key.table.number())
        }
    }
}

/// Appends the message that carries a change out.
fn encode(bytes: &mut Vec<u8>, change: &Change, sequence: u32) {
    let header = |kind, flags| Header { kind, flags: NLM_F_REQUEST | flags, sequence, port: 0 };
    let put = |kind| header(kind, NLM_F_CREATE | NLM_F_REPLACE);
    let remove = |kind| header(kind, 0);
    match change {
        Change::PutNeighbour { interface, ip, mac } => {
            let fixed = neighbour::fixed(*interface, *ip);
            write(bytes, put(RTM_NEWNEIGH), &fixed, |inside| neighbour::put(inside, *ip, *mac));
        }
        Change::RemoveNeighbour { interface, ip } => {
            let fixed = neighbour::fixed(*interface, *ip);
            write(bytes, remove(RTM_DELNEIGH), &fixed, |inside| neighbour::put_key(inside, *ip));
        }
        Change::PutNexthop(id, nexthop) => {
            let fixed = nexthop::fixed_of_single(nexthop);
            write(bytes, put(RTM_NEWNEXTHOP), &fixed, |inside| nexthop::put(inside, *id, nexthop));
        }
        Change::PutGroup(id, members) => {
            let fixed = nexthop::fixed_of_group();
            write(bytes, put(RTM_NEWNEXTHOP), &fixed, |inside| nexthop::put_group(inside, *id, members));
        }
        Change::RemoveNexthop(id) => remove_nexthop(bytes, remove(RTM_DELNEXTHOP), id.number()),
        Change::RemoveGroup(id) => remove_nexthop(bytes, remove(RTM_DELNEXTHOP), id.number()),
        // Another socket carries these out.
        Change::PutMark(_) | Change::RemoveMark => {}
        // Rules are not replaced: without the flag that forbids a second one, the kernel takes the same rule twice.
        Change::PutRule(rule) => {
            let header = header(RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL);
            write(bytes, header, &rule::fixed(rule), |inside| rule::put(inside, rule));
        }
        Change::RemoveRule(rule) => {
            write(bytes, remove(RTM_DELRULE), &rule::fixed(rule), |inside| rule::put(inside, rule));
        }
        Change::PutRoute(key, route) => {
            write(bytes, put(RTM_NEWROUTE), &route::fixed(*key), |inside| route::put(inside, *key, route));
        }
        Change::RemoveRoute(key) => {
            let fixed = route::fixed_to_remove(*key);
            write(bytes, remove(RTM_DELROUTE), &fixed, |inside| route::put_key(inside, *key));
        }
    }
}

fn remove_nexthop(bytes: &mut Vec<u8>, header: Header, number: u32) {
    write(bytes, header, &nexthop::fixed_of_none(), |inside| nexthop::put_number(inside, number));
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv6Addr};

    use mapper_fib::segments::Packing;
    use mapper_fib::{GroupId, IpPrefix, Nexthop, NexthopId, Objects, Route, RouteKey, Strips, Table};
    use mapper_proto::Mac;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::netlink::message::{HEADER_BYTES, messages};

    fn ipv6() -> impl Strategy<Value = Ipv6Addr> {
        any::<u128>().prop_map(Ipv6Addr::from_bits)
    }

    fn ip() -> impl Strategy<Value = IpAddr> {
        prop_oneof![any::<u32>().prop_map(|bits| IpAddr::V4(bits.into())), ipv6().prop_map(IpAddr::V6)]
    }

    fn key() -> impl Strategy<Value = RouteKey> {
        let to = prop_oneof![
            any::<u32>().prop_map(|bits| IpPrefix::host(IpAddr::V4(bits.into()))),
            (ipv6(), 1..=128u8).prop_map(|(ip, bits)| IpPrefix::v6(ip, bits)),
        ];
        let tables = [Table::Main, Table::Segments, Table::TooLong, Table::Passing];
        (select(tables.to_vec()), to).prop_map(|(table, to)| RouteKey { table, to })
    }

    fn route() -> impl Strategy<Value = Route> {
        let interface = 1..1000u32;
        prop_oneof![
            (interface.clone(), ipv6())
                .prop_map(|(interface, gateway)| Route::Gateway { interface, gateway }),
            (interface.clone(), 0..10_000u32).prop_map(|(interface, mtu)| Route::Link {
                interface,
                source: None,
                mtu
            }),
            (0..GroupId::BIT, ipv6(), any::<bool>(), 0..10_000u32).prop_map(|(group, ip, has, mtu)| {
                Route::Group { group: GroupId(group), source: has.then_some(ip.into()), mtu }
            }),
            (interface.clone(), any::<bool>()).prop_map(|(interface, compressed)| Route::Strip {
                interface,
                packing: Packing::closest(compressed)
            }),
            (interface.clone(), ipv6(), strips()).prop_map(|(interface, towards, strips)| {
                Route::StripAndLeave { interface, towards, strips }
            }),
            (interface.clone(), any::<u32>())
                .prop_map(|(interface, to)| Route::DeliverV4 { interface, to: to.into() }),
            interface.prop_map(|interface| Route::DeliverV6 { interface }),
        ]
    }

    fn strips() -> impl Strategy<Value = Strips> {
        prop_oneof![Just(Strips::Segment), Just(Strips::Element), Just(Strips::TwoElements)]
    }

    fn nexthop() -> impl Strategy<Value = Nexthop> {
        prop_oneof![
            (1..1000u32, ip()).prop_map(|(interface, gateway)| Nexthop::Gateway { interface, gateway }),
            (1..1000u32, vec(ipv6(), 1..=16))
                .prop_map(|(interface, segments)| Nexthop::Segments { interface, segments }),
        ]
    }

    fn put() -> impl Strategy<Value = Change> {
        let id = || (0..GroupId::BIT).prop_map(NexthopId);
        prop_oneof![
            (1..1000u32, ip(), any::<[u8; 6]>()).prop_map(|(interface, ip, mac)| Change::PutNeighbour {
                interface,
                ip,
                mac: Mac(mac)
            }),
            (id(), nexthop()).prop_map(|(id, nexthop)| Change::PutNexthop(id, nexthop)),
            (0..GroupId::BIT, vec(id(), 1..20))
                .prop_map(|(id, members)| Change::PutGroup(GroupId(id), members)),
            ("[a-z][a-z0-9]{0,14}", ipv6(), 1..=128u8, any::<bool>()).prop_map(
                |(interface, ip, bits, drops)| {
                    let to = IpPrefix::v6(ip, bits);
                    Change::PutRule(if drops {
                        Rule::Unknown { interface, to }
                    } else {
                        Rule::Segments { interface, to }
                    })
                }
            ),
            Just(Change::PutRule(Rule::TooLong)),
            "[a-z][a-z0-9]{0,14}".prop_map(|interface| Change::PutRule(Rule::Passing { interface })),
            (key(), route()).prop_map(|(key, route)| Change::PutRoute(key, route)),
        ]
    }

    /// What a message of the kernel's, which has the same layout, would be read as.
    fn read(bytes: &[u8]) -> Objects {
        let mut objects = Objects::default();
        let message = messages(bytes).next().unwrap();
        let change = match message.header.kind {
            RTM_NEWNEIGH => neighbour::read(message.body).map(|told| Change::PutNeighbour {
                interface: told.interface,
                ip: told.ip,
                mac: told.mac,
            }),
            RTM_NEWNEXTHOP => nexthop::read(message.body).map(|told| match told {
                nexthop::Told::Single(id, nexthop) => Change::PutNexthop(id, nexthop),
                nexthop::Told::Group(id, members) => Change::PutGroup(id, members),
            }),
            RTM_NEWRULE => rule::read(message.body).map(Change::PutRule),
            _ => route::read(message.body).map(|told| Change::PutRoute(told.key, told.route)),
        };
        objects.apply(&change.unwrap());
        objects
    }

    fn encoded(change: &Change) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(&mut bytes, change, 7);
        bytes
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_the_same(change in put()) {
            let mut wanted = Objects::default();
            wanted.apply(&change);
            prop_assert_eq!(read(&encoded(&change)), wanted);
        }

        #[test]
        fn garbled_messages_are_read_as_something_or_nothing(
            change in put(),
            garble in vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = encoded(&change);
            let body = &mut bytes[HEADER_BYTES..];
            for (at, byte) in garble {
                *at.get_mut(body) = byte;
            }
            let body = &body[..cut.index(body.len())];
            let _ = neighbour::read(body);
            let _ = nexthop::read(body);
            let _ = rule::read(body);
            let _ = route::read(body);
        }
    }

    #[test]
    fn a_nexthop_of_two_segments_is_laid_out_as_the_kernel_takes_it() {
        let segments = ["fcbb:bb00:1::", "fcbb:bb00:2::"].map(|segment| segment.parse().unwrap()).to_vec();
        let bytes = encoded(&Change::PutNexthop(NexthopId(5), Nexthop::Segments { interface: 3, segments }));
        let mut expected = Vec::new();
        // Length, type 104, request | replace | create, sequence, port.
        expected.extend([100, 0, 0, 0, 104, 0, 1, 5, 7, 0, 0, 0, 0, 0, 0, 0]);
        // IPv6, scope, protocol, reserved, flags.
        expected.extend([10, 0, 109, 0, 0, 0, 0, 0]);
        // Number, interface, kind of tunnel.
        expected.extend([8, 0, 1, 0, 5, 0, 0, 0x6d, 8, 0, 5, 0, 3, 0, 0, 0, 6, 0, 7, 0, 5, 0, 0, 0]);
        // The tunnel, its mode 3, and the routing header with the last segment first.
        expected.extend([52, 0, 8, 0x80, 48, 0, 1, 0, 3, 0, 0, 0, 0, 4, 4, 1, 1, 0, 0, 0]);
        expected.extend([0xfc, 0xbb, 0xbb, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        expected.extend([0xfc, 0xbb, 0xbb, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes.len() as u32, u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        assert_eq!(bytes, expected);
    }

    #[test]
    fn a_port_of_a_crossbar_is_laid_out_as_the_kernel_takes_it() {
        let to = IpPrefix::v6("fcbb:bb00:1::".parse().unwrap(), 48);
        let towards = "fcbb:bb00:f201::".parse().unwrap();
        let route = Route::StripAndLeave { interface: 3, towards, strips: Strips::Element };
        let bytes = encoded(&Change::PutRoute(RouteKey { table: Table::Segments, to }, route));
        // Family, bits, source bits, tos, table (said below), protocol, scope, type, flags.
        assert_eq!(bytes[HEADER_BYTES..][..12], [10, 48, 0, 0, 0, 109, 0, 1, 0, 0, 0, 0]);
        // End.X, the address that it leads to, and the flavor with 32 bits of block and 16 an element.
        let mut tunnel = vec![8, 0, 1, 0, 2, 0, 0, 0, 20, 0, 5, 0, 0xfc, 0xbb, 0xbb, 0, 0xf2, 1];
        tunnel.extend([0; 10]);
        tunnel.extend([
            28, 0, 11, 0x80, 8, 0, 1, 0, 16, 0, 0, 0, 5, 0, 2, 0, 32, 0, 0, 0, 5, 0, 3, 0, 16, 0, 0, 0,
        ]);
        assert!(bytes.ends_with(&tunnel), "{bytes:?}");
    }

    #[test]
    fn what_is_refused_is_named_as_iproute2_names_it() {
        let refused =
            |errno| Refused { sequence: 1, errno, said: Some("Nexthop id does not exist".to_owned()) };
        let key = RouteKey { table: Table::Main, to: IpPrefix::host([10, 1, 0, 3].into()) };
        let put = Change::PutRoute(key, Route::Group { group: GroupId(1), source: None, mtu: 0 });
        let text = error(&put, refused(libc::EINVAL), true).unwrap().to_string();
        assert_eq!(text, "the kernel refused route 10.1.0.3/32 in table 254: Nexthop id does not exist");
        let text = error(&put, refused(libc::EPERM), true).unwrap().to_string();
        assert!(text.contains("CAP_NET_ADMIN"), "{text}");
        let mark = Change::PutMark(1460);
        let text = error(&mark, refused(libc::EPERM), true).unwrap().to_string();
        assert!(
            text.contains("belongs to another agent or node") && !text.contains("CAP_NET_ADMIN"),
            "{text}"
        );
        let text = error(&mark, refused(libc::EPERM), false).unwrap().to_string();
        assert!(text.contains("CAP_NET_ADMIN"), "{text}");
        assert!(error(&put, refused(libc::ESRCH), true).is_some());
        assert!(error(&Change::RemoveRoute(key), refused(libc::ESRCH), true).is_none());
    }
}
