//! The calls on an `AF_PACKET` socket (packet(7)) for which no safe crate has an interface.
#![allow(unsafe_code, reason = "neither rustix nor socket2 builds sockaddr_ll or packet_mreq")]

use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd;

use mapper_proto::Mac;
use socket2::{SockAddr, Socket};

/// The constant of linux/if_packet.h, which the crate libc lacks.
const PACKET_MR_UNICAST: libc::c_int = 3;

/// Binds the socket to frames of one EtherType that arrive at one interface.
pub(super) fn bind(socket: &Socket, index: u32, ethertype: u16) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: ethertype.to_be(),
        sll_ifindex: index.cast_signed(),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: socket2 hands out storage that is large enough and aligned for every socket address
    // of the system, sockaddr_ll among them, and the length set is that of what was written.
    let ((), address) = unsafe {
        SockAddr::try_init(|storage, length| {
            storage.cast::<libc::sockaddr_ll>().write(address);
            *length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            Ok(())
        })?
    };
    socket.bind(&address)
}

/// Makes the interface accept frames to `address`, for as long as the socket is open.
pub(super) fn add_membership(socket: &Socket, index: u32, address: Mac) -> io::Result<()> {
    let group = address.0[0] & 1 != 0;
    let mut bytes = [0; 8];
    bytes[..6].copy_from_slice(&address.0);
    let request = libc::packet_mreq {
        mr_ifindex: index.cast_signed(),
        mr_type: if group { libc::PACKET_MR_MULTICAST } else { PACKET_MR_UNICAST } as u16,
        mr_alen: 6,
        mr_address: bytes,
    };
    // SAFETY: the pointer and length are those of a live packet_mreq, which is what this option
    // takes; the kernel only reads it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            (&raw const request).cast(),
            size_of::<libc::packet_mreq>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// How many frames the kernel could not queue for the socket since the last call.
pub(super) fn take_drops(socket: &Socket) -> io::Result<u32> {
    let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: the pointers are those of a live tpacket_stats, which is what this option gives, and
    // of its length.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut statistics).cast(),
            &raw mut length,
        )
    };
    if result == 0 { Ok(statistics.tp_drops) } else { Err(io::Error::last_os_error()) }
}
