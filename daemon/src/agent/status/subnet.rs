//! What the board of a port of InfiniBand says of its subnet.

use std::fmt;

use mapper_ib::mad::{SmState, SubnetVersion};
use mapper_ib::manager::{OtherManager, Status, SubnetCount, Work};
use mapper_proto::wire::AgentState;
use mapper_proto::{Mac, Tally};
use serde::{Deserialize, Serialize};

use super::{Board, FrameCount, Reason};
use crate::word::Word;

/// The most nodes that are blamed by name.
const MOST_BLAMED: usize = 64;

/// The subnet of a port of InfiniBand, as its agent knows it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SubnetStanding {
    /// What the agent is to other managers: `master`, `standby`, `discovering` or `not-active`.
    pub role: Word<SmState>,
    /// The GUID of its port.
    pub guid: String,
    /// The LID of its port; `None` if it has none.
    pub lid: Option<u16>,
    /// The LID of the master, as the port was told; `None` if it was told none.
    pub master_lid: Option<u16>,
    /// The manager that this one stands by for.
    pub master: Option<ManagerSeen>,
    /// All other managers, as they answered last.
    pub managers: Vec<ManagerSeen>,
    /// The subnet as its master brought it up, as this agent is or was told it; `None` if it was not told.
    pub version: Option<SubnetVersionDto>,
    /// How many switches this agent itself looked at last, to see whether something changed. Agents that
    /// stand by looked at the others.
    pub share: usize,
    /// How many switches there are.
    pub switches: usize,
    /// How many of them have no key of management (M_Key), so that whoever can send to them can write to them.
    pub open_switches: usize,
    /// How many ports of adapters and routers there are.
    pub adapters: usize,
    /// The engine whose tables are in force; `None` if this agent wrote none.
    pub engine: Option<String>,
    /// How many layers these tables have, each a service level.
    pub layers: u8,
    /// How many multicast groups there are.
    pub groups: usize,
    /// The nodes that do not answer, answer wrongly, or do not take what is written, each with what is wrong,
    /// in words; at most 64.
    pub blamed: Vec<String>,
    /// Uses of wrong keys that ports have told of since this agent became master, in words that name both
    /// sides.
    #[serde(default)]
    pub wrong_keys: Vec<String>,
    /// How often something was done since the start.
    pub counts: Tally<SubnetCount>,
}

/// Another subnet manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManagerSeen {
    /// The GUID of its port.
    pub guid: String,
    /// What people call its node; empty if that is not known.
    pub name: String,
    /// Of two managers the one with the higher priority is to be master.
    pub priority: u8,
    /// What it is: `master`, `standby`, `discovering` or `not-active`.
    pub state: Word<SmState>,
    /// Whether it is an agent of this program.
    pub is_agent: bool,
    /// How many switches it last looked at for this master.
    pub share: usize,
}

/// The version of a subnet: the master that brought it up, and how often that had done so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubnetVersionDto {
    /// The GUID of the port of the master that brought the subnet up.
    pub master: String,
    /// How often it had done so.
    pub counter: u32,
}

impl SubnetVersionDto {
    fn of(version: SubnetVersion) -> Self {
        Self { master: hex(version.master), counter: version.counter }
    }
}

impl fmt::Display for ManagerSeen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The name comes from another machine, and may contain what a terminal obeys.
        let name = if self.name.is_empty() { "not named" } else { &self.name }.escape_debug();
        write!(f, "{name} ({}) with priority {}: {}", self.guid, self.priority, self.state)
    }
}

impl ManagerSeen {
    fn of(manager: &OtherManager) -> Self {
        Self {
            guid: hex(manager.guid),
            name: manager.description.clone(),
            priority: manager.priority,
            state: manager.state.into(),
            is_agent: manager.is_agent,
            share: manager.share,
        }
    }

    /// Whether it says that it is master.
    pub fn is_master(&self) -> bool {
        self.state == SmState::Master
    }
}

impl SubnetStanding {
    fn of(status: &Status) -> Self {
        let given = |lid: u16| Some(lid).filter(|&lid| lid != 0);
        Self {
            role: status.role.into(),
            guid: hex(status.guid),
            lid: given(status.lid),
            master_lid: given(status.manager_lid),
            master: status.master.as_ref().map(ManagerSeen::of),
            managers: status.others.iter().map(ManagerSeen::of).collect(),
            version: status.version.map(SubnetVersionDto::of),
            share: status.share,
            switches: status.switches,
            open_switches: status.open_switches,
            adapters: status.adapters,
            engine: status.engine.clone(),
            layers: status.layers,
            groups: status.groups,
            blamed: status.problems.iter().take(MOST_BLAMED).cloned().collect(),
            wrong_keys: status.wrong_keys.clone(),
            counts: status.counts,
        }
    }

    /// Whether the agent is master of the subnet.
    pub fn is_master(&self) -> bool {
        self.role == SmState::Master
    }

    /// All managers that are master, including this agent, if more than one is.
    pub fn masters(&self) -> Vec<String> {
        let own = self.is_master().then(|| format!("this agent ({})", self.guid));
        let others = self.managers.iter().filter(|manager| manager.is_master());
        let all: Vec<String> = own.into_iter().chain(others.map(ToString::to_string)).collect();
        if all.len() > 1 { all } else { Vec::new() }
    }

    /// What an administrator should know, in words.
    fn warnings(&self) -> Vec<String> {
        let masters = self.masters();
        let several = (!masters.is_empty()).then(|| {
            format!("the subnet has {} masters: {}; stop all but one", masters.len(), masters.join("; "))
        });
        several.into_iter().chain(self.open_to_all()).chain(self.wrong_keys.iter().cloned()).collect()
    }

    /// How many switches anybody can write to, in words, with what to do; `None` if there are none.
    pub fn open_to_all(&self) -> Option<String> {
        let which = match self.open_switches {
            0 => return None,
            1 if self.switches == 1 => "the switch has".to_owned(),
            open if open == self.switches => format!("all {open} switches have"),
            open => format!("{open} of {} switches have", self.switches),
        };
        Some(format!(
            "{which} no key of management: whoever can send to a switch can write to it; give the managers a key \
             with m-key-file"
        ))
    }
}

fn hex(guid: u64) -> String {
    format!("{guid:#018x}")
}

impl Board {
    /// The board of an agent at a port of InfiniBand, without what is known of the fabric.
    pub fn of_subnet(unit: u8, interface: &str, level: u8, status: &Status, uptime_ms: u64) -> Self {
        let subnet = SubnetStanding::of(status);
        let has_cable = status.port_state != mapper_ib::mad::PortState::Down;
        let mac = |node: u64| Some(Mac::from_u64(node).to_string()).filter(|_| node != 0);
        let state = state_of(status, has_cable);
        let is_alone = subnet.masters().is_empty();
        let is_whole = state == AgentState::Configured && is_alone && subnet.blamed.is_empty();
        let mut board = Self {
            interface: Some(interface.to_owned()),
            mac: mac(status.node),
            level,
            interface_exists: true,
            carrier: has_cable,
            state: state.into(),
            configured: state == AgentState::Configured,
            network_whole: is_whole,
            network_configured: is_whole,
            leader: match &status.master {
                Some(master) => mac(master.node),
                None => mac(status.node).filter(|_| subnet.is_master()),
            },
            routing_failure: status.routing_failure.clone(),
            warnings: subnet.warnings(),
            unreachable: status.away.iter().map(|(node, name)| away(*node, name)).collect(),
            subnet: Some(subnet),
            uptime_ms,
            ..Self::blank(unit)
        };
        board.counters.frames.add(FrameCount::Received, status.datagrams.received);
        board.counters.frames.add(FrameCount::Sent, status.datagrams.sent);
        board
    }
}

/// Where an agent is in its life.
fn state_of(status: &Status, has_cable: bool) -> AgentState {
    let is_active = status.port_state == mapper_ib::mad::PortState::Active;
    match (status.role, status.work) {
        (SmState::Standby, _) if status.master.is_none() => AgentState::Starting,
        (SmState::Standby, _) if is_active => AgentState::Configured,
        (SmState::Standby | SmState::NotActive, _) => AgentState::Passive,
        (_, Work::Watching) if !has_cable => AgentState::Isolated,
        (SmState::Master, _) if status.is_up => AgentState::Configured,
        (_, Work::Computing | Work::Writing) => AgentState::Routing,
        (_, Work::Watching) if status.routing_failure.is_some() => AgentState::Routing,
        (_, Work::Exploring | Work::Watching) => AgentState::Mapping,
    }
}

fn away(node: u64, name: &str) -> Reason {
    let name =
        if name.is_empty() { String::new() } else { format!("{} ", mapper_proto::quote::quoted(name)) };
    Reason {
        mac: Mac::from_u64(node).to_string(),
        why: format!("{name}({}) does not answer; its place and its LIDs are kept", hex(node)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mapper_ib::mad::PortState;
    use mapper_ib::manager::Datagrams;

    fn status() -> Status {
        Status {
            role: SmState::Master,
            work: Work::Watching,
            is_up: true,
            guid: 0x1001,
            node: 0x1000,
            lid: 1,
            port_state: PortState::Active,
            manager_lid: 1,
            master: None,
            others: Vec::new(),
            version: None,
            share: 3,
            switches: 3,
            open_switches: 0,
            adapters: 3,
            away: Vec::new(),
            engine: Some("minhop".to_owned()),
            layers: 1,
            groups: 1,
            problems: Vec::new(),
            wrong_keys: Vec::new(),
            routing_failure: None,
            counts: Tally::default(),
            datagrams: Datagrams::default(),
        }
    }

    fn board(status: &Status) -> Board {
        Board::of_subnet(0, "umad0", 1, status, 5)
    }

    fn other(state: SmState) -> OtherManager {
        OtherManager {
            guid: 0x2001,
            node: 0x2000,
            description: "h2".to_owned(),
            priority: 3,
            state,
            is_agent: true,
            share: 0,
        }
    }

    #[test]
    fn a_master_is_configured_once_its_subnet_is_up_and_one_that_stands_by_once_its_port_is_active() {
        let state = |status: Status| board(&status).state;
        assert_eq!(state(status()), AgentState::Configured);
        let master = || Some(other(SmState::Master));
        let waiting = || Status { role: SmState::Standby, is_up: false, master: master(), ..status() };
        assert_eq!(state(waiting()), AgentState::Configured);
        assert_eq!(state(Status { port_state: PortState::Initialize, ..waiting() }), AgentState::Passive);
        assert_eq!(state(Status { master: None, ..waiting() }), AgentState::Starting);
        let down = || Status { is_up: false, ..status() };
        assert_eq!(state(Status { work: Work::Writing, ..down() }), AgentState::Routing);
        assert_eq!(state(Status { work: Work::Exploring, ..down() }), AgentState::Mapping);
        assert_eq!(state(Status { port_state: PortState::Down, ..down() }), AgentState::Isolated);
        assert_eq!(state(Status { routing_failure: Some("x".to_owned()), ..down() }), AgentState::Routing);
    }

    #[test]
    fn a_second_master_switches_without_a_key_and_wrong_keys_are_told() {
        assert!(board(&status()).warnings.is_empty() && board(&status()).network_configured);
        let told = Status { wrong_keys: vec!["a sent to b".to_owned()], ..status() };
        assert_eq!(board(&told).warnings, ["a sent to b"]);
        let two = Status { others: vec![other(SmState::Master)], open_switches: 2, ..status() };
        let told = board(&two);
        assert!(told.configured && !told.network_configured);
        assert!(told.warnings[0].starts_with("the subnet has 2 masters: this agent (0x"), "{told:?}");
        assert!(told.warnings[0].contains("h2 (0x0000000000002001) with priority 3: master"), "{told:?}");
        assert!(told.warnings[1].starts_with("2 of 3 switches have no key of management"), "{told:?}");
    }

    #[test]
    fn who_is_blamed_keeps_the_network_from_being_called_configured() {
        let blamed =
            board(&Status { problems: vec!["\"leaf\" port 3 does not answer".to_owned()], ..status() });
        assert!(blamed.configured && !blamed.network_configured);
        assert_eq!(blamed.subnet.unwrap().blamed.len(), 1);
    }
}
