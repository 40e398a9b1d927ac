//! What travels.
//!
//! A frame is route elements, then a header, then a body, then room for an authentication tag,
//! then a CRC-32. Links put their own header before it (Ethernet: destination, source, EtherType)
//! and may pad it behind: the header carries the length.

mod frame;
mod message;
mod route;

pub use frame::{FrameError, FrameKind, Stamp};
pub use message::{AgentState, Answer, Info, InfoFlags, Message, Probe, ProbeKind, Reason, Reply, Scout};
pub use route::{Element, Route, RouteError};

/// The version of the protocol that this crate speaks.
pub const PROTOCOL_VERSION: u8 = 1;
