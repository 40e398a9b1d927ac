//! Frames: header, stamp area, body, room for an authentication tag, CRC-32.
//!
//! ```text
//!  0        4         5       6             8
//! +--------+---------+-------+-------------+------------+------+--------------+--------+
//! | kind   | version | flags | body length | stamp area | body | auth trailer | CRC-32 |
//! | u32    | u8      | u8    | u16         | 46 bytes   |      | 40 bytes     | u32    |
//! +--------+---------+-------+-------------+------------+------+--------------+--------+
//!                                            if flagged          if flagged
//! ```
//!
//! The trailer is key number (u32), sequence number (u64), sequence number of the frame that this
//! one answers (u64), and a tag of 20 bytes: see [`Seal`].
//!
//! All numbers are big-endian. The CRC-32 covers all before it but the stamp area, which xbars
//! write and which has a CRC-32 of its own. This outer layout is the same in every version of the
//! protocol, so a frame of another version is told from a damaged one.

use std::ops::Range;

use thiserror::Error;

use super::auth::{Key, Seal, TAG_BYTES};
use super::cursor::{Unreadable, WireReader, Write};
use super::stamp::{STAMP_BYTES, Stamp};
use super::{PROTOCOL_VERSION, Route};

/// Most bytes in a frame, its padding included: what a link with jumbo frames carries.
pub const MAX_FRAME_BYTES: usize = 9216;

/// Most bytes in the body of a frame.
pub const MAX_BODY_BYTES: usize = MAX_FRAME_BYTES - HEADER_BYTES - STAMP_BYTES - AUTH_BYTES - CRC_BYTES;

/// Where the fields of a header lie.
pub(super) mod field {
    use super::Range;

    pub(crate) const KIND: Range<usize> = 0..4;
    pub(crate) const VERSION: usize = 4;
    pub(crate) const FLAGS: usize = 5;
    pub(crate) const BODY_LENGTH: Range<usize> = 6..8;
}

/// Bytes of the header.
pub(super) const HEADER_BYTES: usize = 8;
/// Bytes of the authentication trailer.
pub(super) const AUTH_BYTES: usize = 4 + 8 + 8 + TAG_BYTES;
/// Bytes of the CRC-32.
pub(super) const CRC_BYTES: usize = 4;

/// The header is followed by a stamp area.
pub(super) const FLAG_STAMP: u8 = 0x01;
/// The body is followed by an authentication trailer.
pub(super) const FLAG_AUTH: u8 = 0x02;

/// What a frame carries: the four type bytes after the route. The first bit is clear, which
/// ends the route.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FrameKind {
    /// A mapper [`Message`](super::Message) (0x0000_700f, Myrinet's number for mapping).
    Mapper,
    /// A user's Ethernet frame (0x0000_0009, Myrinet's number for Ethernet).
    Data,
    /// A tagged xbar's notice that it could not send a data frame on (0x0000_7010).
    Undeliverable,
    /// What neighbours at the two ends of a cable tell each other, a [`Hello`](super::Hello)
    /// (0x0000_7011). It has no route: it ends at the first port.
    Hello,
    /// Any other number.
    Unknown(u32),
}

impl FrameKind {
    /// The number that travels.
    pub const fn number(self) -> u32 {
        match self {
            Self::Mapper => 0x0000_700f,
            Self::Data => 0x0000_0009,
            Self::Undeliverable => 0x0000_7010,
            Self::Hello => 0x0000_7011,
            Self::Unknown(number) => number,
        }
    }

    /// The kind of the frame that begins with these bytes; nothing is checked but the first four.
    ///
    /// # Errors
    /// If there are fewer than four bytes.
    pub fn of(frame: &[u8]) -> Result<Self, FrameError> {
        WireReader::new(frame).u32().map(Self::from).map_err(|Unreadable| FrameError::Truncated)
    }
}

impl From<u32> for FrameKind {
    fn from(number: u32) -> Self {
        match number {
            0x0000_700f => Self::Mapper,
            0x0000_0009 => Self::Data,
            0x0000_7010 => Self::Undeliverable,
            0x0000_7011 => Self::Hello,
            other => Self::Unknown(other),
        }
    }
}

/// A frame that cannot be used, by kind: each kind has its counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Error)]
pub enum FrameError {
    /// It ends before its header or its declared length.
    #[error("the frame is too short")]
    Truncated,
    /// It is longer than anything that an agent sends.
    #[error("the frame is too long")]
    Oversized,
    /// The CRC-32 does not match.
    #[error("the CRC-32 does not match")]
    BadCrc,
    /// Bytes in place of a route that are none.
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
    /// It is signed, while this agent has no key: it cannot check the tag, and does not believe the frame.
    #[error("the frame is signed with key {0}, and this agent has no key")]
    UnexpectedTag(u32),
    /// It is not signed, while this agent has a key.
    #[error("the frame is not signed")]
    NoTag,
    /// It is signed with a key that this agent does not have.
    #[error("the frame is signed with key {0}, which this agent does not have")]
    UnknownKey(u32),
    /// The tag is not what the key makes: another secret under the same number, or a forgery.
    #[error("the tag of key {0} does not match: a forgery, or another secret under this number")]
    BadTag(u32),
    /// It is signed and was heard before, or is of a former session of its sender: a copy or a recording.
    #[error("the frame is a copy of an earlier one")]
    Replayed,
    /// It is more than one source, or all that are not known to be sound, may send.
    #[error("too many frames: the rate is limited")]
    RateLimited,
}

impl From<Unreadable> for FrameError {
    fn from(Unreadable: Unreadable) -> Self {
        Self::Malformed
    }
}

/// The authentication trailer behind the body, as it travels: see [`Seal`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AuthTrailer {
    /// Which key made the tag.
    pub key_id: u32,
    /// Grows with each frame of a sender, so that a replayed frame is told.
    pub sequence: u64,
    /// The sequence number of the frame that this one answers; 0 if it answers none.
    pub answers: u64,
    /// The tag.
    pub tag: [u8; TAG_BYTES],
}

/// A checked view over the bytes of a frame: its length and CRC-32 are right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame<'a> {
    /// The frame without padding.
    bytes: &'a [u8],
    kind: FrameKind,
    flags: u8,
    body: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The frame at the front of `bytes`, which begin at its type. Padding may follow.
    ///
    /// # Errors
    /// [`FrameError::BadRoute`] if route elements are left before the type,
    /// [`FrameError::UnknownKind`] if the type is not ours, and the other kinds if the frame is
    /// too short or long, damaged, or of another version.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        if bytes.len() > MAX_FRAME_BYTES {
            return Err(FrameError::Oversized);
        }
        if bytes.first().is_some_and(|&byte| byte >= 0x80) {
            return Err(FrameError::BadRoute);
        }
        let kind = FrameKind::of(bytes)?;
        if let FrameKind::Unknown(number) = kind {
            return Err(FrameError::UnknownKind(number));
        }
        let frame = Self::with_length_and_crc(bytes, kind)?;
        let version = frame.bytes[field::VERSION];
        if version != PROTOCOL_VERSION {
            return Err(FrameError::UnknownVersion(version));
        }
        if frame.flags & !(FLAG_STAMP | FLAG_AUTH) != 0 {
            return Err(FrameError::Malformed);
        }
        Ok(frame)
    }

    /// Finds the parts by the declared length and checks the CRC-32.
    fn with_length_and_crc(bytes: &'a [u8], kind: FrameKind) -> Result<Self, FrameError> {
        let mut reader = WireReader::new(bytes);
        let short = |Unreadable| FrameError::Truncated;
        let header = reader.bytes(HEADER_BYTES).map_err(short)?;
        let flags = header[field::FLAGS];
        let body_length = u16::from_be_bytes([header[6], header[7]]);
        reader.bytes(if flags & FLAG_STAMP == 0 { 0 } else { STAMP_BYTES }).map_err(short)?;
        let covered = reader.rest();
        let body = reader.bytes(usize::from(body_length)).map_err(short)?;
        reader.bytes(if flags & FLAG_AUTH == 0 { 0 } else { AUTH_BYTES }).map_err(short)?;
        let covered = &covered[..covered.len() - reader.rest().len()];
        let crc = reader.u32().map_err(short)?;
        if crc != crc_of(header, covered) {
            return Err(FrameError::BadCrc);
        }
        Ok(Self { bytes: &bytes[..bytes.len() - reader.rest().len()], kind, flags, body })
    }

    /// What it carries.
    pub const fn kind(&self) -> FrameKind {
        self.kind
    }

    /// What is between header and trailer.
    pub const fn body(&self) -> &'a [u8] {
        self.body
    }

    /// How many bytes it has, padding left out.
    pub const fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it has room for a stamp.
    pub const fn has_stamp_area(&self) -> bool {
        self.flags & FLAG_STAMP != 0
    }

    /// The stamp that an xbar wrote; `None` without a stamp area or in one that no xbar wrote.
    ///
    /// # Errors
    /// [`FrameError::BadCrc`] if the stamp is damaged.
    pub fn stamp(&self) -> Result<Option<Stamp>, FrameError> {
        if !self.has_stamp_area() {
            return Ok(None);
        }
        Stamp::read(&self.bytes[HEADER_BYTES..])
    }

    /// The authentication trailer, if there is one. Nothing in it is checked but that the CRC-32
    /// covers it.
    pub fn auth(&self) -> Option<AuthTrailer> {
        if self.flags & FLAG_AUTH == 0 {
            return None;
        }
        let end = self.bytes.len().checked_sub(CRC_BYTES)?;
        let mut reader = WireReader::new(self.bytes.get(end.checked_sub(AUTH_BYTES)?..end)?);
        let (key_id, sequence, answers) = (reader.u32().ok()?, reader.u64().ok()?, reader.u64().ok()?);
        Some(AuthTrailer { key_id, sequence, answers, tag: reader.rest().try_into().ok()? })
    }

    /// Whether it has a trailer, and this key made its tag.
    pub fn is_signed_by(&self, key: &Key) -> bool {
        let Some(auth) = self.auth().filter(|auth| auth.key_id == key.id()) else { return false };
        let (header, rest) = self.bytes.split_at(HEADER_BYTES);
        let behind_stamp = rest.get(if self.has_stamp_area() { STAMP_BYTES } else { 0 }..);
        let signed = behind_stamp.and_then(|bytes| bytes.get(..bytes.len() - TAG_BYTES - CRC_BYTES));
        signed.is_some_and(|signed| key.made(&auth.tag, [header, signed]))
    }
}

/// Lays out a frame whose body `write_body` writes, with an empty stamp area and a seal if wanted.
///
/// The body must fit [`MAX_BODY_BYTES`]; the callers bound what they write.
pub(super) fn build(
    kind: FrameKind,
    stamp_area: bool,
    seal: Option<Seal<'_>>,
    write_body: impl FnOnce(&mut Vec<u8>),
) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    let flags = (if stamp_area { FLAG_STAMP } else { 0 }) | (if seal.is_some() { FLAG_AUTH } else { 0 });
    out.put_u32(kind.number());
    out.put_u8(PROTOCOL_VERSION);
    out.put_u8(flags);
    out.put_u16(0);
    if stamp_area {
        out.extend_from_slice(&[0; STAMP_BYTES]);
    }
    let body_at = out.len();
    write_body(&mut out);
    debug_assert!(out.len() - body_at <= MAX_BODY_BYTES, "the body of a {kind:?} frame is too long");
    let body_length = (out.len() - body_at) as u16;
    out[field::BODY_LENGTH].copy_from_slice(&body_length.to_be_bytes());
    if let Some(Seal { key, sequence, answers }) = seal {
        out.put_u32(key.id());
        out.put_u64(sequence);
        out.put_u64(answers);
        let tag = key.tag([&out[..HEADER_BYTES], &out[body_at..]]);
        out.extend_from_slice(&tag);
    }
    let crc = crc_of(&out[..HEADER_BYTES], &out[body_at..]);
    out.put_u32(crc);
    out
}

/// The CRC-32 over the header and what follows the stamp area.
fn crc_of(header: &[u8], covered: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(header);
    hasher.update(covered);
    hasher.finalize()
}

/// The route at the front of `payload` (all behind the link's header) and the frame behind it.
///
/// # Errors
/// [`FrameError::BadRoute`] if an element is unknown or cut off, or the route is too long.
pub fn split_route(payload: &[u8]) -> Result<(Route, &[u8]), FrameError> {
    let (route, length) = Route::parse(payload).map_err(|_| FrameError::BadRoute)?;
    Ok((route, &payload[length..]))
}

#[cfg(test)]
mod tests;
