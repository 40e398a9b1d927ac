//! The system call fork, which puts a daemon into the background.
#![allow(unsafe_code, reason = "no safe crate offers fork, as a thread would make it unsound")]

use std::io;

/// Which of the two processes after the fork this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Parent,
    Child,
}

/// Splits this process in two. Refuses if it has more than one thread.
pub(super) fn fork() -> io::Result<Side> {
    let threads = std::fs::read_dir("/proc/self/task")?.count();
    if threads != 1 {
        return Err(io::Error::other(format!("the process already has {threads} threads")));
    }
    // SAFETY: with a single thread no lock is held by another, so the child may go on as the
    // parent would.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Side::Child),
        _ => Ok(Side::Parent),
    }
}
