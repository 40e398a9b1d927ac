//! The end of a status socket that a daemon serves.

use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::unistd::Group;
use rustix::fs::FlockOperation;
use serde::Serialize;
use serde::de::DeserializeOwned;
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::debug;

use super::StatusSocketError;
use super::codec;

/// How long a client may take to ask or to read before its connection is closed.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
/// The most bytes of a request.
const MAX_REQUEST_BYTES: usize = 512 * 1024;
/// How many clients are served at once. Others wait.
const MAX_CLIENTS: usize = 64;

/// The daemon's end of a status socket. The socket's file is removed when this is dropped.
#[derive(Debug)]
pub struct StatusServer {
    listener: UnixListener,
    places: Arc<Semaphore>,
    path: PathBuf,
}

impl StatusServer {
    /// Makes the socket, in place of one that was left behind, and its directory if there is none. Root, the
    /// user of this process and the members of `group` may ask. The group is given by name or number, and is
    /// that of this process if there is none. The directory itself may be open to all. `daemon` and `option`
    /// are for the error if another daemon serves the socket: the name of both, and the option that sets it.
    ///
    /// # Errors
    /// If another daemon serves the socket, there is no such group, or the socket cannot be made.
    pub fn bind(
        path: PathBuf,
        group: Option<&str>,
        daemon: impl FnOnce() -> String,
        option: &'static str,
    ) -> Result<Self, StatusSocketError> {
        let run_dir = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(run_dir)
            .map_err(|source| StatusSocketError::RunDir { path: run_dir.to_owned(), source })?;
        // The lock keeps two daemons that start at once from taking each other's socket for one left behind.
        let _one_at_a_time = lock(run_dir)
            .map_err(|source| StatusSocketError::Unreadable { path: run_dir.to_owned(), source })?;
        if UnixStream::connect(&path).is_ok() {
            return Err(StatusSocketError::Taken { daemon: daemon(), option, path });
        }
        let failed = |source| StatusSocketError::Bind { path: path.clone(), source };
        let gid = group.map(|name| group_id(name, failed)).transpose()?;
        match listen(&path, gid) {
            Ok(listener) => Ok(Self { listener, places: Arc::new(Semaphore::new(MAX_CLIENTS)), path }),
            Err(source) => Err(failed(source)),
        }
    }

    /// Waits for a client, and until fewer clients are being served than may be at once.
    ///
    /// # Errors
    /// If the kernel hands out no connection, for want of descriptors.
    pub async fn accept(&self) -> io::Result<Client> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(io::Error::other)?;
        match self.listener.accept().await {
            Ok((stream, _)) => Ok(Client { stream, _place: place }),
            Err(error) => {
                // The connection still waits, so without a pause the same error would come at once.
                tokio::time::sleep(ACCEPT_PAUSE).await;
                Err(error)
            }
        }
    }
}

/// How many connections wait to be accepted at most.
const BACKLOG: i32 = 128;

/// Makes a socket that only its owner and group can connect to, from its first moment on.
fn listen(path: &Path, gid: Option<u32>) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    // Nobody can connect before the socket listens, so there is time to set its owner and mode.
    std::os::unix::fs::chown(path, None, gid)?;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o660))?;
    socket.listen(BACKLOG)?;
    UnixListener::from_std(socket.into())
}

/// The number of a group, given by name or number.
pub(super) fn group_id(
    name: &str,
    failed: impl Fn(io::Error) -> StatusSocketError,
) -> Result<u32, StatusSocketError> {
    if let Ok(gid) = name.parse() {
        return Ok(gid);
    }
    let group = Group::from_name(name).map_err(|errno| failed(errno.into()))?;
    group.map(|group| group.gid.as_raw()).ok_or_else(|| StatusSocketError::NoGroup { name: name.to_owned() })
}

impl Drop for StatusServer {
    fn drop(&mut self) {
        // This fails only if somebody else has removed the file.
        let _already_gone = std::fs::remove_file(&self.path);
    }
}

/// A program that has connected.
#[derive(Debug)]
pub struct Client {
    stream: tokio::net::UnixStream,
    /// Its place among the clients that are served at once, which is free when this is dropped.
    _place: OwnedSemaphorePermit,
}

impl Client {
    /// Reads the client's request, which is a line of JSON. `None` if no such line comes in time.
    pub async fn request<R: DeserializeOwned>(&mut self) -> Option<R> {
        let mut line = Vec::new();
        let mut reader = BufReader::new((&mut self.stream).take(MAX_REQUEST_BYTES as u64));
        let read = tokio::time::timeout(PATIENCE, reader.read_until(b'\n', &mut line)).await;
        match (read, serde_json::from_slice(&line)) {
            (Ok(Ok(_)), Ok(request)) => Some(request),
            (Ok(Ok(_)), Err(error)) => {
                debug!(%error, "a request that makes no sense");
                None
            }
            (Ok(Err(error)), _) => {
                debug!(%error, "no request came");
                None
            }
            (Err(_), _) => {
                debug!("a client asked for nothing");
                None
            }
        }
    }

    /// Sends the status and closes the connection. A client that does not read in time gets only a part.
    pub async fn answer<T: Serialize>(self, status: T) {
        match codec::encode(&status) {
            Ok(bytes) => self.send(&bytes).await,
            Err(error) => debug!(%error, "the status was not sent"),
        }
    }

    /// Sends the JSON that `make` returns, and closes the connection. `make` may take long, so it is called
    /// on another thread.
    pub async fn answer_json(self, make: impl FnOnce() -> serde_json::Result<Vec<u8>> + Send + 'static) {
        match tokio::task::spawn_blocking(make).await {
            Ok(Ok(bytes)) => self.send(&bytes).await,
            Ok(Err(error)) => debug!(%error, "the answer was not written down"),
            Err(error) => debug!(%error, "the answer was not written down"),
        }
    }

    async fn send(mut self, bytes: &[u8]) {
        match tokio::time::timeout(PATIENCE, self.stream.write_all(bytes)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => debug!(%error, "the status was not sent"),
            Err(_) => debug!("a client of the status socket does not read"),
        }
    }
}

/// Locks a directory, and waits for others who have locked it.
fn lock(dir: &Path) -> io::Result<File> {
    let dir = File::open(dir)?;
    rustix::fs::flock(&dir, FlockOperation::LockExclusive)?;
    Ok(dir)
}
