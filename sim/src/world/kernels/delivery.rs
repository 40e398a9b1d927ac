//! Whether packets arrive by all the ways that kernels hold.

use std::collections::BTreeSet;
use std::net::IpAddr;

use mapper_fib::model::Packet;
use mapper_proto::IpNetworkAddress;

use super::packets::Leaves;
use crate::fabric::PlantNode;
use crate::world::World;

/// Flows whose packets are followed, which is more than a kernel has ways to one host.
const FLOWS: usize = 64;
/// The length of these packets. It fits all cables.
const PACKET_BYTES: usize = 100;

impl World {
    /// Follows packets of many flows from each live host to each other one of its part to which its kernel has a route. Each must get
    /// there, or to a kernel on the way that has no table for its destination, from where it goes on as a frame. Costs no
    /// virtual time.
    ///
    /// # Errors
    /// In words, naming the hosts.
    pub fn check_packets(&mut self) -> Result<(), String> {
        if !self.kernels.are_there() {
            return Ok(());
        }
        for part in self.live_parts() {
            for &from in &part.hosts {
                let others = part.hosts.iter().filter(|&&to| to != from);
                others.into_iter().try_for_each(|&to| self.check_packets_between(from, to))?;
            }
        }
        Ok(())
    }

    /// Follows packets of many flows from each host to each other one, whether their agents run or not. Each must get there by kernels
    /// alone. Costs no virtual time.
    ///
    /// # Errors
    /// In words, naming the hosts.
    pub fn check_packets_without_agents(&self) -> Result<(), String> {
        let all = 0..self.kernels.hosts.len() as u32;
        let pairs = all.clone().flat_map(|from| all.clone().map(move |to| (from, to)));
        for (from, to) in pairs.filter(|(from, to)| from != to) {
            for &ip in &self.kernels.hosts[to as usize].ips {
                for flow in 0..FLOWS {
                    let packet = Packet::new(ip, Vec::new());
                    if self.follow(from, Leaves::AsRouted, packet, PACKET_BYTES, flow).delivered != Some(to) {
                        let [from, to] = [from, to].map(|host| self.plant.name(PlantNode::Host(host)));
                        return Err(format!(
                            "packets of flow {flow} from {from} to {ip} do not arrive at {to}"
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks that a host knows the addresses that another has now, if hosts have kernels.
    ///
    /// # Errors
    /// In words, naming both.
    pub(in crate::world) fn check_addresses(&self, host: u32, other: u32) -> Result<(), String> {
        let Some(kernel) = self.kernels.hosts.get(other as usize) else { return Ok(()) };
        let Some(directory) = self.directory(host) else { return Ok(()) };
        let known: BTreeSet<IpAddr> =
            directory.addresses_of(self.mac(other)).iter().map(IpNetworkAddress::ip).collect();
        if kernel.ips.iter().copied().collect::<BTreeSet<_>>() != known {
            let [host, other] = [host, other].map(|host| self.plant.name(PlantNode::Host(host)));
            return Err(format!("{host} knows {other} by {known:?}, which has {:?}", kernel.ips));
        }
        Ok(())
    }

    fn check_packets_between(&self, from: u32, to: u32) -> Result<(), String> {
        let [kernel, other] = [from, to].map(|host| &self.kernels.hosts[host as usize]);
        let routed = other.ips.iter().filter(|&&ip| kernel.mtu_towards(ip).is_some());
        for (&ip, flow) in routed.flat_map(|ip| (0..FLOWS).map(move |flow| (ip, flow))) {
            let packet = Packet::new(ip, Vec::new());
            let followed = self.follow(from, Leaves::AsRouted, packet, PACKET_BYTES, flow);
            if followed.delivered != Some(to) && followed.relayed.is_none() {
                let [from, to] = [from, to].map(|host| self.plant.name(PlantNode::Host(host)));
                return Err(format!("packets of flow {flow} from {from} to {ip} do not arrive at {to}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mapper_fabric::generate;
    use mapper_proto::Instant;

    use crate::fabric::Xbars;
    use crate::setup::{Setup, UserSetup};
    use crate::world::Until;
    use crate::world::kernels::Firewall;

    #[test]
    fn packets_that_a_kernel_drops_are_told() {
        let users = UserSetup { rate: 40.0, partners: 2, from: None, flows: 1, broadcasts: false };
        let setup = Setup {
            xbars: Xbars::Tagged,
            nodes: true,
            kernels: true,
            users: Some(users),
            ..Setup::default()
        };
        let mut world = setup.world(&generate("ring:n=3,hosts=1").unwrap()).unwrap();
        let time = Duration::from_secs(3);
        world.run(Until::After(time), Instant::ZERO + time).unwrap();
        assert!(world.stats().by_kernel > 0);
        world.check_packets().unwrap();
        world.set_firewall(1, Firewall::DropsAll);
        let why = world.check_packets().unwrap_err();
        assert!(why.starts_with("packets of flow "), "{why}");
        world.set_firewall(1, Firewall::Open);
        world.check_packets().unwrap();
    }
}
