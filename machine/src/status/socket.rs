//! Server and client of a status socket, for every kind of daemon.

use std::fs::File;
use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::unistd::Group;
use rustix::fs::FlockOperation;
use rustix::net::sockopt::socket_peercred;
use serde::Serialize;
use serde::de::DeserializeOwned;
use socket2::{Domain, SockAddr, Socket, Type};
use thiserror::Error;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::debug;

use super::codec::{self, CodecError, MAX_BYTES};

/// How long a client may take to ask or to read before its connection is closed.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long an answer is read at least, even if the deadline has passed, so that one that has already arrived
/// is taken.
const GRACE: Duration = Duration::from_millis(10);
/// How long to wait after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
/// The most bytes of a request.
const MAX_REQUEST_BYTES: usize = 512 * 1024;
/// How many clients are served at once. Others wait.
const MAX_CLIENTS: usize = 64;

/// Why a status socket cannot be served or asked.
#[derive(Debug, Error)]
pub enum StatusSocketError {
    /// The run directory does not exist and cannot be made.
    #[error(
        "cannot make the run directory {}; run as root, or name one that you may write with --run-dir",
        path.display()
    )]
    RunDir {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The run directory cannot be read.
    #[error("cannot read the run directory {}", path.display())]
    Unreadable {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Another daemon serves the socket.
    #[error("{daemon} is already running ({} answers); stop it, or choose another {option}", path.display())]
    Taken {
        /// The name of both daemons, as in "unit 3".
        daemon: String,
        /// The option that gives a daemon this name.
        option: &'static str,
        /// The socket.
        path: PathBuf,
    },
    /// The socket cannot be made.
    #[error("cannot make the status socket {}", path.display())]
    Bind {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// There is no such group.
    #[error("there is no group {name:?} on this machine; name one of /etc/group, or its number")]
    NoGroup {
        /// The group as it was named.
        name: String,
    },
    /// Nobody listens on the socket.
    #[error("its daemon runs no more, but left its status socket {} behind", path.display())]
    LeftBehind {
        /// The socket.
        path: PathBuf,
    },
    /// The daemon does not answer.
    #[error("its daemon does not answer on {} ({why}); if it hangs, restart it", path.display())]
    Silent {
        /// The socket.
        path: PathBuf,
        /// What went wrong.
        why: io::Error,
    },
    /// The socket is not for this user.
    #[error("you may not ask its daemon on {}; run as root{}", path.display(), or_join(group.as_deref()))]
    Denied {
        /// The socket.
        path: PathBuf,
        /// The group that may ask, by name or number, if it can be told.
        group: Option<String>,
    },
    /// The daemon ended while it answered.
    #[error("its daemon hung up on {} before it had said all: it leaves", path.display())]
    HungUp {
        /// The socket.
        path: PathBuf,
    },
    /// What the daemon says is not the JSON that was asked for.
    #[error("what listens on {} tells no {wanted}; the daemon and this program must be of one version", path.display())]
    NotJson {
        /// The socket.
        path: PathBuf,
        /// What was expected, in a word.
        wanted: &'static str,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// What the daemon sent is no status.
    #[error("what listens on {} is not understood", path.display())]
    Garbled {
        /// The socket.
        path: PathBuf,
        /// What is wrong.
        source: CodecError,
    },
}

fn or_join(group: Option<&str>) -> String {
    group.map_or_else(String::new, |group| format!(", or join the group {group}"))
}

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
fn group_of(path: &Path) -> Option<String> {
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
fn group_id(name: &str, failed: impl Fn(io::Error) -> StatusSocketError) -> Result<u32, StatusSocketError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    fn socket_path(run_dir: &Path) -> PathBuf {
        run_dir.join("0.sock")
    }

    fn bind(run_dir: &Path, group: Option<&str>) -> Result<StatusServer, StatusSocketError> {
        StatusServer::bind(socket_path(run_dir), group, || "unit 0".to_owned(), "--unit")
    }

    fn fetch(run_dir: &Path) -> Result<Option<String>, StatusSocketError> {
        let deadline = Instant::now() + Duration::from_secs(60);
        ask(socket_path(run_dir))?.map(|question| question.answer(deadline)).transpose()
    }

    #[test]
    fn asks_and_is_answered() {
        let dir = tempfile::tempdir().unwrap();
        let run_dir = dir.path().join("run");
        let status = "mapping".to_owned();
        let answer = runtime().block_on(async {
            let server = bind(&run_dir, None).unwrap();
            let asked_dir = run_dir.clone();
            let asking = tokio::task::spawn_blocking(move || fetch(&asked_dir));
            server.accept().await.unwrap().answer(status.clone()).await;
            asking.await.unwrap().unwrap()
        });
        assert_eq!(answer, Some(status));
        assert!(names(&run_dir).unwrap().is_empty(), "the socket goes with the server");
    }

    #[test]
    fn a_socket_is_taken_while_its_daemon_runs_and_free_when_that_was_killed() {
        let dir = tempfile::tempdir().unwrap();
        let runtime = runtime();
        let _inside = runtime.enter();
        let server = bind(dir.path(), None).unwrap();
        assert!(matches!(bind(dir.path(), None), Err(StatusSocketError::Taken { .. })));
        drop(server);
        assert_eq!(fetch(dir.path()).unwrap(), None);

        drop(std::os::unix::net::UnixListener::bind(socket_path(dir.path())).unwrap());
        assert_eq!(names(dir.path()).unwrap(), ["0"]);
        assert!(matches!(fetch(dir.path()), Err(StatusSocketError::LeftBehind { .. })));
        bind(dir.path(), None).unwrap();
    }

    #[test]
    fn who_listens_but_says_nothing_or_nonsense_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let listener = std::os::unix::net::UnixListener::bind(socket_path(dir.path())).unwrap();
        let answer = || ask::<String>(socket_path(dir.path())).unwrap().unwrap();
        assert!(matches!(answer().answer(Instant::now()), Err(StatusSocketError::Silent { .. })));
        drop(listener.accept().unwrap());

        let question = answer();
        listener.accept().unwrap().0.write_all(b"nonsense, and more of it").unwrap();
        let later = Instant::now() + Duration::from_secs(60);
        assert!(matches!(question.answer(later), Err(StatusSocketError::Garbled { .. })));
    }

    #[test]
    fn the_socket_lets_in_its_group_only() {
        let dir = tempfile::tempdir().unwrap();
        let runtime = runtime();
        let _inside = runtime.enter();
        let own = rustix::process::getegid().as_raw();
        for (group, gid) in [(None, own), (Some(own.to_string()), own)] {
            let _server = bind(dir.path(), group.as_deref()).unwrap();
            let metadata = std::fs::metadata(socket_path(dir.path())).unwrap();
            assert_eq!((metadata.mode() & 0o777, metadata.gid()), (0o660, gid));
        }
        let root = Group::from_gid(0.into()).unwrap().unwrap().name;
        assert!(matches!(group_id(&root, |source| panic!("{source}")), Ok(0)));
        let error = bind(dir.path(), Some("no-such-group")).unwrap_err();
        assert!(matches!(error, StatusSocketError::NoGroup { .. }), "{error}");
    }

    #[test]
    fn an_error_says_once_what_is_wrong_and_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let _stuck = std::os::unix::net::UnixListener::bind(socket_path(dir.path())).unwrap();
        let question = ask::<String>(socket_path(dir.path())).unwrap().unwrap();
        assert_eq!(question.process_id(), Some(std::process::id().cast_signed()));
        let error = question.answer(Instant::now()).unwrap_err();
        assert!(error.to_string().ends_with("(timed out); if it hangs, restart it"), "{error}");
        assert!(std::error::Error::source(&error).is_none());
        assert_eq!(group_of(Path::new("/proc")), None);
        let denied = |group| StatusSocketError::Denied { path: "/run/0.sock".into(), group }.to_string();
        let text = "you may not ask its daemon on /run/0.sock; run as root";
        assert_eq!(denied(None), text);
        assert_eq!(denied(Some("fabric".to_owned())), format!("{text}, or join the group fabric"));
    }

    #[test]
    fn no_directory_is_no_daemons() {
        assert!(names(Path::new("/nonexistent/mapper")).unwrap().is_empty());
        assert_eq!(fetch(Path::new("/nonexistent/mapper")).unwrap(), None);
    }
}
