//! What a network card would do for the kernel: cutting long TCP segments to size, joining short
//! ones, and checksums. A tap interface that does it hands over up to 64 KiB a system call.
//!
//! - [`header`]: what the kernel says of a frame (`struct virtio_net_hdr`).
//! - [`segment`]: one long frame becomes many.
//! - [`coalesce`]: many frames become one long one.
//! - [`checksum`]: the Internet checksum (RFC 1071).

mod checksum;
mod coalesce;
mod header;
mod segment;
#[cfg(test)]
mod tests;

pub(super) use coalesce::Coalescer;
#[cfg(test)]
use header::{HEADER_BYTES, Header};
pub(super) use segment::Segments;

/// Bytes of an Ethernet header.
const ETHERNET_BYTES: usize = 14;
/// Where the EtherType lies.
const ETHERTYPE_AT: usize = 12;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
const TCP_BYTES: usize = 20;
const PROTOCOL_TCP: u8 = 6;

/// Where fields lie in a TCP header.
mod tcp {
    pub(super) const SEQUENCE: usize = 4;
    pub(super) const DATA_OFFSET: usize = 12;
    pub(super) const FLAGS: usize = 13;
    pub(super) const CHECKSUM: usize = 16;

    pub(super) const FIN: u8 = 0x01;
    pub(super) const PSH: u8 = 0x08;
    pub(super) const ACK: u8 = 0x10;
    pub(super) const CWR: u8 = 0x80;
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Writes a field, which must lie within `bytes`.
fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(field) = bytes.get_mut(at..at + 2) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}
