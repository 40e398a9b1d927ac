//! The lanes of service levels, where tables have several layers: each level has the lane of its number.

use super::{Held, Phase, Purpose};
use crate::exchange::Order;
use crate::mad::{Attribute, DATA_BYTES, Data, PortSettings, Route};
use crate::manager::inventory::{Adapter, Inventory, Switch};

/// The modifier of the part of the arbitration table for low priority with the entries 0 to 31.
const LOW_PRIORITY: u32 = 1;
/// How many units of 64 bytes a lane may send in its turn.
const LANE_WEIGHT: u8 = 4;

/// Lanes to write, and what was written before.
struct Lanes<'a> {
    layers: u8,
    held: &'a Held,
    phase: &'a mut Phase,
}

/// Adds the lanes that are not written yet.
pub(super) fn program(inventory: &Inventory, layers: u8, held: &Held, phase: &mut Phase) {
    let mut lanes = Lanes { layers, held, phase };
    inventory.switches.iter().for_each(|switch| lanes.program_switch(switch));
    inventory
        .adapters
        .iter()
        .filter(|adapter| !adapter.is_away)
        .for_each(|adapter| lanes.program_adapter(adapter));
}

impl Lanes<'_> {
    fn program_switch(&mut self, switch: &Switch) {
        let cabled = || switch.ports.range(1..).filter(|(port, _)| switch.cables.contains_key(port));
        for (&out, found) in cabled() {
            let table = levels_to_lanes(PortSettings::lane_count(found.lanes_capacity()));
            // Port 0 sends as well: packets of the switch itself, or of the manager behind it.
            for into in std::iter::once(0).chain(cabled().map(|(&into, _)| into)) {
                let modifier = u32::from(into) << 8 | u32::from(out);
                self.write(switch.guid, &switch.route, Attribute::SlToVl, modifier, table);
            }
            let modifier = LOW_PRIORITY << 16 | u32::from(out);
            let turns = turns_of_lanes(self.layers, found);
            self.write(switch.guid, &switch.route, Attribute::VlArbitration, modifier, turns);
        }
    }

    fn program_adapter(&mut self, adapter: &Adapter) {
        let table = levels_to_lanes(PortSettings::lane_count(adapter.settings.lanes_capacity()));
        let (guid, route) = (adapter.port_guid, &adapter.route);
        self.write(guid, route, Attribute::SlToVl, 0, table);
        let turns = turns_of_lanes(self.layers, &adapter.settings);
        self.write(guid, route, Attribute::VlArbitration, LOW_PRIORITY << 16, turns);
    }

    fn write(&mut self, guid: u64, route: &Route, attribute: Attribute, modifier: u32, data: Data) {
        let is_held = self.held.lanes.get(&(guid, attribute, modifier)) == Some(&data);
        // A port without an arbitration table needs no write.
        let is_empty = attribute == Attribute::VlArbitration && data.iter().all(|&byte| byte == 0);
        if !is_held && !is_empty {
            let purpose = Purpose::Lanes { guid, attribute, modifier };
            self.phase.writes.push((Order::set(purpose, attribute, modifier, data), route.clone()));
        }
    }
}

/// The lanes of sixteen service levels, four bits each, if there are so many lanes.
fn levels_to_lanes(lanes: u8) -> Data {
    let mut data = [0; DATA_BYTES];
    for (byte, pair) in data.iter_mut().take(8).zip(0_u8..) {
        *byte = ((2 * pair % lanes) << 4) | ((2 * pair + 1) % lanes);
    }
    data
}

/// A table in which each lane has its turn, as far as the port's table has room.
fn turns_of_lanes(layers: u8, port: &PortSettings) -> Data {
    let mut data = [0; DATA_BYTES];
    let lanes = layers.min(PortSettings::lane_count(port.lanes_capacity())).min(port.low_turns().min(32));
    for (entry, lane) in data.chunks_exact_mut(2).zip(0..lanes) {
        entry.copy_from_slice(&[lane, LANE_WEIGHT]);
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_beyond_the_lanes_begin_anew() {
        assert_eq!(levels_to_lanes(4)[..9], [0x01, 0x23, 0x01, 0x23, 0x01, 0x23, 0x01, 0x23, 0]);
        assert_eq!(levels_to_lanes(15)[..8], [0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xE0]);
    }
}
