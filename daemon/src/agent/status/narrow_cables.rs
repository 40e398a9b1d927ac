//! Cables that carry shorter frames than some host of the network sends.

use std::collections::BTreeMap;

use mapper_proto::Mac;
use mapper_proto::map::{Map, NarrowEnd, PortRef};
use serde::{Deserialize, Serialize};

use super::ports::BoardPort;

/// The most cables that a board shows: it must fit a message of the status socket.
const MOST_SHOWN: usize = 64;
/// The most cables that are named in words.
const MOST_NAMED: usize = 8;

/// A cable of the map that carries shorter frames than some host sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NarrowCable {
    /// The least MTU of the interfaces at the two ends of the cable, in bytes.
    pub mtu: u32,
    /// How long frames in the network can be, in bytes: the greatest MTU of all hosts.
    pub longest: u32,
    /// The interfaces at the ends of the cable whose MTU is too small: one of them, or both.
    pub ends: Vec<CableEnd>,
}

/// An interface at the end of a cable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CableEnd {
    /// The address of the host that it belongs to.
    pub host: String,
    /// The port of the node's crossbar; `None` for an agent's own interface.
    pub port: Option<u8>,
    /// The interface's name, if it is one of this machine.
    pub interface: Option<String>,
    /// Its MTU, in bytes.
    pub mtu: u32,
}

impl NarrowCable {
    /// The narrow cables of a map, in the order of its hosts, at most 64. The interfaces of the host `own`
    /// are named: those of a node are `ports`, that of an agent is `interface`.
    pub fn of(map: &Map, own: Mac, interface: &str, ports: &[BoardPort]) -> Vec<Self> {
        let name = |end: &NarrowEnd| match end.port {
            _ if end.host != own => None,
            None => Some(interface.to_owned()),
            Some(number) => ports.iter().find(|port| port.port == number).map(|port| port.interface.clone()),
        };
        let ends = map.narrow_ends();
        let mut cables: Vec<Self> = Vec::new();
        if ends.is_empty() {
            return cables;
        }
        let smaller_end: BTreeMap<PortRef, PortRef> =
            map.cables.iter().map(|cable| (cable.b, cable.a)).collect();
        let mut place_of = BTreeMap::new();
        for end in ends {
            let mtu = u32::from(end.mtu);
            let shown = CableEnd { host: end.host.to_string(), port: end.port, interface: name(&end), mtu };
            let cable = end.at.map(|at| smaller_end.get(&at).copied().unwrap_or(at));
            let known = cable.and_then(|cable| place_of.get(&cable).copied());
            if let Some(found) = known.and_then(|place: usize| cables.get_mut(place)) {
                found.mtu = found.mtu.min(mtu);
                found.ends.push(shown);
            } else if cables.len() < MOST_SHOWN {
                place_of.extend(cable.map(|cable| (cable, cables.len())));
                let longest = map.frame_sizes.longest.into();
                cables.push(Self { mtu, longest, ends: vec![shown] });
            }
        }
        cables
    }

    /// Says in words which cables are narrow, and what to do; `None` if there are none. `called` names hosts by their
    /// addresses.
    pub fn warning(cables: &[Self], called: &dyn Fn(&str) -> String) -> Option<String> {
        let longest = cables.first()?.longest;
        let mut named: Vec<_> = cables.iter().take(MOST_NAMED).map(|cable| cable.describe(called)).collect();
        if cables.len() > MOST_NAMED {
            named.push("and more".to_owned());
        }
        Some(format!(
            "some cables of the map carry frames of {longest} bytes, and others shorter ones: {}; the tap interfaces of \
             all hosts keep to the shortest; set the MTU alike at both ends of all cables of the fabric",
            named.join("; ")
        ))
    }

    fn describe(&self, called: &dyn Fn(&str) -> String) -> String {
        let ends: Vec<_> = self.ends.iter().map(|end| end.describe(called)).collect();
        format!("{} bytes at {}", self.mtu, ends.join(" and "))
    }
}

impl CableEnd {
    fn describe(&self, called: &dyn Fn(&str) -> String) -> String {
        let Self { host, port, interface, .. } = self;
        match (port, interface) {
            (Some(port), Some(name)) => format!("port {port} ({name}) of this host"),
            (None, Some(name)) => format!("{name} of this host"),
            (Some(port), None) => format!("port {port} of host {}", called(host)),
            (None, None) => format!("the interface of host {}", called(host)),
        }
    }
}

#[cfg(test)]
mod tests {
    use mapper_proto::PortSet;
    use mapper_proto::map::{Cable, FrameSizes, Host, LinkMtu, Xbar};

    use super::*;

    /// Two nodes with two cables between them, and an agent on an interface that is cabled to the third port
    /// of the first node.
    fn map(less: &[(u32, LinkMtu)]) -> Map {
        let port = |xbar, port| PortRef { xbar, port };
        let host = |n, at| Host { mac: Mac::from_position(n), level: 1, host_type: 4, at: Some(at) };
        let less = less.iter().map(|&(n, mtu)| (Mac::from_position(n), mtu)).collect();
        Map {
            hosts: vec![host(3, port(0, 4)), host(2, port(1, 4)), host(1, port(0, 3))],
            xbars: vec![Xbar { ports: 4, tag: None, ports_known: true }; 2],
            cables: vec![Cable::new(port(0, 1), port(1, 2)), Cable::new(port(0, 2), port(1, 1))],
            frame_sizes: FrameSizes { longest: 9000, less },
            ..Map::default()
        }
    }

    #[test]
    fn a_cable_is_named_by_the_ends_that_are_too_small() {
        let own = Mac::from_position(3);
        let ports = [BoardPort { port: 1, interface: "eth1".to_owned(), ..BoardPort::default() }];
        let narrow = |ports: &[u8]| LinkMtu { bytes: 1500, ports: ports.iter().copied().collect() };
        let of = |less: &[(u32, LinkMtu)]| NarrowCable::of(&map(less), own, "eth1+eth2", &ports);
        let both = of(&[(2, narrow(&[2])), (3, narrow(&[1]))]);
        let warning = NarrowCable::warning(&both, &|_| "n2 (its address)".to_owned()).unwrap();
        let named = "1500 bytes at port 1 (eth1) of this host and port 2 of host n2 (its address);";
        assert!(warning.contains("frames of 9000 bytes") && warning.contains(named), "{warning}");
        let two = of(&[(1, narrow(&[])), (2, narrow(&[2]))]);
        let warning = NarrowCable::warning(&two, &str::to_owned).unwrap();
        let named = "1500 bytes at port 2 of host 02:00:00:00:00:02; 1500 bytes at the interface of host \
                     02:00:00:00:00:01;";
        assert!(warning.contains(named), "{warning}");
        assert_eq!(of(&[]), []);
        assert_eq!(NarrowCable::warning(&[], &str::to_owned), None);
    }

    #[test]
    fn however_many_there_are_a_board_stays_small() {
        let map = map(&[]);
        let hosts: Vec<_> = (1..=1000).map(|n| (n, LinkMtu { bytes: 1500, ports: PortSet::NONE })).collect();
        let less: Vec<_> = hosts.iter().map(|&(n, mtu)| (Mac::from_position(n), mtu)).collect();
        let host = |n: u32| Host { mac: Mac::from_position(n), level: 1, host_type: 4, at: None };
        let frame_sizes = FrameSizes { longest: 9000, less };
        let map = Map { hosts: (1..=1000).map(host).collect(), frame_sizes, ..map };
        let cables = NarrowCable::of(&map, Mac::default(), "eth1", &[]);
        assert_eq!(cables.len(), MOST_SHOWN);
        assert!(NarrowCable::warning(&cables, &str::to_owned).unwrap().len() < 1000);
    }
}
