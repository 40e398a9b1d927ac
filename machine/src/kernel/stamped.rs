//! Datagrams with the moment at which the kernel took them from the network.
#![allow(
    unsafe_code,
    reason = "neither rustix nor socket2 reads the moments of arrival that the kernel tells"
)]

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{SocketAddr, SocketAddrV6};
use std::os::fd::AsRawFd;

use socket2::Socket;

/// Has the kernel tell of each datagram of this socket when it arrived.
///
/// # Errors
/// If the kernel refuses.
pub(super) fn tell_moments(socket: &Socket) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the value is a number whose length is told, and the kernel reads it during the call alone.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A datagram of a socket of IPv6.
#[derive(Debug, Clone, Copy)]
pub(super) struct Received {
    /// How many of its bytes there was room for.
    pub(super) bytes: usize,
    /// Who sent it.
    pub(super) from: SocketAddr,
    /// When it arrived, in nanoseconds of the machine's clock; `None` if the kernel did not tell.
    pub(super) arrived_ns: Option<u64>,
}

/// Room for one message of control, aligned as its header must be.
#[repr(align(8))]
struct Control([u8; 64]);

/// Receives a datagram. What `buffer` has no room for is lost. Does not wait.
///
/// # Errors
/// If there is none, or the socket cannot be read.
pub(super) fn receive(socket: &Socket, buffer: &mut [u8]) -> io::Result<Received> {
    let mut place = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut control = Control([0; 64]);
    // SAFETY: both have only numbers and raw pointers, for which zeros are valid.
    let (mut from, mut header): (libc::sockaddr_in6, libc::msghdr) = unsafe { (zeroed(), zeroed()) };
    header.msg_name = (&raw mut from).cast();
    header.msg_namelen = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
    header.msg_iov = &raw mut place;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = control.0.len();
    // SAFETY: the header names an address, a piece of bytes and room for control, with their lengths. All of it
    // outlives the call, and nothing else looks at it meanwhile.
    let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT) };
    let bytes = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    let from =
        SocketAddrV6::new(from.sin6_addr.s6_addr.into(), u16::from_be(from.sin6_port), 0, from.sin6_scope_id);
    Ok(Received { bytes, from: from.into(), arrived_ns: moment(&header) })
}

/// The moment of arrival among what the kernel has told of a datagram.
fn moment(header: &libc::msghdr) -> Option<u64> {
    // SAFETY: the header is one that the kernel has filled in, and its room for control is still there. The macros
    // give places within that room alone.
    let told = unsafe { libc::CMSG_FIRSTHDR(header).as_ref() }?;
    let least = size_of::<libc::cmsghdr>() + size_of::<libc::timespec>();
    if (told.cmsg_level, told.cmsg_type) != (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) || told.cmsg_len < least
    {
        return None;
    }
    // SAFETY: by its kind and length it holds a `timespec`, which may lie unaligned.
    let moment = unsafe { libc::CMSG_DATA(told).cast::<libc::timespec>().read_unaligned() };
    let (seconds, ns) = (u64::try_from(moment.tv_sec).ok()?, u64::try_from(moment.tv_nsec).ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(ns)
}
