//! The map that agents should find.

use mapper_proto::map::{Cable, Host, Map, PortRef, Xbar};
use mapper_proto::wire::CrossbarKind;

use super::{Parts, Plant, PlantNode};

impl Plant {
    /// The map of one connected part as it is now. It has the part's xbars in the order of the
    /// description, the cables that carry frames, and those of `hosts` that are in the part. Each of
    /// `hosts` is the index of a host and its entry in maps.
    pub(crate) fn map_of_part(&self, parts: &Parts, part: u32, hosts: &[(u32, Host)]) -> Map {
        let mut index = vec![None; self.xbars.len()];
        let mut map = Map::default();
        for (i, xbar) in self.xbars.iter().enumerate() {
            if xbar.powered && parts.part(PlantNode::Xbar(i as u32)) == part {
                index[i] = Some(map.xbars.len() as u32);
                let tag = match xbar.crossbar.kind {
                    CrossbarKind::Plain => None,
                    CrossbarKind::Tagged { tag } => Some(tag),
                };
                map.xbars.push(Xbar { ports: xbar.crossbar.ports, tag, ports_known: true });
            }
        }
        let carried = |socket: u32| self.joins(socket).then(|| self.sockets[socket as usize].peer)?;
        let port_ref = |socket: u32| match self.sockets[socket as usize].end.node {
            PlantNode::Host(_) => None,
            PlantNode::Xbar(xbar) => index[xbar as usize]
                .map(|xbar| PortRef { xbar, port: self.sockets[socket as usize].end.port }),
        };
        for &(i, host) in hosts {
            if parts.part(PlantNode::Host(i)) == part {
                map.hosts.push(Host { at: carried(i).and_then(port_ref), ..host });
            }
        }
        map.hosts.sort_by_key(|host| std::cmp::Reverse(host.rank()));
        for socket in self.hosts() as u32..self.sockets.len() as u32 {
            let Some(peer) = carried(socket).filter(|&peer| peer > socket) else { continue };
            if let (Some(a), Some(b)) = (port_ref(socket), port_ref(peer)) {
                map.cables.push(Cable::new(a, b));
            }
        }
        map.cables.sort();
        map
    }
}
