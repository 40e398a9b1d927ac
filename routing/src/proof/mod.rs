//! Proofs about routes, made without trusting how the routes were computed.

mod host;
mod service_levels;
mod tables;
mod transition;
mod union;
mod walk;

pub use host::{Proof, prove_host, prove_routes};
pub use service_levels::prove_service_levels;
pub use tables::{DeadEnd, ProofRules, TableViolation, TablesProof, prove_tables};
pub use transition::{Former, Transition, transition};
pub(crate) use union::dependency_base;
pub use union::{Cycle, UnionProof};
pub use walk::{walk, walk_tables};

use mapper_proto::Mac;
use mapper_proto::map::PortRef;
use thiserror::Error;

/// What is wrong with routes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Violation {
    /// The topology is not the one that the routes or the orientation were made for.
    #[error("the routes were computed for another topology; compute them again")]
    OtherTopology,
    /// A cable is oriented so that a circle could be closed.
    #[error(
        "the cable from xbar {} port {} to xbar {} port {} is oriented against the order of xbars",
        .tail.xbar, .tail.port, .head.xbar, .head.port
    )]
    Misoriented {
        /// Where the channel begins.
        tail: PortRef,
        /// Where it ends.
        head: PortRef,
    },
    /// A legal step goes back in the order of channels, so that it could close a circle.
    #[error("routes may pass xbar {} from port {} to port {out}, against the order of channels", .arrival.xbar, .arrival.port)]
    StepBack {
        /// The port that the routes come in by.
        arrival: PortRef,
        /// The port that the routes leave by.
        out: u8,
    },
    /// Cables lead to a host, but no route does.
    #[error("{from} has no route to {to}, though cables lead there")]
    NoRoute {
        /// The source.
        from: Mac,
        /// The destination.
        to: Mac,
    },
    /// A route leaves by a port where nothing is.
    #[error("a route from {from} to {to} cannot leave xbar {} by port {}: no cable leads on from there", .hop.xbar, .hop.port)]
    Broken {
        /// The source.
        from: Mac,
        /// The destination.
        to: Mac,
        /// The hop that fails.
        hop: PortRef,
    },
    /// A route leaves an xbar which it does not come to.
    #[error("a route from {from} to {to} leaves xbar {} by port {}, though it does not come to that xbar", .hop.xbar, .hop.port)]
    Astray {
        /// The source.
        from: Mac,
        /// The destination.
        to: Mac,
        /// The hop that does not follow the one before.
        hop: PortRef,
    },
    /// A route does not end at its destination.
    #[error("a route from {from} to {to} does not end there")]
    WrongEnd {
        /// The source.
        from: Mac,
        /// The destination.
        to: Mac,
    },
    /// A route passes an xbar twice.
    #[error("a route from {from} to {to} passes xbar {xbar} twice")]
    Loop {
        /// The source.
        from: Mac,
        /// The destination.
        to: Mac,
        /// The xbar.
        xbar: u32,
    },
    /// A route is too long.
    #[error("a route from {from} to {to} has {hops} hops, but at most {max_hops} are allowed")]
    TooLong {
        /// The source.
        from: Mac,
        /// The destination.
        to: Mac,
        /// How many hops it has.
        hops: usize,
        /// The limit.
        max_hops: usize,
    },
    /// A route turns up again after it went down.
    #[error(
        "a route from {from} to {to} may not turn from xbar {} port {} to its port {}",
        .arrival.xbar, .arrival.port, .out
    )]
    IllegalTurn {
        /// The source.
        from: Mac,
        /// The destination.
        to: Mac,
        /// The port that it comes in by.
        arrival: PortRef,
        /// The port that it leaves by.
        out: u8,
    },
}
