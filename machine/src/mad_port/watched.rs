//! A manager's port on tokio's reactor.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd as _;
use std::time::Duration;

use mapper_ib::Packet;
use thiserror::Error;
use tokio::io::unix::AsyncFd;

use super::{MadPort, MadPortError, PortName};
use crate::link::readiness;

/// Most datagrams that are taken at a time, so that whoever waits for other things as well gets to them.
const MOST_AT_A_TIME: usize = 64;

/// Why a manager has no port.
#[derive(Debug, Error)]
pub enum ManagerPortError {
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] MadPortError),
    /// It cannot be watched.
    #[error("cannot watch the port")]
    Watch(#[from] io::Error),
}

/// A port of a subnet manager. It takes requests, and other ports see that a manager is behind it.
#[derive(Debug)]
pub struct ManagerPort {
    port: MadPort,
    /// The port's descriptor once more, which tells when there is something to receive.
    readiness: AsyncFd<File>,
}

impl ManagerPort {
    /// Opens a port. `answer_timeout` is how long an answer is waited for until a question is sent again. Needs a tokio runtime.
    ///
    /// # Errors
    /// If there is no such port, this process may not use it, or another manager has it.
    pub fn open(name: &PortName, answer_timeout: Duration) -> Result<Self, ManagerPortError> {
        let port = MadPort::open_for_manager(name, answer_timeout)?;
        let again = File::from(port.as_fd().try_clone_to_owned()?);
        Ok(Self { port, readiness: readiness::watch_file(again)? })
    }

    /// Sends a datagram. One that finds no room is lost, as any may be.
    ///
    /// # Errors
    /// If the port is gone.
    pub fn send(&self, packet: &Packet) -> io::Result<()> {
        self.port.send(packet)
    }

    /// Waits for datagrams, and takes what there is. Nothing is lost if the wait is given up.
    ///
    /// # Errors
    /// If the port is gone.
    pub async fn receive(&self) -> io::Result<Vec<Packet>> {
        let mut ready = self.readiness.readable().await?;
        let mut packets = Vec::new();
        for _ in 0..MOST_AT_A_TIME {
            match self.port.receive_now() {
                Ok(packet) => packets.extend(packet),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    ready.clear_ready();
                    break;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(packets)
    }
}
