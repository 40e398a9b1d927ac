//! Serves the page over HTTP.
//!
//! HTTP/1.1 is hyper's; bounds are here. Each connection serves one request. Few are served at once, and who asks slowly,
//! or does not read, is hung up on, so that nobody can keep others out for long.

pub(crate) mod access;
mod answers;
mod body;
mod engines;
mod turns;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use mapper_machine::places::{HasAsked, Places};
use tokio::net::{TcpListener, TcpStream};
use tracing::debug;

pub(crate) use access::Access;
use answers::Answers;
use body::Pace;

use super::feed::Feed;

/// How long a client may take to ask.
const ASK_LIMIT: Duration = Duration::from_secs(5);
/// The most bytes of a request's head.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// How long a client may leave unread what it asked for.
const READ_LIMIT: Duration = Duration::from_secs(20);
/// How long one request may take in all: engines compute for a while on a large fabric.
const WHOLE_LIMIT: Duration = Duration::from_secs(600);
/// How many clients are served at once; one more takes the place of the oldest that has asked nothing yet, or waits.
const MAX_CLIENTS: usize = 64;
/// How long to wait after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Serves clients for ever.
pub(crate) async fn serve(listener: TcpListener, feed: Arc<Feed>, access: Access) {
    let answers = Arc::new(Answers::new(feed, access));
    let mut places = Places::new("the page", MAX_CLIENTS);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                places.seat(|has_asked| answer(stream, Arc::clone(&answers), has_asked)).await;
            }
            Err(error) => {
                debug!(%error, "cannot accept a client of the page");
                // The connection still waits, so without a pause the same error would come at once.
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one client.
async fn answer(stream: TcpStream, answers: Arc<Answers>, has_asked: HasAsked) {
    let pace = Arc::new(Pace::default());
    let service = service_fn(|request| {
        has_asked.note();
        let (answers, pace) = (Arc::clone(&answers), Arc::clone(&pace));
        async move { Ok::<_, std::convert::Infallible>(answers.answer(request, &pace).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(ASK_LIMIT)
        .max_buf_size(MAX_HEAD_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        result = connection => {
            if let Err(error) = result {
                debug!(%error, "a client of the page went away");
            }
        }
        () = pace.stalls(READ_LIMIT, WHOLE_LIMIT) => debug!("a client of the page does not read"),
    }
}

/// Begins to listen. Needs a tokio runtime.
///
/// # Errors
/// If the address is taken, or is none of this machine's.
pub(crate) fn bind(address: std::net::SocketAddr) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}
