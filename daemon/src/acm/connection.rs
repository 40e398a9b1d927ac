//! The connection of one client.

use std::rc::Rc;
use std::time::Duration;

use mapper_acm::service::{ClientId, Handled};
use mapper_acm::wire::{Malformed, request_bytes};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{sleep_until, timeout};
use tracing::debug;

use super::listener::Stream;
use super::places::TakenPlace;
use super::state::State;

/// How many bytes of requests are read at once.
const BUFFER_BYTES: usize = 16 * 1024;
/// How long the rest of a request may be under way. Clients send a request at once.
const REST_WITHIN: Duration = Duration::from_secs(1);
/// How long a client may take to read a reply.
const READ_WITHIN: Duration = Duration::from_secs(5);

/// Why a connection is closed.
#[derive(Debug, Error)]
enum Closed {
    #[error("the client has gone")]
    ByClient,
    #[error("what came is no request: {0}")]
    Malformed(#[from] Malformed),
    #[error("the client has sent a part of a request only")]
    Incomplete,
    #[error("the client was silent")]
    Silent,
    #[error("the client was silent for longer than others, and gives way to a new one")]
    GivesWay,
    #[error("the client does not read its replies")]
    DoesNotRead,
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Serves a client until it goes, is silent for too long, or sends what is no request. It gives its place free then.
pub(super) async fn serve(
    stream: Stream,
    client: ClientId,
    state: Rc<State>,
    silence: Duration,
    place: TakenPlace,
) {
    let closed = match stream {
        Stream::Unix(stream) => converse(stream, client, &state, silence, &place).await,
        Stream::Tcp(stream) => converse(stream, client, &state, silence, &place).await,
    };
    state.drop_client(client);
    if let Err(why) = closed {
        debug!(client, "closed: {why}");
    }
    drop(place);
}

async fn converse(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    client: ClientId,
    state: &State,
    silence: Duration,
    place: &TakenPlace,
) -> Result<(), Closed> {
    let mut late = state.add_client(client);
    let mut requests = Vec::with_capacity(BUFFER_BYTES);
    let mut replies = Vec::new();
    let alarm = sleep_until(place.heard() + silence);
    tokio::pin!(alarm);
    loop {
        let is_complete = requests.is_empty();
        tokio::select! {
            read = stream.read_buf(&mut requests) => {
                if read? == 0 {
                    return if is_complete { Err(Closed::ByClient) } else { Err(Closed::Incomplete) };
                }
                place.hear();
                take_requests(&mut requests, client, state, place, &mut replies)?;
                if !requests.is_empty() {
                    alarm.as_mut().reset(place.heard() + REST_WITHIN.min(silence));
                } else if !is_complete {
                    alarm.as_mut().reset(place.heard() + silence);
                }
            }
            Some(reply) = late.recv() => {
                place.hear();
                place.end_waiting();
                replies.extend(reply);
            }
            () = place.must_give_way() => return Err(Closed::GivesWay),
            () = &mut alarm => {
                if !is_complete {
                    return Err(Closed::Incomplete);
                }
                // The alarm is put off only when it rings, as setting it costs more than to answer.
                if place.heard().elapsed() >= silence {
                    return Err(Closed::Silent);
                }
                alarm.as_mut().reset(place.heard() + silence);
            }
        }
        if !replies.is_empty() {
            // All replies go in one write, so that no reply is parted.
            timeout(READ_WITHIN, stream.write_all(&replies)).await.map_err(|_| Closed::DoesNotRead)??;
            replies.clear();
        }
    }
}

/// Takes all requests that are complete out of the buffer, and appends the replies.
fn take_requests(
    requests: &mut Vec<u8>,
    client: ClientId,
    state: &State,
    place: &TakenPlace,
    replies: &mut Vec<u8>,
) -> Result<(), Closed> {
    let now = state.clock.now();
    let mut taken = 0;
    let mut service = state.service.borrow_mut();
    state.suspect_what_changed(&mut service);
    while let Some(rest) = requests.get(taken..).filter(|rest| !rest.is_empty())
        && let Some(length) = request_bytes(rest)?
    {
        let handled = service.handle_request(now, client, &rest[..length], replies)?;
        if handled == Handled::Waits {
            place.begin_waiting();
            state.question_waits();
        }
        taken += length;
    }
    state.have_asked(&service);
    requests.drain(..taken);
    Ok(())
}
