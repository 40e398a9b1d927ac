//! What a user's frame looks like.

use mapper_proto::Mac;

/// How a frame begins behind its two addresses. It is of UDP over IPv4, as most frames that users send, and
/// for the discard service (RFC 863).
const HEADERS: [u8; 30] =
    [8, 0, 0x45, 0, 0, 44, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 0, 0, 9, 0, 24, 0, 0];
/// The offset of UDP's source port, which tells flows apart.
const SOURCE_PORT_AT: usize = 22;
/// The first of the ports that no service has (RFC 6335), so that in a recording the frames do not look like
/// those of some service.
const FIRST_DYNAMIC_PORT: u16 = 49_152;
const ADDRESSES_BYTES: usize = 12;

/// A frame of one user for another, or for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::world) struct UserFrame {
    pub(in crate::world) from: u32,
    /// The host, or [`Self::ALL`].
    pub(in crate::world) to: u32,
    /// How many frames went from one to the other before this one.
    pub(in crate::world) number: u64,
}

impl UserFrame {
    /// The destination of a broadcast.
    pub(in crate::world) const ALL: u32 = u32::MAX;

    /// The bytes of the frame as one of this flow, from its destination address on. Every fourth frame is
    /// filled up to `most_bytes`, as those of a bulk transfer are.
    pub(in crate::world) fn encode(self, own: Mac, to: Mac, flow: u64, most_bytes: usize) -> Vec<u8> {
        let mut headers = HEADERS;
        let source_port = FIRST_DYNAMIC_PORT | (self.to as u16).wrapping_add((flow as u16) << 8);
        headers[SOURCE_PORT_AT..SOURCE_PORT_AT + 2].copy_from_slice(&source_port.to_be_bytes());
        let body = self.body();
        let mut frame = [&to.0[..], &own.0, &headers, &body, &crc32fast::hash(&body).to_be_bytes()].concat();
        if self.number.is_multiple_of(4) {
            frame.resize(frame.len().max(most_bytes), 0);
        }
        frame
    }

    /// The address that a frame was sent to, and that from which it was sent.
    pub(in crate::world) fn addresses(bytes: &[u8]) -> Option<(Mac, Mac)> {
        let (to, rest) = bytes.split_first_chunk()?;
        Some((Mac(*to), Mac(*rest.first_chunk()?)))
    }

    /// Reads a frame. `None` if it is no frame of these users, or is garbled.
    pub(in crate::world) fn decode(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.get(ADDRESSES_BYTES + HEADERS.len()..)?;
        let (body, sum) = rest.get(..20)?.split_at_checked(16)?;
        let whole = sum == crc32fast::hash(body).to_be_bytes();
        let word = |at: usize| Some(u32::from_be_bytes(body.get(at..at + 4)?.try_into().ok()?));
        let number = u64::from_be_bytes(body.get(8..16)?.try_into().ok()?);
        let frame = Self { from: word(0)?, to: word(4)?, number };
        whole.then_some(frame)
    }

    fn body(self) -> [u8; 16] {
        let mut body = [0; 16];
        body[..4].copy_from_slice(&self.from.to_be_bytes());
        body[4..8].copy_from_slice(&self.to.to_be_bytes());
        body[8..].copy_from_slice(&self.number.to_be_bytes());
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded_and_what_is_garbled_is_not() {
        let frame = UserFrame { from: 3, to: 70_000, number: 5 };
        let mut bytes = frame.encode(Mac::from_position(4), Mac::from_position(1), 3, 900);
        assert_eq!(UserFrame::decode(&bytes), Some(frame));
        for at in ADDRESSES_BYTES + HEADERS.len()..bytes.len() {
            bytes[at] ^= 4;
            assert_eq!(UserFrame::decode(&bytes), None);
            bytes[at] ^= 4;
        }
        assert_eq!(UserFrame::decode(&bytes[..bytes.len() - 1]), None);
    }
}
