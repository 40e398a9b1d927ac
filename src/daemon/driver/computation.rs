//! Routes of a map, computed beside the loop.

use std::future::pending;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use mapper_proto::Mac;
use mapper_proto::map::Map;
use tokio::task::JoinHandle;

use crate::daemon::map_file;
use mapper_host::routes::{RouteOptions, RouteTable, RouteTableError};

/// A map to be routed.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) map: Arc<Map>,
    /// To whom the agent itself needs a route.
    pub(super) neighbours: Vec<Mac>,
    pub(super) mac: Mac,
    pub(super) options: RouteOptions,
    /// Where the map is stored, too.
    pub(super) map_file: Option<PathBuf>,
}

/// What comes of a map: its routes, or why there are none.
#[derive(Debug)]
pub(super) struct Computed {
    pub(super) map: Arc<Map>,
    pub(super) neighbours: Vec<Mac>,
    pub(super) table: Result<RouteTable, RouteTableError>,
    pub(super) stored: io::Result<()>,
}

/// One computation at a time, and the newest map that came meanwhile.
#[derive(Debug, Default)]
pub(super) struct Computation {
    running: Option<JoinHandle<Computed>>,
    waiting: Option<Task>,
}

impl Computation {
    /// Begins, or waits for the one that runs. Of those that wait only the last counts.
    pub(super) fn begin(&mut self, task: Task) {
        if self.running.is_some() {
            self.waiting = Some(task);
        } else {
            self.running = Some(tokio::task::spawn_blocking(|| compute(task)));
        }
    }

    /// Waits for the end of the one that runs, for ever if there is none, and begins the next.
    /// `None` if it broke off.
    pub(super) async fn finished(&mut self) -> Option<Computed> {
        let Some(running) = &mut self.running else { return pending().await };
        let computed = running.await.ok();
        self.running = None;
        if let Some(task) = self.waiting.take() {
            self.begin(task);
        }
        computed
    }
}

fn compute(Task { map, neighbours, mac, options, map_file }: Task) -> Computed {
    let stored = map_file.map_or(Ok(()), |path| map_file::write(&path, &map));
    let table = RouteTable::compute(&map, mac, options);
    Computed { map, neighbours, table, stored }
}
