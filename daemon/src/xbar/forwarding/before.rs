//! Routes of others that take packets before those of this program do.

use mapper_fabric::wording::with_causes;
use mapper_fib::Objects;
use mapper_machine::clock::Clock;
use mapper_machine::kernel::Kernel;
use mapper_proto::Instant;
use tracing::debug;

/// The time between two looks is at least so many times what one takes, as somebody may have a table of a million routes.
const PAUSE: u32 = 100;

/// What others have that takes packets before routes of this program do. It is theirs, and stays.
#[derive(Debug, Default)]
pub(super) struct RoutesBefore {
    /// When it may be looked for again.
    look_at: Option<Instant>,
    /// What was found last, in words.
    found: Vec<String>,
}

impl RoutesBefore {
    /// Looks for such routes, unless that was done a moment ago and takes long. Returns what there are, in words.
    pub(super) fn look(&mut self, kernel: &mut Kernel, clock: Clock, wanted: &Objects) -> &[String] {
        let start = clock.now();
        if self.look_at.is_some_and(|at| start < at) {
            return &self.found;
        }
        match kernel.before_ours(wanted) {
            Ok(before) => {
                let words = before.iter().map(|route| {
                    format!(
                        "{route} is somebody else's and takes all packets there before this program's does; if nobody needs \
                         it: `{}`",
                        route.removal()
                    )
                });
                self.found = words.collect();
            }
            Err(error) => debug!("{}", with_causes(&error)),
        }
        let end = clock.now();
        self.look_at = Some(end + (end - start) * PAUSE);
        &self.found
    }
}
