//! What is sent to a client, and at which pace it reads.

use std::pin::Pin;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How a client keeps up: since when it has had something to read that it does not read.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    state: Mutex<PaceState>,
}

#[derive(Debug, Default, Clone, Copy)]
struct PaceState {
    /// When the answer was begun, or a piece of it last taken.
    last: Option<Instant>,
    /// Whether the answer has no end.
    endless: bool,
}

impl Pace {
    fn change(&self, change: impl FnOnce(&mut PaceState)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn get(&self) -> PaceState {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer is ready, or a piece of it was taken.
    pub(super) fn note_progress(&self) {
        self.change(|state| state.last = Some(Instant::now()));
    }

    pub(super) fn note_endless(&self) {
        self.change(|state| state.endless = true);
    }

    /// Waits until the client has read nothing for `read`, or has taken longer than `whole` over what has an end.
    pub(super) async fn stalls(&self, read: Duration, whole: Duration) {
        let began = Instant::now();
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let state = self.get();
            let is_late = !state.endless && began.elapsed() > whole;
            if is_late || state.last.is_some_and(|last| last.elapsed() > read) {
                return;
            }
        }
    }
}

/// What is sent: a whole answer, or pieces as they come.
pub(crate) enum Answer {
    Whole(Option<Bytes>),
    Pieces(mpsc::Receiver<Bytes>, std::sync::Arc<Pace>),
}

impl Body for Answer {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Pieces(pieces, pace) => pieces.poll_recv(context).map(|piece| {
                pace.note_progress();
                piece.map(|bytes| Ok(Frame::data(bytes)))
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Pieces(..) => SizeHint::default(),
        }
    }
}
