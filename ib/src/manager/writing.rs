//! Writes LIDs and tables to ports and switches.

use std::collections::VecDeque;

use mapper_proto::time::Instant;

use super::task::{Levels, Routes, Task};
use super::under_way::{FormerTables, TablesOfSwitches};
use super::{Event, Stage, SubnetCount, SubnetManager, manner, why};
use crate::exchange::{Done, Exchange, Failure};
use crate::mad::{MAD_BYTES, ManagerMethod, MulticastTable, PortSettings, PortState, Smp, SwitchInfo};
use crate::program::{self, BLOCK, NO_PORT, Phase, Purpose, Wanted};

/// The writes that are left.
#[derive(Debug)]
pub(super) struct Writing {
    exchange: Exchange<Purpose>,
    /// The phases that follow.
    phases: VecDeque<Phase>,
    /// Whether packets under way are waited for once the exchange is empty.
    drains: bool,
    drained_at: Option<Instant>,
    /// Whether no packet goes by an old entry any more after that.
    ends_old: bool,
    routes: Routes,
    /// The tables of before, if some change and packets may be under way by them.
    before: Option<TablesOfSwitches>,
    /// Whether entries that nobody waits for are left for a later time.
    is_part: bool,
    blocks: u64,
    /// What could not be written, in words.
    failures: Vec<String>,
    /// Whether a table could not be written, so that nothing of a later phase may be written.
    is_broken: bool,
    /// Whether a part of a multicast table could not be written, so that no other part is written before all
    /// are read again.
    is_multicast_broken: bool,
    /// Whether this is for groups that changed, and not after a sweep.
    is_of_groups: bool,
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
            None => self.write(routes, false, now),
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
            Some(routes) => self.write(routes, true, now),
            None => self.begin_sweep(now),
        }
    }

    fn write(&mut self, routes: Routes, is_of_groups: bool, now: Instant) {
        let layers = self.routes.as_ref().map_or(0, |routes| routes.layers);
        // Where hosts wait, what they do not wait for comes once packets under way are gone.
        let is_part =
            !is_of_groups && self.is_urgent && routes.emptied_first.is_empty() && !routes.last.is_empty();
        let routes =
            if is_part { program::without_last(&self.inventory, routes, &self.held) } else { routes };
        let wanted = Wanted {
            lids: &self.lids,
            lmc: self.settings.lmc,
            key: self.settings.sweep.key,
            routes: &routes,
            groups: &self.groups,
            // With other layers, service levels change, which hosts have to ask for again.
            reregister: self.reregister || layers.max(routes.layers) > 1,
        };
        self.are_groups_new = false;
        let mut before = None;
        let phases = if is_of_groups {
            program::phases_of_groups(&self.inventory, &self.groups, &self.held)
        } else {
            let phases = program::phases(&self.inventory, wanted, &self.held);
            before = phases.change_tables().then(|| self.held.tables.clone());
            self.are_groups_new =
                self.is_urgent && routes.emptied_first.is_empty() && phases.can_put_trees_off();
            let phases = if self.are_groups_new { phases.without_trees() } else { phases };
            phases.in_order()
        };
        let writing = Writing {
            exchange: Exchange::new(manner(&self.settings), self.next_tid),
            phases,
            drains: false,
            drained_at: None,
            ends_old: false,
            routes,
            before,
            is_part,
            blocks: 0,
            failures: Vec::new(),
            is_broken: false,
            is_multicast_broken: false,
            is_of_groups,
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

    /// Takes note of the result of a write.
    fn written(&mut self, done: &Done<Purpose>) {
        let Stage::Writing(writing) = &mut self.stage else { return };
        let held = &mut self.held;
        let failure = match (done.order.purpose, &done.result) {
            (Purpose::Table { switch, block }, Ok(data)) => {
                writing.blocks += 1;
                let first = usize::from(block) * BLOCK;
                let table = held.tables.entry(switch).or_default();
                if table.len() < first + BLOCK {
                    table.resize(first + BLOCK, NO_PORT);
                }
                table[first..first + BLOCK].copy_from_slice(data);
                return;
            }
            (Purpose::Reach { switch }, Ok(data)) => {
                held.infos.insert(switch, SwitchInfo::parse(data));
                held.doubted.insert(switch);
                writing.is_cleared = true;
                return;
            }
            (Purpose::Multicast { part }, Ok(data)) => {
                writing.blocks += 1;
                held.multicast.insert(part, MulticastTable::parse(data));
                return;
            }
            (Purpose::Lanes { guid, attribute, modifier }, Ok(_)) => {
                held.lanes.insert((guid, attribute, modifier), done.order.data);
                return;
            }
            (Purpose::Port { guid, port }, Ok(data)) => {
                self.inventory.take_note(guid, port, data);
                // Nothing is written to a port without a cable, so this one failed since.
                self.is_stale |= port != 0 && PortSettings::parse(data).state() == PortState::Down;
                return;
            }
            (_, Err(failure)) => *failure,
        };
        let (guid, what) = match done.order.purpose {
            Purpose::Table { switch, block } => {
                // It is not known whether the write took effect, so the table is read before anything else is
                // written there.
                held.tables.remove(&switch);
                writing.is_broken = true;
                (switch, format!("block {block} of its forwarding table"))
            }
            Purpose::Reach { switch } => {
                held.tables.remove(&switch);
                writing.is_broken = true;
                (switch, "how far its forwarding table reaches".to_owned())
            }
            Purpose::Multicast { part: (switch, block, position) } => {
                held.multicast.retain(|&(known, _, _), _| known != switch);
                writing.is_multicast_broken = true;
                (switch, format!("block {block} of its multicast table, ports {position}"))
            }
            Purpose::Port { guid, port } => (guid, format!("port {port}")),
            Purpose::Lanes { guid, attribute, modifier } => {
                (guid, format!("{} {modifier:#x}", attribute.name()))
            }
        };
        // A port with another key drops writes silently, but answers questions.
        let hint = if failure == Failure::Silent && self.inventory.is_protected(guid) {
            "; it may have another key of management (M_Key): see m-key-file"
        } else {
            ""
        };
        let failed = format!("{what}: {}{hint} (directed route {})", why(failure), done.route);
        let told = format!("{} cannot be written: {failed}", self.name_of(guid));
        if let Stage::Writing(writing) = &mut self.stage {
            writing.failures.push(told);
        }
    }

    /// Begins the next phase once all writes of the one before are confirmed.
    fn go_on_writing(&mut self, now: Instant) {
        loop {
            let Stage::Writing(writing) = &mut self.stage else { return };
            if !writing.exchange.is_empty() {
                return;
            }
            if writing.is_broken {
                return self.stop_writing(now);
            }
            if writing.drains && writing.drained_at.is_none() {
                writing.drained_at = Some(now + self.settings.drain);
            }
            if writing.drained_at.is_some_and(|at| now < at) {
                return;
            }
            if writing.drained_at.take().is_some() && writing.ends_old {
                writing.before = None;
            }
            let Some(phase) = writing.phases.pop_front() else { return self.stop_writing(now) };
            writing.drains = phase.drains;
            writing.ends_old = phase.ends_old;
            for (order, route) in phase.writes {
                let is_left_out =
                    writing.is_multicast_broken && matches!(order.purpose, Purpose::Multicast { .. });
                if !is_left_out {
                    writing.exchange.order(order, route);
                }
            }
        }
    }

    /// Ends writing, as all is written, or as much as may be.
    fn stop_writing(&mut self, now: Instant) {
        let waiting = Stage::Waiting { until: now + self.settings.watch_interval };
        let Stage::Writing(writing) = std::mem::replace(&mut self.stage, waiting) else { return };
        self.take_tids(writing.exchange.next_tid());
        self.counts.add(SubnetCount::Blocks, writing.blocks);
        if let Some(tables) = writing.before {
            let told = self.held.told.clone();
            self.under_way.leave(FormerTables { tables, told }, now + self.settings.drain);
        }
        let failed = writing.failures.len();
        for failure in writing.failures.iter().take(16) {
            self.tell(Event::Problem(failure.clone()));
        }
        self.unwritten = writing.failures;
        if !writing.is_of_groups || failed > 0 {
            self.is_up = failed == 0;
        }
        if writing.is_broken {
            return self.retry(now);
        }
        if writing.is_of_groups {
            let (groups, parts) = (self.groups.members.len(), writing.blocks);
            self.tell(Event::Groups { groups, parts });
            return if failed > 0 { self.retry(now) } else { self.wait_for_more(now) };
        }
        let adapters = self.inventory.adapters.iter().filter(|adapter| !adapter.is_away).count();
        let size = [failed, self.inventory.switches.len(), adapters];
        let is_as_told =
            self.told_up == Some(size) && self.engine.as_deref().unwrap_or_default() == writing.routes.engine;
        self.told_up = Some(size);
        self.engine = Some(writing.routes.engine.clone()).filter(|engine| !engine.is_empty());
        self.tell(Event::Up {
            failed,
            switches: self.inventory.switches.len(),
            adapters,
            engine: writing.routes.engine.clone(),
            blocks: writing.blocks,
            sent: self.datagrams.sent - self.sent_before,
            took: now.since(self.began),
            is_news: !is_as_told || writing.blocks > 0,
        });
        self.counts.count(SubnetCount::Ups);
        self.rest_at = writing.is_part.then(|| now + self.settings.drain);
        self.reregister = false;
        self.tell_levels(&writing.routes.levels, now);
        self.routes = Some(writing.routes);
        self.administer(now);
        if failed > 0 {
            return self.retry(now);
        }
        if self.is_stale {
            self.begin_sweep(now);
        } else {
            // A node that did not answer may do so the next time, and changes that happened while marks were
            // cleared show then.
            let lacks_parts =
                self.inventory.switches.iter().any(|switch| !self.unknown_parts(switch).is_empty());
            let is_unsure = !self.problems.is_empty() || self.has_silent_manager;
            if is_unsure || writing.is_cleared || lacks_parts {
                let at = now + self.settings.watch_interval;
                self.recheck_at = Some(self.recheck_at.unwrap_or(at));
            }
            self.wait_for_more(now);
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

    /// Waits until it is time to look again, or not at all if something is to be done. A look at everything
    /// that is put off because of what changed meanwhile keeps its moment.
    pub(super) fn wait_for_more(&mut self, now: Instant) {
        let next = now + self.settings.watch_interval;
        let moments = [self.recheck_at, self.rest_at];
        let until = if self.is_more() { now } else { moments.into_iter().flatten().fold(next, Instant::min) };
        self.stage = Stage::Waiting { until };
    }
}
