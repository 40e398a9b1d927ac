//! The header of every message.

use std::fmt;

use super::{HEADER_BYTES, VERSION, bytes_at};

/// What a message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Opcode(pub u8);

impl Opcode {
    /// Resolve a name or an address, or complete or verify a path.
    pub const RESOLVE: Self = Self(1);
    /// Tell the counters of an endpoint, or of all.
    pub const COUNTERS: Self = Self(2);
    /// Tell an endpoint with its addresses.
    pub const ENDPOINT: Self = Self(3);
    /// Tell as soon as something may be answered otherwise than before. `ibacm` has no such opcode; it looks at the lower four
    /// bits, in which this is the last.
    pub const CHANGED: Self = Self(15);

    /// The bit that makes a reply of an opcode.
    const REPLY: u8 = 0x80;

    /// Whether this is one of the opcodes above.
    pub fn is_known(self) -> bool {
        [Self::RESOLVE, Self::COUNTERS, Self::ENDPOINT, Self::CHANGED].contains(&self)
    }
}

/// What came of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Status(pub u8);

impl Status {
    /// It was done.
    pub const SUCCESS: Self = Self(0);
    /// Too many requests wait already.
    pub const NO_MEMORY: Self = Self(1);
    /// The request makes no sense, or there is no such endpoint.
    pub const INVALID: Self = Self(2);
    /// Nothing is known, or not yet, or what was to be verified is not so.
    pub const NO_DATA: Self = Self(3);
    /// The host is known, and no route leads there.
    pub const NOT_CONNECTED: Self = Self(5);
    /// Nobody has said to have this name or address in time.
    pub const TIMED_OUT: Self = Self(6);
    /// The source is no address of this machine, or there are two.
    pub const SOURCE_ADDRESS: Self = Self(7);
    /// The source is of a type that is not known.
    pub const SOURCE_TYPE: Self = Self(8);
    /// The destination is no address that could be resolved, or there are two.
    pub const DESTINATION_ADDRESS: Self = Self(9);
    /// The destination is of a type that is not known, or there is none.
    pub const DESTINATION_TYPE: Self = Self(10);

    /// Whether the request was done.
    pub const fn is_success(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::SUCCESS => "success",
            Self::NO_MEMORY => "too many requests wait already",
            Self::INVALID => "invalid request, or no such endpoint",
            Self::NO_DATA => "nothing is known of it",
            Self::NOT_CONNECTED => "no route leads there",
            Self::TIMED_OUT => "nobody has said to have this name or address",
            Self::SOURCE_ADDRESS => "the source is no address of this machine's endpoints",
            Self::SOURCE_TYPE => "the type of the source is not known",
            Self::DESTINATION_ADDRESS => "the destination cannot be resolved to one host",
            Self::DESTINATION_TYPE => "the type of the destination is not known",
            Self(other) => return write!(f, "status {other}"),
        })
    }
}

/// The header of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What it is for.
    pub opcode: Opcode,
    /// Whether it is a reply.
    pub is_reply: bool,
    /// What came of the request; zero in requests.
    pub status: Status,
    /// Three bytes whose meaning depends on the opcode.
    pub data: [u8; 3],
    /// How long the message is with its header.
    pub length: u16,
    /// What the client likes to know the reply by.
    pub tid: u64,
}

impl Header {
    /// A request's header.
    pub const fn request(opcode: Opcode, length: u16, tid: u64) -> Self {
        Self { opcode, is_reply: false, status: Status::SUCCESS, data: [0; 3], length, tid }
    }

    /// The header of the reply to the message with this header.
    #[must_use]
    pub const fn reply(self, status: Status, length: u16) -> Self {
        Self { is_reply: true, status, length, ..self }
    }

    /// The byte that says opcode and whether it is a reply.
    pub(super) const fn code(self) -> u8 {
        if self.is_reply { self.opcode.0 | Opcode::REPLY } else { self.opcode.0 }
    }

    /// Reads a header. The version is not looked at.
    pub(super) fn parse(bytes: &[u8; HEADER_BYTES]) -> Self {
        let opcode = Opcode(bytes[1] & !Opcode::REPLY);
        let length = bytes_at(bytes, 6);
        Self {
            opcode,
            is_reply: bytes[1] & Opcode::REPLY != 0,
            status: Status(bytes[2]),
            data: [bytes[3], bytes[4], bytes[5]],
            length: match opcode {
                Opcode::RESOLVE => u16::from_ne_bytes(length),
                _ => u16::from_be_bytes(length),
            },
            tid: u64::from_ne_bytes(bytes_at(bytes, 8)),
        }
    }

    /// Appends the header to `out`.
    pub(super) fn emit(self, out: &mut Vec<u8>) {
        let [a, b, c] = self.data;
        out.extend([VERSION, self.code(), self.status.0, a, b, c]);
        out.extend(match self.opcode {
            Opcode::RESOLVE => self.length.to_ne_bytes(),
            _ => self.length.to_be_bytes(),
        });
        out.extend(self.tid.to_ne_bytes());
    }
}
