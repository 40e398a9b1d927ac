//! Which carriers a host sees: that of its own interface, and those of a crossbar on the same machine.

use mapper_proto::PortSet;

use super::World;

/// What a host has seen of carriers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    /// The carrier of its interface.
    pub(super) own: bool,
    /// The tag and the carriers of its crossbar, if it is a node.
    pub(super) crossbar: Option<(u64, PortSet)>,
}

impl World {
    /// Tells each host which carriers have changed, and those whose checks xbars sent on lately by ports that have none any
    /// more. To be called when the plant has changed, as carriers change only then.
    pub(super) fn tell_of_carriers(&mut self) {
        for host in 0..self.hosts.len() as u32 {
            self.show_carriers(host);
        }
        self.send_notices();
    }

    /// Tells a host which of the carriers that it sees have changed.
    pub(super) fn show_carriers(&mut self, host: u32) {
        let own = self.plant.sees_carrier(host);
        let crossbar = if self.options.nodes { self.plant.own_crossbar(host) } else { None };
        let (now, ports) = (self.now, self.plant.wired_ports(host));
        let slot = &mut self.hosts[host as usize];
        let Some(real) = slot.node.as_mut().and_then(|node| node.host_mut()) else { return };
        let before = slot.seen;
        if own && !before.own {
            real.own_carrier_is_back(now);
        }
        slot.seen = Seen { own, crossbar };
        // A host that was cabled to another crossbar no longer sees the former one, so it is told only of the
        // new one.
        let mut known = ports;
        match before.crossbar {
            Some((tag, carriers)) if crossbar.is_some_and(|(now, _)| now == tag) => known = carriers,
            Some((tag, carriers)) => {
                carriers
                    .changes_to(PortSet::ALL)
                    .for_each(|(port, _)| real.handle_carrier(now, tag, port, true));
            }
            None => {}
        }
        if let Some((tag, carriers)) = crossbar {
            for (port, up) in known.changes_to(carriers) {
                real.handle_carrier(now, tag, port, up);
            }
        }
        self.drain(host);
        self.show_kernel_ports(host);
    }
}
