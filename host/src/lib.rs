//! All that runs at one host of a fabric, without I/O.
//!
//! - [`Host`] joins agent, routes, healing and users' frames. The daemon and the simulator drive it alike.
//! - [`routes`]: this host's routes for one map, computed and proved.
//! - [`healing`]: what is known of dead cables before there is a new map.
//! - [`data`]: users' frames, from one host to another.
//! - [`service`]: what runs beside the agent and asks other hosts through it; [`names`] is the first.

#![forbid(unsafe_code)]

mod computation;
pub mod data;
mod event;
mod frame_queue;
pub mod healing;
mod host;
pub mod names;
pub mod routes;
pub mod service;

pub use computation::{Computed, Task};
pub use event::HostEvent;
pub use host::{Host, Outgoing, UserFrames};
