//! A subnet that answers managers: switches with tables, ports with states, and what becomes of datagrams.

mod packets;

use std::collections::{BTreeMap, BTreeSet};

use crate::mad::{
    Attribute, DATA_BYTES, Data, Make, ManagerMethod, MulticastTable, NodeDescription, NodeInfo, NodeKind,
    PortSettings, PortState, Route, Smp, SwitchInfo,
};
use crate::sweep::PortOf;

/// The status that says that a value is invalid.
const INVALID: u16 = 7 << 2;
const CAPACITY: u16 = 0x4000;
const MULTICAST_CAPACITY: u16 = 1024;

/// A node of the model.
#[derive(Clone, Debug)]
pub(crate) struct ModelNode {
    pub(crate) info: NodeInfo,
    pub(crate) ports: BTreeMap<u8, PortSettings>,
    pub(crate) table: Vec<u8>,
    pub(crate) switch: SwitchInfo,
    /// The parts of its multicast table, by modifier.
    pub(crate) multicast: BTreeMap<u32, MulticastTable>,
    /// Whether a manager runs behind its port.
    pub(crate) is_manager: bool,
}

/// Nodes and cables. Managers ask by port 1 of the adapters behind which they run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) nodes: Vec<ModelNode>,
    pub(crate) cables: BTreeMap<PortOf, PortOf>,
    /// How often a block of a table was written, those of multicast tables among them.
    pub(crate) table_writes: u64,
}

impl Model {
    /// Switches in a ring with a host each, in port 1; the next is behind port 2, the one before behind port 3.
    pub(crate) fn ring(count: usize) -> Self {
        let mut model = Self::default();
        for index in 0..2 * count {
            let (kind, ports) = if index < count { (NodeKind::Adapter, 1) } else { (NodeKind::Switch, 4) };
            model.add(kind, ports);
        }
        for index in 0..count {
            model.cable((index, 1), (count + index, 1));
            model.cable((count + index, 2), (count + (index + 1) % count, 3));
        }
        model
    }

    pub(crate) fn add(&mut self, kind: NodeKind, count: u8) -> usize {
        let node = self.nodes.len();
        let guid = 0x1000 + (node as u64) * 0x100;
        let info = NodeInfo {
            kind,
            ports: count,
            system_guid: 0,
            guid,
            port_guid: guid,
            local_port: 1,
            make: Make::default(),
        };
        let first = u8::from(kind != NodeKind::Switch);
        let ports = (first..=count).map(|port| (port, with_state(&PortSettings::default(), PortState::Down)));
        self.nodes.push(ModelNode {
            info,
            ports: ports.collect(),
            table: vec![0xFF; usize::from(CAPACITY)],
            switch: SwitchInfo::new(CAPACITY, MULTICAST_CAPACITY),
            multicast: BTreeMap::new(),
            is_manager: false,
        });
        node
    }

    pub(crate) fn cable(&mut self, a: PortOf, b: PortOf) {
        self.cables.insert(a, b);
        self.cables.insert(b, a);
        self.set_states([a, b], PortState::Initialize);
    }

    pub(crate) fn cut(&mut self, a: PortOf) {
        let Some(b) = self.cables.remove(&a) else { return };
        self.cables.remove(&b);
        self.set_states([a, b], PortState::Down);
    }

    /// Has a switch start again without its tables.
    pub(crate) fn reset(&mut self, node: usize) {
        let ends: Vec<_> = self.cables.range((node, 0)..=(node, u8::MAX)).map(|(&a, &b)| [a, b]).collect();
        let switch = &mut self.nodes[node];
        switch.table.fill(0xFF);
        switch.switch = SwitchInfo::new(CAPACITY, MULTICAST_CAPACITY);
        switch.multicast.clear();
        for port in switch.ports.values_mut() {
            *port = with_state(&PortSettings::default(), port.state());
        }
        ends.into_iter().for_each(|ends| self.set_states(ends, PortState::Initialize));
    }

    /// Sets whether a manager runs behind an adapter's port, which the port tells.
    pub(crate) fn set_manager(&mut self, host: usize, is_there: bool) {
        /// The byte of PortInfo with the capability, and its bit.
        const IS_MANAGER: (usize, u8) = (23, 1 << 1);
        if let Some(port) = self.nodes[host].ports.get_mut(&1) {
            let mut data = port.emit();
            data[IS_MANAGER.0] &= !IS_MANAGER.1;
            data[IS_MANAGER.0] |= if is_there { IS_MANAGER.1 } else { 0 };
            *port = PortSettings::parse(&data);
            self.nodes[host].is_manager = is_there;
        }
    }

    /// Whether some switches do not reach each other without the cable at an end.
    pub(crate) fn is_bridge(&self, end: PortOf) -> bool {
        let Some(&far) = self.cables.get(&end) else { return false };
        self.is_switch(end.0)
            && self.is_switch(far.0)
            && !self.reached_without(end.0, Some(end)).contains(&far.0)
    }

    /// The switches that one reaches by cables between switches, itself among them.
    pub(crate) fn switches_around(&self, first: usize) -> BTreeSet<usize> {
        self.reached_without(first, None)
    }

    fn reached_without(&self, first: usize, cut: Option<PortOf>) -> BTreeSet<usize> {
        let (mut seen, mut open) = (BTreeSet::from([first]), vec![first]);
        while let Some(node) = open.pop() {
            for (&from, &to) in self.cables.range((node, 0)..=(node, u8::MAX)) {
                let is_cut = cut == Some(from) || cut == Some(to);
                if !is_cut && self.is_switch(to.0) && seen.insert(to.0) {
                    open.push(to.0);
                }
            }
        }
        seen
    }

    fn is_switch(&self, node: usize) -> bool {
        self.nodes[node].info.kind == NodeKind::Switch
    }

    fn set_states(&mut self, ends: [PortOf; 2], state: PortState) {
        for (node, port) in ends {
            let node = &mut self.nodes[node];
            if let Some(settings) = node.ports.get_mut(&port) {
                *settings = with_state(settings, state);
            }
            node.switch = node.switch.with(node.switch.linear_top(), true);
        }
    }

    /// The port at which a datagram arrives that leaves an adapter by a directed route.
    pub(crate) fn walk(&self, from: usize, route: &Route) -> Option<PortOf> {
        let mut at = (from, 1);
        for (hop, &port) in route.ports().iter().enumerate() {
            if hop > 0 && self.nodes[at.0].info.kind != NodeKind::Switch {
                return None;
            }
            at = *self.cables.get(&(at.0, port))?;
        }
        Some(at)
    }

    /// The answer of the node at the end of a directed route, if there is one.
    pub(crate) fn answer(
        &mut self,
        from: usize,
        asked: &Smp<ManagerMethod>,
        refuse: bool,
    ) -> Option<Smp<ManagerMethod>> {
        let end = self.walk(from, &asked.route)?;
        let own = if self.is_switch(end.0) { 0 } else { end.1 };
        let key = self.nodes[end.0].ports.get(&own).map_or(0, PortSettings::key);
        if asked.method == ManagerMethod::Set && key != 0 && key != asked.key {
            return None;
        }
        Some(self.answer_at(end, asked, refuse))
    }

    /// What a node answers to a datagram that came by a port.
    pub(crate) fn answer_at(
        &mut self,
        (at, came_by): PortOf,
        asked: &Smp<ManagerMethod>,
        refuse: bool,
    ) -> Smp<ManagerMethod> {
        let is_set = asked.method == ManagerMethod::Set;
        let result = match asked.attribute {
            _ if is_set && refuse => Err(INVALID),
            Attribute::NodeInfo => {
                let info = self.nodes[at].info;
                let own = if info.kind == NodeKind::Switch { 0 } else { came_by };
                Ok(NodeInfo { port_guid: info.guid + u64::from(own), local_port: came_by, ..info }.emit())
            }
            Attribute::NodeDescription => Ok(NodeDescription(format!("node {at}")).emit()),
            // An adapter answers questions about a port only if they come in by that port.
            Attribute::PortInfo
                if self.nodes[at].info.kind != NodeKind::Switch && asked.modifier != u32::from(came_by) =>
            {
                Err(INVALID)
            }
            Attribute::PortInfo => self.port(at, asked.modifier as u8, asked.data, is_set),
            Attribute::SwitchInfo => {
                let node = &mut self.nodes[at];
                if is_set {
                    let wanted = SwitchInfo::parse(&asked.data);
                    let keeps = node.switch.state_changed() && !wanted.state_changed();
                    node.switch = node.switch.with(wanted.linear_top(), keeps);
                }
                Ok(node.switch.emit())
            }
            Attribute::LinearTable => {
                let first = asked.modifier as usize * DATA_BYTES;
                match self.nodes[at].table.get_mut(first..first + DATA_BYTES) {
                    Some(block) => {
                        if is_set {
                            block.copy_from_slice(&asked.data);
                            self.table_writes += 1;
                        }
                        let mut data = [0; DATA_BYTES];
                        data.copy_from_slice(block);
                        Ok(data)
                    }
                    None => Err(INVALID),
                }
            }
            Attribute::MulticastTable => {
                let table = self.nodes[at].multicast.entry(asked.modifier).or_insert(MulticastTable::EMPTY);
                if is_set {
                    *table = MulticastTable::parse(&asked.data);
                    self.table_writes += 1;
                }
                Ok(table.emit())
            }
            // Lanes are taken, and nothing here depends on them.
            Attribute::SlToVl | Attribute::VlArbitration if is_set => Ok(asked.data),
            Attribute::Notice
            | Attribute::GuidInfo
            | Attribute::PartitionTable
            | Attribute::SlToVl
            | Attribute::VlArbitration
            | Attribute::SmInfo => Err(INVALID),
        };
        let (status, data) = result.map_or_else(|status| (status, asked.data), |data| (0, data));
        Smp { method: ManagerMethod::GetResponse, status, data, ..asked.clone() }
    }

    fn port(&mut self, at: usize, port: u8, data: Data, is_set: bool) -> Result<Data, u16> {
        let settings = self.nodes[at].ports.get_mut(&port).ok_or(INVALID)?;
        if !is_set {
            return Ok(settings.emit());
        }
        let wanted = PortSettings::parse(&data);
        let next = wanted.state();
        let state = match data[32] & 0xF {
            0 => settings.state(),
            _ if next == settings.state() => next,
            _ if next > PortState::Initialize && next as u8 == settings.state() as u8 + 1 => next,
            _ => return Err(INVALID),
        };
        *settings = with_state(&wanted, state);
        let now = settings.emit();
        // The capabilities of a port cannot be written.
        let is_manager = self.nodes[at].is_manager;
        if self.nodes[at].info.kind == NodeKind::Adapter {
            self.set_manager(at, is_manager);
        }
        Ok(now)
    }
}

fn with_state(settings: &PortSettings, state: PortState) -> PortSettings {
    let mut data = settings.emit_set(Some(state));
    // Each port can use eight lanes, and takes packets of 4096 bytes.
    data[37] = 4 << 4;
    data[41] = 5;
    PortSettings::parse(&data)
}
