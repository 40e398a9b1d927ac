//! What the kernel says of a frame, and is told of one: `struct virtio_net_hdr` of Linux.

/// How many bytes the header takes.
pub(in crate::link) const HEADER_BYTES: usize = 10;

const FLAG_NEEDS_CHECKSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
/// Set beside the kind if the first segment says that the congestion window was reduced.
const GSO_ECN: u8 = 0x80;

/// What is to be done with a frame before it can travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::link) struct Header {
    /// Where the part begins whose checksum is missing, and where in that part it goes. The field
    /// holds the sum over the pseudo-header.
    pub(super) checksum: Option<(usize, usize)>,
    /// Most bytes of payload of each segment, if it is one long segment.
    pub(super) segment_bytes: Option<usize>,
    /// Whether it is IPv6, if it is one long segment.
    pub(super) ipv6: bool,
    /// Bytes of all headers, if it is one long segment.
    pub(super) header_bytes: usize,
}

impl Header {
    /// Reads it. `None` if it asks for something that was not offered.
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

    /// The bytes of it.
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
