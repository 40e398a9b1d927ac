//! Which hosts cables join.

use std::cmp::Reverse;

use super::{Attachment, Topology};

impl Topology {
    /// Hosts without a cable, and those outside the part that has most hosts (of equals, the one with the
    /// smallest xbar): no route can join them with the rest. Phantoms are no hosts, and two hosts cabled to
    /// each other are joined.
    pub fn cut_off(&self) -> Vec<u32> {
        let part = |host: u32| match self.attachment(host) {
            Attachment::Port(at) => Some(self.component(at.xbar)),
            Attachment::Host(_) | Attachment::Nothing => None,
        };
        let hosts = 0..self.host_count() as u32;
        let sizes = self.hosts_by_part();
        let largest = (0..sizes.len() as u32).max_by_key(|&part| (sizes[part as usize], Reverse(part)));
        let joined = |host: u32| match self.attachment(host) {
            Attachment::Port(_) => part(host) == largest,
            Attachment::Host(_) => true,
            Attachment::Nothing => self.is_phantom(host),
        };
        hosts.filter(|&host| !joined(host)).collect()
    }

    /// Whether cables join any two hosts.
    pub fn joins_hosts(&self) -> bool {
        let hosts = 0..self.host_count() as u32;
        let direct = hosts.clone().any(|host| matches!(self.attachment(host), Attachment::Host(_)));
        direct || self.hosts_by_part().into_iter().any(|hosts| hosts > 1)
    }

    /// How many hosts each part of the fabric has, by [`Self::component`].
    fn hosts_by_part(&self) -> Vec<u32> {
        let mut sizes = vec![0; self.xbar_count()];
        for host in 0..self.host_count() as u32 {
            if let Attachment::Port(at) = self.attachment(host) {
                sizes[self.component(at.xbar) as usize] += 1;
            }
        }
        sizes
    }
}

#[cfg(test)]
mod tests {
    use mapper_sim::topology::generate;

    use super::*;

    #[test]
    fn hosts_apart_from_most_are_cut_off() {
        let mut fabric = generate("ring:n=4,hosts=2").unwrap();
        let joined = |map: &mapper_proto::map::Map| {
            let topology = Topology::from_map(map).unwrap();
            (topology.cut_off(), topology.joins_hosts())
        };
        assert_eq!(joined(&fabric.map), (Vec::new(), true));
        // Two halves of a ring: the one with the smallest xbar counts as the rest.
        fabric.map.cables.retain(|cable| (cable.a.xbar < 2) == (cable.b.xbar < 2));
        assert_eq!(joined(&fabric.map), (vec![4, 5, 6, 7], true));
        fabric.map.cables.clear();
        fabric.map.hosts.retain(|host| host.mac.to_u64() % 2 == 1);
        assert_eq!(joined(&fabric.map), (vec![1, 2, 3], false));
        fabric.map.hosts.clear();
        assert_eq!(joined(&fabric.map), (Vec::new(), false));
    }
}
