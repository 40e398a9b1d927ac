//! Ports that management datagrams of InfiniBand are sent and received by.
//!
//! A datagram is 256 bytes; what they mean is nobody's business here. A port that is only asked by, an [`AskingPort`],
//! sends nothing but questions, by their type: no program that holds only such a port can write to the fabric.
//!
//! - [`IbsimPort`]: a port of the fabric that `ibsim` simulates, by its sockets.
//! - [`UmadPort`]: a port of this machine, by the kernel's device `/dev/infiniband/umadN`.

mod ibsim;
mod umad;
mod watched;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::str::FromStr;
use std::time::Duration;

use mapper_ib::mad::{MAD_BYTES, Smp};
use mapper_ib::{Address, Packet};
use thiserror::Error;

pub use ibsim::{IbsimError, IbsimPort};
pub use umad::{UmadError, UmadPort};
pub use watched::{ManagerPort, ManagerPortError};

/// What names a port: `ibsim:NODE`, or the device `umadN`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortName {
    /// The first port of a node that ibsim simulates, by id or description; empty for the one ibsim chooses.
    Ibsim(String),
    /// The port of this machine with the device `/dev/infiniband/umadN`.
    Umad(u32),
}

/// A text that names no port.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{0}` is no port of InfiniBand; expected umad0 or another device of /dev/infiniband, or ibsim:NODE with the id or \
     description of a node that ibsim simulates"
)]
pub struct ParsePortNameError(String);

impl FromStr for PortName {
    type Err = ParsePortNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(node) = text.strip_prefix("ibsim:") {
            return Ok(Self::Ibsim(node.to_owned()));
        }
        let digits =
            text.strip_prefix("umad").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let number = digits.and_then(|digits| digits.parse().ok());
        number.map(Self::Umad).ok_or_else(|| ParsePortNameError(text.to_owned()))
    }
}

impl PortName {
    /// The name by which a daemon locks the port, so that no second one manages the subnet from it. There may be several
    /// simulators, each with a node of this name.
    pub fn lock_name(&self) -> String {
        match self {
            Self::Umad(_) => self.to_string(),
            Self::Ibsim(_) => format!("{}/{self}", ibsim::base()),
        }
    }

    /// The name of the device that the port is at, as `mlx5_0`; the port's own name if that is not known.
    pub fn device(&self) -> String {
        let of_kernel =
            |number| std::fs::read_to_string(format!("/sys/class/infiniband_mad/umad{number}/ibdev"));
        match self {
            Self::Umad(number) => {
                of_kernel(number).map_or_else(|_| self.to_string(), |name| name.trim().to_owned())
            }
            Self::Ibsim(_) => self.to_string(),
        }
    }
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ibsim(node) => write!(f, "ibsim:{node}"),
            Self::Umad(number) => write!(f, "umad{number}"),
        }
    }
}

/// Why a port cannot be used.
#[derive(Debug, Error)]
pub enum MadPortError {
    /// Why a port of ibsim cannot be used.
    #[error(transparent)]
    Ibsim(#[from] IbsimError),
    /// Why a device cannot be used.
    #[error(transparent)]
    Umad(#[from] UmadError),
}

/// A port by which the fabric is only asked.
#[derive(Debug)]
pub struct AskingPort(MadPort);

impl AskingPort {
    /// Opens a port. `answer_timeout` is how long an answer is waited for until a question is sent again.
    ///
    /// # Errors
    /// If there is no such port, or this process may not use it.
    pub fn open(name: &PortName, answer_timeout: Duration) -> Result<Self, MadPortError> {
        Ok(Self(match name {
            PortName::Ibsim(node) => MadPort::Ibsim(IbsimPort::open(node)?),
            PortName::Umad(number) => MadPort::Umad(UmadPort::open(*number, answer_timeout)?),
        }))
    }

    /// Sends a question along its directed route. One that finds no room is lost, as any may be.
    ///
    /// # Errors
    /// If the port is gone.
    pub fn send(&self, question: &Smp) -> io::Result<()> {
        self.0.send(&Packet { address: Address::Directed, mad: question.emit() })
    }

    /// The next datagram that comes within a time; `None` if none does, or what comes is only word of one that could not be
    /// delivered.
    ///
    /// # Errors
    /// If the port is gone.
    pub fn receive(&self, timeout: Duration) -> io::Result<Option<[u8; MAD_BYTES]>> {
        let packet = match &self.0 {
            MadPort::Ibsim(port) => port.receive(timeout),
            MadPort::Umad(port) => port.receive(timeout),
        };
        Ok(packet?.map(|packet| packet.mad))
    }
}

/// A port of any kind. That of a subnet manager does not wait: its descriptor says when there is something to receive.
#[derive(Debug)]
enum MadPort {
    /// By ibsim's sockets.
    Ibsim(IbsimPort),
    /// By the kernel's device.
    Umad(UmadPort),
}

impl MadPort {
    /// Opens a port for a subnet manager. `answer_timeout` is how long an answer is waited for until a question is sent again.
    ///
    /// # Errors
    /// If there is no such port, this process may not use it, or another manager has it.
    fn open_for_manager(name: &PortName, answer_timeout: Duration) -> Result<Self, MadPortError> {
        Ok(match name {
            PortName::Ibsim(node) => Self::Ibsim(IbsimPort::open_for_manager(node)?),
            PortName::Umad(number) => Self::Umad(UmadPort::open_for_manager(*number, answer_timeout)?),
        })
    }

    /// Sends a datagram. One that finds no room is lost, as any may be.
    ///
    /// # Errors
    /// If the port is gone.
    fn send(&self, packet: &Packet) -> io::Result<()> {
        match self {
            Self::Ibsim(port) => port.send(packet),
            Self::Umad(port) => port.send(packet),
        }
    }

    /// The next datagram, if there is one. What is only word of one that could not be delivered is passed over.
    ///
    /// # Errors
    /// If the port is gone, or [`io::ErrorKind::WouldBlock`] if there is nothing now.
    fn receive_now(&self) -> io::Result<Option<Packet>> {
        match self {
            Self::Ibsim(port) => port.receive_now(),
            Self::Umad(port) => port.receive_now(),
        }
    }
}

impl AsFd for MadPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Ibsim(port) => port.as_fd(),
            Self::Umad(port) => port.as_fd(),
        }
    }
}

/// The class of directed routes, in the second byte of a datagram.
const CLASS_DIRECTED: u8 = 0x81;
const CLASS_AT: usize = 1;
const METHOD_AT: usize = 3;

/// The class of management of the subnet by LID.
const CLASS_BY_LID: u8 = 0x01;
/// The key of the queue pair of all management but that of the subnet.
const MANAGEMENT_KEY: u32 = 0x8001_0000;

/// Takes a datagram for lost, which is no error, where an error means that there was no room for it.
fn lost_without_room(result: io::Result<usize>) -> io::Result<()> {
    match result {
        Ok(_) => Ok(()),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(())
        }
        Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_as_they_are_written() {
        for text in ["ibsim:", "ibsim:host 1", "umad0", "umad17"] {
            assert_eq!(text.parse::<PortName>().unwrap().to_string(), text);
        }
        for text in ["", "umad", "umad-1", "umad99999999999", "eth0", "ibsim"] {
            let refused = text.parse::<PortName>().unwrap_err().to_string();
            assert!(
                refused.starts_with(&format!("`{text}` is no port of InfiniBand; expected umad0")),
                "{refused}"
            );
        }
    }
}
