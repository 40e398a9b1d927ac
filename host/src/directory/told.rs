//! Records as they were told, which all who know the same share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mapper_proto::Mac;

use super::record::Record;
use super::sums::fnv;
use crate::routes::Basis;

/// A host's record, as it travels.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) mac: Mac,
    pub(super) record: Record,
    /// The record as [`Record::write`] writes it.
    pub(super) bytes: Box<[u8]>,
    /// What it adds to the sums over all records.
    pub(super) sum: u64,
}

impl Told {
    pub(super) fn new(mac: Mac, record: Record) -> Arc<Self> {
        let mut bytes = Vec::with_capacity(96);
        record.write(mac, &mut bytes);
        let sum = fnv(&bytes);
        Arc::new(Self { mac, record, bytes: bytes.into(), sum })
    }
}

/// The record that was last told of each host of a map, in the order of [`Basis::rank`]. All hosts that share
/// a map share these records, so where many hosts run in one process each record is kept once and read off a
/// message once.
#[derive(Debug, Default)]
pub(crate) struct LastTold(Mutex<Vec<Option<Arc<Told>>>>);

impl LastTold {
    /// Locks the records, for as long as one message is read.
    pub(super) fn hold<'a>(&'a self, basis: &'a Basis) -> Held<'a> {
        // A thread that panicked while it held the lock has left no record half written.
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.resize(basis.listed(), None);
        Held { basis, last }
    }
}

/// The records that were last told, while nobody else uses them.
pub(super) struct Held<'a> {
    basis: &'a Basis,
    last: MutexGuard<'a, Vec<Option<Arc<Told>>>>,
}

impl Held<'_> {
    /// Reads a record off the beginning of `bytes`, and says which of the map's hosts it is of. `None` if it is malformed.
    pub(super) fn read(&mut self, bytes: &mut &[u8]) -> Option<(Option<usize>, Arc<Told>)> {
        let rank = self.basis.rank(Mac(*bytes.first_chunk()?));
        let Some(slot) = rank.and_then(|rank| self.last.get_mut(rank)) else {
            return Some((None, read(bytes)?));
        };
        // No record is the beginning of another, so what begins with the same bytes is the same record.
        if let Some(known) = slot
            && let Some(rest) = bytes.strip_prefix(&known.bytes[..])
        {
            *bytes = rest;
            return Some((rank, Arc::clone(known)));
        }
        let told = read(bytes)?;
        *slot = Some(Arc::clone(&told));
        Some((rank, told))
    }

    /// The copy that all share of the record of the host of this rank.
    pub(super) fn share(&mut self, rank: usize, told: Arc<Told>) -> Arc<Told> {
        match self.last.get_mut(rank) {
            Some(Some(known)) if **known == *told => Arc::clone(known),
            Some(slot) => Arc::clone(slot.insert(told)),
            None => told,
        }
    }
}

/// Reads a record off the beginning of `bytes`. `None` if it is malformed.
pub(super) fn read(bytes: &mut &[u8]) -> Option<Arc<Told>> {
    let (mac, record) = Record::read(bytes)?;
    Some(Told::new(mac, record))
}
