//! Subnets without hardware, their managers in virtual time, and the fault search over them.
//!
//! A [`Scenario`] is drawn from a seed: a subnet or one that is given, managers, faults and their times. First things go
//! wrong: datagrams are lost, come twice or late, writes are refused, switches start again and know nothing, nodes are silent,
//! cables are cut and mended, managers are killed and start again. All the while, after each write, what switches hold together
//! must be free of circles. Then all is mended, and the subnet must come up, with one master, and nothing more be written; and
//! agents that stand by must look at their shares of the switches.
//!
//! Whoever runs it brings the engines that compute tables, as this crate has none.

mod draw;
mod model;
mod subnet_of;
#[cfg(test)]
mod tests;
mod world;

use std::num::NonZeroUsize;
use std::time::Duration;

use mapper_proto::time::Instant;
use thiserror::Error;

pub use draw::{Outcome, Scenario};
pub(crate) use model::Model;
pub use subnet_of::SubnetError;
pub use world::Fault;
#[cfg(test)]
pub(crate) use world::World;
#[cfg(test)]
pub(crate) use world::trap_of;

use crate::manager::{ManagerSettings, Routes, Task};
use crate::sweep::SweepSettings;

/// Options of the engines by which all tables are balanced anew each time, so that much changes at once.
pub const ENGINES: &str = "engines=dnup;reassign";

/// The function that computes the tables that managers ask for. It returns tables that are proved, or why
/// there are none.
pub type Engines<'a> = &'a (dyn Fn(&Task) -> Result<Routes, String> + Sync);

/// Something that must not be.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("at {at:?}: {why}")]
pub struct Violation {
    /// When it was seen.
    pub at: Instant,
    /// What is wrong.
    pub why: String,
}

/// How the managers are set.
pub(crate) fn settings() -> ManagerSettings {
    ManagerSettings {
        sweep: SweepSettings {
            window: NonZeroUsize::MIN.saturating_add(3),
            timeout: Duration::from_millis(100),
            retries: 2,
            max_nodes: 1000,
            key: 0,
        },
        priority: Some(1),
        lmc: 0,
        watch_interval: Duration::from_secs(10),
        poll_interval: Duration::from_secs(1),
        drain: Duration::from_secs(1),
        retry_delay: Duration::from_secs(1),
    }
}
