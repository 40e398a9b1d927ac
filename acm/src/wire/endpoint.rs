//! What the service tells of an endpoint.

use super::entry::{padded, text};
use super::{HEADER_BYTES, MOST_MESSAGE_BYTES, bytes_at};

/// The bytes behind the header that come before the addresses.
const FIXED_BYTES: usize = 80;
/// The bytes of an address, and of the provider's name.
const TEXT_BYTES: usize = 64;
/// The most addresses in one reply: today's clients take no longer message.
pub const MOST_ADDRESSES: usize = (MOST_MESSAGE_BYTES - HEADER_BYTES - FIXED_BYTES) / TEXT_BYTES;

/// An endpoint: a port of this machine, a partition, and the addresses that it goes by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointInfo {
    /// The GUID of the device.
    pub guid: u64,
    /// The number of the port.
    pub port: u8,
    /// How many ports the device has.
    pub ports: u8,
    /// The partition.
    pub pkey: u16,
    /// Who resolves for it; at most 64 bytes.
    pub provider: String,
    /// Names and addresses in words; at most [`MOST_ADDRESSES`] of at most 64 bytes.
    pub addresses: Vec<String>,
}

impl EndpointInfo {
    /// How long a reply with this many addresses is.
    const fn message_bytes(addresses: usize) -> usize {
        HEADER_BYTES + FIXED_BYTES + TEXT_BYTES * addresses
    }

    /// Whether a reply can be this long.
    pub(super) fn has_length(bytes: usize) -> bool {
        (0..=MOST_ADDRESSES).any(|addresses| Self::message_bytes(addresses) == bytes)
    }

    /// How long the reply with this endpoint is.
    pub(super) fn bytes(&self) -> usize {
        Self::message_bytes(self.addresses.len().min(MOST_ADDRESSES))
    }

    /// Reads what follows a header. If it announces more addresses than it has, the others are left out.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let count = usize::from(u16::from_be_bytes(bytes_at(bytes, 14)));
        let rest = bytes.get(FIXED_BYTES..).unwrap_or_default();
        Self {
            guid: u64::from_be_bytes(bytes_at(bytes, 0)),
            port: bytes_at::<1>(bytes, 8)[0],
            ports: bytes_at::<1>(bytes, 9)[0],
            pkey: u16::from_be_bytes(bytes_at(bytes, 12)),
            provider: text(&bytes_at::<TEXT_BYTES>(bytes, 16)),
            addresses: rest
                .as_chunks::<TEXT_BYTES>()
                .0
                .iter()
                .take(count)
                .map(|it| text(&it[..TEXT_BYTES - 1]))
                .collect(),
        }
    }

    /// Appends what follows a header to `out`.
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        let addresses = &self.addresses[..self.addresses.len().min(MOST_ADDRESSES)];
        out.extend(self.guid.to_be_bytes());
        out.extend([self.port, self.ports, 0, 0]);
        out.extend(self.pkey.to_be_bytes());
        out.extend((addresses.len() as u16).to_be_bytes());
        out.extend(padded::<TEXT_BYTES>(self.provider.as_bytes()));
        // The last byte stays zero, as today's clients print an address up to the first zero.
        addresses.iter().for_each(|it| {
            out.extend(padded::<{ TEXT_BYTES - 1 }>(it.as_bytes()));
            out.push(0);
        });
    }
}
