//! Computes routes and stores maps on other threads.

use std::future::pending;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use mapper_formats::json::NamesByAddress;
use mapper_host::{Computed, Task};
use mapper_proto::map::Map;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::agent::map_file;

/// The result of a task: the routes, and whether the map could be stored.
pub(super) type Outcome = (Computed, io::Result<()>);

/// The computation that is under way, if there is one.
#[derive(Debug, Default)]
pub(super) struct Computation {
    running: Option<JoinHandle<Outcome>>,
    /// The map that is being stored again, as more names are known.
    storing: Option<JoinHandle<io::Result<()>>>,
}

impl Computation {
    /// Begins a computation. The map is also stored in `map_file`, if there is one, with these names.
    pub(super) fn begin(&mut self, task: Task, map_file: Option<PathBuf>, names: NamesByAddress) {
        let storing = self.storing.take();
        self.running = Some(tokio::task::spawn_blocking(move || {
            // The map before must be stored by now, or it could replace this one.
            let _stored_before = storing.map(|storing| Handle::current().block_on(storing));
            let stored = map_file.map_or(Ok(()), |path| map_file::write(&path, task.map(), &names));
            (task.run(), stored)
        }));
    }

    /// Begins to store a map again, with these names. Returns false if a map is being stored already.
    pub(super) fn begin_storing(&mut self, path: PathBuf, map: Arc<Map>, names: NamesByAddress) -> bool {
        let is_free = self.running.is_none() && self.storing.as_ref().is_none_or(JoinHandle::is_finished);
        if is_free {
            self.storing = Some(tokio::task::spawn_blocking(move || map_file::write(&path, &map, &names)));
        }
        is_free
    }

    /// Waits until the computation ends, for ever if there is none. `None` if it panicked.
    pub(super) async fn finished(&mut self) -> Option<Outcome> {
        let Some(running) = &mut self.running else { return pending().await };
        let outcome = running.await.ok();
        self.running = None;
        outcome
    }
}
