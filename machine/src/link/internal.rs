//! A cable inside the process, with a bounded queue of frames at each end and without system calls.
//!
//! It joins host and crossbar on a machine that is both. Both ends belong to one thread.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::rc::Rc;

use mapper_proto::{Mac, Tally};
use tokio::sync::Notify;

use super::batch::Batch;
use super::ethernet::{HEADER_BYTES, MAX_FRAME_BYTES, Marking};
use super::port::{LinkCount, count_received, count_sent};
use super::unsent::Unsent;

/// How many frames wait at an end at most. More are lost and counted, as on an interface.
const QUEUE_FRAMES: usize = 1024;

/// Makes a cable. Frames that begin at either end ([`InternalPort::send`]) have `mac` as their source.
pub fn pair(name: &str, mac: Mac, marking: Marking) -> (InternalPort, InternalPort) {
    let lanes = [Rc::new(Lane::default()), Rc::new(Lane::default())];
    let end = |incoming: usize| InternalPort {
        name: name.to_owned(),
        mac,
        header: marking.header(mac),
        incoming: Rc::clone(&lanes[incoming]),
        outgoing: Rc::clone(&lanes[1 - incoming]),
        counts: Cell::default(),
    };
    (end(0), end(1))
}

/// Frames in one direction.
#[derive(Debug, Default)]
struct Lane {
    frames: RefCell<VecDeque<Vec<u8>>>,
    /// Buffers of frames that were taken, to be used again.
    spare: RefCell<Vec<Vec<u8>>>,
    arrived: Notify,
    /// Whether one of its two ends is gone.
    broken: Cell<bool>,
}

impl Lane {
    fn push(&self, parts: [&[u8]; 3]) -> Result<(), Unsent> {
        if self.broken.get() {
            return Err(Unsent::Down);
        }
        if parts.iter().map(|part| part.len()).sum::<usize>() > MAX_FRAME_BYTES {
            return Err(Unsent::TooLong);
        }
        let mut frames = self.frames.borrow_mut();
        if frames.len() >= QUEUE_FRAMES {
            return Err(Unsent::QueueFull);
        }
        let mut buffer = self.spare.borrow_mut().pop().unwrap_or_default();
        buffer.clear();
        parts.iter().for_each(|part| buffer.extend_from_slice(part));
        frames.push_back(buffer);
        if frames.len() == 1 {
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// Hands the next frame over, if one is there.
    fn pop<R>(&self, take: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let buffer = self.frames.borrow_mut().pop_front()?;
        let taken = take(&buffer);
        self.spare.borrow_mut().push(buffer);
        Some(taken)
    }

    async fn wait(&self) {
        while self.frames.borrow().is_empty() {
            self.arrived.notified().await;
        }
    }
}

/// One end of a cable inside the process.
#[derive(Debug)]
pub struct InternalPort {
    name: String,
    mac: Mac,
    header: [u8; HEADER_BYTES],
    incoming: Rc<Lane>,
    outgoing: Rc<Lane>,
    counts: Cell<Tally<LinkCount>>,
}

impl InternalPort {
    /// The port's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The address that stands in for an interface's.
    pub const fn mac(&self) -> Mac {
        self.mac
    }

    /// Whether the other end still exists.
    pub fn carrier(&self) -> bool {
        !self.outgoing.broken.get()
    }

    /// The counts of frames and bytes, seen from this end.
    pub fn counts(&self) -> Tally<LinkCount> {
        self.counts.get()
    }

    /// Waits for a frame and puts it into `buffer`; returns how long it is. One longer than the
    /// buffer is cut off.
    pub async fn recv(&self, buffer: &mut [u8]) -> usize {
        loop {
            self.incoming.wait().await;
            if let Some(bytes) = self.try_recv(buffer) {
                return bytes;
            }
        }
    }

    /// Like [`Self::recv`], but `None` if no frame is there.
    pub fn try_recv(&self, buffer: &mut [u8]) -> Option<usize> {
        let copy = |frame: &[u8]| {
            let bytes = frame.len().min(buffer.len());
            buffer[..bytes].copy_from_slice(&frame[..bytes]);
            bytes
        };
        let bytes = self.incoming.pop(copy)?;
        self.count(|counts| count_received(counts, 1, bytes));
        Some(bytes)
    }

    /// Waits for frames and puts them into `batch`, which is emptied before.
    pub async fn recv_batch(&self, batch: &mut Batch) {
        loop {
            self.incoming.wait().await;
            if self.try_recv_batch(batch) {
                return;
            }
        }
    }

    /// Like [`Self::recv_batch`], but does not wait; returns whether a frame is there.
    pub fn try_recv_batch(&self, batch: &mut Batch) -> bool {
        batch.clear();
        while !batch.is_full() && self.incoming.pop(|frame| batch.push(frame)).is_some() {}
        self.count(|counts| count_received(counts, batch.len(), batch.total_bytes()));
        !batch.is_empty()
    }

    /// Sends a payload in two parts behind this port's Ethernet header.
    pub fn send(&self, route: &[u8], frame: &[u8]) {
        // `push` counts a frame that is lost, and nothing else is to be done about it.
        let _counted = self.push([&self.header, route, frame]);
    }

    /// Sends frames on, each as Ethernet header and payload, in order; calls `unsent` for each that is lost.
    pub fn forward_batch(&self, frames: &[[IoSlice<'_>; 2]], mut unsent: impl FnMut(usize, Unsent)) {
        for (nth, [header, payload]) in frames.iter().enumerate() {
            if let Err(why) = self.push([header, payload, &[]]) {
                unsent(nth, why);
            }
        }
    }

    fn push(&self, parts: [&[u8]; 3]) -> Result<(), Unsent> {
        let pushed = self.outgoing.push(parts);
        let bytes = parts.iter().map(|part| part.len()).sum();
        self.count(|counts| match pushed {
            Ok(()) => count_sent(counts, 1, bytes),
            Err(_) => counts.count(LinkCount::Unsent),
        });
        pushed
    }

    fn count(&self, change: impl FnOnce(&mut Tally<LinkCount>)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }
}

impl Drop for InternalPort {
    fn drop(&mut self) {
        self.outgoing.broken.set(true);
        self.incoming.broken.set(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::batch::BATCH_FRAMES;
    use crate::link::ethernet::EthernetFrame;

    fn ends() -> (InternalPort, InternalPort) {
        pair("internal", Mac::from_position(7), Marking::default())
    }

    #[test]
    fn frames_arrive_at_the_other_end_in_order_and_as_on_an_interface() {
        let (a, b) = ends();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut buffer = vec![0; MAX_FRAME_BYTES];
            let first = async { b.recv(&mut buffer).await };
            let (bytes, ()) = tokio::join!(first, async { a.send(&[0x81], b"hello") });
            let frame = EthernetFrame::parse(&buffer[..bytes]).unwrap();
            assert_eq!((frame.source, frame.payload()), (Mac::from_position(7), &b"\x81hello"[..]));

            let mut batch = Batch::new();
            for nth in 0..=BATCH_FRAMES {
                a.send(&[], &[nth as u8]);
            }
            b.recv_batch(&mut batch).await;
            assert!(batch.is_full());
            let firsts: Vec<_> = batch.frames().map(|frame| usize::from(frame[HEADER_BYTES])).collect();
            assert_eq!(firsts, (0..BATCH_FRAMES).collect::<Vec<_>>());
            b.recv_batch(&mut batch).await;
            assert_eq!((batch.len(), b.counts()[LinkCount::Received]), (1, BATCH_FRAMES as u64 + 2));
            assert!(!b.try_recv_batch(&mut batch) && batch.is_empty());
        });
    }

    #[test]
    fn a_full_queue_loses_what_comes_and_keeps_what_it_has() {
        let (a, b) = ends();
        for _ in 0..QUEUE_FRAMES + 5 {
            a.send(&[], b"x");
        }
        assert_eq!((a.counts()[LinkCount::Sent], a.counts()[LinkCount::Unsent]), (QUEUE_FRAMES as u64, 5));
        let mut buffer = vec![0; 100];
        assert_eq!(std::iter::from_fn(|| b.try_recv(&mut buffer)).count(), QUEUE_FRAMES);
    }

    #[test]
    fn an_end_whose_other_end_is_gone_has_no_carrier() {
        let (a, b) = ends();
        assert!(a.carrier() && b.carrier());
        drop(b);
        assert!(!a.carrier());
        let mut whys = Vec::new();
        a.forward_batch(&[[IoSlice::new(&[0; 14]), IoSlice::new(&[1])]], |_, why| whys.push(why));
        assert_eq!(whys, [Unsent::Down]);
    }
}
