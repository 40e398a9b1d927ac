//! The hosts whose packets kernels forward by the destination alone, as they are told.

use std::collections::BTreeMap;

use mapper_host::kernel_path::{CABLE, CarriedRoute};
use mapper_host::routes::RouteTable;
use mapper_proto::Mac;
use mapper_proto::map::{Map, PortRef};
use serde::{Deserialize, Serialize};

use super::RoutesAsked;

/// The most xbars of a map for which the ways behind ports are told where kernels go by the destination, as each hop of
/// each of them takes a search of the fabric.
const MOST_XBARS_OF_WAYS: usize = 128;

/// A host whose packets are forwarded by the destination alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByDestination {
    /// The host's address.
    pub to: String,
    /// What the host is called.
    pub name: String,
    /// The ports of this machine that packets leave by.
    pub ports: Vec<u8>,
    /// For each of these ports, what is behind it, by a name for people; empty if the map does not tell.
    #[serde(default)]
    pub behind: Vec<String>,
    /// For each of these ports, the hops behind it by names for people, as in [`hop_names`](super::RouteInForce::hop_names) of routes. Where a
    /// crossbar has several ports that are equally near, it is one of them. Empty on large maps.
    #[serde(default)]
    pub ways: Vec<Vec<String>>,
    /// How many packets the kernel has sent to the host by its destination, as far as it counts.
    #[serde(default)]
    pub packets: u64,
}

impl RoutesAsked {
    /// The hosts whose packets are forwarded by the destination alone. `called` is what each crossbar of the map is called.
    pub(super) fn by_destination(
        &self,
        table: &RouteTable,
        map: &Map,
        called: &[String],
    ) -> Vec<ByDestination> {
        let own = map.hosts.iter().find(|host| host.mac == self.host).and_then(|host| host.at);
        let mut behind = own.map_or_else(BTreeMap::new, |own| self.behind_ports(own.xbar, map, called));
        behind.extend(own.map(|own| (CABLE, called[own.xbar as usize].clone())));
        let hop_name = |hop: &PortRef| format!("{}:{}", called[hop.xbar as usize], hop.port);
        let way = |to: Mac, port: u8| {
            let (own, host) = own.filter(|_| map.xbars.len() <= MOST_XBARS_OF_WAYS).zip(table.host(to))?;
            let (hops, own_hops) = match port {
                CABLE => (table.way_by_cable(host).hops, 0),
                _ => (table.way_by_destination(PortRef { port, ..own }, host).hops, 1),
            };
            Some(hops.iter().skip(own_hops).map(hop_name).collect::<Vec<_>>())
        };
        let mut all: Vec<ByDestination> = Vec::new();
        for CarriedRoute { to, port, packets, .. } in self.carried.iter().filter(|it| it.segments.is_empty())
        {
            let mac = to.to_string();
            let behind = behind.get(port).cloned().unwrap_or_default();
            let way = way(*to, *port).unwrap_or_default();
            match all.last_mut().filter(|last| last.to == mac) {
                Some(last) => {
                    last.ports.push(*port);
                    last.behind.push(behind);
                    last.ways.push(way);
                    last.packets += packets;
                }
                None => {
                    let name = self.names.of_host(*to).map_or_else(|| mac.clone(), str::to_owned);
                    all.push(ByDestination {
                        to: mac,
                        name,
                        ports: vec![*port],
                        behind: vec![behind],
                        ways: vec![way],
                        packets: *packets,
                    });
                }
            }
        }
        all
    }

    /// What is behind each port of an xbar: the name of the xbar there, or of the host.
    fn behind_ports(&self, xbar: u32, map: &Map, called: &[String]) -> BTreeMap<u8, String> {
        let cables = map.cables.iter().flat_map(|cable| [(cable.a, cable.b), (cable.b, cable.a)]);
        let cables = cables.filter(|(near, _)| near.xbar == xbar);
        let xbars = cables.map(|(near, far)| (near.port, called[far.xbar as usize].clone()));
        let hosts = map.hosts.iter().filter_map(|host| {
            let at = host.at.filter(|at| at.xbar == xbar)?;
            let name = self.names.of_host(host.mac).map_or_else(|| host.mac.to_string(), str::to_owned);
            Some((at.port, name))
        });
        xbars.chain(hosts).collect()
    }
}

#[cfg(test)]
mod tests {
    use mapper_proto::wire::Route;

    use super::super::tests::asked;
    use super::*;

    #[test]
    fn of_routes_by_destination_it_is_told_who_is_behind_each_port_and_the_way_on() {
        let mut asked = asked(&[]);
        let way = asked.answer().routes[0].clone();
        let (port, to) = (way.hops[0].1, way.to.parse().unwrap());
        asked.carried =
            vec![CarriedRoute { to, route: Route::default(), segments: Vec::new(), port, packets: 2 }];
        let told = &asked.answer().by_destination[0];
        let (neighbour, _) = way.hop_names[1].rsplit_once(':').unwrap();
        assert_eq!(told.behind, [neighbour], "{told:?}");
        assert_eq!(told.ways, [way.hop_names[1..].to_vec()], "{told:?}");
    }
}
