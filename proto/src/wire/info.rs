//! What an agent says of itself in every message.
//!
//! ```text
//!  0       1     7           8         12      13            23       25      26    28
//! +-------+-----+-----------+---------+-------+-------------+--------+-------+-----+-------+
//! | level | MAC | host type | session | state | map version | pieces | flags | MTU | ports |
//! +-------+-----+-----------+---------+-------+-------------+--------+-------+-----+-------+
//! ```

use std::fmt;

use strum::{IntoStaticStr, VariantArray};

use super::cursor::{Unreadable, WireReader, Write};
use crate::map::{LinkMtu, MapVersion, Rank};

/// Where an agent is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum AgentState {
    /// Waits: it may not map (level 0) or has just begun.
    #[default]
    Starting,
    /// Explores the fabric.
    Mapping,
    /// Knows of a higher mapper and waits for its map.
    Passive,
    /// Collects the map from its parent, piece by piece.
    Fetching,
    /// Has a map; its routes are being computed.
    Routing,
    /// Has routes and verifies.
    Configured,
    /// Mapped and found no other host.
    Isolated,
}

/// What an agent says of itself in every message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Info {
    /// Its rank: level and MAC.
    pub rank: Rank,
    /// What its host runs.
    pub host_type: u8,
    /// Drawn at random at each start: tells an agent from its former self.
    pub session: u32,
    /// Where it is in its life.
    pub state: AgentState,
    /// The valid map that it holds, or [`MapVersion::NONE`].
    pub version: MapVersion,
    /// How many pieces that map has.
    pub pieces: u16,
    /// See [`InfoFlags`].
    pub flags: InfoFlags,
    /// How long frames may be that it sends and takes.
    pub mtu: LinkMtu,
}

/// What an agent says of itself, in single bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InfoFlags {
    /// It and all below it in the tree are configured with the map it holds.
    pub subtree_complete: bool,
    /// The global mapper has said that the whole network is configured with the map it holds.
    pub network_complete: bool,
    /// It prints what others send it to print (`--printeur`).
    pub printeur: bool,
    /// Another host has its address: it takes no part until it is alone with it.
    pub contested: bool,
    /// It is set to `--non-clos`; what it obeys is what its map says.
    pub non_clos: bool,
}

impl fmt::Display for AgentState {
    /// The name in lower case, as status displays show it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.into())
    }
}

impl AgentState {
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Starting => 0,
            Self::Mapping => 1,
            Self::Passive => 2,
            Self::Fetching => 3,
            Self::Routing => 4,
            Self::Configured => 5,
            Self::Isolated => 6,
        }
    }

    const fn from_code(code: u8) -> Result<Self, Unreadable> {
        Ok(match code {
            0 => Self::Starting,
            1 => Self::Mapping,
            2 => Self::Passive,
            3 => Self::Fetching,
            4 => Self::Routing,
            5 => Self::Configured,
            6 => Self::Isolated,
            _ => return Err(Unreadable),
        })
    }
}

impl InfoFlags {
    pub(super) const SUBTREE_COMPLETE: u8 = 0x01;
    pub(super) const NETWORK_COMPLETE: u8 = 0x02;
    pub(super) const PRINTEUR: u8 = 0x04;
    pub(super) const CONTESTED: u8 = 0x08;
    pub(super) const NON_CLOS: u8 = 0x10;
    const ALL: u8 =
        Self::SUBTREE_COMPLETE | Self::NETWORK_COMPLETE | Self::PRINTEUR | Self::CONTESTED | Self::NON_CLOS;

    fn bits(self) -> u8 {
        let Self { subtree_complete, network_complete, printeur, contested, non_clos } = self;
        let bit = |set, bit| if set { bit } else { 0 };
        bit(subtree_complete, Self::SUBTREE_COMPLETE)
            | bit(network_complete, Self::NETWORK_COMPLETE)
            | bit(printeur, Self::PRINTEUR)
            | bit(contested, Self::CONTESTED)
            | bit(non_clos, Self::NON_CLOS)
    }

    const fn from_bits(bits: u8) -> Result<Self, Unreadable> {
        if bits & !Self::ALL != 0 {
            return Err(Unreadable);
        }
        Ok(Self {
            subtree_complete: bits & Self::SUBTREE_COMPLETE != 0,
            network_complete: bits & Self::NETWORK_COMPLETE != 0,
            printeur: bits & Self::PRINTEUR != 0,
            contested: bits & Self::CONTESTED != 0,
            non_clos: bits & Self::NON_CLOS != 0,
        })
    }
}

impl Info {
    /// How many bytes it travels as.
    pub const BYTES: usize = 32;

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let Self { rank: Rank { level, mac }, host_type, session, state, version, pieces, flags, mtu } =
            *self;
        out.put_u8(level);
        out.put_mac(mac);
        out.put_u8(host_type);
        out.put_u32(session);
        out.put_u8(state.code());
        out.put_version(version);
        out.put_u16(pieces);
        out.put_u8(flags.bits());
        mtu.write(out);
    }

    pub(super) fn read(reader: &mut WireReader<'_>) -> Result<Self, Unreadable> {
        Ok(Self {
            rank: Rank { level: reader.u8()?, mac: reader.mac()? },
            host_type: reader.u8()?,
            session: reader.u32()?,
            state: AgentState::from_code(reader.u8()?)?,
            version: reader.version()?,
            pieces: reader.u16()?,
            flags: InfoFlags::from_bits(reader.u8()?)?,
            mtu: LinkMtu::read(reader)?,
        })
    }
}
