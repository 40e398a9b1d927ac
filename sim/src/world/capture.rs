//! Frames as a recorder sees them: at the interfaces of hosts.

use std::fmt;

use mapper_proto::{Instant, Mac};

use super::TraceError;
use crate::fabric::Loss;

/// Which way a frame went through a host's interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Into the host. The sender's address is not known there: crossbars send with their own.
    Received,
    /// Out of the host, which has this address.
    Sent {
        /// The address.
        from: Mac,
    },
}

/// A frame at the interface of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CapturedFrame<'a> {
    /// When it was there.
    pub at: Instant,
    /// The host, by its position in the fabric.
    pub host: u32,
    /// Which way it went.
    pub direction: Direction,
    /// All behind the link's header: the route that is left, and what stands behind it.
    pub payload: &'a [u8],
    /// Remarks on the frame: the faults that struck since the frame before it, and why it was lost.
    pub remarks: &'a [String],
}

/// Where captured frames go, in the order of their times.
pub trait FrameSink {
    /// A frame passed an interface, or was lost at it.
    ///
    /// # Errors
    /// If it cannot be written.
    fn frame(&mut self, frame: &CapturedFrame<'_>) -> Result<(), TraceError>;

    /// The run is over.
    ///
    /// # Errors
    /// If what was put off cannot be written.
    fn end(&mut self) -> Result<(), TraceError>;
}

/// Why a frame does not reach an agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Undelivered {
    /// The fault file says that this frame is to be lost.
    ToBeLost,
    /// It was lost between the hosts.
    OnTheWay(Loss),
    /// A port on its way has no carrier, and the crossbar tells whoever sent it.
    Returned,
    /// The interface that it leaves or comes to carries no frames as long as this one.
    TooLong,
    /// No agent runs where it arrived.
    Unheard,
    /// Too many frames wait where it arrived.
    Overflowed,
}

impl fmt::Display for Undelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ToBeLost => "lost: the fault file says so",
            Self::OnTheWay(Loss::NoCarrier) => "lost: a port on its way has no carrier",
            Self::OnTheWay(Loss::Silent) => "lost: a cable on its way swallows frames",
            Self::OnTheWay(Loss::Lossy) => "lost: a cable on its way loses some",
            Self::OnTheWay(Loss::Noise) => "lost: at random",
            Self::OnTheWay(Loss::Misrouted) => "lost: a crossbar cannot obey its route",
            Self::Returned => "lost: a port on its way has no carrier, and a notice comes back",
            Self::TooLong => "lost: too long for the interface",
            Self::Unheard => "lost: no agent runs here",
            Self::Overflowed => "lost: too many frames wait here",
        })
    }
}

/// Hands frames to the sink, if there is one.
#[derive(Default)]
pub(super) struct Capture {
    sink: Option<Box<dyn FrameSink>>,
    /// The remarks on the next frame.
    remarks: Vec<String>,
    /// The first error of the sink. It stops the run at the next event.
    error: Option<TraceError>,
}

impl Capture {
    /// The most faults that the next frame tells of. They are bounded, as there may be no further frame.
    const MAX_REMARKS: usize = 64;

    pub(super) fn set_sink(&mut self, sink: Box<dyn FrameSink>) {
        self.sink = Some(sink);
    }

    /// Whether anybody wants frames. If not, they need not be copied.
    pub(super) const fn is_on(&self) -> bool {
        self.sink.is_some()
    }

    pub(super) const fn take_error(&mut self) -> Option<TraceError> {
        self.error.take()
    }

    /// A fault struck: the next frame tells of it.
    pub(super) fn strike(&mut self, fault: &str) {
        if self.is_on() && self.remarks.len() < Self::MAX_REMARKS {
            self.remarks.push(format!("before this frame a fault struck: {fault}"));
        }
    }

    /// A frame passed the interface of a host, or was lost.
    pub(super) fn frame(
        &mut self,
        at: Instant,
        host: u32,
        direction: Direction,
        payload: &[u8],
        undelivered: Option<Undelivered>,
    ) {
        let Some(sink) = &mut self.sink else { return };
        self.remarks.extend(undelivered.map(|why| why.to_string()));
        let frame = CapturedFrame { at, host, direction, payload, remarks: &self.remarks };
        if let (Err(error), None) = (sink.frame(&frame), &self.error) {
            self.error = Some(error);
        }
        self.remarks.clear();
    }

    /// The run is over.
    pub(super) fn end(&mut self) -> Result<(), TraceError> {
        self.sink.take().map_or(Ok(()), |mut sink| sink.end())
    }
}
