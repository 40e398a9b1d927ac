//! Puts a fabric together, piece by piece.

use mapper_proto::Mac;
use mapper_proto::map::{Cable, Fabric, Host, HostLabel, PortRef, Xbar, XbarLabel, host_type};

/// A fabric in the making.
#[derive(Default)]
pub(super) struct Builder {
    fabric: Fabric,
}

impl Builder {
    /// Adds an xbar and returns its index, from which its tag follows.
    pub(super) fn xbar(&mut self, name: String, ports: u8) -> u32 {
        let index = self.fabric.map.xbars.len() as u32;
        let tag = 0x0200_0000_0000_0001 + u64::from(index);
        self.fabric.map.xbars.push(Xbar { ports, tag: Some(tag), ports_known: true });
        self.fabric.xbars.push(XbarLabel { description: name.clone(), name, ..Default::default() });
        index
    }

    /// Adds a host at a port. Its name and its address follow from how many hosts there are already.
    pub(super) fn host(&mut self, xbar: u32, port: u64) {
        self.host_at(Some(PortRef { xbar, port: port as u8 }));
    }

    /// Adds a host that has no cable.
    pub(super) fn isolated_host(&mut self) {
        self.host_at(None);
        if let Some(label) = self.fabric.hosts.last_mut() {
            label.uncabled = true;
        }
    }

    /// Adds a host at a port that is described as the service adapters of InfiniBand switches are, all alike.
    pub(super) fn service_adapter(&mut self, xbar: u32, port: u64) {
        self.host(xbar, port);
        if let Some(label) = self.fabric.hosts.last_mut() {
            label.description = "Aggregation Node".to_owned();
        }
    }

    fn host_at(&mut self, at: Option<PortRef>) {
        let number = self.fabric.map.hosts.len() as u32 + 1;
        let mac = Mac::from_position(number);
        self.fabric.map.hosts.push(Host { mac, level: 1, host_type: host_type::ETHERNET, at });
        let name = format!("h{number}");
        self.fabric.hosts.push(HostLabel {
            description: name.clone(),
            name,
            node_port: 1,
            node_ports: 1,
            ..Default::default()
        });
    }

    /// Adds `hosts` hosts at consecutive ports from `first_port` on.
    pub(super) fn hosts(&mut self, xbar: u32, first_port: u64, hosts: u64) {
        (first_port..first_port + hosts).for_each(|port| self.host(xbar, port));
    }

    /// Adds a cable between ports of two xbars.
    pub(super) fn cable(&mut self, (x, x_port): (u32, u64), (y, y_port): (u32, u64)) {
        let end = |xbar, port| PortRef { xbar, port: port as u8 };
        self.fabric.map.cables.push(Cable::new(end(x, x_port), end(y, y_port)));
    }

    /// The fabric, with its cables sorted as every map has them.
    pub(super) fn finish(mut self) -> Fabric {
        self.fabric.map.cables.sort_unstable();
        self.fabric
    }
}
