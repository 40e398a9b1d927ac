//! Sockets that a service manager opened before it started this process (sd_listen_fds(3)).

#![allow(
    unsafe_code,
    reason = "a descriptor that the service manager hands over is known by its number alone"
)]

use std::io;
use std::net::TcpListener;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;

use rustix::fs::fstat;
use rustix::net::AddressFamily;
use rustix::net::sockopt::{socket_acceptconn, socket_domain};

/// A listening socket, which does not block.
#[derive(Debug)]
pub enum Activated {
    /// A unix socket.
    Unix(UnixListener),
    /// A port of TCP.
    Tcp(TcpListener),
}

/// The first of the sockets that the service manager hands over, if it hands over any. To be called once, as the socket
/// belongs to the caller then.
///
/// # Errors
/// If what is handed over is no listening socket.
pub fn first_socket() -> io::Result<Option<Activated>> {
    let Some(number) = sd_notify::listen_fds()?.next() else { return Ok(None) };
    let fd = own(number)?;
    if !socket_acceptconn(&fd)? {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it does not listen"));
    }
    match socket_domain(&fd)? {
        AddressFamily::UNIX => {
            let socket = UnixListener::from(fd);
            socket.set_nonblocking(true)?;
            Ok(Some(Activated::Unix(socket)))
        }
        _ => {
            let socket = TcpListener::from(fd);
            socket.set_nonblocking(true)?;
            Ok(Some(Activated::Tcp(socket)))
        }
    }
}

/// Takes a descriptor by its number.
fn own(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the service manager opened this descriptor for this process, which is told so by the variable LISTEN_PID,
    // and nothing else in the process knows of it.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    if let Err(error) = fstat(&fd) {
        // The descriptor is not open, so it must not be closed.
        std::mem::forget(fd);
        return Err(error.into());
    }
    Ok(fd)
}
