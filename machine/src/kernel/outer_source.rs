//! The address that the outer headers of packets by segments come from, in messages of generic netlink (`SEG6`).
//!
//! It is one for all of a network namespace (`ip sr tunsrc`). Where nobody has set it, the kernel looks through all
//! addresses of the machine for each packet, which costs as much as a crossbar on the way.

use std::io;
use std::net::Ipv6Addr;

use mapper_fib::IpPrefix;

use super::{Kernel, KernelError};
use crate::link::held_address::HeldAddress;
use crate::netlink::message::{attributes, ipv6, u16_at};
use crate::netlink::socket::RequestSocket;

/// The kernel's list of what speaks generic netlink.
const CONTROL: u16 = 0x10;
const CONTROL_GET_FAMILY: u8 = 3;
const CONTROL_FAMILY_NUMBER: u16 = 1;
const CONTROL_FAMILY_NAME: u16 = 2;
const SEG6_SET_SOURCE: u8 = 3;
const SEG6_GET_SOURCE: u8 = 4;
const SEG6_ADDRESS: u16 = 1;
const FIXED_BYTES: usize = 4;

/// Where the address is asked for and set.
#[derive(Debug)]
pub(super) struct OuterSource {
    /// Nothing where the kernel has no generic netlink.
    socket: Option<RequestSocket>,
}

/// The fixed part of a message (`genlmsghdr`): the command and the version.
const fn fixed(command: u8) -> [u8; FIXED_BYTES] {
    [command, 1, 0, 0]
}

impl OuterSource {
    /// Opens a socket in the network namespace of this thread.
    pub(super) fn open() -> Self {
        Self { socket: RequestSocket::open_generic().ok() }
    }

    /// The number of the kernel's part for segments, and the socket to it.
    fn family(&mut self) -> io::Result<(&mut RequestSocket, u16)> {
        let Some(socket) = &mut self.socket else { return Err(io::ErrorKind::Unsupported.into()) };
        let family = socket.get(
            CONTROL,
            &fixed(CONTROL_GET_FAMILY),
            |inside| inside.put_text(CONTROL_FAMILY_NAME, "SEG6"),
            |message| attribute(message.body, CONTROL_FAMILY_NUMBER).and_then(|value| u16_at(value, 0)),
        )?;
        Ok((socket, family.ok_or(io::ErrorKind::InvalidData)?))
    }

    /// The address; the unspecified one if the kernel chooses for each packet.
    fn read(&mut self) -> io::Result<Ipv6Addr> {
        let (socket, family) = self.family()?;
        let now = socket.get(
            family,
            &fixed(SEG6_GET_SOURCE),
            |_| {},
            |message| attribute(message.body, SEG6_ADDRESS).and_then(ipv6),
        )?;
        now.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn set(&mut self, address: Ipv6Addr) -> io::Result<()> {
        let (socket, family) = self.family()?;
        socket.carry_out(family, 0, &fixed(SEG6_SET_SOURCE), |inside| {
            inside.put_ip(SEG6_ADDRESS, address.into());
        })
    }
}

/// The value of an attribute of a message.
fn attribute(body: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(body.get(FIXED_BYTES..)?).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}

impl Kernel {
    /// Has outer headers come from `own`, an address of the fabric's network, unless somebody has set another. One of that
    /// network that no interface has was left by a run that crashed and had another address.
    ///
    /// # Errors
    /// If the kernel has no segments, or does not let this process set it.
    pub fn keep_outer_source(&mut self, own: Ipv6Addr) -> Result<(), KernelError> {
        let mut keep = || {
            let now = self.outer_source.read()?;
            let is_free = now.is_unspecified()
                || now != own && network(now) == network(own) && !is_of_an_interface(&mut self.socket, now)?;
            if is_free { self.outer_source.set(own) } else { Ok(()) }
        };
        keep().map_err(refused)
    }

    /// Has the kernel choose for each packet again, if outer headers come from `own`.
    ///
    /// # Errors
    /// If the kernel has no segments, or does not let this process set it.
    pub fn release_outer_source(&mut self, own: Ipv6Addr) -> Result<(), KernelError> {
        let mut release = || {
            let is_own = self.outer_source.read()? == own;
            if is_own { self.outer_source.set(Ipv6Addr::UNSPECIFIED) } else { Ok(()) }
        };
        release().map_err(refused)
    }
}

/// The fabric's network, which has 64 bits, that this is an address of.
fn network(address: Ipv6Addr) -> IpPrefix {
    IpPrefix::v6(address, 64)
}

fn is_of_an_interface(socket: &mut RequestSocket, address: Ipv6Addr) -> io::Result<bool> {
    let held = HeldAddress::all_told_by(socket)?;
    Ok(held.iter().any(|held| held.address.ip() == address))
}

fn refused(source: io::Error) -> KernelError {
    KernelError::Refused {
        what: "the address that outer headers of segments come from (`ip sr tunsrc`)".to_owned(),
        said: None,
        source,
    }
}
