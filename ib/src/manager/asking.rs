//! Asks ports for tables that somebody asked the administration about. The manager does so only while it has
//! nothing else to do, so that such questions do not delay what the subnet needs.

use mapper_proto::time::Instant;

use super::{Stage, SubnetManager};
use crate::administration::TableOf;
use crate::exchange::{Done, Order};
use crate::mad::{MAD_BYTES, ManagerMethod, Route, Smp};

/// Where the transactions of these questions begin, above those of commands.
pub(super) const FIRST_TABLE: u32 = 3 << 30;

impl SubnetManager {
    /// The next question to send.
    pub(super) fn poll_table(&mut self, now: Instant) -> Option<[u8; MAD_BYTES]> {
        if !matches!(self.stage, Stage::Waiting { .. } | Stage::Computing { .. }) {
            return None;
        }
        while self.tables.has_room() {
            let Some(table) = self.administration.poll_table() else { break };
            match self.way_to(table) {
                Some(route) => self.tables.order(Order::get(table, table.attribute, table.modifier), route),
                None => self.administration.take_table(table, None, now),
            }
        }
        self.tables.poll_transmit(now)
    }

    /// The way to the node that holds a table.
    fn way_to(&self, table: TableOf) -> Option<Route> {
        let switches = self.inventory.switches.iter().filter(|switch| switch.guid == table.node);
        let adapters = self.inventory.adapters.iter();
        let adapters = adapters.filter(|of| (of.node_guid, of.port) == (table.node, table.port));
        switches.map(|of| &of.route).chain(adapters.map(|of| &of.route)).next().cloned()
    }

    pub(super) fn time_tables(&mut self, now: Instant) {
        while let Some(done) = self.tables.handle_timeout(now) {
            self.table_told(&done, now);
        }
    }

    pub(super) fn answer_table(&mut self, smp: &Smp<ManagerMethod>, now: Instant) {
        if let Some(done) = self.tables.handle(smp, |_, _| true) {
            self.table_told(&done, now);
        }
    }

    fn table_told(&mut self, done: &Done<TableOf>, now: Instant) {
        self.administration.take_table(done.order.purpose, done.result.ok(), now);
    }
}
