//! Sends and receives frames for an agent or a crossbar.
//!
//! - [`interface`]: what the kernel knows of a network interface, and what changes (rtnetlink).
//! - [`ethernet`]: raw Ethernet frames of one EtherType over one interface (`AF_PACKET`).
//! - [`port`]: an interface that may vanish and return, with the socket on it.
//! - [`uses`]: what else the machine uses an interface for.
//! - [`address`]: gives IP addresses to an interface.
//! - [`held_address`]: which IP addresses interfaces have.
//! - [`tap`]: an interface whose frames the kernel exchanges with this process.
//! - [`internal`]: a cable inside the process.
//! - [`Link`]: a port on an interface, or an end of a cable inside the process.
//! - [`batch`]: batches of frames for one system call.

pub mod address;
mod any;
pub mod batch;
pub mod ethernet;
pub mod held_address;
pub mod interface;
pub mod internal;
mod mmsg;
mod offload;
mod packet_socket;
pub mod port;
pub(crate) mod readiness;
mod set_link;
pub mod tap;
mod tun;
mod unsent;
pub mod uses;

use std::io;

use thiserror::Error;

pub use any::Link;
pub use unsent::Unsent;

/// Why an interface cannot be used, and what to do.
#[derive(Debug, Error)]
pub enum LinkError {
    /// No interface has this name here.
    #[error(
        "interface `{0}` does not exist in this network namespace; `ip link` lists those that do; a port of InfiniBand \
         goes by its device in /dev/infiniband, as umad0"
    )]
    NoSuchInterface(String),
    /// The interface is not Ethernet.
    #[error(
        "interface `{0}` is not an Ethernet interface; raw frames need one; a port of InfiniBand goes by its device in \
         /dev/infiniband, as umad0"
    )]
    NotEthernet(String),
    /// The interface is administratively down.
    #[error("interface `{0}` is down; set it up with `ip link set {0} up`")]
    Down(String),
    /// The process may not open raw sockets.
    #[error(
        "no permission to open a raw socket on interface `{interface}`; run as root, or give the program \
         the capability once: `setcap cap_net_raw+ep {program}`"
    )]
    NotPermitted {
        /// The interface.
        interface: String,
        /// The path of the running program.
        program: String,
    },
    /// Frames of the configured size do not fit.
    #[error(
        "interface `{interface}` carries frames of {mtu} bytes, but this configuration needs {needed}; \
         raise it with `ip link set {interface} mtu {needed}`, or lower piece-bytes"
    )]
    MtuTooSmall {
        /// The interface.
        interface: String,
        /// Its MTU.
        mtu: u32,
        /// The least MTU that will do.
        needed: u32,
    },
    /// The kernel refused a call for another reason.
    #[error("interface `{interface}`: {doing}")]
    Io {
        /// The interface.
        interface: String,
        /// What was being done.
        doing: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel did not answer a question about interfaces.
    #[error("asking the kernel about interfaces (rtnetlink)")]
    Netlink(#[source] io::Error),
}
