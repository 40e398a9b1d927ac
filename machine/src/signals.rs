//! The signals that a daemon follows.

use std::io;

use tokio::signal::unix::{self, SignalKind};

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM, SIGINT: leave.
    Stop,
    /// SIGHUP: read the configuration again.
    Reload,
    /// SIGUSR1: open the log file again, as it was moved away.
    ReopenLog,
}

/// Listens to all of them.
#[derive(Debug)]
pub struct Signals {
    terminate: unix::Signal,
    interrupt: unix::Signal,
    hang_up: unix::Signal,
    user: unix::Signal,
}

impl Signals {
    /// Begins to listen. Needs a tokio runtime.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: unix::signal(SignalKind::terminate())?,
            interrupt: unix::signal(SignalKind::interrupt())?,
            hang_up: unix::signal(SignalKind::hangup())?,
            user: unix::signal(SignalKind::user_defined1())?,
        })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::Stop,
            _ = self.interrupt.recv() => Signal::Stop,
            _ = self.hang_up.recv() => Signal::Reload,
            _ = self.user.recv() => Signal::ReopenLog,
        }
    }
}
