//! The signals that a daemon follows.

use std::io;

use tokio::signal::unix::{self, SignalKind};

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// The daemon is to end (SIGTERM, SIGINT).
    Stop,
    /// The daemon is to read its configuration again (SIGHUP).
    Reload,
    /// The daemon is to open its log file anew, as it was moved away (SIGUSR1).
    ReopenLog,
}

/// Listens to all signals that a daemon follows.
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

    /// Waits for the next signal.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::Stop,
            _ = self.interrupt.recv() => Signal::Stop,
            _ = self.hang_up.recv() => Signal::Reload,
            _ = self.user.recv() => Signal::ReopenLog,
        }
    }
}
