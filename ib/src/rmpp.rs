//! Answers that take several datagrams: the sender of reliable transfers (RMPP), as the specification's chapter 13.6 has it.
//!
//! One segment goes out. Each acknowledgement of the receiver (ACK) says what came and how far to go on.
//! Segments that are not acknowledged are sent again. There is no receiver here, as all requests of hosts fit
//! a datagram.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use mapper_proto::time::Instant;

use crate::mad::sa::{RECORD_BYTES, Rmpp, SEGMENT_HEADER_BYTES, SaMad};
use crate::packet::{Address, Packet};

/// How long an acknowledgement is waited for.
const TIMEOUT: Duration = Duration::from_millis(500);
/// How often segments are sent again before the transfer is given up.
const RETRIES: u32 = 5;
/// Most segments under way in a transfer.
const WINDOW: u32 = 64;
/// Most transfers at a time.
const MAX_TRANSFERS: usize = 256;
/// Most bytes of records in all transfers.
const MAX_BYTES: usize = 32 << 20;

/// Why a transfer is aborted.
#[derive(Clone, Copy)]
enum Why {
    /// The window ends before what was acknowledged.
    WindowBeforeSegment = 122,
    /// A segment was acknowledged that was never sent.
    NeverSent = 123,
    /// No acknowledgement came.
    TooManyRetries = 126,
}

/// The receiver's LID and queue pair, and the transaction.
pub(crate) type Key = (u16, u32, u64);

/// Records on their way.
#[derive(Debug)]
struct Transfer {
    address: Address,
    /// The request that is answered.
    request: SaMad,
    /// The datagram with an empty header of transfers and no records.
    answer: SaMad,
    records: Vec<u8>,
    /// How many segments there are.
    count: u32,
    /// The next segment to send, counted from 1.
    next: u32,
    /// The last segment that was ever sent.
    sent: u32,
    acknowledged: u32,
    /// The last segment that may be sent.
    window_end: u32,
    /// When the segments that are not acknowledged are sent again.
    deadline: Instant,
    retries: u32,
}

impl Transfer {
    fn may_send(&self) -> bool {
        self.next <= self.count.min(self.window_end)
    }

    /// The segment with this number, which must exist.
    fn segment(&self, number: u32) -> SaMad {
        let first = (number as usize - 1) * RECORD_BYTES;
        let part = &self.records[first..self.records.len().min(first + RECORD_BYTES)];
        let (mut flags, mut length) = (Rmpp::ACTIVE, 0);
        if number == 1 {
            flags |= Rmpp::FIRST;
            length = self.records.len() + self.count as usize * SEGMENT_HEADER_BYTES;
        }
        if number == self.count {
            flags |= Rmpp::LAST;
            length = part.len() + SEGMENT_HEADER_BYTES;
        }
        let mut segment = self.answer.clone();
        segment.data[..part.len()].copy_from_slice(part);
        segment.rmpp = Rmpp {
            version: 1,
            kind: Rmpp::DATA,
            flags,
            response_time: Rmpp::NO_TIME,
            status: 0,
            segment: number,
            length: length as u32,
        };
        segment
    }

    fn aborted(&self, why: Why) -> Packet {
        let mut mad = self.answer.clone();
        mad.rmpp =
            Rmpp { version: 1, kind: Rmpp::ABORT, flags: Rmpp::ACTIVE, status: why as u8, ..Rmpp::default() };
        Packet { address: self.address, mad: mad.emit() }
    }
}

/// All transfers under way.
#[derive(Debug, Default)]
pub(crate) struct Transfers {
    open: BTreeMap<Key, Transfer>,
    /// The transfer whose segment was sent last, so that all take turns.
    last: Option<Key>,
    bytes: usize,
    out: Vec<Packet>,
    /// Whether receivers acknowledge nothing, so that a transfer ends with its first segment.
    are_receivers_silent: bool,
}

impl Transfers {
    /// Has every transfer end with its first segment, as receivers acknowledge nothing.
    pub(crate) fn end_with_first(&mut self) {
        self.are_receivers_silent = true;
    }

    /// The same without any transfer under way.
    pub(crate) fn without_transfers(&self) -> Self {
        Self { are_receivers_silent: self.are_receivers_silent, ..Self::default() }
    }

    /// Whether the answer to a request is under way, so that the request is a repetition.
    pub(crate) fn answers(&self, key: &Key, request: &SaMad) -> bool {
        self.open.get(key).is_some_and(|transfer| transfer.request == *request)
    }

    /// Begins to send the records that answer a request. `offset` is the distance from one record to the
    /// next, in units of eight bytes. Another answer to the same transaction ends. Returns false if there is
    /// no room.
    pub(crate) fn begin(
        &mut self,
        key: Key,
        address: Address,
        request: &SaMad,
        (offset, records): (u16, Vec<u8>),
        now: Instant,
    ) -> bool {
        self.end(&key);
        if self.open.len() >= MAX_TRANSFERS || self.bytes + records.len() > MAX_BYTES {
            return false;
        }
        self.bytes += records.len();
        let count = records.len().div_ceil(RECORD_BYTES).max(1) as u32;
        let answer = SaMad { offset, ..request.answered(0).with_record(&[]) };
        let transfer = Transfer {
            address,
            request: request.clone(),
            answer,
            records,
            count,
            next: 1,
            sent: 0,
            acknowledged: 0,
            window_end: 1,
            deadline: now + TIMEOUT,
            retries: 0,
        };
        self.open.insert(key, transfer);
        true
    }

    /// Takes a datagram of a receiver.
    pub(crate) fn handle(&mut self, key: &Key, word: &Rmpp, now: Instant) {
        let Some(transfer) = self.open.get_mut(key) else { return };
        if word.kind != Rmpp::ACK {
            return self.end(key);
        }
        let (segment, window_end) = (word.segment, word.length);
        let wrong = if segment > transfer.sent {
            Some(Why::NeverSent)
        } else if window_end < segment {
            Some(Why::WindowBeforeSegment)
        } else {
            None
        };
        if let Some(why) = wrong {
            self.out.push(transfer.aborted(why));
            return self.end(key);
        }
        // An old acknowledgement says nothing new.
        if segment < transfer.acknowledged {
            return;
        }
        if segment > transfer.acknowledged {
            transfer.acknowledged = segment;
            transfer.next = transfer.next.max(segment + 1);
            transfer.retries = 0;
            transfer.deadline = now + TIMEOUT;
        }
        transfer.window_end = transfer.window_end.max(window_end.min(segment + WINDOW));
        if segment == transfer.count {
            self.end(key);
        }
    }

    fn end(&mut self, key: &Key) {
        if let Some(transfer) = self.open.remove(key) {
            self.bytes -= transfer.records.len();
        }
    }

    /// The next datagram to send, if one may go out now.
    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        if let Some(packet) = self.out.pop() {
            return Some(packet);
        }
        let after = self.last.and_then(|last| {
            self.open.range(last..).find(|(key, transfer)| **key != last && transfer.may_send())
        });
        let key = *after.or_else(|| self.open.iter().find(|(_, transfer)| transfer.may_send()))?.0;
        self.last = Some(key);
        let transfer = self.open.get_mut(&key)?;
        let segment = transfer.segment(transfer.next);
        transfer.sent = transfer.sent.max(transfer.next);
        transfer.next += 1;
        transfer.deadline = now + TIMEOUT;
        let packet = Packet { address: transfer.address, mad: segment.emit() };
        if self.are_receivers_silent {
            self.end(&key);
        }
        Some(packet)
    }

    /// When to call [`Self::handle_timeout`].
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.open.values().map(|transfer| transfer.deadline).min()
    }

    /// Sends segments again that were not acknowledged, or gives the transfer up.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        let mut given_up = Vec::new();
        for (key, transfer) in self.open.iter_mut().filter(|(_, transfer)| transfer.deadline <= now) {
            transfer.retries += 1;
            transfer.deadline = now + TIMEOUT;
            // The first segment may be sent without an acknowledgement.
            transfer.next = transfer.acknowledged + 1;
            if transfer.retries > RETRIES {
                self.out.push(transfer.aborted(Why::TooManyRetries));
                given_up.push(*key);
            }
        }
        given_up.iter().for_each(|key| self.end(key));
    }
}
