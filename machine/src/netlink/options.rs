//! Options of netlink sockets.
#![allow(unsafe_code, reason = "neither rustix nor socket2 has these options")]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Turns an option of the level `SOL_NETLINK` on.
pub(super) fn turn_on(socket: &OwnedFd, option: libc::c_int) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the value is a c_int that outlives the call, and its size is the one that is passed.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_NETLINK,
            option,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
