//! Tells the service manager that a daemon is ready, what it does, and that it does not hang.
//!
//! The protocol is that of sd_notify(3), which sends datagrams to the socket that `NOTIFY_SOCKET` names.
//! Without that variable, as outside of systemd, nothing is sent.

use std::time::Duration;

use mapper_proto::Instant;
use sd_notify::NotifyState;
use tracing::debug;

/// The connection to the service manager, and when its watchdog is to be fed.
///
/// The service manager kills and restarts a daemon that does not feed the watchdog for `WATCHDOG_USEC`. So
/// the loop that does the work feeds it, twice in that time.
#[derive(Debug)]
pub struct Notifier {
    /// How often the watchdog is fed; `None` if there is none.
    watchdog_interval: Option<Duration>,
    feed_at: Instant,
}

impl Notifier {
    /// A notifier as the environment asks for.
    pub fn new() -> Self {
        let watchdog_interval = sd_notify::watchdog_enabled().filter(|limit| !limit.is_zero());
        Self { watchdog_interval: watchdog_interval.map(|limit| limit / 2), feed_at: Instant::ZERO }
    }

    /// Says that the daemon runs.
    pub fn ready(&self) {
        say(&[NotifyState::Ready]);
    }

    /// Says that the daemon reads its configuration again; [`ready`](Self::ready) ends it.
    pub fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => say(&[NotifyState::Reloading, now]),
            Err(_) => say(&[NotifyState::Reloading]),
        }
    }

    /// Says that the daemon is about to end.
    pub fn stopping(&self) {
        say(&[NotifyState::Stopping]);
    }

    /// Shows what the daemon does, as one line of `systemctl status`.
    pub fn status(&self, text: &str) {
        // A line break would begin another assignment.
        say(&[NotifyState::Status(text.lines().next().unwrap_or_default())]);
    }

    /// When the watchdog is to be fed next; `None` if there is none.
    pub fn feed_at(&self) -> Option<Instant> {
        self.watchdog_interval.map(|_| self.feed_at)
    }

    /// Feeds the watchdog, if it is time.
    pub fn feed_if_due(&mut self, now: Instant) {
        if let Some(interval) = self.watchdog_interval
            && now >= self.feed_at
        {
            self.feed_at = now + interval;
            say(&[NotifyState::Watchdog]);
        }
    }
}

impl Default for Notifier {
    fn default() -> Self {
        Self::new()
    }
}

fn say(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        // The daemon works without the service manager too.
        debug!(%error, "the service manager does not hear us");
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;
    use std::path::PathBuf;
    use std::process::Command;

    use super::*;

    /// This needs an environment of its own, so the test below runs it in another process.
    #[test]
    #[ignore = "is run by the test below, under a service manager"]
    fn life_of_a_daemon() {
        let mut notifier = Notifier::new();
        assert_eq!(notifier.watchdog_interval, Some(Duration::from_secs(5)));
        assert_eq!(notifier.feed_at(), Some(Instant::ZERO));
        notifier.ready();
        let start = Instant::ZERO;
        let second = Duration::from_secs(1);
        for seconds in 0..12 {
            notifier.feed_if_due(start + seconds * second);
        }
        assert_eq!(notifier.feed_at(), Some(start + 15 * second));
        notifier.status("mapping\nREADY=1");
        notifier.reloading();
        notifier.stopping();
    }

    #[test]
    fn a_service_manager_hears_what_a_daemon_does_and_the_watchdog_is_fed_twice_in_its_time() {
        let dir = tempfile::tempdir().unwrap();
        let path: PathBuf = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let daemon = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "notify::tests::life_of_a_daemon", "--ignored"])
            .env("NOTIFY_SOCKET", &path)
            .env("WATCHDOG_USEC", "10000000")
            .env_remove("WATCHDOG_PID")
            .output()
            .unwrap();
        assert!(daemon.status.success(), "{}", String::from_utf8_lossy(&daemon.stdout));
        socket.set_nonblocking(true).unwrap();
        let mut heard = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(length) = socket.recv(&mut buffer) {
            heard.push(String::from_utf8(buffer[..length].to_vec()).unwrap());
        }
        assert!(heard[5].starts_with("RELOADING=1\nMONOTONIC_USEC="), "{heard:?}");
        heard.remove(5);
        let expected = ["READY=1\n", "WATCHDOG=1\n", "WATCHDOG=1\n", "WATCHDOG=1\n", "STATUS=mapping\n"];
        assert_eq!(heard, [&expected[..], &["STOPPING=1\n"]].concat());
    }

    #[test]
    fn without_a_service_manager_nothing_is_due() {
        if std::env::var_os("WATCHDOG_USEC").is_some() {
            return;
        }
        let mut notifier = Notifier::new();
        notifier.ready();
        notifier.feed_if_due(Instant::ZERO);
        assert_eq!((notifier.watchdog_interval, notifier.feed_at()), (None, None));
    }
}
