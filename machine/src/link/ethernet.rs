//! Raw Ethernet frames of one EtherType over one interface.
//!
//! A frame is destination, source, EtherType and payload. All frames have the same destination address, as
//! crossbars forward by the route in the payload. By default it is one that bridges do not forward, so
//! nothing leaks into a network that happens to be plugged in.

use std::io::{self, IoSlice, Read};

use mapper_proto::Mac;
use rustix::net::sockopt;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::batch::{BATCH_FRAMES, Batch};
use super::interface::Interface;
use super::unsent::Unsent;
use super::{LinkError, mmsg, packet_socket, readiness};

/// Bytes of the Ethernet header: destination, source, EtherType.
pub const HEADER_BYTES: usize = 14;
/// The room for a frame, which is more than any Ethernet frame needs, jumbo frames included.
pub const MAX_FRAME_BYTES: usize = 16 * 1024;
/// The smallest number that is an EtherType and no length (IEEE 802.3, 3.2.6).
pub(crate) const MIN_ETHERTYPE: u16 = 0x0600;

/// Memory for frames that arrive before they are taken, some 1700 of full size. That is as much as Linux lets
/// a TCP connection have under way (`net.ipv4.tcp_wmem`). With a quarter of it fast connections lose frames.
/// On the other hand a crossbar that is flooded with small frames would forward a quarter more then, as
/// frames that have waited for long are no longer in the processor's cache.
const RECEIVE_BUFFER_BYTES: usize = 4 * 1024 * 1024;
/// Memory for frames that the interface has not sent yet.
const SEND_BUFFER_BYTES: usize = 1024 * 1024;

/// How frames are marked on the wire. All agents and crossbars of a fabric must agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marking {
    /// The EtherType; by default 0x88B5, IEEE 802's first for local experiments.
    pub ethertype: u16,
    /// The destination; by default 01-80-C2-00-00-0E, which no bridge forwards (IEEE 802.1Q).
    pub destination: Mac,
}

impl Default for Marking {
    fn default() -> Self {
        Self { ethertype: 0x88b5, destination: Mac([0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e]) }
    }
}

impl Marking {
    /// The Ethernet header of what `source` sends.
    pub fn header(self, source: Mac) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[..6].copy_from_slice(&self.destination.0);
        header[6..12].copy_from_slice(&source.0);
        header[12..].copy_from_slice(&self.ethertype.to_be_bytes());
        header
    }
}

/// A frame as it arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EthernetFrame<'a> {
    /// The source in the Ethernet header. It is the agent that sent the frame, as crossbars do not change it.
    pub source: Mac,
    /// The frame, Ethernet header included.
    pub bytes: &'a [u8],
}

impl<'a> EthernetFrame<'a> {
    /// Splits the Ethernet header off; `None` if there is none.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let header = bytes.get(..HEADER_BYTES)?;
        Some(Self { source: Mac(header[6..12].try_into().ok()?), bytes })
    }

    /// All behind the Ethernet header, padding included.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[HEADER_BYTES..]
    }
}

/// How urgent frames are for the interface's queue (`TC_PRIO_INTERACTIVE` of linux/pkt_sched.h), the most that takes no capability.
/// Queues that know classes send them before packets that kernels forward, which else would crowd out the checks by which
/// agents know that cables live.
const PRIORITY: u32 = 6;

/// A raw socket for the frames of one [`Marking`] on one interface. It does not see what it sends.
#[derive(Debug)]
pub struct EthernetSocket {
    socket: AsyncFd<Socket>,
    header: [u8; HEADER_BYTES],
}

impl EthernetSocket {
    /// Opens a raw socket. Needs a tokio runtime with I/O, and `CAP_NET_RAW`.
    ///
    /// # Errors
    /// If the interface is not Ethernet, the process lacks the capability, or the kernel refuses.
    pub fn open(interface: &Interface, marking: Marking) -> Result<Self, LinkError> {
        if !interface.ethernet {
            return Err(LinkError::NotEthernet(interface.name.clone()));
        }
        let failed = |doing| move |source| LinkError::Io { interface: interface.name.clone(), doing, source };
        // A socket of protocol 0 receives nothing until it is bound to one EtherType on one interface. Once
        // bound it does not receive outgoing frames either, as the kernel gives those only to sockets for all
        // protocols.
        let socket = Socket::new(Domain::PACKET, Type::RAW.nonblocking(), Some(Protocol::from(0)))
            .map_err(|source| not_permitted_or(interface, source))?;
        enlarge_buffers(&socket);
        socket.set_priority(PRIORITY).map_err(failed("setting the priority of a raw socket on it"))?;
        packet_socket::bind(&socket, interface.index, marking.ethertype)
            .map_err(failed("binding a raw socket to it"))?;
        packet_socket::add_membership(&socket, interface.index, marking.destination)
            .map_err(failed("asking it to accept the destination address"))?;
        let socket = readiness::watch(socket).map_err(failed("watching the raw socket on it"))?;
        Ok(Self { socket, header: marking.header(interface.mac) })
    }

    /// Waits for a frame and puts it into `buffer`; returns how long it is. One longer than the
    /// buffer is cut off.
    ///
    /// # Errors
    /// `ENETDOWN` once when the interface goes down; others if the socket is beyond use.
    pub async fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.async_io(Interest::READABLE, |mut socket| socket.read(buffer)).await
    }

    /// Like [`Self::recv`], but does not wait.
    ///
    /// # Errors
    /// `WouldBlock` if no frame is there, else as [`Self::recv`].
    pub fn try_recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.try_io(Interest::READABLE, |mut socket| socket.read(buffer))
    }

    /// Waits for frames and puts those that are there into `batch`, as many as it holds. It is emptied
    /// before.
    ///
    /// # Errors
    /// As [`Self::recv`].
    pub async fn recv_batch(&self, batch: &mut Batch) -> io::Result<()> {
        loop {
            let mut ready = self.socket.readable().await?;
            let Ok(received) = ready.try_io(|socket| mmsg::recv(socket.get_ref(), batch)) else { continue };
            // The call ended because there was no further frame, so that asking once more would only say the same.
            if received.is_ok() && batch.len() < BATCH_FRAMES {
                ready.clear_ready();
            }
            return received;
        }
    }

    /// Like [`Self::recv_batch`], but does not wait.
    ///
    /// # Errors
    /// `WouldBlock` if no frame is there, else as [`Self::recv`].
    pub fn try_recv_batch(&self, batch: &mut Batch) -> io::Result<()> {
        self.socket.try_io(Interest::READABLE, |socket| mmsg::recv(socket, batch))
    }

    /// How many frames the kernel lost since the last call, as they arrived faster than they were taken.
    pub(crate) fn take_overruns(&self) -> u64 {
        packet_socket::take_drops(self.socket.get_ref()).map_or(0, u64::from)
    }

    /// The Ethernet header of frames that begin at this interface.
    pub const fn header(&self) -> &[u8; HEADER_BYTES] {
        &self.header
    }

    /// Sends a payload in two parts behind this interface's own header. Never waits.
    ///
    /// # Errors
    /// If the kernel does not take it: no room, too long for the interface, interface down.
    pub fn send(&self, route: &[u8], frame: &[u8]) -> io::Result<()> {
        let parts = [IoSlice::new(&self.header), IoSlice::new(route), IoSlice::new(frame)];
        let sent = match self.socket.get_ref().send_vectored(&parts) {
            // The kernel reports once per socket that the interface was down, even if it is up again.
            Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => {
                self.socket.get_ref().send_vectored(&parts)
            }
            sent => sent,
        };
        sent.map(drop)
    }

    /// Sends frames, each as Ethernet header and payload, in order; calls `unsent` for each that
    /// the kernel does not take. Never waits.
    pub fn send_batch(&self, frames: &[[IoSlice<'_>; 2]], mut unsent: impl FnMut(usize, Unsent)) {
        let mut next = 0;
        let mut heard_of_down = false;
        while next < frames.len() {
            let end = frames.len().min(next + BATCH_FRAMES);
            match mmsg::send(self.socket.get_ref(), &frames[next..end]) {
                Ok(sent) => next += sent,
                // The same error is handled in `send`, which says why.
                Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) && !heard_of_down => {
                    heard_of_down = true;
                }
                Err(error) => {
                    unsent(next, Unsent::from_error(&error));
                    next += 1;
                }
            }
        }
    }
}

/// Gives the socket room for bursts. Without `CAP_NET_ADMIN` it gets no more than `net.core.rmem_max` and
/// `wmem_max` allow, which is enough to run.
fn enlarge_buffers(socket: &Socket) {
    // The kernel doubles what is asked for, to make up for its own data.
    if sockopt::set_socket_recv_buffer_size_force(socket, RECEIVE_BUFFER_BYTES / 2).is_err() {
        let _as_much_as_allowed = sockopt::set_socket_recv_buffer_size(socket, RECEIVE_BUFFER_BYTES / 2);
    }
    if sockopt::set_socket_send_buffer_size_force(socket, SEND_BUFFER_BYTES / 2).is_err() {
        let _as_much_as_allowed = sockopt::set_socket_send_buffer_size(socket, SEND_BUFFER_BYTES / 2);
    }
}

fn not_permitted_or(interface: &Interface, source: io::Error) -> LinkError {
    let interface = interface.name.clone();
    if source.kind() != io::ErrorKind::PermissionDenied {
        return LinkError::Io { interface, doing: "opening a raw socket", source };
    }
    let program = std::env::current_exe()
        .map_or_else(|_| "/path/to/mapper".to_owned(), |path| path.display().to_string());
    LinkError::NotPermitted { interface, program }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_gives_its_source_and_payload() {
        let mut bytes = vec![0xff; 6];
        bytes.extend([2, 0, 0, 0, 0, 7]);
        bytes.extend([0x88, 0xb5, 1, 2, 3]);
        let frame = EthernetFrame::parse(&bytes).unwrap();
        assert_eq!(frame.source, Mac::from_position(7));
        assert_eq!(frame.payload(), [1, 2, 3]);
    }

    #[test]
    fn a_runt_is_no_frame() {
        assert_eq!(EthernetFrame::parse(&[0; HEADER_BYTES - 1]), None);
        assert_eq!(EthernetFrame::parse(&[0; HEADER_BYTES]).map(|frame| frame.payload().len()), Some(0));
    }
}
