//! The reasons why a frame was not sent.

use std::io;

/// Why the kernel, or the other end inside the process, did not take a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unsent {
    /// Too many frames wait to leave.
    QueueFull,
    /// The frame is longer than the interface carries.
    TooLong,
    /// The interface is down or gone.
    Down,
    /// The kernel refused the frame for another reason.
    Refused,
}

impl Unsent {
    /// The reason behind an error of a system call that sends.
    pub(super) fn from_error(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ENOBUFS | libc::EAGAIN | libc::ENOMEM) => Self::QueueFull,
            Some(libc::EMSGSIZE) => Self::TooLong,
            Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => Self::Down,
            _ => Self::Refused,
        }
    }
}
