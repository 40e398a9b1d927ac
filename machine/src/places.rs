//! Places for the clients of a server, so that few are served at once and nobody keeps others out for long.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tracing::debug;

/// The clients that are being served, the oldest first. One more than there are places for takes that of the oldest that has not
/// asked for anything yet, or waits if all have asked.
#[derive(Debug)]
pub struct Places {
    /// What the server serves, as the log calls it.
    of: &'static str,
    free: Arc<Semaphore>,
    seated: VecDeque<(AbortHandle, HasAsked)>,
}

/// Whether a client has asked for something, so that it keeps its place until it has the answer.
#[derive(Debug, Clone, Default)]
pub struct HasAsked(Arc<AtomicBool>);

impl HasAsked {
    /// From now on the client keeps its place.
    pub fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_noted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Places {
    /// So many free places. `of` is what the server serves, for the log: "the metrics".
    pub fn new(of: &'static str, count: usize) -> Self {
        Self { of, free: Arc::new(Semaphore::new(count)), seated: VecDeque::new() }
    }

    /// Starts to serve a client, once there is a place for it. The place is free again when what `serve` gives has ended.
    pub async fn seat<F>(&mut self, serve: impl FnOnce(HasAsked) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.seated.retain(|(serving, _)| !serving.is_finished());
        if self.free.available_permits() == 0 {
            self.close_oldest_idle();
        }
        let Ok(place) = Arc::clone(&self.free).acquire_owned().await else { return };
        let has_asked = HasAsked::default();
        let served = serve(has_asked.clone());
        let serving = tokio::spawn(async move {
            let _place = place;
            served.await;
        });
        self.seated.push_back((serving.abort_handle(), has_asked));
    }

    fn close_oldest_idle(&mut self) {
        let idle = self.seated.iter().position(|(_, has_asked)| !has_asked.is_noted());
        if let Some((serving, _)) = idle.and_then(|idle| self.seated.remove(idle)) {
            debug!("a client of {} does not ask, and another waits for its place", self.of);
            serving.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use tokio::sync::oneshot;

    use super::*;

    #[test]
    fn one_client_more_takes_the_place_of_the_oldest_that_does_not_ask_or_waits() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut places = Places::new("a test", 2);
            // Each is served until its sender is gone, and the receiver is gone when it is hung up on.
            let (asking, asked) = oneshot::channel::<()>();
            places
                .seat(|has_asked| async move {
                    has_asked.note();
                    let _ends = asked.await;
                })
                .await;
            let (mut idle, seen) = oneshot::channel::<()>();
            places.seat(|_| async move { drop(seen.await) }).await;
            tokio::task::yield_now().await;
            let (third, seen) = oneshot::channel::<()>();
            places
                .seat(|has_asked| async move {
                    has_asked.note();
                    drop(seen.await);
                })
                .await;
            idle.closed().await;
            assert_eq!(places.seated.len(), 2);
            assert!(!asking.is_closed() && !third.is_closed(), "who has asked is served on");
            tokio::task::yield_now().await;
            {
                let mut fourth = pin!(places.seat(|_| async {}));
                let waits = poll_fn(|context| Poll::Ready(fourth.as_mut().poll(context).is_pending()));
                assert!(waits.await, "all have asked");
            }
            drop(asking);
            places.seat(|_| async {}).await;
        });
    }
}
