//! The computation of a map's routes, which whoever drives the host carries out.

use std::sync::Arc;

use mapper_proto::Mac;
use mapper_proto::map::Map;
use mapper_routing::RouteOptions;

use crate::routes::{Basis, RouteTable, RouteTableError};

/// A map whose routes are to be computed, from [`Host::poll_task`](crate::Host::poll_task). Running it takes
/// up to a second and touches nothing of the host, so it may be run on another thread.
#[derive(Debug, Clone)]
pub struct Task {
    /// Which of this host's tasks it is.
    number: u64,
    map: Arc<Map>,
    own: Mac,
    options: RouteOptions,
    /// Whether routes by destination are wanted, too.
    by_destination: bool,
}

/// The result of a [`Task`], for [`Host::handle_computed`](crate::Host::handle_computed).
#[derive(Debug)]
pub struct Computed {
    pub(crate) number: u64,
    pub(crate) map: Arc<Map>,
    pub(crate) table: Result<RouteTable, RouteTableError>,
}

impl Computed {
    /// Why there are no routes for the map, and the map; `None` if there are.
    pub fn failure(&self) -> Option<(&RouteTableError, &Map)> {
        Some((self.table.as_ref().err()?, &self.map))
    }
}

impl Task {
    /// The map.
    pub fn map(&self) -> &Arc<Map> {
        &self.map
    }

    /// Computes and proves the routes.
    pub fn run(self) -> Computed {
        let basis = Basis::new(Arc::clone(&self.map)).map(Arc::new);
        let table = match basis {
            Ok(basis) => self.compute(&basis),
            Err(error) => Err(error.into()),
        };
        Computed { number: self.number, map: self.map, table }
    }

    /// Does the same as [`Self::run`], for those who run many hosts. `basis` must be that of a map equal to
    /// this task's, which it replaces.
    pub fn run_on(self, basis: &Arc<Basis>) -> Computed {
        debug_assert_eq!(self.map.version, basis.map().version, "the basis of another map");
        let table = self.compute(basis);
        Computed { number: self.number, map: Arc::clone(basis.map()), table }
    }

    fn compute(&self, basis: &Arc<Basis>) -> Result<RouteTable, RouteTableError> {
        let table = RouteTable::compute(basis, self.own, &self.options)?;
        if self.by_destination { table.with_next_hops() } else { Ok(table) }
    }
}

/// The computation under way, of which there is one at most, and the newest map that came meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Computation {
    is_running: bool,
    waiting: Option<Task>,
    /// The number of the newest task.
    number: u64,
}

impl Computation {
    /// Asks for the routes of a map, which takes the place of a map that still waits.
    pub(crate) fn ask(&mut self, map: Arc<Map>, own: Mac, options: RouteOptions, by_destination: bool) {
        self.number += 1;
        self.waiting = Some(Task { number: self.number, map, own, options, by_destination });
    }

    /// The next task, unless one is under way.
    pub(crate) fn poll(&mut self) -> Option<Task> {
        let task = if self.is_running { None } else { self.waiting.take() };
        self.is_running |= task.is_some();
        task
    }

    /// Notes that the task under way has ended. Returns whether `number` is that of the newest task.
    pub(crate) fn end(&mut self, number: u64) -> bool {
        self.is_running = false;
        self.number == number
    }

    /// Notes that the task under way ended without a result. Returns whether it was the newest task.
    pub(crate) fn lose(&mut self) -> bool {
        self.is_running = false;
        self.waiting.is_none()
    }

    /// Has the task under way no longer count as the newest one, and drops the one that waits.
    pub(crate) fn forget(&mut self) {
        self.number += 1;
        self.waiting = None;
    }

    /// Replaces the map of the waiting task by an equal one that is shared with others, to save memory.
    pub(crate) fn share_map(&mut self, map: &Arc<Map>) {
        if let Some(task) = self.waiting.as_mut().filter(|task| task.map.version == map.version) {
            task.map = Arc::clone(map);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(computation: &mut Computation, counter: u32) {
        let mut map = Map::default();
        map.version.counter = counter;
        computation.ask(Arc::new(map), Mac::default(), RouteOptions::default(), false);
    }

    #[test]
    fn one_runs_at_a_time_and_of_those_that_wait_the_last_counts() {
        let mut computation = Computation::default();
        assert!(computation.poll().is_none());
        ask(&mut computation, 1);
        let first = computation.poll().unwrap();
        ask(&mut computation, 2);
        ask(&mut computation, 3);
        assert!(computation.poll().is_none(), "one is under way");
        assert!(!computation.end(first.number), "a newer map came meanwhile");
        let next = computation.poll().unwrap();
        assert_eq!((next.number, next.map.version.counter), (3, 3));
        assert!(computation.end(next.number));
        assert!(computation.poll().is_none());
    }

    #[test]
    fn what_is_forgotten_is_not_the_newest_when_it_ends() {
        let mut computation = Computation::default();
        ask(&mut computation, 1);
        let task = computation.poll().unwrap();
        computation.forget();
        assert!(!computation.end(task.number));
    }

    #[test]
    fn what_broke_off_was_the_newest_unless_another_waits() {
        let mut computation = Computation::default();
        ask(&mut computation, 1);
        assert!(computation.poll().is_some() && computation.lose());
        ask(&mut computation, 2);
        assert!(computation.poll().is_some());
        ask(&mut computation, 3);
        assert!(!computation.lose());
        assert!(computation.poll().is_some());
    }
}
