//! What the hosts of a map run.

use std::collections::BTreeMap;

use mapper_proto::map::{Map, host_type};
use serde::{Deserialize, Serialize};

/// The most hosts of one type, and the most of all types, that are named: a board must fit a message.
const MOST_OF_TYPE: usize = 64;
const MOST_NAMED: usize = 1024;

/// The hosts of the map that run one kind of transport.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostsOfType {
    /// The number of what they run: see [`host_type`].
    pub host_type: u8,
    /// The name of what they run, as the option `host-type` takes it.
    pub name: String,
    /// How many they are.
    pub count: usize,
    /// The addresses of at most 64 of them.
    pub hosts: Vec<String>,
}

impl HostsOfType {
    /// The types of all hosts of a map, the most common first. Phantoms do not count as hosts.
    pub fn of(map: &Map) -> Vec<Self> {
        let mut by_type: BTreeMap<u8, Self> = BTreeMap::new();
        let mut room = MOST_NAMED;
        for host in map.hosts.iter().filter(|host| host.host_type != host_type::PHANTOM) {
            let of_type = by_type.entry(host.host_type).or_insert_with(|| Self::none(host.host_type));
            of_type.count += 1;
            if of_type.hosts.len() < MOST_OF_TYPE && room > 0 {
                of_type.hosts.push(host.mac.to_string());
                room -= 1;
            }
        }
        let mut all: Vec<_> = by_type.into_values().collect();
        all.sort_by_key(|of_type| std::cmp::Reverse(of_type.count));
        all
    }

    fn none(host_type: u8) -> Self {
        let name = match host_type {
            host_type::GM => "gm".to_owned(),
            host_type::XM => "xm".to_owned(),
            host_type::MX => "mx".to_owned(),
            host_type::ETHERNET => "ethernet".to_owned(),
            host_type::INFINIBAND => "infiniband".to_owned(),
            number => format!("type {number}"),
        };
        Self { host_type, name, count: 0, hosts: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use mapper_proto::Mac;
    use mapper_proto::map::Host;

    use super::*;

    #[test]
    fn all_hosts_are_counted_and_few_are_named() {
        let host = |n, host_type| Host { mac: Mac::from_position(n), level: 1, host_type, at: None };
        let mut map = Map { hosts: vec![host(1, 9), host(2, host_type::PHANTOM)], ..Map::default() };
        map.hosts.extend((3..103).map(|n| host(n, host_type::ETHERNET)));
        let found = HostsOfType::of(&map);
        let counts: Vec<_> = found.iter().map(|of| (of.name.as_str(), of.count, of.hosts.len())).collect();
        assert_eq!(counts, [("ethernet", 100, 64), ("type 9", 1, 1)]);
        assert_eq!(found[1].hosts, ["02:00:00:00:00:01"]);
        // A board stays small however many types there are.
        map.hosts = (0..20_000).map(|n| host(n, (n % 255 + 1) as u8)).collect();
        let named: usize = HostsOfType::of(&map).iter().map(|of| of.hosts.len()).sum();
        assert_eq!(named, MOST_NAMED);
    }
}
