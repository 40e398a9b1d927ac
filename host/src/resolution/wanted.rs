//! What is asked for: a name or an address of IP.

use std::fmt;
use std::net::IpAddr;

use crate::directory::HostName;

/// A name or an address of IP whose host is asked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wanted {
    /// A name in small letters, as capitals of ASCII do not matter.
    Name(HostName),
    /// An address.
    Ip(IpAddr),
}

impl Wanted {
    /// The kinds of the bytes that follow.
    const NAME: u8 = 1;
    const V4: u8 = 4;
    const V6: u8 = 6;
    /// The kind that says that nothing follows.
    const NOTHING: u8 = 0;

    /// What a text stands for: an address of IP, or else a name. `None` if it is neither.
    pub fn parse(text: &str) -> Option<Self> {
        match text.parse() {
            Ok(ip) => Some(Self::Ip(ip)),
            Err(_) => Some(Self::Name(text.to_ascii_lowercase().parse().ok()?)),
        }
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Name(name) => {
                let name = name.as_str().as_bytes();
                // A name has at most 64 bytes.
                bytes.extend([Self::NAME, name.len() as u8]);
                bytes.extend(name);
            }
            Self::Ip(IpAddr::V4(ip)) => {
                bytes.push(Self::V4);
                bytes.extend(ip.octets());
            }
            Self::Ip(IpAddr::V6(ip)) => {
                bytes.push(Self::V6);
                bytes.extend(ip.octets());
            }
        }
    }

    pub(super) fn write_option(wanted: Option<&Self>, bytes: &mut Vec<u8>) {
        match wanted {
            Some(wanted) => wanted.write(bytes),
            None => bytes.push(Self::NOTHING),
        }
    }

    /// Reads a name or an address, or that there is none, off the beginning of `bytes`. `None` if it is
    /// malformed.
    #[expect(clippy::option_option, reason = "the outer one is for what is malformed, as of all readers")]
    pub(super) fn read_option(bytes: &mut &[u8]) -> Option<Option<Self>> {
        if let Some((&Self::NOTHING, rest)) = bytes.split_first() {
            *bytes = rest;
            return Some(None);
        }
        Self::read(bytes).map(Some)
    }

    /// Reads a name or an address off the beginning of `bytes`. `None` if it is malformed, or is a name in
    /// capitals.
    pub(super) fn read(bytes: &mut &[u8]) -> Option<Self> {
        let [kind] = take::<1>(bytes)?;
        match kind {
            Self::NAME => {
                let [length] = take::<1>(bytes)?;
                let (name, rest) = bytes.split_at_checked(usize::from(length))?;
                *bytes = rest;
                let name = std::str::from_utf8(name).ok()?;
                let is_key = !name.bytes().any(|byte| byte.is_ascii_uppercase());
                is_key.then_some(Self::Name(name.parse().ok()?))
            }
            Self::V4 => Some(Self::Ip(IpAddr::from(take::<4>(bytes)?))),
            Self::V6 => Some(Self::Ip(IpAddr::from(take::<16>(bytes)?))),
            _ => None,
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Ip(ip) => ip.fmt(f),
        }
    }
}

pub(super) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}
