//! Hands a socket or a device to tokio's reactor.
#![allow(unsafe_code, reason = "tokio asks its caller to vouch that the descriptor stays open")]

use std::fs::File;
use std::io;

use socket2::Socket;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Watches a non-blocking socket for input. Panics outside a tokio runtime with I/O.
pub(crate) fn watch(socket: Socket) -> io::Result<AsyncFd<Socket>> {
    // SAFETY: a socket2::Socket owns its descriptor, never changes it, and closes it only when it
    // is dropped; here the AsyncFd owns it and gives out shared references alone.
    unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) }.map_err(io::Error::from)
}

/// Watches a non-blocking device for input. Panics outside a tokio runtime with I/O.
pub(crate) fn watch_file(file: File) -> io::Result<AsyncFd<File>> {
    // SAFETY: a File owns its descriptor, never changes it, and closes it only when it is dropped; here the
    // AsyncFd owns it and gives out shared references alone.
    unsafe { AsyncFd::register_with_interest(file, Interest::READABLE) }.map_err(io::Error::from)
}
