//! Messages of ICMPv6 by which kernels say that a packet's hop limit ended there.
#![allow(unsafe_code, reason = "neither rustix nor socket2 says which messages of ICMPv6 a socket takes")]

use std::io;
use std::mem::size_of_val;
use std::net::{Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;

use mapper_fib::probe::TIME_EXCEEDED;
use socket2::{Domain, Protocol, Socket, Type};

/// The option of a raw socket that says which messages it takes (RFC 3542, section 3.2).
const ICMP6_FILTER: libc::c_int = 1;

/// Opens a socket that takes such messages alone, and only those to this address, which need not be assigned yet.
///
/// # Errors
/// If the process may not.
pub(super) fn open(own: Ipv6Addr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6))?;
    socket.set_freebind_v6(true)?;
    socket.set_nonblocking(true)?;
    take_only(&socket, TIME_EXCEEDED)?;
    socket.bind(&SocketAddr::from((own, 0)).into())?;
    Ok(socket)
}

/// Has the socket take messages of one type alone.
fn take_only(socket: &Socket, kind: u8) -> io::Result<()> {
    // A bit for each type, which is set for those that are not taken.
    let mut refused = [u32::MAX; 8];
    refused[usize::from(kind / 32)] &= !(1 << (kind % 32));
    // SAFETY: the value is an array of numbers whose length is told, and the kernel reads it during the call alone.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_ICMPV6,
            ICMP6_FILTER,
            refused.as_ptr().cast(),
            size_of_val(&refused) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
