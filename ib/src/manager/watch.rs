//! A look at all switches, which shows whether anything changed since they were written to.

use mapper_proto::time::Instant;

use super::{Stage, SubnetManager, manner};
use crate::exchange::{Done, Exchange, Order};
use crate::mad::{Attribute, ManagerMethod, SmInfo, Smp, SwitchInfo};

/// What is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) enum Look {
    /// A switch.
    Switch { guid: u64 },
    /// Another manager.
    Manager { port: u64 },
}

impl SubnetManager {
    pub(super) fn begin_watch(&mut self, now: Instant) {
        self.activity = self.activity.wrapping_add(1);
        let mut exchange = Exchange::new(manner(&self.settings), self.next_tid);
        for switch in &self.inventory.switches {
            let look = Look::Switch { guid: switch.guid };
            exchange.order(Order::get(look, Attribute::SwitchInfo, 0), switch.route.clone());
        }
        for other in &self.others {
            let look = Look::Manager { port: other.port };
            exchange.order(Order::get(look, Attribute::SmInfo, 0), other.route.clone());
        }
        if exchange.is_empty() {
            // Without a switch, as when the manager's own cable failed, nobody tells what changed.
            return self.begin_sweep(now);
        }
        self.stage = Stage::Watching(Box::new(exchange));
    }

    pub(super) fn time_watch(&mut self, now: Instant) {
        while let Stage::Watching(exchange) = &mut self.stage {
            let Some(done) = exchange.handle_timeout(now) else { break };
            self.looked(&done);
        }
        self.end_watch(now);
    }

    pub(super) fn answer_watch(&mut self, smp: &Smp<ManagerMethod>, now: Instant) {
        let Stage::Watching(exchange) = &mut self.stage else { return };
        if let Some(done) = exchange.handle(smp, |_, _| true) {
            self.looked(&done);
            self.end_watch(now);
        }
    }

    fn looked(&mut self, done: &Done<Look>) {
        let is_as_before = match (done.order.purpose, &done.result) {
            (_, Err(_)) => false,
            (Look::Switch { guid }, Ok(data)) => {
                let now = SwitchInfo::parse(data);
                let before = self.held.infos.get(&guid);
                !now.state_changed() && before.is_some_and(|before| before.linear_top() == now.linear_top())
            }
            (Look::Manager { port }, Ok(data)) => {
                let now = SmInfo::parse(data);
                let before = self.others.iter().find(|other| other.port == port);
                before.is_some_and(|before| {
                    (before.info.guid, before.info.priority, before.info.state)
                        == (now.guid, now.priority, now.state)
                })
            }
        };
        self.is_stale |= !is_as_before;
    }

    fn end_watch(&mut self, now: Instant) {
        let Stage::Watching(exchange) = &self.stage else { return };
        if !exchange.is_empty() {
            return;
        }
        let next = exchange.next_tid();
        self.take_tids(next);
        if self.is_stale {
            self.begin_sweep(now);
        } else {
            self.wait_for_more(now);
        }
    }
}
