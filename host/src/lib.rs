//! All that runs at one host of a fabric, without I/O.
//!
//! - [`Host`] joins agent, routes, healing and users' frames. The daemon and the simulator drive it alike.
//! - [`routes`]: this host's routes for one map, computed and proved.
//! - [`healing`]: what is known of dead cables before there is a new map.
//! - [`data`]: users' frames, from one host to another.
//! - [`picking`]: addresses of IPv4 that a host picks out of a network.
//! - [`service`]: what runs beside the agent and asks other hosts through it; [`directory`] is the first: names and
//!   addresses of all hosts; [`resolution`] finds what is not announced there.
//! - [`sounding`]: echoes along ways, sent because somebody wants to know how long they take.

#![forbid(unsafe_code)]

mod computation;
pub mod data;
pub mod directory;
mod event;
mod examination;
mod frame_queue;
pub mod healing;
mod host;
pub mod kernel_path;
mod loss_reports;
pub mod picking;
pub mod resolution;
pub mod routes;
pub mod service;
pub mod sounding;

pub use computation::{Computed, Task};
pub use event::HostEvent;
pub use host::{EndOnceMapped, Host, Outgoing, OwnCrossbar, TapMtu, UserFrames};
