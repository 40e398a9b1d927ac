//! What is at each port of a map.

use std::fmt;

use super::{Cable, Map, PortRef};
use crate::Mac;

/// What a port's cable leads to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Attached {
    /// A host: index into [`Map::hosts`].
    Host(u32),
    /// A port of an xbar, perhaps of the same one.
    Xbar(PortRef),
}

/// What is at a port, in words that hold outside the map.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FarEnd {
    /// No cable, or one that leads to nothing.
    Nothing,
    /// A host.
    Host(Mac),
    /// A port of an xbar.
    Port(PortRef),
}

impl fmt::Display for FarEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::Host(mac) => write!(f, "host {mac}"),
            Self::Port(PortRef { xbar, port }) => write!(f, "port {port} of xbar {xbar}"),
        }
    }
}

impl Attached {
    /// What is at this end, in words that hold outside the map.
    pub fn end(self, map: &Map) -> FarEnd {
        match self {
            Self::Host(host) => {
                map.hosts.get(host as usize).map_or(FarEnd::Nothing, |host| FarEnd::Host(host.mac))
            }
            Self::Xbar(port) => FarEnd::Port(port),
        }
    }
}

/// A map's ports in use, xbar by xbar, by rising port number: one flat array.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PortsInUse {
    /// Where each xbar's ports begin in `entries`; one more at the end.
    starts: Vec<u32>,
    entries: Vec<(u8, Attached)>,
}

impl PortsInUse {
    /// The ports in use in this map. Ends at xbars that the map does not have are left out.
    pub fn new(map: &Map) -> Self {
        let mut starts = vec![0; map.xbars.len() + 1];
        for (at, _) in ends(map) {
            starts[at.xbar as usize + 1] += 1;
        }
        for xbar in 1..starts.len() {
            starts[xbar] += starts[xbar - 1];
        }
        let count = starts.last().copied().unwrap_or_default();
        let mut entries = vec![(0, Attached::Host(0)); count as usize];
        let mut next = starts.clone();
        for (at, attached) in ends(map) {
            let place = &mut next[at.xbar as usize];
            entries[*place as usize] = (at.port, attached);
            *place += 1;
        }
        for row in starts.windows(2) {
            entries[row[0] as usize..row[1] as usize].sort_unstable();
        }
        Self { starts, entries }
    }

    /// The ports in use of one xbar, by rising number, and what is there. Empty for an xbar that
    /// the map does not have.
    pub fn of_xbar(&self, xbar: u32) -> &[(u8, Attached)] {
        let xbar = xbar as usize;
        match self.starts.get(xbar..xbar.saturating_add(2)) {
            Some(&[start, end]) => &self.entries[start as usize..end as usize],
            _ => &[],
        }
    }

    /// What is at this port; `None` for nothing.
    pub fn at(&self, port: PortRef) -> Option<Attached> {
        let row = self.of_xbar(port.xbar);
        let at = row.partition_point(|&(other, _)| other < port.port);
        row.get(at).filter(|&&(other, _)| other == port.port).map(|&(_, attached)| attached)
    }
}

/// All ports in use and what is there, in the order of hosts and cables. Ends at xbars that the
/// map does not have are left out.
fn ends(map: &Map) -> impl Iterator<Item = (PortRef, Attached)> + '_ {
    let hosts = (0..).zip(&map.hosts).filter_map(|(index, host)| Some((host.at?, Attached::Host(index))));
    let cables = map.cables.iter().flat_map(|&Cable { a, b }| {
        // A cable from a port to itself is at one port.
        let other = (a != b).then_some((b, Attached::Xbar(a)));
        [Some((a, Attached::Xbar(b))), other].into_iter().flatten()
    });
    hosts.chain(cables).filter(|(at, _)| (at.xbar as usize) < map.xbars.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{Host, Xbar};

    #[test]
    fn every_end_is_found_and_nothing_else() {
        let port = |xbar, port| PortRef { xbar, port };
        let host = |position, at| Host { mac: Mac::from_position(position), level: 1, host_type: 4, at };
        let map = Map {
            hosts: vec![host(1, Some(port(1, 8))), host(2, None), host(3, Some(port(0, 3)))],
            xbars: vec![Xbar { ports: 8, tag: None, ports_known: true }; 3],
            cables: vec![
                Cable::new(port(0, 1), port(1, 2)),
                Cable::new(port(1, 3), port(1, 5)),
                Cable::new(port(1, 4), port(1, 4)),
            ],
            ..Map::default()
        };
        let ports = PortsInUse::new(&map);
        assert_eq!(ports.of_xbar(0), [(1, Attached::Xbar(port(1, 2))), (3, Attached::Host(2))]);
        assert_eq!(ports.at(port(1, 2)), Some(Attached::Xbar(port(0, 1))));
        assert_eq!(ports.at(port(1, 3)), Some(Attached::Xbar(port(1, 5))));
        assert_eq!(ports.at(port(1, 5)), Some(Attached::Xbar(port(1, 3))));
        assert_eq!(ports.at(port(1, 4)), Some(Attached::Xbar(port(1, 4))));
        assert_eq!(ports.at(port(1, 8)), Some(Attached::Host(0)));
        assert_eq!(ports.of_xbar(1).len(), 5);
        for nothing in [port(0, 0), port(0, 2), port(1, 9), port(2, 1), port(3, 1), port(u32::MAX, 1)] {
            assert_eq!(ports.at(nothing), None, "{nothing:?}");
        }
        assert_eq!(PortsInUse::default().of_xbar(0), []);
    }
}
