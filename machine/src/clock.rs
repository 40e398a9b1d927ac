//! The time since a daemon's start, in the protocol's type.

use std::future::pending;

use mapper_proto::Instant;

/// A clock that shows 0 when it is made. It runs on while the process is stopped, and setting the machine's
/// clock does not change it.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: tokio::time::Instant,
}

impl Clock {
    /// A clock that shows 0 now.
    pub fn start() -> Self {
        Self { start: tokio::time::Instant::now() }
    }

    /// The time that it shows.
    pub fn now(&self) -> Instant {
        Instant::ZERO + self.start.elapsed()
    }

    /// Waits until the clock shows `at`, or for ever if that is `None`. Needs a tokio runtime.
    pub async fn sleep_until(&self, at: Option<Instant>) {
        match at.and_then(|at| self.start.checked_add(at.since(Instant::ZERO))) {
            Some(at) => tokio::time::sleep_until(at).await,
            None => pending().await,
        }
    }
}
