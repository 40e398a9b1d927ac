//! What must be true of the life of real agents in a whole fabric, in virtual time.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod changes;
mod clusters;
mod distribution;
mod election;
mod endless;
mod forged_tags;
mod hostile;
mod kernels;
mod keys;
mod lab;
mod levels;
mod lossy;
mod moved;
mod names;
mod options;
mod paths;
mod quiet;
mod recabling;
mod reloads;
mod search;
mod speed;
mod stale;
mod twins;
