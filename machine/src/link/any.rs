//! One type for a network interface and for a cable inside the process.

use std::io::IoSlice;

use mapper_proto::{Mac, Tally};

use super::batch::Batch;
use super::interface::InterfaceChange;
use super::internal::InternalPort;
use super::port::{EthernetPort, LinkCount};
use super::unsent::Unsent;

/// What an agent or a crossbar sends and receives frames by.
#[derive(Debug)]
pub enum Link {
    /// A network interface.
    Interface(EthernetPort),
    /// An end of a cable inside the process.
    Internal(InternalPort),
}

impl From<EthernetPort> for Link {
    fn from(port: EthernetPort) -> Self {
        Self::Interface(port)
    }
}

impl From<InternalPort> for Link {
    fn from(port: InternalPort) -> Self {
        Self::Internal(port)
    }
}

/// Evaluates one expression for whichever port the link has.
macro_rules! either {
    ($link:expr, $port:ident => $call:expr) => {
        match $link {
            Link::Interface($port) => $call,
            Link::Internal($port) => $call,
        }
    };
}

impl Link {
    /// The name of the interface or of the internal port.
    pub fn name(&self) -> &str {
        either!(self, port => port.name())
    }

    /// Whether the other end can be there: the interface exists, is up and its cable carries a
    /// signal.
    pub fn carrier(&self) -> bool {
        either!(self, port => port.carrier())
    }

    /// Whether the interface exists and is administratively up.
    pub fn up(&self) -> bool {
        match self {
            Self::Interface(port) => port.up(),
            Self::Internal(_) => true,
        }
    }

    /// Whether a frame with this Ethernet header is addressed as those of the fabric are. Nobody else sends over a cable inside the
    /// process.
    pub fn is_addressed(&self, header: &[u8]) -> bool {
        match self {
            Self::Interface(port) => port.is_addressed(header),
            Self::Internal(_) => true,
        }
    }

    /// Whether there is an interface, with or without carrier.
    pub fn exists(&self) -> bool {
        match self {
            Self::Interface(port) => port.exists(),
            Self::Internal(_) => true,
        }
    }

    /// The interface's address, which may change; `None` if there is no interface.
    pub fn mac(&self) -> Option<Mac> {
        match self {
            Self::Interface(port) => port.mac(),
            Self::Internal(_) => None,
        }
    }

    /// The most bytes behind the Ethernet header; `None` if there is no interface, or no such limit.
    pub fn mtu(&self) -> Option<u32> {
        match self {
            Self::Interface(port) => port.mtu(),
            Self::Internal(_) => None,
        }
    }

    /// The counts of frames and bytes over this link.
    pub fn counts(&self) -> Tally<LinkCount> {
        either!(self, port => port.counts())
    }

    /// Takes in a change of any interface. Returns whether the carrier changed.
    pub fn apply(&self, change: &InterfaceChange) -> bool {
        match self {
            Self::Interface(port) => port.apply(change),
            Self::Internal(_) => false,
        }
    }

    /// Waits for a frame and puts it into `buffer`; returns how long it is.
    pub async fn recv(&self, buffer: &mut [u8]) -> usize {
        either!(self, port => port.recv(buffer).await)
    }

    /// Like [`Self::recv`], but `None` if no frame is there.
    pub fn try_recv(&self, buffer: &mut [u8]) -> Option<usize> {
        either!(self, port => port.try_recv(buffer))
    }

    /// Waits for frames and puts those that are there into `batch`, as many as it holds. It is emptied
    /// before.
    pub async fn recv_batch(&self, batch: &mut Batch) {
        either!(self, port => port.recv_batch(batch).await);
    }

    /// Like [`Self::recv_batch`], but does not wait; returns whether a frame is there.
    pub fn try_recv_batch(&self, batch: &mut Batch) -> bool {
        either!(self, port => port.try_recv_batch(batch))
    }

    /// Sends a payload in two parts. What cannot be sent is lost and counted.
    pub fn send(&self, route: &[u8], frame: &[u8]) {
        either!(self, port => port.send(route, frame));
    }

    /// Sends a payload as [`Self::send`] does, but the frame may wait for [`Self::flush`] and leave together
    /// with others. Frames of [`Self::send`] overtake it.
    pub fn queue(&self, route: &[u8], frame: &[u8]) {
        match self {
            Self::Interface(port) => port.queue(route, frame),
            // Nothing is saved by waiting, as this port makes no system calls.
            Self::Internal(port) => port.send(route, frame),
        }
    }

    /// Sends what was queued.
    pub fn flush(&self) {
        match self {
            Self::Interface(port) => port.flush(),
            Self::Internal(_) => {}
        }
    }

    /// Sends frames on, each as Ethernet header and payload, in order; calls `unsent` for each
    /// that is lost.
    pub fn forward_batch(&self, frames: &[[IoSlice<'_>; 2]], unsent: impl FnMut(usize, Unsent)) {
        either!(self, port => port.forward_batch(frames, unsent));
    }
}
