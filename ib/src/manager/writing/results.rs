//! What comes of each write: what nodes hold now, or what is not known of them any more.

use super::{Blocked, Stage, SubnetManager};
use crate::exchange::{Done, Failure};
use crate::mad::{Data, MulticastTable, PortSettings, PortState, SwitchInfo};
use crate::manager::why;
use crate::program::{BLOCK, NO_PORT, Purpose};

impl SubnetManager {
    /// Takes note of the result of a write.
    pub(super) fn written(&mut self, done: &Done<Purpose>) {
        match &done.result {
            Ok(data) => self.take_written(done, data),
            Err(failure) => self.take_unwritten(done, *failure),
        }
    }

    /// Takes note of what a node holds now.
    fn take_written(&mut self, done: &Done<Purpose>, data: &Data) {
        let Stage::Writing(writing) = &mut self.stage else { return };
        let held = &mut self.held;
        match done.order.purpose {
            Purpose::Table { switch, block } => {
                writing.blocks += 1;
                let first = usize::from(block) * BLOCK;
                let table = held.tables.entry(switch).or_default();
                if table.len() < first + BLOCK {
                    table.resize(first + BLOCK, NO_PORT);
                }
                table[first..first + BLOCK].copy_from_slice(data);
            }
            Purpose::Reach { switch } => {
                held.infos.insert(switch, SwitchInfo::parse(data));
                held.doubted.insert(switch);
                writing.is_cleared = true;
            }
            Purpose::Multicast { part } => {
                writing.blocks += 1;
                held.multicast.insert(part, MulticastTable::parse(data));
            }
            Purpose::Lanes { guid, attribute, modifier } => {
                held.lanes.insert((guid, attribute, modifier), done.order.data);
            }
            Purpose::Port { guid, port } => {
                self.inventory.take_note(guid, port, data);
                // Nothing is written to a port without a cable, so this one failed since.
                self.is_stale |= port != 0 && PortSettings::parse(data).state() == PortState::Down;
            }
        }
    }

    /// Takes note that something could not be written, and of what is not known any more for that.
    fn take_unwritten(&mut self, done: &Done<Purpose>, failure: Failure) {
        let Stage::Writing(writing) = &mut self.stage else { return };
        let held = &mut self.held;
        let (guid, what) = match done.order.purpose {
            Purpose::Table { switch, block } => {
                // It is not known whether the write took effect, so the table is read before anything else is
                // written there.
                held.tables.remove(&switch);
                writing.blocked = Blocked::LaterPhases;
                (switch, format!("block {block} of its forwarding table"))
            }
            Purpose::Reach { switch } => {
                held.tables.remove(&switch);
                writing.blocked = Blocked::LaterPhases;
                (switch, "how far its forwarding table reaches".to_owned())
            }
            Purpose::Multicast { part: (switch, block, position) } => {
                held.multicast.retain(|&(known, _, _), _| known != switch);
                writing.blocked = writing.blocked.max(Blocked::Multicast);
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
}
