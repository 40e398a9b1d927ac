//! The sockets by which paths through kernels are proved: one sends packets with headers of our own, another one
//! takes and answers the datagrams that arrive, and a third hears at which kernels hop limits of probes ended.

mod v4;

use std::io;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};

use mapper_fib::probe::{DATAGRAM_BYTES, UDP_PORT, ended_hop_limit};
use rustix::net::sockopt::{set_socket_recv_buffer_size_force, set_socket_send_buffer_size_force};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tracing::debug;

use super::ended_hops;
use super::stamped::{self, Received};
use crate::link::readiness;
pub use v4::ProbeSocketsV4;

/// The protocol of packets that bring their own header (`IPPROTO_RAW`).
const OWN_HEADER: i32 = 255;
/// The room for datagrams that wait: that of the longest train of packets as long as ports have them, of which each
/// takes more room than it has bytes.
const ROOM_BYTES: usize = 8 << 20;

/// Sends probes through this machine's kernel, and hears of those that arrive.
#[derive(Debug)]
pub struct ProbeSockets {
    own: Ipv6Addr,
    raw: Socket,
    datagrams: AsyncFd<Socket>,
    ended_hops: AsyncFd<Socket>,
}

/// As many bytes of a message of ICMPv6 as say which probe it is about: its own header, those of the probe, and the datagram.
const ENDED_HOP_BYTES: usize = 8 + 40 + 8 + DATAGRAM_BYTES;

/// What a kernel says at which a hop limit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedHop {
    /// The nonce of the probe.
    pub nonce: u64,
    /// An address of that kernel.
    pub at: Ipv6Addr,
}

/// A datagram that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// Its first bytes.
    pub bytes: [u8; DATAGRAM_BYTES],
    /// How many of them there are.
    pub len: usize,
    /// Who sent it.
    pub from: SocketAddr,
    /// When the kernel took it from the network, in nanoseconds of the machine's clock, if it told.
    pub arrived_ns: Option<u64>,
}

impl ProbeSockets {
    /// Opens the sockets of a host with this address on the fabric, which need not be assigned yet. Needs a tokio
    /// runtime, and `CAP_NET_RAW`.
    ///
    /// # Errors
    /// If the process may not, or another one has the port of UDP at this address.
    pub fn open(own: Ipv6Addr) -> io::Result<Self> {
        let raw = Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::from(OWN_HEADER)))?;
        raw.set_nonblocking(true)?;
        // A probe that does not fit into the buffer would be lost before it is sent, and look as if the way had lost it.
        if let Err(error) = set_socket_send_buffer_size_force(&raw, ROOM_BYTES) {
            debug!(%error, "no room for long trains of probes");
        }
        let datagrams = Socket::new(Domain::IPV6, Type::DGRAM, Some(Protocol::UDP))?;
        datagrams.set_only_v6(true)?;
        // The address may be assigned a moment later, or go and come back.
        datagrams.set_freebind_v6(true)?;
        datagrams.set_nonblocking(true)?;
        // Both are for measurements alone.
        if let Err(error) = set_socket_recv_buffer_size_force(&datagrams, ROOM_BYTES) {
            debug!(%error, "no room for long trains of probes");
        }
        if let Err(error) = stamped::tell_moments(&datagrams) {
            debug!(%error, "the kernel does not tell when probes arrive");
        }
        datagrams.bind(&SocketAddr::from((own, UDP_PORT)).into())?;
        let (datagrams, ended_hops) =
            (readiness::watch(datagrams)?, readiness::watch(ended_hops::open(own)?)?);
        Ok(Self { own, raw, datagrams, ended_hops })
    }

    /// The address that the sockets were opened for.
    pub const fn own(&self) -> Ipv6Addr {
        self.own
    }

    /// Has the kernel send a packet that begins with its own header by the route that it has for `towards`.
    ///
    /// # Errors
    /// If the kernel does not take it; it is lost then, as on a cable.
    pub fn send(&self, packet: &[u8], towards: Ipv6Addr) -> io::Result<()> {
        self.raw.send_to(packet, &SocketAddr::V6(SocketAddrV6::new(towards, 0, 0, 0)).into()).map(drop)
    }

    /// Sends a datagram back to where one came from.
    ///
    /// # Errors
    /// If the kernel does not take it; it is lost then.
    pub fn answer(&self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        self.datagrams.get_ref().send_to(datagram, &to.into()).map(drop)
    }

    /// Waits for a datagram.
    ///
    /// # Errors
    /// If the socket cannot be read.
    pub async fn arrived(&self) -> io::Result<Arrived> {
        let mut bytes = [0; DATAGRAM_BYTES];
        // The rest of a longer datagram is cut off, as only the first bytes say something.
        let receive = |socket: &Socket| stamped::receive(socket, &mut bytes);
        let Received { bytes: len, from, arrived_ns } =
            self.datagrams.async_io(Interest::READABLE, receive).await?;
        Ok(Arrived { bytes, len: len.min(DATAGRAM_BYTES), from, arrived_ns })
    }

    /// Waits until a kernel says that a hop limit ended there. `None` if that was of no probe.
    ///
    /// # Errors
    /// If the socket cannot be read.
    pub async fn ended_hop(&self) -> io::Result<Option<EndedHop>> {
        let mut bytes = [0; ENDED_HOP_BYTES];
        let receive = |socket: &Socket| stamped::receive(socket, &mut bytes);
        let Received { bytes: len, from, .. } = self.ended_hops.async_io(Interest::READABLE, receive).await?;
        let SocketAddr::V6(from) = from else { return Ok(None) };
        let nonce = bytes.get(..len).and_then(ended_hop_limit);
        Ok(nonce.map(|nonce| EndedHop { nonce, at: *from.ip() }))
    }
}
