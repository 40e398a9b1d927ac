//! The names that a host knows.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use mapper_proto::Mac;
use thiserror::Error;

use crate::routes::Basis;

/// How many parts all names are divided into. Hosts compare one sum for each part.
pub(crate) const BUCKETS: usize = 32;
/// How many names of hosts that left the map are kept at most, so that these hosts can be named when they are
/// missed.
const MOST_GONE: usize = 1024;

/// What a host is called: text for people, of 1 to 64 bytes and without control characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostName(Arc<str>);

/// Why a text is no host's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum NotAName {
    /// It is empty.
    #[error("a host's name is not empty")]
    Empty,
    /// It is too long.
    #[error("a host's name has at most 64 bytes, and this has {0}")]
    TooLong(usize),
    /// It has a control character.
    #[error("a host's name has no control characters")]
    Control,
}

impl HostName {
    /// The most bytes of a name, which is Linux's limit for host names.
    pub const MAX_BYTES: usize = 64;

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HostName {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        match text {
            "" => Err(NotAName::Empty),
            _ if text.len() > Self::MAX_BYTES => Err(NotAName::TooLong(text.len())),
            _ if text.chars().any(char::is_control) => Err(NotAName::Control),
            _ => Ok(Self(text.into())),
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A host's name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Named {
    pub(super) mac: Mac,
    pub(super) name: HostName,
    pub(super) revision: u32,
}

/// The sums over the names of the map's hosts, one for each part. A sum is the exclusive or of hashes, so
/// names can be added and taken out in any order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Buckets(pub(super) [u64; BUCKETS]);

impl Buckets {
    /// The parts whose sums differ, as a bit each.
    pub(super) fn differing(&self, other: &Self) -> u32 {
        let pairs = self.0.iter().zip(&other.0).enumerate();
        pairs.filter(|(_, (one, other))| one != other).fold(0, |parts, (part, _)| parts | 1 << part)
    }

    fn toggle(&mut self, named: &Named) {
        self.0[bucket_of(named.mac)] ^= sum(named);
    }
}

/// The part that a host's name is in.
pub(super) fn bucket_of(mac: Mac) -> usize {
    (fnv(&mac.0) % BUCKETS as u64) as usize
}

fn sum(named: &Named) -> u64 {
    let mut bytes = named.mac.0.to_vec();
    bytes.extend(named.revision.to_be_bytes());
    bytes.extend(named.name.0.as_bytes());
    fnv(&bytes)
}

/// The hash FNV-1a with its halves mixed at the end, so that similar addresses fall into different parts.
fn fnv(bytes: &[u8]) -> u64 {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash ^ hash >> 32
}

/// The names of the hosts of the map in force, and of some that were in one before.
#[derive(Debug, Default)]
pub struct NameTable {
    /// The map in force; without one no host is listed.
    basis: Option<Arc<Basis>>,
    names: BTreeMap<Mac, Named>,
    /// The sums over the names of the map's hosts.
    buckets: Buckets,
}

impl NameTable {
    /// What a host is called, if that is known.
    pub fn name_of(&self, mac: Mac) -> Option<&HostName> {
        Some(&self.get(mac)?.name)
    }

    /// The hosts of the map with this name, where ASCII capitals do not matter.
    pub fn hosts_called(&self, name: &str) -> impl Iterator<Item = Mac> {
        let called = self.names.values().filter(move |named| named.name.0.eq_ignore_ascii_case(name));
        called.map(|named| named.mac).filter(|&mac| self.is_listed(mac))
    }

    /// All names, of hosts that are in the map or were lately, by rising address.
    pub fn iter(&self) -> impl Iterator<Item = (Mac, &HostName)> {
        self.names.values().map(|named| (named.mac, &named.name))
    }

    pub(super) fn get(&self, mac: Mac) -> Option<&Named> {
        self.names.get(&mac)
    }

    /// Whether the map lists this host.
    pub(super) fn is_listed(&self, mac: Mac) -> bool {
        self.basis.as_ref().is_some_and(|basis| basis.lists(mac))
    }

    pub(super) fn insert(&mut self, named: Named) {
        let is_listed = self.is_listed(named.mac);
        let mac = named.mac;
        if is_listed {
            self.buckets.toggle(&named);
        }
        if let Some(before) = self.names.insert(mac, named).filter(|_| is_listed) {
            self.buckets.toggle(&before);
        }
    }

    pub(super) fn buckets(&self) -> Buckets {
        self.buckets
    }

    /// The listed hosts whose names are in these parts.
    pub(super) fn hosts_in(&self, parts: u32) -> impl Iterator<Item = Mac> {
        let macs = self.names.keys().copied().filter(move |&mac| parts >> bucket_of(mac) & 1 == 1);
        macs.filter(|&mac| self.is_listed(mac))
    }

    /// Takes another map. Of the hosts that it does not list, [`MOST_GONE`] names are kept.
    pub(super) fn take_map(&mut self, basis: &Arc<Basis>) {
        self.basis = Some(Arc::clone(basis));
        let mut gone = 0;
        self.names.retain(|&mac, _| {
            gone += usize::from(!basis.lists(mac));
            basis.lists(mac) || gone <= MOST_GONE
        });
        self.buckets = Buckets::default();
        for named in self.names.values().filter(|named| basis.lists(named.mac)) {
            self.buckets.toggle(named);
        }
    }
}
