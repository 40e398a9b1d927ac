//! Routes computed beside the loop.

use std::future::pending;
use std::io;
use std::path::PathBuf;

use mapper_host::{Computed, Task};
use tokio::task::JoinHandle;

use crate::daemon::map_file;

/// What comes of a task: the routes, and whether the map could be stored.
pub(super) type Outcome = (Computed, io::Result<()>);

/// The computation that runs, if one does.
#[derive(Debug, Default)]
pub(super) struct Computation {
    running: Option<JoinHandle<Outcome>>,
}

impl Computation {
    /// Begins. `map_file` is where the map is stored, too.
    pub(super) fn begin(&mut self, task: Task, map_file: Option<PathBuf>) {
        self.running = Some(tokio::task::spawn_blocking(move || {
            let stored = map_file.map_or(Ok(()), |path| map_file::write(&path, task.map()));
            (task.run(), stored)
        }));
    }

    /// Waits for the end of the one that runs, for ever if there is none. `None` if it broke off.
    pub(super) async fn finished(&mut self) -> Option<Outcome> {
        let Some(running) = &mut self.running else { return pending().await };
        let outcome = running.await.ok();
        self.running = None;
        outcome
    }
}
