//! Scouts: messages to an agent, by reason.

use super::cursor::{Unreadable, WireReader, Write};
use super::{Answer, Info, RoundTrip};
use crate::map::{MapVersion, Place, PortRef};

/// Why a scout was sent; a reply names the reason of what it answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Who is there?
    Mapping,
    /// Are you there, and which map do you hold? Carries up to [`Reason::MAX_SUSPECTS`] ports
    /// where a fault was seen, in the numbering of the map that became invalid, named by its version.
    QueryMapVersion {
        /// The map that the suspects refer to; `NONE` without suspects.
        seen: MapVersion,
        /// The ports at which that map no longer holds.
        suspects: Vec<PortRef>,
    },
    /// I am your parent in the tree of this map: come and collect it.
    Tree {
        /// The map to collect.
        version: MapVersion,
        /// The level of the global mapper that made it.
        level: u8,
    },
    /// Are you still there, with a valid map of the same version?
    Verify,
    /// Send me this piece of this map, if it fits.
    MapRequest {
        /// The map.
        version: MapVersion,
        /// The piece, counted from 0.
        piece: u16,
        /// Most bytes that the piece may have. The scout carries as many zeros: no answer is
        /// longer than what asked for it, so that nobody can have others flood a third.
        /// At most [`Answer::MAX_PIECE_BYTES`](super::Answer::MAX_PIECE_BYTES).
        room_bytes: u16,
    },
    /// Send nothing of your own accord until I say so or this many milliseconds pass.
    Pause {
        /// Milliseconds after which the pause ends by itself.
        max_ms: u16,
    },
    /// Go on.
    Resume,
    /// Print this (`--printeur`).
    Printf {
        /// The text, at most [`Reason::MAX_PRINTF_BYTES`] bytes of UTF-8.
        text: String,
    },
    /// Another host has your address. Carries up to [`Reason::MAX_PLACES`] places where hosts with it
    /// are, in the numbering of the sender's map.
    AddressConflict {
        /// Where they are, as far as the sender knows.
        places: Vec<Place>,
    },
    /// Does this path carry users' frames? Whoever is at its end answers at once.
    Alive {
        /// How long the answer shall be, its route and all: it comes as a data frame of this length.
        /// Not longer than what asks is when it arrives. If this leaves no room for a data frame,
        /// the answer comes as a mapper frame.
        answer_bytes: u16,
    },
    /// Are you there, and are you who you say? Answered by every agent, in every state.
    Hello,
    /// A question of a service that runs beside the agent: see [`ServiceNumber`].
    Service {
        /// Which service.
        service: ServiceNumber,
        /// Most bytes that the answer may have beyond those of the question. The scout carries as many
        /// zeros, as for [`Reason::MapRequest`]. At most [`Reason::MAX_SERVICE_BYTES`].
        room_bytes: u16,
        /// The question, at most [`Reason::MAX_SERVICE_BYTES`] bytes.
        question: Vec<u8>,
    },
}

/// Which service a question or an answer is of. What the bodies say is the service's own affair.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ServiceNumber(pub u8);

impl ServiceNumber {
    /// The directory: names and addresses of hosts.
    pub const DIRECTORY: Self = Self(1);
    /// Resolution: who has a name or an address that the directory does not tell.
    pub const RESOLUTION: Self = Self(2);
    /// Which cables lose frames, as the global mapper is told.
    pub const LOSS_REPORTS: Self = Self(3);

    /// All services, with the names that records of frames show.
    pub const ALL: [(Self, &str); 3] = [
        (Self::DIRECTORY, "directory"),
        (Self::RESOLUTION, "resolution"),
        (Self::LOSS_REPORTS, "loss_reports"),
    ];
}

impl Reason {
    /// Most suspects in one scout.
    pub const MAX_SUSPECTS: usize = 8;
    /// Longest text of a network printf.
    pub const MAX_PRINTF_BYTES: usize = 512;
    /// Most places in one scout.
    pub const MAX_PLACES: usize = 8;
    /// Longest question of a service, and longest answer: with the longest routes they fit a frame of
    /// 1,500 bytes.
    pub const MAX_SERVICE_BYTES: usize = 768;
}

/// A small, unreliable message to an agent. It carries the way back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scout {
    /// Tells this scout from all others of this sender.
    pub id: u32,
    /// Who sent it.
    pub info: Info,
    /// The way that it takes, which the receiver gives as the way back in what it asks in turn, and the
    /// way back to the sender.
    pub way: RoundTrip,
    /// Why it was sent.
    pub reason: Reason,
}

/// Zeros in every probe and scout, so that no reply is longer than what it answers.
pub(super) const REPLY_ROOM_BYTES: usize = 8;

/// The numbers of reasons, which those of answers share.
pub(super) mod code {
    pub(crate) const MAPPING: u8 = 1;
    pub(crate) const QUERY_MAP_VERSION: u8 = 2;
    pub(crate) const TREE: u8 = 3;
    pub(crate) const VERIFY: u8 = 4;
    pub(crate) const MAP_REQUEST: u8 = 5;
    pub(crate) const PAUSE: u8 = 6;
    pub(crate) const RESUME: u8 = 7;
    pub(crate) const PRINTF: u8 = 8;
    pub(crate) const ALIVE: u8 = 9;
    pub(crate) const ADDRESS_CONFLICT: u8 = 10;
    pub(crate) const HELLO: u8 = 11;
    pub(crate) const SERVICE: u8 = 12;
}

impl Reason {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Mapping => out.put_u8(code::MAPPING),
            Self::QueryMapVersion { seen, suspects } => {
                let suspects = &suspects[..suspects.len().min(Self::MAX_SUSPECTS)];
                out.put_u8(code::QUERY_MAP_VERSION);
                out.put_version(*seen);
                out.put_u8(suspects.len() as u8);
                for PortRef { xbar, port } in suspects {
                    out.put_u32(*xbar);
                    out.put_u8(*port);
                }
            }
            Self::Tree { version, level } => {
                out.put_u8(code::TREE);
                out.put_version(*version);
                out.put_u8(*level);
            }
            Self::Verify => out.put_u8(code::VERIFY),
            Self::MapRequest { version, piece, room_bytes } => {
                let room_bytes = (*room_bytes).min(Answer::MAX_PIECE_BYTES as u16);
                out.put_u8(code::MAP_REQUEST);
                out.put_version(*version);
                out.put_u16(*piece);
                out.put_u16(room_bytes);
                out.put_zeros(usize::from(room_bytes));
            }
            Self::Pause { max_ms } => {
                out.put_u8(code::PAUSE);
                out.put_u16(*max_ms);
            }
            Self::Resume => out.put_u8(code::RESUME),
            Self::Alive { answer_bytes } => {
                out.put_u8(code::ALIVE);
                out.put_u16(*answer_bytes);
            }
            Self::Printf { text } => {
                let text = &text[..text.floor_char_boundary(Self::MAX_PRINTF_BYTES)];
                out.put_u8(code::PRINTF);
                out.put_u16(text.len() as u16);
                out.extend_from_slice(text.as_bytes());
            }
            Self::AddressConflict { places } => {
                let places = &places[..places.len().min(Self::MAX_PLACES)];
                out.put_u8(code::ADDRESS_CONFLICT);
                out.put_u8(places.len() as u8);
                places.iter().for_each(|place| write_place(place, out));
            }
            Self::Hello => out.put_u8(code::HELLO),
            Self::Service { service, room_bytes, question } => {
                let question = &question[..question.len().min(Self::MAX_SERVICE_BYTES)];
                let room_bytes = (*room_bytes).min(Self::MAX_SERVICE_BYTES as u16);
                out.put_u8(code::SERVICE);
                out.put_u8(service.0);
                out.put_u16(question.len() as u16);
                out.extend_from_slice(question);
                out.put_u16(room_bytes);
                out.put_zeros(usize::from(room_bytes));
            }
        }
    }

    fn read(reader: &mut WireReader<'_>) -> Result<Self, Unreadable> {
        Ok(match reader.u8()? {
            code::MAPPING => Self::Mapping,
            code::QUERY_MAP_VERSION => {
                Self::QueryMapVersion { seen: reader.version()?, suspects: read_suspects(reader)? }
            }
            code::TREE => Self::Tree { version: reader.version()?, level: reader.u8()? },
            code::VERIFY => Self::Verify,
            code::MAP_REQUEST => Self::MapRequest {
                version: reader.version()?,
                piece: reader.u16()?,
                room_bytes: read_room(reader, Answer::MAX_PIECE_BYTES)?,
            },
            code::PAUSE => Self::Pause { max_ms: reader.u16()? },
            code::RESUME => Self::Resume,
            code::ALIVE => Self::Alive { answer_bytes: reader.u16()? },
            code::PRINTF => Self::Printf { text: read_text(reader)? },
            code::ADDRESS_CONFLICT => Self::AddressConflict { places: read_places(reader)? },
            code::HELLO => Self::Hello,
            code::SERVICE => Self::Service {
                service: ServiceNumber(reader.u8()?),
                question: read_service_body(reader)?,
                room_bytes: read_room(reader, Self::MAX_SERVICE_BYTES)?,
            },
            _ => return Err(Unreadable),
        })
    }
}

/// What a service asks or answers.
pub(super) fn read_service_body(reader: &mut WireReader<'_>) -> Result<Vec<u8>, Unreadable> {
    let length = usize::from(reader.u16()?);
    if length > Reason::MAX_SERVICE_BYTES {
        return Err(Unreadable);
    }
    reader.bytes(length).map(<[u8]>::to_vec)
}

fn read_suspects(reader: &mut WireReader<'_>) -> Result<Vec<PortRef>, Unreadable> {
    let count = usize::from(reader.u8()?);
    if count > Reason::MAX_SUSPECTS {
        return Err(Unreadable);
    }
    (0..count).map(|_| Ok(PortRef { xbar: reader.u32()?, port: reader.u8()? })).collect()
}

fn read_room(reader: &mut WireReader<'_>, most_bytes: usize) -> Result<u16, Unreadable> {
    let room_bytes = reader.u16()?;
    if usize::from(room_bytes) > most_bytes {
        return Err(Unreadable);
    }
    reader.zeros(usize::from(room_bytes))?;
    Ok(room_bytes)
}

fn write_place(Place { at, tag }: &Place, out: &mut Vec<u8>) {
    out.put_u32(at.xbar);
    out.put_u8(at.port);
    out.put_u8(u8::from(tag.is_some()));
    if let Some(tag) = tag {
        out.put_u64(*tag);
    }
}

fn read_places(reader: &mut WireReader<'_>) -> Result<Vec<Place>, Unreadable> {
    let count = usize::from(reader.u8()?);
    if count > Reason::MAX_PLACES {
        return Err(Unreadable);
    }
    (0..count).map(|_| read_place(reader)).collect()
}

fn read_place(reader: &mut WireReader<'_>) -> Result<Place, Unreadable> {
    let at = PortRef { xbar: reader.u32()?, port: reader.u8()? };
    let tag = match reader.u8()? {
        0 => None,
        1 => Some(reader.u64()?),
        _ => return Err(Unreadable),
    };
    Ok(Place { at, tag })
}

fn read_text(reader: &mut WireReader<'_>) -> Result<String, Unreadable> {
    let length = usize::from(reader.u16()?);
    if length > Reason::MAX_PRINTF_BYTES {
        return Err(Unreadable);
    }
    std::str::from_utf8(reader.bytes(length)?).map(str::to_owned).map_err(|_| Unreadable)
}

impl Scout {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let Self { id, info, way: RoundTrip { there, back }, reason } = self;
        out.put_u32(*id);
        info.write(out);
        out.put_route(back);
        out.put_route(there);
        out.put_zeros(REPLY_ROOM_BYTES);
        reason.write(out);
    }

    pub(super) fn read(reader: &mut WireReader<'_>) -> Result<Self, Unreadable> {
        let (id, info) = (reader.u32()?, Info::read(reader)?);
        let (back, there) = (reader.route()?, reader.route()?);
        reader.zeros(REPLY_ROOM_BYTES)?;
        Ok(Self { id, info, way: RoundTrip { there, back }, reason: Reason::read(reader)? })
    }
}
