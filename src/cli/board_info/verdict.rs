//! Says whether the network can be used, and if not, what is missing and why.

use std::fmt::{self, Write as _};

use mapper_daemon::agent::status::{
    AddressClash, Board, BoardPort, DeadCable, Mismatch, MismatchKind, NetworkLack, dead_ports,
};
use mapper_proto::wire::AgentState;

/// Whether the network can be used, and if not, what is missing.
pub(super) fn verdict(board: &Board) -> String {
    let mismatches = board.counters.mismatches().into_iter();
    let other_keys: Vec<_> = mismatches
        .filter(|mismatch| mismatch.kind == MismatchKind::Key)
        .map(|mismatch| describe_mismatch(&mismatch))
        .collect();
    let why = match board.state.known() {
        Some(AgentState::Configured) if let Some(lack) = board.network_lack() => describe_lack(lack),
        Some(AgentState::Configured) if !board.network_configured => {
            "this board is, but the global mapper has not heard that all others are"
        }
        Some(AgentState::Configured) => return "Network is fully configured.".to_owned(),
        Some(AgentState::Starting) if board.level == 0 => {
            "this board never maps (level 0), and no mapper has come forward"
        }
        Some(AgentState::Starting) => "this board has just begun",
        Some(AgentState::Mapping) => "this board explores the fabric",
        Some(AgentState::Passive) => "this board waits for the map of the global mapper",
        Some(AgentState::Fetching) => "this board collects the map from its parent",
        Some(AgentState::Routing) if board.routing_failure.is_some() => "there are no routes for the map",
        Some(AgentState::Routing) => "this board computes its routes",
        Some(AgentState::Isolated)
            if board.unreachable.iter().any(|host| Some(&host.mac) == board.mac.as_ref()) =>
        {
            "this board stays out of it, as another host has its address"
        }
        Some(AgentState::Isolated) if !other_keys.is_empty() => {
            return format!("Network is not fully configured: the keys differ: {}.", other_keys.join("; "));
        }
        Some(AgentState::Isolated) => {
            return format!("Network is not fully configured: {}.", nobody_found(board));
        }
        None => "this board has no routes for a valid map",
    };
    format!("Network is not fully configured: {why}.")
}

const fn describe_lack(lack: NetworkLack) -> &'static str {
    match lack {
        NetworkLack::Hosts => "hosts do not answer as they should",
        NetworkLack::Cables => "cables of the map are dead, and routes lead around them",
        NetworkLack::EqualMtus => "the two ends of a cable carry frames of different length",
    }
}

/// Why no other host was found, as far as this machine can tell.
fn nobody_found(board: &Board) -> String {
    let ports = &board.ports;
    if let (Some(interface), false, true) = (&board.interface, board.interface_exists, ports.is_empty()) {
        return format!("no other host can be reached: {interface} does not exist any more");
    }
    let others = "see that their agents run, and the crossbars between";
    match dead_ports(ports) {
        Some(dead) if ports.iter().all(|port| !port.carrier) => {
            format!("no other host can be reached: {dead}")
        }
        Some(dead) => format!("no other host was found: {dead}; behind the other ports {others}"),
        None => format!("no other host was found; {others}"),
    }
}

/// Writes which hosts are missing and why, and what may be the cause.
pub(super) fn write_troubles(text: &mut String, board: &Board, interface: &str) -> fmt::Result {
    if !board.interface_exists {
        writeln!(
            text,
            "  interface {interface} does not exist any more: the agent goes on when there is one of that name again"
        )?;
    } else if !board.carrier {
        writeln!(text, "  interface {interface} has no carrier: is it up, and the cable plugged in?")?;
    }
    for trouble in board.ports.iter().filter_map(BoardPort::trouble) {
        writeln!(text, "  {trouble}")?;
    }
    if let Some(why) = &board.routing_failure {
        writeln!(text, "  routing failed: {why}")?;
    }
    for host in &board.unreachable {
        writeln!(text, "  host {}: {}", board.called(&host.mac), host.why)?;
    }
    for cable in &board.dead_cables {
        writeln!(text, "  {}", describe_cable(board, cable))?;
    }
    for AddressClash { address, hosts, lasting } in &board.address_clashes {
        let hosts: Vec<_> = hosts.iter().map(|mac| board.called(mac)).collect();
        let hosts = hosts.join(" and ");
        let then = if *lasting { "give all but one of them another" } else { "all but one pick another" };
        writeln!(text, "  the address {address} is that of {hosts}: {then}")?;
    }
    // Where all hosts of the map are configured, a host with another key is in no map; or it was, and has the right one now.
    let since = if board.network_configured { " (counted since the agent's start)" } else { "" };
    for mismatch in board.counters.mismatches() {
        // For an isolated host, `verdict` already says that its keys differ.
        if board.state != AgentState::Isolated || mismatch.kind != MismatchKind::Key {
            writeln!(text, "  {}{since}", describe_mismatch(&mismatch))?;
        }
    }
    Ok(())
}

fn describe_mismatch(mismatch: &Mismatch) -> String {
    let Mismatch { frames, what, fix, .. } = mismatch;
    format!("dropped {frames} {what}: {fix}")
}

fn describe_cable(board: &Board, cable: &DeadCable) -> String {
    let DeadCable { since_ms, why, .. } = cable;
    format!("the cable at {} has been dead for {} s: {why}", board.end_of_dead(cable), since_ms / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::board_info::describe::describe_board;
    use crate::cli::board_info::describe::tests::configured;
    use mapper_daemon::agent::status::{NarrowCable, Reason};
    use mapper_daemon::xbar::cable::{CableState, CableStatus, NeighbourStatus};
    use mapper_proto::agent::FrameDrop;

    fn reason() -> Reason {
        Reason { mac: "02:00:00:00:00:09".to_owned(), why: "runs no agent".to_owned() }
    }

    #[test]
    fn the_network_is_fully_configured_only_when_it_is() {
        let full = "Network is fully configured.";
        assert!(describe_board(&configured()).contains(full));
        let in_state = |state: AgentState| Board { configured: false, state: state.into(), ..configured() };
        for board in [
            Board { network_configured: false, ..configured() },
            Board { unreachable: vec![reason()], ..configured() },
            Board { dead_cables: vec![DeadCable::default()], ..configured() },
            in_state(AgentState::Starting),
            in_state(AgentState::Mapping),
            in_state(AgentState::Passive),
            in_state(AgentState::Fetching),
            in_state(AgentState::Routing),
            in_state(AgentState::Isolated),
            Board::silent(0, "it is stopped".to_owned()),
        ] {
            let text = describe_board(&board);
            assert!(!text.contains(full), "{text}");
            assert!(
                text.contains("Network is not fully configured: ") || board.no_answer.is_some(),
                "{text}"
            );
        }
    }

    #[test]
    fn a_host_with_another_key_that_no_map_has_shows_by_what_was_dropped() {
        let mut board = configured();
        assert!(!describe_board(&board).contains("dropped"));
        board.counters.dropped.add(FrameDrop::UnknownKey, 7);
        let text = describe_board(&board);
        assert!(text.contains("dropped 7 frames signed with a key that this agent does not have"), "{text}");
        assert!(text.contains("(counted since the agent's start)"), "{text}");
    }

    #[test]
    fn a_network_with_cables_that_carry_less_than_others_is_configured() {
        let neighbour = NeighbourStatus { mtu: 1500, ..NeighbourStatus::default() };
        let (state, mtu) = (CableState::Joined.into(), Some(9000));
        let differs = CableStatus { state, mtu, neighbour: Some(neighbour), ..CableStatus::default() };
        let unknown_to_map = Board { cable: Some(differs), ..configured() };
        let text = describe_board(&unknown_to_map);
        assert!(text.contains("not fully configured: the two ends of a cable carry"), "{text}");
        let narrow_cables = vec![NarrowCable { mtu: 1500, longest: 9000, ends: Vec::new() }];
        let warnings = vec!["1500 bytes at eth1 of this host".to_owned()];
        let text = describe_board(&Board { narrow_cables, warnings, ..unknown_to_map });
        assert!(text.contains("Network is fully configured.\n  warning: 1500 bytes at eth1"), "{text}");
    }

    #[test]
    fn who_is_missing_is_named_with_the_reason() {
        let text = describe_board(&Board { unreachable: vec![reason()], ..configured() });
        assert!(text.contains("02:00:00:00:00:09: runs no agent"), "{text}");
    }

    #[test]
    fn one_that_is_isolated_by_its_key_says_so_once() {
        let mut board = Board {
            state: AgentState::Isolated.into(),
            configured: false,
            network_configured: false,
            ..configured()
        };
        board.counters.dropped.add(FrameDrop::UnknownKey, 4);
        let text = describe_board(&board);
        assert!(text.contains("configured: the keys differ: dropped 4 frames signed with a key"), "{text}");
        assert_eq!(text.matches("dropped 4").count(), 1, "{text}");
    }

    #[test]
    fn one_that_finds_nobody_names_its_ports_that_nothing_passes() {
        let port = |number, up, carrier| BoardPort {
            port: number,
            interface: format!("eth{number}"),
            exists: true,
            up,
            carrier,
            mtu: Some(1500),
            ..BoardPort::default()
        };
        let board = |ports| {
            let state = AgentState::Isolated.into();
            describe_board(&Board {
                ports,
                state,
                configured: false,
                network_configured: false,
                ..configured()
            })
        };
        let text = board(vec![port(1, false, false), port(2, true, false)]);
        assert!(text.contains("can be reached: eth1 is down, eth2 has no carrier."), "{text}");
        assert!(text.contains("  port 1 (eth1) is down; `ip link set eth1 up`\n"), "{text}");
        let text = board(vec![port(1, true, true), port(2, true, false)]);
        assert!(text.contains("no other host was found: eth2 has no carrier; behind"), "{text}");
        assert!(!text.contains("port 1"), "{text}");
        assert!(board(Vec::new()).contains("no other host was found; see that their agents run"));
    }

    #[test]
    fn an_interface_that_was_deleted_is_not_said_to_lack_carrier() {
        let mut board = Board {
            interface_exists: false,
            carrier: false,
            state: AgentState::Isolated.into(),
            configured: false,
            network_configured: false,
            ports: Vec::new(),
            ..configured()
        };
        let text = describe_board(&board);
        assert!(text.contains("no other host can be reached: eth1 does not exist any more"), "{text}");
        assert!(text.contains("  interface eth1 does not exist any more"), "{text}");
        assert!(!text.contains("carrier"), "{text}");
        board.interface_exists = true;
        assert!(describe_board(&board).contains("eth1 has no carrier"));
    }

    #[test]
    fn an_address_of_two_hosts_is_told_with_both() {
        let clash = |lasting| AddressClash {
            address: "10.1.0.3".to_owned(),
            hosts: vec!["02:00:00:00:00:01".to_owned(), "02:00:00:00:00:02".to_owned()],
            lasting,
        };
        let mut board = Board { address_clashes: vec![clash(true), clash(false)], ..configured() };
        board.names.insert("02:00:00:00:00:02".to_owned(), "n2".to_owned());
        let text = describe_board(&board);
        let both = "  the address 10.1.0.3 is that of 02:00:00:00:00:01 and n2 (02:00:00:00:00:02): ";
        assert!(text.contains(&format!("{both}give all but one of them another\n")), "{text}");
        assert!(text.contains(&format!("{both}all but one pick another\n")), "{text}");
    }

    #[test]
    fn a_dead_cable_of_a_node_is_named_by_its_host() {
        let dead = DeadCable {
            tag: Some("000000000000000a".to_owned()),
            host: Some("02:00:00:00:00:02".to_owned()),
            port: 3,
            why: "carrier lost".to_owned(),
            ..DeadCable::default()
        };
        let mut board = Board { dead_cables: vec![dead], ..configured() };
        board.names.insert("02:00:00:00:00:02".to_owned(), "n2".to_owned());
        let text = describe_board(&board);
        let cable = "the cable at port 3 of the xbar of n2 (000000000000000a) has been dead for 0 s";
        assert!(text.contains(cable), "{text}");
    }

    #[test]
    fn what_stands_in_the_way_is_said() {
        let mut board = Board { network_configured: false, carrier: false, ..configured() };
        board.counters.dropped.add(FrameDrop::UnknownVersion, 3);
        board.routing_failure = Some("too long".to_owned());
        board.dead_cables = vec![DeadCable {
            tag: Some("000000000000000a".to_owned()),
            port: 3,
            since_ms: 2500,
            why: "carrier lost".to_owned(),
            ..DeadCable::default()
        }];
        let text = describe_board(&board);
        for wanted in [
            "eth1 has no carrier",
            "routing failed: too long",
            "the cable at port 3 of xbar 000000000000000a has been dead for 2 s: carrier lost",
            "3 frames of another version of the protocol",
        ] {
            assert!(text.contains(wanted), "{wanted}\n{text}");
        }
    }
}
