//! The status socket: what an agent's daemon says of itself to programs on its machine.
//!
//! A client connects to the unix socket, and the daemon sends one [`Board`] and hangs up. The daemon reads
//! nothing from that socket, so there is no input to parse from whoever connects. What is larger, or depends
//! on what the client wants to know, is asked for on a socket of its own: see [`Request`].

mod board;
mod healing;
mod host_types;
mod mismatch;
mod narrow_cables;
mod ports;
mod requests;
mod routes;
mod socket;

pub use board::{Board, Counters, FrameCounters, MapVersionDto, Reason, Surroundings, state_name};
pub use healing::{DeadCable, LivenessCounters, RepairCounters, Tap};
pub use host_types::HostsOfType;
pub use mismatch::Mismatch;
pub use narrow_cables::{CableEnd, NarrowCable};
pub use ports::{BoardPort, dead_ports, unequal_mtus};
pub use requests::{MAX_RESOLVED_BYTES, Request, Resolved, ResolvedHost, requests_socket_path};
pub use routes::{MAX_ROUTES_BYTES, RouteInForce, RouteUse, RoutesAsked, RoutesInForce};
pub use socket::{ask, bind, bind_at, socket_path, units};
