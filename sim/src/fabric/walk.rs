//! A frame's way through the plant.

use std::time::Duration;

use mapper_proto::wire::Decision;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::plant::PhysicalXbar;
use super::{CableState, Noise, Plant, PlantNode, PlantPort, Timing};

/// Why a frame did not arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// It was sent into a port without carrier.
    NoCarrier,
    /// It was on a cable that carries no frames though it has carrier, or came to an xbar that does not run.
    Silent,
    /// It was lost on a cable that loses some.
    Lossy,
    /// It was lost at random.
    Noise,
    /// An xbar could not obey it, or its route ended at an xbar.
    Misrouted,
}

/// What becomes of a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The frame reaches a host.
    Arrives {
        /// Which host.
        host: u32,
        /// How many bytes xbars stripped from the front of the payload.
        stripped: usize,
        /// How long it was under way, without the time in the hosts.
        latency: Duration,
    },
    /// The frame is lost.
    Lost(Loss),
    /// The frame is lost as an xbar's port has no carrier, and the xbar sends a notice to its sender.
    Returned {
        /// The socket by which the notice leaves the xbar.
        socket: u32,
        /// The notice, route first.
        notice: Vec<u8>,
        /// How long the frame was under way until then, without the time in the host.
        latency: Duration,
    },
}

impl Plant {
    /// Takes a frame that `host` sends now along its whole way. `payload` is all behind the Ethernet
    /// header; xbars stamp it and noise flips its bits in place. Xbars remember the checks that they send on.
    ///
    /// This ends for any payload, as each xbar strips at least one byte of the route or drops the frame.
    pub fn walk(
        &mut self,
        host: u32,
        payload: &mut [u8],
        timing: &Timing,
        noise: &Noise,
        rng: &mut ChaCha8Rng,
    ) -> Fate {
        self.walk_from(host, payload, timing, noise, rng)
    }

    /// Does the same as [`Self::walk`] for a frame that leaves by this socket, which may be an xbar's.
    pub(crate) fn walk_from(
        &mut self,
        socket: u32,
        payload: &mut [u8],
        timing: &Timing,
        noise: &Noise,
        rng: &mut ChaCha8Rng,
    ) -> Fate {
        let mut stripped = 0;
        let mut latency = Duration::ZERO;
        let mut socket = socket;
        // The socket by which the frame came into the xbar that it is in, and how many bytes had been
        // stripped before that xbar.
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
            let (end, cable) = (here.end, here.cable);
            if let (Some((socket, stripped)), PlantNode::Xbar(xbar)) = (came_in, end.node) {
                let arrival = self.sockets[socket as usize].end.port;
                let PhysicalXbar { crossbar, passed, .. } = &mut self.xbars[xbar as usize];
                passed.note(crossbar, (arrival, end.port), &payload[stripped..]);
            }
            if cable == CableState::Silent {
                return Fate::Lost(Loss::Silent);
            }
            latency += timing.cable;
            if cable.loss() > 0.0 && rng.random_bool(cable.loss()) {
                return Fate::Lost(Loss::Lossy);
            }
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
            if !xbar.is_running {
                return Fate::Lost(Loss::Silent);
            }
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

    /// The notice that the xbar of this port sends to whoever sent `payload`, which cannot leave by the port.
    fn notice(&self, end: PlantPort, payload: &[u8]) -> Option<Vec<u8>> {
        let PlantNode::Xbar(xbar) = end.node else { return None };
        self.xbars[xbar as usize].crossbar.undeliverable(end.port, payload)
    }

    /// The sockets by which a frame that `host` sends now leaves the xbars on its way, as far as it gets.
    pub(crate) fn channels(&self, host: u32, payload: &[u8]) -> Vec<u32> {
        let (mut channels, mut socket, mut stripped) = (Vec::new(), host, 0);
        loop {
            let here = &self.sockets[socket as usize];
            let Some(peer) = here.peer.filter(|_| self.joins(socket)) else { return channels };
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
