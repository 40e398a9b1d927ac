//! Which carriers a host sees: that of its own interface, and those of a crossbar on the same machine.

use mapper_proto::wire::carrier_changes;

use super::World;

/// Nothing but carriers, as a host believes before it looks.
pub(super) const ALL: [u8; 32] = [0xff; 32];

/// What a host has seen of carriers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// That of its interface.
    pub(super) own: bool,
    /// Those of its crossbar, if it is a node.
    pub(super) ports: [u8; 32],
}

impl World {
    /// The crossbars of nodes change no more than the plant does: tells each host what is new to it.
    pub(super) fn tell_of_carriers(&mut self) {
        for host in 0..self.hosts.len() as u32 {
            self.show_carriers(host);
        }
    }

    /// Tells a host what is new to it.
    pub(super) fn show_carriers(&mut self, host: u32) {
        let own = self.plant.sees_carrier(host);
        let crossbar = if self.options.nodes { self.plant.own_crossbar(host) } else { None };
        let now = self.now;
        let slot = &mut self.hosts[host as usize];
        let Some(real) = slot.node.as_mut().and_then(|node| node.host_mut()) else { return };
        let before = slot.seen;
        if own && !before.own {
            real.look_again(now);
        }
        slot.seen.own = own;
        if let Some((tag, carriers)) = crossbar {
            slot.seen.ports = carriers;
            for (port, up) in carrier_changes(before.ports, carriers) {
                real.handle_carrier(now, tag, port, up);
            }
        }
        self.drain(host);
    }
}
