//! The status socket: what a daemon says of itself to programs on its machine.
//!
//! A client connects to the unix socket, and the daemon sends one status and hangs up. There is nothing to
//! ask, so nothing to parse from whoever connects.

mod codec;
mod socket;

pub use codec::CodecError;
pub use socket::{Client, Question, StatusServer, StatusSocketError, ask, names};
