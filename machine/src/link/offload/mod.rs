//! Does what a network card would do for the kernel: it cuts long TCP segments, joins short ones, and
//! computes checksums. With it a system call on a tap interface transfers up to 64 KiB.
//!
//! - [`header`]: the kernel's header before each frame (`struct virtio_net_hdr`).
//! - [`segment`]: cuts a long TCP segment into frames.
//! - [`coalesce`]: joins frames into a long TCP segment.
//! - [`checksum`]: the Internet checksum (RFC 1071).

mod checksum;
mod coalesce;
mod header;
mod segment;
#[cfg(test)]
mod tests;

pub(super) use coalesce::Coalescer;
#[cfg(test)]
use header::{HEADER_BYTES, OffloadHeader};
pub(super) use segment::Segments;

/// Bytes of an Ethernet header.
const ETHERNET_BYTES: usize = 14;
/// The offset of the EtherType in a frame without a VLAN tag.
const ETHERTYPE_AT: usize = 12;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
const TCP_BYTES: usize = 20;
const PROTOCOL_TCP: u8 = 6;

/// Offsets of fields in a TCP header, and flags.
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
