//! Work that takes long: each of its kind is done after the other, on a thread of its own.

use std::sync::Arc;

use hyper::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::answers::{NoAnswer, busy};

/// Gives turns to work of one kind, one at a time.
#[derive(Debug)]
pub(super) struct Turns(Arc<Semaphore>);

/// The right to work now.
#[derive(Debug)]
pub(super) struct Turn(OwnedSemaphorePermit);

impl Turns {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }

    /// Waits until nobody else works.
    pub(super) async fn next(&self) -> Result<Turn, NoAnswer> {
        let turn = Arc::clone(&self.0).acquire_owned().await;
        turn.map(Turn).map_err(|_| busy("the server ends"))
    }
}

impl Turn {
    /// Works on another thread. The turn is over when the work has ended, even if the client that asked for it is gone before:
    /// nothing stops a thread, so whoever connects and hangs up again and again would pile them up otherwise.
    pub(super) async fn work<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NoAnswer> {
        let worked = tokio::task::spawn_blocking(move || {
            let _permit = self.0;
            work()
        });
        let failed = |_| NoAnswer(StatusCode::INTERNAL_SERVER_ERROR, "the server failed at this".to_owned());
        worked.await.map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_turn_lasts_until_the_work_has_ended_though_nobody_waits_for_it_any_more() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let turns = Turns::new();
            let (started, has_started) = mpsc::channel();
            let (end, ends) = mpsc::channel::<()>();
            let Ok(turn) = turns.next().await else { panic!("the first has to wait") };
            let work = turn.work(move || {
                started.send(()).unwrap();
                ends.recv().unwrap();
            });
            // The client hangs up while the work is under way.
            let asked = tokio::spawn(work);
            tokio::task::yield_now().await;
            has_started.recv().unwrap();
            asked.abort();
            assert!(asked.await.is_err());
            let another = tokio::time::timeout(Duration::from_millis(50), turns.next());
            assert!(another.await.is_err(), "the work is still under way");
            end.send(()).unwrap();
            let another = turns.next().await;
            assert!(another.is_ok());
        });
    }
}
