//! Messages of netlink (RFC 3549), as they are written and read here, and a socket for them.
//!
//! - [`message`]: headers and attributes as bytes.
//! - [`socket`]: requests to the kernel, their answers, and the kernel's notices.

pub(crate) mod message;
mod options;
pub(crate) mod socket;
