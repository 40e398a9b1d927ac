//! The commands of the fabric mapper. What they do is mostly done by the crates below.
//!
//! - [`cli`]: the command line, with one file for each subcommand.
//! - [`dissector`]: what shows the frames in Wireshark.
//! - [`doctor`]: what keeps an agent from working on this machine.
//! - [`pcapng`]: recorded frames as a file.
//! - `consequences`: what a change of a fabric costs.
//! - `view`: what serves the page that shows a fabric in a browser, and tells it what happens.

pub mod cli;
mod consequences;
pub mod dissector;
pub mod doctor;
pub mod pcapng;
mod view;
