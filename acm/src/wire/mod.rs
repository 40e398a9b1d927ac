//! The messages between a client and the service on its machine, as rdma-core's `ibacm` speaks them
//! (`infiniband/acm.h`), laid out by hand.
//!
//! A message is a [`Header`] of 16 bytes and what belongs to its opcode. The length of requests to resolve, and of
//! their replies, is in the machine's byte order, as both ends are on one machine; that of all others is in
//! network order. Decoders take any bytes and never panic; codes that are not known are kept as they are.

mod endpoint;
mod entry;
mod header;
mod path_record;
mod reply;
mod request;
#[cfg(test)]
mod tests;

pub use endpoint::{EndpointInfo, MOST_ADDRESSES};
pub use entry::{Address, Entry, EntryFlags, EntryType};
pub use header::{Header, Opcode, Status};
pub use path_record::{PathRecord, Selected};
pub use reply::Reply;
pub use request::{Question, Request, Sought};

use thiserror::Error;

/// The version of the protocol.
pub const VERSION: u8 = 1;
/// How long a header is.
pub const HEADER_BYTES: usize = 16;
/// How long an entry is.
pub const ENTRY_BYTES: usize = 72;
/// The most entries of a request.
pub const MOST_ENTRIES: usize = 8;
/// The longest message that today's clients take, and the longest request.
pub const MOST_MESSAGE_BYTES: usize = HEADER_BYTES + MOST_ENTRIES * ENTRY_BYTES;
/// How many counters there are.
pub const COUNTERS: usize = 7;

/// Why bytes are no message. Who sends such bytes is not spoken to any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Malformed {
    /// It is of another version.
    #[error("version {0}, where this is version {VERSION}")]
    Version(u8),
    /// The opcode is unknown, or is that of a reply where a request is due, or the other way round.
    #[error("the opcode {0:#04x} is not known here")]
    Opcode(u8),
    /// No message of that opcode is that long.
    #[error("a message of opcode {opcode:#04x} has not {bytes} bytes")]
    Length {
        /// The opcode.
        opcode: u8,
        /// The length that the header gives.
        bytes: u16,
    },
    /// The bytes end before the message does.
    #[error("the message is cut off")]
    CutOff,
    /// An entry is not what the request needs there.
    #[error("an entry of type {0:#06x} does not belong there")]
    Entry(u16),
}

/// How long the request at the beginning of `buffer` is, or `None` if the buffer does not hold all of it yet.
///
/// # Errors
/// If whatever follows cannot make a request of these bytes.
pub fn request_bytes(buffer: &[u8]) -> Result<Option<usize>, Malformed> {
    message_bytes(buffer, Request::has_length, false)
}

/// How long the reply at the beginning of `buffer` is, or `None` if the buffer does not hold all of it yet.
///
/// # Errors
/// If whatever follows cannot make a reply of these bytes.
pub fn reply_bytes(buffer: &[u8]) -> Result<Option<usize>, Malformed> {
    message_bytes(buffer, Reply::has_length, true)
}

fn message_bytes(
    buffer: &[u8],
    has_length: fn(Opcode, usize) -> bool,
    is_reply: bool,
) -> Result<Option<usize>, Malformed> {
    // What is wrong with the first bytes is seen before there are more.
    if let Some(&version) = buffer.first().filter(|&&version| version != VERSION) {
        return Err(Malformed::Version(version));
    }
    let Some(header) = buffer.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let header = Header::parse(header);
    if header.is_reply != is_reply || !header.opcode.is_known() {
        return Err(Malformed::Opcode(header.code()));
    }
    let bytes = usize::from(header.length);
    if !has_length(header.opcode, bytes) {
        return Err(Malformed::Length { opcode: header.code(), bytes: header.length });
    }
    Ok((buffer.len() >= bytes).then_some(bytes))
}

/// The `N` bytes at `at`; zeros where there are none, so that reading never fails. Callers have looked at the length
/// before.
fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<N>()).copied().unwrap_or([0; N])
}
