//! Why a host gets no routes, or a route cannot travel.

use mapper_fabric::names::Names;
use mapper_proto::Mac;
use mapper_proto::map::PortRef;
use thiserror::Error;

use super::RouteOptions;
use crate::Topology;

/// Why a host gets no routes, or a route cannot travel.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RoutingError {
    /// No table can hold so many passes.
    #[error("{0} routes a destination were asked for; give 1 to {max}", max = RouteOptions::MAX_PASSES)]
    Passes(u8),
    /// The limit on length is one that no route fits, or longer than a frame can carry.
    #[error("routes of at most {0} hops were asked for; give 1 to {max}", max = RouteOptions::MAX_HOPS)]
    MaxHops(u8),
    /// The topology has no such host.
    #[error("there is no host {host}; the map lists {hosts}, counted from 0")]
    NoSuchHost {
        /// The index asked for.
        host: u32,
        /// How many there are.
        hosts: usize,
    },
    /// The fabric is wider than routes may be long.
    #[error(
        "the shortest legal route from {from} to {to} has {hops} hops, but at most {max_hops} are allowed: \
         cable the fabric closer, or raise the limit (max-hops) if every interface can carry longer routes"
    )]
    TooLong {
        /// The source.
        from: Mac,
        /// The destination.
        to: Mac,
        /// How many hops the route needs.
        hops: usize,
        /// The limit.
        max_hops: u8,
    },
    /// No route element can ask for a hop.
    #[error(
        "xbar {xbar} is to turn from port {arrival} to port {out}: it obeys only deltas of -31 to 31, because it has \
         no identity"
    )]
    DeltaTooLarge {
        /// The plain xbar.
        xbar: u32,
        /// The port that frames come in by.
        arrival: u8,
        /// The port that they are to leave by.
        out: u8,
    },
    /// No cable joins two hops.
    #[error("no cable leads on from xbar {} port {}", .port.xbar, .port.port)]
    NoCable {
        /// The port that leads nowhere.
        port: PortRef,
    },
}

impl RoutingError {
    /// Why, with the names that the fabric of this topology has.
    pub fn describe(&self, names: &Names, topology: &Topology) -> String {
        let host = |mac: &Mac| {
            let host = (0..topology.host_count() as u32).find(|&host| topology.mac(host) == *mac);
            host.map_or_else(|| mac.to_string(), |host| names.host(host))
        };
        match self {
            Self::TooLong { from, to, hops, max_hops } => format!(
                "the shortest legal route from {} to {} has {hops} hops, but at most {max_hops} are allowed: \
                 cable the fabric closer, or raise the limit (max-hops) if every interface can carry longer routes",
                host(from),
                host(to)
            ),
            Self::DeltaTooLarge { xbar, arrival, out } => format!(
                "{} is to turn from port {arrival} to port {out}: it obeys only deltas of -31 to 31, because it \
                 has no identity",
                names.xbar(*xbar)
            ),
            Self::NoCable { port } => format!("no cable leads on from {}", names.port(*port)),
            Self::Passes(_) | Self::MaxHops(_) | Self::NoSuchHost { .. } => self.to_string(),
        }
    }
}
