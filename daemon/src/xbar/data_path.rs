//! What users' packets go by at a crossbar, as its status tells it.

use mapper_machine::options::DataPathChoice;
use serde::{Deserialize, Serialize};

use super::forwarding::ForwardingStatus;

/// What users' packets go by at a crossbar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct XbarDataPath {
    /// `srv6` where the kernel sends packets on by their segments; `tap` where only the crossbar's process sends
    /// them on, in frames between the tap interfaces of hosts.
    pub kind: String,
    /// Why packets go by that, in words.
    pub why: String,
    /// How many objects the kernel is to hold: routes, rules, neighbours.
    pub objects: usize,
    /// How often an object or a setting that the kernel was to have was missing or changed, and was put right.
    pub put_right: u64,
    /// What the kernel refuses, in words.
    pub troubles: Vec<String>,
}

impl XbarDataPath {
    /// Only the crossbar's process sends packets on, for this reason.
    pub(super) fn tap(why: &str) -> Self {
        Self::new(DataPathChoice::Tap, why.to_owned())
    }

    /// Whether the crossbar leaves the kernel's forwarding alone, and so needs nothing of it.
    pub fn leaves_kernel_alone(&self) -> bool {
        self.kind == DataPathChoice::Tap.to_string()
    }

    /// The kernel, which is to hold so many objects, sends packets on by their segments.
    pub(super) fn of_kernel(choice: DataPathChoice, objects: usize, kernel: ForwardingStatus) -> Self {
        let why = "the kernel obeys segments";
        let why = match choice {
            DataPathChoice::Auto => why.to_owned(),
            _ => format!("{why}; data-path is {choice}"),
        };
        let ForwardingStatus { troubles, put_right } = kernel;
        Self { objects, put_right, troubles, ..Self::new(DataPathChoice::Srv6, why) }
    }

    fn new(kind: DataPathChoice, why: String) -> Self {
        Self { kind: kind.to_string(), why, objects: 0, put_right: 0, troubles: Vec::new() }
    }
}
