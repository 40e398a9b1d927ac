//! Locks an interface, so that one daemon at a time uses it. Of two agents on an interface each would answer
//! frames for the other, and an agent beside a crossbar would take frames that the crossbar is to forward.
//!
//! The daemon that uses an interface holds an abstract unix socket named after it. Such names belong to the
//! network namespace, as interfaces do, so the lock does not depend on the daemons' run directories. The
//! kernel releases it when the process ends, however it ends.
//!
//! Any user may hold such a name. So a holder that is neither root nor of this daemon's user counts only if
//! its user has a raw socket on the interface, which takes a privilege. A daemon that root starts by hand
//! respects one that runs as a service's user, and ignores a user who merely holds the name.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use rustix::net::sockopt::socket_peercred;
use socket2::{Domain, SockAddr, Socket, Type};
use thiserror::Error;
use tracing::warn;

use crate::link::interface::Interface;

/// How many characters of the holder's command line are shown at most.
const MAX_COMMAND_CHARS: usize = 100;

/// Why this daemon cannot have an interface for itself.
#[derive(Debug, Error)]
pub enum InterfaceLockError {
    /// Another daemon has it.
    #[error("interface `{interface}` already has an agent or crossbar: {holder}; stop that one first")]
    Taken {
        /// The interface.
        interface: String,
        /// Which daemon has the interface, in words.
        holder: String,
    },
    /// The lock cannot be taken.
    #[error("cannot lock interface `{interface}`")]
    Io {
        /// The interface.
        interface: String,
        /// What the system says.
        source: io::Error,
    },
}

/// An interface held for one daemon.
#[derive(Debug)]
pub struct InterfaceLock {
    interface: String,
    /// The socket with the interface's name; `None` if another user's hold on the name is ignored. It accepts
    /// no connection: whoever connects learns from the kernel who listens.
    _held: Option<UnixListener>,
}

impl InterfaceLock {
    /// Takes the interface. A user who may not open raw sockets cannot keep the daemon from it by holding the
    /// name; this is logged.
    ///
    /// # Errors
    /// If another daemon has it, or the kernel refuses.
    pub fn take(interface: &str) -> Result<Self, InterfaceLockError> {
        let failed = |source| InterfaceLockError::Io { interface: interface.to_owned(), source };
        let locked = |held| Self { interface: interface.to_owned(), _held: held };
        let address = SocketAddr::from_abstract_name(abstract_name(interface)).map_err(failed)?;
        match UnixListener::bind_addr(&address) {
            Ok(held) => return Ok(locked(Some(held))),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(failed(error)),
        }
        match holder(interface).map_err(failed)? {
            // The holder ended between the two system calls, so the name is free now.
            None => UnixListener::bind_addr(&address).map(|held| locked(Some(held))).map_err(failed),
            Some(holder) if holder.is_trusted(interface) => {
                Err(InterfaceLockError::Taken { interface: interface.to_owned(), holder: holder.describe() })
            }
            Some(holder) => {
                warn!(
                    interface,
                    holder = holder.describe(),
                    "another user holds this interface's lock: ignored"
                );
                Ok(locked(None))
            }
        }
    }

    /// The interface that is held.
    pub fn interface(&self) -> &str {
        &self.interface
    }
}

/// The process that holds an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// Its process id and user; `None` if too many connections wait at its socket to ask.
    credentials: Option<(i32, u32)>,
}

/// The process that holds this interface, if there is one.
///
/// # Errors
/// If the kernel does not tell.
pub fn holder(interface: &str) -> io::Result<Option<Holder>> {
    holder_of(&abstract_name(interface))
}

/// The process that holds this abstract name, if there is one.
pub(crate) fn holder_of(abstract_name: &str) -> io::Result<Option<Holder>> {
    let mut name = b"\0".to_vec();
    name.extend_from_slice(abstract_name.as_bytes());
    let address = SockAddr::unix(std::ffi::OsStr::new(&*String::from_utf8_lossy(&name)))?;
    // The call must not block, as the listener accepts nobody and its queue may be full.
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    match socket.connect(&address) {
        Ok(()) => {
            let peer = socket_peercred(&socket)?;
            Ok(Some(Holder { credentials: Some((peer.pid.as_raw_nonzero().get(), peer.uid.as_raw())) }))
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Some(Holder { credentials: None })),
        Err(error) => Err(error),
    }
}

impl Holder {
    /// The holder's process id, if known.
    pub fn process_id(&self) -> Option<i32> {
        self.credentials.map(|(pid, _)| pid)
    }

    /// The holder's process id and user, if known.
    pub(crate) const fn process_and_user(self) -> Option<(i32, u32)> {
        self.credentials
    }

    fn is_trusted(&self, interface: &str) -> bool {
        let Some((_, uid)) = self.credentials else { return true };
        uid == 0 || uid == rustix::process::geteuid().as_raw() || has_raw_socket(uid, interface)
    }

    /// The process in words, with its command line if that can be read.
    pub fn describe(&self) -> String {
        let Some((pid, _)) = self.credentials else { return "another process".to_owned() };
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<_> = words.split(|&byte| byte == 0).map(String::from_utf8_lossy).collect();
        let command = words.join(" ");
        let command = command.trim();
        if command.is_empty() {
            return format!("process {pid}");
        }
        let shown: String = command.chars().filter(|c| !c.is_control()).take(MAX_COMMAND_CHARS).collect();
        format!("process {pid} ({shown})")
    }
}

/// Whether a user has a raw socket on an interface.
fn has_raw_socket(uid: u32, interface: &str) -> bool {
    let Ok(Some(interface)) = Interface::look_up(interface) else { return false };
    // This file lists the sockets of this thread's network namespace.
    let sockets = std::fs::read_to_string("/proc/thread-self/net/packet").unwrap_or_default();
    lists_raw_socket(&sockets, uid, interface.index)
}

/// Whether `/proc/net/packet` lists a socket of this user that is bound to this interface.
fn lists_raw_socket(sockets: &str, uid: u32, index: u32) -> bool {
    // The columns are: sk RefCnt Type Proto Iface R Rmem User Inode.
    let bound = sockets.lines().filter_map(|line| {
        let mut columns = line.split_whitespace().skip(4);
        let at = columns.next()?.parse::<u32>().ok()?;
        let user = columns.nth(2)?.parse::<u32>().ok()?;
        Some((user, at))
    });
    bound.into_iter().any(|found| found == (uid, index))
}

fn abstract_name(interface: &str) -> String {
    format!("mapper/interface/{interface}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_has_one_daemon_and_the_other_is_named() {
        let name = format!("lock-test-{}", std::process::id());
        assert_eq!(holder(&name).unwrap(), None);
        let held = InterfaceLock::take(&name).unwrap();
        assert_eq!(holder(&name).unwrap().unwrap().process_id(), Some(std::process::id().cast_signed()));
        let error = InterfaceLock::take(&name).unwrap_err().to_string();
        let process = format!("process {} (", std::process::id());
        assert!(error.contains(&name) && error.contains(&process), "{error}");
        let _other = InterfaceLock::take(&format!("{name}-2")).unwrap();
        drop(held);
        InterfaceLock::take(&name).unwrap();
    }

    #[test]
    fn a_raw_socket_is_found_by_user_and_interface() {
        let sockets = "sk               RefCnt Type Proto  Iface R Rmem   User   Inode\n\
                       ffff8881052d8000 3      3    88b5   5     1 0      106    34105\n";
        assert!(lists_raw_socket(sockets, 106, 5));
        assert!(!lists_raw_socket(sockets, 107, 5));
        assert!(!lists_raw_socket(sockets, 106, 6));
        assert!(!lists_raw_socket("nonsense\n1 2 3 4 x\n", 0, 0));
    }

    #[test]
    fn a_lock_holds_however_often_it_is_asked_for() {
        let name = format!("lock-test-often-{}", std::process::id());
        let _held = InterfaceLock::take(&name).unwrap();
        // Nobody accepts these connections, so the listener's queue is full at some point.
        for _ in 0..5000 {
            assert!(matches!(InterfaceLock::take(&name), Err(InterfaceLockError::Taken { .. })));
        }
    }
}
