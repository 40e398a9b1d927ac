//! Global identifiers.

use std::fmt;
use std::net::Ipv6Addr;

/// A global identifier: of a port its subnet's prefix and its GUID, or of a multicast group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Gid(pub u128);

impl Gid {
    /// The length in bytes.
    pub const BYTES: usize = 16;
    /// The prefix of a subnet that was given none, by which a port is also known within its own.
    pub const LINK_PREFIX: u64 = 0xFE80 << 48;

    /// The GID of a port.
    pub const fn of_port(prefix: u64, guid: u64) -> Self {
        Self((prefix as u128) << 64 | guid as u128)
    }

    /// The prefix of the subnet.
    pub const fn prefix(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// The GUID of the port.
    pub const fn guid(self) -> u64 {
        self.0 as u64
    }

    /// Whether it is the GID of a group.
    pub const fn is_multicast(self) -> bool {
        self.0 >> 120 == 0xFF
    }

    pub(super) fn parse(data: &[u8], at: usize) -> Self {
        Self(u128::from_be_bytes(crate::mad::bytes(data, at)))
    }

    pub(super) const fn emit(self) -> [u8; Self::BYTES] {
        self.0.to_be_bytes()
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv6Addr::from_bits(self.0).fmt(f)
    }
}
