//! A frame's way through the plant.

use std::time::Duration;

use mapper_proto::wire::Decision;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::{CableState, Node, Noise, Plant, Timing};

/// Why a frame did not arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// It was sent into a port without carrier.
    NoCarrier,
    /// It was on a cable that swallows frames.
    Silent,
    /// It was lost at random.
    Noise,
    /// An xbar could not obey it, or its route ended at an xbar.
    Misrouted,
}

/// What becomes of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It reaches a host.
    Arrives {
        /// Which host.
        host: u32,
        /// How many bytes at the payload's front have been stripped.
        stripped: usize,
        /// How long it was under way, less the time in the hosts.
        latency: Duration,
    },
    /// It does not.
    Lost(Loss),
}

impl Plant {
    /// Walks the whole way of a frame that `host` sends now. `payload` is all behind the Ethernet
    /// header; xbars stamp it and noise flips its bits in place.
    ///
    /// Ends for any payload: each xbar strips at least one byte of the route or drops the frame.
    pub fn walk(
        &self,
        host: u32,
        payload: &mut [u8],
        timing: &Timing,
        noise: &Noise,
        rng: &mut ChaCha8Rng,
    ) -> Fate {
        let mut stripped = 0;
        let mut latency = Duration::ZERO;
        let mut socket = host;
        loop {
            let here = &self.sockets[socket as usize];
            let Some(peer) = here.peer else { return Fate::Lost(Loss::NoCarrier) };
            if !self.has_carrier(socket) {
                return Fate::Lost(Loss::NoCarrier);
            }
            if here.cable == CableState::Silent {
                return Fate::Lost(Loss::Silent);
            }
            latency += timing.cable;
            if noise.loss > 0.0 && rng.random_bool(noise.loss) {
                return Fate::Lost(Loss::Noise);
            }
            if noise.corrupt > 0.0 && rng.random_bool(noise.corrupt) && stripped < payload.len() {
                let at = rng.random_range(stripped..payload.len());
                payload[at] ^= 1 << rng.random_range(0..8);
            }
            let arrival = self.sockets[peer as usize].end;
            let xbar = match arrival.node {
                Node::Host(host) => return Fate::Arrives { host, stripped, latency },
                Node::Xbar(xbar) => &self.xbars[xbar as usize],
            };
            latency += timing.xbar;
            let leave = match xbar.crossbar.decide(arrival.port, &payload[stripped..]) {
                Decision::Forward { port, strip } => {
                    stripped += strip;
                    port
                }
                Decision::Identify { strip, stamp_at } => {
                    xbar.crossbar.write_stamp(arrival.port, stripped + stamp_at, payload);
                    stripped += strip;
                    arrival.port
                }
                Decision::Drop(_) => return Fate::Lost(Loss::Misrouted),
            };
            socket = xbar.base + u32::from(leave - xbar.crossbar.first_port);
        }
    }
}
