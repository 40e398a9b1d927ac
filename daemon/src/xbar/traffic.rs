//! What goes over a cable, as one of its ends counts it.

use mapper_machine::link::port::LinkCount;
use mapper_proto::Tally;
use serde::{Deserialize, Serialize};

use super::PortStatus;
use super::counters::XbarDrop;

/// What went over a cable since the daemon at this end of it began, and how fast the cable is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PortTraffic {
    /// Bytes that arrived, with the Ethernet headers.
    pub received_bytes: u64,
    /// Bytes that left, with the Ethernet headers.
    pub sent_bytes: u64,
    /// Frames that arrived and were lost, or that should have left and did not. Frames of other programs do not count.
    pub lost: u64,
    /// How fast the interface is, in Mb/s, if it says so.
    pub rate_mbps: Option<u32>,
}

impl PortTraffic {
    /// What a link counted of an agent alone.
    pub fn of_link(interface: &str, counts: &Tally<LinkCount>) -> Self {
        Self {
            received_bytes: counts[LinkCount::ReceivedBytes],
            sent_bytes: counts[LinkCount::SentBytes],
            lost: counts[LinkCount::Overruns] + counts[LinkCount::Unsent],
            rate_mbps: rate_mbps(interface),
        }
    }
}

impl From<&PortStatus> for PortTraffic {
    fn from(port: &PortStatus) -> Self {
        let dropped = port.dropped.iter().filter(|&(why, ..)| why != XbarDrop::Foreign);
        Self {
            received_bytes: port.received_bytes,
            sent_bytes: port.sent_bytes,
            lost: port.overruns + port.unsent + dropped.map(|(_, _, frames)| frames).sum::<u64>(),
            rate_mbps: port.rate_mbps,
        }
    }
}

/// How fast an interface is, in Mb/s, if it says so.
pub(crate) fn rate_mbps(interface: &str) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/sys/class/net/{interface}/speed")).ok()?;
    // An interface without carrier says -1.
    text.trim().parse().ok().filter(|&mbps| mbps > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_other_programs_are_not_lost() {
        let mut dropped = Tally::default();
        dropped.add(XbarDrop::Foreign, 100);
        dropped.add(XbarDrop::QueueFull, 3);
        let port = PortStatus { dropped, overruns: 4, unsent: 5, received_bytes: 6, ..PortStatus::default() };
        let traffic = PortTraffic::from(&port);
        assert_eq!((traffic.lost, traffic.received_bytes), (12, 6));
    }
}
