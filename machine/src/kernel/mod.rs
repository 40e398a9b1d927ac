//! Forwarding tables of the kernel: what [`mapper_fib`] says as plain values is installed and read back here, by
//! rtnetlink.
//!
//! - [`Kernel`]: installs changes (`install`) and reads back what is there (`dump`).
//! - [`Abilities`]: what this kernel can, found by trying.
//! - [`FibMonitor`]: tells when somebody else changes the tables.
//! - [`Foreign`]: what others have where objects of this project stand.
//! - [`MissingRule`]: a rule that the machine began with and somebody took away.
//! - [`Connected`]: routes that the kernel makes with an interface's addresses, put back when somebody takes them away.
//! - [`InUse`]: says to other daemons that one uses the kernel, whose objects are then not theirs to take away.
//!
//! `older` takes away what older versions left that is none of these objects.
//!
//! `outer_source` is the address that outer headers of segments come from, and `shortcutting` sends packets by segments
//! on before routes are looked up, and `strangers` drops what comes by no port of the fabric: none is an object that is read
//! back. `nftables` has what messages of its are made of.
//!
//! A module a kind of object says how it stands in messages: `neighbour`, `nexthop`, `rule`, `route`, `mark`, and
//! `tunnel` for what routes and nexthops do with segments.

mod abilities;
mod connected;
mod counts;
mod dump;
mod ended_hops;
mod foreign;
mod in_use;
mod install;
mod left_unused;
mod mark;
mod missing_rules;
mod monitor;
mod neighbour;
mod nexthop;
mod nftables;
mod older;
mod outer_source;
pub mod probing;
mod route;
mod rule;
mod shortcutting;
mod stamped;
mod strangers;
mod tunnel;

use std::io;

use thiserror::Error;

pub use abilities::{Abilities, Ability};
pub use connected::Connected;
pub use foreign::Foreign;
pub use in_use::{InUse, is_in_use};
pub use install::object_name;
pub use missing_rules::MissingRule;
pub use monitor::{FibMonitor, Notice};

use mark::LengthMarks;
use outer_source::OuterSource;
use shortcutting::Shortcutting;
use strangers::StrangersSegments;

use crate::link::LinkError;
use crate::netlink::socket::RequestSocket;

/// The message that tells of an object, or makes it.
const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;
const RTM_GETROUTE: u16 = 26;
const RTM_NEWNEIGH: u16 = 28;
const RTM_DELNEIGH: u16 = 29;
const RTM_GETNEIGH: u16 = 30;
const RTM_NEWRULE: u16 = 32;
const RTM_DELRULE: u16 = 33;
const RTM_GETRULE: u16 = 34;
const RTM_NEWNEXTHOP: u16 = 104;
const RTM_DELNEXTHOP: u16 = 105;
const RTM_GETNEXTHOP: u16 = 106;

const AF_INET: u8 = libc::AF_INET as u8;
const AF_INET6: u8 = libc::AF_INET6 as u8;

/// What the kernel did not do, and what to do about it.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The process may not change forwarding tables.
    #[error(
        "no permission to change {what}; run as root, or give the service the capability CAP_NET_ADMIN \
         (`AmbientCapabilities=CAP_NET_ADMIN`)"
    )]
    NotPermitted {
        /// The object.
        what: String,
    },
    /// Another process owns an object, which is one a machine.
    #[error(
        "{what} belongs to another agent or node of this machine, and only one can have the kernel carry users' packets: \
         run one `mapper node` for all interfaces, or be content with the tap interface here (--data-path tap)"
    )]
    Owned {
        /// The object.
        what: String,
    },
    /// The kernel refused an object.
    #[error("the kernel refused {what}{}", said.as_ref().map(|said| format!(": {said}")).unwrap_or_default())]
    Refused {
        /// The object.
        what: String,
        /// The kernel's own words, if it has some.
        said: Option<String>,
        /// The error.
        source: io::Error,
    },
    /// There is no interface on which to try what the kernel can.
    #[error(
        "no interface is up and has carrier, so what the kernel can forward is not known; set one up, if only \
         `ip link set lo up`"
    )]
    NoInterface {
        /// Why interfaces are not known, if they are not.
        source: Option<LinkError>,
    },
    /// There can be no network namespace in which to try what the kernel can.
    #[error("no network namespace can be made to try what the kernel can; run as root of the machine itself")]
    NoNamespace {
        /// The error.
        source: io::Error,
    },
    /// The kernel did not answer, or not in time. Whether it has done what was asked is not known.
    #[error("{doing}: the kernel does not answer (rtnetlink)")]
    NoAnswer {
        /// What was being done.
        doing: String,
        /// The error.
        source: io::Error,
    },
}

/// The kernel's forwarding tables in the network namespace in which this was opened.
///
/// Calls wait for the kernel, which answers within the call; five seconds at most, should another process keep
/// the lock of all network settings. After [`KernelError::NoAnswer`] open another one: late answers to the old
/// questions may still come.
#[derive(Debug)]
pub struct Kernel {
    socket: RequestSocket,
    marking: LengthMarks,
    outer_source: OuterSource,
    shortcutting: Shortcutting,
    strangers: StrangersSegments,
}

impl Kernel {
    /// Opens a socket to the kernel.
    ///
    /// # Errors
    /// If the process may have no more files, or the kernel has no rtnetlink.
    pub fn open() -> Result<Self, KernelError> {
        let socket = RequestSocket::open().map_err(|source| KernelError::NoAnswer {
            doing: "opening a socket for forwarding tables".to_owned(),
            source,
        })?;
        let (marking, outer_source) = (LengthMarks::open(), OuterSource::open());
        let (shortcutting, strangers) = (Shortcutting::open(), StrangersSegments::open());
        Ok(Self { socket, marking, outer_source, shortcutting, strangers })
    }

    /// The number of this socket, which stands in notices of the changes that it made.
    pub const fn port(&self) -> u32 {
        self.socket.port()
    }
}
