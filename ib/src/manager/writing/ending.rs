//! What becomes of the subnet once all is written, or as much as may be.

use mapper_proto::time::Instant;

use super::{Blocked, MOST_FAILURES_TOLD, Occasion, Stage, SubnetManager, Writing};
use crate::manager::task::Levels;
use crate::manager::under_way::FormerTables;
use crate::manager::{Event, SubnetCount};

impl SubnetManager {
    /// Ends writing, as all is written, or as much as may be.
    pub(super) fn stop_writing(&mut self, now: Instant) {
        let waiting = Stage::Waiting { until: now + self.settings.watch_interval };
        let Stage::Writing(writing) = std::mem::replace(&mut self.stage, waiting) else { return };
        let mut writing = *writing;
        self.take_tids(writing.exchange.next_tid());
        self.counts.add(SubnetCount::Blocks, writing.blocks);
        if let Some(tables) = writing.before.take() {
            let told = self.held.told.clone();
            self.under_way.leave(FormerTables { tables, told }, now + self.settings.drain);
        }
        let failed = writing.failures.len();
        self.tell_failures(std::mem::take(&mut writing.failures));
        if writing.occasion != Occasion::Groups || failed > 0 {
            self.is_up = failed == 0;
        }
        if writing.blocked == Blocked::LaterPhases {
            return self.retry(now);
        }
        if writing.occasion == Occasion::Groups {
            let (groups, parts) = (self.groups.members.len(), writing.blocks);
            self.tell(Event::Groups { groups, parts });
            return if failed > 0 { self.retry(now) } else { self.wait_for_more(now) };
        }
        let is_cleared = writing.is_cleared;
        self.come_up(writing, failed, now);
        if failed > 0 {
            self.retry(now);
        } else if self.is_stale {
            self.begin_sweep(now);
        } else {
            self.recheck_what_is_unsure(is_cleared, now);
            self.wait_for_more(now);
        }
    }

    /// Tells what could not be written, and keeps it for the status.
    pub(in crate::manager) fn tell_failures(&mut self, failures: Vec<String>) {
        for failure in failures.iter().take(MOST_FAILURES_TOLD) {
            self.tell(Event::Problem(failure.clone()));
        }
        if let Some(more @ 1..) = failures.len().checked_sub(MOST_FAILURES_TOLD) {
            self.tell(Event::Problem(format!("{more} more could not be written")));
        }
        self.unwritten = failures;
    }

    /// Takes note that the tables of a sweep are in force, but for what failed, and says so.
    fn come_up(&mut self, writing: Writing, failed: usize, now: Instant) {
        let Writing { routes, occasion, blocks, .. } = writing;
        let adapters = self.inventory.adapters.iter().filter(|adapter| !adapter.is_away).count();
        let size = [failed, self.inventory.switches.len(), adapters];
        let is_as_told =
            self.told_up == Some(size) && self.engine.as_deref().unwrap_or_default() == routes.engine;
        self.told_up = Some(size);
        self.engine = Some(routes.engine.clone()).filter(|engine| !engine.is_empty());
        self.tell(Event::Up {
            failed,
            switches: self.inventory.switches.len(),
            adapters,
            engine: routes.engine.clone(),
            blocks,
            sent: self.datagrams.sent - self.sent_before,
            took: now.since(self.began),
            is_news: !is_as_told || blocks > 0,
        });
        self.counts.count(SubnetCount::Ups);
        self.rest_at = (occasion == Occasion::PartOfSweep).then(|| now + self.settings.drain);
        self.reregister = false;
        self.tell_levels(&routes.levels, now);
        self.routes = Some(routes);
        self.administer(now);
    }

    /// Has everything looked at again soon if something is not sure: a node that did not answer may do so the next time, and
    /// changes that happened while marks were cleared show then.
    fn recheck_what_is_unsure(&mut self, is_cleared: bool, now: Instant) {
        let lacks_parts = self.inventory.switches.iter().any(|switch| !self.unknown_parts(switch).is_empty());
        if is_cleared || lacks_parts || !self.problems.is_empty() || self.has_silent_manager {
            let at = now + self.settings.watch_interval;
            self.recheck_at = Some(self.recheck_at.unwrap_or(at));
        }
    }

    /// Takes note that hosts are told these levels from now on. Those of before they use until they have asked again.
    fn tell_levels(&mut self, levels: &Levels, now: Instant) {
        let told = self.held.told.replace(levels.clone());
        if told.as_ref().is_some_and(|told| told != levels) {
            let tables = self.held.tables.clone();
            self.under_way.leave(FormerTables { tables, told }, now + self.settings.drain);
        }
    }
}
