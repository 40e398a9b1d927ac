//! The order in which hosts get their spines.

use super::{Settings, Subnet, host_of_slot};
use crate::Tiers;

/// The compute nodes of one xbar, by port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeafOrder {
    /// The xbar.
    pub xbar: u32,
    /// Its compute nodes.
    pub hosts: Vec<u32>,
}

/// The order of hosts that ftree's tables are made for: a job whose ranks follow it shifts without
/// congestion on a full tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostOrder {
    /// The xbars with compute nodes, by index.
    pub leaves: Vec<LeafOrder>,
    /// The other hosts, by xbar and port; they are routed last.
    pub others: Vec<u32>,
    /// Hosts of the largest leaf: smaller ones are padded with dummies, which only count.
    pub padded: usize,
}

impl HostOrder {
    /// The order for a fabric.
    ///
    /// Compute nodes are those that the settings name, or else all hosts except I/O nodes and service
    /// adapters. Service adapters are those above the leaves, and those that descriptions show.
    pub fn new(subnet: &Subnet, settings: &Settings) -> Self {
        Self::on(subnet, settings, &Tiers::of(&subnet.topology))
    }

    /// The order for a fabric whose tiers are known.
    pub(super) fn on(subnet: &Subnet, settings: &Settings, tiers: &Tiers) -> Self {
        let computes = |host: &u32| is_compute_node(subnet, settings, *host);
        let (mut leaves, mut others) = (Vec::new(), Vec::new());
        for xbar in 0..subnet.topology.xbar_count() as u32 {
            let is_leaf = !tiers.is_served(xbar);
            let hosts = subnet.destinations.host_slots_of(xbar).filter_map(|slot| host_of_slot(subnet, slot));
            let (mut hosts, rest): (Vec<u32>, Vec<u32>) = hosts.partition(|host| is_leaf && computes(host));
            hosts.dedup();
            others.extend(rest);
            if !hosts.is_empty() {
                leaves.push(LeafOrder { xbar, hosts });
            }
        }
        others.dedup();
        let padded = leaves.iter().map(|leaf| leaf.hosts.len()).max().unwrap_or_default();
        Self { leaves, others, padded }
    }
}

fn is_compute_node(subnet: &Subnet, settings: &Settings, host: u32) -> bool {
    settings.compute_nodes.as_ref().map_or_else(
        || !settings.io_nodes.contains(&host) && !subnet.is_service_adapter[host as usize],
        |named| named.contains(&host),
    )
}
