//! Waits for a time of a [`Clock`] by a timer of the kernel.
//!
//! Each of tokio's timers that a daemon begins to wait for costs a system call and a turn of the loop, and each loop begins
//! anew with all of them; and they wake the thread on the way to a time that is farther off. A timer of the kernel is set only
//! when its time changes, and wakes the thread once.

use std::cell::{Cell, OnceCell};
use std::fs::File;
use std::future::pending;
use std::io;
use std::time::Duration;

use mapper_proto::Instant;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use crate::clock::Clock;
use crate::link::readiness;

/// Timers go off at whole multiples of this.
const STEP: Duration = Duration::from_millis(1);

/// One timer, for one place in a program that waits for one time at a time.
#[derive(Debug)]
pub struct Timer {
    clock: Clock,
    /// The timer of the kernel, made when it is first waited for; `None` if there is none to be had.
    kernels: OnceCell<Option<AsyncFd<File>>>,
    /// The time that it is set for.
    set_for: Cell<Option<Instant>>,
}

impl Timer {
    /// A timer for times of this clock.
    pub const fn new(clock: Clock) -> Self {
        Self { clock, kernels: OnceCell::new(), set_for: Cell::new(None) }
    }

    /// Waits until the clock shows `at`, or for ever if that is `None`; one to two milliseconds longer, so that what is due
    /// at nearly the same time is done together, and an answer counts that a busy machine gave just after its time. Needs a
    /// tokio runtime. It may be given up and called again, with another time. A process that can have no more descriptors
    /// waits by a timer of tokio.
    pub async fn sleep_until(&self, at: Option<Instant>) {
        let Some(at) = at else { return pending().await };
        let Some(kernels) = self.kernels.get_or_init(|| make().ok()) else {
            return self.clock.sleep_until(Some(at)).await;
        };
        loop {
            let now = self.clock.now();
            if now >= at {
                return;
            }
            if self.set_for.get() != Some(at) {
                if set(kernels.get_ref(), late(at).since(now)).is_err() {
                    return self.clock.sleep_until(Some(at)).await;
                }
                self.set_for.set(Some(at));
            }
            let Ok(mut ready) = kernels.readable().await else {
                return self.clock.sleep_until(Some(at)).await;
            };
            // How often it went off is of no interest, and it may have been set anew since, so the clock decides.
            let mut times = [0; 8];
            if rustix::io::read(kernels.get_ref(), &mut times).is_ok() {
                self.set_for.set(None);
            }
            ready.clear_ready();
        }
    }
}

/// When a timer for this time goes off: at the second whole millisecond behind it.
fn late(at: Instant) -> Instant {
    let since = at.since(Instant::ZERO);
    let past = Duration::from_nanos(u64::from(since.subsec_nanos()) % STEP.as_nanos() as u64);
    at + (STEP * 2).saturating_sub(past)
}

fn make() -> io::Result<AsyncFd<File>> {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    readiness::watch_file(File::from(timerfd_create(TimerfdClockId::Monotonic, flags)?))
}

/// Sets a timer to go off once, so long from now.
fn set(timer: &File, after: Duration) -> io::Result<()> {
    let once = Itimerspec {
        it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
        it_value: Timespec {
            tv_sec: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: after.subsec_nanos().into(),
        },
    };
    timerfd_settime(timer, TimerfdTimerFlags::empty(), &once)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
    }

    #[test]
    fn it_goes_off_at_its_time_and_not_before() {
        run(async {
            let clock = Clock::start();
            let timer = Timer::new(clock);
            for after_us in [1, 300, 1, 2_000, 0] {
                let at = clock.now() + Duration::from_micros(after_us);
                timer.sleep_until(Some(at)).await;
                assert!(clock.now() >= at);
            }
        });
    }

    #[test]
    fn a_wait_that_was_given_up_for_an_earlier_or_later_time_neither_ends_early_nor_never() {
        run(async {
            let clock = Clock::start();
            let timer = Timer::new(clock);
            for first_ms in [1, 3_600_000] {
                let first = clock.now() + Duration::from_millis(first_ms);
                tokio::select! {
                    biased;
                    () = timer.sleep_until(Some(first)) => {}
                    () = tokio::task::yield_now() => {}
                }
                let at = clock.now() + Duration::from_millis(3);
                timer.sleep_until(Some(at)).await;
                assert!(clock.now() >= at);
            }
            tokio::select! {
                () = timer.sleep_until(None) => panic!("nothing was to be waited for"),
                () = timer.sleep_until(Some(clock.now() + Duration::from_millis(2))) => {}
            }
        });
    }
}
