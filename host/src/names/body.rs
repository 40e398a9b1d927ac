//! The questions of the service of names, as bytes. The first byte says which question it is:
//!
//! - 1 compares what two hosts know. The sums over the parts of all names follow, 8 bytes each. The answer
//!   has 4
//!   bytes, with a bit for each part that differs.
//! - 2 tells names. As many as fit follow, each as address (6 bytes), revision (4), length (1) and text. The
//!   answer is empty.

use mapper_proto::Mac;
use mapper_proto::wire::Reason;

use super::table::{BUCKETS, Buckets, HostName, Named};

const COMPARE: u8 = 1;
const TELL: u8 = 2;

/// A question.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// A comparison with the sums over the names that the asker knows.
    Compare(Box<Buckets>),
    /// Names that the asker tells.
    Tell(Vec<Named>),
}

pub(super) fn compare(buckets: &Buckets) -> Vec<u8> {
    [COMPARE].into_iter().chain(buckets.0.iter().flat_map(|sum| sum.to_be_bytes())).collect()
}

/// Fills a question with names.
#[derive(Debug, Default)]
pub(super) struct Teller(Vec<u8>);

impl Teller {
    /// Adds a name. False if it does not fit any more.
    pub(super) fn push(&mut self, named: &Named) -> bool {
        let name = named.name.as_str().as_bytes();
        let begin = self.0.len().max(1);
        if begin + 11 + name.len() > Reason::MAX_SERVICE_BYTES {
            return false;
        }
        if self.0.is_empty() {
            self.0.push(TELL);
        }
        self.0.extend(named.mac.0);
        self.0.extend(named.revision.to_be_bytes());
        // The length fits one byte, as names have at most 64 bytes.
        self.0.push(name.len() as u8);
        self.0.extend(name);
        true
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reads a question. `None` if it is malformed.
pub(super) fn read(question: &[u8]) -> Option<Body> {
    match question.split_first()? {
        (&COMPARE, sums) => {
            let (sums, []) = sums.as_chunks::<8>() else { return None };
            let sums: [[u8; 8]; BUCKETS] = sums.try_into().ok()?;
            Some(Body::Compare(Box::new(Buckets(sums.map(u64::from_be_bytes)))))
        }
        (&TELL, names) => read_names(names).map(Body::Tell),
        _ => None,
    }
}

fn read_names(mut bytes: &[u8]) -> Option<Vec<Named>> {
    let mut names = Vec::new();
    while !bytes.is_empty() {
        let (mac, rest) = bytes.split_first_chunk::<6>()?;
        let (revision, rest) = rest.split_first_chunk::<4>()?;
        let (&length, rest) = rest.split_first()?;
        let (name, rest) = rest.split_at_checked(usize::from(length))?;
        let name: HostName = std::str::from_utf8(name).ok()?.parse().ok()?;
        names.push(Named { mac: Mac(*mac), name, revision: u32::from_be_bytes(*revision) });
        bytes = rest;
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named() -> impl Strategy<Value = Named> {
        (any::<[u8; 6]>(), any::<u32>(), "[^\\pC]{1,16}").prop_map(|(mac, revision, name)| Named {
            mac: Mac(mac),
            revision,
            name: name.parse().unwrap(),
        })
    }

    proptest! {
        #[test]
        fn names_are_read_as_they_were_written(all in proptest::collection::vec(named(), 1..60)) {
            let mut teller = Teller::default();
            let fitted = all.iter().take_while(|named| teller.push(named)).count();
            let question = teller.finish();
            prop_assert!(question.len() <= Reason::MAX_SERVICE_BYTES);
            prop_assert!(fitted == all.len() || fitted >= 9);
            prop_assert_eq!(read(&question), Some(Body::Tell(all[..fitted].to_vec())));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = read(&bytes);
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
        assert_eq!(read(&bytes), Some(Body::Compare(Box::new(buckets))));
        let mut teller = Teller::default();
        let name = "n1".parse().unwrap();
        assert!(teller.push(&Named { mac: Mac([2, 0, 0, 0, 0, 9]), name, revision: 258 }));
        assert_eq!(teller.finish(), [2, 2, 0, 0, 0, 0, 9, 0, 0, 1, 2, 2, b'n', b'1']);
        // Among these are questions that are too short, an empty name, and a name that would ring a bell.
        for bad in [
            &[][..],
            &[1, 0],
            &[2, 1],
            &[2, 2, 0, 0, 0, 0, 9, 0, 0, 1, 2, 0],
            &[2, 2, 0, 0, 0, 0, 9, 0, 0, 1, 2, 1, 7],
            &[3],
        ] {
            assert_eq!(read(bad), None);
        }
    }
}
