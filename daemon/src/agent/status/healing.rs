//! What a board shows of dead cables, and of the host's interface over the fabric.

use serde::{Deserialize, Serialize};

use mapper_host::data::DataStatus;

/// A cable of the map that is known to be dead, named by one of its ends.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeadCable {
    /// The xbar's number in the map.
    pub xbar: u32,
    /// The xbar's tag in hexadecimal, if it has one.
    pub tag: Option<String>,
    /// The address of the host that the xbar is called by: the one whose node it is, or else the only one there.
    #[serde(default)]
    pub host: Option<String>,
    /// The port that the cable is at.
    pub port: u8,
    /// How long the agent has known that the cable is dead, in milliseconds.
    pub since_ms: u64,
    /// How the agent knows that the cable is dead, in words.
    pub why: String,
}

/// A cable of the map that carries frames and loses a tenth of them or more, named by one of its ends.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LossyCable {
    /// The xbar's number in the map.
    pub xbar: u32,
    /// The xbar's tag in hexadecimal, if it has one.
    pub tag: Option<String>,
    /// The address of the host that the xbar is called by: the one whose node it is, or else the only one there.
    pub host: Option<String>,
    /// The port that the cable is at.
    pub port: u8,
    /// How long the agent has known that, in milliseconds.
    pub since_ms: u64,
    /// How many of a hundred frames were lost that were to cross it there and back, when it was examined last.
    pub lost_percent: u8,
    /// Whether this host's routes go around it, as far as other cables lead there.
    pub is_avoided: bool,
    /// Whether no host's routes lead over it, as the map shows that it loses frames.
    #[serde(default)]
    pub is_left_out: bool,
}

/// The host's Ethernet interface over the fabric.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tap {
    /// The interface's name.
    pub name: String,
    /// The MTU of the interface, in bytes.
    pub mtu: u32,
    /// How many frames went over the interface, and what became of them.
    pub counters: DataStatus,
    /// Frames from the fabric that the kernel did not take, since the interface was down or memory was short.
    pub refused: u64,
}

impl DeadCable {
    /// The xbar's tag, if it has one.
    pub fn tag_number(&self) -> Option<u64> {
        u64::from_str_radix(self.tag.as_deref()?.trim_start_matches("0x"), 16).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use mapper_host::data::{DataCount, DataDropKind};
    use mapper_proto::Tally;
    use serde_json::Value;

    use super::*;
    use crate::agent::status::Counters;

    fn keys(value: &Value) -> BTreeSet<&str> {
        value.as_object().unwrap().keys().map(String::as_str).collect()
    }

    #[test]
    fn counts_are_told_under_the_names_that_programs_know() {
        let counters = serde_json::to_value(Counters::default()).unwrap();
        let frames = ["bad_hellos", "hellos", "overruns", "received", "sent", "shared_wire", "unsent"];
        assert_eq!(keys(&counters["frames"]), frames.into());
        let liveness = ["checks_sent", "cleared", "failures", "unwatched", "watched"];
        assert_eq!(keys(&counters["liveness"]), liveness.into());
        let repairs = [
            "repairs",
            "carrier_losses",
            "notices",
            "silent_paths",
            "lossy_cables",
            "came_back",
            "ignored",
            "overload",
        ];
        assert_eq!(keys(&counters["repairs"]), repairs.into());
    }

    #[test]
    fn counts_of_users_frames_are_one_map_with_the_drops_in_it() {
        let counters = DataStatus {
            counts: Tally::from_iter([(DataCount::FramesOut, 3), (DataCount::RoutesInUse, 2)]),
            dropped: Tally::from_iter([(DataDropKind::NoRoute, 1)]),
        };
        let tap = Tap { name: "fabric0".to_owned(), mtu: 1400, counters, refused: 0 };
        let json = serde_json::to_value(&tap).unwrap();
        let expected = [
            "frames_out",
            "bytes_out",
            "frames_in",
            "bytes_in",
            "broadcasts",
            "broadcast_copies",
            "dropped",
            "notices",
            "notices_ignored",
            "resent",
            "given_up",
            "flows_moved",
            "route_swaps",
            "routes_in_use",
        ];
        assert_eq!(keys(&json["counters"]), expected.into());
        assert_eq!(
            (&json["counters"]["frames_out"], &json["counters"]["dropped"]["no_route"]),
            (&3.into(), &1.into())
        );
        assert_eq!(serde_json::from_value::<Tap>(json).unwrap(), tap);
    }
}
