//! How long things take, and how often they go wrong.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long each part of a frame's way takes. With the defaults a probe is back after about 100 µs,
/// however far it went, as hosts are slow and cables and xbars are fast.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Timing {
    /// From when an agent hands a frame out until its first bit is on the cable.
    pub host_send: Duration,
    /// From the last bit off the cable until the agent has the frame.
    pub host_receive: Duration,
    /// The time along a cable; the default is that of 10 m of fibre.
    pub cable: Duration,
    /// The time through an xbar.
    pub xbar: Duration,
    /// Each frame is late by a random time up to this, so frames overtake each other.
    pub jitter: Duration,
    /// How long a host is busy with a frame before it can take the next.
    pub service: Duration,
    /// How many frames can wait at a busy host. More are lost.
    pub receive_queue: usize,
    /// How long a host computes its routes.
    pub compute: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            host_send: Duration::from_micros(49),
            host_receive: Duration::from_micros(49),
            cable: Duration::from_nanos(50),
            xbar: Duration::from_nanos(300),
            jitter: Duration::ZERO,
            service: Duration::from_micros(1),
            receive_queue: 512,
            compute: Duration::from_millis(1),
        }
    }
}

/// The probabilities of random faults of frames, each from 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Noise {
    /// The probability that a frame is lost, for each cable that it crosses.
    pub loss: f64,
    /// The probability that a bit of a frame flips, for each cable that it crosses.
    pub corrupt: f64,
    /// The probability that a frame arrives twice.
    pub duplicate: f64,
}

impl Noise {
    /// Whether nothing goes wrong.
    pub fn is_quiet(&self) -> bool {
        self.loss <= 0.0 && self.corrupt <= 0.0 && self.duplicate <= 0.0
    }
}
