//! The time since a daemon began, as the protocol counts it.

use std::future::pending;

use mapper_proto::Instant;

/// A clock that shows 0 when it is made. It goes on while the process is stopped, and no change of the date
/// moves it.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: tokio::time::Instant,
}

impl Clock {
    /// A clock that begins now.
    pub fn start() -> Self {
        Self { start: tokio::time::Instant::now() }
    }

    /// The time that it shows.
    pub fn now(&self) -> Instant {
        Instant::ZERO + self.start.elapsed()
    }

    /// Waits until it shows `at`, for ever if there is no such moment. Needs a tokio runtime.
    pub async fn sleep_until(&self, at: Option<Instant>) {
        match at.and_then(|at| self.start.checked_add(at.since(Instant::ZERO))) {
            Some(at) => tokio::time::sleep_until(at).await,
            None => pending().await,
        }
    }
}
