//! A socket by which the kernel is asked, and answers.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::sockopt::{
    Timeout, set_socket_recv_buffer_size_force, set_socket_send_buffer_size_force, set_socket_timeout,
};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, bind, getsockname, recv, send,
    socket_with,
};
use socket2::{SockFilter, Socket};

use super::message::{Attributes, HEADER_BYTES, Header, Message, attributes, messages, text, u32_at, write};
use super::options::turn_on;

pub(crate) const NLM_F_REQUEST: u16 = 0x001;
pub(crate) const NLM_F_ACK: u16 = 0x004;
pub(crate) const NLM_F_DUMP: u16 = 0x300;
const NLM_F_DUMP_INTR: u16 = 0x010;
const NLM_F_ACK_TLVS: u16 = 0x200;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLMSGERR_ATTR_MSG: u16 = 1;

/// How long the kernel may take to answer. It answers within the call, unless another process keeps the lock of
/// all network settings for long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// More than the kernel ever puts into one answer of a dump.
const BUFFER_BYTES: usize = 64 * 1024;
/// How often a list is asked for again because it changed while it was read.
const DUMP_TRIES: usize = 8;

/// Where a header has the number of the socket that caused the message.
const PORT_AT: u32 = 12;
/// How much memory requests to nftables may take that are sent at once: those for a crossbar of 256 ports are 280 kB.
const BATCH_BYTES: usize = 1 << 20;
/// How much memory notices may take that were not read yet.
const NOTICES_BYTES: usize = 1 << 20;

/// What the kernel said of a request that it refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The request's number.
    pub(crate) sequence: u32,
    /// The number of the error.
    pub(crate) errno: i32,
    /// The kernel's own words, if it has some.
    pub(crate) said: Option<String>,
}

/// A netlink socket for requests. Whoever uses it waits for the answer, and no longer than five seconds.
#[derive(Debug)]
pub(crate) struct RequestSocket {
    socket: OwnedFd,
    port: u32,
    sequence: u32,
    buffer: Vec<u8>,
}

impl RequestSocket {
    /// Opens a socket of the family `NETLINK_ROUTE`.
    pub(crate) fn open() -> io::Result<Self> {
        // Without a protocol the socket has protocol 0, which is that family.
        Self::open_of(None)
    }

    /// Opens a socket of the family `NETLINK_NETFILTER`, whose requests stand or fall together and may be long.
    pub(crate) fn open_netfilter() -> io::Result<Self> {
        let own = Self::open_of(Some(netlink::NETFILTER))?;
        // Without the privilege the buffer stays as it is, and what does not fit is refused, which is told.
        let _may_be_small = set_socket_send_buffer_size_force(&own.socket, BATCH_BYTES);
        Ok(own)
    }

    /// Opens a socket of the family `NETLINK_GENERIC`.
    pub(crate) fn open_generic() -> io::Result<Self> {
        Self::open_of(Some(netlink::GENERIC))
    }

    fn open_of(family: Option<Protocol>) -> io::Result<Self> {
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, family)?;
        bind(&socket, &SocketAddrNetlink::new(0, 0))?;
        set_socket_timeout(&socket, Timeout::Recv, Some(ANSWER_TIMEOUT))?;
        // Older kernels lack one or the other: then an answer repeats the request, has no words, or a list holds
        // more than was asked for. All of that is read as well.
        for option in [libc::NETLINK_CAP_ACK, libc::NETLINK_EXT_ACK, libc::NETLINK_GET_STRICT_CHK] {
            let _not_known = turn_on(&socket, option);
        }
        let address = SocketAddrNetlink::try_from(getsockname(&socket)?)?;
        Ok(Self { socket, port: address.pid(), sequence: 0, buffer: Vec::new() })
    }

    /// The number by which the kernel knows the socket.
    pub(crate) const fn port(&self) -> u32 {
        self.port
    }

    /// A number for the next request, different from those before.
    pub(crate) const fn next_sequence(&mut self) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence
    }

    /// Sends requests of which the last, with the number `last`, is to be acknowledged, and waits for that.
    /// Returns those that were refused. The kernel answers a refused request whether or not it asks for that, so
    /// the others need no acknowledgement.
    ///
    /// # Errors
    /// If the kernel takes no requests, or does not acknowledge the last one in time.
    pub(crate) fn exchange(&mut self, requests: &[u8], last: u32) -> io::Result<Vec<Refused>> {
        send(&self.socket, requests, SendFlags::empty())?;
        let mut refused = Vec::new();
        loop {
            self.receive()?;
            for message in messages(&self.buffer) {
                let Some((sequence, errno, said)) = acknowledgement(message) else { continue };
                // A message with another number answers a request whose time had run out.
                if last.wrapping_sub(sequence) > last.wrapping_sub(first_sequence(requests)) {
                    continue;
                }
                if errno != 0 {
                    refused.push(Refused { sequence, errno, said });
                }
                if sequence == last {
                    return Ok(refused);
                }
            }
        }
    }

    /// Sends a request that is to be done, and waits until it is.
    ///
    /// # Errors
    /// If the kernel refuses, or does not answer in time.
    pub(crate) fn carry_out(
        &mut self,
        kind: u16,
        flags: u16,
        fixed: &[u8],
        attributes: impl FnOnce(&mut Attributes<'_>),
    ) -> io::Result<()> {
        let sequence = self.next_sequence();
        let header = Header { kind, flags: NLM_F_REQUEST | NLM_F_ACK | flags, sequence, port: 0 };
        let mut request = Vec::new();
        write(&mut request, header, fixed, attributes);
        match self.exchange(&request, sequence)?.first() {
            None => Ok(()),
            Some(refused) => Err(io::Error::from_raw_os_error(refused.errno)),
        }
    }

    /// Asks about one object, and returns what `read` makes of the answer.
    ///
    /// # Errors
    /// If the kernel refuses, or does not answer in time.
    pub(crate) fn get<T>(
        &mut self,
        kind: u16,
        fixed: &[u8],
        attributes: impl FnOnce(&mut Attributes<'_>),
        read: impl FnOnce(Message<'_>) -> Option<T>,
    ) -> io::Result<Option<T>> {
        let sequence = self.next_sequence();
        let mut request = Vec::new();
        let header = Header { kind, flags: NLM_F_REQUEST, sequence, port: 0 };
        write(&mut request, header, fixed, attributes);
        send(&self.socket, &request, SendFlags::empty())?;
        self.receive()?;
        let answer = messages(&self.buffer).find(|message| message.header.sequence == sequence);
        match answer {
            Some(message) if message.header.kind == NLMSG_ERROR => done(message.body).map(|()| None),
            Some(message) => Ok(read(message)),
            None => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Asks for a list, and hands each of its messages to `each`. If the list changed while it was read, `begin`
    /// is called again and the list is read anew.
    ///
    /// # Errors
    /// If the kernel does not answer in time, refuses, or the list never stands still.
    pub(crate) fn dump<T>(
        &mut self,
        kind: u16,
        fixed: &[u8],
        mut begin: impl FnMut() -> T,
        mut each: impl FnMut(&mut T, Message<'_>),
    ) -> io::Result<T> {
        for _ in 0..DUMP_TRIES {
            let sequence = self.next_sequence();
            let header = Header { kind, flags: NLM_F_REQUEST | NLM_F_DUMP, sequence, port: 0 };
            let mut request = Vec::new();
            write(&mut request, header, fixed, |_| {});
            send(&self.socket, &request, SendFlags::empty())?;
            let mut found = begin();
            if self.read_dump(sequence, |message| each(&mut found, message))? {
                return Ok(found);
            }
        }
        Err(io::ErrorKind::Interrupted.into())
    }

    /// Reads the answers to a request for a list, and says whether the list stood still meanwhile.
    fn read_dump(&mut self, sequence: u32, mut each: impl FnMut(Message<'_>)) -> io::Result<bool> {
        let mut stood_still = true;
        loop {
            self.receive()?;
            for message in messages(&self.buffer) {
                if message.header.sequence != sequence {
                    continue;
                }
                stood_still &= message.header.flags & NLM_F_DUMP_INTR == 0;
                match message.header.kind {
                    NLMSG_DONE => return done(message.body).map(|()| stood_still),
                    NLMSG_ERROR => return done(message.body).map(|()| stood_still),
                    _ => each(message),
                }
            }
        }
    }

    /// Reads the next datagram into the buffer.
    fn receive(&mut self) -> io::Result<()> {
        self.buffer.resize(BUFFER_BYTES, 0);
        let (bytes, _) = recv(&self.socket, &mut self.buffer[..], RecvFlags::empty())?;
        self.buffer.truncate(bytes);
        Ok(())
    }
}

/// A socket, not blocking, that hears the kernel's notices of these groups; not of what the socket with the number
/// `except` caused, if one is named.
pub(crate) fn notices(groups: &[u32], except: Option<u32>) -> io::Result<Socket> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // Without a protocol the socket has protocol 0, which is NETLINK_ROUTE.
    let socket = Socket::from(socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?);
    if let Some(port) = except {
        // Numbers in messages are in the machine's order, and filters read them in the network's.
        let port = u32::from_be_bytes(port.to_ne_bytes());
        socket.attach_filter(&[
            SockFilter::new((libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, 0, 0, PORT_AT),
            SockFilter::new((libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, 0, 1, port),
            SockFilter::new((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, 0),
            SockFilter::new((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, u32::MAX),
        ])?;
    }
    // Without the privilege the buffer stays as it is, and notices are missed earlier, which is told.
    let _may_be_small = set_socket_recv_buffer_size_force(&socket, NOTICES_BYTES);
    let mask = groups.iter().fold(0, |mask, group| mask | 1 << (group - 1));
    bind(&socket, &SocketAddrNetlink::new(0, mask))?;
    Ok(socket)
}

/// The number of the first of these requests.
fn first_sequence(requests: &[u8]) -> u32 {
    u32_at(requests, 8).unwrap_or(0)
}

/// What the end of a list says: no error, or which.
fn done(body: &[u8]) -> io::Result<()> {
    match u32_at(body, 0).map_or(0, u32::cast_signed) {
        code @ ..0 => Err(io::Error::from_raw_os_error(-code)),
        _ => Ok(()),
    }
}

/// The request that is acknowledged, the error or 0, and the kernel's words.
fn acknowledgement(message: Message<'_>) -> Option<(u32, i32, Option<String>)> {
    if message.header.kind != NLMSG_ERROR {
        return None;
    }
    let errno = -u32_at(message.body, 0)?.cast_signed();
    let request = message.body.get(4..)?;
    let sequence = u32_at(request, 8)?;
    // The words stand behind the request's header, as the rest of the request is left out (NETLINK_CAP_ACK).
    let words = request.get(HEADER_BYTES..).filter(|_| message.header.flags & NLM_F_ACK_TLVS != 0);
    let said = words.and_then(|words| {
        attributes(words).find(|(kind, _)| *kind == NLMSGERR_ATTR_MSG).map(|(_, value)| text(value))
    });
    Some((sequence, errno, said))
}
