//! A question for paths between several ports at once.

use super::{Gid, PathRecord, RECORD_BYTES};
use crate::mad::put;

const GIDS_AT: usize = 24;

/// The attribute MultiPathRecord, as far as a datagram has room: some sources and destinations, and what
/// paths between them are to be like. It only stands in requests, which are answered with path records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MultiPathRecord {
    /// What paths are to be like. Ports are not named here.
    pub path: PathRecord,
    /// The code of how independent of each other paths must be.
    pub independence: u8,
    /// Where paths begin.
    pub sources: Vec<Gid>,
    /// Where paths lead.
    pub destinations: Vec<Gid>,
}

impl MultiPathRecord {
    /// Most GIDs in a datagram.
    pub const MAX_GIDS: usize = (RECORD_BYTES - GIDS_AT) / Gid::BYTES;

    /// The number of sources is said.
    pub const SOURCE_COUNT: u64 = 1 << 19;
    /// The number of destinations is said.
    pub const DESTINATION_COUNT: u64 = 1 << 20;

    /// The components that path records have, too, each with the component of a path record that means the
    /// same.
    const COMPONENTS: [(u64, u64); 10] = [
        (1 << 5, PathRecord::REVERSIBLE),
        (1 << 6, PathRecord::COUNT),
        (1 << 7, PathRecord::PARTITION),
        (1 << 9, PathRecord::LEVEL),
        (1 << 10, PathRecord::MTU >> 1),
        (1 << 11, PathRecord::MTU),
        (1 << 12, PathRecord::RATE >> 1),
        (1 << 13, PathRecord::RATE),
        (1 << 14, PathRecord::LIFE_TIME >> 1),
        (1 << 15, PathRecord::LIFE_TIME),
    ];

    /// Reads a request. `None` if it counts more ports than there are.
    pub fn parse(data: &[u8; RECORD_BYTES]) -> Option<Self> {
        let (first, second) = (usize::from(data[15]), usize::from(data[16]));
        if first + second > Self::MAX_GIDS {
            return None;
        }
        let gid = |at: usize| Gid::parse(data, GIDS_AT + at * Gid::BYTES);
        let mut service = [0; 8];
        service[0] = data[13];
        service[1..].copy_from_slice(&data[17..GIDS_AT]);
        let mut path = [0; PathRecord::BYTES];
        put(&mut path, 0, &service);
        put(&mut path, 44, &data[..4]);
        // From the class of traffic on, both have the same bytes.
        put(&mut path, 48, &data[4..13]);
        Some(Self {
            path: PathRecord::parse(&path),
            independence: data[14],
            sources: (0..first).map(gid).collect(),
            destinations: (first..first + second).map(gid).collect(),
        })
    }

    /// The bytes as they travel. Ports for which there is no room are left out.
    pub fn emit(&self) -> [u8; RECORD_BYTES] {
        let mut data = [0; RECORD_BYTES];
        let path = self.path.emit();
        put(&mut data, 0, &path[44..57]);
        data[13] = path[0];
        data[14] = self.independence;
        put(&mut data, 17, &path[1..8]);
        let sources = self.sources.len().min(Self::MAX_GIDS);
        let destinations = self.destinations.len().min(Self::MAX_GIDS - sources);
        (data[15], data[16]) = (sources as u8, destinations as u8);
        let gids = self.sources[..sources].iter().chain(&self.destinations[..destinations]);
        for (at, gid) in gids.enumerate() {
            put(&mut data, GIDS_AT + at * Gid::BYTES, &gid.emit());
        }
        data
    }

    /// The component mask of a path record that means the same, apart from the ports.
    pub fn path_mask(mask: u64) -> u64 {
        let named = Self::COMPONENTS.iter().filter(|(own, _)| mask & own != 0);
        named.fold(0, |sum, &(_, of_path)| sum | of_path)
    }
}
