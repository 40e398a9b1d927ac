//! Frames: header, body, room for an authentication tag, CRC-32; and the stamp.

use thiserror::Error;

/// What a frame carries: the four type bytes after the route. The first bit is clear, which
/// ends the route.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FrameKind {
    /// A mapper [`Message`](super::Message) (0x0000_700f, Myrinet's number for mapping).
    Mapper,
    /// A user's Ethernet frame (0x0000_0009, Myrinet's number for Ethernet).
    Data,
    /// Any other number.
    Unknown(u32),
}

/// What a tagged xbar writes into a frame that asks it to identify itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stamp {
    /// The xbar's 64-bit identity.
    pub tag: u64,
    /// How many ports it has.
    pub ports: u8,
    /// The port by which the frame came in.
    pub arrival: u8,
    /// Which ports have carrier: bit `p % 8` of byte `p / 8` for port p.
    pub carrier: [u8; 32],
}

/// A frame that cannot be used, by kind: each kind has its counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Error)]
pub enum FrameError {
    /// Ends before its header or its declared length.
    #[error("the frame is too short")]
    Truncated,
    /// Longer than anything that we send.
    #[error("the frame is too long")]
    Oversized,
    /// The CRC-32 does not match.
    #[error("the CRC-32 does not match")]
    BadCrc,
    /// A route that is no route.
    #[error("the route is malformed")]
    BadRoute,
    /// A version of the protocol that this agent does not speak.
    #[error("protocol version {0} is not spoken here")]
    UnknownVersion(u8),
    /// A type that this agent does not know.
    #[error("frame type {0:#010x} is not known here")]
    UnknownKind(u32),
    /// A body whose fields make no sense.
    #[error("the message is malformed")]
    Malformed,
}
