//! The header that stands before each frame to and from the kernel: `struct virtio_net_hdr` of Linux.

/// How many bytes the header takes.
pub(in crate::link) const HEADER_BYTES: usize = 10;

const FLAG_NEEDS_CHECKSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
/// A flag beside the kind. It is set if the first segment has TCP's flag CWR.
const GSO_ECN: u8 = 0x80;

/// What remains to be done with a frame before it can be sent over a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::link) struct OffloadHeader {
    /// The offset of the part whose checksum is missing, and the offset of the checksum field in that part.
    /// The field holds the sum over the pseudo-header.
    pub(super) checksum: Option<(usize, usize)>,
    /// If the frame is a long segment that is to be cut, the most bytes of payload of each piece.
    pub(super) segment_bytes: Option<usize>,
    /// Whether a long segment is IPv6.
    pub(super) ipv6: bool,
    /// The bytes of all headers of a long segment.
    pub(super) header_bytes: usize,
}

impl OffloadHeader {
    /// Reads a header. `None` if it asks for something that was not offered to the kernel.
    pub(super) fn read(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let [flags, gso, h0, h1, g0, g1, s0, s1, o0, o1] = *bytes;
        let word = |low: u8, high: u8| usize::from(u16::from_ne_bytes([low, high]));
        let kind = gso & !GSO_ECN;
        let long = match kind {
            GSO_NONE => false,
            GSO_TCPV4 | GSO_TCPV6 => true,
            _ => return None,
        };
        Some(Self {
            checksum: (flags & FLAG_NEEDS_CHECKSUM != 0).then_some((word(s0, s1), word(o0, o1))),
            segment_bytes: long.then_some(word(g0, g1)),
            ipv6: kind == GSO_TCPV6,
            header_bytes: word(h0, h1),
        })
    }

    /// The header as bytes.
    pub(super) fn write(&self) -> [u8; HEADER_BYTES] {
        let gso = match (self.segment_bytes, self.ipv6) {
            (None, _) => GSO_NONE,
            (Some(_), false) => GSO_TCPV4,
            (Some(_), true) => GSO_TCPV6,
        };
        let (start, offset) = self.checksum.unwrap_or_default();
        let [h0, h1] = (self.header_bytes as u16).to_ne_bytes();
        let [g0, g1] = (self.segment_bytes.unwrap_or_default() as u16).to_ne_bytes();
        let [s0, s1] = (start as u16).to_ne_bytes();
        let [o0, o1] = (offset as u16).to_ne_bytes();
        [u8::from(self.checksum.is_some()) * FLAG_NEEDS_CHECKSUM, gso, h0, h1, g0, g1, s0, s1, o0, o1]
    }
}
