//! The bytes on the status socket, in the encoding of bincode 2, which nothing else uses.

use bincode::config::{Configuration, Fixint, Limit, LittleEndian};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// The number of the format. It is raised whenever the types of the statuses change, as bincode carries no
/// field names.
const FORMAT: u32 = 15;
/// The most bytes of a status, written or read.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// Why a status cannot be encoded or decoded.
#[derive(Debug, Error)]
pub enum CodecError {
    /// The daemon is of another version of the program.
    #[error("the daemon speaks status format {0}, this program {FORMAT}; they must be of one version")]
    OtherFormat(u32),
    /// The bytes end too early, as the daemon was ending.
    #[error("the daemon hung up before it had said all")]
    Truncated,
    /// More bytes follow behind the status.
    #[error("the daemon's answer is longer than a status")]
    Longer,
    /// The status is too large to be read back.
    #[error("the status takes {0} bytes, more than the {MAX_BYTES} that a client reads")]
    TooLarge(usize),
    /// The status cannot be encoded.
    #[error("the status cannot be encoded")]
    Encode(#[from] bincode::error::EncodeError),
    /// The bytes are no status.
    #[error("the daemon's answer is no status")]
    Decode(#[from] bincode::error::DecodeError),
}

const fn configuration() -> Configuration<LittleEndian, Fixint, Limit<MAX_BYTES>> {
    bincode::config::standard().with_fixed_int_encoding().with_limit::<MAX_BYTES>()
}

/// The number of the format, and behind it the bytes of a status.
pub(super) fn encode<T: Serialize>(status: &T) -> Result<Vec<u8>, CodecError> {
    let mut bytes = FORMAT.to_le_bytes().to_vec();
    bincode::serde::encode_into_std_write(status, &mut bytes, configuration())?;
    // The limit in bincode's configuration counts only for decoding.
    if bytes.len() > MAX_BYTES { Err(CodecError::TooLarge(bytes.len())) } else { Ok(bytes) }
}

/// The status in these bytes.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    let (format, body) = bytes.split_first_chunk().ok_or(CodecError::Truncated)?;
    let format = u32::from_le_bytes(*format);
    if format != FORMAT {
        return Err(CodecError::OtherFormat(format));
    }
    match bincode::serde::decode_from_slice(body, configuration()) {
        Ok((status, read)) if read == body.len() => Ok(status),
        Ok(_) => Err(CodecError::Longer),
        Err(bincode::error::DecodeError::UnexpectedEnd { .. }) => Err(CodecError::Truncated),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::Deserialize;

    /// A status with fields of all kinds that statuses have.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    struct Board {
        unit: u8,
        interface: Option<String>,
        children: Vec<String>,
        unreachable: Vec<(String, String)>,
        carrier: bool,
        uptime_ms: u64,
    }

    fn board() -> Board {
        Board {
            unit: 3,
            interface: Some("eth1".to_owned()),
            children: vec!["02:00:00:00:00:02".to_owned()],
            unreachable: vec![("02:00:00:00:00:03".to_owned(), "silent".to_owned())],
            carrier: true,
            uptime_ms: 123,
        }
    }

    #[test]
    fn there_and_back() {
        assert_eq!(decode::<Board>(&encode(&board()).unwrap()).unwrap(), board());
    }

    #[test]
    fn another_format_is_told_apart() {
        let mut bytes = encode(&board()).unwrap();
        let other = FORMAT + 1;
        bytes[..4].copy_from_slice(&other.to_le_bytes());
        assert!(matches!(decode::<Board>(&bytes), Err(CodecError::OtherFormat(format)) if format == other));
        assert!(matches!(decode::<Board>(&bytes[..2]), Err(CodecError::Truncated)));
    }

    #[test]
    fn a_length_beyond_the_limit_allocates_nothing() {
        let mut bytes = FORMAT.to_le_bytes().to_vec();
        // The first byte is the unit, and the second says that there is an interface, whose length follows.
        bytes.extend([3, 1]);
        bytes.extend(u64::MAX.to_le_bytes());
        assert!(matches!(decode::<Board>(&bytes), Err(CodecError::Decode(_))));
    }

    #[test]
    fn a_board_that_is_too_large_is_refused() {
        let large = Board { interface: Some("x".repeat(MAX_BYTES + 1)), ..board() };
        assert!(matches!(encode(&large), Err(CodecError::TooLarge(_))));
    }

    proptest! {
        #[test]
        fn garbled_bytes_are_refused_or_mean_what_they_say(
            at in any::<proptest::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let mut bytes = encode(&board()).unwrap();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(read) = decode::<Board>(&bytes) {
                prop_assert_eq!(encode(&read).unwrap(), bytes);
            }
        }

        #[test]
        fn what_is_cut_off_is_refused(cut in any::<proptest::sample::Index>()) {
            let bytes = encode(&board()).unwrap();
            let cut = &bytes[..cut.index(bytes.len())];
            prop_assert!(matches!(decode::<Board>(cut), Err(CodecError::Truncated)));
        }
    }
}
