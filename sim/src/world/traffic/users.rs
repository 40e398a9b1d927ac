//! Users at work: what they send, what reaches them, and what must never happen to their frames.

use std::collections::BTreeSet;
use std::net::IpAddr;

use mapper_host::data::{DataCount, DataPath};
use mapper_proto::Mac;
use mapper_proto::wire::{Data, FrameKind, split_route};

use super::super::World;
use super::super::queue::What;
use super::frame::UserFrame;
use super::pair::{Leg, Upheavals};
use crate::fabric::PlantNode;

/// The room that users leave in a frame for the Ethernet header, the route and the way back on any fabric.
const ROOM_BYTES: usize = 200;
const ETHERNET_HEADER_BYTES: usize = 14;
/// The broadcast address.
const EVERYBODY: Mac = Mac([0xff; 6]);

impl World {
    /// Has users begin to send, each at its own moment within the first turn.
    pub(in crate::world) fn start_users(&mut self) {
        let Some(traffic) = self.traffic.as_mut().filter(|traffic| !traffic.started) else { return };
        traffic.started = true;
        let hosts = self.hosts.len() as u32;
        for host in 0..hosts {
            let at = self.now + traffic.interval * host / hosts;
            self.queue.push(at, What::User { host });
        }
    }

    /// Has users send no more.
    pub fn stop_users(&mut self) {
        if let Some(traffic) = &mut self.traffic {
            traffic.stopped_at.get_or_insert(self.now);
        }
    }

    /// Has users begin once all are configured, and notes when all hosts have a new map. To be called between
    /// moments.
    pub(in crate::world) fn follow_users(&mut self) {
        let Some(traffic) = &self.traffic else { return };
        let starts = !traffic.started && self.options.traffic.is_some_and(|options| options.from.is_none());
        if !(starts || traffic.awaits_map()) || !std::mem::take(&mut self.newly_configured) {
            return;
        }
        if self.is_configured_with_the_truth() {
            let now = self.now;
            if let Some(traffic) = self.traffic.as_mut() {
                traffic.configured(now);
            }
            if starts {
                self.start_users();
            }
        }
    }

    /// Has the user at a host send a frame, if an agent runs there.
    pub(in crate::world) fn send_user_frame(&mut self, host: u32) {
        let live = self.is_live(host);
        let (now, own) = (self.now, self.mac(host));
        let Some(traffic) = self.traffic.as_mut().filter(|traffic| traffic.stopped_at.is_none()) else {
            return;
        };
        self.queue.push(now + traffic.interval, What::User { host });
        traffic.settle(host, now);
        if !live {
            return;
        }
        let flows = traffic.flows;
        let Some(frame) = traffic.next_frame(host, now) else { return };
        let broadcast = traffic.next_broadcast(host, now);
        let (slot, other) = (&self.hosts[host as usize], &self.hosts[frame.to as usize]);
        let mtu_bytes = other.mtu_bytes.min(slot.mtu_bytes).min(slot.mtu_at_start_bytes);
        let (flow, to) = (frame.number % flows, other.settings.mac);
        let encode = |mtu_bytes: u16| frame.encode(own, to, flow, usize::from(mtu_bytes) - ROOM_BYTES);
        if self.send_by_kernel(frame, flow, encode(mtu_bytes).len() - ETHERNET_HEADER_BYTES) {
            self.note_upheavals(frame);
        } else {
            self.hand_over(frame, &encode(mtu_bytes.min(self.least_mtu_on_ways())));
        }
        if let Some(frame) = broadcast {
            // A broadcast is short, so that it fits every interface.
            self.hand_over(frame, &frame.encode(own, EVERYBODY, 0, 0));
        }
        self.drain(host);
    }

    /// The longest frame that fits all cables which hosts' frames to each other may cross, where the cables
    /// of nodes have their hosts' MTUs. Users learn it by ICMP messages.
    fn least_mtu_on_ways(&self) -> u16 {
        let of_nodes = self.hosts.iter().filter(|_| self.kernels.are_there()).map(|slot| slot.mtu_bytes);
        of_nodes.min().unwrap_or(u16::MAX)
    }

    /// Has a kernel on the way of a user's packet send it on by the tap interface of its host, if an agent
    /// runs there.
    pub(in crate::world) fn relay_user_frame(&mut self, at: u32, frame: UserFrame) {
        let Some(other) = self.hosts.get(frame.to as usize).map(|slot| slot.settings.mac) else { return };
        let (now, own) = (self.now, self.mac(at));
        if let Some(real) = self.hosts[at as usize].node.as_mut().and_then(|node| node.host_mut()) {
            real.handle_user_frame(now, &frame.encode(own, other, 0, 0));
        }
        let upheavals = self.upheavals(at);
        if let Some(traffic) = &mut self.traffic {
            let pairs = traffic.pairs_to(frame.from, frame.to);
            pairs.for_each(|pair| pair.note_relay(frame.number, at, upheavals));
        }
        self.drain(at);
    }

    /// Hands a user's frame to the host that is to send it.
    fn hand_over(&mut self, frame: UserFrame, bytes: &[u8]) {
        let (now, host) = (self.now, frame.from);
        if let Some(real) = self.hosts[host as usize].node.as_mut().and_then(|node| node.host_mut()) {
            real.handle_user_frame(now, bytes);
        }
        self.note_upheavals(frame);
    }

    /// Notes what had happened at the sender of a frame when it was sent, which was just now.
    fn note_upheavals(&mut self, frame: UserFrame) {
        let upheavals = self.upheavals(frame.from);
        let Some(traffic) = &mut self.traffic else { return };
        traffic.pairs_to(frame.from, frame.to).for_each(|pair| pair.note_upheavals(upheavals));
    }

    /// Notes the way of a frame that leaves a host, if it is a user's, and whether it goes in a circle, although all hosts use one map
    /// of the fabric as it is. If a cable has just been moved, a route may lead twice across another one.
    pub(in crate::world) fn follow_user_frame(&mut self, host: u32, payload: &[u8]) {
        let Ok((route, frame)) = split_route(payload) else { return };
        if FrameKind::of(frame) != Ok(FrameKind::Data) || Data::is_check(frame) || !self.is_live(host) {
            return;
        }
        if let Some(frame) = Data::ethernet_of(frame).ok().and_then(UserFrame::decode) {
            self.note_leg(frame, &Leg::Frame { by: host, route });
        }
        let channels = self.plant.channels(host, payload);
        self.note_circle(host, &channels);
    }

    /// Notes a part of the way of a frame to a single host. Nothing in a copy of a broadcast says for which host it is.
    pub(in crate::world) fn note_leg(&mut self, frame: UserFrame, leg: &Leg) {
        let Some(traffic) = self.traffic.as_mut().filter(|_| frame.to != UserFrame::ALL) else { return };
        traffic.pairs_to(frame.from, frame.to).for_each(|pair| pair.note_leg(frame.number, leg.clone()));
    }

    /// Notes if what a host sends leaves crossbars by these channels and so goes in a circle, although all hosts use one map of the
    /// fabric as it is.
    pub(in crate::world) fn note_circle(&mut self, from: u32, channels: &[u32]) {
        let Some(&first) = channels.first() else { return };
        if goes_in_a_circle(channels) && self.is_of_one_true_map(self.plant.end_of(first).node) {
            let name = self.plant.name(PlantNode::Host(from));
            self.note_wrong(format!("a frame from {name} goes in a circle"));
        }
    }

    /// Notes that a packet for an address would be delivered at a host that does not have it, if all hosts
    /// use one map of the fabric as it is. The packet leaves crossbars by these channels.
    pub(in crate::world) fn note_astray(&mut self, from: u32, at: u32, meant: IpAddr, channels: &[u32]) {
        let Some(&first) = channels.first() else { return };
        if self.is_of_one_true_map(self.plant.end_of(first).node) {
            let [from, at] = [from, at].map(|host| self.plant.name(PlantNode::Host(host)));
            self.note_wrong(format!("a packet from {from} to {meant} reached {at}"));
        }
    }

    fn note_wrong(&mut self, why: String) {
        if let Some(traffic) = &mut self.traffic {
            traffic.wrong.get_or_insert(why);
        }
    }

    /// How often a host's flows had to leave their routes so far.
    fn upheavals(&self, host: u32) -> Upheavals {
        let slot = self.hosts.get(host as usize);
        let data = slot.and_then(|slot| slot.node.as_ref()?.host()?.data());
        let status = data.map(DataPath::status).unwrap_or_default();
        Upheavals {
            starts: slot.map_or(0, |slot| slot.starts),
            kernel_changes: self.kernel_changes(host),
            flows_moved: status.counts[DataCount::FlowsMoved],
            resent: status.counts[DataCount::Resent],
        }
    }

    /// Takes in what a host hands to its user.
    pub(in crate::world) fn take_user_frames(&mut self, host: u32) {
        loop {
            let slot = &mut self.hosts[host as usize];
            let Some(bytes) = slot.node.as_mut().and_then(|node| node.poll_user_frame()) else { return };
            let Some(frame) = UserFrame::decode(bytes) else {
                let bytes = bytes.to_vec();
                self.take_tap_datagram(host, &bytes);
                // Any other frame was garbled by noise, and counts as lost.
                continue;
            };
            let addresses = UserFrame::addresses(bytes);
            self.give_to_user(host, frame, addresses);
        }
    }

    /// Takes in that a user's frame has come to the user of a host. `addresses` are that to which and that from
    /// which it was sent, if it has any.
    pub(in crate::world) fn give_to_user(
        &mut self,
        host: u32,
        frame: UserFrame,
        addresses: Option<(Mac, Mac)>,
    ) {
        let here = self.mac(host);
        let Some(mut traffic) = self.traffic.take() else { return };
        let name = |host| match host {
            UserFrame::ALL => "all",
            host => self.plant.name(PlantNode::Host(host)),
        };
        let is_for_here = match frame.to {
            // A host that had the address of another when it sent a frame to all, and its own again by now, sees
            // a frame of that other.
            UserFrame::ALL => frame.from != host || addresses.is_some_and(|(_, from)| from != here),
            // The host that it is for may have had the address of this host when it was sent, and its own
            // again by now.
            to => to == host || addresses.is_some_and(|(to, _)| to == here),
        };
        if !is_for_here {
            let why =
                format!("a frame from {} to {} reached {}", name(frame.from), name(frame.to), name(host));
            traffic.wrong.get_or_insert(why);
        }
        if let Some(wrong) = traffic.arrive(host, frame, |host| self.upheavals(host)) {
            let why =
                format!("a frame from {} to {} {wrong}, at {}", name(frame.from), name(frame.to), name(host));
            traffic.wrong.get_or_insert(why);
        }
        self.traffic = Some(traffic);
    }
}

/// Whether what takes these channels takes one of them twice.
pub(in crate::world) fn goes_in_a_circle(channels: &[u32]) -> bool {
    let distinct: BTreeSet<u32> = channels.iter().copied().collect();
    distinct.len() < channels.len()
}
