//! Sums over records, by which two hosts find out whether they know the same.

use mapper_proto::Mac;

use super::told::Told;

/// How many parts all records are divided into. Hosts compare one sum for each part.
pub(crate) const BUCKETS: usize = 32;

/// The sums over the records of the map's hosts, one for each part. A sum is the exclusive or of hashes, so
/// records can be added and taken out in any order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Buckets(pub(super) [u64; BUCKETS]);

impl Buckets {
    /// The parts whose sums differ, as a bit each.
    pub(super) fn differing(&self, other: &Self) -> u32 {
        let pairs = self.0.iter().zip(&other.0).enumerate();
        pairs.filter(|(_, (one, other))| one != other).fold(0, |parts, (part, _)| parts | 1 << part)
    }

    /// Adds a record, or takes it out if it is in.
    pub(super) fn toggle(&mut self, told: &Told) {
        self.0[bucket_of(told.mac)] ^= told.sum;
    }
}

/// The part that a host's record is in.
pub(super) fn bucket_of(mac: Mac) -> usize {
    (fnv(&mac.0) % BUCKETS as u64) as usize
}

/// The hash FNV-1a with its halves mixed at the end, so that similar addresses fall into different parts.
pub(crate) fn fnv(bytes: &[u8]) -> u64 {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash ^ hash >> 32
}
