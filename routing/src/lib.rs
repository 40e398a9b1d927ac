//! Routes and tables, proved free of deadlock.
//!
//! 1. [`Topology`] is built once from a [`mapper_proto::map::Map`]: flat arrays, channels numbered.
//! 2. [`Orientation`] gives each cable an up and a down end, alike for every agent of a map: by the
//!    tiers of a Clos where one is recognised, by up*/down* elsewhere.
//! 3. [`HostRoutes`] is one host's table: several shortest legal routes to each other host, computed
//!    by an engine of [`engines`].
//! 4. [`prove_host`] proves a table against the shared orientation; [`UnionProof`] searches the
//!    channel dependencies of any number of tables for a cycle, without trusting an orientation.
//! 5. [`repair`] routes around dead cables at once, proved to be safe beside the routes of hosts that
//!    know of other dead cables, or of none.
//!
//! Forwarding tables, which InfiniBand's switches hold:
//!
//! 1. A [`Subnet`] is a topology, the addresses of its nodes ([`tables::Destinations`]) and their GUIDs.
//! 2. [`engines::select`] tries engines in turn; an [`engines::Engine`] computes [`Tables`] and layers.
//! 3. [`prove_tables`] proves them before anybody gets them.
//!
//! A host's route is a list of hops: for each xbar the [`mapper_proto::map::PortRef`] to leave by.

mod by_destination;
pub mod cache;
pub mod engines;
#[cfg(test)]
mod fabrics;
mod host_routes;
mod orientation;
mod proof;
mod quality;
mod repair;
mod subnet;
pub mod tables;
#[cfg(test)]
mod tests;
mod tiers;
mod topology;

pub use by_destination::{NextHops, OrderByDestination};
pub use host_routes::{HostRoutes, RouteOptions, RoutingError, turns, wire_route, wire_way_back};
pub use orientation::{Direction, Orientation, Shape};
pub use proof::{
    Cycle, DeadEnd, Former, Proof, ProofRules, TableViolation, TablesProof, Transition, UnionProof,
    Violation, prove_host, prove_routes, prove_service_levels, prove_tables, transition, walk, walk_tables,
};
pub use quality::{
    Bisection, Census, ChannelLoads, CountedRoutes, Matchings, Mean, Measured, PairRoutes, Quality,
    RouteLists, SourceRoutes, TableRoutes, TierHeading, TierLoads, group_by_tier, hosts_in_order,
};
pub use repair::{DeadCables, LiveRoutes, OutOfReach, RepairError, repair};
pub use subnet::{Subnet, SubnetError};
pub use tables::Tables;
pub use tiers::Tiers;
pub use topology::{Attachment, Far, HostPart, Topology, TopologyError};
