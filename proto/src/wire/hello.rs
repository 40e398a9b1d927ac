//! What neighbours at the two ends of a cable tell each other.
//!
//! ```text
//!  0     1                      7     11      13    14
//! +-----+----------------------+-----+-------+-----+-----------+
//! | end | what is at that end  | mtu | flags |  n  | heard     |      the body of a hello
//! +-----+-----------+----------+-----+-------+-----+-----------+
//! | 1   | tag, port | mac      | u32 | u16   | u8  | n * mac   |
//! | 2   | address   |          |     |       |     |           |
//! +-----+-----------+----------+-----+-------+-----+-----------+
//! ```
//!
//! Crossbars forward frames with their Ethernet header unchanged, so a port cannot learn who is at the other
//! end of its cable from what passes. A hello is for that end alone: it has no route, no crossbar sends
//! it on, and the address that it comes from is that of the interface that it names.
//!
//! A hello is not signed, as crossbars hold no key. Who is on a cable can write any.

use std::fmt;

use super::cursor::{Unreadable, WireReader, Write};
use super::frame::{self, Frame, FrameError, FrameKind};
use crate::Mac;

/// The sender is a port of a crossbar.
pub(super) const CODE_XBAR: u8 = 1;
/// The sender is a host's own interface.
pub(super) const CODE_HOST: u8 = 2;

/// What is at an end of a cable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum HelloEnd {
    /// A port of a crossbar.
    Xbar {
        /// The crossbar's identity; `None` for a plain one, which has none.
        tag: Option<u64>,
        /// The number of the port.
        port: u8,
    },
    /// The interface of an agent without a crossbar.
    Host {
        /// The address by which the fabric knows the host.
        mac: Mac,
    },
}

impl fmt::Display for HelloEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Xbar { tag: Some(tag), port } => write!(f, "crossbar {tag:#018x} port {port}"),
            Self::Xbar { tag: None, port } => write!(f, "a plain crossbar's port {port}"),
            Self::Host { mac } => write!(f, "host {mac}"),
        }
    }
}

/// What the kernel of the sender does with packets that arrive at the interface: a set of bits. Bits
/// that have no meaning yet travel, and are kept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct HelloFlags(u16);

impl HelloFlags {
    /// The kernel does nothing.
    pub const NONE: Self = Self(0);
    /// The kernel obeys segments of whole addresses (SRv6, RFC 8986).
    pub const SRV6: Self = Self(0x0001);
    /// The kernel obeys compressed segments (SRv6 with Next-C-SID, RFC 9800).
    pub const SRV6_COMPRESSED: Self = Self(0x0002);
    /// The kernel routes IP packets by their destination now. An agent that lets go of its routes, and so keeps the kernel's
    /// no more in step with those of others, says so in its next hello. A host without a crossbar, which forwards nothing, says
    /// with it that it sends packets by their destination.
    pub const ROUTES: Self = Self(0x0004);

    /// What a crossbar says whose kernel obeys segments, or not, and compressed ones, or not.
    pub const fn of_segments(obeys: bool, obeys_compressed: bool) -> Self {
        let whole = if obeys { Self::SRV6 } else { Self::NONE };
        if obeys_compressed { whole.with(Self::SRV6_COMPRESSED) } else { whole }
    }

    /// The flags with these bits.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// The bits.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Whether all of `flags` are set.
    pub const fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// These and those of `flags`.
    #[must_use]
    pub const fn with(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    /// What is set and has a meaning, by name.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let named =
            [(Self::SRV6, "srv6"), (Self::SRV6_COMPRESSED, "srv6_compressed"), (Self::ROUTES, "routes")];
        named.into_iter().filter(move |(flag, _)| self.contains(*flag)).map(|(_, name)| name)
    }
}

/// What the sender says to whoever is at the other end of its cable.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Hello {
    /// What is at the sender's end.
    pub end: HelloEnd,
    /// The address of the sender's interface, which the frame comes from.
    pub mac: Mac,
    /// The most bytes behind the Ethernet header that the interface sends and takes.
    pub mtu: u32,
    /// What the sender's kernel does with packets that arrive there.
    pub flags: HelloFlags,
    /// The interfaces whose hellos the sender has heard at its port lately: one if all is well, and
    /// several if more than two interfaces share the cable. At most [`Self::MOST_HEARD`].
    pub heard: Vec<Mac>,
}

impl Hello {
    /// The most interfaces that a hello lists.
    pub const MOST_HEARD: usize = 8;

    /// The frame that carries it, from its type on. Of the interfaces heard the first
    /// [`Self::MOST_HEARD`] travel.
    pub fn encode(&self) -> Vec<u8> {
        let Self { end, mac, mtu, flags, heard } = self;
        frame::build(FrameKind::Hello, false, None, |body| {
            match *end {
                HelloEnd::Xbar { tag, port } => {
                    body.put_u8(CODE_XBAR);
                    body.put_u8(tag.is_some().into());
                    if let Some(tag) = tag {
                        body.put_u64(tag);
                    }
                    body.put_u8(port);
                }
                HelloEnd::Host { mac } => {
                    body.put_u8(CODE_HOST);
                    body.put_mac(mac);
                }
            }
            body.put_mac(*mac);
            body.put_u32(*mtu);
            body.put_u16(flags.bits());
            let heard = &heard[..heard.len().min(Self::MOST_HEARD)];
            body.put_u8(heard.len() as u8);
            heard.iter().for_each(|mac| body.put_mac(*mac));
        })
    }

    /// What is in a hello that begins at its type. Padding may follow.
    ///
    /// # Errors
    /// As [`Frame::parse`]; [`FrameError::UnknownKind`] if it is no hello, [`FrameError::Malformed`] if it
    /// makes no sense.
    pub fn decode(frame: &[u8]) -> Result<Self, FrameError> {
        let frame = Frame::parse(frame)?;
        if frame.kind() != FrameKind::Hello {
            return Err(FrameError::UnknownKind(frame.kind().number()));
        }
        Self::read_body(frame.body())
    }

    pub(super) fn read_body(body: &[u8]) -> Result<Self, FrameError> {
        let mut reader = WireReader::new(body);
        let hello = Self {
            end: read_end(&mut reader)?,
            mac: reader.mac()?,
            mtu: reader.u32()?,
            flags: HelloFlags::from_bits(reader.u16()?),
            heard: read_heard(&mut reader)?,
        };
        reader.finish()?;
        Ok(hello)
    }
}

fn read_end(reader: &mut WireReader<'_>) -> Result<HelloEnd, Unreadable> {
    match reader.u8()? {
        CODE_XBAR => {
            let tag = match reader.u8()? {
                0 => None,
                1 => Some(reader.u64()?),
                _ => return Err(Unreadable),
            };
            Ok(HelloEnd::Xbar { tag, port: reader.u8()? })
        }
        CODE_HOST => Ok(HelloEnd::Host { mac: reader.mac()? }),
        _ => Err(Unreadable),
    }
}

fn read_heard(reader: &mut WireReader<'_>) -> Result<Vec<Mac>, Unreadable> {
    let count = usize::from(reader.u8()?);
    if count > Hello::MOST_HEARD {
        return Err(Unreadable);
    }
    (0..count).map(|_| reader.mac()).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn any_mac() -> impl Strategy<Value = Mac> {
        any::<[u8; 6]>().prop_map(Mac)
    }

    /// Any hello that can travel.
    pub(in crate::wire) fn any_hello() -> impl Strategy<Value = Hello> {
        let xbar = any::<(Option<u64>, u8)>().prop_map(|(tag, port)| HelloEnd::Xbar { tag, port });
        let end = prop_oneof![xbar, any_mac().prop_map(|mac| HelloEnd::Host { mac })];
        let heard = vec(any_mac(), 0..=Hello::MOST_HEARD);
        (end, any_mac(), any::<u32>(), any::<u16>(), heard).prop_map(|(end, mac, mtu, flags, heard)| Hello {
            end,
            mac,
            mtu,
            flags: HelloFlags::from_bits(flags),
            heard,
        })
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn hellos_have_their_golden_bytes() {
        let hello = Hello {
            end: HelloEnd::Xbar { tag: Some(0xfeed), port: 3 },
            mac: Mac::from_position(1),
            mtu: 9000,
            flags: HelloFlags::SRV6.with(HelloFlags::ROUTES),
            heard: vec![Mac::from_position(2)],
        };
        let golden = "00007011 04 00 001e 01 01 000000000000feed 03 020000000001 00002328 0005 \
                      01 020000000002 ";
        let bytes = hello.encode();
        let (covered, crc) = bytes.split_at(bytes.len() - 4);
        assert_eq!(hex(covered), golden.replace(' ', ""));
        assert_eq!(hex(crc), format!("{:08x}", crc32fast::hash(covered)));
        let plain = Hello { end: HelloEnd::Xbar { tag: None, port: 0 }, heard: Vec::new(), ..hello.clone() };
        assert_eq!(hex(&plain.encode()[8..11]), "010000");
        let host = Hello { end: HelloEnd::Host { mac: Mac::from_position(7) }, ..plain };
        assert_eq!(hex(&host.encode()[8..15]), "02020000000007");
        assert_eq!(hello.flags.names().collect::<Vec<_>>(), ["srv6", "routes"]);
    }

    #[test]
    fn a_hello_that_makes_no_sense_is_refused() {
        let host = [2, 2, 0, 0, 0, 0, 7];
        let rest = [2, 0, 0, 0, 0, 1, 0, 0, 5, 220, 0, 0];
        let body = |end: &[u8], heard: &[u8]| Hello::read_body(&[end, &rest, heard].concat());
        assert!(body(&host, &[0]).is_ok());
        let too_many = [&[9][..], &[2; 54]].concat();
        let ends: [&[u8]; 4] = [&[0], &[3, 2, 0, 0, 0, 0, 7], &[1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 3], &[]];
        for end in ends {
            assert_eq!(body(end, &[0]), Err(FrameError::Malformed), "{end:?}");
        }
        for heard in [&[][..], &[1], &[0, 0], &too_many] {
            assert_eq!(body(&host, heard), Err(FrameError::Malformed), "{heard:?}");
        }
    }

    proptest! {
        #[test]
        fn any_hello_comes_back(hello in any_hello(), padding in 0..64usize) {
            let mut bytes = hello.encode();
            bytes.resize(bytes.len() + padding, 0xa5);
            prop_assert_eq!(Hello::decode(&bytes), Ok(hello));
        }
    }
}
