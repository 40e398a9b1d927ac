//! What users' packets go by, as a board shows it.

use mapper_host::kernel_path::KernelPathStatus;
use mapper_machine::options::DataPathChoice;
use serde::{Deserialize, Serialize};

use super::Reason;
use crate::xbar::forwarding::ForwardingStatus;

/// The most hosts that are named as not carried by the kernel.
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
    /// How many objects the kernel is to hold: routes, groups, nexthops, rules, neighbours.
    pub objects: usize,
    /// How often an object that the kernel was to hold was missing or changed, and was put right.
    pub put_right: u64,
    /// What the kernel refuses, in words.
    pub troubles: Vec<String>,
}

impl DataPath {
    /// Packets go by the tap interface, for this reason.
    pub fn tap(why: &str) -> Self {
        Self {
            kind: DataPathChoice::Tap.to_string(),
            why: why.to_owned(),
            installed: 0,
            missing: Vec::new(),
            objects: 0,
            put_right: 0,
            troubles: Vec::new(),
        }
    }

    /// Packets go by the kernel as far as it can.
    pub fn of_kernel(choice: DataPathChoice, path: &KernelPathStatus, kernel: ForwardingStatus) -> Self {
        let KernelPathStatus { by_segments, by_destination, not_carried, objects } = path;
        let (kind, why) = match (by_segments, by_destination) {
            (0, 0) if not_carried.is_empty() => (DataPathChoice::Tap, "there is no other host".to_owned()),
            (0, 0) => (DataPathChoice::Tap, "no way through kernels is proved".to_owned()),
            (segments, routes) if segments >= routes => {
                (DataPathChoice::Srv6, "kernels obey segments on proved routes".to_owned())
            }
            _ => (DataPathChoice::Routes, "kernels forward by the destination, by proved tables".to_owned()),
        };
        let why = if choice == DataPathChoice::Auto { why } else { format!("{why}; data-path is {choice}") };
        let missing = not_carried.iter().take(MOST_MISSING);
        Self {
            kind: kind.to_string(),
            why,
            installed: by_segments + by_destination,
            missing: missing
                .map(|(mac, why)| Reason { mac: mac.to_string(), why: why.to_string() })
                .collect(),
            objects: *objects,
            put_right: kernel.put_right,
            troubles: kernel.troubles,
        }
    }
}
