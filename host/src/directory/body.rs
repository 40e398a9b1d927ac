//! The questions of the directory, as bytes. The first byte says which question it is:
//!
//! - 1 compares what two hosts know. The sums over the parts of all records follow, 8 bytes each. The answer
//!   has twice 4 bytes, with a bit for each part: those that differ and of which the asker is to tell its
//!   records, and all that differ.
//! - 2 tells records. As many records as fit follow: see [`Record`]. The answer is empty, or [`NOT_ALL_TAKEN`] if some records are of
//!   hosts that the map of the one told does not list, as it may not have the newest one yet. Older versions know only the former.

use std::sync::Arc;

use mapper_proto::wire::Reason;

use super::sums::{BUCKETS, Buckets};
use super::told::{self, Told};
use crate::routes::Basis;

const COMPARE: u8 = 1;
const TELL: u8 = 2;

/// The answer of a host that has not taken all records it was told.
pub(super) const NOT_ALL_TAKEN: [u8; 1] = [1];

/// A question.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DirectoryBody {
    /// A question whether the sums over the records that the asker knows are those of the one asked.
    Compare(Box<Buckets>),
    /// Records that the asker tells, each with the rank of its host if the map lists it.
    Tell(Vec<(Option<usize>, Arc<Told>)>),
}

/// The answer to a comparison: a bit for each part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Compared {
    /// The parts of which the asker is to tell its records.
    pub(super) wanted: u32,
    /// The parts whose sums differ.
    pub(super) differing: u32,
}

impl Compared {
    pub(super) fn to_bytes(self) -> Vec<u8> {
        [self.wanted.to_be_bytes(), self.differing.to_be_bytes()].concat()
    }

    pub(super) fn read(answer: &[u8]) -> Option<Self> {
        let (&wanted, rest) = answer.split_first_chunk()?;
        let differing = rest.try_into().ok()?;
        Some(Self { wanted: u32::from_be_bytes(wanted), differing: u32::from_be_bytes(differing) })
    }
}

pub(super) fn compare(buckets: &Buckets) -> Vec<u8> {
    [COMPARE].into_iter().chain(buckets.0.iter().flat_map(|sum| sum.to_be_bytes())).collect()
}

/// Fills a question with records.
#[derive(Debug)]
pub(super) struct Teller(Vec<u8>);

impl Teller {
    pub(super) fn new() -> Self {
        Self(vec![TELL])
    }

    /// Adds a record. False if it does not fit any more.
    pub(super) fn push(&mut self, told: &Told) -> bool {
        let fits = self.0.len() + told.bytes.len() <= Reason::MAX_SERVICE_BYTES;
        if fits {
            self.0.extend(&told.bytes);
        }
        fits
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reads a question of a host that has this map. `None` if it is malformed.
pub(super) fn read(question: &[u8], basis: Option<&Basis>) -> Option<DirectoryBody> {
    match question.split_first()? {
        (&COMPARE, sums) => {
            let (sums, []) = sums.as_chunks::<8>() else { return None };
            let sums: [[u8; 8]; BUCKETS] = sums.try_into().ok()?;
            Some(DirectoryBody::Compare(Box::new(Buckets(sums.map(u64::from_be_bytes)))))
        }
        (&TELL, mut records) => {
            let mut held = basis.map(|basis| basis.last_told().hold(basis));
            let mut all = Vec::new();
            while !records.is_empty() {
                all.push(match &mut held {
                    Some(held) => held.read(&mut records)?,
                    None => (None, told::read(&mut records)?),
                });
            }
            Some(DirectoryBody::Tell(all))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use mapper_proto::Mac;

    use super::super::record::Record;
    use super::super::record::tests::any_record;
    use super::*;

    proptest! {
        #[test]
        fn records_are_read_as_they_were_written(all in proptest::collection::vec(any_record(), 1..60)) {
            let all: Vec<_> = all.into_iter().map(|(mac, record)| (None, Told::new(mac, record))).collect();
            let mut teller = Teller::new();
            let fitted = all.iter().take_while(|(_, told)| teller.push(told)).count();
            let question = teller.finish();
            prop_assert!(question.len() <= Reason::MAX_SERVICE_BYTES);
            prop_assert!(fitted == all.len() || fitted >= 2, "any two records fit");
            prop_assert_eq!(read(&question, None), Some(DirectoryBody::Tell(all[..fitted].to_vec())));
        }

        #[test]
        fn any_bytes_are_read_or_refused(mut bytes: Vec<u8>, kind in 0..4u8) {
            let _ = Compared::read(&bytes);
            bytes.insert(0, kind);
            let _ = read(&bytes, None);
        }
    }

    #[test]
    fn questions_have_their_golden_bytes() {
        let buckets = Buckets(std::array::from_fn(|part| part as u64));
        let bytes = compare(&buckets);
        assert_eq!(
            (bytes.len(), &bytes[..17]),
            (257, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1][..])
        );
        assert_eq!(read(&bytes, None), Some(DirectoryBody::Compare(Box::new(buckets))));
        let compared = Compared { wanted: 5, differing: 7 };
        assert_eq!(compared.to_bytes(), [0, 0, 0, 5, 0, 0, 0, 7]);
        assert_eq!(Compared::read(&compared.to_bytes()), Some(compared));
        let mut teller = Teller::new();
        let record = Record { revision: 258, name: "n1".parse().ok(), ..Record::default() };
        assert!(teller.push(&Told::new(Mac([2, 0, 0, 0, 0, 9]), record)));
        assert_eq!(teller.finish(), [2, 2, 0, 0, 0, 0, 9, 0, 0, 1, 2, 2, b'n', b'1', 0, 0]);
        for bad in [&[][..], &[1, 0], &[2, 1], &[2, 2, 0, 0, 0, 0, 9, 0, 0, 1, 2, 2, b'n', b'1'], &[3]] {
            assert_eq!(read(bad, None), None);
        }
        assert_eq!(Compared::read(&[0; 4]), None);
    }
}
