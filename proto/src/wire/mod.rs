//! The frames that travel over the fabric, as bytes and as values.
//!
//! A frame is route elements, then a header, then a body, then room for an authentication tag,
//! then a CRC-32. Links put their own header before it (Ethernet: destination, source, EtherType)
//! and may pad it behind: the header carries the length.

mod auth;
mod crossbar;
pub(crate) mod cursor;
mod data;
mod frame;
mod hello;
mod info;
pub mod layout;
mod message;
mod passed_checks;
mod printer;
mod probe;
mod reply;
mod round_trip;
mod route;
mod scout;
mod stamp;

pub use auth::{Key, KeyRing, KeyRingError, SECRET_BYTES, Seal, TAG_BYTES};
pub use crossbar::{Crossbar, CrossbarKind, Decision, DropReason};
pub use data::{Data, Undeliverable};
pub use frame::{AuthTrailer, Frame, FrameError, FrameKind, MAX_BODY_BYTES, MAX_FRAME_BYTES, split_route};
pub use hello::{Hello, HelloEnd, HelloFlags};
pub use info::{AgentState, Info, InfoFlags};
pub use message::Message;
pub use passed_checks::PassedChecks;
pub use printer::Printer;
pub use probe::{Probe, ProbeKind};
pub use reply::{Answer, Reply};
pub use round_trip::RoundTrip;
pub use route::{Element, Route, RouteError};
pub use scout::{Reason, Scout, ServiceNumber};
pub use stamp::{STAMP_BYTES, Stamp};

/// The version of the protocol that this crate speaks.
pub const PROTOCOL_VERSION: u8 = 4;
