//! The fabric mapper: everything around the protocol of `mapper-proto`.
//!
//! - [`acm`]: the ACM service, and its client.
//! - [`cli`]: the command line, with one file for each subcommand.
//! - [`daemon`]: the tokio driver of an agent, with its timers, status socket, pid file and signals.
//! - [`dissector`]: what shows the frames in Wireshark.
//! - [`doctor`]: what keeps an agent from working on this machine.
//! - [`hosts_file`]: the names of a fabric's hosts in a file as /etc/hosts.
//! - [`pcapng`]: recorded frames as a file.
//! - [`wiring`]: planned against found wiring, and what to do about it.
//! - [`subnet`]: the agent of a port of InfiniBand, which manages its subnet.
//! - [`xbar`]: the software crossbar.
//! - [`formats`]: fabrics, routes and tables as files.
//! - `consequences`: what a change of a fabric costs.
//! - `layout`: where everything stands in a picture of a fabric.
//! - `page`: a fabric as a page that shows it in a browser.
//! - `view`: what serves that page, and tells it what happens.

pub mod acm;
pub mod cli;
mod consequences;
pub mod daemon;
pub mod dissector;
pub mod doctor;
pub mod formats;
pub mod hosts_file;
mod layout;
mod page;
pub mod pcapng;
pub mod subnet;
mod view;
pub mod wiring;
pub mod xbar;
