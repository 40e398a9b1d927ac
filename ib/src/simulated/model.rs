//! A subnet that answers managers: switches with tables, ports with states, and what becomes of datagrams.

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
            Attribute::Notice
            | Attribute::GuidInfo
            | Attribute::PartitionTable
            | Attribute::SlToVl
            | Attribute::LaneArbitration
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

    /// The LID of each host's port.
    pub(crate) fn hosts(&self) -> Vec<(usize, u16)> {
        let hosts = self.nodes.iter().enumerate().filter(|(_, node)| node.info.kind == NodeKind::Adapter);
        hosts.map(|(at, node)| (at, node.ports[&1].lid())).collect()
    }

    /// The port to which a packet comes that leaves by a port, if that port is active and the one behind it
    /// takes packets.
    fn beyond(&self, from: PortOf) -> Option<PortOf> {
        let state = |(node, port): PortOf| self.nodes[node].ports[&port].state();
        let to = *self.cables.get(&from)?;
        (state(from) == PortState::Active && state(to) >= PortState::Armed).then_some(to)
    }

    /// The node and port at which a packet from a node to a LID arrives by the tables in force. The LID may
    /// be that of a switch.
    pub(crate) fn reached(&self, from: usize, lid: u16) -> Option<PortOf> {
        let entry = |node: usize| {
            let here = &self.nodes[node];
            if lid > here.switch.linear_top() { 0xFF } else { here.table[usize::from(lid)] }
        };
        let mut at = (from, if self.is_switch(from) { entry(from) } else { 1 });
        for _ in 0..=self.nodes.len() {
            let (node, port) = self.beyond(at)?;
            let out = if self.is_switch(node) { entry(node) } else { 0 };
            if out == 0 {
                let own = if self.is_switch(node) { 0 } else { port };
                return (self.nodes[node].ports[&own].lid() == lid).then_some((node, port));
            }
            at = (node, out);
        }
        None
    }

    /// The cables that a packet takes, by the ports that it leaves by, and whether it arrives.
    pub(crate) fn trace(&self, from: usize, to: u16) -> (Vec<PortOf>, bool) {
        let mut way = Vec::new();
        let mut at = self.beyond((from, 1));
        while let Some((node, port)) = at {
            let here = &self.nodes[node];
            if here.info.kind != NodeKind::Switch {
                return (way, here.ports[&port].lid() == to);
            }
            let out = if to > here.switch.linear_top() { 0xFF } else { here.table[usize::from(to)] };
            // A packet that comes by a cable again goes round for ever, which is a circle.
            let is_again = way.contains(&(node, out));
            way.push((node, out));
            if is_again {
                return (way, false);
            }
            at = self.beyond((node, out));
        }
        (way, false)
    }

    /// The hosts that a packet to a multicast LID reaches, each as often as a copy reaches it.
    ///
    /// # Errors
    /// If a copy goes round.
    pub(crate) fn flood(&self, from: usize, lid: u16) -> Result<Vec<usize>, String> {
        let mut reached = Vec::new();
        // The copies that are under way, each with the ports that it left by.
        let mut open: Vec<(PortOf, Vec<PortOf>)> =
            self.beyond((from, 1)).into_iter().map(|at| (at, Vec::new())).collect();
        while let Some(((at, came_by), way)) = open.pop() {
            let node = &self.nodes[at];
            if node.info.kind != NodeKind::Switch {
                reached.push(at);
                continue;
            }
            let place = lid - 0xC000;
            let leads = |port: &u8| {
                let modifier = MulticastTable::modifier(place / 32, port / 16);
                node.multicast
                    .get(&modifier)
                    .is_some_and(|part| part.ports(place % 32) >> (port % 16) & 1 == 1)
            };
            for port in (1..=node.info.ports).filter(|&port| port != came_by).filter(leads) {
                let Some(next) = self.beyond((at, port)) else { continue };
                if way.contains(&(at, port)) {
                    return Err(format!("a packet to {lid:#x} from node {from} goes round"));
                }
                open.push((next, [&way[..], &[(at, port)]].concat()));
            }
        }
        reached.sort_unstable();
        Ok(reached)
    }

    /// Checks that a packet to the broadcast group of IPoIB never goes round, wherever it comes from.
    ///
    /// # Errors
    /// If one goes round.
    pub(crate) fn check_storms(&self) -> Result<(), String> {
        self.hosts().into_iter().try_for_each(|(host, _)| self.flood(host, 0xC000).map(drop))
    }

    /// Checks that a packet to a multicast LID from each of these hosts reaches each of the others exactly
    /// once.
    ///
    /// # Errors
    /// If it reaches others.
    pub(crate) fn check_group(&self, lid: u16, members: &[usize]) -> Result<(), String> {
        for &from in members {
            let others: Vec<usize> = members.iter().copied().filter(|&member| member != from).collect();
            let reached = self.flood(from, lid)?;
            if reached != others {
                return Err(format!(
                    "from node {from} to group {lid:#x}: nodes {reached:?} instead of {others:?}"
                ));
            }
        }
        Ok(())
    }

    /// Checks that packets between hosts cannot wait for each other in a circle, by the tables that switches
    /// hold now.
    ///
    /// # Errors
    /// If they can. The error names the ports that are left, each with those that follow it, and the circle is among them.
    pub(crate) fn check_circles(&self) -> Result<(), String> {
        let mut after: BTreeMap<PortOf, BTreeSet<PortOf>> = BTreeMap::new();
        let lids: BTreeSet<u16> =
            self.hosts().into_iter().map(|(_, lid)| lid).filter(|&lid| lid > 0).collect();
        for (from, _) in self.hosts() {
            for &to in &lids {
                for pair in self.trace(from, to).0.windows(2) {
                    after.entry(pair[0]).or_default().insert(pair[1]);
                    after.entry(pair[1]).or_default();
                }
            }
        }
        while let Some(end) = after.iter().find(|(_, next)| next.is_empty()).map(|(&end, _)| end) {
            after.remove(&end);
            for next in after.values_mut() {
                next.remove(&end);
            }
        }
        if after.is_empty() { Ok(()) } else { Err(format!("packets wait in a circle: {after:?}")) }
    }

    /// Checks that every cable is up, and that every host has a LID of its own and reaches every other.
    ///
    /// # Errors
    /// If not.
    pub(crate) fn check_up(&self) -> Result<(), String> {
        for (node, port) in self.cables.keys() {
            let state = self.nodes[*node].ports.get(port).map(PortSettings::state);
            if state != Some(PortState::Active) {
                return Err(format!("node {node} port {port} is {state:?}"));
            }
        }
        let hosts = self.hosts();
        let lids: BTreeSet<u16> = hosts.iter().map(|&(_, lid)| lid).collect();
        if lids.len() < hosts.len() || lids.contains(&0) {
            return Err(format!("hosts without a LID of their own: {hosts:?}"));
        }
        for &(from, _) in &hosts {
            for &(to, lid) in hosts.iter().filter(|&&(to, _)| to != from) {
                if !self.trace(from, lid).1 {
                    return Err(format!("nothing comes from node {from} to node {to}"));
                }
            }
        }
        let all: Vec<usize> = hosts.iter().map(|&(host, _)| host).collect();
        self.check_group(0xC000, &all)
    }
}

fn with_state(settings: &PortSettings, state: PortState) -> PortSettings {
    let mut data = settings.emit_set(Some(state));
    // Each port can use one lane, and takes packets of 4096 bytes.
    data[37] = 1 << 4;
    data[41] = 5;
    PortSettings::parse(&data)
}
