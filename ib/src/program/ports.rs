//! Addresses of ports, settings of links, and the states through which links come up.

use std::collections::BTreeMap;

use super::{Phase, Purpose, Wanted};
use crate::exchange::Order;
use crate::mad::{Attribute, PortSettings, PortState, Route};
use crate::manager::inventory::{Adapter, Inventory, Switch};

/// The codes of MTUs, from 256 to 4096 bytes.
const MTUS: std::ops::RangeInclusive<u8> = 1..=5;

/// Adds the writes to ports to their phases.
struct Ports<'a> {
    wanted: Wanted<'a>,
    /// The prefix of the subnet.
    prefix: u64,
    /// The LID of the manager's port.
    manager: u16,
    /// What each end of a cable told of itself, by GUID and port.
    ends: BTreeMap<(u64, u8), PortSettings>,
    addresses: &'a mut Phase,
    activation: &'a mut Phase,
}

/// A port, and the way to it.
struct PortPlace<'a> {
    guid: u64,
    port: u8,
    route: &'a Route,
}

/// Adds the writes for all ports that are not as they are to be.
pub(super) fn program<'a>(
    inventory: &Inventory,
    wanted: Wanted<'a>,
    addresses: &'a mut Phase,
    activation: &'a mut Phase,
) {
    let manager = wanted.lids.of(inventory.own).unwrap_or_default();
    let mut ports =
        Ports { wanted, prefix: inventory.prefix(), manager, ends: inventory.ends(), addresses, activation };
    inventory.switches.iter().for_each(|switch| ports.program_switch(switch));
    inventory
        .adapters
        .iter()
        .filter(|adapter| !adapter.is_away)
        .for_each(|adapter| ports.program_adapter(adapter));
}

impl Ports<'_> {
    fn program_switch(&mut self, switch: &Switch) {
        let lid = self.wanted.lids.of(switch.port_guid).unwrap_or_default();
        let level = self.wanted.routes.level(lid, self.manager);
        let place = |port| PortPlace { guid: switch.guid, port, route: &switch.route };
        if let Some(own) = switch.ports.get(&0) {
            let settings = own
                .with_prefix(self.prefix)
                .with_lid(lid, 0)
                .with_manager(self.manager, level)
                .with_reregistration(false);
            write(&place(0), own, &self.keyed(settings), None, self.addresses);
        }
        for (&port, found) in switch.ports.range(1..) {
            let far = switch.cables.get(&port).and_then(|far| self.ends.get(far)).copied();
            if let Some(far) = far {
                self.bring_up(&place(port), found, *found, &far);
            }
        }
    }

    fn program_adapter(&mut self, adapter: &Adapter) {
        let lid = self.wanted.lids.of(adapter.port_guid).unwrap_or_default();
        let level = self.wanted.routes.level(lid, self.manager);
        let found = &adapter.settings;
        // A host that had another manager has not told this one anything yet.
        let is_new = found.manager_lid() != self.manager || found.lid() != lid;
        let settings = found
            .with_prefix(self.prefix)
            .with_lid(lid, self.wanted.lmc)
            .with_manager(self.manager, level)
            .with_reregistration(self.wanted.reregister || is_new);
        let settings = self.keyed(settings);
        let place = PortPlace { guid: adapter.node_guid, port: adapter.port, route: &adapter.route };
        match adapter.at.and_then(|far| self.ends.get(&far)).copied() {
            Some(far) => self.bring_up(&place, found, settings, &far),
            None => write(&place, found, &settings, None, self.addresses),
        }
    }

    fn keyed(&self, settings: PortSettings) -> PortSettings {
        if self.wanted.key == 0 { settings } else { settings.with_key(self.wanted.key) }
    }

    /// Sets a link to what both of its ends can do, and takes it from state to state until it is active.
    fn bring_up(
        &mut self,
        place: &PortPlace<'_>,
        found: &PortSettings,
        settings: PortSettings,
        far: &PortSettings,
    ) {
        let is_new = found.state() == PortState::Initialize;
        let settings = if is_new {
            let mtu = found.mtu_capacity().min(far.mtu_capacity()).clamp(*MTUS.start(), *MTUS.end());
            let lanes = found.lanes_capacity().min(far.lanes_capacity()).max(1);
            settings.with_link(mtu, lanes)
        } else {
            settings
        };
        write(place, found, &settings, is_new.then_some(PortState::Armed), self.addresses);
        // A link becomes active only if its other end has said that it is up, too.
        let comes_up = matches!(found.state(), PortState::Initialize | PortState::Armed);
        if comes_up && far.state() != PortState::Down {
            let settings = settings.with_reregistration(false);
            write(place, found, &settings, Some(PortState::Active), self.activation);
        }
    }
}

/// Adds the write of a port's settings, unless the port has them.
fn write(
    place: &PortPlace<'_>,
    found: &PortSettings,
    wanted: &PortSettings,
    state: Option<PortState>,
    phase: &mut Phase,
) {
    if state.is_some() || wanted != found {
        let purpose = Purpose::Port { guid: place.guid, port: place.port };
        let data = wanted.emit_set(state);
        phase
            .writes
            .push((Order::set(purpose, Attribute::PortInfo, place.port.into(), data), place.route.clone()));
    }
}
