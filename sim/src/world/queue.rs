//! The event queue: what happens next, in an order that depends on nothing but the run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use mapper_proto::Instant;

/// What happens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum What {
    /// A host's agent starts for the first time.
    PowerOn { host: u32 },
    /// A frame reaches its host: an index into [`Flights`].
    Frame { flight: u32 },
    /// A host that was busy takes the next frame.
    Serve { host: u32 },
    /// An agent's timeout, unless it has been set to another moment since.
    Timeout { host: u32 },
    /// A host is done with computing routes.
    Routes { host: u32 },
    /// A fault of the plan strikes.
    Fault { index: u32 },
    /// Users begin to send.
    StartUsers,
    /// The user at a host sends a frame.
    User { host: u32 },
    /// A packet has come through the kernels.
    Packet { number: u32 },
    /// A host's kernel is to be looked at.
    Kernel { host: u32 },
}

/// An event in the queue. Events are ordered by time, and then by when they were put in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Entry {
    at: Instant,
    sequence: u64,
    what: What,
}

/// Events to come.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<Entry>>,
    sequence: u64,
}

impl Queue {
    pub(super) fn push(&mut self, at: Instant, what: What) {
        self.sequence += 1;
        self.heap.push(Reverse(Entry { at, sequence: self.sequence, what }));
    }

    /// When the next event is due.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    pub(super) fn pop(&mut self) -> Option<(Instant, What)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.what))
    }
}

/// A frame under way or waiting at its host.
#[derive(Debug)]
pub(super) struct Flight {
    /// The host at which it will arrive.
    pub(super) host: u32,
    /// How many bytes at the front have been stripped by xbars.
    pub(super) stripped: usize,
    /// What it carries, route first.
    pub(super) payload: Vec<u8>,
}

/// All frames under way. Slots and buffers are used again, so a frame costs no allocation once
/// the run is warm.
#[derive(Debug, Default)]
pub(super) struct Flights {
    slots: Vec<Option<Flight>>,
    free: Vec<u32>,
    buffers: Vec<Vec<u8>>,
    /// The most that were under way at once.
    pub(super) peak: usize,
}

impl Flights {
    /// Most idle buffers that are kept.
    const MAX_IDLE_BUFFERS: usize = 4096;

    /// An empty buffer.
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        self.buffers.pop().unwrap_or_default()
    }

    /// Gives a buffer back.
    pub(super) fn recycle(&mut self, mut buffer: Vec<u8>) {
        if self.buffers.len() < Self::MAX_IDLE_BUFFERS {
            buffer.clear();
            self.buffers.push(buffer);
        }
    }

    pub(super) fn insert(&mut self, flight: Flight) -> u32 {
        let index = if let Some(index) = self.free.pop() {
            self.slots[index as usize] = Some(flight);
            index
        } else {
            self.slots.push(Some(flight));
            (self.slots.len() - 1) as u32
        };
        self.peak = self.peak.max(self.slots.len() - self.free.len());
        index
    }

    pub(super) fn take(&mut self, index: u32) -> Option<Flight> {
        let flight = self.slots[index as usize].take()?;
        self.free.push(index);
        Some(flight)
    }

    /// How long a frame is when it arrives, in bytes; 0 if it is gone.
    pub(super) fn len_bytes(&self, index: u32) -> usize {
        let flight = self.slots[index as usize].as_ref();
        flight.map_or(0, |flight| flight.payload.len().saturating_sub(flight.stripped))
    }

    /// Where a frame will arrive.
    pub(super) fn host(&self, index: u32) -> Option<u32> {
        self.slots[index as usize].as_ref().map(|flight| flight.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_then_in_the_order_put_in() {
        let mut queue = Queue::default();
        queue.push(Instant::from_nanos(5), What::Serve { host: 9 });
        queue.push(Instant::from_nanos(3), What::Serve { host: 2 });
        queue.push(Instant::from_nanos(5), What::PowerOn { host: 1 });
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|(_, what)| what).collect();
        assert_eq!(order, [What::Serve { host: 2 }, What::Serve { host: 9 }, What::PowerOn { host: 1 }]);
    }

    #[test]
    fn slots_are_used_again() {
        let mut flights = Flights::default();
        let flight = |host| Flight { host, stripped: 0, payload: Vec::new() };
        let first = flights.insert(flight(1));
        assert_eq!(flights.take(first).map(|f| f.host), Some(1));
        assert!(flights.take(first).is_none());
        assert_eq!(flights.insert(flight(2)), first);
        assert_eq!(flights.peak, 1);
    }
}
