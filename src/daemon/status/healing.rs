//! What a board shows of paths in use, dead cables, and the host's interface over the fabric.

use serde::{Deserialize, Serialize};

/// What watching the paths in use costs and finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LivenessCounters {
    /// Paths that are being checked.
    pub watched: u64,
    /// Paths in use that are not checked, for want of room.
    pub unwatched: u64,
    /// Checks sent.
    pub checks_sent: u64,
    /// Paths declared down.
    pub failures: u64,
}

/// A cable of the map that is known to be dead, named from one side.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeadCable {
    /// The xbar's number in the map.
    pub xbar: u32,
    /// Its tag in hexadecimal, if it has one.
    pub tag: Option<String>,
    /// The port that the cable is at.
    pub port: u8,
    /// How long it has been known, in milliseconds.
    pub since_ms: u64,
    /// How it is known, in words.
    pub why: String,
}

/// How often routes were changed before there was a new map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RepairCounters {
    /// Routes computed around dead cables.
    pub repairs: u64,
    /// Losses of carrier that were told of.
    pub carrier_losses: u64,
    /// Notices of crossbars that could not send a frame on.
    pub notices: u64,
    /// Paths in use that fell silent.
    pub silent_paths: u64,
}

/// The host's Ethernet interface over the fabric.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tap {
    /// Its name.
    pub name: String,
    /// Most bytes behind its Ethernet header.
    pub mtu: u32,
    /// What went over it.
    pub counters: TapCounters,
}

/// Users' frames over the fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TapCounters {
    /// Frames that users sent.
    pub sent_frames: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Frames handed to users.
    pub received_frames: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Frames of users that went to all hosts.
    pub broadcasts: u64,
    /// Frames sent again another way, as a cable was dead.
    pub resent: u64,
    /// Flows that changed to another route.
    pub flows_moved: u64,
    /// Tables of routes put to use.
    pub route_swaps: u64,
    /// Routes that carried something lately.
    pub routes_in_use: u64,
    /// Frames of users dropped, by why.
    pub dropped: TapDropCounters,
}

/// Users' frames that were dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TapDropCounters {
    /// To a host that no route leads to now.
    pub no_route: u64,
    /// To an address that no host of the map has.
    pub unknown_destination: u64,
    /// Longer than the interface's MTU.
    pub too_long: u64,
    /// No Ethernet frame, or no data frame.
    pub malformed: u64,
    /// Arrived here, but for another host.
    pub not_for_me: u64,
    /// Not to be had again when a notice came for them.
    pub lost: u64,
}

impl DeadCable {
    /// The xbar's tag, if it has one.
    pub fn tag_number(&self) -> Option<u64> {
        u64::from_str_radix(self.tag.as_deref()?.trim_start_matches("0x"), 16).ok()
    }
}
