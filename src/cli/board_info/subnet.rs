//! Describes the board of a port of InfiniBand for a person.

use std::fmt::{self, Write as _};

use mapper_daemon::agent::status::{Board, Reason, SubnetStanding};
use mapper_fabric::wording::plural;
use mapper_ib::mad::SmState;
use mapper_proto::wire::AgentState;

/// The most nodes that are named in the text.
const MOST_NAMED: usize = 16;

/// Whether the subnet can be used, and if not, what is missing.
pub(super) fn verdict(board: &Board, subnet: &SubnetStanding) -> String {
    let why = match board.state.known() {
        Some(AgentState::Configured) if board.network_configured => {
            return "Network is fully configured.".to_owned();
        }
        Some(AgentState::Configured) if !subnet.masters().is_empty() => "it has several masters",
        Some(AgentState::Configured) if !subnet.blamed.is_empty() => {
            "some nodes do not answer or obey as they should"
        }
        Some(AgentState::Configured) => "its master has not brought it up",
        Some(AgentState::Starting) => "this agent never manages (level 0), and no other manager was found",
        Some(AgentState::Passive) => "this agent stands by, and the master has not brought its port up",
        Some(AgentState::Isolated) => "the port has no cable that works",
        Some(AgentState::Routing) if board.routing_failure.is_some() => "there are no tables for it",
        Some(AgentState::Routing) => "tables are computed and written",
        Some(AgentState::Mapping) => "this agent explores it",
        Some(AgentState::Fetching) | None => "it is not up",
    };
    format!("Network is not fully configured: {why}.")
}

/// Writes what stands below the verdict.
pub(super) fn write(text: &mut String, board: &Board, subnet: &SubnetStanding) -> fmt::Result {
    let lid = subnet.lid.map_or_else(|| "no LID".to_owned(), |lid| format!("LID {lid}"));
    let role = match subnet.role.known() {
        Some(SmState::Master) => "master of its subnet".to_owned(),
        Some(SmState::Standby) => match &subnet.master {
            Some(master) => format!("stands by for {master}"),
            None => "stands by".to_owned(),
        },
        Some(SmState::NotActive) => "told by the master not to manage".to_owned(),
        Some(SmState::Discovering) | None => subnet.role.to_string(),
    };
    writeln!(text, "  {role}; port {}, {lid}", subnet.guid)?;
    let [hosts, xbars, cables] = [(board.hosts, "host"), (board.xbars, "xbar"), (board.cables, "cable")]
        .map(|(count, thing)| plural(count, thing));
    let groups = plural(subnet.groups, "multicast group");
    match &subnet.engine {
        Some(engine) => {
            let layers = plural(usize::from(subnet.layers), "layer");
            writeln!(
                text,
                "  {hosts}, {xbars}, {cables} between xbars; tables of {engine} in {layers}, {groups}"
            )?;
        }
        None => writeln!(text, "  {hosts}, {xbars}, {cables} between xbars when it was explored last")?,
    }
    if let Some(why) = &board.routing_failure {
        writeln!(text, "  no tables: {why}")?;
    }
    for manager in &subnet.managers {
        let share = match manager.share {
            0 => String::new(),
            share => format!(", looks at {}", plural_switches(share)),
        };
        writeln!(text, "  another manager: {manager}{share}")?;
    }
    if let Some(version) = subnet.version.as_ref().filter(|_| !subnet.is_master() && subnet.share > 0) {
        let (share, counter, master) = (plural_switches(subnet.share), version.counter, &version.master);
        writeln!(text, "  looks at {share} for the master, of version {counter} of the subnet of {master}")?;
    }
    write_named(text, &subnet.blamed)?;
    let away = board.unreachable.iter().map(|Reason { why, .. }| why.clone());
    write_named(text, &away.collect::<Vec<_>>())
}

/// A number of switches, in words.
fn plural_switches(count: usize) -> String {
    if count == 1 { "1 switch".to_owned() } else { format!("{count} switches") }
}

/// Writes a line for each node, as far as they are not too many. What nodes are called is escaped already.
fn write_named(text: &mut String, nodes: &[String]) -> fmt::Result {
    for node in nodes.iter().take(MOST_NAMED) {
        writeln!(text, "  {node}")?;
    }
    match nodes.len().saturating_sub(MOST_NAMED) {
        0 => Ok(()),
        more => writeln!(text, "  and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::describe::describe_board;
    use super::*;
    use mapper_daemon::agent::status::ManagerSeen;

    fn board() -> Board {
        let subnet = SubnetStanding {
            role: SmState::Master.into(),
            guid: "0x1001".to_owned(),
            lid: Some(4),
            engine: Some("ftree".to_owned()),
            layers: 1,
            ..SubnetStanding::default()
        };
        Board {
            interface: Some("umad0".to_owned()),
            mac: Some("00:00:00:00:10:00".to_owned()),
            state: AgentState::Configured.into(),
            configured: true,
            network_configured: true,
            interface_exists: true,
            carrier: true,
            hosts: 2,
            xbars: 1,
            no_answer: None,
            subnet: Some(subnet),
            ..Board::silent(0, String::new())
        }
    }

    #[test]
    fn a_master_tells_what_it_manages() {
        let expected = "unit 0: umad0 00:00:00:00:10:00 level 0: configured\n  Network is fully configured.\n  \
                        master of its subnet; port 0x1001, LID 4\n  2 hosts, 1 xbar, 0 cables between xbars; tables of \
                        ftree in 1 layer, 0 multicast groups\n";
        assert_eq!(describe_board(&board()), expected);
    }

    #[test]
    fn other_managers_and_nodes_to_blame_are_named() {
        let mut board = board();
        board.network_configured = false;
        let subnet = board.subnet.as_mut().unwrap();
        subnet.managers = vec![ManagerSeen {
            guid: "0x2001".to_owned(),
            name: "h2\u{1b}".to_owned(),
            priority: 3,
            state: SmState::Standby.into(),
            is_agent: true,
            share: 2,
        }];
        subnet.blamed = (0..20).map(|nth| format!("\"leaf{nth}\" does not answer")).collect();
        let text = describe_board(&board);
        for wanted in [
            "configured: some nodes do not answer or obey as they should.\n",
            "\n  another manager: h2\\u{1b} (0x2001) with priority 3: standby, looks at 2 switches\n",
            "\n  \"leaf15\" does not answer\n  and 4 more\n",
        ] {
            assert!(text.contains(wanted), "{wanted}\n{text}");
        }
    }
}
