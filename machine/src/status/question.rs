//! Asks daemons by their status sockets.

use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::unistd::Group;
use rustix::net::sockopt::socket_peercred;
use serde::Serialize;
use serde::de::DeserializeOwned;
use socket2::{Domain, SockAddr, Socket, Type};

use super::StatusSocketError;
use super::codec::{self, CodecError, MAX_BYTES};

/// How long an answer is read at least, even if the deadline has passed, so that one that has already arrived
/// is taken.
const GRACE: Duration = Duration::from_millis(10);

/// The names of the sockets in this run directory without `.sock`, sorted; empty if there is no such
/// directory.
///
/// # Errors
/// If the directory cannot be read.
pub fn names(run_dir: &Path) -> Result<Vec<String>, StatusSocketError> {
    let failed = |source| StatusSocketError::Unreadable { path: run_dir.to_owned(), source };
    let entries = match std::fs::read_dir(run_dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        names.extend(name.to_str().and_then(|name| name.strip_suffix(".sock")).map(str::to_owned));
    }
    names.sort_unstable();
    Ok(names)
}

/// Asks the daemon behind a socket for its status, by connecting to it. `None` if there is no socket. This
/// does not wait, so that several daemons can be asked before the first answer is taken.
///
/// # Errors
/// If nobody listens, or too many wait already.
pub fn ask<T>(path: PathBuf) -> Result<Option<Question<T>>, StatusSocketError> {
    let connect = || -> io::Result<Socket> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
        socket.connect(&SockAddr::unix(&path)?)?;
        socket.set_nonblocking(false)?;
        Ok(socket)
    };
    match connect() {
        Ok(socket) => Ok(Some(Question { socket, path, answer: PhantomData })),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            Err(StatusSocketError::LeftBehind { path })
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(StatusSocketError::Denied { group: group_of(&path), path })
        }
        Err(why) => Err(StatusSocketError::Silent { path, why }),
    }
}

/// The group of a file, by name or else by number; `None` for root's group, which nobody should join.
pub(super) fn group_of(path: &Path) -> Option<String> {
    let gid = std::fs::metadata(path).ok()?.gid();
    if gid == 0 {
        return None;
    }
    let group = Group::from_gid(gid.into()).ok().flatten();
    Some(group.map_or_else(|| gid.to_string(), |group| group.name))
}

/// A daemon that has been asked for its status.
#[derive(Debug)]
pub struct Question<T> {
    socket: Socket,
    path: PathBuf,
    answer: PhantomData<fn() -> T>,
}

impl<T> Question<T> {
    /// The process that was asked; `None` if the kernel does not tell.
    pub fn process_id(&self) -> Option<i32> {
        socket_peercred(&self.socket).ok().map(|peer| peer.pid.as_raw_nonzero().get())
    }
}

impl<T> Question<T> {
    /// Sends a request as a line of JSON, to a socket on which the daemon reads one.
    ///
    /// # Errors
    /// If the daemon does not take it.
    pub fn request<R: Serialize>(mut self, request: &R) -> Result<Self, StatusSocketError> {
        let sent = serde_json::to_vec(request).map_err(io::Error::other).and_then(|mut line| {
            line.push(b'\n');
            self.socket.write_all(&line)
        });
        match sent {
            Ok(()) => Ok(self),
            Err(why) => Err(StatusSocketError::Silent { path: self.path, why }),
        }
    }
}

impl<T: DeserializeOwned> Question<T> {
    /// The answer, if it comes before `deadline`.
    ///
    /// # Errors
    /// If no answer comes in time, or it is no status.
    pub fn answer(self, deadline: Instant) -> Result<T, StatusSocketError> {
        let Self { mut socket, path, .. } = self;
        match read_until(&mut socket, deadline, MAX_BYTES) {
            Ok(bytes) => codec::decode(&bytes).map_err(|source| match source {
                CodecError::Truncated => StatusSocketError::HungUp { path },
                source => StatusSocketError::Garbled { path, source },
            }),
            Err(why) => Err(StatusSocketError::Silent { path, why }),
        }
    }

    /// The answer of a daemon that answers in JSON, if it comes before `deadline` and has at most
    /// `max_bytes`. `wanted` says in the error what was expected.
    ///
    /// # Errors
    /// If no answer comes in time, or it is something else.
    pub fn answer_json(
        self,
        deadline: Instant,
        max_bytes: usize,
        wanted: &'static str,
    ) -> Result<T, StatusSocketError> {
        let Self { mut socket, path, .. } = self;
        match read_until(&mut socket, deadline, max_bytes) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|source| StatusSocketError::NotJson {
                path,
                wanted,
                source,
            }),
            Err(why) => Err(StatusSocketError::Silent { path, why }),
        }
    }
}

/// Reads to the end, but little more than `most` bytes and not beyond `deadline`.
fn read_until(socket: &mut Socket, deadline: Instant, most: usize) -> io::Result<Vec<u8>> {
    let deadline = deadline.max(Instant::now() + GRACE);
    let mut bytes = Vec::new();
    let mut piece = [0; 16 * 1024];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(left))?;
        match socket.read(&mut piece) {
            Ok(0) => return Ok(bytes),
            Ok(length) => bytes.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error),
        }
        // The answer is too long, and what was read of it will not decode.
        if bytes.len() > most {
            return Ok(bytes);
        }
    }
}
