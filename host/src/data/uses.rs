//! Reports how much each route in force is used.

use mapper_proto::wire::Route;
use mapper_proto::{Instant, Mac};

use super::data_path::{DataPath, IN_USE};
use super::destinations::Destinations;

/// A route to a host that frames were sent to, and how much it was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathTraffic {
    /// The host that the route leads to.
    pub to: Mac,
    /// The route.
    pub route: Route,
    /// Whether no cable on it is known to be dead.
    pub alive: bool,
    /// Whether unicast frames took it during the last second.
    pub in_use: bool,
    /// How many frames took it since it came into force.
    pub frames: u64,
}

impl DataPath {
    /// The routes to all hosts that frames were sent to since the map came.
    pub fn uses(&self, now: Instant) -> Vec<PathTraffic> {
        let destinations = self.destinations.iter().flat_map(Destinations::used);
        let uses = destinations.flat_map(|destination| {
            destination.paths.iter().map(|path| PathTraffic {
                to: destination.mac,
                route: path.way.there.clone(),
                alive: path.alive,
                in_use: path.listed && now.since(path.used) < IN_USE,
                frames: path.frames,
            })
        });
        uses.collect()
    }
}
