//! A frame's way through the plant.

use std::time::Duration;

use mapper_proto::wire::Decision;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::{CableState, Noise, Plant, PlantNode, PlantPort, Timing};

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
#[derive(Clone, PartialEq, Eq, Debug)]
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
    /// It does not, as an xbar's port has no carrier, and the xbar tells whoever sent it.
    Returned {
        /// Where the notice leaves the xbar.
        socket: u32,
        /// The notice: route and frame.
        notice: Vec<u8>,
        /// How long the frame was under way until then, less the time in the host.
        latency: Duration,
    },
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
        self.walk_from(host, payload, timing, noise, rng)
    }

    /// As [`Self::walk`], for a frame that leaves by the interface with this number, which may be an xbar's.
    pub(crate) fn walk_from(
        &self,
        socket: u32,
        payload: &mut [u8],
        timing: &Timing,
        noise: &Noise,
        rng: &mut ChaCha8Rng,
    ) -> Fate {
        let mut stripped = 0;
        let mut latency = Duration::ZERO;
        let mut socket = socket;
        // Where it came into the xbar that it leaves now, and how much had been stripped before.
        let mut came_in: Option<(u32, usize)> = None;
        loop {
            let here = &self.sockets[socket as usize];
            let Some(peer) = here.peer.filter(|_| self.has_carrier(socket)) else {
                let notice = came_in.and_then(|(socket, stripped)| {
                    Some((socket, self.notice(here.end, payload.get(stripped..)?)?))
                });
                return match notice {
                    Some((socket, notice)) => Fate::Returned { socket, notice, latency },
                    None => Fate::Lost(Loss::NoCarrier),
                };
            };
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
                PlantNode::Host(host) => return Fate::Arrives { host, stripped, latency },
                PlantNode::Xbar(xbar) => &self.xbars[xbar as usize],
            };
            latency += timing.xbar;
            came_in = Some((peer, stripped));
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

    /// What the xbar of this end tells whoever sent `payload`, which cannot leave by it.
    fn notice(&self, end: PlantPort, payload: &[u8]) -> Option<Vec<u8>> {
        let PlantNode::Xbar(xbar) = end.node else { return None };
        self.xbars[xbar as usize].crossbar.undeliverable(end.port, payload)
    }

    /// The interfaces by which a frame that `host` sends now leaves its xbars, up to where it is lost.
    pub(crate) fn channels(&self, host: u32, payload: &[u8]) -> Vec<u32> {
        let (mut channels, mut socket, mut stripped) = (Vec::new(), host, 0);
        loop {
            let here = &self.sockets[socket as usize];
            let passes = here.cable == CableState::Up && self.has_carrier(socket);
            let Some(peer) = here.peer.filter(|_| passes) else { return channels };
            let arrival = self.sockets[peer as usize].end;
            let PlantNode::Xbar(xbar) = arrival.node else { return channels };
            let xbar = &self.xbars[xbar as usize];
            let Decision::Forward { port, strip } = xbar.crossbar.decide(arrival.port, &payload[stripped..])
            else {
                return channels;
            };
            stripped += strip;
            socket = xbar.base + u32::from(port - xbar.crossbar.first_port);
            channels.push(socket);
        }
    }
}
