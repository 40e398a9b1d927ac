//! Headers and attributes of netlink as bytes.
//!
//! What comes from the kernel is read without trust all the same: whatever is cut off or too long is left out.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of a netlink header.
pub(crate) const HEADER_BYTES: usize = 16;
/// Bytes of an attribute's header.
const ATTRIBUTE_BYTES: usize = 4;
/// The two highest bits of an attribute's type are flags.
const TYPE_MASK: u16 = 0x3fff;
/// The flag of attributes that hold attributes.
const NESTED: u16 = 0x8000;

/// What a message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// The message's type (`nlmsg_type`).
    pub(crate) kind: u16,
    /// The flags `NLM_F_*`.
    pub(crate) flags: u16,
    /// The number by which an answer is told from others.
    pub(crate) sequence: u32,
    /// The socket that caused the message; 0 is the kernel.
    pub(crate) port: u32,
}

/// A message that was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message<'a> {
    /// What it is for.
    pub(crate) header: Header,
    /// What stands behind the header.
    pub(crate) body: &'a [u8],
}

/// Appends a message: its header, the fixed part, and the attributes that `attributes` puts.
pub(crate) fn write(
    bytes: &mut Vec<u8>,
    header: Header,
    fixed: &[u8],
    attributes: impl FnOnce(&mut Attributes<'_>),
) {
    let start = bytes.len();
    bytes.extend([0; 4]);
    bytes.extend(header.kind.to_ne_bytes());
    bytes.extend(header.flags.to_ne_bytes());
    bytes.extend(header.sequence.to_ne_bytes());
    bytes.extend(header.port.to_ne_bytes());
    bytes.extend(fixed);
    attributes(&mut Attributes(bytes));
    let length = (bytes.len() - start) as u32;
    bytes[start..start + 4].copy_from_slice(&length.to_ne_bytes());
}

/// Adds flags to the message that stands at the beginning of these bytes.
pub(crate) fn add_flags(message: &mut [u8], flags: u16) {
    if let (Some(there), Some(place)) = (u16_at(message, 6), message.get_mut(6..8)) {
        place.copy_from_slice(&(there | flags).to_ne_bytes());
    }
}

/// Where attributes are written.
pub(crate) struct Attributes<'a>(&'a mut Vec<u8>);

impl<'a> Attributes<'a> {
    /// Appends to these bytes, which are the fixed part of a message or attributes.
    pub(crate) const fn of(bytes: &'a mut Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl Attributes<'_> {
    /// Appends an attribute. Values are short; what a length of 16 bits cannot say is cut off.
    pub(crate) fn put(&mut self, kind: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX) - ATTRIBUTE_BYTES)];
        self.0.extend(((ATTRIBUTE_BYTES + value.len()) as u16).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// Appends an attribute that is a number.
    pub(crate) fn put_u32(&mut self, kind: u16, value: u32) {
        self.put(kind, &value.to_ne_bytes());
    }

    /// Appends an attribute that is text, which ends with a zero.
    pub(crate) fn put_text(&mut self, kind: u16, text: &str) {
        self.put(kind, &[text.as_bytes(), &[0]].concat());
    }

    /// Appends an attribute that is an address.
    pub(crate) fn put_ip(&mut self, kind: u16, ip: IpAddr) {
        match ip {
            IpAddr::V4(ip) => self.put(kind, &ip.octets()),
            IpAddr::V6(ip) => self.put(kind, &ip.octets()),
        }
    }

    /// Appends an attribute that holds those which `inside` puts.
    pub(crate) fn nest(&mut self, kind: u16, inside: impl FnOnce(&mut Attributes<'_>)) {
        let start = self.0.len();
        self.0.extend([0; 2]);
        self.0.extend((kind | NESTED).to_ne_bytes());
        inside(&mut Attributes(self.0));
        let length = (self.0.len() - start) as u16;
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
    }
}

/// The messages of a datagram. A cut-off one ends the iteration.
pub(crate) fn messages(datagram: &[u8]) -> impl Iterator<Item = Message<'_>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let length = usize::try_from(u32_at(rest, 0)?).ok()?;
        let body = rest.get(HEADER_BYTES..length)?;
        let (kind, flags) = (u16_at(rest, 4)?, u16_at(rest, 6)?);
        let header = Header { kind, flags, sequence: u32_at(rest, 8)?, port: u32_at(rest, 12)? };
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some(Message { header, body })
    })
}

/// The types and values of attributes. A cut-off one ends the iteration.
pub(crate) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(rest, 0)?);
        let kind = u16_at(rest, 2)?;
        let value = rest.get(ATTRIBUTE_BYTES..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind & TYPE_MASK, value))
    })
}

/// The number of 16 bits at this place.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The number of 32 bits at this place.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The text that an attribute holds, up to its zero.
pub(crate) fn text(value: &[u8]) -> String {
    let text = value.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// The address that an attribute holds.
pub(crate) fn ip(value: &[u8]) -> Option<IpAddr> {
    match value.len() {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(value).ok()?).into()),
        16 => ipv6(value).map(IpAddr::V6),
        _ => None,
    }
}

/// The IPv6 address that an attribute holds.
pub(crate) fn ipv6(value: &[u8]) -> Option<Ipv6Addr> {
    <[u8; 16]>::try_from(value).ok().map(Ipv6Addr::from)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEADER: Header = Header { kind: 24, flags: 5, sequence: 7, port: 0 };

    #[test]
    fn a_message_is_as_long_as_it_says_and_its_parts_are_aligned() {
        let mut bytes = Vec::new();
        write(&mut bytes, HEADER, &[0xaa; 12], |attributes| {
            attributes.put(1, &[1, 2, 3]);
            attributes.nest(22, |inside| inside.put_u32(1, 9));
        });
        assert_eq!(bytes.len(), 16 + 12 + 8 + 12);
        assert_eq!(bytes[..4], 48u32.to_ne_bytes());
        assert_eq!(bytes[28..36], [7, 0, 1, 0, 1, 2, 3, 0]);
        assert_eq!(bytes[36..48], [12, 0, 22, 0x80, 8, 0, 1, 0, 9, 0, 0, 0]);
    }

    #[test]
    fn messages_and_attributes_come_back() {
        let mut bytes = Vec::new();
        for sequence in [7, 8] {
            write(&mut bytes, Header { sequence, ..HEADER }, &[0; 12], |attributes| {
                attributes.put(3, b"eth0\0");
                attributes.nest(22, |inside| inside.put_ip(5, "fe80::1".parse().unwrap()));
            });
        }
        let read: Vec<_> = messages(&bytes).collect();
        assert_eq!(read.iter().map(|message| message.header.sequence).collect::<Vec<_>>(), [7, 8]);
        let outer: Vec<_> = attributes(&read[1].body[12..]).collect();
        assert_eq!((outer[0].0, text(outer[0].1)), (3, "eth0".to_owned()));
        let inner: Vec<_> = attributes(outer[1].1).collect();
        assert_eq!((outer[1].0, inner[0].0, ip(inner[0].1)), (22, 5, "fe80::1".parse().ok()));
    }

    proptest! {
        #[test]
        fn whatever_the_bytes_reading_ends(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for message in messages(&bytes) {
                attributes(message.body).for_each(drop);
            }
            attributes(&bytes).for_each(drop);
        }
    }
}
