//! Compares what the kernel holds with what it is to hold, and puts right what others changed.

use std::collections::BTreeSet;
use std::future::pending;
use std::time::Duration;

use mapper_fabric::wording::with_causes;
use mapper_fib::takeover::Target;
use mapper_fib::{Change, Objects, changes};
use mapper_machine::kernel::Notice;
use tracing::{info, warn};

use super::Forwarding;

/// How often what is installed is compared with what was meant, even if nobody says that anything has changed.
const RECHECK_EVERY: Duration = Duration::from_secs(10);
/// How long it takes from a notice to the comparison, so that a burst of notices makes one.
const RECHECK_AFTER_NOTICE: Duration = Duration::from_millis(20);
/// How long it takes until what the kernel refused is tried again.
pub(super) const RETRY_AFTER: Duration = Duration::from_millis(500);

impl Forwarding {
    /// Waits until it is time for [`Self::recheck`]: somebody changed something of `wanted`, or some seconds have
    /// passed.
    pub(crate) async fn recheck_due(&mut self, wanted: impl Fn() -> Objects) {
        loop {
            tokio::select! {
                () = self.timer.sleep_until(Some(self.recheck_at)) => return,
                notices = self.monitor.notices() => match notices {
                    Ok(notices) => {
                        let wanted = wanted();
                        let touched = |notice: &Notice| notice.concerns(&wanted) || self.connected.are_concerned(notice);
                        if notices.iter().any(touched) {
                            self.look_soon();
                        }
                    }
                    Err(error) => {
                        warn!("{}", with_causes(&error));
                        return pending().await;
                    }
                },
            }
        }
    }

    /// Makes [`Self::recheck_due`] return soon, as the kernel takes some objects away without a word when an interface
    /// changes.
    pub(crate) fn look_soon(&mut self) {
        self.recheck_at = self.recheck_at.min(self.clock.now() + RECHECK_AFTER_NOTICE);
    }

    /// Compares what the kernel holds with what it is to hold, and puts right what differs; likewise its settings. `target`
    /// says what that is, given what is there, and `wanted` what this run wants of it.
    pub(crate) fn recheck(&mut self, wanted: &Objects, target: impl FnOnce(&Objects) -> Target) {
        self.recheck_at = self.clock.now() + RECHECK_EVERY;
        let mut troubles = Vec::new();
        match self.settings.drifts() {
            Ok(drifts) if drifts.is_empty() => {}
            Ok(drifts) => {
                let failed = self.settings.keep(&self.needs);
                // Settings of the kernel that cannot be made are among the troubles, which are told once.
                if failed.is_empty() {
                    self.put_right += drifts.len() as u64;
                    drifts.iter().for_each(|drift| warn!("{drift}: set again"));
                }
                troubles.extend(failed.iter().map(|error| with_causes(error)));
            }
            Err(error) => troubles.push(with_causes(&error)),
        }
        troubles.extend(self.keep_strangers_out());
        self.speedups.recheck(&mut self.kernel);
        match self.kernel.dump() {
            Ok(there) => troubles.extend(self.put_right(&there, wanted, &target(&there))),
            Err(error) => troubles.push(with_causes(&error)),
        }
        let (put_back, failed) = self.connected.put_right(&mut self.kernel);
        self.put_right += put_back;
        troubles.extend(failed);
        troubles.extend_from_slice(self.before.look(&mut self.kernel, self.clock, wanted));
        self.tell(troubles);
    }

    /// Puts right what differs. Returns what the kernel refuses.
    fn put_right(&mut self, there: &Objects, wanted: &Objects, target: &Target) -> Vec<String> {
        let changes = changes(there, &target.objects);
        // Objects that an earlier run of this program left do not count as changed by others.
        let is_of_others = |change: &Change| !target.clears_left || change.puts_one_of(wanted);
        if changes.is_empty() {
            return Vec::new();
        }
        let of_others = changes.iter().filter(|change| is_of_others(change)).count();
        self.put_right += of_others as u64;
        self.renewals.begin_another();
        let failed = self.kernel.apply(&changes);
        // Objects that the kernel refuses are tried again soon, and told once.
        let refused: BTreeSet<usize> = failed.iter().map(|(at, _)| *at).collect();
        let done = changes.iter().enumerate().filter(|(at, _)| !refused.contains(at));
        let (mended, taken_away): (Vec<_>, Vec<_>) = done.partition(|(_, change)| is_of_others(change));
        if !mended.is_empty() {
            info!(objects = mended.len(), "put right what the kernel held otherwise than it was to");
        }
        if !taken_away.is_empty() {
            info!(objects = taken_away.len(), "took away what an earlier run had left in the kernel");
        }
        if !failed.is_empty() {
            self.recheck_at = self.clock.now() + RETRY_AFTER;
        }
        /// As many as a board has room for.
        const MOST: usize = 8;
        failed.iter().take(MOST).map(|(_, error)| with_causes(error)).collect()
    }

    /// Keeps what is wrong, and logs what is new of it.
    pub(super) fn tell(&mut self, troubles: Vec<String>) {
        for trouble in troubles.iter().filter(|trouble| !self.troubles.contains(trouble)) {
            warn!("{trouble}");
        }
        self.troubles = troubles;
    }
}
