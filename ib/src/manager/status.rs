//! What a manager knows and does, at one moment.

use std::collections::BTreeMap;

use super::election::Manager;
use super::{Datagrams, Routes, Stage, SubnetCount, SubnetManager};
use crate::lids::Lids;
use crate::mad::{PortSettings, PortState, SmState, SubnetVersion};
use crate::sweep::Found;
use mapper_proto::Tally;

/// What a manager is busy with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// It asks what there is, and what switches hold.
    Exploring,
    /// It waits for tables.
    Computing,
    /// It writes what differs.
    Writing,
    /// It keeps watch, or waits for another manager to go.
    Watching,
}

/// Another manager.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OtherManager {
    /// The GUID that it says it has, which is that of its port.
    pub guid: u64,
    /// The GUID of its node; that of the port if the node is not known.
    pub node: u64,
    /// What people call its node; empty if that is not known.
    pub description: String,
    /// The priority. Of two managers the one with the higher priority is to be master.
    pub priority: u8,
    /// What it is doing.
    pub state: SmState,
    /// Whether it is an agent of this program.
    pub is_agent: bool,
    /// How many switches it looked at for this master at the last look.
    pub share: usize,
}

/// What a manager knows and does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// Its role among managers.
    pub role: SmState,
    /// What it is busy with.
    pub work: Work,
    /// Whether this manager has tables in force that were proved, and all writes were confirmed the last time.
    pub is_up: bool,
    /// The GUID of its own port; 0 before it is known.
    pub guid: u64,
    /// The GUID of the node of that port; 0 before it is known.
    pub node: u64,
    /// The LID of its own port; 0 for none.
    pub lid: u16,
    /// The state of its own port.
    pub port_state: PortState,
    /// The LID of the master, as its own port was told; 0 for none.
    pub manager_lid: u16,
    /// The manager that is waited for while this one stands by.
    pub master: Option<OtherManager>,
    /// All other managers, as they answered last.
    pub others: Vec<OtherManager>,
    /// The version of the subnet. A master has brought it up, and a manager that stands by was told it with
    /// its share of the switches. `None` if neither has happened.
    pub version: Option<SubnetVersion>,
    /// How many switches a master looked at itself at the last look, or how many were in the last share of
    /// one that stands by.
    pub share: usize,
    /// How many switches there are.
    pub switches: usize,
    /// How many of them have no key of management, so that whoever can send to them can write to them.
    pub open_switches: usize,
    /// How many ports of adapters and routers are there.
    pub adapters: usize,
    /// The nodes whose ports do not answer and keep their places, by GUID and description.
    pub away: Vec<(u64, String)>,
    /// The engine whose tables are in force; `None` if this manager wrote none.
    pub engine: Option<String>,
    /// How many layers the tables in force have.
    pub layers: u8,
    /// How many multicast groups there are.
    pub groups: usize,
    /// The nodes that do not answer, answer wrongly, or do not take what is written, each with what is wrong,
    /// in words.
    pub problems: Vec<String>,
    /// Uses of wrong keys that ports have told of since this manager became master, in words.
    pub wrong_keys: Vec<String>,
    /// Why there are no tables for the subnet as it is, if the engines made none.
    pub routing_failure: Option<String>,
    /// How often things were done since the start.
    pub counts: Tally<SubnetCount>,
    /// The datagrams since the start.
    pub datagrams: Datagrams,
}

impl SubnetManager {
    /// What the manager is doing, as other managers see it.
    pub fn role(&self) -> SmState {
        self.role
    }

    /// The LIDs that the manager has given.
    pub fn lids(&self) -> &Lids {
        &self.lids
    }

    /// The tables that the manager wrote last, if it is master and all was written.
    pub fn routes(&self) -> Option<&Routes> {
        self.routes.as_ref().filter(|_| self.is_up && self.role == SmState::Master)
    }

    /// How many datagrams the manager has sent.
    pub fn sent(&self) -> u64 {
        self.datagrams.sent
    }

    /// The subnet as it is known now: as it was found, without cables that were seen to fail since, and with
    /// what was written since. Ports that do not answer are left out.
    pub fn found(&self) -> Found {
        self.inventory.found()
    }

    /// What the manager knows and does.
    pub fn status(&self) -> Status {
        let own = self.inventory.settings_of(self.inventory.own).copied().unwrap_or_default();
        let names = self.inventory.names();
        let other = |manager: &Manager| {
            let port = manager.port;
            let (node, name) = names.get(&port).map_or((port, ""), |&(node, name)| (node, name));
            OtherManager {
                guid: manager.info.guid,
                node,
                description: name.to_owned(),
                priority: manager.info.priority,
                state: manager.info.state,
                is_agent: manager.info.is_agent,
                share: self.reported.get(&port).copied().unwrap_or_default(),
            }
        };
        let adapters = || self.inventory.adapters.iter();
        let is_open =
            |of: &&super::inventory::Switch| of.ports.get(&0).is_some_and(|own| !own.is_protected());
        let unreached = self.unreached();
        let problems = [&self.problems, &self.left_out, &self.unwritten, &unreached];
        let (version, share) = self.shared();
        Status {
            role: self.role,
            work: self.work(),
            is_up: self.is_up,
            guid: self.inventory.own,
            node: names.get(&self.inventory.own).map_or(0, |&(node, _)| node),
            lid: own.lid(),
            port_state: own.state(),
            manager_lid: own.manager_lid(),
            master: self.master.as_ref().map(other),
            others: self.others.iter().map(other).collect(),
            version,
            share,
            switches: self.inventory.switches.len(),
            open_switches: self.inventory.switches.iter().filter(is_open).count(),
            adapters: adapters().filter(|adapter| !adapter.is_away).count(),
            away: adapters()
                .filter(|adapter| adapter.is_away)
                .map(|adapter| (adapter.node_guid, adapter.description.clone()))
                .collect(),
            engine: self.engine.clone(),
            layers: self.routes.as_ref().map_or(0, |routes| routes.layers),
            groups: self.groups.members.len(),
            problems: problems.into_iter().flatten().cloned().collect(),
            wrong_keys: self.wrong_keys(),
            routing_failure: self.routing_failure.clone(),
            counts: self.counts,
            datagrams: self.datagrams,
        }
    }

    /// The version of the subnet, and how many switches this manager looked at, for [`Status`].
    fn shared(&self) -> (Option<SubnetVersion>, usize) {
        if self.role != SmState::Master {
            return self.share_seen.map_or((None, 0), |seen| (Some(seen.version), seen.switches));
        }
        let others: usize = self.reported.values().sum();
        let own = self.inventory.switches.len().saturating_sub(others);
        (Some(self.version()).filter(|version| version.counter > 0), own)
    }

    /// The switches that do not answer some agent by LID although tables are right, in words.
    fn unreached(&self) -> Vec<String> {
        let names = self.inventory.names();
        let again = self.unreached.iter().filter(|&(_, &times)| times > 1);
        let tell = |(&(agent, switch), _): (&(u64, u64), &u8)| {
            let name = self.name_of(names.get(&agent).map_or(agent, |&(node, _)| node));
            if agent == switch {
                return format!("the agent of {name} stands by, and does not report on switches given to it");
            }
            let (agent, switch) = (name, self.name_of(switch));
            format!("{switch} does not answer {agent} by its LID; it answers along a directed route")
        };
        again.map(tell).collect()
    }

    fn work(&self) -> Work {
        match &self.stage {
            Stage::Sweeping(_) | Stage::Reading(_) => Work::Exploring,
            Stage::Computing { .. } => Work::Computing,
            Stage::Writing(_) => Work::Writing,
            Stage::Waiting { .. } | Stage::Watching(_) | Stage::Glancing(_) | Stage::Polling(_) => {
                Work::Watching
            }
        }
    }
}

impl super::Inventory {
    /// What the port with a GUID told of itself.
    pub(super) fn settings_of(&self, port_guid: u64) -> Option<&PortSettings> {
        let switches = self.switches.iter().filter(|switch| switch.port_guid == port_guid);
        let adapters = self.adapters.iter().chain(&self.own_left_out);
        let adapters = adapters.filter(|adapter| adapter.port_guid == port_guid);
        let of_switches = switches.filter_map(|switch| switch.ports.get(&0));
        of_switches.chain(adapters.map(|adapter| &adapter.settings)).next()
    }

    /// Whether some port of a node, or a switch's own port, says that a key of management protects it.
    pub(super) fn is_protected(&self, node: u64) -> bool {
        let switches = self.switches.iter().filter(|switch| switch.guid == node);
        let of_switches = switches.filter_map(|switch| switch.ports.get(&0));
        let adapters = self.adapters.iter().filter(|adapter| adapter.node_guid == node);
        of_switches.chain(adapters.map(|of| &of.settings)).any(PortSettings::is_protected)
    }

    /// The GUID and the description of the node of each port, by the port's GUID.
    fn names(&self) -> BTreeMap<u64, (u64, &str)> {
        let switches = self.switches.iter();
        let switches = switches.map(|switch| (switch.port_guid, (switch.guid, switch.description.as_str())));
        let adapters = self.adapters.iter().chain(&self.own_left_out);
        let adapters =
            adapters.map(|adapter| (adapter.port_guid, (adapter.node_guid, adapter.description.as_str())));
        switches.chain(adapters).collect()
    }
}
