//! A port of InfiniBand: the paths from it are not told all at once, but found one by one when they are asked for.
//!
//! The administration of its subnet knows them, and whom a name, a GID or a LID stands for. What was found holds until the
//! agent says that something changed, and then all is forgotten.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use crate::wire::{Address, PathRecord};

/// The most that is kept of what was found.
const MOST_FOUND: usize = 1 << 16;
/// The part of a partition's number that says which it is, and not how a port is in it.
const PARTITION: u16 = 0x7fff;

/// What a path leads to, as an agent is asked for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wanted {
    /// A name or an address, as [`Address::into_key`] writes it. An address of IPv6 is a GID.
    Address(Address),
    /// The LID of a port of InfiniBand.
    Lid(u16),
}

impl Wanted {
    /// What a path leads to, by its GID or else its LID; `None` if the record has neither.
    pub(crate) fn along(path: &PathRecord) -> Option<Self> {
        match (path.dgid.is_unspecified(), path.dlid) {
            (false, _) => Some(Self::Address(Address::V6(path.dgid))),
            (true, 0) => None,
            (true, lid) => Some(Self::Lid(lid)),
        }
    }
}

/// What an agent found when it was asked for a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundPath {
    /// This path.
    Path(PathRecord),
    /// Nobody has that name, address or LID.
    Nobody,
    /// Somebody has it, and no path leads there.
    NoPath,
    /// Several ports have it.
    Several,
}

/// Whom something stands for, as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    To(Ipv6Addr),
    Nobody,
    NoPath,
    Several,
}

/// A port, as its agent tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// The GUID of its device.
    pub device_guid: u64,
    /// Its number at that device.
    pub number: u8,
    /// How many ports the device has.
    pub count: u8,
    /// Its GID.
    pub gid: Ipv6Addr,
    /// Its first LID; 0 for none.
    pub lid: u16,
    /// 2^lmc LIDs belong to it.
    pub lmc: u8,
}

/// A port, and what was found from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FromPort {
    pub(super) port: Port,
    answers: BTreeMap<Wanted, Answer>,
    paths: BTreeMap<Ipv6Addr, PathRecord>,
}

impl FromPort {
    pub(super) const fn new(port: Port) -> Self {
        Self { port, answers: BTreeMap::new(), paths: BTreeMap::new() }
    }

    /// Takes in what was found.
    pub(super) fn learn(&mut self, wanted: &Wanted, found: &FoundPath) {
        if self.answers.len() >= MOST_FOUND {
            self.answers.clear();
            self.paths.clear();
        }
        let answer = match found {
            FoundPath::Path(path) => {
                self.paths.insert(path.dgid, *path);
                Answer::To(path.dgid)
            }
            FoundPath::Nobody => Answer::Nobody,
            FoundPath::NoPath => Answer::NoPath,
            FoundPath::Several => Answer::Several,
        };
        self.answers.insert(wanted.clone(), answer);
    }

    /// What was found; `None` if it was not asked for so far. Subnets know no addresses of IPv4.
    pub(super) fn answer(&self, wanted: &Wanted) -> Option<Answer> {
        match wanted {
            Wanted::Address(Address::V4(_)) => Some(Answer::Nobody),
            Wanted::Address(Address::V6(gid)) if *gid == self.port.gid || self.paths.contains_key(gid) => {
                Some(Answer::To(*gid))
            }
            _ => self.answers.get(wanted).copied(),
        }
    }

    /// The path to a GID in a partition. The specification tells of a path which partition it is in.
    pub(super) fn record(&self, gid: Ipv6Addr, pkey: u16) -> Option<PathRecord> {
        self.paths.get(&gid).filter(|path| (path.pkey ^ pkey) & PARTITION == 0).copied()
    }

    /// Whether nobody was asked for the path to a GID so far.
    pub(super) fn has_to_ask(&self, gid: Ipv6Addr) -> bool {
        !self.paths.contains_key(&gid) && !self.answers.contains_key(&Wanted::Address(Address::V6(gid)))
    }

    pub(super) fn has_lid(&self, lid: u16) -> bool {
        let Port { lid: own, lmc, .. } = self.port;
        own != 0 && lid.checked_sub(own).is_some_and(|beyond| beyond >> lmc == 0)
    }
}
