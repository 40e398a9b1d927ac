//! Requests and answers between processes, as bytes.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// Why a message does not get from one process to the other.
#[derive(Debug, Error)]
pub enum TransferError {
    /// The system did not let it be read or written.
    #[error("cannot be read or written: {0}")]
    Io(#[from] io::Error),
    /// It was written by another version of the program, as after an upgrade.
    #[error("is of another version of mapper, or cut off: restart OpenSM, so that it loads the plugin anew")]
    OtherVersion,
    /// It is cut off, or longer than its contents.
    #[error("is malformed: {0}")]
    Malformed(#[from] postcard::Error),
    /// Bytes follow its contents.
    #[error("is malformed: {0} bytes follow its end")]
    Trailing(usize),
    /// It is longer than any message is.
    #[error("is longer than the {0} bytes that are read")]
    TooLong(u64),
}

/// The largest message that is read, in bytes. The tables of a subnet of 49,151 LIDs take some 200 MB.
pub(crate) const MAX_BYTES: u64 = 512 << 20;

/// The first bytes of a message. Contents are laid out by the types of this version alone.
const HEADER: &[u8] = concat!("mapper-opensm ", env!("CARGO_PKG_VERSION"), "\n").as_bytes();

/// Writes a message.
///
/// # Errors
/// If it cannot be written.
pub fn send(to: &mut impl Write, message: &impl Serialize) -> Result<(), TransferError> {
    to.write_all(HEADER)?;
    to.write_all(&postcard::to_stdvec(message)?)?;
    to.flush()?;
    Ok(())
}

/// Reads a message, to the end.
///
/// # Errors
/// If it is none, of another version, or longer than 512 MiB.
pub fn receive<T: DeserializeOwned>(from: &mut impl Read) -> Result<T, TransferError> {
    receive_at_most(from, MAX_BYTES)
}

fn receive_at_most<T: DeserializeOwned>(from: &mut impl Read, most: u64) -> Result<T, TransferError> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(TransferError::TooLong(most));
    }
    let contents = bytes.strip_prefix(HEADER).ok_or(TransferError::OtherVersion)?;
    match postcard::take_from_bytes(contents)? {
        (message, []) => Ok(message),
        (_, rest) => Err(TransferError::Trailing(rest.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Request;
    use crate::request::tests::ring;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let mut bytes = Vec::new();
        send(&mut bytes, &ring(5)).unwrap();
        assert_eq!(receive::<Request>(&mut bytes.as_slice()).unwrap(), ring(5));
    }

    #[test]
    fn a_message_that_is_too_long_is_told_as_such() {
        let mut bytes = Vec::new();
        send(&mut bytes, &ring(5)).unwrap();
        let length = bytes.len() as u64;
        let receive = |most| receive_at_most::<Request>(&mut bytes.as_slice(), most);
        assert_eq!(receive(length).unwrap(), ring(5));
        assert_eq!(
            receive(length - 1).unwrap_err().to_string(),
            format!("is longer than the {} bytes that are read", length - 1)
        );
    }

    #[test]
    fn what_is_no_message_of_this_version_is_refused() {
        let mut bytes = Vec::new();
        send(&mut bytes, &ring(5)).unwrap();
        for end in 0..bytes.len() {
            receive::<Request>(&mut &bytes[..end]).unwrap_err();
        }
        bytes.push(0);
        assert!(matches!(receive::<Request>(&mut bytes.as_slice()), Err(TransferError::Trailing(1))));
        bytes[14] = b'9';
        let error = receive::<Request>(&mut bytes.as_slice()).unwrap_err().to_string();
        assert!(error.contains("is of another version of mapper"), "{error}");
    }

    #[test]
    fn spoiled_bytes_are_refused_or_read_but_never_more() {
        let mut bytes = Vec::new();
        send(&mut bytes, &crate::answer(&ring(5))).unwrap();
        for at in HEADER.len()..bytes.len() {
            for change in [1, 0x80, 0xff] {
                bytes[at] ^= change;
                // Bytes that are read as an answer are right here, too: a caller checks the answer against the
                // question.
                if let Ok(Ok(answer)) = receive::<crate::Outcome>(&mut bytes.as_slice()) {
                    let _ = answer.check(&ring(5));
                    let _ = (answer.level(1, 2), answer.level(u16::MAX, 0));
                }
                bytes[at] ^= change;
            }
        }
    }
}
