//! How fast this machine's interfaces are, which all other hosts are told.

use mapper_host::directory::PortRates;
use mapper_host::resolution::Group;

use super::state::Driver;
use crate::xbar::traffic::rate_mbps;

/// The port number of the interface of an agent alone.
const ALONE: u8 = 0;

impl Driver {
    /// Tells the host how fast the interfaces are now that lead to the fabric, and what they can do together with others.
    pub(super) fn follow_rates(&mut self) {
        let attachment = &self.attachment;
        let ports = attachment.outer_ports().into_iter().map(|port| (port.port, port.interface, port.mtu));
        let alone = attachment.crossbar.is_none().then(|| {
            let link = &attachment.link;
            (ALONE, link.name().to_owned(), link.mtu())
        });
        let interfaces: Vec<(u8, u32, u16)> = ports
            .chain(alone)
            .map(|(port, name, mtu)| {
                let mtu_bytes = mtu.map_or(0, |bytes| u16::try_from(bytes).unwrap_or(u16::MAX));
                (port, rate_mbps(&name).unwrap_or_default(), mtu_bytes)
            })
            .collect();
        // Source routes of agents all have the same layer.
        let groups =
            Group::of_interfaces(0, interfaces.iter().map(|&(_, mbps, mtu_bytes)| (mbps, mtu_bytes)));
        self.host.set_groups(groups);
        let rates = PortRates::new(interfaces.iter().map(|&(port, mbps, _)| (port, mbps)));
        self.host.set_rates(self.now(), rates);
    }
}
