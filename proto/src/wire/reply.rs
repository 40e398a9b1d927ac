//! Replies to probes and scouts.

use super::cursor::{Unreadable, WireReader, Write};
use super::scout::{code, read_service_body};
use super::{Info, Reason, ServiceNumber};
use crate::Mac;
use crate::map::MapVersion;

/// What a reply answers. The payloads are those of the reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// To a [`Probe`](super::Probe) that hit this host.
    Probe,
    /// To [`Reason::Mapping`](super::Reason::Mapping).
    Mapping,
    /// To [`Reason::QueryMapVersion`](super::Reason::QueryMapVersion).
    QueryMapVersion,
    /// To [`Reason::Tree`](super::Reason::Tree).
    Tree,
    /// To [`Reason::Verify`](super::Reason::Verify).
    Verify,
    /// To [`Reason::MapRequest`](super::Reason::MapRequest): a piece, or nothing if this agent does
    /// not hold that map or the piece does not fit the room that was given.
    MapRequest {
        /// The map.
        version: MapVersion,
        /// The piece, counted from 0.
        piece: u16,
        /// How many pieces the map has.
        pieces: u16,
        /// How much room the piece takes; 0 if it cannot be had here.
        needs_bytes: u16,
        /// The piece's bytes; empty if it cannot be had here or does not fit.
        bytes: Vec<u8>,
    },
    /// To [`Reason::Pause`](super::Reason::Pause).
    Pause,
    /// To [`Reason::Resume`](super::Reason::Resume).
    Resume,
    /// To [`Reason::Printf`](super::Reason::Printf).
    Printf,
    /// To [`Reason::AddressConflict`](super::Reason::AddressConflict).
    AddressConflict,
    /// To [`Reason::Alive`](super::Reason::Alive).
    Alive,
    /// To [`Reason::Hello`](super::Reason::Hello).
    Hello,
    /// To [`Reason::Service`](super::Reason::Service).
    Service {
        /// Which service.
        service: ServiceNumber,
        /// The answer, at most [`Reason::MAX_SERVICE_BYTES`] bytes; `None` if this host does not run the
        /// service, or has no answer.
        answer: Option<Vec<u8>>,
    },
}

/// The reply to a probe or scout.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The id of what it answers.
    pub id: u32,
    /// The address of the agent that asked: a reply that strays is told by it.
    pub to: Mac,
    /// Who answers.
    pub info: Info,
    /// What it answers, and with what.
    pub answer: Answer,
}

/// The number of [`Answer::Probe`]; the others share those of reasons.
pub(super) const CODE_PROBE: u8 = 0;

impl Answer {
    /// Most bytes of a piece. A longer one is sent as one that cannot be had.
    pub const MAX_PIECE_BYTES: usize = 8192;

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Probe => out.put_u8(CODE_PROBE),
            Self::Mapping => out.put_u8(code::MAPPING),
            Self::QueryMapVersion => out.put_u8(code::QUERY_MAP_VERSION),
            Self::Tree => out.put_u8(code::TREE),
            Self::Verify => out.put_u8(code::VERIFY),
            Self::MapRequest { version, piece, pieces, needs_bytes, bytes } => {
                let bytes = if bytes.len() > Self::MAX_PIECE_BYTES { &[] } else { bytes.as_slice() };
                out.put_u8(code::MAP_REQUEST);
                out.put_version(*version);
                out.put_u16(*piece);
                out.put_u16(*pieces);
                out.put_u16(*needs_bytes);
                out.put_u16(bytes.len() as u16);
                out.extend_from_slice(bytes);
            }
            Self::Pause => out.put_u8(code::PAUSE),
            Self::Resume => out.put_u8(code::RESUME),
            Self::Printf => out.put_u8(code::PRINTF),
            Self::AddressConflict => out.put_u8(code::ADDRESS_CONFLICT),
            Self::Alive => out.put_u8(code::ALIVE),
            Self::Hello => out.put_u8(code::HELLO),
            Self::Service { service, answer } => {
                let answer = answer.as_ref().filter(|answer| answer.len() <= Reason::MAX_SERVICE_BYTES);
                out.put_u8(code::SERVICE);
                out.put_u8(service.0);
                out.put_u8(u8::from(answer.is_some()));
                if let Some(answer) = answer {
                    out.put_u16(answer.len() as u16);
                    out.extend_from_slice(answer);
                }
            }
        }
    }

    fn read(reader: &mut WireReader<'_>) -> Result<Self, Unreadable> {
        Ok(match reader.u8()? {
            CODE_PROBE => Self::Probe,
            code::MAPPING => Self::Mapping,
            code::QUERY_MAP_VERSION => Self::QueryMapVersion,
            code::TREE => Self::Tree,
            code::VERIFY => Self::Verify,
            code::MAP_REQUEST => Self::MapRequest {
                version: reader.version()?,
                piece: reader.u16()?,
                pieces: reader.u16()?,
                needs_bytes: reader.u16()?,
                bytes: read_piece(reader)?,
            },
            code::PAUSE => Self::Pause,
            code::RESUME => Self::Resume,
            code::PRINTF => Self::Printf,
            code::ADDRESS_CONFLICT => Self::AddressConflict,
            code::ALIVE => Self::Alive,
            code::HELLO => Self::Hello,
            code::SERVICE => {
                Self::Service { service: ServiceNumber(reader.u8()?), answer: read_answer(reader)? }
            }
            _ => return Err(Unreadable),
        })
    }
}

fn read_piece(reader: &mut WireReader<'_>) -> Result<Vec<u8>, Unreadable> {
    let length = usize::from(reader.u16()?);
    if length > Answer::MAX_PIECE_BYTES {
        return Err(Unreadable);
    }
    reader.bytes(length).map(<[u8]>::to_vec)
}

fn read_answer(reader: &mut WireReader<'_>) -> Result<Option<Vec<u8>>, Unreadable> {
    match reader.u8()? {
        0 => Ok(None),
        1 => read_service_body(reader).map(Some),
        _ => Err(Unreadable),
    }
}

impl Reply {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let Self { id, to, info, answer } = self;
        out.put_u32(*id);
        out.put_mac(*to);
        info.write(out);
        answer.write(out);
    }

    pub(super) fn read(reader: &mut WireReader<'_>) -> Result<Self, Unreadable> {
        Ok(Self {
            id: reader.u32()?,
            to: reader.mac()?,
            info: Info::read(reader)?,
            answer: Answer::read(reader)?,
        })
    }
}
