//! Asks the kernel about network interfaces, by messages of rtnetlink (RFC 3549).
//!
//! `/sys/class/net` does not do, as it shows the network namespace in which it was mounted, which may be
//! another one than this process's.

use std::io::{self, Read};

use mapper_proto::Mac;
use socket2::Socket;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::{LinkError, readiness, set_link};
use crate::netlink::message::{Message, attributes, messages, text, u16_at, u32_at};
use crate::netlink::socket::{RequestSocket, notices};

const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_GETLINK: u16 = 18;
/// The kernel's group of notices about interfaces.
const RTNLGRP_LINK: u32 = 1;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;

const ARPHRD_ETHER: u16 = 1;
const IFF_UP: u32 = 1;
const IFF_LOWER_UP: u32 = 0x10000;

/// Bytes of the `ifinfomsg` that stands before the attributes.
const INFO_BYTES: usize = 16;
/// The room for a notice, which is more than any about one interface takes.
const BUFFER_BYTES: usize = 64 * 1024;
/// How many messages [`InterfaceMonitor::forget_past`] drops at most, so that it ends even while interfaces keep
/// changing.
const MOST_PAST: usize = 4096;

/// A network interface as the kernel described it at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The interface's name.
    pub name: String,
    /// The interface's number in this network namespace.
    pub index: u32,
    /// The interface's address; zero if it has none of 48 bits.
    pub mac: Mac,
    /// The most bytes behind the Ethernet header.
    pub mtu: u32,
    /// Whether it is Ethernet.
    pub ethernet: bool,
    /// Whether it is administratively up.
    pub up: bool,
    /// Whether it is up and its cable carries a signal.
    pub carrier: bool,
    /// The number of the bridge, bond or the like that it is a port of.
    pub master: Option<u32>,
    /// What a driver of virtual interfaces calls it, such as `veth`, `tun` or `bridge`; `None` for hardware.
    pub kind: Option<String>,
}

impl Interface {
    /// The interface with this name, or `None`.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn look_up(name: &str) -> Result<Option<Self>, LinkError> {
        look_up(name).map_err(LinkError::Netlink)
    }

    /// All interfaces of this network namespace, in the kernel's order.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn all() -> Result<Vec<Self>, LinkError> {
        list().map_err(LinkError::Netlink)
    }

    /// Sets the interface up. Needs `CAP_NET_ADMIN`.
    ///
    /// # Errors
    /// If the process lacks the capability, or the kernel refuses.
    pub fn set_up(&self) -> io::Result<()> {
        set_link::set_up_only(self.index)
    }
}

/// A change of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InterfaceChange {
    /// The interface was made or changed, and this is its state now.
    Now(Interface),
    /// The interface is gone.
    Gone {
        /// The number that it had.
        index: u32,
    },
    /// Changes were missed, so every interface must be looked up again.
    Missed,
}

impl InterfaceChange {
    /// The state of an interface, if this tells one.
    fn now(self) -> Option<Interface> {
        match self {
            Self::Now(interface) => Some(interface),
            Self::Gone { .. } | Self::Missed => None,
        }
    }
}

/// Tells when any interface of this network namespace changes.
#[derive(Debug)]
pub struct InterfaceMonitor {
    socket: AsyncFd<Socket>,
}

impl InterfaceMonitor {
    /// Begins to listen. Call before looking interfaces up, and no change is missed.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn new() -> Result<Self, LinkError> {
        let open = || -> io::Result<Self> {
            Ok(Self { socket: readiness::watch(notices(&[RTNLGRP_LINK], None)?)? })
        };
        open().map_err(LinkError::Netlink)
    }

    /// Drops the changes up to now. This is for whoever has made interfaces after [`Self::new`] and looks
    /// everything up next. The kernel reports each step in which an interface was made, and the first of
    /// these reports are no longer true.
    pub fn forget_past(&self) {
        let mut socket = self.socket.get_ref();
        let mut buffer = vec![0; BUFFER_BYTES];
        for _ in 0..MOST_PAST {
            match socket.read(&mut buffer) {
                Ok(_) => {}
                // Changes that overflowed the socket's buffer are dropped as well.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
                // Nothing is left to read, or there is an error, which is met again at the next wait.
                Err(_) => return,
            }
        }
    }

    /// Waits for the next changes.
    ///
    /// # Errors
    /// If the kernel's answer cannot be read.
    pub async fn changes(&self) -> Result<Vec<InterfaceChange>, LinkError> {
        // The buffer is allocated when there is something to read, so none is held while nothing changes.
        let read = |mut socket: &Socket| {
            let mut buffer = vec![0; BUFFER_BYTES];
            let bytes = socket.read(&mut buffer)?;
            Ok(parse_messages(&buffer[..bytes]).collect())
        };
        match self.socket.async_io(Interest::READABLE, read).await {
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => Ok(vec![InterfaceChange::Missed]),
            changes => changes.map_err(LinkError::Netlink),
        }
    }
}

fn look_up(name: &str) -> io::Result<Option<Interface>> {
    if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.bytes().any(|byte| byte == 0) {
        return Ok(None);
    }
    let mut socket = RequestSocket::open()?;
    let found = socket.get(
        RTM_GETLINK,
        &[0; INFO_BYTES],
        |attributes| attributes.put_text(IFLA_IFNAME, name),
        parse_message,
    );
    let found = match found {
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => None,
        found => found?,
    };
    Ok(found.and_then(InterfaceChange::now).filter(|interface| {
        // An alternative name finds the interface too, but everything else here goes by the name.
        interface.name == name
    }))
}

fn list() -> io::Result<Vec<Interface>> {
    RequestSocket::open()?.dump(RTM_GETLINK, &[0; INFO_BYTES], Vec::new, |found, message| {
        found.extend(parse_message(message).and_then(InterfaceChange::now));
    })
}

/// The changes of interfaces in a datagram. Other messages are skipped, and a cut-off one ends the iteration.
fn parse_messages(datagram: &[u8]) -> impl Iterator<Item = InterfaceChange> + '_ {
    messages(datagram).filter_map(parse_message)
}

fn parse_message(message: Message<'_>) -> Option<InterfaceChange> {
    let info = message.body;
    // A bridge reports that a port left it by the same type of message, with its own address family.
    if *info.first()? != 0 {
        return None;
    }
    let index = u32_at(info, 4)?;
    match message.header.kind {
        RTM_NEWLINK => parse_interface(info, index).map(InterfaceChange::Now),
        RTM_DELLINK => Some(InterfaceChange::Gone { index }),
        _ => None,
    }
}

fn parse_interface(info: &[u8], index: u32) -> Option<Interface> {
    let flags = u32_at(info, 8)?;
    let up = flags & IFF_UP != 0;
    let mut interface = Interface {
        name: String::new(),
        index,
        mac: Mac::default(),
        mtu: 0,
        ethernet: u16_at(info, 2)? == ARPHRD_ETHER,
        up,
        carrier: up && flags & IFF_LOWER_UP != 0,
        master: None,
        kind: None,
    };
    for (kind, value) in attributes(info.get(INFO_BYTES..)?) {
        match kind {
            IFLA_ADDRESS => interface.mac = value.try_into().map(Mac).unwrap_or_default(),
            IFLA_IFNAME => interface.name = text(value),
            IFLA_MTU => interface.mtu = u32_at(value, 0)?,
            IFLA_MASTER => interface.master = u32_at(value, 0),
            IFLA_LINKINFO => interface.kind = kind_in(value),
            _ => {}
        }
    }
    Some(interface)
}

/// What a virtual interface is called by its driver, among the attributes of `IFLA_LINKINFO`.
fn kind_in(info: &[u8]) -> Option<String> {
    attributes(info).find(|&(kind, _)| kind == IFLA_INFO_KIND).map(|(_, value)| text(value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::netlink::message::{Header, write};

    #[test]
    fn the_loopback_interface_is_there_and_is_not_ethernet() {
        let lo = Interface::look_up("lo").unwrap().expect("every namespace has lo");
        assert_eq!(lo.name, "lo");
        assert_eq!(lo.index, 1);
        assert!(!lo.ethernet);
        assert!(lo.mtu >= 1500);
    }

    #[test]
    fn the_list_of_all_has_the_loopback_interface_as_it_is_looked_up() {
        let lo = Interface::look_up("lo").unwrap().unwrap();
        assert!(Interface::all().unwrap().contains(&lo));
    }

    #[test]
    fn names_that_no_interface_has_are_absent_not_errors() {
        for name in ["nosuch0", "", "a-name-too-long-for-linux", "nul\0"] {
            assert_eq!(Interface::look_up(name).unwrap(), None, "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn garbled_messages_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            parse_messages(&bytes).for_each(drop);
        }

        #[test]
        fn garbled_attributes_do_no_harm(tail in proptest::collection::vec(any::<u8>(), 0..100)) {
            let header = Header { kind: RTM_NEWLINK, flags: 0, sequence: 0, port: 0 };
            let mut message = Vec::new();
            write(&mut message, header, &[&[0; INFO_BYTES][..], &tail].concat(), |_| {});
            parse_messages(&message).for_each(drop);
        }
    }
}
