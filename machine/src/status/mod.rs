//! The unix sockets by which a daemon answers programs on its machine.
//!
//! On a status socket the daemon sends its status to whoever connects, reads nothing, and closes the
//! connection. On a socket for requests it first reads one line of JSON.

mod codec;
mod error;
mod question;
mod server;
#[cfg(test)]
mod tests;

pub use codec::CodecError;
pub use error::StatusSocketError;
pub use question::{Question, ask, names};
pub use server::{Client, StatusServer};
