//! Records that answer a request.

use super::Answer;
use crate::mad::sa::SaStatus;

/// Most bytes of an answer.
const MAX_BYTES: usize = 8 << 20;

/// Records of one kind, one after the other, each filled up to a multiple of eight bytes.
#[derive(Debug, Default)]
pub(super) struct Records {
    bytes: Vec<u8>,
    /// The length of each record without its padding.
    length: usize,
}

impl Records {
    /// Adds a record, as long as all others.
    ///
    /// # Errors
    /// If the answer would be too long.
    pub(super) fn push(&mut self, record: &[u8]) -> Result<(), SaStatus> {
        self.length = record.len();
        if self.bytes.len() + record.len() > MAX_BYTES {
            return Err(SaStatus::NoResources);
        }
        self.bytes.extend_from_slice(record);
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        Ok(())
    }

    /// How many records there are.
    pub(super) fn count(&self) -> usize {
        self.bytes.len().checked_div(self.length.next_multiple_of(8)).unwrap_or_default()
    }

    /// The distance from one record to the next, in units of eight bytes; 0 if there is no record.
    pub(super) fn offset(&self) -> u16 {
        self.length.div_ceil(8) as u16
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The answer with the only record.
    ///
    /// # Errors
    /// If there are several, or none.
    pub(super) fn only(self) -> Result<Answer, SaStatus> {
        match self.bytes.len() {
            0 => Err(SaStatus::NoRecords),
            bytes if bytes > self.length.next_multiple_of(8) => Err(SaStatus::TooManyRecords),
            _ => Ok(Answer::One(self.bytes[..self.length].to_vec())),
        }
    }
}
