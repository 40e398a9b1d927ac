//! When the routes that hosts compute are there.

use std::collections::BTreeMap;
use std::sync::Arc;

use mapper_host::routes::Basis;
use mapper_host::{Computed, Task};
use mapper_proto::Instant;
use mapper_proto::map::{Map, MapVersion};
use rayon::prelude::*;

use super::World;
use super::queue::What;

/// The least number of tasks for which other threads are worth their cost.
const FEW_TASKS: usize = 32;

/// A computation under way.
#[derive(Debug)]
pub(super) struct Pending {
    due: Instant,
    work: Work,
}

#[derive(Debug)]
enum Work {
    ToDo(Task),
    /// It was computed before it was due, together with that of another host that was due earlier.
    Done(Computed),
}

/// The maps that hosts share, and what is derived from them. Hosts with equal maps share one copy.
#[derive(Debug, Default)]
pub(super) struct SharedMaps {
    maps: BTreeMap<(MapVersion, u64), Arc<Map>>,
    bases: Vec<Arc<Basis>>,
}

impl SharedMaps {
    /// The copy of a map that all hosts share. `digest` is that of the map.
    fn share(&mut self, digest: Option<u64>, map: Arc<Map>) -> Arc<Map> {
        let Some(digest) = digest else { return map };
        // Maps that nobody holds any more go first, so no more are kept than are in use.
        self.maps.retain(|_, map| Arc::strong_count(map) > 1);
        Arc::clone(self.maps.entry((map.version, digest)).or_insert(map))
    }

    /// What is derived from a map, once for all hosts that share it. `None` if the map makes no sense, which
    /// each host finds out by itself.
    fn basis(&mut self, map: &Arc<Map>) -> Option<Arc<Basis>> {
        self.bases.retain(|basis| Arc::strong_count(basis) > 1);
        if let Some(found) = self.bases.iter().find(|basis| Arc::ptr_eq(basis.map(), map)) {
            return Some(Arc::clone(found));
        }
        let basis = Arc::new(Basis::new(Arc::clone(map)).ok()?);
        self.bases.push(Arc::clone(&basis));
        Some(basis)
    }
}

impl World {
    /// Begins the computation of a host's routes, which will be there after
    /// [`Timing::compute`](crate::fabric::Timing).
    pub(super) fn begin_routes(&mut self, host: u32, task: Task) {
        let due = self.now + self.options.timing.compute;
        self.hosts[host as usize].pending = Some(Pending { due, work: Work::ToDo(task) });
        self.queue.push(due, What::Routes { host });
    }

    /// Has a host that has just installed a map use the copy that all hosts share.
    pub(super) fn share_map(&mut self, host: u32) {
        let Some(node) = &mut self.hosts[host as usize].node else { return };
        let digest = node.map_digest();
        let Some(host) = node.host_mut() else { return };
        if let Some(map) = host.newest_map().cloned() {
            host.share_map(&self.shared_maps.share(digest, map));
        }
    }

    /// Hands a host the routes that are due there. If they are not computed yet, they are computed now, with
    /// all others that are under way.
    pub(super) fn finish_routes(&mut self, host: u32) {
        let index = host as usize;
        match &self.hosts[index].pending {
            Some(Pending { due, work: Work::ToDo(_) }) if *due == self.now => self.compute_pending(),
            Some(Pending { due, .. }) if *due == self.now => {}
            _ => return,
        }
        let slot = &mut self.hosts[index];
        let Some(Pending { work: Work::Done(computed), .. }) = slot.pending.take() else { return };
        if let Some(node) = &mut slot.node {
            node.handle_computed(self.now, computed);
        }
        self.drain(host);
    }

    fn compute_pending(&mut self) {
        let mut tasks = Vec::new();
        for (i, slot) in self.hosts.iter_mut().enumerate() {
            if let Some(Pending { due, work: Work::ToDo(task) }) =
                slot.pending.take_if(|pending| pending.is_to_do())
            {
                let basis = self.shared_maps.basis(task.map());
                tasks.push((i, due, task, basis));
            }
        }
        let compute = |(i, due, task, basis): (usize, Instant, Task, Option<Arc<Basis>>)| {
            let computed = basis.map_or_else(|| task.clone().run(), |basis| task.clone().run_on(&basis));
            (i, Pending { due, work: Work::Done(computed) })
        };
        // A few tasks are done sooner than other threads are woken.
        let done: Vec<_> = if tasks.len() < FEW_TASKS {
            tasks.into_iter().map(compute).collect()
        } else {
            tasks.into_par_iter().map(compute).collect()
        };
        for (i, pending) in done {
            self.hosts[i].pending = Some(pending);
        }
    }
}

impl Pending {
    const fn is_to_do(&self) -> bool {
        matches!(self.work, Work::ToDo(_))
    }
}
