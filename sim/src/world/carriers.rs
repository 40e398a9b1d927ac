//! Hosts see the carriers of their interfaces, and nodes those of their crossbars.

use mapper_host::OwnCrossbar;

use super::World;

impl World {
    /// Tells each host which carriers have changed, and those whose checks xbars sent on lately by ports that have none any
    /// more. To be called when the plant has changed, as carriers change only then.
    pub(super) fn tell_of_carriers(&mut self) {
        for host in 0..self.hosts.len() as u32 {
            self.show_carriers(host);
        }
        self.send_notices();
    }

    /// Tells a host which carriers it sees.
    pub(super) fn show_carriers(&mut self, host: u32) {
        let own = self.plant.sees_carrier(host);
        let crossbar = self.plant.own_crossbar(host).filter(|_| self.options.nodes);
        let ports = self.plant.wired_ports(host);
        let crossbar = crossbar.map(|(tag, carriers)| OwnCrossbar { tag, ports, carriers });
        let now = self.now;
        let Some(real) = self.real_host(host) else { return };
        real.handle_own_carrier(now, own);
        real.handle_carriers(now, crossbar);
        self.drain(host);
        self.show_kernel_ports(host);
    }
}
