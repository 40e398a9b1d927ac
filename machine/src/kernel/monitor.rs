//! Tells when somebody changes the kernel's forwarding tables.

use std::io;
use std::net::IpAddr;

use mapper_fib::{GroupId, NexthopId, Objects, RouteKey, Rule};
use socket2::Socket;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::{
    Kernel, KernelError, RTM_DELNEIGH, RTM_DELNEXTHOP, RTM_DELROUTE, RTM_DELRULE, RTM_NEWNEIGH,
    RTM_NEWNEXTHOP, RTM_NEWROUTE, RTM_NEWRULE, neighbour, nexthop, route, rule,
};
use crate::link::readiness;
use crate::netlink::message::{Message, attributes, messages, u32_at};
use crate::netlink::socket::notices;

/// The kernel's groups of notices: neighbours, routes and rules of IPv4, routes and rules of IPv6, settings of
/// interfaces for IPv4 and for IPv6, nexthops.
const GROUPS: [u32; 8] = [3, 7, 8, 11, 19, 24, 25, 32];
/// The message that tells of a setting of an interface, behind whose fixed part the attributes stand.
const RTM_NEWNETCONF: u16 = 80;
const NETCONF_FIXED_BYTES: usize = 4;
const NETCONFA_IFINDEX: u16 = 1;
/// More than any notice takes: a group of the most nexthops there are.
const BUFFER_BYTES: usize = 128 * 1024;
/// How many notices are handed over at once.
const MOST_AT_ONCE: usize = 1024;

/// Something that somebody else made, changed or took away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A route of this key, whoever's it is.
    Route(RouteKey),
    /// A nexthop of ours.
    Nexthop(NexthopId),
    /// A group of ours.
    Group(GroupId),
    /// A rule of ours.
    Rule(Rule),
    /// The entry of a neighbour, whoever's it is.
    Neighbour {
        /// The number of the interface.
        interface: u32,
        /// The neighbour's address.
        ip: IpAddr,
    },
    /// A setting of an interface under `/proc/sys/net`, such as whether it forwards; or one of all interfaces.
    Setting {
        /// The number of the interface; `None` for all.
        interface: Option<u32>,
    },
    /// Notices were lost, as there were more than could be kept, so everything is to be read back.
    Missed,
}

impl Notice {
    /// Whether one of these objects may have been touched, so that they are to be read back.
    pub fn concerns(&self, objects: &Objects) -> bool {
        match self {
            Self::Route(key) => objects.routes.contains_key(key),
            Self::Nexthop(id) => objects.nexthops.contains_key(id),
            Self::Group(id) => objects.groups.contains_key(id),
            Self::Rule(rule) => objects.rules.contains(rule),
            Self::Neighbour { interface, ip } => objects.neighbours.contains_key(&(*interface, *ip)),
            Self::Setting { interface: Some(interface) } => {
                objects.neighbours.keys().any(|(port, _)| port == interface)
            }
            Self::Setting { interface: None } | Self::Missed => true,
        }
    }
}

/// Tells when somebody else changes routes, nexthops, rules or neighbours in this network namespace, and when anybody,
/// this process included, changes how an interface forwards.
///
/// The kernel tells nothing when it takes away nexthops itself because their interface lost its carrier or was
/// set down: [`crate::link::interface::InterfaceMonitor`] tells of that.
#[derive(Debug)]
pub struct FibMonitor {
    socket: AsyncFd<Socket>,
}

impl FibMonitor {
    /// Begins to listen. Changes by `own` are not told. Call before reading back what is there, and no change is
    /// missed. Panics outside a tokio runtime with I/O.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn new(own: &Kernel) -> Result<Self, KernelError> {
        let open = || Ok(Self { socket: readiness::watch(notices(&GROUPS, Some(own.port()))?)? });
        let doing = "listening for changes of forwarding tables";
        open().map_err(|source| KernelError::NoAnswer { doing: doing.to_owned(), source })
    }

    /// Waits for the next changes by others. Some may be of no object that the caller knows:
    /// [`Notice::concerns`] says so.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn notices(&self) -> Result<Vec<Notice>, KernelError> {
        loop {
            // If all messages that were read are of other kinds, the wait goes on.
            match self.socket.async_io(Interest::READABLE, read).await {
                Ok(notices) if notices.is_empty() => {}
                Ok(notices) => return Ok(notices),
                Err(source) => {
                    let doing = "reading which forwarding tables changed".to_owned();
                    return Err(KernelError::NoAnswer { doing, source });
                }
            }
        }
    }
}

/// Reads the notices that are there.
fn read(socket: &Socket) -> io::Result<Vec<Notice>> {
    // The buffer is allocated when there is something to read, so none is held while nothing changes.
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut notices = Vec::new();
    let mut read = 0;
    while read < MOST_AT_ONCE {
        match io::Read::read(&mut &*socket, &mut buffer) {
            Ok(bytes) => notices.extend(messages(&buffer[..bytes]).filter_map(notice)),
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => notices.push(Notice::Missed),
            Err(_) if read > 0 => break,
            Err(error) => return Err(error),
        }
        read += 1;
    }
    notices.dedup();
    Ok(notices)
}

fn notice(message: Message<'_>) -> Option<Notice> {
    match message.header.kind {
        RTM_NEWROUTE | RTM_DELROUTE => route::read(message.body).map(|told| Notice::Route(told.key)),
        RTM_NEWNEXTHOP | RTM_DELNEXTHOP => nexthop::read(message.body).map(|told| match told {
            nexthop::Told::Single(id, _) => Notice::Nexthop(id),
            nexthop::Told::Group(id, _) => Notice::Group(id),
        }),
        RTM_NEWRULE | RTM_DELRULE => rule::read(message.body).map(Notice::Rule),
        RTM_NEWNEIGH | RTM_DELNEIGH => neighbour::read(message.body)
            .map(|told| Notice::Neighbour { interface: told.interface, ip: told.ip }),
        RTM_NEWNETCONF => {
            let mut told = attributes(message.body.get(NETCONF_FIXED_BYTES..)?);
            let (_, value) = told.find(|(kind, _)| *kind == NETCONFA_IFINDEX)?;
            // Settings for all interfaces, and for those that come later, have negative numbers.
            let interface = u32_at(value, 0).filter(|index| index.cast_signed() > 0);
            Some(Notice::Setting { interface })
        }
        _ => None,
    }
}
