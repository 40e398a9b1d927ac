//! Has routes go around dead cables until there is a new map.

use mapper_fabric::wording::with_causes;
use mapper_proto::Instant;
use mapper_proto::agent::PathId;
use mapper_proto::map::PortRef;
use mapper_proto::wire::Undeliverable;
use std::sync::Arc;

use super::Host;
use crate::event::HostEvent;
use crate::examination::Losing;
use crate::healing::Action;
use crate::routes::{RoutePath, RouteTable};
use crate::sounding::{OF_HOST, Sounded};

impl Host {
    /// Does what follows from what is known of dead cables.
    pub(super) fn heal(&mut self, now: Instant) {
        while let Some(action) = self.healing.poll(now) {
            match action {
                Action::Repair { version } => {
                    let table = self.table.clone().filter(|table| table.version() == version);
                    if let Some(table) = table {
                        self.repair(now, &table);
                    }
                }
                Action::TellAgent { version, at, cause } if self.agent.status().version == version => {
                    self.agent.cable_down(now, at, cause);
                }
                Action::TellAgent { .. } => {}
                Action::Test { version, at, test } => self.agent.test_cable(now, version, at, test),
            }
        }
    }

    /// Tells the global mapper which cables lose frames, and the agent, if this host is to map, which ones its maps show.
    pub(super) fn settle_losses(&mut self, now: Instant) {
        let reports = self.services.loss_reports_mut();
        reports.set_found(now, self.healing.lossy_ports());
        reports.handle_timeout(now);
        if let Some(ports) = reports.take_agreed() {
            let basis = self.table.as_ref().map(|table| table.basis()).filter(|_| reports.is_mapper());
            let ports = match basis {
                Some(basis) => basis.ports_to_leave_out(ports),
                None => ports,
            };
            self.agent.set_lossy(now, ports);
        }
    }

    fn repair(&mut self, now: Instant, table: &RouteTable) {
        let dead = self.healing.dead();
        match table.repair(&dead) {
            Ok(table) => {
                self.use_table(now, Arc::new(table));
                // The host at the end of a silent cable may be heard by the ways around the cable, once these are watched.
                self.watching.look_at_kernel(now);
                self.events.push_back(HostEvent::Repaired { dead: dead.avoided });
            }
            Err(error) => self.events.push_back(HostEvent::RepairRefused { why: with_causes(&error) }),
        }
    }

    /// Takes in that a crossbar could not send a check of a path on, as its port has no carrier, or that it did
    /// and the port has lost carrier since. So a dead cable is known much sooner than by silence. On paths of
    /// the kernel there is no other notice, as crossbars send back no packets.
    pub(super) fn check_is_undeliverable(&mut self, now: Instant, notice: Undeliverable) {
        let Some(path) = self.agent.undeliverable_check(notice.token) else { return };
        let (Some(data), Some(table)) = (&mut self.data, &self.table) else { return };
        let at = table.xbar(notice.tag).map(|xbar| PortRef { xbar, port: notice.port });
        let on_path =
            at.filter(|at| data.path_in_table(path).is_some_and(|(_, path)| path.hops.contains(at)));
        if let Some(at) = on_path {
            data.avoid(now, at);
            self.healing.notice(now, notice.tag, notice.port);
            self.settle(now);
        }
    }

    /// Takes in that a path in use no longer answers beyond its first `reached` xbars.
    pub(super) fn path_is_down(&mut self, now: Instant, path: PathId, reached: usize, frame_bytes: usize) {
        let found = self.data.as_ref().and_then(|data| data.path_in_table(path));
        if let Some((_, RoutePath { hops, .. })) = found {
            self.healing.path_down(now, path, &hops, (reached, frame_bytes));
        }
    }

    /// Has a path examined that loses checks of this length, to find the cable that loses them.
    pub(super) fn examine(&mut self, now: Instant, path: PathId, frame_bytes: usize) {
        let Some(table) = &self.table else { return };
        let Some(path) = self.data.as_ref().and_then(|data| data.path_in_table(path)) else { return };
        let Some(plan) = self.examiner.begin(now, path, frame_bytes, table.basis()) else { return };
        if self.soundings.begin(now, OF_HOST, plan).is_err() {
            self.examiner.give_up();
        }
    }

    /// Takes in what came of an examination.
    pub(super) fn examined(&mut self, now: Instant, sounded: &Sounded) {
        let Some((path, losing)) = self.examiner.end(sounded) else { return };
        if let Some(at) = self.healing.loses_frames(now, (&path.basis, &path.hops), losing) {
            let Losing { lost_percent, .. } = losing;
            self.events.push_back(HostEvent::CableLosesFrames { at, lost_percent });
        }
        self.heal(now);
    }
}
