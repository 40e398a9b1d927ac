//! The MTUs of the interfaces of hosts' users, which follow what all cables carry.

use mapper_host::TapMtu;
use mapper_host::data::{MIN_TAP_MTU, tap_mtu};

use super::World;
use crate::fabric::PlantNode;

impl World {
    /// Tells a host what the cables of its machine carry at both ends. Only nodes, whose kernels are simulated, hear of other ends
    /// before there is a map.
    pub(super) fn tell_own_cables(&mut self, host: u32) {
        let own = self.hosts[host as usize].mtu_bytes.into();
        let least = self.least_heard_mtu(host).map_or(own, |heard| heard.min(own));
        if let Some(real) = self.real_host(host) {
            real.set_own_cables(Some(least));
        }
    }

    /// Gives the interface of a host's user the MTU that the host wants it to have.
    pub(super) fn set_tap_mtu(&mut self, host: u32) {
        let Some(real) = self.hosts[host as usize].node.as_mut().and_then(|node| node.host_mut()) else {
            return;
        };
        while let Some(mtu) = real.poll_tap_mtu() {
            real.tap_mtu_was_set(mtu);
        }
    }

    /// The MTU of the interface of a host's user, in bytes; `None` if no agent runs there, or hosts have no users.
    pub fn tap_mtu(&self, host: u32) -> Option<u32> {
        let real = self.hosts[host as usize].node.as_ref()?.host()?;
        real.tap_mtu().map(TapMtu::given)
    }

    /// Checks that the interface of each live host's user has the MTU that all cables of its part carry. To be called when all live
    /// hosts of each part have one map, and have heard that all have it.
    ///
    /// # Errors
    /// In words, naming the host.
    pub fn check_tap_mtus(&mut self) -> Result<(), String> {
        if self.options.traffic.is_none() {
            return Ok(());
        }
        for part in self.live_parts() {
            let least = part.hosts.iter().map(|&host| self.hosts[host as usize].mtu_bytes).min();
            for &host in &part.hosts {
                let Some(mtu) = self.tap_mtu(host) else { continue };
                let max_hops = self.hosts[host as usize].routes.max_hops;
                let fits = tap_mtu(least.unwrap_or_default().into(), max_hops).unwrap_or(MIN_TAP_MTU);
                if mtu != fits {
                    let name = self.plant.name(PlantNode::Host(host));
                    return Err(format!(
                        "the interface of {name}'s user has an MTU of {mtu}, and all cables carry {fits}"
                    ));
                }
            }
        }
        Ok(())
    }
}
