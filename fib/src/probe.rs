//! The datagram by which a path through the kernels is proved, and the packet that carries it along that path.
//!
//! ```text
//!  0        4       5      6        8       16        24      30
//! +--------+-------+------+--------+-------+---------+-------+---------+
//! | "mapp" | vers. | kind | zeros  | nonce | arrived | asked | zeros.. |
//! +--------+-------+------+--------+-------+---------+-------+---------+
//! ```
//!
//! A question is as long as the longest packet that the path is to carry, or short. Its answer has the same
//! nonce, is short, and comes back by whatever way the other host's kernel takes. It says when the question
//! arrived, in nanoseconds of the other host's clock, so that whoever sends many at once learns how fast they got
//! through; of hosts that do not know, that is zero or missing. In a question it is 1 if whoever asks has tried all its
//! ways to the other host, so that this is the last one; else zero or missing, as in those of older hosts, which do not
//! look there.
//!
//! A question also says which host is asked, by its address on the fabric, and another one does not answer: the IP address that it
//! goes to may be another host's by now, and tables by destination lead to whoever has it. Zero or missing is whoever has it. Older
//! hosts do not look there, and answer.
//!
//! Paths are proved by datagrams of IPv6. What is in the way of IPv4 alone, as a firewall that somebody set up for that, shows
//! only by datagrams of IPv4. In the place of the host that is asked, an answer has a 1 if whoever answers does so for IPv4, too.
//! Zero or missing, as from older hosts, is that it does not, and it is not asked.
//!
//! Where tables by destination lead, a question may be sent to pass a few kernels only: the one at which its hop limit ends
//! says so by an ICMPv6 message that repeats the question.

mod packet;

use mapper_proto::Mac;

pub use packet::{DatagramEnds, packet};
use packet::{IPV6_HEADER_BYTES, NEXT_HEADER_UDP, UDP_HEADER_BYTES};

/// The port of UDP at which every host answers: the number of the fabric's EtherType.
pub const UDP_PORT: u16 = 0x88b5;
/// The length of a datagram without padding, in bytes.
pub const DATAGRAM_BYTES: usize = 32;
/// The fewest bytes of a datagram that can be read. Older hosts send no more.
const LEAST_BYTES: usize = 16;
/// The place where a question names the host that is asked, and an answer says whether questions of IPv4 are answered.
const ASKED_AT: usize = 24;

const MAGIC: [u8; 4] = *b"mapp";
const VERSION: u8 = 1;
const QUESTION: u8 = 1;
const ANSWER: u8 = 2;

/// How many kernels a packet may pass that is to reach its destination.
pub const HOP_LIMIT: u8 = 64;

const ICMPV6_HEADER_BYTES: usize = 8;
/// The type of the ICMPv6 message that a packet went too far (RFC 4443, section 3.3), and the code that its hop limit ended.
pub const TIME_EXCEEDED: u8 = 3;
const HOP_LIMIT_EXCEEDED: u8 = 0;

/// What a datagram says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Datagram {
    /// The host that gets it is to answer.
    Question {
        /// A number that nobody can guess who did not see the question.
        nonce: u64,
        /// Whether the sender has tried all its ways to that host, and needs no more answers.
        is_last: bool,
        /// The host that is asked; `None` if whoever has the IP address is to answer.
        asked: Option<Mac>,
    },
    /// The question arrived.
    Answer {
        /// The nonce of the question.
        nonce: u64,
        /// When the question arrived, in nanoseconds from whatever moment the other host counts from.
        arrived_ns: Option<u64>,
        /// Whether the host also answers questions of IPv4.
        answers_v4: bool,
    },
}

impl Datagram {
    /// The datagram's bytes.
    pub fn to_bytes(self) -> [u8; DATAGRAM_BYTES] {
        let (kind, nonce, rest, asked) = match self {
            Self::Question { nonce, is_last, asked } => {
                (QUESTION, nonce, u64::from(is_last), asked.unwrap_or_default().0)
            }
            Self::Answer { nonce, arrived_ns, answers_v4 } => {
                (ANSWER, nonce, arrived_ns.unwrap_or(0), [answers_v4.into(), 0, 0, 0, 0, 0])
            }
        };
        let mut bytes = [0; DATAGRAM_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        (bytes[4], bytes[5]) = (VERSION, kind);
        bytes[8..LEAST_BYTES].copy_from_slice(&nonce.to_be_bytes());
        bytes[LEAST_BYTES..ASKED_AT].copy_from_slice(&rest.to_be_bytes());
        bytes[ASKED_AT..ASKED_AT + 6].copy_from_slice(&asked);
        bytes
    }

    /// Reads a datagram; what makes it longer is not looked at. `None` if it is none of ours.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<LEAST_BYTES>()?;
        let [m0, m1, m2, m3, version, kind, 0, 0, nonce @ ..] = *head else { return None };
        if [m0, m1, m2, m3] != MAGIC || version != VERSION {
            return None;
        }
        let nonce = u64::from_be_bytes(nonce);
        let asked = bytes.get(ASKED_AT..).and_then(<[u8]>::first_chunk).map(|&mac| Mac(mac));
        let rest = rest.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
        match kind {
            QUESTION => {
                let asked = asked.filter(|&mac| mac != Mac::default());
                Some(Self::Question { nonce, is_last: rest == Some(1), asked })
            }
            ANSWER => Some(Self::Answer {
                nonce,
                arrived_ns: rest.filter(|&ns| ns > 0),
                answers_v4: bytes.get(ASKED_AT) == Some(&1),
            }),
            _ => None,
        }
    }
}

/// The nonce of the question whose hop limit ended somewhere, if this ICMPv6 message says so of one of ours. Nobody can
/// guess the nonce who did not see the question.
pub fn ended_hop_limit(message: &[u8]) -> Option<u64> {
    let (&[TIME_EXCEEDED, HOP_LIMIT_EXCEEDED, ..], packet) =
        message.split_first_chunk::<ICMPV6_HEADER_BYTES>()?
    else {
        return None;
    };
    let (header, rest) = packet.split_first_chunk::<IPV6_HEADER_BYTES>()?;
    let (udp, datagram) = rest.split_first_chunk::<UDP_HEADER_BYTES>()?;
    let ports = [UDP_PORT.to_be_bytes(); 2];
    if header[6] != NEXT_HEADER_UDP || udp[..4] != *ports.as_flattened() {
        return None;
    }
    match Datagram::read(datagram)? {
        Datagram::Question { nonce, .. } => Some(nonce),
        Datagram::Answer { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_datagram_is_read_as_it_was_written_and_others_are_not_ours() {
        let answer = |arrived_ns| Datagram::Answer { nonce: u64::MAX, arrived_ns, answers_v4: false };
        let of_v4 = Datagram::Answer { nonce: 7, arrived_ns: Some(1), answers_v4: true };
        let question = |is_last| Datagram::Question { nonce: 7, is_last, asked: None };
        let of_host = Datagram::Question { nonce: 7, is_last: true, asked: Some(Mac::from_position(9)) };
        for datagram in [question(false), question(true), of_host, answer(None), answer(Some(1 << 60)), of_v4]
        {
            assert_eq!(Datagram::read(&datagram.to_bytes()), Some(datagram));
        }
        let older = &answer(None).to_bytes()[..LEAST_BYTES];
        assert_eq!(Datagram::read(older), Some(answer(None)), "it does not say when");
        let older = &question(true).to_bytes()[..LEAST_BYTES];
        assert_eq!(Datagram::read(older), Some(question(false)), "it says no more than that");
        let older = &of_host.to_bytes()[..ASKED_AT];
        assert_eq!(Datagram::read(older), Some(question(true)), "it does not say who is asked");
        let older = &of_v4.to_bytes()[..ASKED_AT];
        let told = Datagram::Answer { nonce: 7, arrived_ns: Some(1), answers_v4: false };
        assert_eq!(Datagram::read(older), Some(told), "it does not say that it answers for IPv4");
        let question =
            Datagram::Question { nonce: 0x0102_0304_0506_0708, is_last: false, asked: None }.to_bytes();
        assert_eq!(question[..LEAST_BYTES], *b"mapp\x01\x01\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08");
        for place in 0..8 {
            let mut other = question;
            other[place] ^= 0x40;
            assert_eq!(Datagram::read(&other), None, "byte {place}");
        }
    }

    #[test]
    fn a_kernel_at_which_a_hop_limit_ends_repeats_the_question() {
        let question = Datagram::Question { nonce: 7, is_last: false, asked: None };
        let [own, other] = [1, 2].map(|number| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number));
        let ends = DatagramEnds::V6 { source: own, destination: other };
        let packet = packet(&[], own, ends, question, 0, 2);
        assert_eq!(packet[7], 2, "the hop limit");
        let message = |kind, code, packet: &[u8]| [&[kind, code, 0, 0, 0, 0, 0, 0], packet].concat();
        assert_eq!(ended_hop_limit(&message(3, 0, &packet)), Some(7));
        for (kind, code) in [(1, 0), (3, 1), (128, 0)] {
            assert_eq!(ended_hop_limit(&message(kind, code, &packet)), None, "it says something else");
        }
        for (place, of) in
            [(6, "another protocol"), (41, "another port"), (43, "another port"), (53, "an answer")]
        {
            let mut other = packet.clone();
            other[place] ^= 3;
            assert_eq!(ended_hop_limit(&message(3, 0, &other)), None, "{of}");
        }
        // A packet that lacks any of the bytes that all hosts send is none of ours.
        for bytes in 0..IPV6_HEADER_BYTES + UDP_HEADER_BYTES + LEAST_BYTES {
            assert_eq!(ended_hop_limit(&message(3, 0, &packet[..bytes])), None, "{bytes} bytes of it");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = (Datagram::read(&bytes), ended_hop_limit(&bytes));
        }
    }
}
