//! Tables as they were read out of switches.

use std::collections::BTreeMap;

use mapper_proto::map::Fabric;
use mapper_routing::tables::ByXbar;
use mapper_routing::{Subnet, Tables};

use crate::Loaded;

/// The tables of a subnet, which must be of this fabric, from those that its switches hold: by the GUID of the switch, a port
/// for each LID, 0xFF where none leads.
///
/// The notes name switches without a table, and those with entries that lead to ports that they do not have. Such entries lead
/// nowhere.
pub fn of_switches(held: &BTreeMap<u64, Vec<u8>>, fabric: &Fabric, subnet: &Subnet) -> Loaded<Tables> {
    let mut tables = ByXbar::new(subnet.topology.xbar_count(), subnet.destinations.slot_count());
    let mut notes = Vec::new();
    for (xbar, guid) in (0..).zip(&subnet.xbar_guids) {
        let name = &subnet.names.xbars[xbar as usize];
        let Some(table) = held.get(guid) else {
            notes.push(format!("xbar {name} did not tell its table"));
            continue;
        };
        tables.begin(xbar);
        let last = fabric.map.xbars[xbar as usize].ports;
        let mut wrong = None;
        for (lid, slot) in subnet.destinations.by_lid() {
            let port = table.get(lid as usize).copied().unwrap_or(Tables::NONE);
            if port == Tables::NONE || slot == subnet.destinations.slot_of_xbar(xbar) {
                continue;
            }
            if port > last {
                wrong = wrong.or(Some((lid, port)));
            } else {
                tables.set(slot, port);
            }
        }
        if let Some((lid, port)) = wrong {
            notes.push(format!("xbar {name} sends LID {lid} to port {port}, and has {last}"));
        }
    }
    Loaded { found: tables.finish(), notes }
}
