//! The ways to one host, for whoever measures them or looks where they break off.

use std::net::Ipv6Addr;

use mapper_proto::Mac;

use super::KernelPath;
use super::way::{Course, Way};
use crate::sounding::{EchoWay, KernelCourse, KernelWay};

impl KernelPath {
    /// The ways to a host, proved or not.
    pub fn ways_to(&self, mac: Mac) -> Vec<KernelWay> {
        let Some(destination) = self.destinations.get(&mac) else { return Vec::new() };
        let ends = self.own.source_of_probes().zip(destination.target());
        destination.ways.iter().map(|way| shown(way, self.agent_port, ends)).collect()
    }
}

fn shown(way: &Way, agent_port: Option<u8>, ends: Option<(Ipv6Addr, Ipv6Addr)>) -> KernelWay {
    KernelWay {
        hops: way.hops.clone(),
        course: match way.course {
            Course::Segments { packing, .. } => KernelCourse::Segments(packing),
            Course::Destination => KernelCourse::Destination,
        },
        is_proved: way.is_proved(),
        mtu: way.mtu(),
        port: way.port,
        has_own_crossbar: agent_port.is_some(),
        back: way.round_trip.back.clone(),
        ends,
    }
}

/// The segments of a packet that turns at a way's last crossbar and comes home. `None` if the way has no
/// crossbar at which a packet could turn.
pub(super) fn turn(
    way: &Way,
    agent_port: Option<u8>,
    ends: Option<(Ipv6Addr, Ipv6Addr)>,
) -> Option<Vec<Ipv6Addr>> {
    let way = shown(way, agent_port, ends);
    match way.to_crossbar(way.hops.len().checked_sub(1)?)? {
        EchoWay::Kernels { segments, .. } => Some(segments),
        EchoWay::Agents { .. } => None,
    }
}
