//! What the hosts and xbars of a map are called.

use std::collections::{BTreeMap, BTreeSet};

use mapper_proto::Mac;
use mapper_proto::map::{Fabric, Host, HostLabel, Map, Xbar, XbarLabel};

/// What people call the hosts and xbars of a map that agents explored: hosts by their MAC addresses, xbars by their tags.
#[derive(Debug, Clone, Default)]
pub struct NamesByAddress {
    hosts: BTreeMap<Mac, String>,
    xbars: BTreeMap<u64, String>,
}

impl NamesByAddress {
    /// The names in a fabric.
    pub fn of(fabric: &Fabric) -> Self {
        let hosts = fabric.map.hosts.iter().zip(&fabric.hosts);
        let xbars = fabric.map.xbars.iter().zip(&fabric.xbars);
        Self {
            hosts: hosts.map(|(host, label)| (host.mac, label.name.clone())).collect(),
            xbars: xbars.filter_map(|(xbar, label)| Some((xbar.tag?, label.name.clone()))).collect(),
        }
    }

    /// The names of hosts, where xbars have none.
    pub fn of_hosts(hosts: BTreeMap<Mac, String>) -> Self {
        Self { hosts, xbars: BTreeMap::new() }
    }

    /// What a host is called, if that is known.
    pub fn of_host(&self, mac: Mac) -> Option<&str> {
        self.hosts.get(&mac).map(String::as_str)
    }

    /// A map with these names: a host that has none is called by its address, an xbar by its
    /// position. No two nodes are called the same: hosts of one name have their addresses behind it.
    pub fn label(&self, map: &Map) -> Fabric {
        let known = |xbar: &Xbar| self.xbars.get(&xbar.tag?).cloned();
        let mut taken: BTreeSet<String> = map.xbars.iter().filter_map(known).collect();
        let mut count: BTreeMap<&str, usize> = BTreeMap::new();
        let named = |host: &Host| self.hosts.get(&host.mac).map(String::as_str);
        map.hosts.iter().filter_map(named).for_each(|name| *count.entry(name).or_default() += 1);
        let macs: BTreeSet<String> = map.hosts.iter().map(|host| host.mac.to_string()).collect();
        let mut names = Vec::with_capacity(map.hosts.len());
        for host in &map.hosts {
            let name = named(host).filter(|name| !macs.contains(*name));
            let alone = name.filter(|name| count[name] == 1).map(str::to_owned);
            let ways = [alone, name.map(|name| format!("{name} {}", host.mac))];
            let free = ways.into_iter().flatten().find(|name| !taken.contains(name));
            let name = free.unwrap_or_else(|| host.mac.to_string());
            taken.insert(name.clone());
            names.push(name);
        }
        let hosts = names.into_iter().map(|name| HostLabel {
            name,
            node_port: 1,
            node_ports: 1,
            ..Default::default()
        });
        let mut positions = (1_usize..).map(|position| format!("x{position}"));
        let mut unnamed = || positions.find(|name| !taken.contains(name)).unwrap_or_default();
        let xbars = map
            .xbars
            .iter()
            .map(|xbar| XbarLabel { name: known(xbar).unwrap_or_else(&mut unnamed), ..Default::default() });
        Fabric { hosts: hosts.collect(), xbars: xbars.collect(), map: map.clone(), ..Fabric::default() }
    }
}
