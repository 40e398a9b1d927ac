//! How fast this machine's interfaces are, which all other hosts are told.

use mapper_host::directory::PortRates;
use mapper_host::resolution::Group;

use super::event_loop::Driver;
use crate::xbar::traffic::rate_mbps;

/// The number that stands for the interface of an agent alone.
const ALONE: u8 = 0;

impl Driver {
    /// Tells the host how fast the interfaces are now that lead to the fabric.
    pub(super) fn follow_rates(&mut self) {
        let attachment = &self.attachment;
        let ports = attachment.outer_ports().into_iter().map(|port| (port.port, port.interface));
        let alone = attachment.crossbar.is_none().then(|| (ALONE, attachment.link.name().to_owned()));
        let rates = ports.chain(alone).filter_map(|(port, name)| Some((port, rate_mbps(&name)?)));
        let rates = PortRates::new(rates);
        let rate_mbps = rates.fastest().unwrap_or_default();
        let mtu_bytes = attachment.link_mtu().map_or(0, |mtu| mtu.bytes);
        // Agents' source routes have one layer.
        self.host.set_groups(vec![Group { rate_mbps, mtu_bytes, layer: 0 }]);
        self.host.set_rates(self.now(), rates);
    }
}
