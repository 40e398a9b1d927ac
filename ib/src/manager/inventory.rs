//! The switches and the ports of adapters and routers that a manager has to configure, each with the way to
//! it.

use std::collections::{BTreeMap, BTreeSet};

use crate::lids::{Lids, Wanting};
use crate::mad::sa::Gid;
use crate::mad::{Data, NodeInfo, NodeKind, PortSettings, PortState, Route};
use crate::sweep::{Found, PortOf};

use super::task::{Link, Task, TaskAdapter, TaskSwitch};

/// A switch.
#[derive(Clone, Debug)]
pub(crate) struct Switch {
    pub(crate) guid: u64,
    pub(crate) port_guid: u64,
    pub(crate) system_guid: u64,
    pub(crate) description: String,
    pub(crate) route: Route,
    pub(crate) port_count: u8,
    /// What its ports told, its own port 0 among them.
    pub(crate) ports: BTreeMap<u8, PortSettings>,
    /// What its ports are cabled to, by the GUID of the node there and its port.
    pub(crate) cables: BTreeMap<u8, (u64, u8)>,
}

/// A port of an adapter or a router.
#[derive(Clone, Debug)]
pub(crate) struct Adapter {
    pub(crate) node_guid: u64,
    pub(crate) port_guid: u64,
    pub(crate) system_guid: u64,
    pub(crate) description: String,
    pub(crate) port: u8,
    pub(crate) route: Route,
    pub(crate) settings: PortSettings,
    /// What it is cabled to, by GUID and port.
    pub(crate) at: Option<(u64, u8)>,
    /// Whether it was there before and does not answer now. Its place is kept, and tables go on leading
    /// there, so that none has to change when it starts again.
    pub(crate) is_away: bool,
}

/// All that a manager has to configure.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inventory {
    pub(crate) switches: Vec<Switch>,
    pub(crate) adapters: Vec<Adapter>,
    /// What their nodes say of themselves, by GUID.
    pub(crate) nodes: BTreeMap<u64, NodeInfo>,
    /// The GUID of the port that sends.
    pub(crate) own: u64,
    /// The port that sends, if its switch was left out. Nothing is configured there, but what other managers
    /// write to it counts.
    pub(crate) own_left_out: Option<Adapter>,
}

impl Inventory {
    /// The inventory of what a sweep found. Ports that did not tell their state are left out.
    pub(crate) fn of(found: &Found) -> Self {
        let mut cables: BTreeMap<PortOf, PortOf> = BTreeMap::new();
        for &[a, b] in &found.cables {
            cables.insert(a, b);
            cables.insert(b, a);
        }
        let guid_of = |(node, port): PortOf| (found.nodes[node].info.guid, port);
        let mut all =
            Self { own: found.nodes.first().map_or(0, |node| node.info.port_guid), ..Self::default() };
        for (index, node) in found.nodes.iter().enumerate() {
            all.nodes.insert(node.info.guid, node.info);
            if node.info.kind == NodeKind::Switch {
                let ports = node.ports.iter().filter_map(|(&port, of)| Some((port, of.settings?)));
                let ends = cables.range((index, 1)..=(index, u8::MAX));
                all.switches.push(Switch {
                    guid: node.info.guid,
                    port_guid: node.info.port_guid,
                    system_guid: node.info.system_guid,
                    description: node.description.clone(),
                    route: node.route.clone(),
                    port_count: node.info.ports,
                    ports: ports.collect(),
                    cables: ends.map(|(&(_, port), &peer)| (port, guid_of(peer))).collect(),
                });
                continue;
            }
            for (&port, of) in &node.ports {
                let (Some(settings), Some(port_guid)) = (of.settings, of.guid) else { continue };
                let peer = cables.get(&(index, port)).copied();
                let Some(route) = way_to(found, (index, port), peer) else { continue };
                all.adapters.push(Adapter {
                    node_guid: node.info.guid,
                    port_guid,
                    system_guid: node.info.system_guid,
                    description: node.description.clone(),
                    port,
                    route,
                    settings,
                    at: peer.map(guid_of),
                    is_away: false,
                });
            }
        }
        all
    }

    /// Keeps the adapters' ports that were there before and do not answer, unless another node is in their
    /// place.
    pub(crate) fn keep_places(&mut self, before: &Self) {
        let known: BTreeSet<u64> = self.adapters.iter().map(|adapter| adapter.port_guid).collect();
        let places: BTreeMap<u64, usize> =
            self.switches.iter().enumerate().map(|(place, switch)| (switch.guid, place)).collect();
        for adapter in before.adapters.iter().filter(|adapter| !known.contains(&adapter.port_guid)) {
            let Some((guid, port)) = adapter.at else { continue };
            let place = places.get(&guid).map(|&place| &mut self.switches[place]);
            let Some(switch) =
                place.filter(|switch| port <= switch.port_count && !switch.cables.contains_key(&port))
            else {
                continue;
            };
            switch.cables.insert(port, (adapter.node_guid, adapter.port));
            if let Some(&info) = before.nodes.get(&adapter.node_guid) {
                self.nodes.entry(adapter.node_guid).or_insert(info);
            }
            self.adapters.push(Adapter { is_away: true, ..adapter.clone() });
        }
    }

    /// This inventory with an adapter behind a port of each switch that is cabled to something unknown, and the LIDs of these
    /// stand-ins among the others.
    ///
    /// A node that is there and did not answer may send packets, or forward some by a table that is not
    /// known. Proofs count only the packets of adapters, so they need an adapter there.
    pub(crate) fn with_stand_ins(&self, lids: &Lids, lmc: u8) -> Option<(Self, Lids, Vec<u64>)> {
        let switches = self.switches.iter().filter(|switch| lids.of(switch.port_guid).is_some());
        let switches: BTreeSet<u64> = switches.map(|switch| switch.guid).collect();
        let adapters: BTreeSet<(u64, u8)> =
            self.adapters.iter().map(|adapter| (adapter.node_guid, adapter.port)).collect();
        let is_known = |end: &(u64, u8)| switches.contains(&end.0) || adapters.contains(end);
        let mut all = self.clone();
        let mut guids = Vec::new();
        for switch in all.switches.iter_mut().filter(|switch| switches.contains(&switch.guid)) {
            let is_open = |port: &u8| match switch.cables.get(port) {
                Some(end) => !is_known(end),
                None => switch.ports.get(port).is_none_or(|of| of.state() != PortState::Down),
            };
            let Some(port) = (1..=switch.port_count).find(is_open) else { continue };
            // No node has this GUID: it is the switch's with all bits inverted, and GUIDs of one maker begin
            // alike.
            let guid = !switch.guid;
            guids.push(guid);
            switch.cables.insert(port, (guid, 1));
            all.adapters.push(Adapter {
                node_guid: guid,
                port_guid: guid,
                system_guid: 0,
                description: "not known".to_owned(),
                port: 1,
                route: switch.route.clone(),
                settings: PortSettings::default(),
                at: Some((switch.guid, port)),
                is_away: true,
            });
        }
        if guids.is_empty() {
            return None;
        }
        let mut wanting = self.wanting(lmc);
        wanting.extend(guids.iter().map(|&guid| Wanting { guid, current: 0, is_active: false, lmc }));
        let mut given = lids.clone();
        given.assign(&wanting, &BTreeSet::new());
        Some((all, given, guids))
    }

    /// The ports that need LIDs, of which adapters have 2^lmc each.
    pub(crate) fn wanting(&self, lmc: u8) -> Vec<Wanting> {
        let wanting = |guid, settings: &PortSettings, lmc| Wanting {
            guid,
            current: if settings.lmc() == lmc { settings.lid() } else { 0 },
            is_active: settings.state() == PortState::Active,
            lmc,
        };
        let switches = self.switches.iter().filter_map(|switch| {
            let own = switch.ports.get(&0)?;
            // The state of a switch's own port does not show whether others know it by its LID, as it has no
            // cable.
            let is_known = switch.ports.values().any(|port| port.state() == PortState::Active);
            Some(Wanting { is_active: is_known, ..wanting(switch.port_guid, own, 0) })
        });
        let there = self.adapters.iter().filter(|adapter| !adapter.is_away);
        switches.chain(there.map(|adapter| wanting(adapter.port_guid, &adapter.settings, lmc))).collect()
    }

    /// The task of computing tables for this inventory, with the tables that switches hold.
    pub(crate) fn task(
        &self,
        number: u64,
        lids: &Lids,
        lmc: u8,
        in_force: &BTreeMap<u64, Vec<u8>>,
        serving: Option<&str>,
    ) -> Task {
        let switch = |switch: &Switch| {
            let links = switch.cables.iter();
            Some(TaskSwitch {
                guid: switch.guid,
                system_guid: switch.system_guid,
                description: switch.description.clone(),
                lid: lids.of(switch.port_guid)?,
                ports: switch.port_count,
                links: links.map(|(&port, &(peer, peer_port))| Link { port, peer, peer_port }).collect(),
                in_force: in_force.get(&switch.guid).cloned().unwrap_or_default(),
                before: Vec::new(),
            })
        };
        let adapter = |adapter: &Adapter| {
            Some(TaskAdapter {
                node_guid: adapter.node_guid,
                port_guid: adapter.port_guid,
                system_guid: adapter.system_guid,
                description: adapter.description.clone(),
                port: adapter.port,
                lid: lids.of(adapter.port_guid)?,
                lmc,
            })
        };
        Task {
            number,
            switches: self.switches.iter().filter_map(switch).collect(),
            adapters: self.adapters.iter().filter_map(adapter).collect(),
            told: None,
            lanes: self.lanes(),
            serving: serving.map(str::to_owned),
            is_urgent: false,
        }
    }

    /// What each end of a cable told of itself, by GUID and port.
    pub(crate) fn ends(&self) -> BTreeMap<(u64, u8), PortSettings> {
        let of_switch = |switch: &Switch| {
            let guid = switch.guid;
            switch.ports.clone().into_iter().map(move |(port, settings)| ((guid, port), settings))
        };
        let adapters = self.adapters.iter().filter(|adapter| !adapter.is_away);
        let adapters = adapters.map(|adapter| ((adapter.node_guid, adapter.port), adapter.settings));
        self.switches.iter().flat_map(of_switch).chain(adapters).collect()
    }

    /// The port that sends, if it is an adapter's.
    pub(crate) fn own_adapter(&self) -> Option<&Adapter> {
        self.adapters.iter().chain(&self.own_left_out).find(|adapter| adapter.port_guid == self.own)
    }

    /// The prefix of the subnet: that of the port that sends, or else the one of subnets that were given
    /// none.
    pub(crate) fn prefix(&self) -> u64 {
        let of_switch = self.switches.iter().filter(|switch| switch.port_guid == self.own);
        let of_switch = of_switch.filter_map(|switch| switch.ports.get(&0));
        let of_adapter = self.adapters.iter().filter(|adapter| adapter.port_guid == self.own);
        let own = of_switch.chain(of_adapter.map(|adapter| &adapter.settings)).next();
        own.map(PortSettings::prefix).filter(|&prefix| prefix != 0).unwrap_or(Gid::LINK_PREFIX)
    }

    /// Takes note of a port's settings, as the port answered to a write.
    pub(crate) fn take_note(&mut self, node: u64, port: u8, now: &Data) {
        let of_switch = self.switches.iter_mut().filter(|switch| switch.guid == node);
        let of_switch = of_switch.filter_map(|switch| switch.ports.get_mut(&port));
        let adapters = self.adapters.iter_mut().chain(&mut self.own_left_out);
        let of_adapter = adapters.filter(|of| (of.node_guid, of.port) == (node, port));
        if let Some(settings) = of_switch.chain(of_adapter.map(|of| &mut of.settings)).next() {
            *settings = PortSettings::parse(now);
        }
    }

    /// Leaves some switches out, and the cables to them.
    pub(crate) fn leave_out(&mut self, switches: &BTreeSet<u64>) {
        self.switches.retain(|switch| !switches.contains(&switch.guid));
        for switch in &mut self.switches {
            switch.cables.retain(|_, (far, _)| !switches.contains(far));
        }
        let is_left_out = |adapter: &Adapter| adapter.at.is_some_and(|(at, _)| switches.contains(&at));
        let own = self.adapters.iter().find(|adapter| adapter.port_guid == self.own);
        self.own_left_out = own.filter(|own| is_left_out(own)).cloned();
        self.adapters.retain(|adapter| !is_left_out(adapter));
    }

    /// How many data lanes all cables between switches have.
    fn lanes(&self) -> u8 {
        let guids: BTreeSet<u64> = self.switches.iter().map(|switch| switch.guid).collect();
        let is_switch = |guid: u64| guids.contains(&guid);
        let between = self.switches.iter().flat_map(|switch| {
            let cabled = switch.cables.iter().filter(|(_, (guid, _))| is_switch(*guid));
            cabled.filter_map(|(port, _)| switch.ports.get(port))
        });
        between.map(|port| PortSettings::lane_count(port.lanes_capacity())).min().unwrap_or(1)
    }
}

/// The directed route by which a port of an adapter is written to, which must come in by that port. This is
/// also so for the other ports of the adapter that sends: the way to them leads out and back in.
fn way_to(found: &Found, (index, port): PortOf, peer: Option<PortOf>) -> Option<Route> {
    let node = &found.nodes[index];
    if index == 0 && port == node.info.local_port {
        return Some(Route::LOCAL);
    }
    let (peer, leads_there) = peer?;
    let from = &found.nodes[peer];
    match from.info.kind {
        NodeKind::Switch => from.route.through(leads_there),
        // Two adapters are on one cable, and the other one sends.
        NodeKind::Adapter | NodeKind::Router => (peer == 0).then(|| node.route.clone()),
    }
}
