//! The status socket: what an agent's daemon says of itself to programs on its machine.
//!
//! A client connects to the unix socket, and the daemon sends one [`Board`] and hangs up. The daemon reads
//! nothing from that socket, so there is no input to parse from whoever connects. What is larger, or depends
//! on what the client wants to know, is asked for on a socket of its own: see [`AgentRequest`].

mod address_clash;
mod bandwidth;
mod board;
mod counters;
mod data_path;
mod healing;
mod host_types;
mod mismatch;
mod narrow_cables;
mod node_xbars;
mod paths;
mod paths_number;
mod plan;
mod port_paths;
mod ports;
mod requests;
mod routes;
mod socket;
mod soundings;
mod subnet;
mod whole_network;

pub use address_clash::AddressClash;
pub use bandwidth::{Bandwidths, WayBandwidth};
pub use board::{Board, MapVersionDto, Reason, Surroundings};
pub use counters::{Counters, FrameCount};
pub use data_path::{DataPath, ShortenedTo};
pub use healing::{DeadCable, LossyCable, Tap};
pub use host_types::HostsOfType;
pub use mismatch::{Mismatch, MismatchKind};
pub use narrow_cables::{CableEnd, NarrowCable};
pub use node_xbars::{naming_hosts, xbar_in_words};
pub use paths::{Change, KnownHost, KnownLearned, KnownOwner, KnownPath, KnownPaths, PathsAsked, WhoHas};
pub use paths_number::{PathsNumber, PathsNumberReader, paths_number_path};
pub use plan::{PlanDifference, PlanStanding};
pub use port_paths::{KnownPort, PathEnd, PathFound, PathTo};
pub use ports::{BoardPort, dead_ports, unequal_mtus};
pub use requests::{AgentRequest, MAX_RESOLVED_BYTES, Resolved, ResolvedHost, requests_socket_path};
pub(crate) use routes::KernelAsked;
pub use routes::{
    ByDestination, ByLid, BySegments, MAX_ROUTES_BYTES, RouteInForce, RouteUse, RoutesAsked, RoutesInForce,
    SegmentsDiffer,
};
pub use socket::{ask, bind, bind_at, socket_path, units};
pub use soundings::{
    Answered, BY_ROUTES, Hop, MAX_SOUNDED_BYTES, Measure, Pinged, PingedWay, SoundedHost, SoundingAsked,
    Traced, TracedHop, TracedWay, WayAsked,
};
pub use subnet::{ManagerSeen, SubnetStanding, SubnetVersionDto};
pub use whole_network::NetworkLack;
