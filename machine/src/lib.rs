//! What every daemon (agent, node or crossbar) needs of the machine that it runs on.
//!
//! Nothing here knows what an agent or a crossbar does.
//!
//! - [`link`]: frames over raw Ethernet, over cables inside a process, and over a tap interface.
//! - [`kernel`]: the kernel's forwarding tables: installing, reading back, notices.
//! - [`sysctl`]: settings of the kernel that forwarding needs.
//! - [`mad_port`]: ports of InfiniBand that management datagrams are sent and received by.
//! - [`interface_lock`]: the lock that gives an interface to one daemon.
//! - [`options`]: what all daemons let their user set, and how a configuration file is read.
//! - [`service`]: the start and the end of a daemon's process.
//! - [`process`]: running in the background, by fork and pid file.
//! - [`privileges`]: giving up privileges that a running daemon does not need.
//! - [`signals`]: the signals to stop, or to read the configuration again.
//! - [`clock`]: the time since the start.
//! - [`timer`]: waiting for a moment of it.
//! - [`notify`]: what a daemon tells its service manager.
//! - [`log`]: where log lines go, and how many are written.
//! - [`status`]: the status socket: its bytes, its server and its client.
//! - [`places`]: how many clients of a server are served at once, and who makes room for another.
//! - [`metrics`]: OpenMetrics text, served over HTTP and written to a file.
//! - [`foreign_file`]: changes of files that others change too.
//! - [`whole_file`]: files that are replaced as a whole.
//! - [`freed`]: memory that is given back to the system.

pub mod activation;
pub mod clock;
pub mod foreign_file;
mod fork;
pub mod freed;
pub mod interface_lock;
pub mod kernel;
pub mod link;
pub mod log;
pub mod mad_port;
pub mod metrics;
mod netlink;
pub mod notify;
pub mod options;
pub mod places;
pub mod privileges;
pub mod process;
pub mod service;
pub mod signals;
pub mod status;
pub mod sysctl;
pub mod timer;
pub mod whole_file;
