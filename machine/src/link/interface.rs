//! Asks the kernel about network interfaces, by messages of rtnetlink (RFC 3549) that are built here.
//!
//! `/sys/class/net` does not do, as it shows the network namespace in which it was mounted, which may be
//! another one than this process's.

use std::io::{self, Read};
use std::os::fd::OwnedFd;

use mapper_proto::Mac;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use socket2::Socket;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::{LinkError, readiness, set_link};

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_GETLINK: u16 = 18;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const RTMGRP_LINK: u32 = 1;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_MASTER: u16 = 10;
/// The two highest bits of an attribute's type are flags.
const NLA_TYPE_MASK: u16 = 0x3fff;

const ARPHRD_ETHER: u16 = 1;
const IFF_UP: u32 = 1;
const IFF_LOWER_UP: u32 = 0x10000;

/// Bytes of a netlink header.
const HEADER_BYTES: usize = 16;
/// Bytes of the `ifinfomsg` behind the header.
const INFO_BYTES: usize = 16;
/// The room for an answer, which is more than any answer about one interface takes.
const BUFFER_BYTES: usize = 64 * 1024;
/// How many messages [`Monitor::forget_past`] drops at most, so that it ends even while interfaces keep
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
pub enum Change {
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

/// Tells when any interface of this network namespace changes.
#[derive(Debug)]
pub struct Monitor {
    socket: AsyncFd<Socket>,
}

impl Monitor {
    /// Begins to listen. Call before looking interfaces up, and no change is missed.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn new() -> Result<Self, LinkError> {
        let open = || -> io::Result<Self> {
            let socket = open_netlink(SocketFlags::NONBLOCK, RTMGRP_LINK)?;
            Ok(Self { socket: readiness::watch(socket.into())? })
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
    pub async fn changes(&self) -> Result<Vec<Change>, LinkError> {
        // The buffer is allocated when there is something to read, so none is held while nothing changes.
        let read = |mut socket: &Socket| {
            let mut buffer = vec![0; BUFFER_BYTES];
            let bytes = socket.read(&mut buffer)?;
            Ok(parse_messages(&buffer[..bytes]).collect())
        };
        match self.socket.async_io(Interest::READABLE, read).await {
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => Ok(vec![Change::Missed]),
            changes => changes.map_err(LinkError::Netlink),
        }
    }
}

pub(super) fn open_netlink(flags: SocketFlags, groups: u32) -> io::Result<OwnedFd> {
    let flags = flags | SocketFlags::CLOEXEC;
    // Without a protocol the socket has protocol 0, which is NETLINK_ROUTE.
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    rustix::net::bind(&socket, &SocketAddrNetlink::new(0, groups))?;
    Ok(socket)
}

fn look_up(name: &str) -> io::Result<Option<Interface>> {
    let Some(request) = request_by_name(name) else { return Ok(None) };
    let socket = open_netlink(SocketFlags::empty(), 0)?;
    rustix::net::send(&socket, &request, SendFlags::empty())?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let (bytes, _) = rustix::net::recv(&socket, &mut buffer[..], RecvFlags::empty())?;
    let answer = &buffer[..bytes];
    if u16_at(answer, 4) == Some(NLMSG_ERROR) {
        let code = u32_at(answer, HEADER_BYTES).unwrap_or(0).cast_signed();
        return match -code {
            libc::ENODEV => Ok(None),
            errno => Err(io::Error::from_raw_os_error(errno)),
        };
    }
    let found = parse_messages(answer).find_map(|change| match change {
        Change::Now(interface) => Some(interface),
        Change::Gone { .. } | Change::Missed => None,
    });
    // An alternative name finds the interface too, but everything else here goes by the name.
    Ok(found.filter(|interface| interface.name == name))
}

fn list() -> io::Result<Vec<Interface>> {
    let total = HEADER_BYTES + INFO_BYTES;
    let mut request = Vec::with_capacity(total);
    request.extend_from_slice(&(total as u32).to_ne_bytes());
    request.extend_from_slice(&RTM_GETLINK.to_ne_bytes());
    request.extend_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    request.resize(total, 0);
    let socket = open_netlink(SocketFlags::empty(), 0)?;
    rustix::net::send(&socket, &request, SendFlags::empty())?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut found = Vec::new();
    loop {
        let (bytes, _) = rustix::net::recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        let answer = &buffer[..bytes];
        if messages(answer).next().is_none() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // The end may come in the same datagram as the last interfaces.
        for message in messages(answer) {
            match u16_at(message, 4) {
                Some(NLMSG_DONE) => return Ok(found),
                Some(NLMSG_ERROR) => {
                    let code = u32_at(message, HEADER_BYTES).unwrap_or(0).cast_signed();
                    return Err(io::Error::from_raw_os_error(-code));
                }
                _ => found.extend(parse_message(message).and_then(|change| match change {
                    Change::Now(interface) => Some(interface),
                    Change::Gone { .. } | Change::Missed => None,
                })),
            }
        }
    }
}

/// The request `RTM_GETLINK` for one name; `None` if no interface can have that name.
fn request_by_name(name: &str) -> Option<Vec<u8>> {
    if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.bytes().any(|byte| byte == 0) {
        return None;
    }
    let attribute_bytes = 4 + name.len() + 1;
    let total = HEADER_BYTES + INFO_BYTES + attribute_bytes.next_multiple_of(4);
    let mut request = Vec::with_capacity(total);
    request.extend_from_slice(&u32::try_from(total).ok()?.to_ne_bytes());
    request.extend_from_slice(&RTM_GETLINK.to_ne_bytes());
    request.extend_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    request.resize(HEADER_BYTES + INFO_BYTES, 0);
    request.extend_from_slice(&u16::try_from(attribute_bytes).ok()?.to_ne_bytes());
    request.extend_from_slice(&IFLA_IFNAME.to_ne_bytes());
    request.extend_from_slice(name.as_bytes());
    request.resize(total, 0);
    Some(request)
}

/// The changes of interfaces in a datagram. Other messages are skipped, and a cut-off one ends the iteration.
fn parse_messages(datagram: &[u8]) -> impl Iterator<Item = Change> + '_ {
    messages(datagram).filter_map(parse_message)
}

/// The messages of a datagram, each with its header.
fn messages(datagram: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let length = usize::try_from(u32_at(rest, 0)?).ok()?;
        let message = rest.get(..length).filter(|message| message.len() >= HEADER_BYTES)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some(message)
    })
}

fn parse_message(message: &[u8]) -> Option<Change> {
    let kind = u16_at(message, 4)?;
    let info = message.get(HEADER_BYTES..)?;
    // A bridge reports that a port left it by the same type of message, with its own address family.
    if *info.first()? != 0 {
        return None;
    }
    let index = u32_at(info, 4)?;
    match kind {
        RTM_NEWLINK => parse_interface(info, index).map(Change::Now),
        RTM_DELLINK => Some(Change::Gone { index }),
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
    };
    let mut rest = info.get(INFO_BYTES..)?;
    while let Some(length) = u16_at(rest, 0).map(usize::from) {
        let (Some(kind), Some(value)) = (u16_at(rest, 2), rest.get(4..length)) else { break };
        match kind & NLA_TYPE_MASK {
            IFLA_ADDRESS => interface.mac = value.try_into().map(Mac).unwrap_or_default(),
            IFLA_IFNAME => {
                let text = value.split(|&byte| byte == 0).next().unwrap_or_default();
                interface.name = String::from_utf8_lossy(text).into_owned();
            }
            IFLA_MTU => interface.mtu = u32_at(value, 0)?,
            IFLA_MASTER => interface.master = u32_at(value, 0),
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    Some(interface)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        fn garbled_messages_are_skipped(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            parse_messages(&bytes).for_each(drop);
        }

        #[test]
        fn garbled_attributes_are_skipped(tail in proptest::collection::vec(any::<u8>(), 0..100)) {
            let mut message = request_by_name("eth0").unwrap();
            message[4..6].copy_from_slice(&RTM_NEWLINK.to_ne_bytes());
            message.extend_from_slice(&tail);
            let length = u32::try_from(message.len()).unwrap();
            message[..4].copy_from_slice(&length.to_ne_bytes());
            parse_messages(&message).for_each(drop);
        }
    }
}
