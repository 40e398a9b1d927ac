//! Routes computed beside the loop.

use std::future::pending;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use mapper_host::{Computed, Task};
use mapper_proto::map::Map;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::daemon::map_file;
use crate::formats::json::Names;

/// What comes of a task: the routes, and whether the map could be stored.
pub(super) type Outcome = (Computed, io::Result<()>);

/// The computation that runs, if one does.
#[derive(Debug, Default)]
pub(super) struct Computation {
    running: Option<JoinHandle<Outcome>>,
    /// A map that is being stored again, with more names.
    storing: Option<JoinHandle<io::Result<()>>>,
}

impl Computation {
    /// Begins. `map_file` is where the map is stored, too, with these names.
    pub(super) fn begin(&mut self, task: Task, map_file: Option<PathBuf>, names: Names) {
        let storing = self.storing.take();
        self.running = Some(tokio::task::spawn_blocking(move || {
            // The map before this one must not take its place.
            let _stored_before = storing.map(|storing| Handle::current().block_on(storing));
            let stored = map_file.map_or(Ok(()), |path| map_file::write(&path, task.map(), &names));
            (task.run(), stored)
        }));
    }

    /// Stores a map once more, with these names. False if a map is just being stored.
    pub(super) fn begin_storing(&mut self, path: PathBuf, map: Arc<Map>, names: Names) -> bool {
        let is_free = self.running.is_none() && self.storing.as_ref().is_none_or(JoinHandle::is_finished);
        if is_free {
            self.storing = Some(tokio::task::spawn_blocking(move || map_file::write(&path, &map, &names)));
        }
        is_free
    }

    /// Waits for the end of the one that runs, for ever if there is none. `None` if it broke off.
    pub(super) async fn finished(&mut self) -> Option<Outcome> {
        let Some(running) = &mut self.running else { return pending().await };
        let outcome = running.await.ok();
        self.running = None;
        outcome
    }
}
