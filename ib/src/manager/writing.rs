//! Writes LIDs and tables to ports and switches.

mod ending;
mod results;

use std::collections::VecDeque;

use mapper_proto::time::Instant;

use super::task::{Levels, Routes, Task};
use super::under_way::TablesOfSwitches;
use super::{Event, Stage, SubnetManager, manner};
use crate::exchange::Exchange;
use crate::mad::{MAD_BYTES, ManagerMethod, Smp};
use crate::program::{self, Phase, Purpose, Wanted};

/// The most failures of one round of writes that are told one by one.
const MOST_FAILURES_TOLD: usize = 16;

/// What tables are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Occasion {
    /// A sweep, whose tables are written as a whole.
    Sweep,
    /// A sweep for which hosts wait, so that entries that nobody waits for are left for a later time.
    PartOfSweep,
    /// Groups that changed.
    Groups,
}

/// What is waited for once all writes of a phase are confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Drain {
    Nothing,
    /// Packets that are under way by old entries of this phase.
    OldPackets,
    /// The last of them: after it no packet is under way by the former tables.
    LastOldPackets,
}

impl Drain {
    fn of(phase: &Phase) -> Self {
        match (phase.drains, phase.ends_old) {
            (false, _) => Self::Nothing,
            (true, false) => Self::OldPackets,
            (true, true) => Self::LastOldPackets,
        }
    }
}

/// What may not be written any more, as something before it could not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Blocked {
    Nothing,
    /// Multicast tables, until all their parts are read again.
    Multicast,
    /// All of the later phases.
    LaterPhases,
}

/// The writes that are left.
#[derive(Debug)]
pub(super) struct Writing {
    exchange: Exchange<Purpose>,
    /// The phases that follow.
    phases: VecDeque<Phase>,
    /// What is waited for once the exchange is empty, and until when.
    drain: Drain,
    drained_at: Option<Instant>,
    routes: Routes,
    /// The tables of before, if some change and packets may be under way by them.
    before: Option<TablesOfSwitches>,
    occasion: Occasion,
    blocks: u64,
    /// What could not be written, in words.
    failures: Vec<String>,
    blocked: Blocked,
    /// Whether a switch's mark that a port changed was cleared. A change since the sweep is then not seen by the mark.
    is_cleared: bool,
}

impl Writing {
    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<[u8; MAD_BYTES]> {
        self.exchange.poll_transmit(now)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.drained_at.or_else(|| self.exchange.poll_timeout())
    }
}

impl SubnetManager {
    /// Gives ports their LIDs, and asks for tables.
    pub(super) fn compute(&mut self, now: Instant) {
        let before = self.lids.clone();
        let without = self.lids.assign(&self.inventory.wanting(self.settings.lmc), &self.held.lids_in_use());
        for guid in without {
            self.tell(Event::Problem(format!("port {guid:#x} gets no LID: all are taken")));
        }
        if self.lids != before {
            self.tell(Event::Lids);
        }
        if let Some(until) = self.under_way.few_at(now) {
            return self.wait_for_packets(until);
        }
        let number = self.next_task;
        self.next_task += 1;
        if self.inventory.switches.is_empty() {
            self.stage = Stage::Computing { number, stand_ins: Vec::new() };
            return self.handle_routes(number, Ok(Routes { layers: 1, ..Routes::default() }), now);
        }
        let lmc = self.settings.lmc;
        let guessed = self.inventory.with_stand_ins(&self.lids, lmc);
        let (inventory, lids, guids) = guessed
            .as_ref()
            .map_or((&self.inventory, &self.lids, &[][..]), |(all, lids, guids)| (all, lids, guids));
        let first = guids.iter().filter_map(|&guid| lids.of(guid));
        let stand_ins = first.flat_map(|lid| lid..lid + (1 << lmc)).collect();
        let mut task = inventory.task(number, lids, lmc, &self.held.tables, self.engine.as_deref());
        for before in self.under_way.tables(now) {
            for switch in &mut task.switches {
                switch.before.push(before.get(&switch.guid).cloned().unwrap_or_default());
            }
        }
        let former = std::iter::once(self.held.told.as_ref()).chain(self.under_way.told(now));
        let told = former.map(Option::<&Levels>::cloned).collect();
        self.task = Some(Task { is_urgent: self.is_urgent, told, ..task });
        self.stage = Stage::Computing { number, stand_ins };
    }

    /// Takes the answer to the task of this number: tables that were proved, or why there are none.
    pub fn handle_routes(&mut self, number: u64, routes: Result<Routes, String>, now: Instant) {
        let stand_ins = match &mut self.stage {
            Stage::Computing { number: wanted, stand_ins } if *wanted == number => std::mem::take(stand_ins),
            _ => return,
        };
        let routes = match routes {
            Ok(routes) => routes.without(&stand_ins),
            Err(why) => {
                self.is_up = false;
                self.routing_failure = Some(why.clone());
                self.tell(Event::NoRoutes(why));
                return self.retry(now);
            }
        };
        self.routing_failure = None;
        match self.under_way.gone_at().filter(|_| routes.must_wait) {
            Some(until) => self.wait_for_packets(until),
            None => self.write_after_sweep(routes, now),
        }
    }

    /// Waits until packets are gone that are under way by tables of before, and then explores and computes anew.
    fn wait_for_packets(&mut self, until: Instant) {
        self.is_stale = true;
        self.stage = Stage::Waiting { until };
    }

    /// Has tables computed once more, as entries that nobody waited for were left out of those that were written.
    pub(super) fn write_the_rest(&mut self, now: Instant) {
        self.rest_at = None;
        self.is_urgent = false;
        self.began = now;
        self.sent_before = self.datagrams.sent;
        self.compute(now);
    }

    /// Writes what multicast groups that have changed need, unless something else is to be done.
    pub(super) fn regroup(&mut self, now: Instant) {
        let mut switches = self.inventory.switches.iter();
        let all_known = switches.all(|switch| {
            self.without_groups.contains(&switch.guid) || self.unknown_parts(switch).is_empty()
        });
        match self.routes.clone().filter(|_| all_known) {
            Some(routes) => {
                let phases = program::phases_of_groups(&self.inventory, &self.groups, &self.held);
                self.are_groups_new = false;
                self.begin_writing(routes, Occasion::Groups, phases, None, now);
            }
            None => self.begin_sweep(now),
        }
    }

    fn write_after_sweep(&mut self, routes: Routes, now: Instant) {
        let layers = self.routes.as_ref().map_or(0, |routes| routes.layers);
        // Where hosts wait, what they do not wait for comes once packets under way are gone.
        let (occasion, routes) =
            if self.is_urgent && routes.emptied_first.is_empty() && !routes.last.is_empty() {
                (Occasion::PartOfSweep, program::without_last(&self.inventory, routes, &self.held))
            } else {
                (Occasion::Sweep, routes)
            };
        let wanted = Wanted {
            lids: &self.lids,
            lmc: self.settings.lmc,
            key: self.settings.sweep.key,
            routes: &routes,
            groups: &self.groups,
            // With other layers, service levels change, which hosts have to ask for again.
            reregister: self.reregister || layers.max(routes.layers) > 1,
        };
        let phases = program::phases(&self.inventory, wanted, &self.held);
        let before = phases.change_tables().then(|| self.held.tables.clone());
        self.are_groups_new = self.is_urgent && routes.emptied_first.is_empty() && phases.can_put_trees_off();
        let phases = if self.are_groups_new { phases.without_trees() } else { phases };
        self.begin_writing(routes, occasion, phases.in_order(), before, now);
    }

    fn begin_writing(
        &mut self,
        routes: Routes,
        occasion: Occasion,
        phases: VecDeque<Phase>,
        before: Option<TablesOfSwitches>,
        now: Instant,
    ) {
        let writing = Writing {
            exchange: Exchange::new(manner(&self.settings), self.next_tid),
            phases,
            drain: Drain::Nothing,
            drained_at: None,
            routes,
            before,
            occasion,
            blocks: 0,
            failures: Vec::new(),
            blocked: Blocked::Nothing,
            is_cleared: false,
        };
        self.stage = Stage::Writing(Box::new(writing));
        self.go_on_writing(now);
    }

    pub(super) fn time_writing(&mut self, now: Instant) {
        while let Stage::Writing(writing) = &mut self.stage {
            let Some(done) = writing.exchange.handle_timeout(now) else { break };
            self.written(&done);
        }
        self.go_on_writing(now);
    }

    pub(super) fn answer_writing(&mut self, smp: &Smp<ManagerMethod>, now: Instant) {
        let Stage::Writing(writing) = &mut self.stage else { return };
        if let Some(done) = writing.exchange.handle(smp, program::is_taken) {
            self.written(&done);
            self.go_on_writing(now);
        }
    }

    /// Begins the next phase once all writes of the one before are confirmed.
    fn go_on_writing(&mut self, now: Instant) {
        loop {
            let Stage::Writing(writing) = &mut self.stage else { return };
            if !writing.exchange.is_empty() {
                return;
            }
            if writing.blocked == Blocked::LaterPhases {
                return self.stop_writing(now);
            }
            if writing.drain != Drain::Nothing && writing.drained_at.is_none() {
                writing.drained_at = Some(now + self.settings.drain);
            }
            if writing.drained_at.is_some_and(|at| now < at) {
                return;
            }
            if writing.drained_at.take().is_some() && writing.drain == Drain::LastOldPackets {
                writing.before = None;
            }
            let Some(phase) = writing.phases.pop_front() else { return self.stop_writing(now) };
            writing.drain = Drain::of(&phase);
            for (order, route) in phase.writes {
                let is_left_out = writing.blocked == Blocked::Multicast
                    && matches!(order.purpose, Purpose::Multicast { .. });
                if !is_left_out {
                    writing.exchange.order(order, route);
                }
            }
        }
    }

    /// Waits until it is time to look again, or not at all if something is to be done. A look at everything
    /// that is put off because of what changed meanwhile keeps its moment.
    pub(super) fn wait_for_more(&mut self, now: Instant) {
        let next = now + self.settings.watch_interval;
        let moments = [self.recheck_at, self.rest_at];
        let until = if self.is_more() { now } else { moments.into_iter().flatten().fold(next, Instant::min) };
        self.stage = Stage::Waiting { until };
    }
}
