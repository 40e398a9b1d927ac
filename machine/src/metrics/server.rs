//! Metrics over HTTP.
//!
//! There is one resource, `GET /metrics`, for clients on this machine. That takes so little of HTTP/1.1 (RFC
//! 9112) that no library is used. A request is bounded in bytes and time, each connection serves one request,
//! and few connections are served at once.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tracing::debug;

use super::text::Dialect;
use crate::options::MetricsAddress;
use crate::places::{HasAsked, Places};

/// The most bytes of a request's head.
const MAX_HEAD_BYTES: usize = 4096;
/// How long a client may take to ask before its connection is closed.
const ASK_LIMIT: Duration = Duration::from_secs(1);
/// How long a client may take to read the answer before its connection is closed.
const READ_LIMIT: Duration = Duration::from_secs(5);
/// How many clients are served at once. One more takes the place of the oldest that has not asked yet, or
/// waits if all have asked.
const MAX_CLIENTS: usize = 8;
/// How long to wait after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// A client that waits for the metrics.
pub(super) type Scrape = oneshot::Sender<String>;

/// Serves clients until it is dropped, which also removes its unix socket.
#[derive(Debug)]
pub(super) struct Server {
    scrapes: mpsc::Receiver<Scrape>,
    serving: JoinHandle<()>,
    address: Option<SocketAddr>,
    socket_file: Option<PathBuf>,
}

#[derive(Debug)]
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Server {
    /// Begins to listen. Needs a tokio runtime.
    pub(super) fn bind(address: &MetricsAddress) -> io::Result<Self> {
        let (sender, scrapes) = mpsc::channel(MAX_CLIENTS);
        let (listener, address, socket_file) = match address {
            MetricsAddress::Loopback(address) => {
                let listener = std::net::TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                let address = listener.local_addr().ok();
                (Listener::Tcp(TcpListener::from_std(listener)?), address, None)
            }
            MetricsAddress::Unix(path) => (Listener::Unix(bind_unix(path)?), None, Some(path.clone())),
        };
        let serving = tokio::spawn(serve(listener, sender));
        Ok(Self { scrapes, serving, address, socket_file })
    }

    /// Waits for a client that wants the metrics.
    pub(super) async fn scrape(&mut self) -> Option<Scrape> {
        self.scrapes.recv().await
    }

    /// The address where it listens, if not on a unix socket.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
        if let Some(path) = &self.socket_file {
            // This fails only if somebody else has removed the file.
            let _already_gone = std::fs::remove_file(path);
        }
    }
}

/// Makes the unix socket, in place of one that was left behind. Its owner and group may connect.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    let left_behind = std::fs::symlink_metadata(path).is_ok_and(|there| there.file_type().is_socket());
    if left_behind {
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o660))?;
    Ok(listener)
}

async fn serve(listener: Listener, scrapes: mpsc::Sender<Scrape>) {
    let mut places = Places::new("the metrics", MAX_CLIENTS);
    loop {
        let accepted = match &listener {
            Listener::Tcp(listener) => match listener.accept().await {
                Ok((stream, _)) => {
                    places.seat(|has_asked| answer(stream, scrapes.clone(), has_asked)).await;
                    Ok(())
                }
                Err(error) => Err(error),
            },
            Listener::Unix(listener) => match listener.accept().await {
                Ok((stream, _)) => {
                    places.seat(|has_asked| answer(stream, scrapes.clone(), has_asked)).await;
                    Ok(())
                }
                Err(error) => Err(error),
            },
        };
        if let Err(error) = accepted {
            debug!(%error, "cannot accept a client of the metrics");
            // The connection still waits, so without a pause the same error would come at once.
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
    }
}

/// Serves one client.
async fn answer(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    scrapes: mpsc::Sender<Scrape>,
    has_asked: HasAsked,
) {
    let head = match timeout(ASK_LIMIT, read_head(&mut stream)).await {
        Ok(Ok(head)) => head,
        Ok(Err(error)) => return debug!(%error, "a client of the metrics went away"),
        Err(_) => return debug!("a client of the metrics does not ask"),
    };
    has_asked.note();
    let response = match request_of(&head) {
        Ok(wants_body) => {
            let (reply, text) = oneshot::channel();
            if scrapes.send(reply).await.is_err() {
                return;
            }
            // There is no answer if the daemon is about to end.
            let Ok(text) = text.await else { return };
            let body = if wants_body { text.as_str() } else { "" };
            let kind = Dialect::OpenMetrics.content_type();
            format!("{}{body}", head_of("200 OK", kind, text.len()))
        }
        Err(refusal) => refusal.response(),
    };
    let write = async {
        stream.write_all(response.as_bytes()).await?;
        stream.shutdown().await
    };
    match timeout(READ_LIMIT, write).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(%error, "the metrics were not sent"),
        Err(_) => debug!("a client of the metrics does not read"),
    }
}

/// Reads up to the empty line that ends the head, but little more than [`MAX_HEAD_BYTES`].
async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut piece = [0; 512];
    while head.len() <= MAX_HEAD_BYTES && !ends(&head) {
        match stream.read(&mut piece).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => head.extend_from_slice(&piece[..length]),
        }
    }
    Ok(head)
}

fn ends(head: &[u8]) -> bool {
    head.windows(4).any(|window| window == b"\r\n\r\n") || head.windows(2).any(|window| window == b"\n\n")
}

/// Why a request gets no metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    BadRequest,
    NotFound,
    MethodNotAllowed,
    TooLarge,
}

impl Refusal {
    fn response(self) -> String {
        let (status, text) = match self {
            Self::BadRequest => ("400 Bad Request", "this is no HTTP/1 request\n"),
            Self::NotFound => ("404 Not Found", "there is only /metrics\n"),
            Self::MethodNotAllowed => ("405 Method Not Allowed\r\nAllow: GET, HEAD", "only GET and HEAD\n"),
            Self::TooLarge => ("431 Request Header Fields Too Large", "the request is too long\n"),
        };
        format!("{}{text}", head_of(status, "text/plain; charset=utf-8", text.len()))
    }
}

fn head_of(status: &str, content_type: &str, length: usize) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )
}

/// Whether a request for the metrics wants the body too.
fn request_of(head: &[u8]) -> Result<bool, Refusal> {
    if !ends(head) {
        return Err(Refusal::TooLarge);
    }
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = std::str::from_utf8(line).map_err(|_| Refusal::BadRequest)?.trim_end();
    let words: Vec<_> = line.split(' ').collect();
    let [method, target, version] = words[..] else { return Err(Refusal::BadRequest) };
    if !version.starts_with("HTTP/1.") {
        return Err(Refusal::BadRequest);
    }
    let path = target.split('?').next().unwrap_or_default();
    match (method, path) {
        ("GET", "/metrics") => Ok(true),
        ("HEAD", "/metrics") => Ok(false),
        ("GET" | "HEAD", _) => Err(Refusal::NotFound),
        _ => Err(Refusal::MethodNotAllowed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_get_and_head_of_metrics_are_answered() {
        for (head, expected) in [
            ("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", Ok(true)),
            ("GET /metrics?x=1 HTTP/1.0\n\n", Ok(true)),
            ("HEAD /metrics HTTP/1.1\r\n\r\n", Ok(false)),
            ("GET / HTTP/1.1\r\n\r\n", Err(Refusal::NotFound)),
            ("POST /metrics HTTP/1.1\r\n\r\n", Err(Refusal::MethodNotAllowed)),
            ("GET /metrics HTTP/2\r\n\r\n", Err(Refusal::BadRequest)),
            ("GET  /metrics HTTP/1.1\r\n\r\n", Err(Refusal::BadRequest)),
            ("\r\n\r\n", Err(Refusal::BadRequest)),
            ("GET /metrics HTTP/1.1\r\nA: b\r\n", Err(Refusal::TooLarge)),
        ] {
            assert_eq!(request_of(head.as_bytes()), expected, "{head:?}");
        }
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    /// What a server whose metrics are `text` answers to these bytes.
    async fn exchange(request: &[u8], text: &str) -> String {
        let mut server = Server::bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
        let mut client = tokio::net::TcpStream::connect(server.address().unwrap()).await.unwrap();
        client.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        tokio::select! {
            read = client.read_to_end(&mut answer) => drop(read.unwrap()),
            scrape = server.scrape() => {
                scrape.unwrap().send(text.to_owned()).unwrap();
                client.read_to_end(&mut answer).await.unwrap();
            }
        }
        String::from_utf8(answer).unwrap()
    }

    #[test]
    fn a_scrape_gets_the_text_with_its_type_and_length() {
        let answer =
            runtime().block_on(exchange(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "x 1\n# EOF\n"));
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text"),
            "{answer}"
        );
        assert!(
            answer.contains("Content-Length: 10\r\n") && answer.ends_with("\r\n\r\nx 1\n# EOF\n"),
            "{answer}"
        );
        let answer = runtime().block_on(exchange(b"HEAD /metrics HTTP/1.1\r\n\r\n", "x 1\n# EOF\n"));
        assert!(answer.contains("Content-Length: 10\r\n") && answer.ends_with("\r\n\r\n"), "{answer}");
    }

    #[test]
    fn others_are_refused_without_troubling_the_daemon() {
        let endless = [b"GET /metrics HTTP/1.1\r\n".as_slice(), &[b'a'; MAX_HEAD_BYTES]].concat();
        for (request, status) in [
            (b"GET /etc/passwd HTTP/1.1\r\n\r\n".as_slice(), "HTTP/1.1 404 "),
            (b"\x16\x03\x01\x02\x00\n\n", "HTTP/1.1 400 "),
            (&endless, "HTTP/1.1 431 "),
        ] {
            let answer = runtime().block_on(exchange(request, "never asked for"));
            assert!(answer.starts_with(status), "{answer}");
        }
    }

    #[test]
    fn one_client_more_takes_the_place_of_the_oldest_that_does_not_ask() {
        runtime().block_on(async {
            let (sender, mut scrapes) = mpsc::channel(MAX_CLIENTS);
            let mut places = Places::new("the metrics", MAX_CLIENTS);
            let mut ends = Vec::new();
            for _ in 0..=MAX_CLIENTS {
                let (end, served) = tokio::io::duplex(MAX_HEAD_BYTES);
                places.seat(|has_asked| answer(served, sender.clone(), has_asked)).await;
                ends.push(end);
            }
            assert_eq!(ends[0].read(&mut [0]).await.unwrap(), 0, "the oldest is hung up on");
            let newest = &mut ends[MAX_CLIENTS];
            newest.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").await.unwrap();
            scrapes.recv().await.unwrap().send("# EOF\n".to_owned()).unwrap();
            let mut answer = String::new();
            newest.read_to_string(&mut answer).await.unwrap();
            assert!(answer.ends_with("# EOF\n"), "{answer}");
        });
    }

    #[test]
    fn a_unix_socket_replaces_one_left_behind_but_not_one_in_use_nor_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let runtime = runtime();
        let _inside = runtime.enter();
        let path = dir.path().join("metrics.sock");
        let address = MetricsAddress::Unix(path.clone());
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let server = Server::bind(&address).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
        assert_eq!(Server::bind(&address).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(server);
        assert!(!path.exists());
        std::fs::write(&path, "precious").unwrap();
        assert!(Server::bind(&address).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    }
}
