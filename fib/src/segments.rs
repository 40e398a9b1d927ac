//! Source routes as IPv6 segments (SRv6).
//!
//! A route element has 16 bits. As many as fit stand behind the block of 32 bits in one address (NEXT-C-SID of
//! RFC 9800, which Linux calls `next-csid`): who obeys the first one shifts all others to the front. So an
//! element is stripped, as crossbars strip theirs, and six fit:
//!
//! ```text
//!   fcbb:bb00  :f102      :3          :1          :fff4
//!   block      out of     out of port out of port take the outer
//!              own port 2 3 there     1 there     header off
//! ```
//!
//! | element | who obeys it | what it says |
//! |---|---|---|
//! | `0001` to `00ff` | a crossbar | leave by this port |
//! | `0100` | a crossbar | leave by port 0 |
//! | `f1pp` | the sender | leave by port `pp`; the neighbour there strips it |
//! | `f2pp` | a machine, to itself | the next address out of port `pp`; never in a packet |
//! | `fff4`, `fff6` | a host | this is an IPv4 or IPv6 packet for you |
//!
//! A kernel that knows no compressed elements gets a segment for each one. Both kinds may be obeyed side by side.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::object::IpPrefix;

/// The bits that all segments begin with.
const BLOCK: [u16; 2] = [0xfcbb, 0xbb00];
/// How many bits those are.
pub const BLOCK_BITS: u8 = 32;
/// How many bits an element has.
pub const ELEMENT_BITS: u8 = 16;
/// How many elements fit into one address.
const ELEMENTS_PER_ADDRESS: usize = 6;
/// The most segments of a route: as many as keep a packet's header small. A longer route is none for the kernel.
pub const MOST_SEGMENTS: usize = 16;
/// The bytes of the outer header.
pub const OUTER_HEADER_BYTES: u32 = 40;
/// The element for port 0, as an element of zeros would end the list.
const PORT_ZERO: u16 = 0x0100;

/// One element of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Element {
    /// Leave by this port of the sender's. An agent alone has one port, which is port 0.
    FirstPort(u8),
    /// Leave by this port of the crossbar.
    Port(u8),
    /// Deliver the IPv4 packet inside.
    DeliverV4,
    /// Deliver the IPv6 packet inside.
    DeliverV6,
}

impl Element {
    /// The element as it stands in an address.
    pub const fn bits(self) -> u16 {
        match self {
            Self::FirstPort(port) => 0xf100 | port as u16,
            Self::Port(0) => PORT_ZERO,
            Self::Port(port) => port as u16,
            Self::DeliverV4 => 0xfff4,
            Self::DeliverV6 => 0xfff6,
        }
    }

    /// The element that these bits are; `None` if they are none.
    pub const fn of_bits(bits: u16) -> Option<Self> {
        match bits {
            0x0001..=0x00ff => Some(Self::Port(bits as u8)),
            PORT_ZERO => Some(Self::Port(0)),
            0xf100..=0xf1ff => Some(Self::FirstPort(bits as u8)),
            0xfff4 => Some(Self::DeliverV4),
            0xfff6 => Some(Self::DeliverV6),
            _ => None,
        }
    }

    /// The addresses that begin with this element, for the one who obeys it.
    pub fn prefix(self) -> IpPrefix {
        beginning_with(&[self])
    }
}

/// The addresses that begin with these elements, of which as many count as fit an address.
pub fn beginning_with(elements: &[Element]) -> IpPrefix {
    let elements = &elements[..elements.len().min(ELEMENTS_PER_ADDRESS)];
    let bits: Vec<u16> = elements.iter().map(|element| element.bits()).collect();
    IpPrefix::v6(address(&bits), BLOCK_BITS + ELEMENT_BITS * elements.len() as u8)
}

/// The bytes that all segments begin with.
pub const fn block() -> [u8; BLOCK_BITS as usize / 8] {
    let [[a, b], [c, d]] = [BLOCK[0].to_be_bytes(), BLOCK[1].to_be_bytes()];
    [a, b, c, d]
}

/// The network of all segments.
pub fn all() -> IpPrefix {
    IpPrefix::v6(address(&[]), BLOCK_BITS)
}

/// The addresses that begin with a [`Element::FirstPort`], of whichever port.
pub fn all_first_ports() -> IpPrefix {
    IpPrefix::v6(address(&[0xf100]), BLOCK_BITS + 8)
}

/// The address by which a machine says to itself which port a packet leaves by. As it stands in no packet, nobody else's
/// packets take its route.
pub fn towards_port(port: u8) -> Ipv6Addr {
    address(&[0xf200 | u16::from(port)])
}

/// The same for a packet of IPv4 without an outer header. No interface chooses an address of 169.254.255.0/24 for itself (RFC
/// 3927, section 2.1).
pub const fn towards_port_v4(port: u8) -> Ipv4Addr {
    Ipv4Addr::new(169, 254, 255, port)
}

/// The address of the neighbour at the other end of a cable, whichever cable it is. It is link-local, and known
/// to this machine alone: the kernel needs some address to keep the neighbour's link address under.
pub const NEIGHBOUR: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0x6d61, 0x7070);

/// The same for packets of IPv4 that leave without an outer header. By an address of IPv6 they would go, too, but the kernel
/// keeps a frame's header ready for packets of a neighbour's own version alone, and puts it together for each of the others.
/// No interface chooses an address of 169.254.0.0/24 for itself (RFC 3927, section 2.1).
pub const NEIGHBOUR_V4: Ipv4Addr = Ipv4Addr::new(169, 254, 0, 109);

/// How elements stand in addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Packing {
    /// Six to an address.
    Compressed,
    /// One segment to an address, for crossbars whose kernels know no other form.
    Full,
}

impl Packing {
    /// The closest packing of a kernel that knows several elements in one address, or does not.
    pub const fn closest(knows_compressed: bool) -> Self {
        if knows_compressed { Self::Compressed } else { Self::Full }
    }
}

/// A route as segments, the first one first; `None` if it has no element or takes more than [`MOST_SEGMENTS`].
pub fn segments(elements: &[Element], packing: Packing) -> Option<Vec<Ipv6Addr>> {
    let per_address = match packing {
        Packing::Compressed => ELEMENTS_PER_ADDRESS,
        Packing::Full => 1,
    };
    let bits: Vec<u16> = elements.iter().map(|element| element.bits()).collect();
    let segments: Vec<_> = bits.chunks(per_address).map(address).collect();
    (1..=MOST_SEGMENTS).contains(&segments.len()).then_some(segments)
}

/// The elements of segments up to the delivery at their end, which packets of IPv4 and IPv6 share that take one way; `None` if
/// they do not end so.
pub fn way(segments: &[Ipv6Addr]) -> Option<Vec<Element>> {
    let mut elements = elements(segments)?;
    matches!(elements.pop(), Some(Element::DeliverV4 | Element::DeliverV6)).then_some(elements)
}

/// The elements of segments, in order; `None` if some address is no segment.
pub fn elements(segments: &[Ipv6Addr]) -> Option<Vec<Element>> {
    let mut elements = Vec::new();
    for segment in segments {
        let words = segment.segments();
        let (_, bits) = words.split_first_chunk::<2>().filter(|(block, _)| **block == BLOCK)?;
        let used = bits.iter().position(|&bits| bits == 0).unwrap_or(bits.len());
        if used == 0 || bits[used..].iter().any(|&bits| bits != 0) {
            return None;
        }
        for &bits in &bits[..used] {
            elements.push(Element::of_bits(bits)?);
        }
    }
    Some(elements)
}

/// How many bytes a packet grows by when it takes a route of these segments.
pub const fn overhead_bytes(segments: usize) -> u32 {
    match segments {
        0 | 1 => OUTER_HEADER_BYTES,
        // The first segment stands in the destination address alone.
        more => OUTER_HEADER_BYTES + 8 + 16 * (more as u32 - 1),
    }
}

/// How much of a route's MTU a kernel leaves unused by itself, so that there is room for the headers of segments. A
/// route says how long packets may be once the kernel has taken that off.
///
/// Linux takes off the outer header and a routing header of all segments, though the first one stands in the outer
/// header alone. A kernel may do otherwise, so it is asked, and none of it is known unless it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftUnused([u16; MOST_SEGMENTS]);

impl LeftUnused {
    /// Nothing is left unused, as far as one knows.
    pub const NOTHING: Self = Self([0; MOST_SEGMENTS]);

    /// What a kernel leaves unused for one segment, two segments, and so on, in bytes.
    pub const fn new(bytes: [u16; MOST_SEGMENTS]) -> Self {
        Self(bytes)
    }

    /// What the kernel leaves unused for so many segments, in bytes: nothing without any.
    pub fn bytes(&self, segments: usize) -> u32 {
        segments.checked_sub(1).and_then(|at| self.0.get(at)).copied().unwrap_or(0).into()
    }
}

fn address(elements: &[u16]) -> Ipv6Addr {
    let mut words = [0; 8];
    words[..2].copy_from_slice(&BLOCK);
    for (word, element) in words[2..].iter_mut().zip(elements) {
        *word = *element;
    }
    Ipv6Addr::from(words)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn element() -> impl Strategy<Value = Element> {
        prop_oneof![
            any::<u8>().prop_map(Element::Port),
            any::<u8>().prop_map(Element::FirstPort),
            Just(Element::DeliverV4),
            Just(Element::DeliverV6),
        ]
    }

    proptest! {
        #[test]
        fn a_route_comes_back_from_its_segments(
            route in proptest::collection::vec(element(), 1..16),
            packing in prop_oneof![Just(Packing::Compressed), Just(Packing::Full)],
        ) {
            let segments = segments(&route, packing).unwrap();
            prop_assert_eq!(elements(&segments), Some(route));
            prop_assert!(segments.iter().all(|&segment| all().contains(segment.into())));
        }
    }

    #[test]
    fn a_route_is_written_as_people_read_it() {
        let route = [Element::FirstPort(2), Element::Port(3), Element::Port(1), Element::DeliverV4];
        let compressed = segments(&route, Packing::Compressed).unwrap();
        assert_eq!(compressed, ["fcbb:bb00:f102:3:1:fff4::".parse::<Ipv6Addr>().unwrap()]);
        let full = segments(&route, Packing::Full).unwrap();
        assert_eq!(
            full.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["fcbb:bb00:f102::", "fcbb:bb00:3::", "fcbb:bb00:1::", "fcbb:bb00:fff4::"]
        );
        assert_eq!(segments(&[], Packing::Full), None);
        assert_eq!(segments(&[Element::Port(1); 17], Packing::Full), None);
        assert_eq!((overhead_bytes(1), overhead_bytes(3)), (40, 80));
    }

    #[test]
    fn a_kernel_leaves_nothing_unused_that_it_was_not_asked_about() {
        assert_eq!(LeftUnused::NOTHING.bytes(1), 0);
        let mut told = [0; MOST_SEGMENTS];
        (told[0], told[1]) = (64, 80);
        let told = LeftUnused::new(told);
        assert_eq!([0, 1, 2, MOST_SEGMENTS + 1].map(|segments| told.bytes(segments)), [0, 64, 80, 0]);
    }

    #[test]
    fn what_is_no_segment_has_no_elements() {
        for other in ["fe80::1", "fcbb:bb00::", "fcbb:bb00:1:0:2::", "fcbb:bb00:f201::", "fcbb:bb01:1::"] {
            assert_eq!(elements(&[other.parse().unwrap()]), None, "{other}");
        }
    }

    #[test]
    fn no_element_is_taken_for_another() {
        let (ours, first) = (towards_port(7), Element::FirstPort(7).prefix());
        assert!(all_first_ports().contains(first.ip) && !all_first_ports().contains(ours.into()));
        assert_ne!(Element::Port(0).bits(), 0, "zero ends a list");
    }
}
