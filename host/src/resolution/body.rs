//! The questions of this service, as bytes. The first byte says of which kind they are, and as many of that
//! kind follow as fit:
//!
//! - 1 asks who has something. Each is the asker's address (6 bytes), a number that only the asker can tell
//!   beforehand (8), how many hosts may still pass it on (1), the revision of the asker's record in the
//!   directory (4), a count of groups (1) and each [`Group`] (7), the asker's own name or address if it is
//!   not announced, and what is wanted. A name or an address is its kind (1 byte: 1 for a name, 4 or 6 for
//!   the version of IP, 0 for none) and its bytes; before a name stands its length (1).
//! - 2 says that the sender has what was asked for. Each is the number of the question (8), the revision of
//!   the sender's record (4), the best group of both (7) and what was wanted.
//!
//! The answer to either is empty, and says that it was taken.

use mapper_proto::Mac;
use mapper_proto::wire::Reason;

use super::group::Group;
use super::wanted::{Wanted, take};

const ASK: u8 = 1;
const OWN: u8 = 2;

/// Somebody asks who has something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) asker: Mac,
    /// Tells this question from all others of its asker.
    pub(super) number: u64,
    /// How many hosts may still pass the question on.
    pub(super) hops_left: u8,
    /// The revision of the asker's record.
    pub(super) revision: u32,
    /// What the asker can do, at most [`Group::MOST`].
    pub(super) groups: Vec<Group>,
    /// A name or an address of the asker that the directory does not tell.
    pub(super) source: Option<Wanted>,
    pub(super) wanted: Wanted,
}

/// Says that its sender has what was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Own {
    /// The number of the question.
    pub(super) number: u64,
    /// The revision of the sender's record.
    pub(super) revision: u32,
    /// The best group that both ends can use.
    pub(super) group: Group,
    pub(super) wanted: Wanted,
}

/// A message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ResolutionBody {
    Asks(Vec<Ask>),
    Owns(Vec<Own>),
}

/// What can be put into a message with others of its kind.
pub(super) trait Item: Sized {
    /// The first byte of messages of this kind.
    const KIND: u8;
    fn write(&self, bytes: &mut Vec<u8>);
    fn read(bytes: &mut &[u8]) -> Option<Self>;
}

impl Item for Ask {
    const KIND: u8 = ASK;

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.asker.0);
        bytes.extend(self.number.to_be_bytes());
        bytes.push(self.hops_left);
        bytes.extend(self.revision.to_be_bytes());
        let groups = self.groups.get(..Group::MOST).unwrap_or(&self.groups);
        bytes.push(groups.len() as u8);
        groups.iter().for_each(|group| group.write(bytes));
        Wanted::write_option(self.source.as_ref(), bytes);
        self.wanted.write(bytes);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let asker = Mac(take(bytes)?);
        let number = u64::from_be_bytes(take(bytes)?);
        let [hops_left] = take(bytes)?;
        let revision = u32::from_be_bytes(take(bytes)?);
        let [count] = take(bytes)?;
        if usize::from(count) > Group::MOST {
            return None;
        }
        let groups = (0..count).map(|_| Group::read(bytes)).collect::<Option<_>>()?;
        let source = Wanted::read_option(bytes)?;
        Some(Self { asker, number, hops_left, revision, groups, source, wanted: Wanted::read(bytes)? })
    }
}

impl Item for Own {
    const KIND: u8 = OWN;

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.number.to_be_bytes());
        bytes.extend(self.revision.to_be_bytes());
        self.group.write(bytes);
        self.wanted.write(bytes);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let number = u64::from_be_bytes(take(bytes)?);
        let revision = u32::from_be_bytes(take(bytes)?);
        let group = Group::read(bytes)?;
        Some(Self { number, revision, group, wanted: Wanted::read(bytes)? })
    }
}

/// A message of as many items as fit, which are taken off the front of `queue`.
pub(super) fn fill<T: Item>(queue: &mut std::collections::VecDeque<T>) -> Vec<u8> {
    let mut bytes = vec![T::KIND];
    while let Some(item) = queue.front() {
        let begin = bytes.len();
        item.write(&mut bytes);
        if bytes.len() > Reason::MAX_SERVICE_BYTES {
            bytes.truncate(begin);
            break;
        }
        queue.pop_front();
    }
    bytes
}

/// Reads a message. `None` if it is malformed.
pub(super) fn read(question: &[u8]) -> Option<ResolutionBody> {
    match question.split_first()? {
        (&ASK, items) => read_all(items).map(ResolutionBody::Asks),
        (&OWN, items) => read_all(items).map(ResolutionBody::Owns),
        _ => None,
    }
}

fn read_all<T: Item>(mut items: &[u8]) -> Option<Vec<T>> {
    let mut all = Vec::new();
    while !items.is_empty() {
        all.push(T::read(&mut items)?);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn wanted() -> impl Strategy<Value = Wanted> {
        prop_oneof![
            "[a-z0-9.-]{1,64}".prop_map(|name| Wanted::Name(name.parse().unwrap())),
            any::<[u8; 4]>().prop_map(|ip| Wanted::Ip(ip.into())),
            any::<[u8; 16]>().prop_map(|ip| Wanted::Ip(ip.into())),
        ]
    }

    fn group() -> impl Strategy<Value = Group> {
        any::<(u32, u16, u8)>().prop_map(|(rate_mbps, mtu_bytes, layer)| Group {
            rate_mbps,
            mtu_bytes,
            layer,
        })
    }

    fn ask() -> impl Strategy<Value = Ask> {
        let head = any::<([u8; 6], u64, u8, u32)>();
        let groups = vec(group(), 0..=Group::MOST);
        (head, groups, proptest::option::of(wanted()), wanted()).prop_map(|(head, groups, source, wanted)| {
            let (asker, number, hops_left, revision) = head;
            Ask { asker: Mac(asker), number, hops_left, revision, groups, source, wanted }
        })
    }

    fn own() -> impl Strategy<Value = Own> {
        (any::<(u64, u32)>(), group(), wanted()).prop_map(|((number, revision), group, wanted)| Own {
            number,
            revision,
            group,
            wanted,
        })
    }

    proptest! {
        #[test]
        fn questions_are_read_as_they_were_written(all in vec(ask(), 1..12), owns in vec(own(), 1..30)) {
            let mut queue = VecDeque::from(all.clone());
            let bytes = fill(&mut queue);
            let fitted = all.len() - queue.len();
            prop_assert!(bytes.len() <= Reason::MAX_SERVICE_BYTES && fitted >= all.len().min(3));
            prop_assert_eq!(read(&bytes), Some(ResolutionBody::Asks(all[..fitted].to_vec())));
            let mut queue = VecDeque::from(owns.clone());
            let bytes = fill(&mut queue);
            let fitted = owns.len() - queue.len();
            prop_assert!(bytes.len() <= Reason::MAX_SERVICE_BYTES && fitted >= owns.len().min(8));
            prop_assert_eq!(read(&bytes), Some(ResolutionBody::Owns(owns[..fitted].to_vec())));
        }

        #[test]
        fn any_bytes_are_read_or_refused(mut bytes: Vec<u8>, kind in 0..4u8) {
            bytes.insert(0, kind);
            let _ = read(&bytes);
        }
    }

    #[test]
    fn questions_have_their_golden_bytes() {
        let group = Group { rate_mbps: 25_000, mtu_bytes: 9_000, layer: 1 };
        let ask = Ask {
            asker: Mac([2, 0, 0, 0, 0, 9]),
            number: 7,
            hops_left: 64,
            revision: 258,
            groups: vec![group],
            source: None,
            wanted: Wanted::parse("N1").unwrap(),
        };
        let golden = [
            &[1, 2, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 7, 64, 0, 0, 1, 2, 1][..],
            &[0, 0, 0x61, 0xa8, 0x23, 0x28, 1],
            &[0, 1, 2, b'n', b'1'],
        ]
        .concat();
        assert_eq!(fill(&mut VecDeque::from([ask.clone()])), golden);
        assert_eq!(read(&golden), Some(ResolutionBody::Asks(vec![ask])));
        let own = Own { number: 7, revision: 258, group, wanted: Wanted::parse("10.1.0.3").unwrap() };
        let golden = [
            &[2, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 1, 2][..],
            &[0, 0, 0x61, 0xa8, 0x23, 0x28, 1],
            &[4, 10, 1, 0, 3],
        ]
        .concat();
        assert_eq!(fill(&mut VecDeque::from([own.clone()])), golden);
        assert_eq!(read(&golden), Some(ResolutionBody::Owns(vec![own])));
        // A name in capitals would be another key for the same name.
        let capital = [&golden[..20], &[1, 1, b'N']].concat();
        assert_eq!(read(&capital), None);
        assert_eq!(read(&golden[..golden.len() - 1]), None);
        assert_eq!(read(&[3]), None);
    }
}
