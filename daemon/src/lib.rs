//! The processes of the fabric mapper.
//!
//! - [`agent`]: the tokio driver of an agent, with its timers, status socket, pid file and signals.
//! - [`xbar`]: the software crossbar.
//! - [`subnet`]: the agent of a port of InfiniBand, which manages its subnet.
//! - [`acm`]: the ACM service.
//! - [`hosts_file`]: the names of a fabric's hosts in a file as /etc/hosts.
//! - [`word`]: the words by which boards tell states.

pub mod acm;
pub mod agent;
pub mod hosts_file;
pub mod subnet;
pub mod word;
pub mod xbar;
