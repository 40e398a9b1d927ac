//! A simulated source-routed fabric that runs thousands of real mapper agents in virtual time.
//!
//! - [`fabric`]: xbars, cables and interfaces, and what befalls them.
//! - [`node`]: what sits at a host: an agent, or something that stands in for one.
//! - [`faults`]: what goes wrong, and when.
//! - [`world`]: clock, events, agents, checks, trace.
//! - [`hostile`]: an agent that has turned against the others.

#![forbid(unsafe_code)]
pub mod topology;

pub mod fabric;
pub mod faults;
pub mod hostile;
pub mod node;
pub mod world;
