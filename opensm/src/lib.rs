//! Routes the subnet that an OpenSM hands over.
//!
//! 1. [`Options`] are what an administrator writes into OpenSM's configuration.
//! 2. A [`Request`] is the subnet as OpenSM holds it: nodes, ports, LIDs, the tables in force.
//! 3. [`Worker::run`] has a process of its own compute the [`Answer`], within a limit of time: whatever
//!    goes wrong there ends that process, and never OpenSM.
//! 4. In that process, [`answer`] reads the subnet, tries the engines and proves their tables.
//!
//! The plugin that OpenSM loads is the crate in `opensm/plugin`.

mod answer;
mod choosing;
mod misfit;
mod options;
mod reading;
mod request;
#[cfg(test)]
mod tests;
mod transfer;
mod worker;

pub use answer::{Answer, Declined, Outcome, Table, answer};
pub use misfit::Misfit;
pub use options::{OptionError, Options};
pub use reading::BadSubnet;
pub use request::{Adapter, Asker, Levels, Link, Request, Switch};
use transfer::MAX_BYTES;
pub use transfer::{TransferError, receive, send};
pub use worker::{Worker, WorkerError};
