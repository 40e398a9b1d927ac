//! `recvmmsg(2)` and `sendmmsg(2)`, which receive and send many frames by one system call.
#![allow(unsafe_code, reason = "neither rustix nor socket2 has these calls")]

use std::io::{self, IoSlice};
use std::mem::zeroed;
use std::os::fd::AsRawFd;
use std::ptr::null_mut;

use socket2::Socket;

use super::batch::{BATCH_FRAMES, Batch};

/// Receives the frames that are there, as many as the batch holds. The batch is emptied before. Does not
/// wait.
pub(super) fn recv(socket: &Socket, batch: &mut Batch) -> io::Result<()> {
    batch.clear();
    let no_bytes = libc::iovec { iov_base: null_mut(), iov_len: 0 };
    let mut places = [no_bytes; BATCH_FRAMES];
    for (place, bytes) in places.iter_mut().zip(batch.places()) {
        *place = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    }
    let mut headers = no_headers();
    for (header, place) in headers.iter_mut().zip(&mut places) {
        header.msg_hdr.msg_iov = place;
        header.msg_hdr.msg_iovlen = 1;
    }
    // SAFETY: each header names one iovec, each iovec one piece of the batch's bytes; the pieces
    // do not overlap, all of it outlives the call, and nothing else looks at it meanwhile. A null
    // pointer stands for no time-out.
    let received = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            BATCH_FRAMES as libc::c_uint,
            libc::MSG_DONTWAIT,
            null_mut(),
        )
    };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    for header in headers.iter().take(received) {
        batch.add_placed(header.msg_len as usize, header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0);
    }
    Ok(())
}

/// Sends frames, each in two parts, until one fails; returns how many were sent. At most
/// [`BATCH_FRAMES`] are. Does not wait.
pub(super) fn send(socket: &Socket, frames: &[[IoSlice<'_>; 2]]) -> io::Result<usize> {
    let count = frames.len().min(BATCH_FRAMES);
    let mut headers = no_headers();
    for (header, parts) in headers.iter_mut().zip(frames) {
        // The standard library guarantees that an IoSlice has the layout of an iovec.
        header.msg_hdr.msg_iov = parts.as_ptr().cast_mut().cast();
        header.msg_hdr.msg_iovlen = parts.len();
    }
    // SAFETY: the first `count` headers name two iovecs each, which name bytes that are borrowed
    // until after the call; the kernel reads them and writes to the headers alone.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            count as libc::c_uint,
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

fn no_headers() -> [libc::mmsghdr; BATCH_FRAMES] {
    // SAFETY: mmsghdr has only numbers and raw pointers, for which zeros are valid.
    unsafe { zeroed() }
}
