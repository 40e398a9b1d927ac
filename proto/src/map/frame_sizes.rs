//! How long frames may be: which hosts and cables carry shorter ones than some host sends.

use std::collections::BTreeMap;

use super::{Map, PortRef};
use crate::wire::cursor::{Unreadable, WireReader, Write};
use crate::{Mac, PortSet};

/// How long the frames may be that a host sends and takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct LinkMtu {
    /// The least MTU of the interfaces that lead to the fabric, in bytes; 0 for a host that carries no
    /// users' frames.
    pub bytes: u16,
    /// The ports of a node's crossbar that have no more than that, of those that messages can name: ports from 1 to
    /// [`LinkMtu::LAST_PORT`]. None for an agent on an interface.
    pub ports: PortSet,
}

impl LinkMtu {
    /// The last port that messages can name as one that carries the least. Hosts compare what they have with what maps say, so
    /// later ports are named nowhere.
    pub const LAST_PORT: u8 = 32;

    /// The least of these ports' MTUs, each with its port's number, and which ports have it. An MTU that no
    /// message can say counts as the most that it can.
    pub fn of_ports(ports: impl IntoIterator<Item = (u8, u32)>) -> Self {
        let mut least = Self::default();
        for (port, mtu) in ports {
            let bytes = u16::try_from(mtu).unwrap_or(u16::MAX);
            if least.bytes == 0 || bytes < least.bytes {
                least = Self { bytes, ports: PortSet::NONE };
            }
            if bytes == least.bytes && (1..=Self::LAST_PORT).contains(&port) {
                least.ports.insert(port);
            }
        }
        least
    }

    /// Writes it as it travels: the bytes, and bit n - 1 for port n.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        let named = (1..=Self::LAST_PORT).filter(|&port| self.ports.contains(port));
        out.put_u16(self.bytes);
        out.put_u32(named.fold(0, |bits, port| bits | 1 << (port - 1)));
    }

    /// Reads what [`Self::write`] wrote.
    pub(crate) fn read(reader: &mut WireReader<'_>) -> Result<Self, Unreadable> {
        let (bytes, bits) = (reader.u16()?, reader.u32()?);
        Ok(Self { bytes, ports: (1..=Self::LAST_PORT).filter(|port| bits >> (port - 1) & 1 == 1).collect() })
    }
}

/// How long frames may be, and which hosts' interfaces carry shorter ones than others send.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FrameSizes {
    /// The greatest of all hosts' least MTUs, so how long frames in the fabric can be, in bytes; 0 if no
    /// host carries users' frames.
    pub longest: u16,
    /// The hosts with less, by rising address.
    pub less: Vec<(Mac, LinkMtu)>,
}

/// An end of a cable whose interface carries shorter frames than some host sends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NarrowEnd {
    /// The host that says so: that of the interface, or the node whose port it is.
    pub host: Mac,
    /// The port of the node's crossbar; `None` for an agent's own interface.
    pub port: Option<u8>,
    /// What it carries, in bytes.
    pub mtu: u16,
    /// Where the cable is in the map; `None` for that between two hosts without any xbar.
    pub at: Option<PortRef>,
}

impl FrameSizes {
    /// The frame sizes of these hosts. Those that carry no users' frames are left out.
    pub fn of(hosts: impl IntoIterator<Item = (Mac, LinkMtu)>) -> Self {
        let mut less: Vec<_> = hosts.into_iter().filter(|(_, mtu)| mtu.bytes > 0).collect();
        let longest = less.iter().map(|(_, mtu)| mtu.bytes).max().unwrap_or_default();
        less.retain(|(_, mtu)| mtu.bytes < longest);
        less.sort_unstable_by_key(|&(mac, _)| mac);
        Self { longest, less }
    }

    /// Whether this host is shown with this MTU. One that carries no users' frames is not shown at all.
    pub fn shows(&self, host: Mac, mtu: LinkMtu) -> bool {
        let found = self.less.binary_search_by_key(&host, |&(mac, _)| mac);
        found.map_or(mtu.bytes == 0 || mtu.bytes == self.longest, |found| self.less[found].1 == mtu)
    }
}

impl Map {
    /// The ends of cables of this map whose interfaces carry shorter frames than some host sends. A node's
    /// port without a cable is none.
    pub fn narrow_ends(&self) -> Vec<NarrowEnd> {
        if self.frame_sizes.less.is_empty() {
            return Vec::new();
        }
        let far = self.cables.iter().flat_map(|cable| [(cable.a, cable.b), (cable.b, cable.a)]);
        let hosts = self.hosts.iter().filter_map(|host| Some((host.at?, host.at?)));
        let cabled: BTreeMap<PortRef, PortRef> = far.chain(hosts).collect();
        let mut ends = Vec::new();
        for host in &self.hosts {
            let less = &self.frame_sizes.less;
            let Ok(found) = less.binary_search_by_key(&host.mac, |&(mac, _)| mac) else { continue };
            let LinkMtu { bytes: mtu, ports } = less[found].1;
            let end = NarrowEnd { host: host.mac, port: None, mtu, at: host.at };
            if ports.is_empty() {
                ends.push(end);
            } else if let Some(home) = host.at {
                let at = |port| PortRef { xbar: home.xbar, port };
                let numbers = ports.iter().filter(|&port| cabled.contains_key(&at(port)));
                ends.extend(numbers.map(|port| NarrowEnd { port: Some(port), at: Some(at(port)), ..end }));
            }
        }
        ends
    }

    /// The most bytes that pass each port whose cable carries shorter frames than some host sends, whichever
    /// of its ends is to blame.
    pub fn narrow_ports(&self) -> BTreeMap<PortRef, u16> {
        let ends = self.narrow_ends();
        let mut ports = BTreeMap::new();
        if ends.is_empty() {
            return ports;
        }
        let far: BTreeMap<PortRef, PortRef> =
            self.cables.iter().flat_map(|cable| [(cable.a, cable.b), (cable.b, cable.a)]).collect();
        for NarrowEnd { at, mtu, .. } in ends {
            let Some(at) = at else { continue };
            for port in [Some(at), far.get(&at).copied()].into_iter().flatten() {
                let least = ports.entry(port).or_insert(mtu);
                *least = mtu.min(*least);
            }
        }
        ports
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{Cable, Host, Xbar};

    fn mac(n: u32) -> Mac {
        Mac::from_position(n)
    }

    fn port(xbar: u32, port: u8) -> PortRef {
        PortRef { xbar, port }
    }

    /// Three nodes in a ring: ports 1 and 2 of each lead to the others, port 3 to its agent.
    fn ring(frame_sizes: FrameSizes) -> Map {
        let host = |n| Host { mac: mac(n), level: 1, host_type: 4, at: Some(port(3 - n, 3)) };
        let xbar = |n| Xbar { ports: 3, tag: Some(n), ports_known: true };
        let cable = |a, b| Cable::new(port(a, 1), port(b, 2));
        Map {
            hosts: vec![host(3), host(2), host(1)],
            xbars: vec![xbar(3), xbar(2), xbar(1)],
            cables: vec![cable(0, 1), cable(1, 2), cable(2, 0)],
            frame_sizes,
            ..Map::default()
        }
    }

    #[test]
    fn the_least_mtu_is_said_with_the_ports_that_have_it() {
        let of = |ports: &[(u8, u32)]| LinkMtu::of_ports(ports.iter().copied());
        assert_eq!(of(&[]), LinkMtu::default());
        assert_eq!(
            of(&[(1, 9000), (2, 1500), (3, 1500)]),
            LinkMtu { bytes: 1500, ports: PortSet::from_iter([2, 3]) }
        );
        assert_eq!(of(&[(1, 9000), (2, 1500)]).ports.iter().collect::<Vec<_>>(), [2]);
        // A port beyond the 32 that have a bit counts for the least MTU all the same.
        assert_eq!(of(&[(1, 9000), (33, 1500), (255, 1500)]), LinkMtu { bytes: 1500, ports: PortSet::NONE });
        assert_eq!(of(&[(32, 70_000)]), LinkMtu { bytes: u16::MAX, ports: PortSet::from_iter([32]) });
    }

    #[test]
    fn only_hosts_with_less_than_another_are_listed() {
        let mtu = |bytes| LinkMtu { bytes, ports: PortSet::from_iter([1]) };
        assert_eq!(FrameSizes::of([]), FrameSizes::default());
        let all_alike = FrameSizes { longest: 9000, less: vec![] };
        assert_eq!(FrameSizes::of([(mac(2), mtu(9000)), (mac(1), mtu(9000))]), all_alike);
        // A host that carries no users' frames does not make any cable narrow.
        assert_eq!(FrameSizes::of([(mac(2), mtu(9000)), (mac(1), mtu(0))]), all_alike);
        let found = FrameSizes::of([(mac(3), mtu(1500)), (mac(2), mtu(9000)), (mac(1), mtu(4000))]);
        let less = vec![(mac(1), mtu(4000)), (mac(3), mtu(1500))];
        assert_eq!(found, FrameSizes { longest: 9000, less });
    }

    #[test]
    fn a_host_is_shown_with_its_own_mtu_or_with_the_greatest() {
        let mtu = |bytes| LinkMtu { bytes, ports: PortSet::from_iter([1]) };
        let sizes = FrameSizes { longest: 9000, less: vec![(mac(1), mtu(4000))] };
        assert!(sizes.shows(mac(1), mtu(4000)) && sizes.shows(mac(2), mtu(9000)));
        assert!(!sizes.shows(mac(1), mtu(9000)) && !sizes.shows(mac(2), mtu(4000)));
        assert!(
            !sizes.shows(mac(1), LinkMtu { bytes: 4000, ports: PortSet::from_iter([2]) }),
            "another port is to blame"
        );
        assert!(!FrameSizes::default().shows(mac(1), mtu(1500)), "it is not shown at all");
        assert!(sizes.shows(mac(3), mtu(0)), "it carries no users' frames");
    }

    #[test]
    fn a_cable_is_narrow_whichever_end_is() {
        let narrow = LinkMtu { bytes: 1500, ports: PortSet::from_iter([1, 4]) };
        let map = ring(FrameSizes { longest: 9000, less: vec![(mac(2), narrow)] });
        // Port 4 has no cable.
        let end = NarrowEnd { host: mac(2), port: Some(1), mtu: 1500, at: Some(port(1, 1)) };
        assert_eq!(map.narrow_ends(), [end]);
        assert_eq!(map.narrow_ports(), BTreeMap::from([(port(1, 1), 1500), (port(2, 2), 1500)]));
        assert!(ring(FrameSizes::default()).narrow_ends().is_empty());
    }

    #[test]
    fn an_agent_on_an_interface_is_an_end_itself() {
        let narrow = LinkMtu { bytes: 1500, ports: PortSet::NONE };
        let map = ring(FrameSizes { longest: 9000, less: vec![(mac(2), narrow)] });
        let end = NarrowEnd { host: mac(2), port: None, mtu: 1500, at: Some(port(1, 3)) };
        assert_eq!(map.narrow_ends(), [end]);
        assert_eq!(map.narrow_ports(), BTreeMap::from([(port(1, 3), 1500)]));
        let face_to_face = Map { cables: vec![], xbars: vec![], ..map };
        let hosts = face_to_face.hosts.iter().map(|host| Host { at: None, ..*host }).collect();
        let face_to_face = Map { hosts, ..face_to_face };
        assert_eq!(face_to_face.narrow_ends(), [NarrowEnd { at: None, ..end }]);
        assert!(face_to_face.narrow_ports().is_empty());
    }
}
