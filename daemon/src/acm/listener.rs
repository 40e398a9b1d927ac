//! Where clients connect: a unix socket or a port of TCP, and the files that tell them where that is.

mod files;
mod moving;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use mapper_machine::activation::{self, Activated};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tracing::warn;

use super::options::{ListenPlace, PORT_FILE, PORT_LINK};
use files::Files;
pub(super) use moving::Moved;

/// How many connections wait to be accepted at most.
const BACKLOG: i32 = 1024;

/// Why clients cannot connect.
#[derive(Debug, Error)]
pub enum ListenError {
    /// Another service listens there.
    #[error(
        "another service answers on {0}; stop it (`systemctl stop ibacm.socket ibacm`), or name another place with {1}"
    )]
    Taken(String, &'static str),
    /// The socket cannot be made.
    #[error("cannot listen on {place}; choose another with {option}")]
    Bind {
        /// The socket or port.
        place: String,
        /// The option that names it.
        option: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// A file that tells clients where to connect cannot be made.
    #[error("cannot make {}; name another with {option}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The option that names it.
        option: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// What the service manager hands over is no socket that clients can connect to.
    #[error("the service manager hands over no listening socket")]
    Activation(#[source] io::Error),
}

/// The connection of a client.
pub(super) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

#[derive(Debug)]
enum Listening {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// A place where clients connect. Its files are removed when it is dropped, but for those of the service manager.
#[derive(Debug)]
pub(super) struct Listener {
    socket: Listening,
    /// The file that is the socket itself.
    bound: Files,
    /// The files and links that tell clients where it is.
    told: Files,
    is_handed_over: bool,
}

impl Listener {
    /// Listens on the socket that the service manager hands over, or else where the configuration says.
    pub(super) fn open(place: &ListenPlace) -> Result<Self, ListenError> {
        let Some(handed_over) = activation::first_socket().map_err(ListenError::Activation)? else {
            return Self::open_at(place);
        };
        let socket = match handed_over {
            Activated::Unix(socket) => {
                if let ListenPlace::Tcp { .. } = place {
                    warn!(
                        "the service manager hands over a unix socket, which counts, and not the server-mode of the \
                         configuration; name the port in mapper-acm.socket"
                    );
                }
                Listening::Unix(UnixListener::from_std(socket).map_err(ListenError::Activation)?)
            }
            Activated::Tcp(socket) => {
                Listening::Tcp(TcpListener::from_std(socket).map_err(ListenError::Activation)?)
            }
        };
        let told = socket.tell_activated_port(place)?;
        Ok(Self { socket, bound: Files::default(), told, is_handed_over: true })
    }

    /// Listens where the configuration says.
    fn open_at(place: &ListenPlace) -> Result<Self, ListenError> {
        let (socket, bound) = match place {
            ListenPlace::Unix { socket, .. } => Listening::unix(socket)?,
            ListenPlace::Tcp { port, is_open, .. } => (Listening::tcp(*port, *is_open)?, Files::default()),
        };
        Ok(Self { socket, bound, told: tell(place)?, is_handed_over: false })
    }

    /// Whether the socket is the service manager's, which alone decides where it is.
    pub(super) fn is_handed_over(&self) -> bool {
        self.is_handed_over
    }

    /// Where clients connect, in words.
    pub(super) fn shown(&self) -> String {
        match &self.socket {
            Listening::Unix(socket) => {
                let path = socket.local_addr().ok().and_then(|it| it.as_pathname().map(Path::to_owned));
                path.map_or_else(|| "a unix socket".to_owned(), |path| path.display().to_string())
            }
            Listening::Tcp(socket) => {
                socket.local_addr().map_or_else(|_| "TCP".to_owned(), |it| it.to_string())
            }
        }
    }

    /// Waits for a client.
    pub(super) async fn accept(&self) -> io::Result<Stream> {
        match &self.socket {
            Listening::Unix(socket) => Ok(Stream::Unix(socket.accept().await?.0)),
            Listening::Tcp(socket) => {
                let (stream, _) = socket.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }
}

/// Makes the files and links by which clients find a place.
fn tell(place: &ListenPlace) -> Result<Files, ListenError> {
    let mut files = Files::default();
    match place {
        ListenPlace::Unix { socket, link } => files.link(socket, link.as_deref(), "--socket-link")?,
        ListenPlace::Tcp { port, file, link, .. } => files.write_port(*port, file, link.as_deref())?,
    }
    Ok(files)
}

impl Listening {
    /// Tells clients the port that the service manager opened.
    fn tell_activated_port(&self, place: &ListenPlace) -> Result<Files, ListenError> {
        let mut files = Files::default();
        let Self::Tcp(socket) = self else { return Ok(files) };
        let port = socket.local_addr().map_err(ListenError::Activation)?.port();
        let (file, link) = match place {
            ListenPlace::Tcp { port: configured, file, link, .. } => {
                if *configured != port {
                    warn!(
                        "the service manager hands over port {port}, which counts, and not {configured} of the \
                         configuration"
                    );
                }
                (file.as_path(), link.as_deref())
            }
            ListenPlace::Unix { .. } => (Path::new(PORT_FILE), Some(Path::new(PORT_LINK))),
        };
        let tells =
            |path: &Path| std::fs::read_to_string(path).is_ok_and(|told| told.trim().parse() == Ok(port));
        if tells(file) || link.is_some_and(tells) {
            // Whoever set up the socket has told it.
            return Ok(files);
        }
        match files.write_port(port, file, link) {
            Ok(()) => {}
            Err(error) => warn!(
                "{error}: clients do not find port {port}; have mapper-acm.socket write it, as the comment there says, \
                 or tell them"
            ),
        }
        Ok(files)
    }

    /// Listens on a unix socket, whose file goes with what is returned.
    fn unix(path: &Path) -> Result<(Self, Files), ListenError> {
        const OPTION: &str = "--socket";
        let failed = |source| ListenError::Bind { place: path.display().to_string(), option: OPTION, source };
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(ListenError::Taken(path.display().to_string(), OPTION));
        }
        // A file there that is no socket belongs to somebody. It stays, and binding fails.
        if std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
            std::fs::remove_file(path).map_err(failed)?;
        }
        let listen = || {
            let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
            socket.bind(&SockAddr::unix(path)?)?;
            // Programs of all users ask for paths.
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o666))?;
            socket.listen(BACKLOG)?;
            UnixListener::from_std(socket.into())
        };
        let socket = listen().map_err(failed)?;
        Ok((Self::Unix(socket), Files::of_socket(path)))
    }

    fn tcp(port: u16, is_open: bool) -> Result<Self, ListenError> {
        const OPTION: &str = "--port";
        let listen = |ip: SocketAddr| {
            let socket =
                Socket::new(Domain::for_address(ip), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
            if ip.is_ipv6() {
                socket.set_only_v6(false)?;
            }
            socket.set_reuse_address(true)?;
            socket.bind(&ip.into())?;
            socket.listen(BACKLOG)?;
            TcpListener::from_std(socket.into())
        };
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let all = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
        let socket = if is_open {
            // A machine without IPv6 has addresses of IPv4 alone.
            listen(all).or_else(|_| listen(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))))
        } else {
            listen(here)
        };
        let socket = socket.map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => ListenError::Taken(format!("port {port} of TCP"), OPTION),
            _ => ListenError::Bind { place: format!("port {port} of TCP"), option: OPTION, source },
        })?;
        Ok(Self::Tcp(socket))
    }
}
