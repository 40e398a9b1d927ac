//! Probes: frames that are meant to come back.

use super::cursor::{Unreadable, WireReader, Write};
use super::scout::REPLY_ROOM_BYTES;
use super::{Info, Route};

/// Why a probe was sent, and so how many route elements a host that it hits finds left.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ProbeKind {
    /// `t1..tk, 0, -tk..-t1`: comes back if an xbar is behind turn tk.
    Loopback,
    /// `A, d, reverse(B)`: comes back if A and B lead to one xbar.
    Compare,
    /// `t1..tk, identify, -tk..-t1`: comes back stamped if a tagged xbar is behind turn tk.
    Identify,
}

/// A frame that is meant to come back to its sender. Where it hits a host instead, and the route
/// left over begins with delta 0 or identify, that host's agent answers along the rest with a
/// [`Reply`](super::Reply): one frame tells a port with an xbar from a port with a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Probe {
    /// Tells this probe from all others of this sender.
    pub id: u32,
    /// Why it was sent.
    pub kind: ProbeKind,
    /// How many route elements are left over where it turns, the turning one included: what a
    /// host that answers must find left.
    pub left: u8,
    /// Who sent it.
    pub info: Info,
    /// The elements up to its turn: how a host that it hits is reached from the sender. Elements
    /// that were obeyed are gone from the frame, and absolute ones cannot be told from the rest.
    pub way_there: Route,
}

/// The numbers of kinds.
pub(super) mod code {
    pub(crate) const LOOPBACK: u8 = 0;
    pub(crate) const COMPARE: u8 = 1;
    pub(crate) const IDENTIFY: u8 = 2;
}

impl ProbeKind {
    const fn code(self) -> u8 {
        match self {
            Self::Loopback => code::LOOPBACK,
            Self::Compare => code::COMPARE,
            Self::Identify => code::IDENTIFY,
        }
    }

    const fn from_code(code: u8) -> Result<Self, Unreadable> {
        Ok(match code {
            code::LOOPBACK => Self::Loopback,
            code::COMPARE => Self::Compare,
            code::IDENTIFY => Self::Identify,
            _ => return Err(Unreadable),
        })
    }
}

impl Probe {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let Self { id, kind, left, info, way_there } = self;
        out.put_u32(*id);
        out.put_u8(kind.code());
        out.put_u8(*left);
        info.write(out);
        out.put_route(way_there);
        out.put_zeros(REPLY_ROOM_BYTES);
    }

    pub(super) fn read(reader: &mut WireReader<'_>) -> Result<Self, Unreadable> {
        let probe = Self {
            id: reader.u32()?,
            kind: ProbeKind::from_code(reader.u8()?)?,
            left: reader.u8()?,
            info: Info::read(reader)?,
            way_there: reader.route()?,
        };
        reader.zeros(REPLY_ROOM_BYTES)?;
        Ok(probe)
    }
}
