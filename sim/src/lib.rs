//! A simulated source-routed fabric that runs thousands of real mapper agents in virtual time.
//!
//! - [`fabric`]: xbars, cables and interfaces, and their faults.
//! - [`node`]: the software of a host: the shipped one, or something that stands in for it.
//! - [`faults`]: what goes wrong, and when.
//! - [`hostile`]: an agent that attacks the others.
//! - [`world`]: clock, events, agents, checks.
//! - [`setup`]: the description of a run, by which it can be run again.
//! - [`record`]: traces as files.
//! - [`search`]: scenarios drawn from seeds, and what must hold in them.

#![forbid(unsafe_code)]

pub mod fabric;
pub mod faults;
pub mod hostile;
pub mod node;
pub mod record;
pub mod search;
pub mod setup;
pub mod world;
