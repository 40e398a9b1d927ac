//! A simulated source-routed fabric that runs thousands of real mapper agents in virtual time.
//!
//! - [`fabric`]: xbars, cables and interfaces, and what befalls them.
//! - [`node`]: what sits at a host: an agent, or something that stands in for one.
//! - [`faults`]: what goes wrong, and when.
//! - [`hostile`]: an agent that has turned against the others.
//! - [`world`]: clock, events, agents, checks.
//! - [`setup`]: a run, described so that it can be run again.
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
