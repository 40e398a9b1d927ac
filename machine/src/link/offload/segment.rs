//! Cuts a long TCP segment into frames that fit the link.

use super::checksum::Sum;
use super::header::{HEADER_BYTES, OffloadHeader};
use super::{
    ETHERNET_BYTES, ETHERTYPE_AT, IPV4, IPV4_BYTES, IPV6, IPV6_BYTES, TCP_BYTES, put_u16, tcp, u16_at, u32_at,
};

/// The EtherTypes of VLAN tags, of IEEE 802.1Q and 802.1ad.
const VLAN_TAGS: [u16; 2] = [0x8100, 0x88a8];
const VLAN_TAG_BYTES: usize = 4;

/// A frame that the kernel sent, which is handed out in segments.
#[derive(Debug, Default)]
pub(in crate::link) struct Segments {
    /// The kernel's header and the frame, in memory that is used again.
    bytes: Vec<u8>,
    /// How many of these bytes the kernel wrote; 0 once the whole frame was handed out.
    length: usize,
    plan: Option<Plan>,
}

/// How the frame is cut.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// Bytes of payload of each segment but the last.
    segment_bytes: usize,
    /// Where the IP header begins.
    ip_at: usize,
    ipv6: bool,
    /// Where the TCP header begins.
    tcp_at: usize,
    /// Where the payload begins.
    payload_at: usize,
    /// The sum over the pseudo-header without the length.
    pseudo: Sum,
    /// Bytes of payload that were handed out.
    done: usize,
    /// Segments that were handed out.
    count: u16,
}

impl Segments {
    /// The room for what the kernel hands over at once, which is its header and a frame. [`Self::begin`] is
    /// to be told how much it was.
    pub(in crate::link) fn room(&mut self) -> &mut [u8] {
        // This is room for 64 KiB of IP, the Ethernet header and VLAN tags.
        self.bytes.resize(HEADER_BYTES + 65_536 + 64, 0);
        &mut self.bytes
    }

    /// Takes in `length` bytes that were put into [`Self::room`]. Then [`Self::next_into`] hands out the
    /// segments. A frame that needs no cutting, or whose header makes no sense, is handed out whole.
    pub(in crate::link) fn begin(&mut self, length: usize) {
        self.length = length.min(self.bytes.len());
        self.plan = None;
        let Some((header, frame)) = self.bytes[..self.length].split_first_chunk_mut::<HEADER_BYTES>() else {
            self.length = 0;
            return;
        };
        let Some(header) = OffloadHeader::read(header) else { return };
        match header.segment_bytes {
            Some(segment_bytes) => self.plan = Plan::new(frame, &header, segment_bytes),
            None => complete_checksum(frame, &header),
        }
    }

    /// Whether all was handed out.
    pub(in crate::link) fn is_empty(&self) -> bool {
        self.length <= HEADER_BYTES
    }

    /// Puts the next frame into `out`; returns how long it is, or `None` if there is none. What does
    /// not fit `out` is cut off.
    pub(in crate::link) fn next_into(&mut self, out: &mut [u8]) -> Option<usize> {
        let frame = self.bytes.get(HEADER_BYTES..self.length).filter(|frame| !frame.is_empty())?;
        let Some(plan) = &mut self.plan else {
            let length = frame.len().min(out.len());
            out[..length].copy_from_slice(&frame[..length]);
            self.length = 0;
            return Some(length);
        };
        let length = plan.cut(frame, out);
        if plan.payload_at + plan.done >= frame.len() {
            self.length = 0;
        }
        length
    }
}

impl Plan {
    fn new(frame: &[u8], header: &OffloadHeader, segment_bytes: usize) -> Option<Self> {
        let (tcp_at, _) = header.checksum?;
        let ip_at = ip_at(frame)?;
        let (ipv6, ip_bytes) = match u16_at(frame, ip_at - 2)? {
            IPV4 => (false, IPV4_BYTES),
            IPV6 => (true, IPV6_BYTES),
            _ => return None,
        };
        let tcp_bytes = usize::from(frame.get(tcp_at + tcp::DATA_OFFSET)? >> 4) * 4;
        let payload_at = tcp_at + tcp_bytes;
        let sound = tcp_at >= ip_at + ip_bytes && tcp_bytes >= TCP_BYTES && payload_at < frame.len();
        if !sound || segment_bytes == 0 || header.ipv6 != ipv6 {
            return None;
        }
        // In the checksum field the kernel left the sum over the pseudo-header with the length of the whole.
        let whole = u16_at(frame, tcp_at + tcp::CHECKSUM)?;
        let pseudo = Sum::default().add(whole.into()).less((frame.len() - tcp_at) as u32);
        Some(Self { segment_bytes, ip_at, ipv6, tcp_at, payload_at, pseudo, done: 0, count: 0 })
    }

    /// Writes the next segment.
    fn cut(&mut self, frame: &[u8], out: &mut [u8]) -> Option<usize> {
        let payload = &frame[self.payload_at..];
        let end = (self.done + self.segment_bytes).min(payload.len());
        let part = &payload[self.done..end];
        let length = self.payload_at + part.len();
        let last = end == payload.len();
        let (first_byte, first) = (self.done, self.count == 0);
        (self.done, self.count) = (end, self.count.wrapping_add(1));
        let out = out.get_mut(..length)?;
        let (headers, rest) = out.split_at_mut(self.payload_at);
        headers.copy_from_slice(&frame[..self.payload_at]);
        rest.copy_from_slice(part);
        self.fix_ip(headers, part.len());
        let header = &mut headers[self.tcp_at..];
        let sequence = u32_at(header, tcp::SEQUENCE)?.wrapping_add(first_byte as u32);
        header[tcp::SEQUENCE..tcp::SEQUENCE + 4].copy_from_slice(&sequence.to_be_bytes());
        if !last {
            header[tcp::FLAGS] &= !(tcp::FIN | tcp::PSH);
        }
        if !first {
            header[tcp::FLAGS] &= !tcp::CWR;
        }
        put_u16(header, tcp::CHECKSUM, 0);
        let tcp_bytes = header.len() + part.len();
        // The length of a TCP header is a multiple of four bytes, so the payload begins at an even offset.
        let sum = self.pseudo.add(tcp_bytes as u32).plus(Sum::of(header)).plus(Sum::of(rest));
        put_u16(header, tcp::CHECKSUM, sum.checksum());
        Some(length)
    }

    /// Writes length, identification and checksum of one segment into its IP header.
    fn fix_ip(&self, headers: &mut [u8], payload_bytes: usize) {
        let length = headers.len() - self.ip_at + payload_bytes;
        let ip = &mut headers[self.ip_at..self.tcp_at];
        if self.ipv6 {
            put_u16(ip, 4, (length - IPV6_BYTES) as u16);
            return;
        }
        put_u16(ip, 2, length as u16);
        let identification = u16_at(ip, 4).unwrap_or_default().wrapping_add(self.count.wrapping_sub(1));
        put_u16(ip, 4, identification);
        put_u16(ip, 10, 0);
        let checksum = Sum::of(ip).checksum();
        put_u16(ip, 10, checksum);
    }
}

/// Where the IP header begins, behind any VLAN tags.
fn ip_at(frame: &[u8]) -> Option<usize> {
    let mut ip_at = ETHERNET_BYTES;
    while VLAN_TAGS.contains(&u16_at(frame, ETHERTYPE_AT + ip_at - ETHERNET_BYTES)?) {
        ip_at += VLAN_TAG_BYTES;
    }
    Some(ip_at)
}

/// Computes the checksum that the kernel left to be done.
fn complete_checksum(frame: &mut [u8], header: &OffloadHeader) {
    let Some((start, offset)) = header.checksum else { return };
    let Some(covered) = frame.get_mut(start..) else { return };
    // In UDP zero means that there is no checksum, so its other form is written. In TCP both are valid.
    let checksum = match Sum::of(covered).checksum() {
        0 => 0xffff,
        checksum => checksum,
    };
    put_u16(covered, offset, checksum);
}
