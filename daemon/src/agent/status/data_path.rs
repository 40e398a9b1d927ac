//! What users' packets go by, as a board shows it.

use std::collections::BTreeMap;

use mapper_host::kernel_path::{KernelPathStatus, NotCarried, Shortened};
use mapper_machine::options::DataPathChoice;
use mapper_proto::Mac;
use serde::{Deserialize, Serialize};

use super::Reason;
use crate::xbar::forwarding::ForwardingStatus;

/// The most hosts that are named as not carried by the kernel, or as reached by shorter frames alone.
const MOST_MISSING: usize = 64;

/// What users' packets go by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataPath {
    /// What packets to most hosts go by: `srv6`, `routes` or `tap`.
    pub kind: String,
    /// Why packets go by that, in words.
    pub why: String,
    /// How many hosts the kernel sends packets to.
    pub installed: usize,
    /// Hosts of the map whose packets go by the tap interface, and why; at most 64 are named.
    pub missing: Vec<Reason>,
    /// Hosts to which only shorter frames get through than the ends of all cables on the way say; at most 64 are named.
    pub shortened: Vec<ShortenedTo>,
    /// Hosts to which the kernel sends packets of IPv6 alone, as those of IPv4 do not get through; at most 64 are named.
    #[serde(default)]
    pub without_v4: Vec<String>,
    /// How many objects the kernel is to hold: routes, groups, nexthops, rules, neighbours.
    pub objects: usize,
    /// How often an object that the kernel was to hold was missing or changed, and was put right.
    pub put_right: u64,
    /// What the kernel refuses, in words.
    pub troubles: Vec<String>,
    /// Whether the daemon leaves the kernel's forwarding alone, and so has nothing there and needs nothing of it.
    #[serde(default)]
    pub leaves_kernel_alone: bool,
}

/// A host to which only shorter frames get through than the ends of all cables on the way say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShortenedTo {
    /// The host's address.
    pub mac: String,
    /// The longest frames that get through, in bytes behind the Ethernet header.
    pub bytes: u32,
    /// The longest by what the cables' ends say, in bytes behind the Ethernet header.
    pub said_bytes: u32,
}

impl DataPath {
    /// Packets go by the tap interface, for this reason.
    pub fn tap(why: &str) -> Self {
        Self {
            kind: DataPathChoice::Tap.to_string(),
            why: why.to_owned(),
            installed: 0,
            missing: Vec::new(),
            shortened: Vec::new(),
            without_v4: Vec::new(),
            objects: 0,
            put_right: 0,
            troubles: Vec::new(),
            leaves_kernel_alone: true,
        }
    }

    /// Packets go by the kernel as far as it can. `called` is what people call a host.
    pub fn of_kernel(
        choice: DataPathChoice,
        path: &KernelPathStatus,
        kernel: ForwardingStatus,
        called: impl Fn(Mac) -> String,
    ) -> Self {
        let KernelPathStatus {
            by_segments,
            by_destination,
            for_sake_of,
            not_carried,
            v4_not_carried,
            shortened,
            objects,
        } = path;
        let (kind, why) = match (by_segments, by_destination) {
            (0, 0) if not_carried.is_empty() => (DataPathChoice::Tap, "there is no other host".to_owned()),
            // As long as one is tried, nothing is said that sounds final.
            (0, 0) if not_carried.iter().any(|(_, why)| *why == NotCarried::BeingTried) => {
                (DataPathChoice::Tap, NotCarried::BeingTried.describe(&called))
            }
            (0, 0) => {
                let none = "no way through kernels is proved";
                let most = commonest(not_carried).map(|why| format!("{none}: {}", why.describe(&called)));
                (DataPathChoice::Tap, most.unwrap_or_else(|| none.to_owned()))
            }
            (segments, routes) if segments >= routes => {
                (DataPathChoice::Srv6, "kernels obey segments on proved routes".to_owned())
            }
            _ => {
                let mut why = "kernels forward by the destination, by proved tables".to_owned();
                if let Some(mac) = for_sake_of {
                    why += &format!(", as that of {} goes by nothing else", called(*mac));
                }
                (DataPathChoice::Routes, why)
            }
        };
        let why = if choice == DataPathChoice::Auto { why } else { format!("{why}; data-path is {choice}") };
        let missing = not_carried.iter().take(MOST_MISSING);
        Self {
            kind: kind.to_string(),
            why,
            installed: by_segments + by_destination,
            missing: missing
                .map(|(mac, why)| Reason { mac: mac.to_string(), why: why.describe(&called) })
                .collect(),
            shortened: shortened
                .iter()
                .take(MOST_MISSING)
                .map(|&(mac, Shortened { to, said })| ShortenedTo {
                    mac: mac.to_string(),
                    bytes: to,
                    said_bytes: said,
                })
                .collect(),
            without_v4: v4_not_carried.iter().take(MOST_MISSING).map(Mac::to_string).collect(),
            objects: *objects,
            put_right: kernel.put_right,
            troubles: kernel.troubles,
            leaves_kernel_alone: false,
        }
    }
}

/// Why most of these hosts are not carried.
fn commonest(not_carried: &[(Mac, NotCarried)]) -> Option<NotCarried> {
    let mut counts: BTreeMap<NotCarried, usize> = BTreeMap::new();
    not_carried.iter().for_each(|(_, why)| *counts.entry(*why).or_default() += 1);
    counts.into_iter().max_by_key(|&(_, count)| count).map(|(why, _)| why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mapper_host::kernel_path::Behind;

    #[test]
    fn where_no_way_is_proved_it_is_said_why_and_people_s_names_stand_there() {
        let mac = Mac::from_position;
        let lacks = NotCarried::NeighbourLacksRoutes(Behind { port: 2, who: mac(1) });
        let not_carried = vec![(mac(1), lacks), (mac(2), NotCarried::NoAddress), (mac(3), lacks)];
        let path = KernelPathStatus { not_carried, ..KernelPathStatus::default() };
        let told = DataPath::of_kernel(DataPathChoice::Auto, &path, ForwardingStatus::default(), |mac| {
            format!("the host {mac}")
        });
        assert_eq!((told.kind.as_str(), told.missing.len()), ("tap", 3));
        let words = "no way through kernels is proved: this machine goes by plain routes alone, as its kernel has no SRv6";
        assert!(told.why.starts_with(words), "{}", told.why);
        assert!(
            told.why.contains(&format!("the kernel of the host {}, behind port 2", mac(1))),
            "{}",
            told.why
        );
        assert_eq!(told.missing[1].why, "the host has told no IPv6 address of its own");
    }

    #[test]
    fn before_all_ways_were_tried_no_reason_is_given_that_sounds_final() {
        let mac = Mac::from_position;
        let others = [(mac(1), NotCarried::NoAddress), (mac(2), NotCarried::NoAddress)];
        let not_carried = [&others[..], &[(mac(3), NotCarried::BeingTried)]].concat();
        let path = KernelPathStatus { not_carried, ..KernelPathStatus::default() };
        let told = |path: &KernelPathStatus| {
            DataPath::of_kernel(DataPathChoice::Auto, path, ForwardingStatus::default(), |mac| {
                mac.to_string()
            })
        };
        let (kind, why) = (told(&path).kind, told(&path).why);
        assert_eq!((kind.as_str(), why.as_str()), ("tap", "ways through kernels are being tried"));
        assert!(told(&KernelPathStatus { by_segments: 1, ..path }).why.starts_with("kernels obey segments"));
    }
}
