//! The routes in force of this machine's hosts, over which cables they lead.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use mapper_daemon::agent::status::{
    AgentRequest, Board, MAX_ROUTES_BYTES, MapVersionDto, RouteUse, RoutesInForce,
};
use mapper_proto::map::{Map, PortRef};

use super::agents::Known;
use super::asking::{ask, at_once};

/// How long agents may take to send their routes.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many of these routes lead over each cable.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct InForce {
    /// By cable of the fabric: from its first end to its second, and back.
    pub(crate) loads: BTreeMap<u32, [u32; 2]>,
    /// How many hosts of this machine these are the routes of.
    pub(crate) hosts: usize,
    /// What boards said when they were asked.
    of: Vec<Standing>,
}

/// What a board says when its routes are others: its map, how many routes there are, and which cables are dead.
type Standing = (u8, Option<MapVersionDto>, usize, usize);

impl InForce {
    /// Asks for the routes again if boards say that they may be others. Says whether it asked.
    pub(super) fn renew(&mut self, run_dir: &Path, known: &Known, boards: &[Board]) -> bool {
        let standing =
            |board: &Board| (board.unit, board.map_version.clone(), board.routes, board.dead_cables.len());
        let of: Vec<Standing> = boards.iter().map(standing).collect();
        if of == self.of {
            return false;
        }
        let deadline = Instant::now() + PATIENCE;
        let cables = cables(&known.fabric.map);
        *self = Self { of, ..Self::default() };
        let with_map: Vec<&Board> = boards.iter().filter(|board| board.map_version.is_some()).collect();
        let told = at_once(&with_map, |board| {
            ask::<RoutesInForce>(run_dir, board.unit, &AgentRequest::Routes, (deadline, MAX_ROUTES_BYTES))
        });
        for routes in told {
            let Some(routes) = routes.filter(|routes| self.add(known, &cables, routes)) else {
                // A new map is on its way, so the routes are asked for again at the next look.
                self.of.clear();
                continue;
            };
            self.hosts += usize::from(!routes.routes.is_empty());
        }
        true
    }

    /// Adds the routes of a host. Says whether they belong to a map that is known.
    fn add(&mut self, known: &Known, cables: &BTreeMap<PortRef, (u32, usize)>, told: &RoutesInForce) -> bool {
        let version = told.map_version.as_ref().map(MapVersionDto::to_string);
        let Some(xbars) = version.and_then(|version| known.xbars_of(&version)) else { return false };
        for route in told.routes.iter().filter(|route| route.used_for != RouteUse::CutOff) {
            for (id, port) in &route.hops {
                let at = xbars.get(id.as_str()).map(|&xbar| PortRef { xbar, port: *port });
                if let Some(&(cable, way)) = at.and_then(|at| cables.get(&at)) {
                    self.loads.entry(cable).or_default()[way] += 1;
                }
            }
        }
        true
    }
}

/// The cable behind each port of an xbar, and which way one goes who leaves by it: 0 from the first end, 1 back.
pub(super) fn cables(map: &Map) -> BTreeMap<PortRef, (u32, usize)> {
    let ends =
        (0..).zip(&map.cables).flat_map(|(number, cable)| [(cable.b, (number, 1)), (cable.a, (number, 0))]);
    ends.collect()
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    use super::*;
    use mapper_daemon::agent::status::RouteInForce;

    #[test]
    fn routes_count_for_each_cable_that_they_leave_by_the_way_they_go() {
        let fabric = generate("clos:hosts=8,ports=4").unwrap();
        let cable = fabric.map.cables[0];
        let mut known = Known::default();
        known.add("02:00:00:00:00:01/3".to_owned(), fabric.clone(), Some(1));
        let hop = |at: PortRef| (fabric.xbars[at.xbar as usize].name.clone(), at.port);
        let route = |hops: &[PortRef], used_for| RouteInForce {
            to: "02:00:00:00:00:02".to_owned(),
            name: "h2".to_owned(),
            host_type: 0,
            hops: hops.iter().copied().map(hop).collect(),
            via: Vec::new(),
            hop_names: Vec::new(),
            layer: 0,
            bytes: String::new(),
            segments: Vec::new(),
            packets: 0,
            used_for,
            frames: 0,
        };
        let last = fabric.map.hosts[7].at.unwrap();
        let told = |counter| RoutesInForce {
            host: "02:00:00:00:00:01".to_owned(),
            map_version: Some(MapVersionDto { mac: "02:00:00:00:00:01".to_owned(), counter }),
            map: None,
            routes: vec![
                route(&[cable.a, last], RouteUse::Flows),
                route(&[cable.a, last], RouteUse::Spare),
                route(&[cable.b], RouteUse::Agent),
                route(&[cable.a], RouteUse::CutOff),
            ],
            without_route: Vec::new(),
            names: BTreeMap::new(),
            by_destination: Vec::new(),
            by_segments: Vec::new(),
            segments_differ: Vec::new(),
            objects_differ: Vec::new(),
            segments_not_compared: None,
            by_lid: Vec::new(),
        };
        let mut in_force = InForce::default();
        let ends = cables(&known.fabric.map);
        assert!(in_force.add(&known, &ends, &told(3)));
        assert_eq!(in_force.loads, BTreeMap::from([(0, [2, 1])]));
        assert!(!in_force.add(&known, &ends, &told(4)), "that map is not known");
    }
}
