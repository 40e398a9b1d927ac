//! Joins short TCP segments into a long one.
//!
//! As in the kernel's own receive offload, segments are joined only if cutting the result gives the same
//! segments again. They must belong to one flow, follow each other, and have the same headers except for
//! length, sequence number and checksum; all but the last must be as long as the first. The checksum of each
//! segment is verified, as nobody verifies that of the long one.

use super::checksum::Sum;
use super::header::{HEADER_BYTES, OffloadHeader};
use super::{
    ETHERNET_BYTES, ETHERTYPE_AT, IPV4, IPV4_BYTES, IPV6, IPV6_BYTES, PROTOCOL_TCP, TCP_BYTES, put_u16, tcp,
    u16_at, u32_at,
};

/// How many flows have segments that wait to be joined, at most.
const MAX_FLOWS: usize = 8;
/// The most bytes of a joined packet behind the Ethernet header.
const MAX_PACKET_BYTES: usize = 65_535;

/// Segments that wait to be joined with more.
#[derive(Debug, Default)]
pub(in crate::link) struct Coalescer {
    open: Vec<Joined>,
    /// Buffers of packets that were handed over, to be used again.
    spare: Vec<Vec<u8>>,
}

/// The segments of one flow that have been joined so far.
#[derive(Debug)]
struct Joined {
    /// Room for the kernel's header, then the headers of the first segment, then all payloads.
    bytes: Vec<u8>,
    tcp_at: usize,
    ipv6: bool,
    payload_at: usize,
    /// Bytes of the first segment's payload.
    segment_bytes: usize,
    segments: usize,
    /// The sequence number that the next segment must have.
    next: u32,
}

/// A frame that can be joined.
struct Segment {
    tcp_at: usize,
    ipv6: bool,
    payload_at: usize,
    sequence: u32,
    /// Whether it has the flag PSH, so that it must be the last segment.
    push: bool,
}

impl Coalescer {
    /// Takes a frame. `write` is called for what is to be handed to the kernel at once, which is the kernel's
    /// header and a frame in two parts, of which the second may be empty. The rest waits for [`Self::flush`].
    pub(in crate::link) fn push(&mut self, frame: &[u8], mut write: impl FnMut(&[u8], &[u8])) {
        let segment = Segment::parse(frame);
        if let Some(place) = self.open.iter().position(|joined| joined.is_flow_of(frame)) {
            let fits = segment.as_ref().is_some_and(|segment| self.open[place].takes(segment, frame));
            if let Some(segment) = segment.as_ref().filter(|_| fits) {
                let joined = &mut self.open[place];
                joined.add(segment, frame);
                if joined.is_full(segment, frame) {
                    self.close(place, &mut write);
                }
                return;
            }
            // This frame must not overtake the segments of its flow that wait.
            self.close(place, &mut write);
        }
        match segment {
            Some(segment) if !segment.push => {
                if self.open.len() == MAX_FLOWS {
                    self.close(0, &mut write);
                }
                let bytes = self.spare.pop().unwrap_or_default();
                self.open.push(Joined::new(bytes, &segment, frame));
            }
            _ => write(&OffloadHeader::default().write(), frame),
        }
    }

    /// Hands all that waits to `write`.
    pub(in crate::link) fn flush(&mut self, mut write: impl FnMut(&[u8], &[u8])) {
        while !self.open.is_empty() {
            self.close(0, &mut write);
        }
    }

    fn close(&mut self, place: usize, write: &mut impl FnMut(&[u8], &[u8])) {
        let mut joined = self.open.remove(place);
        joined.finish();
        write(&joined.bytes, &[]);
        joined.bytes.clear();
        self.spare.push(joined.bytes);
    }
}

impl Joined {
    fn new(mut bytes: Vec<u8>, segment: &Segment, frame: &[u8]) -> Self {
        bytes.extend_from_slice(&[0; HEADER_BYTES]);
        bytes.extend_from_slice(frame);
        let &Segment { tcp_at, ipv6, payload_at, sequence, .. } = segment;
        let segment_bytes = frame.len() - payload_at;
        let next = sequence.wrapping_add(segment_bytes as u32);
        Self { bytes, tcp_at, ipv6, payload_at, segment_bytes, segments: 1, next }
    }

    fn frame(&self) -> &[u8] {
        &self.bytes[HEADER_BYTES..]
    }

    /// Whether a frame has the same addresses and ports.
    fn is_flow_of(&self, frame: &[u8]) -> bool {
        let ours = self.frame();
        let addresses =
            if self.ipv6 { ETHERNET_BYTES + 8..self.tcp_at } else { ETHERNET_BYTES + 12..self.tcp_at };
        let ports = self.tcp_at..self.tcp_at + tcp::SEQUENCE;
        frame.get(..ETHERNET_BYTES) == ours.get(..ETHERNET_BYTES)
            && frame.get(addresses.clone()) == ours.get(addresses)
            && frame.get(ports.clone()) == ours.get(ports)
    }

    /// Whether a segment of the same flow can be added.
    fn takes(&self, segment: &Segment, frame: &[u8]) -> bool {
        let ours = self.frame();
        let payload_bytes = frame.len() - segment.payload_at;
        // Of the IP header all must be the same but length, identification and checksum; of the TCP header
        // all but sequence number, flags and checksum.
        let ip = ETHERNET_BYTES;
        let same_ip = if self.ipv6 {
            frame[ip..ip + 4] == ours[ip..ip + 4] && frame[ip + 7] == ours[ip + 7]
        } else {
            frame[ip..ip + 2] == ours[ip..ip + 2] && frame[ip + 6..ip + 9] == ours[ip + 6..ip + 9]
        };
        let (at, end) = (self.tcp_at, self.payload_at);
        same_ip
            && (segment.tcp_at, segment.payload_at) == (at, end)
            && segment.sequence == self.next
            && payload_bytes <= self.segment_bytes
            && ours.len() - ETHERNET_BYTES + payload_bytes <= MAX_PACKET_BYTES
            && frame[at + 8..at + tcp::FLAGS] == ours[at + 8..at + tcp::FLAGS]
            && frame[at + 14..at + tcp::CHECKSUM] == ours[at + 14..at + tcp::CHECKSUM]
            && frame[at + 18..end] == ours[at + 18..end]
    }

    fn add(&mut self, segment: &Segment, frame: &[u8]) {
        let payload = &frame[segment.payload_at..];
        self.bytes.extend_from_slice(payload);
        self.bytes[HEADER_BYTES + self.tcp_at + tcp::FLAGS] |= frame[segment.tcp_at + tcp::FLAGS];
        self.next = self.next.wrapping_add(payload.len() as u32);
        self.segments += 1;
    }

    /// Whether nothing can follow the segment that was just added.
    fn is_full(&self, segment: &Segment, frame: &[u8]) -> bool {
        segment.push || frame.len() - segment.payload_at < self.segment_bytes
    }

    /// Fills in the kernel's header, and lengths and checksums of the joined packet.
    fn finish(&mut self) {
        let (header, frame) = self.bytes.split_at_mut(HEADER_BYTES);
        if self.segments == 1 {
            header.copy_from_slice(&OffloadHeader::default().write());
            return;
        }
        let told = OffloadHeader {
            checksum: Some((self.tcp_at, tcp::CHECKSUM)),
            segment_bytes: Some(self.segment_bytes),
            ipv6: self.ipv6,
            header_bytes: self.payload_at,
        };
        header.copy_from_slice(&told.write());
        let ip_bytes = frame.len() - ETHERNET_BYTES;
        let ip = &mut frame[ETHERNET_BYTES..self.tcp_at];
        if self.ipv6 {
            put_u16(ip, 4, (ip_bytes - IPV6_BYTES) as u16);
        } else {
            put_u16(ip, 2, ip_bytes as u16);
            put_u16(ip, 10, 0);
            let checksum = Sum::of(ip).checksum();
            put_u16(ip, 10, checksum);
        }
        let pseudo = pseudo_header(frame, self.tcp_at, self.ipv6).folded();
        put_u16(frame, self.tcp_at + tcp::CHECKSUM, pseudo);
    }
}

impl Segment {
    /// The frame as a segment, if it could be joined with others of its flow. It must be TCP over IP without
    /// options, with payload, correct checksums, and no flags but ACK and PSH.
    fn parse(frame: &[u8]) -> Option<Self> {
        let ip = frame.get(ETHERNET_BYTES..)?;
        let (ipv6, ip_bytes, packet_bytes, protocol) = match u16_at(frame, ETHERTYPE_AT)? {
            // The header must have no options, and the packet must not be a fragment.
            IPV4 if *ip.first()? == 0x45 && u16_at(ip, 6)? & 0x3fff == 0 => {
                (false, IPV4_BYTES, usize::from(u16_at(ip, 2)?), *ip.get(9)?)
            }
            IPV6 if *ip.first()? >> 4 == 6 => {
                (true, IPV6_BYTES, IPV6_BYTES + usize::from(u16_at(ip, 4)?), *ip.get(6)?)
            }
            _ => return None,
        };
        let tcp_at = ETHERNET_BYTES + ip_bytes;
        let header = frame.get(tcp_at..)?;
        let tcp_bytes = usize::from(header.get(tcp::DATA_OFFSET)? >> 4) * 4;
        let payload_at = tcp_at + tcp_bytes;
        let flags = *header.get(tcp::FLAGS)?;
        let plain = protocol == PROTOCOL_TCP && flags & !tcp::PSH == tcp::ACK;
        let whole = packet_bytes == ip.len() && tcp_bytes >= TCP_BYTES && payload_at < frame.len();
        if !plain || !whole || !ipv6 && Sum::of(&ip[..IPV4_BYTES]).folded() != 0xffff {
            return None;
        }
        let sum = pseudo_header(frame, tcp_at, ipv6).plus(Sum::of(header));
        let sequence = u32_at(header, tcp::SEQUENCE)?;
        let push = flags & tcp::PSH != 0;
        (sum.folded() == 0xffff).then_some(Self { tcp_at, ipv6, payload_at, sequence, push })
    }
}

/// The sum over the pseudo-header of a TCP frame.
fn pseudo_header(frame: &[u8], tcp_at: usize, ipv6: bool) -> Sum {
    let addresses_at = ETHERNET_BYTES + if ipv6 { 8 } else { 12 };
    let addresses = Sum::of(&frame[addresses_at..tcp_at]);
    addresses.add(PROTOCOL_TCP.into()).add((frame.len() - tcp_at) as u32)
}
