//! Exploring the subnet anew.

use mapper_proto::time::Instant;

use super::inventory::Inventory;
use super::{Stage, SubnetCount, SubnetManager};
use crate::mad::{Attribute, SmState};
use crate::sweep::{self, Sweep};

impl SubnetManager {
    /// Begins to explore the whole subnet.
    pub(super) fn begin_sweep(&mut self, now: Instant) {
        self.is_stale = false;
        self.recheck_at = None;
        self.changed.clear();
        self.is_urgent = false;
        self.rest_at = None;
        self.activity = self.activity.wrapping_add(1);
        self.began = now;
        self.sent_before = self.datagrams.sent;
        self.counts.count(SubnetCount::Sweeps);
        let sweep = Sweep::with_transactions_from(self.settings.sweep, self.next_tid);
        self.stage = Stage::Sweeping(Box::new(sweep));
    }

    /// Ends a sweep that is done.
    pub(super) fn end_sweep(&mut self, now: Instant) {
        let Stage::Sweeping(sweep) = &mut self.stage else { return };
        if !sweep.is_done() {
            return;
        }
        self.take_tids(sweep_tid(&self.stage));
        let stage =
            std::mem::replace(&mut self.stage, Stage::Waiting { until: now + self.settings.retry_delay });
        let Stage::Sweeping(sweep) = stage else { return };
        let found = sweep.finish();
        let problems: Vec<String> = found.problems.iter().map(|problem| found.tell(problem)).collect();
        self.tell_problems(problems);
        self.is_somebody_silent = found.problems.iter().any(|problem| {
            problem.attribute != Attribute::NodeDescription && problem.kind == sweep::ProblemKind::Silent
        });
        if found.nodes.is_empty() {
            self.is_stale = true;
            return;
        }
        let mut inventory = Inventory::of(&found);
        self.held.keep_only(&inventory.nodes);
        if self.role == SmState::Master {
            inventory.keep_places(&self.inventory);
        }
        self.inventory = inventory;
        self.begin_reading(now);
    }

    /// Says that the subnet may have changed, so that it is explored as soon as nothing else is under way.
    pub(super) fn suspect(&mut self, now: Instant) {
        self.is_stale = true;
        if let (Stage::Waiting { until }, SmState::Master) = (&mut self.stage, self.role) {
            *until = now;
        }
        self.end_watch(now);
    }
}

/// The number of the next transaction of the sweep.
fn sweep_tid(stage: &Stage) -> u32 {
    match stage {
        Stage::Sweeping(sweep) => sweep.next_tid(),
        _ => 1,
    }
}
