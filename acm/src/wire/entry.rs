//! Entries: an address or a path, and what it is in its message.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{ENTRY_BYTES, PathRecord, bytes_at};

/// The bytes of an entry's address or path.
const INFO_BYTES: usize = 64;
/// Where the address or path begins in an entry.
const INFO_AT: usize = 8;

/// What an entry is in its message, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EntryFlags(pub u32);

impl EntryFlags {
    /// In a request: the source.
    pub const SOURCE: Self = Self(1);
    /// In a request: the destination.
    pub const DESTINATION: Self = Self(2);
    /// In a request: answer at once, with what is known.
    pub const NO_DELAY: Self = Self(1 << 30);
    /// In a request: compare with the map and the routes in force.
    pub const VERIFY: Self = Self(1 << 31);
    /// In a reply: a path for messages of all kinds, primary, outbound, and back by its reverse.
    pub const PATH: Self = Self(0x1 | 0x2 | 0x8 | 0x20);

    /// Whether all bits of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These bits and those of `other`.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These bits without those of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// What an entry holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryType(pub u16);

impl EntryType {
    /// A name.
    pub const NAME: Self = Self(1);
    /// An address of IPv4.
    pub const V4: Self = Self(2);
    /// An address of IPv6, or a GID.
    pub const V6: Self = Self(3);
    /// A path.
    pub const PATH: Self = Self(0x10);
}

/// A name or an address of IP.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// A host's name, at most 64 bytes. What is longer is cut off.
    Name(String),
    /// An address of IPv4.
    V4(Ipv4Addr),
    /// An address of IPv6, or a GID.
    V6(Ipv6Addr),
}

impl Address {
    /// What a text stands for by its look: an address of IP, or else a name.
    pub fn parse(text: &str) -> Self {
        text.parse::<IpAddr>().map_or_else(|_| Self::Name(text.to_owned()), Self::from)
    }

    /// The same for all spellings of one name: capitals of ASCII do not matter.
    #[must_use]
    pub fn into_key(self) -> Self {
        match self {
            Self::Name(mut name) => {
                name.make_ascii_lowercase();
                Self::Name(name)
            }
            address => address,
        }
    }

    /// What an entry with this address says of its type.
    pub const fn kind(&self) -> EntryType {
        match self {
            Self::Name(_) => EntryType::NAME,
            Self::V4(_) => EntryType::V4,
            Self::V6(_) => EntryType::V6,
        }
    }

    fn info(&self) -> [u8; INFO_BYTES] {
        match self {
            Self::Name(name) => padded(name.as_bytes()),
            Self::V4(ip) => padded(&ip.octets()),
            Self::V6(ip) => padded(&ip.octets()),
        }
    }
}

impl From<IpAddr> for Address {
    fn from(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(ip) => Self::V4(ip),
            IpAddr::V6(ip) => Self::V6(ip),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::V4(ip) => ip.fmt(f),
            Self::V6(ip) => ip.fmt(f),
        }
    }
}

/// These bytes with zeros behind them; what is too long is cut off.
pub(super) fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut padded = [0; N];
    padded.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    padded
}

/// The text before the first zero. If it is no UTF-8, a question mark stands for each byte that is not of ASCII, so that
/// it gets no longer.
pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let bytes = &bytes[..end];
    let replaced = |&byte: &u8| if byte.is_ascii() { char::from(byte) } else { '?' };
    std::str::from_utf8(bytes).map_or_else(|_| bytes.iter().map(replaced).collect(), str::to_owned)
}

/// An entry of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// What it is in its message.
    pub flags: EntryFlags,
    /// What it holds.
    pub kind: EntryType,
    /// The name, address or path, with zeros behind it.
    pub info: [u8; INFO_BYTES],
}

impl Entry {
    /// An entry with an address.
    pub fn of_address(flags: EntryFlags, address: &Address) -> Self {
        Self { flags, kind: address.kind(), info: address.info() }
    }

    /// An entry with a path.
    pub fn of_path(flags: EntryFlags, path: &PathRecord) -> Self {
        Self { flags, kind: EntryType::PATH, info: path.to_bytes() }
    }

    /// The address in it, if it holds one.
    pub fn address(&self) -> Option<Address> {
        match self.kind {
            EntryType::NAME => Some(Address::Name(text(&self.info))),
            EntryType::V4 => Some(Address::V4(Ipv4Addr::from(bytes_at::<4>(&self.info, 0)))),
            EntryType::V6 => Some(Address::V6(Ipv6Addr::from(bytes_at::<16>(&self.info, 0)))),
            _ => None,
        }
    }

    /// The path in it, if it holds one.
    pub fn path(&self) -> Option<PathRecord> {
        (self.kind == EntryType::PATH).then(|| PathRecord::parse(&self.info))
    }

    /// Reads an entry.
    pub(super) fn parse(bytes: &[u8; ENTRY_BYTES]) -> Self {
        Self {
            flags: EntryFlags(u32::from_ne_bytes(bytes_at(bytes, 0))),
            kind: EntryType(u16::from_ne_bytes(bytes_at(bytes, 4))),
            info: bytes_at(bytes, INFO_AT),
        }
    }

    /// All entries behind the header of a message.
    pub(super) fn parse_all(bytes: &[u8]) -> impl Iterator<Item = Self> {
        bytes.as_chunks::<ENTRY_BYTES>().0.iter().map(Self::parse)
    }

    /// Appends the entry to `out`.
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        out.extend(self.flags.0.to_ne_bytes());
        out.extend(self.kind.0.to_ne_bytes());
        out.extend([0; 2]);
        out.extend(self.info);
    }
}
