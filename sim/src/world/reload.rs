//! Settings that change while a host runs, as a daemon follows its configuration, its keys and its interface.
//!
//! A host that does not run at that moment starts with the new setting later.

use mapper_host::Host;
use mapper_proto::map::LinkMtu;

use super::World;
use crate::faults::Setting;

impl World {
    /// Takes one step of the change of keys at a host.
    pub(super) fn rekey(&mut self, host: u32) {
        let slot = &mut self.hosts[host as usize];
        slot.key_step = slot.key_step.next();
        let settings = self.settings_of(host, 0);
        let now = self.now;
        if let Some(real) = self.real_host(host) {
            real.set_settings(now, &settings);
        }
        self.drain(host);
    }

    /// Sets the longest frame that a host's interface carries.
    pub(super) fn set_mtu(&mut self, host: u32, bytes: u16) {
        let now = self.now;
        self.hosts[host as usize].mtu_bytes = bytes;
        let (carries, mtu) = (self.options.traffic.is_some(), self.link_mtu(host));
        if let Some(real) = self.real_host(host).filter(|_| carries) {
            real.set_mtu(now, mtu);
        }
        self.tell_own_cables(host);
        self.drain(host);
        // Its neighbours learn of this by hellos, and their kernels then send no packets across the cables to
        // it that are longer.
        self.show_all_kernel_ports();
    }

    /// How long the frames may be that a host sends and takes. If hosts have kernels, each is a node, and all
    /// ports of its crossbar have that MTU.
    pub(super) fn link_mtu(&self, host: u32) -> LinkMtu {
        let last_port = if self.kernels.are_there() { LinkMtu::LAST_PORT } else { 0 };
        LinkMtu { bytes: self.hosts[host as usize].mtu_bytes, ports: (1..=last_port).collect() }
    }

    /// Sets the level of a host. All others know it by the old level, so a new agent takes the place of the
    /// one that runs; everything else at the host goes on.
    pub(super) fn set_level(&mut self, host: u32, level: u8) {
        self.hosts[host as usize].settings.level = level;
        // The hosts should now have another map.
        self.matches.occupancy += 1;
        if self.real_host(host).is_none() {
            return;
        }
        let seed = self.next_seed(host);
        let settings = self.settings_at_start(host, seed);
        let slot = &mut self.hosts[host as usize];
        if let Some(status) = slot.node.as_ref().and_then(|node| node.status()) {
            self.retired.add(&status);
        }
        (slot.configured, slot.mapped) = (None, None);
        let now = self.now;
        if let Some(real) = self.real_host(host) {
            real.begin_anew(now, settings, seed);
        }
        self.drain(host);
    }

    /// Sets how many routes a host computes to each destination.
    pub(super) fn set_passes(&mut self, host: u32, passes: u8) {
        let slot = &mut self.hosts[host as usize];
        slot.routes.passes = passes;
        let routes = slot.routes;
        if let Some(real) = self.real_host(host) {
            real.set_route_options(routes);
        }
        self.drain(host);
    }

    /// Sets a host otherwise. An agent that runs goes on.
    pub(super) fn set_otherwise(&mut self, host: u32, setting: Setting) {
        let slot = &mut self.hosts[host as usize];
        setting.apply(&mut slot.settings, &mut slot.routes);
        let routes = slot.routes;
        let settings = self.settings_of(host, 0);
        let now = self.now;
        if let Some(real) = self.real_host(host) {
            real.set_settings(now, &settings);
            real.set_route_options(routes);
        }
        self.drain(host);
    }

    /// The [`Host`] that runs at a host, if the software there is one.
    pub(super) fn real_host(&mut self, host: u32) -> Option<&mut Host> {
        self.hosts[host as usize].node.as_mut().and_then(|node| node.host_mut())
    }
}
