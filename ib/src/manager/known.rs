//! The subnet as a manager knows it now, in the form in which a sweep tells it.

use std::collections::{BTreeMap, BTreeSet};

use super::inventory::{Adapter, Inventory, Switch};
use crate::mad::{PortInfo, PortSettings};
use crate::sweep::{Found, Node, NodeIndex, Port, PortOf};

impl Inventory {
    /// The subnet as it is known. Ports that do not answer are left out, and so are cables to unknown nodes.
    /// The node of the port that sends stands first.
    pub(super) fn found(&self) -> Found {
        let mut nodes: BTreeMap<u64, Node> = BTreeMap::new();
        for switch in &self.switches {
            nodes.extend(self.switch_node(switch).map(|node| (switch.guid, node)));
        }
        let there = || self.adapters.iter().filter(|adapter| !adapter.is_away);
        for adapter in there() {
            let Some(&info) = self.nodes.get(&adapter.node_guid) else { continue };
            let node = nodes.entry(adapter.node_guid).or_insert_with(|| Node {
                info,
                description: adapter.description.clone(),
                route: adapter.route.clone(),
                ports: BTreeMap::new(),
            });
            node.ports.insert(adapter.port, port(Some(adapter.port_guid), &adapter.settings));
        }
        let own = self.node_of_own();
        let mut nodes: Vec<Node> = nodes.into_values().collect();
        nodes.sort_by_key(|node| (Some(node.info.guid) != own, node.info.guid));
        let places: BTreeMap<u64, NodeIndex> =
            nodes.iter().enumerate().map(|(place, node)| (node.info.guid, place)).collect();
        let end = |(guid, port): (u64, u8)| {
            let place = *places.get(&guid)?;
            nodes[place].ports.contains_key(&port).then_some((place, port))
        };
        let of_switches = self
            .switches
            .iter()
            .flat_map(|switch| switch.cables.iter().map(|(&port, &peer)| ((switch.guid, port), peer)));
        let of_adapters =
            there().filter_map(|adapter| Some(((adapter.node_guid, adapter.port), adapter.at?)));
        let cables = of_switches.chain(of_adapters).filter_map(|(a, b)| {
            let (a, b) = (end(a)?, end(b)?);
            Some([a.min(b), a.max(b)])
        });
        let cables: BTreeSet<[PortOf; 2]> = cables.collect();
        Found { nodes, cables: cables.into_iter().collect(), problems: Vec::new() }
    }

    fn switch_node(&self, switch: &Switch) -> Option<Node> {
        Some(Node {
            info: *self.nodes.get(&switch.guid)?,
            description: switch.description.clone(),
            route: switch.route.clone(),
            ports: switch.ports.iter().map(|(&number, settings)| (number, port(None, settings))).collect(),
        })
    }

    fn node_of_own(&self) -> Option<u64> {
        let is_own_adapter = |adapter: &&Adapter| adapter.port_guid == self.own;
        let switches = self.switches.iter().find(|switch| switch.port_guid == self.own);
        let adapters = self.adapters.iter().find(is_own_adapter);
        switches.map(|switch| switch.guid).or(adapters.map(|adapter| adapter.node_guid))
    }
}

fn port(guid: Option<u64>, settings: &PortSettings) -> Port {
    Port { guid, info: Some(PortInfo::parse(&settings.emit())), settings: Some(*settings) }
}
