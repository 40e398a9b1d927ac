//! Which hosts cables join.

use std::cmp::Reverse;

use super::{Attachment, Topology};

/// Hosts that cables join with each other, and with no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPart {
    /// The hosts, by rising index.
    pub hosts: Vec<u32>,
    /// How many xbars are among them; none for hosts that are cabled to no xbar.
    pub xbars: usize,
}

impl HostPart {
    /// How many pairs of its hosts there are.
    pub fn pairs(&self) -> u64 {
        let hosts = self.hosts.len() as u64;
        hosts * hosts.saturating_sub(1) / 2
    }
}

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

    /// The parts of the fabric that have hosts: those with most hosts first, then by their first host.
    /// Phantoms are no hosts; one without a cable is a part by itself.
    pub fn host_parts(&self) -> Vec<HostPart> {
        let mut of_part = vec![usize::MAX; self.xbar_count()];
        let mut parts: Vec<HostPart> = Vec::new();
        for host in (0..self.host_count() as u32).filter(|&host| !self.is_phantom(host)) {
            let known = match self.attachment(host) {
                Attachment::Port(at) => Some(&mut of_part[self.component(at.xbar) as usize]),
                Attachment::Host(other) if other < host => {
                    let its = parts.iter_mut().find(|part| part.hosts == [other]);
                    its.into_iter().for_each(|part| part.hosts.push(host));
                    continue;
                }
                Attachment::Host(_) | Attachment::Nothing => None,
            };
            match known {
                Some(&mut place) if place != usize::MAX => parts[place].hosts.push(host),
                unknown => {
                    unknown.into_iter().for_each(|place| *place = parts.len());
                    parts.push(HostPart { hosts: vec![host], xbars: 0 });
                }
            }
        }
        for xbar in 0..self.xbar_count() as u32 {
            if let Some(part) = parts.get_mut(of_part[self.component(xbar) as usize]) {
                part.xbars += 1;
            }
        }
        parts.sort_by_key(|part| (Reverse(part.hosts.len()), part.hosts[0]));
        parts
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
    use mapper_fabric::generate;

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
    #[test]
    fn parts_have_their_hosts_and_pairs() {
        let mut fabric = generate("ring:n=5,hosts=2").unwrap();
        let parts = |map: &mapper_proto::map::Map| {
            let parts = Topology::from_map(map).unwrap().host_parts();
            parts.into_iter().map(|part| (part.pairs(), part.xbars, part.hosts)).collect::<Vec<_>>()
        };
        assert_eq!(parts(&fabric.map), [(45, 5, (0..10).collect())]);
        fabric.map.cables.retain(|cable| (cable.a.xbar < 2) == (cable.b.xbar < 2));
        fabric.map.hosts[9].at = None;
        assert_eq!(
            parts(&fabric.map),
            [(10, 3, vec![4, 5, 6, 7, 8]), (6, 2, vec![0, 1, 2, 3]), (0, 0, vec![9])]
        );
        let mut pair = generate("ring:n=2").unwrap().map;
        (pair.xbars, pair.cables) = (Vec::new(), Vec::new());
        pair.hosts.iter_mut().for_each(|host| host.at = None);
        assert_eq!(parts(&pair), [(1, 0, vec![0, 1])]);
    }
}
