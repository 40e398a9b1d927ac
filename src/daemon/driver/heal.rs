//! Routes around dead cables, before there is a new map.

use std::sync::Arc;

use mapper_proto::agent::PathId;
use mapper_proto::map::PortRef;
use mapper_proto::wire::CrossbarKind;
use tracing::{debug, error, info};

use super::event_loop::Driver;
use super::with_causes;
use mapper_host::healing::{Action, DeadCable};
use mapper_host::routes::RouteTable;
use crate::daemon::status;
use mapper_host::data::DeadPort;
use crate::xbar::carrier_changes;

impl Driver {
    /// Follows the carriers of a node's own crossbar.
    pub(super) fn follow_carriers(&mut self) {
        let Some((carriers, before)) = &mut self.carriers else { return };
        let after = *carriers.borrow_and_update();
        let changes: Vec<_> = carrier_changes(*before, after).collect();
        *before = after;
        let kind = self.attachment.crossbar.as_ref().map(|switch| switch.kind());
        let Some(CrossbarKind::Tagged { tag }) = kind else { return };
        let now = self.now();
        for (port, up) in changes {
            self.healing.carrier(now, tag, port, up);
            if up {
                self.agent.look_again(now);
            }
        }
    }

    /// A crossbar said that a port has no carrier.
    pub(super) fn port_is_dead(&mut self, DeadPort { tag, at }: DeadPort) {
        self.healing.notice(self.now(), tag, at.port);
    }

    /// A path in use no longer answers, or only as far as its first `reached` xbars.
    pub(super) fn path_is_down(&mut self, path: PathId, reached: usize, frame_bytes: usize) {
        debug!(path = path.0, reached, frame_bytes, "a path is down");
        let now = self.now();
        if let Some(hops) = self.user_data.as_ref().and_then(|user_data| user_data.hops(path)) {
            self.healing.path_down(now, path, &hops, (reached, frame_bytes));
        }
    }

    /// Does what follows from what is known of dead cables.
    pub(super) fn heal(&mut self) {
        let now = self.now();
        while let Some(action) = self.healing.poll(now) {
            match action {
                Action::Repair { version } => {
                    let table = self.table.clone().filter(|table| table.version() == version);
                    if let Some(table) = table {
                        self.repair(&table);
                    }
                }
                Action::TellAgent { version, at, cause } if self.agent.status().version == version => {
                    self.agent.cable_down(now, at, cause.is_certain(), &cause.to_string());
                }
                Action::TellAgent { .. } => {}
                Action::Test { version, at, test } => self.agent.test_cable(now, version, at, test),
            }
        }
    }

    fn repair(&mut self, table: &RouteTable) {
        let dead = self.healing.dead();
        match table.repair(&dead) {
            Ok(table) => {
                info!(cables = ?Ports(&dead), routes = table.count(), "routing around dead cables");
                self.use_table(Arc::new(table));
            }
            Err(error) => error!("the routes stay as they were: {}", with_causes(&error)),
        }
    }

    /// Puts routes to use, all at once.
    pub(super) fn use_table(&mut self, table: Arc<RouteTable>) {
        let now = self.now();
        if let Some(user_data) = &mut self.user_data {
            user_data.install(now, &self.attachment.link, Arc::clone(&table));
        }
        self.table = Some(table);
    }

    /// The cables that are held for dead, as status displays show them.
    pub(super) fn dead_cables(&self) -> Vec<status::DeadCable> {
        let now = self.now();
        let shown = |DeadCable { at, since, cause }: DeadCable| {
            let table = self.table.as_ref();
            let tag = table.and_then(|table| table.tag(at.xbar));
            status::DeadCable {
                xbar: at.xbar,
                tag: tag.map(|tag| format!("{tag:#018x}")),
                port: at.port,
                since_ms: now.since(since).as_millis().try_into().unwrap_or(u64::MAX),
                why: cause.to_string(),
            }
        };
        self.healing.dead_cables().map(shown).collect()
    }

    /// How often routes were changed without a new map.
    pub(super) fn repair_counters(&self) -> status::RepairCounters {
        let healing = self.healing.status();
        status::RepairCounters {
            repairs: healing.repairs,
            carrier_losses: healing.by_carrier,
            notices: healing.by_notice,
            silent_paths: healing.by_silence,
        }
    }
}

/// Ports in a log line.
struct Ports<'a>(&'a std::collections::BTreeSet<PortRef>);

impl std::fmt::Debug for Ports<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|at| format!("xbar {} port {}", at.xbar, at.port))).finish()
    }
}
