//! The sockets by which it is found out whether packets of IPv4 get through where those of IPv6 do.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use mapper_fib::object::PROBE_SERVICE;
use mapper_fib::probe::{DATAGRAM_BYTES, UDP_PORT};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;

use super::{Arrived, OWN_HEADER};

/// Sends probes of IPv4 through this machine's kernel, and hears of those that arrive.
#[derive(Debug)]
pub struct ProbeSocketsV4 {
    own: Ipv4Addr,
    raw: Socket,
    datagrams: UdpSocket,
}

impl ProbeSocketsV4 {
    /// Opens the sockets of a host with this address on the fabric, which need not be assigned yet. Needs a tokio
    /// runtime, and `CAP_NET_RAW`.
    ///
    /// # Errors
    /// If the process may not, or another one has the port of UDP at this address.
    pub fn open(own: Ipv4Addr) -> io::Result<Self> {
        let raw = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(OWN_HEADER)))?;
        raw.set_nonblocking(true)?;
        let datagrams = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        // The address may be assigned a moment later, or go and come back.
        datagrams.set_freebind_v4(true)?;
        datagrams.set_nonblocking(true)?;
        // Answers are looked up as probes are.
        datagrams.set_tos_v4(PROBE_SERVICE.into())?;
        datagrams.bind(&SocketAddr::from((own, UDP_PORT)).into())?;
        Ok(Self { own, raw, datagrams: UdpSocket::from_std(datagrams.into())? })
    }

    /// The address that the sockets were opened for.
    pub const fn own(&self) -> Ipv4Addr {
        self.own
    }

    /// Has the kernel send a packet that begins with its own header by the route that it has for `towards`.
    ///
    /// # Errors
    /// If the kernel does not take it; it is lost then, as on a cable.
    pub fn send(&self, packet: &[u8], towards: Ipv4Addr) -> io::Result<()> {
        self.raw.send_to(packet, &SocketAddr::from((towards, 0)).into()).map(drop)
    }

    /// Sends a datagram back to where one came from.
    ///
    /// # Errors
    /// If the kernel does not take it; it is lost then.
    pub fn answer(&self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        self.datagrams.try_send_to(datagram, to).map(drop)
    }

    /// Waits for a datagram.
    ///
    /// # Errors
    /// If the socket cannot be read.
    pub async fn arrived(&self) -> io::Result<Arrived> {
        let mut bytes = [0; DATAGRAM_BYTES];
        // The rest of a longer datagram is cut off, as only the first bytes say something.
        let (len, from) = self.datagrams.recv_from(&mut bytes).await?;
        Ok(Arrived { bytes, len, from, arrived_ns: None })
    }
}
