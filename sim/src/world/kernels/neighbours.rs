//! What hosts know of the neighbours at their kernels' ports.
//!
//! Hellos take no time in this model. A crossbar says hello as long as it runs. If the agent of a node has crashed or hangs, its
//! crossbar is heard until it would be missed. The crossbar of a hostile host is always heard, as maps still show it, but nobody keeps
//! the tables of its kernel: if packets went by these, it says nothing of its kernel any more.

use std::collections::BTreeMap;

use mapper_host::kernel_path::{KernelPath, PortInterface};
use mapper_proto::Mac;
use mapper_proto::neighbours::{Neighbour, SILENCE};
use mapper_proto::wire::{HelloEnd, HelloFlags};

use crate::fabric::{PlantNode, PlantPort};
use crate::world::World;

/// The number of the interface of port 0; those of other ports follow.
pub(super) const FIRST_INTERFACE: u32 = 10;

impl World {
    /// Tells all hosts which of their ports lead where now, if that is new to them.
    pub(in crate::world) fn show_all_kernel_ports(&mut self) {
        (0..self.hosts.len() as u32).for_each(|host| self.show_kernel_ports(host));
    }

    /// Tells a host which of its ports lead where now, if that is new to it.
    pub(in crate::world) fn show_kernel_ports(&mut self, host: u32) {
        if !self.kernels.are_there() {
            return;
        }
        let runs = self.runs_crossbar(host);
        let now = self.now;
        let kernel = &mut self.kernels.hosts[host as usize];
        kernel.ran_at = if runs { Some(now) } else { kernel.ran_at };
        let (interfaces, heard) = self.interfaces_and_neighbours(host);
        let real = self.hosts[host as usize].node.as_mut().and_then(|node| node.host_mut());
        if real.is_some_and(|real| real.set_kernel_interfaces(now, &interfaces, &heard)) {
            self.tell_own_cables(host);
            self.drain(host);
        }
    }

    /// The longest frame that all neighbours of a host say they take, in bytes; `None` if there are none.
    pub(in crate::world) fn least_heard_mtu(&self, host: u32) -> Option<u32> {
        if !self.kernels.are_there() {
            return None;
        }
        self.interfaces_and_neighbours(host).1.values().map(|neighbour| neighbour.mtu).min()
    }

    /// The interfaces at the ports of a host's own crossbar, and the neighbours that are heard there. A port that leads to no other
    /// node has no carrier.
    fn interfaces_and_neighbours(&self, host: u32) -> (Vec<PortInterface>, BTreeMap<u8, Neighbour>) {
        let Some(own) = self.home_of(host) else { return Default::default() };
        let PlantNode::Xbar(own_xbar) = own.node else { return Default::default() };
        let cabled = self.plant.cabled_ports(own_xbar);
        let neighbour = |&(near, far): &(PlantPort, PlantPort)| Some((near.port, self.neighbour_at(far)?));
        let heard = cabled.iter().filter_map(neighbour).collect();
        let mtu = u32::from(self.hosts[host as usize].mtu_bytes);
        let interface = |end: PlantPort| PortInterface {
            port: end.port,
            index: FIRST_INTERFACE + u32::from(end.port),
            name: interface_name(end.port),
            mtu,
            has_carrier: cabled.iter().any(|(near, _)| *near == end),
        };
        let outer = self.plant.ports_of(own_xbar).filter(|end| *end != own);
        (outer.map(interface).collect(), heard)
    }

    /// Who is heard at a port of a crossbar, if somebody is.
    fn neighbour_at(&self, far: PlantPort) -> Option<Neighbour> {
        let PlantNode::Xbar(xbar) = far.node else { return None };
        let end = HelloEnd::Xbar { tag: self.plant.tag(xbar), port: far.port };
        let mac = link_address(xbar, far.port);
        let Some(other) = self.kernel_at(xbar) else {
            // A crossbar alone has no kernel here.
            return Some(Neighbour { end, mac, mtu: u32::MAX, flags: HelloFlags::NONE });
        };
        let kernel = &self.kernels.hosts[other as usize];
        let is_heard = |ran_at| self.now.since(ran_at) < SILENCE;
        let runs = self.runs_crossbar(other);
        if !runs && !kernel.ran_at.is_some_and(is_heard) {
            return None;
        }
        let is_out_of_date = runs && !self.is_live(other) && kernel.said.contains(HelloFlags::ROUTES);
        let flags = if is_out_of_date { HelloFlags::NONE } else { kernel.said };
        Some(Neighbour { end, mac, mtu: u32::from(self.hosts[other as usize].mtu_bytes), flags })
    }

    /// Whether a host runs the crossbar of its node.
    pub(super) fn runs_crossbar(&self, host: u32) -> bool {
        self.hosts[host as usize].node.as_ref().is_some_and(|node| node.runs_crossbar())
    }

    /// Takes in what a host tells its neighbours of its kernel now. What a host whose agent does not run said last stands.
    pub(super) fn note_what_is_said(&mut self, host: u32) {
        if !self.is_live(host) {
            return;
        }
        let path = self.hosts[host as usize].node.as_ref().and_then(|node| node.host()?.kernel_path());
        let says = path.map_or(HelloFlags::NONE, KernelPath::hello_flags);
        if std::mem::replace(&mut self.kernels.hosts[host as usize].said, says) != says {
            self.show_all_kernel_ports();
        }
    }

    /// The port of a host's own crossbar that it is cabled to. It is also `None` if the host's cable has
    /// moved since it started, as a node and its crossbar are one machine, which cannot be taken apart.
    pub(super) fn home_of(&self, host: u32) -> Option<PlantPort> {
        let home = self.kernels.hosts[host as usize].home;
        self.plant.own_xbar(host).filter(|own| home == Some(*own))
    }

    /// The host whose kernel takes what comes in by the ports of a crossbar.
    pub(super) fn kernel_at(&self, xbar: u32) -> Option<u32> {
        self.plant.node_of(xbar).filter(|&host| self.home_of(host).is_some())
    }
}

/// The link address of a crossbar's port.
pub(super) fn link_address(xbar: u32, port: u8) -> Mac {
    Mac::from_u64(0x0600_0000_0000 | u64::from(xbar) << 8 | u64::from(port))
}

/// The name of the interface of a port.
pub(super) fn interface_name(port: u8) -> String {
    format!("e{port}")
}
