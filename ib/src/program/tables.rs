//! The blocks of forwarding tables that differ, in the order in which they may be written.

use std::collections::BTreeSet;

use super::{BLOCK, Held, NO_PORT, Phase, Purpose, leads_astray};
use crate::exchange::Order;
use crate::mad::Attribute;
use crate::manager::inventory::{Inventory, Switch};
use crate::manager::task::Routes;

/// The three phases of writes to tables: those that empty entries, those that change entries, and those that
/// fill the emptied ones.
pub(super) fn program(inventory: &Inventory, routes: &Routes, held: &Held) -> [Phase; 3] {
    let mut phases = [Phase::default(), Phase::default(), Phase::default()];
    let mut is_held_back = false;
    let first: BTreeSet<u16> = routes.emptied_first.iter().copied().collect();
    let adapters: BTreeSet<u64> = inventory.adapters.iter().map(|adapter| adapter.node_guid).collect();
    let is_known = |node: u64| routes.tables.contains_key(&node) || adapters.contains(&node);
    for switch in &inventory.switches {
        let Some(table) = routes.tables.get(&switch.guid) else { continue };
        let before = held.tables.get(&switch.guid).map_or(&[][..], Vec::as_slice);
        let top = table.len().saturating_sub(1);
        let Some(info) = held.infos.get(&switch.guid) else { continue };
        let blocks = table.len().max(before.len()).div_ceil(BLOCK);
        for number in 0..blocks {
            let old = block(before, number);
            let new = block(table, number).unwrap_or([NO_PORT; BLOCK]);
            let changed = |at: usize| old.is_some_and(|old| old[at] != new[at]);
            let lid_at = |at: usize| u16::try_from(number * BLOCK + at).unwrap_or(u16::MAX);
            let is_first = |at: usize| {
                // Entries for LIDs that no port has any more, and entries that lead to unknown nodes, are
                // emptied first as well, as no proof counts them.
                let astray = || old.is_some_and(|old| leads_astray(switch, old[at], is_known));
                // An entry that leads into a dead cable leads nowhere already.
                let is_dead = || old.is_some_and(|old| old[at] != 0 && !switch.cables.contains_key(&old[at]));
                first.contains(&lid_at(at)) || (new[at] == NO_PORT && !is_dead()) || astray()
            };
            let mut now = old;
            if let Some(old) = old {
                let emptied: [u8; BLOCK] = std::array::from_fn(|at| {
                    if changed(at) && is_first(at) && old[at] != NO_PORT { NO_PORT } else { old[at] }
                });
                write_block(switch, number, &mut now, emptied, &mut phases[0]);
            }
            // A block that the switch did not use before stays out of use until the top of its table rises.
            let mixed: [u8; BLOCK] = std::array::from_fn(|at| match old {
                Some(_) if changed(at) && is_first(at) => NO_PORT,
                Some(old) if changed(at) && routes.last.contains(&(switch.guid, lid_at(at))) => old[at],
                _ => new[at],
            });
            is_held_back |= old.is_some() && mixed != new;
            write_block(switch, number, &mut now, mixed, &mut phases[1]);
            write_block(switch, number, &mut now, new, &mut phases[2]);
        }
        let top = u16::try_from(top).unwrap_or(u16::MAX);
        if info.linear_top() != top || info.state_changed() {
            let data = info.with(top, true).emit();
            let order = Order::set(Purpose::Reach { switch: switch.guid }, Attribute::SwitchInfo, 0, data);
            // The top of the table changes once all blocks below it are right.
            phases[2].writes.push((order, switch.route.clone()));
        }
    }
    phases[0].drains = !phases[0].writes.is_empty();
    phases[1].drains = is_held_back;
    phases
}

/// A block of a table; `None` beyond its end. If the table ends within the block, the rest of the block leads
/// nowhere.
fn block(table: &[u8], number: usize) -> Option<[u8; BLOCK]> {
    let part = table.get(number * BLOCK..)?;
    let part = &part[..part.len().min(BLOCK)];
    (!part.is_empty()).then(|| {
        let mut block = [NO_PORT; BLOCK];
        block[..part.len()].copy_from_slice(part);
        block
    })
}

fn write_block(
    switch: &Switch,
    number: usize,
    now: &mut Option<[u8; BLOCK]>,
    then: [u8; BLOCK],
    phase: &mut Phase,
) {
    if *now == Some(then) {
        return;
    }
    *now = Some(then);
    let block = u16::try_from(number).unwrap_or(u16::MAX);
    let purpose = Purpose::Table { switch: switch.guid, block };
    let order = Order::set(purpose, Attribute::LinearTable, block.into(), then);
    phase.writes.push((order, switch.route.clone()));
}
