//! Frames on their way: they are sent, wait at a busy host, and are handed to its agent.

use std::time::Duration;

use mapper_host::HostEvent;
use mapper_proto::Instant;
use mapper_proto::wire::split_route;
use rand::RngExt;

use super::World;
use super::capture::{Direction, Undelivered};
use super::counts::FabricCount;
use super::queue::{Flight, What};
use crate::fabric::{Fate, Loss};
use crate::faults::Fault;

impl World {
    /// Takes all that the agent of a host wants: frames, events, the next timeout. Called after
    /// each call of its handlers.
    pub(super) fn drain(&mut self, host: u32) {
        let index = host as usize;
        self.set_tap_mtu(host);
        self.serve_kernel(host);
        loop {
            let mut payload = self.flights.buffer();
            let node = self.hosts[index].node.as_mut();
            if !node.is_some_and(|node| node.append_transmit(&mut payload)) {
                self.flights.recycle(payload);
                break;
            }
            self.send(host, payload);
        }
        self.take_user_frames(host);
        self.send_probes(host);
        while let Some(event) = self.hosts[index].node.as_mut().and_then(|node| node.poll_event()) {
            let ends = event == HostEvent::MappedOnce;
            self.take_event(host, event);
            if ends {
                return self.end_agent(host);
            }
        }
        if let Some(task) = self.hosts[index].node.as_mut().and_then(|node| node.poll_task()) {
            self.begin_routes(host, task);
        }
        self.note_table(host);
        let slot = &mut self.hosts[index];
        let Some(want) = slot.node.as_ref().and_then(|node| node.poll_timeout()) else { return };
        let want = want.max(self.now);
        if want > self.now {
            slot.timeouts_now = 0;
        }
        if want < slot.timeout_at {
            slot.timeout_at = want;
            self.queue.push(want, What::Timeout { host });
        }
    }

    /// Sends a frame on its way, and shows it to whoever captures frames.
    fn send(&mut self, host: u32, payload: Vec<u8>) {
        self.stats.frames.count(FabricCount::Sent);
        self.trace.frame(self.now, host, &payload);
        if self.routes_are_watched() {
            self.follow_user_frame(host, &payload);
        }
        // Crossbars and noise change the payload on its way.
        let as_sent = self.capture.is_on().then(|| payload.clone());
        let arrives = self.carry(host, payload);
        if let Some(as_sent) = as_sent {
            let direction = Direction::Sent { from: self.hosts[host as usize].settings.mac };
            self.capture.frame(self.now, host, direction, &as_sent, arrives.err());
        }
    }

    /// Walks a frame's whole way and books its arrival.
    fn carry(&mut self, host: u32, mut payload: Vec<u8>) -> Result<(), Undelivered> {
        if self.is_to_be_lost(host, &payload) {
            self.stats.frames.count(FabricCount::LostToNoise);
            self.flights.recycle(payload);
            return Err(Undelivered::ToBeLost);
        }
        if payload.len() > self.hosts[host as usize].mtu_bytes.into() {
            self.stats.frames.count(FabricCount::TooLong);
            self.flights.recycle(payload);
            return Err(Undelivered::TooLong);
        }
        let timing = &self.options.timing;
        match self.plant.walk(host, &mut payload, timing, &self.noise, &mut self.rng) {
            Fate::Returned { socket, notice, latency } => {
                // The notice that comes back is another frame, which the xbar sends.
                self.stats.frames.count(FabricCount::LostOnDeadCables);
                self.flights.recycle(payload);
                self.carry_notice(socket, notice, latency);
                Err(Undelivered::Returned)
            }
            fate => self.end_walk(payload, &fate, Duration::ZERO),
        }
    }

    /// Has xbars send the notices that fall due as ports of theirs have lost carrier.
    pub(super) fn send_notices(&mut self) {
        while let Some((socket, notice)) = self.plant.poll_notice() {
            self.carry_notice(socket, notice, Duration::ZERO);
        }
    }

    /// Walks the way of a notice that an xbar sends by this socket, so long after this moment, and books its arrival.
    fn carry_notice(&mut self, socket: u32, mut notice: Vec<u8>, after: Duration) {
        let timing = &self.options.timing;
        let fate = self.plant.walk_from(socket, &mut notice, timing, &self.noise, &mut self.rng);
        // Nobody is told of a notice that is lost.
        let _arrives = self.end_walk(notice, &fate, after);
    }

    /// Books the arrival of a frame that was under way for so long before the walk that ended like this.
    fn end_walk(&mut self, payload: Vec<u8>, fate: &Fate, before: Duration) -> Result<(), Undelivered> {
        let timing = &self.options.timing;
        let (to, stripped, latency) = match *fate {
            Fate::Arrives { host, stripped, latency } => (host, stripped, before + latency),
            Fate::Lost(loss) => {
                match loss {
                    Loss::NoCarrier | Loss::Silent => self.stats.frames.count(FabricCount::LostOnDeadCables),
                    Loss::Noise | Loss::Lossy => self.stats.frames.count(FabricCount::LostToNoise),
                    Loss::Misrouted => self.stats.frames.count(FabricCount::Misrouted),
                }
                self.flights.recycle(payload);
                return Err(Undelivered::OnTheWay(loss));
            }
            // No notice is sent about a notice that cannot be delivered.
            Fate::Returned { .. } => {
                self.stats.frames.count(FabricCount::LostOnDeadCables);
                return Err(Undelivered::Returned);
            }
        };
        let arrival = self.now + timing.host_send + latency + timing.host_receive;
        if self.noise.duplicate > 0.0 && self.rng.random_bool(self.noise.duplicate) {
            let mut copy = self.flights.buffer();
            copy.extend_from_slice(&payload);
            // The copy arrives a moment later, often behind frames that were sent after it.
            let late = arrival + timing.host_receive + timing.host_receive;
            self.book(late, Flight { host: to, stripped, payload: copy });
        }
        self.book(arrival, Flight { host: to, stripped, payload });
        Ok(())
    }

    /// Whether a fault file has this frame lost, by its number or because it goes the same way as such a
    /// frame before it.
    fn is_to_be_lost(&mut self, host: u32, payload: &[u8]) -> bool {
        let now = self.now;
        self.deaf_ways.retain(|&(_, _, until)| until >= now);
        let named = self.to_lose.remove(&self.stats.frames[FabricCount::Sent]);
        if named != Some(true) && self.deaf_ways.is_empty() {
            return named.is_some();
        }
        let Ok((route, _)) = split_route(payload) else { return named.is_some() };
        if named == Some(true) {
            self.deaf_ways.push((host, route, now + Fault::TRIES));
            return true;
        }
        named.is_some() || self.deaf_ways.iter().any(|(from, way, _)| *from == host && *way == route)
    }

    fn book(&mut self, arrival: Instant, flight: Flight) {
        let jitter = self.options.timing.jitter;
        let arrival =
            if jitter.is_zero() { arrival } else { arrival + self.rng.random_range(jitter / 1000..=jitter) };
        let flight = self.flights.insert(flight);
        self.queue.push(arrival, What::Frame { flight });
    }

    /// Takes in that a frame reaches its host.
    pub(super) fn arrive(&mut self, flight: u32) {
        let Some(host) = self.flights.host(flight) else { return };
        let present = self.plant.is_present(host);
        let slot = &mut self.hosts[host as usize];
        if slot.node.is_none() || !present {
            self.stats.frames.count(FabricCount::Unheard);
            self.discard(host, flight, Undelivered::Unheard);
        } else if self.flights.len_bytes(flight) > usize::from(slot.mtu_bytes) {
            self.stats.frames.count(FabricCount::TooLong);
            self.discard(host, flight, Undelivered::TooLong);
        } else if slot.busy_until > self.now || !slot.waiting.is_empty() {
            if slot.waiting.len() >= self.options.timing.receive_queue {
                self.stats.frames.count(FabricCount::Overflowed);
                self.discard(host, flight, Undelivered::Overflowed);
                return;
            }
            if slot.waiting.is_empty() {
                self.queue.push(slot.busy_until, What::Serve { host });
            }
            slot.waiting.push_back(flight);
            self.stats.peak_receive_queue = self.stats.peak_receive_queue.max(slot.waiting.len());
        } else {
            self.deliver(host, flight);
        }
    }

    /// Hands a host that is done with a frame the next one.
    pub(super) fn serve(&mut self, host: u32) {
        let slot = &mut self.hosts[host as usize];
        if slot.busy_until != self.now {
            // A restart has emptied the queue, and since then another turn was booked for it.
            return;
        }
        let Some(flight) = slot.waiting.pop_front() else { return };
        let more = !slot.waiting.is_empty();
        self.deliver(host, flight);
        if more {
            self.queue.push(self.hosts[host as usize].busy_until, What::Serve { host });
        }
    }

    fn deliver(&mut self, host: u32, flight: u32) {
        let Some(flight) = self.flights.take(flight) else { return };
        let slot = &mut self.hosts[host as usize];
        slot.busy_until = self.now + self.options.timing.service;
        if let Some(node) = &mut slot.node {
            self.stats.frames.count(FabricCount::Received);
            let payload = flight.payload.get(flight.stripped..).unwrap_or_default();
            self.trace.frame(self.now, host, payload);
            self.capture.frame(self.now, host, Direction::Received, payload, None);
            node.handle_frame(self.now, payload);
        }
        self.flights.recycle(flight.payload);
        self.drain(host);
    }

    fn discard(&mut self, host: u32, flight: u32, why: Undelivered) {
        if let Some(flight) = self.flights.take(flight) {
            let payload = flight.payload.get(flight.stripped..).unwrap_or_default();
            self.capture.frame(self.now, host, Direction::Received, payload, Some(why));
            self.flights.recycle(flight.payload);
        }
    }
}
