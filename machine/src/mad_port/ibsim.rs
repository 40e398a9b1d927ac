//! A port of the fabric that `ibsim` simulates.
//!
//! ibsim listens on datagram sockets with abstract names: one for control, and one for the datagrams of each
//! client. Names end in a zero, and begin with `$IBSIM_SOCKNAME`, or with `sim`. Control messages are in the byte
//! order of the machine.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use thiserror::Error;

use mapper_ib::mad::MAD_BYTES;
use mapper_ib::mad::sa::{RECORD_BYTES, Rmpp, SEGMENT_HEADER_BYTES, SaMad};
use mapper_ib::{Address, Packet};

use super::{CLASS_AT, CLASS_DIRECTED, METHOD_AT, lost_without_room};

/// The variable with which ibsim and its clients begin the names of their sockets.
const BASE_VARIABLE: &str = "IBSIM_SOCKNAME";
const DEFAULT_BASE: &str = "sim";

const MAGIC: u32 = 0xdead_beef;
const CONTROL_BYTES: usize = 80;
const CONTROL_DATA_AT: usize = 16;
const TYPE_AT: usize = 8;
const TYPE_ERROR: u32 = 0;
const TYPE_CONNECT: u32 = 1;
const TYPE_DISCONNECT: u32 = 2;
const TYPE_SET_MANAGER: u32 = 9;
/// Three numbers and the node's name.
const CONNECT_BYTES: u32 = 44;
const NODE_AT: usize = CONTROL_DATA_AT + 12;
/// The name is followed by a zero.
const MAX_NODE_BYTES: usize = 31;
/// How long ibsim may take to answer a control message; it does so while it answers other clients.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(10);

const DATA_BYTES: usize = 288;
const MAD_AT: usize = 32;
/// The destination of directed routes, and the source, which is where the answer goes.
const PERMISSIVE_LID: u16 = 0xFFFF;
const SOURCE_LID_AT: usize = 4;
const DESTINATION_PAIR_AT: usize = 8;
const SOURCE_PAIR_AT: usize = 12;
const STATUS_AT: usize = 16;
const LENGTH_AT: usize = 24;
const TID_AT: usize = 8;
/// The status of what could not be delivered: ETIMEDOUT.
const UNDELIVERED: u32 = 110;

/// The methods of a trap, and of the answer to it.
const TRAP: u8 = 0x05;
const TRAP_REPRESS: u8 = 0x07;

/// Why ibsim gives no port.
#[derive(Debug, Error)]
pub enum IbsimError {
    /// ibsim does not run.
    #[error(
        "no ibsim listens as `{base}:ctl`; start it, and set {BASE_VARIABLE} here as for it if it is set there"
    )]
    NotThere {
        /// The beginning of its sockets' names.
        base: String,
        /// What the system said.
        source: io::Error,
    },
    /// A socket cannot be had, or does not work.
    #[error("cannot {what} ibsim at `{base}`")]
    Socket {
        /// What was tried.
        what: &'static str,
        /// The beginning of its sockets' names.
        base: String,
        /// What the system said.
        source: io::Error,
    },
    /// ibsim refused the client.
    #[error(
        "ibsim at `{base}` lets nobody in at `{node}`: it has no node of this id or description, or it has ten clients, \
         which is the most"
    )]
    Refused {
        /// The beginning of its sockets' names.
        base: String,
        /// The node's name.
        node: String,
    },
    /// ibsim let the client in, and did not let a manager be behind its port.
    #[error(
        "ibsim at `{base}` takes no subnet manager at `{node}`; end the one that is there, or name another node"
    )]
    ManagerRefused {
        /// The beginning of its sockets' names.
        base: String,
        /// The node's name.
        node: String,
    },
    /// The node's name does not fit ibsim's message.
    #[error("`{0}` is too long for ibsim, which takes names of at most {MAX_NODE_BYTES} bytes")]
    LongName(String),
}

/// A client of ibsim. When it is dropped, ibsim is told.
#[derive(Debug)]
pub struct IbsimPort {
    control: UnixDatagram,
    data: UnixDatagram,
    client: u32,
    /// Whether the port says that a manager is behind it.
    is_marked: bool,
}

pub(super) fn base() -> String {
    std::env::var(BASE_VARIABLE).unwrap_or_else(|_| DEFAULT_BASE.to_owned())
}

/// The abstract name of one of ibsim's sockets, or of a client's.
fn address(base: &str, which: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{base}:{which}\0"))
}

/// A control message.
fn control_message(client: u32, message_type: u32, data: &[u8]) -> [u8; CONTROL_BYTES] {
    let mut message = [0; CONTROL_BYTES];
    let numbers = [MAGIC, client, message_type, data.len() as u32].map(u32::to_ne_bytes).concat();
    message[..CONTROL_DATA_AT].copy_from_slice(&numbers);
    message[CONTROL_DATA_AT..CONTROL_DATA_AT + data.len()].copy_from_slice(data);
    message
}

fn number_at(message: &[u8; CONTROL_BYTES], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&message[at..at + 4]);
    u32::from_ne_bytes(bytes)
}

/// The message that asks for a port: who asks, no queue pair, no subnet manager, and the node.
fn connect_message(id: u32, node: &str) -> [u8; CONTROL_BYTES] {
    let mut data = [0; CONNECT_BYTES as usize];
    data[..4].copy_from_slice(&id.to_ne_bytes());
    let name_at = NODE_AT - CONTROL_DATA_AT;
    data[name_at..name_at + node.len()].copy_from_slice(node.as_bytes());
    control_message(0, TYPE_CONNECT, &data)
}

/// A datagram as ibsim takes it.
fn data_message(packet: &Packet) -> [u8; DATA_BYTES] {
    let mut message = [0; DATA_BYTES];
    match packet.address {
        Address::Directed => {
            for at in [0, SOURCE_LID_AT] {
                message[at..at + 2].copy_from_slice(&PERMISSIVE_LID.to_be_bytes());
            }
        }
        // ibsim fills in the source itself where it is 0.
        Address::Lid { lid, queue_pair, .. } => {
            message[..2].copy_from_slice(&lid.to_be_bytes());
            message[DESTINATION_PAIR_AT..DESTINATION_PAIR_AT + 4].copy_from_slice(&queue_pair.to_be_bytes());
            let own = u32::from(packet.mad[CLASS_AT] != super::CLASS_BY_LID);
            message[SOURCE_PAIR_AT..SOURCE_PAIR_AT + 4].copy_from_slice(&own.to_be_bytes());
        }
    }
    message[LENGTH_AT..LENGTH_AT + 8].copy_from_slice(&length_told(&packet.mad).to_be_bytes());
    message[MAD_AT..].copy_from_slice(&packet.mad);
    message
}

/// How long a client is told that a datagram is. A kernel takes transfers apart, and hands over as many bytes as were sent;
/// ibsim's clients are told by this number, and would take zeros behind the records of a transfer for more records.
fn length_told(mad: &[u8; MAD_BYTES]) -> u64 {
    let rmpp = match SaMad::parse(mad) {
        Ok(mad) if mad.rmpp.is_active() && mad.rmpp.kind == Rmpp::DATA => mad.rmpp,
        _ => return MAD_BYTES as u64,
    };
    let is_whole = rmpp.flags & Rmpp::FIRST != 0 && rmpp.flags & Rmpp::LAST != 0;
    let header = MAD_BYTES - RECORD_BYTES - SEGMENT_HEADER_BYTES;
    if is_whole { (header as u64 + u64::from(rmpp.length)).min(MAD_BYTES as u64) } else { MAD_BYTES as u64 }
}

/// The trap that is answered, as one that comes back undelivered, if this is the answer to a client's trap.
///
/// ibsim drops such answers whoever sends them, and its library has no time-outs, so that a client such as OpenSM, which
/// sends a trap when it begins to stand by, would wait for the answer for ever and never finish another sweep. Word that the
/// trap was not delivered ends that wait as the kernel's time-out does elsewhere. Traps of ibsim itself have no number,
/// and nobody waits for their answer.
fn trap_returned(packet: &Packet) -> Option<[u8; DATA_BYTES]> {
    let is_of_client = packet.mad[TID_AT..TID_AT + 8] != [0; 8];
    if packet.mad[METHOD_AT] != TRAP_REPRESS || !is_of_client {
        return None;
    }
    let mut message = data_message(packet);
    message[MAD_AT + METHOD_AT] = TRAP;
    message[STATUS_AT..STATUS_AT + 4].copy_from_slice(&UNDELIVERED.to_be_bytes());
    Some(message)
}

/// The datagram that ibsim delivers; `None` if it is none, or one that comes back undelivered.
fn delivered(message: &[u8]) -> Option<Packet> {
    let is_whole = message.len() == DATA_BYTES;
    let status = message.get(STATUS_AT..STATUS_AT + 4).filter(|_| is_whole)?;
    if status != [0; 4] {
        return None;
    }
    let mad: [u8; MAD_BYTES] = message[MAD_AT..].try_into().ok()?;
    let address = if mad[CLASS_AT] == CLASS_DIRECTED {
        Address::Directed
    } else {
        let lid = u16::from_be_bytes(message[SOURCE_LID_AT..SOURCE_LID_AT + 2].try_into().ok()?);
        let queue_pair = u32::from_be_bytes(message[SOURCE_PAIR_AT..SOURCE_PAIR_AT + 4].try_into().ok()?);
        Address::Lid { lid, queue_pair, level: 0 }
    };
    Some(Packet { address, mad })
}

impl IbsimPort {
    /// Attaches to a node of the ibsim that `IBSIM_SOCKNAME` names.
    ///
    /// # Errors
    /// If ibsim does not run, does not answer, or does not know the node.
    pub fn open(node: &str) -> Result<Self, IbsimError> {
        Self::open_at(&base(), node)
    }

    /// Attaches to a node of that ibsim for a subnet manager: requests come here, and the port says that a manager is
    /// behind it. It does not wait.
    ///
    /// # Errors
    /// If that fails, or another manager is there.
    pub fn open_for_manager(node: &str) -> Result<Self, IbsimError> {
        Self::open_for_manager_at(&base(), node)
    }

    fn open_for_manager_at(base: &str, node: &str) -> Result<Self, IbsimError> {
        let mut port = Self::open_at(base, node)?;
        let failed = |what| move |source| IbsimError::Socket { what, base: base.to_owned(), source };
        let answer = port.ask(&control_message(port.client, TYPE_SET_MANAGER, &1_u32.to_ne_bytes()));
        if number_at(&answer.map_err(failed("talk to"))?, TYPE_AT) == TYPE_ERROR {
            return Err(IbsimError::ManagerRefused { base: base.to_owned(), node: node.to_owned() });
        }
        port.is_marked = true;
        port.data.set_nonblocking(true).map_err(failed("use the socket to"))?;
        Ok(port)
    }

    fn open_at(base: &str, node: &str) -> Result<Self, IbsimError> {
        if node.len() > MAX_NODE_BYTES {
            return Err(IbsimError::LongName(node.to_owned()));
        }
        let failed = |what| move |source| IbsimError::Socket { what, base: base.to_owned(), source };
        let id = std::process::id();
        let own_socket = |which: &str| UnixDatagram::bind_addr(&address(base, &format!("{which}{id}"))?);
        let control = own_socket("ctl").map_err(failed("make a socket for"))?;
        let data = own_socket("in").map_err(failed("make a socket for"))?;
        let there = address(base, "ctl").and_then(|address| control.connect_addr(&address));
        there.map_err(|source| IbsimError::NotThere { base: base.to_owned(), source })?;
        let mut port = Self { control, data, client: 0, is_marked: false };
        let answer = port.ask(&connect_message(id, node)).map_err(failed("talk to"))?;
        if number_at(&answer, TYPE_AT) == TYPE_ERROR {
            return Err(IbsimError::Refused { base: base.to_owned(), node: node.to_owned() });
        }
        port.client = number_at(&answer, CONTROL_DATA_AT);
        let out = address(base, &format!("out{}", port.client));
        out.and_then(|address| port.data.connect_addr(&address)).map_err(failed("connect to"))?;
        Ok(port)
    }

    fn ask(&self, message: &[u8; CONTROL_BYTES]) -> io::Result<[u8; CONTROL_BYTES]> {
        for set in [UnixDatagram::set_write_timeout, UnixDatagram::set_read_timeout] {
            set(&self.control, Some(CONTROL_TIMEOUT))?;
        }
        self.control.send(message)?;
        let mut answer = [0; CONTROL_BYTES];
        match self.control.recv(&mut answer)? {
            CONTROL_BYTES => Ok(answer),
            bytes => Err(io::Error::new(ErrorKind::InvalidData, format!("an answer of {bytes} bytes"))),
        }
    }

    pub(super) fn send(&self, packet: &Packet) -> io::Result<()> {
        let message = trap_returned(packet).unwrap_or_else(|| data_message(packet));
        lost_without_room(self.data.send(&message))
    }

    pub(super) fn receive(&self, timeout: Duration) -> io::Result<Option<Packet>> {
        // A time of zero would mean to wait for ever.
        self.data.set_read_timeout(Some(timeout.max(Duration::from_micros(1))))?;
        match self.receive_now() {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
            result => result,
        }
    }

    pub(super) fn receive_now(&self) -> io::Result<Option<Packet>> {
        let mut message = [0; DATA_BYTES + 1];
        let bytes = self.data.recv(&mut message)?;
        Ok(delivered(&message[..bytes]))
    }
}

impl AsFd for IbsimPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.data.as_fd()
    }
}

impl Drop for IbsimPort {
    fn drop(&mut self) {
        // An ibsim that has ended needs no word. One that runs answers, and says so if nobody listens.
        if self.is_marked {
            let _gone = self.ask(&control_message(self.client, TYPE_SET_MANAGER, &0_u32.to_ne_bytes()));
        }
        let _gone = self.ask(&control_message(self.client, TYPE_DISCONNECT, &[]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_laid_out_as_ibsim_reads_them() {
        let message = connect_message(77, "H-1");
        assert_eq!(number_at(&message, 0), 0xdead_beef);
        assert_eq!([4, 8, 12, 16, 20, 24].map(|at| number_at(&message, at)), [0, 1, 44, 77, 0, 0]);
        assert_eq!(&message[28..33], b"H-1\0\0");
        let mut packet = directed(5);
        let message = data_message(&packet);
        assert_eq!(message[..8], [0xFF, 0xFF, 0, 0, 0xFF, 0xFF, 0, 0]);
        assert_eq!(message[24..33], [0, 0, 0, 0, 0, 0, 1, 0, 5]);
        assert_eq!(delivered(&message), Some(packet.clone()));
        packet.mad[CLASS_AT] = 3;
        packet.address = Address::Lid { lid: 0x1234, queue_pair: 9, level: 0 };
        let message = data_message(&packet);
        assert_eq!(message[..16], [0x12, 0x34, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1]);
    }

    #[test]
    fn of_a_transfer_in_one_segment_only_its_records_are_told_of() {
        let mut packet = directed(0);
        packet.mad[..4].copy_from_slice(&[1, 3, 2, 0x92]);
        let length = |packet: &Packet| data_message(packet)[LENGTH_AT + 6..LENGTH_AT + 8].to_vec();
        assert_eq!(length(&packet), [1, 0]);
        // Version, data, active and first and last; then the first segment, and its header with 64 bytes of records.
        packet.mad[24..27].copy_from_slice(&[1, 1, 7]);
        packet.mad[28..36].copy_from_slice(&[0, 0, 0, 1, 0, 0, 0, 84]);
        assert_eq!(length(&packet), [0, 120]);
        packet.mad[26] = 3;
        assert_eq!(length(&packet), [1, 0], "a segment of several is whole");
    }

    #[test]
    fn the_answer_to_a_clients_trap_becomes_that_trap_undelivered() {
        let mut packet = directed(0);
        packet.address = Address::Lid { lid: 5, queue_pair: 0, level: 0 };
        packet.mad[..4].copy_from_slice(&[1, 1, 1, TRAP_REPRESS]);
        assert_eq!(trap_returned(&packet), None, "ibsim's own traps have no number");
        packet.mad[TID_AT + 7] = 9;
        let message = trap_returned(&packet).unwrap();
        assert_eq!((&message[..2], message[STATUS_AT + 3]), (&[0, 5][..], 110));
        assert_eq!((message[MAD_AT + METHOD_AT], message[MAD_AT + TID_AT + 7]), (TRAP, 9));
        assert_eq!(delivered(&message), None, "and is no datagram to whoever takes it");
        packet.mad[METHOD_AT] = TRAP;
        assert_eq!(trap_returned(&packet), None);
    }

    #[test]
    fn who_sends_by_lid_is_told_by_lid_and_queue_pair() {
        let mut message = data_message(&directed(5));
        message[MAD_AT + CLASS_AT] = 3;
        message[SOURCE_LID_AT..SOURCE_LID_AT + 2].copy_from_slice(&[1, 2]);
        message[SOURCE_PAIR_AT + 3] = 7;
        let address = delivered(&message).unwrap().address;
        assert_eq!(address, Address::Lid { lid: 0x102, queue_pair: 7, level: 0 });
    }

    fn directed(byte: u8) -> Packet {
        let mut mad = [byte; MAD_BYTES];
        mad[CLASS_AT] = CLASS_DIRECTED;
        Packet { address: Address::Directed, mad }
    }

    #[test]
    fn what_comes_back_undelivered_or_torn_is_no_datagram() {
        let mut message = data_message(&directed(5));
        assert_eq!(delivered(&message[..287]), None);
        message[19] = 110;
        assert_eq!(delivered(&message), None);
        assert_eq!(delivered(&[]), None);
    }

    #[test]
    fn an_ibsim_that_is_not_there_is_named_and_so_is_a_long_name() {
        let refused = IbsimPort::open_at("no-such-ibsim", "").unwrap_err().to_string();
        assert!(refused.starts_with("no ibsim listens as `no-such-ibsim:ctl`; start it"), "{refused}");
        let refused = IbsimPort::open_at("no-such-ibsim", &"x".repeat(32)).unwrap_err().to_string();
        assert!(refused.ends_with("at most 31 bytes"), "{refused}");
    }

    #[test]
    fn a_peer_that_answers_as_ibsim_does_gives_a_port() {
        let base = format!("mapper-fake-{}", std::process::id());
        let control = UnixDatagram::bind_addr(&address(&base, "ctl").unwrap()).unwrap();
        let out = UnixDatagram::bind_addr(&address(&base, "out3").unwrap()).unwrap();
        let answers = std::thread::spawn({
            let base = base.clone();
            move || {
                let mut message = [0; CONTROL_BYTES];
                let (_, client) = control.recv_from(&mut message).unwrap();
                let welcome = control_message(0, TYPE_CONNECT, &3_u32.to_ne_bytes());
                control.send_to_addr(&welcome, &client).unwrap();
                let mut data = [0; DATA_BYTES];
                out.recv(&mut data).unwrap();
                let to = address(&base, &format!("in{}", std::process::id())).unwrap();
                out.connect_addr(&to).unwrap();
                out.send(&data).unwrap();
                let (_, client) = control.recv_from(&mut message).unwrap();
                control.send_to_addr(&message, &client).unwrap();
                message
            }
        });
        let port = IbsimPort::open_at(&base, "host").unwrap();
        port.send(&directed(9)).unwrap();
        assert_eq!(port.receive(Duration::from_secs(10)).unwrap(), Some(directed(9)));
        drop(port);
        let last = answers.join().unwrap();
        assert_eq!([4, 8].map(|at| number_at(&last, at)), [3, TYPE_DISCONNECT], "it says goodbye");
    }

    #[test]
    fn a_node_that_takes_no_manager_is_not_told_as_one_that_is_not_there() {
        let base = format!("mapper-managed-{}", std::process::id());
        let control = UnixDatagram::bind_addr(&address(&base, "ctl").unwrap()).unwrap();
        let _out = UnixDatagram::bind_addr(&address(&base, "out3").unwrap()).unwrap();
        let answers = std::thread::spawn(move || {
            // It connects, is no manager, and says goodbye.
            for kind in [TYPE_CONNECT, TYPE_ERROR, TYPE_DISCONNECT] {
                let mut message = [0; CONTROL_BYTES];
                let (_, client) = control.recv_from(&mut message).unwrap();
                let answer = control_message(0, kind, &3_u32.to_ne_bytes());
                control.send_to_addr(&answer, &client).unwrap();
            }
        });
        let refused = IbsimPort::open_for_manager_at(&base, "host").unwrap_err();
        assert!(matches!(refused, IbsimError::ManagerRefused { .. }), "{refused}");
        answers.join().unwrap();
    }
}
