//! Where what is shown comes from. A source runs on a thread of its own and tells a [`Feed`](super::feed::Feed).

pub(crate) mod agents;
mod asking;
pub(crate) mod file;
mod gone;
mod in_force;
mod past;
pub(crate) mod simulation;
pub(crate) mod traffic;
