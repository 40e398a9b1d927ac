//! The calls on `/dev/net/tun` for which no safe crate has an interface
//! (Documentation/networking/tuntap.rst of Linux).
#![allow(unsafe_code, reason = "neither rustix nor socket2 has TUNSETIFF, TUNSETOFFLOAD and TUNSETPERSIST")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Attaches the open `/dev/net/tun` to the tap interface of this name, which is created if there is none.
/// From then on a read or a write is a `virtio_net_hdr` and an Ethernet frame; TCP segments may be long, and
/// checksums missing.
pub(super) fn attach_tap(file: &File, name: &str) -> io::Result<()> {
    // The kernel would choose a name if this one were empty.
    if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.bytes().any(|byte| byte == 0) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut ifr_name = [0; libc::IFNAMSIZ];
    ifr_name.iter_mut().zip(name.bytes()).for_each(|(to, byte)| *to = byte.cast_signed());
    let flags = (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
    let mut request = libc::ifreq { ifr_name, ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: flags } };
    // SAFETY: the descriptor is open, and the pointer is that of a live ifreq, which is what this
    // call reads and writes.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    let offload = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6;
    // SAFETY: the descriptor is open, and this call takes a number, no pointer.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(offload)) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Says whether the tap interface that the open `/dev/net/tun` is attached to stays when the descriptor is closed.
pub(super) fn set_persistent(file: &File, stays: bool) -> io::Result<()> {
    // SAFETY: the descriptor is open, and this call takes a number, no pointer.
    let result =
        unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETPERSIST, libc::c_ulong::from(u8::from(stays))) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
