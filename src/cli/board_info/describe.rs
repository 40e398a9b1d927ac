//! Describes boards as text for a person.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use mapper_daemon::agent::status::{
    Board, DataPath, FrameCount, HostsOfType, PlanDifference, PlanStanding, Reason,
};

use super::subnet;
use super::verdict::{verdict, write_troubles};
use crate::cli::put_right::write_put_right;
use mapper_fabric::wording::plural;

/// Describes a board: a line that ends with its state, and below it everything else, indented.
pub(super) fn describe_board(board: &Board) -> String {
    let mut text = String::new();
    // Writing to a String never fails.
    let _infallible = write_board(&mut text, board);
    text
}

/// How the map differs from the plan, what hurts most first.
fn write_plan(text: &mut String, plan: &PlanStanding) -> fmt::Result {
    if let Some(failure) = &plan.failure {
        return writeln!(text, "  plan: {failure}");
    }
    let cables = plural(plan.planned_cables, "planned cable");
    if plan.differences.is_empty() {
        return writeln!(text, "  as planned: {cables}, matched by {}", plan.matched_by);
    }
    let count = plan.cuts_off + plan.bandwidth + plan.label;
    writeln!(
        text,
        "  {} not as planned in {cables}, matched by {}:",
        plural(count, "thing"),
        plan.matched_by
    )?;
    for PlanDifference { advice, effect, .. } in &plan.differences {
        let effect = if effect.is_empty() { String::new() } else { format!(" ({effect})") };
        writeln!(text, "    {}{}", advice.escape_debug(), effect.escape_debug())?;
    }
    match count.saturating_sub(plan.differences.len()) {
        0 => Ok(()),
        more => writeln!(text, "    and {more} more"),
    }
}

fn write_board(text: &mut String, board: &Board) -> fmt::Result {
    if let Some(why) = &board.no_answer {
        writeln!(text, "unit {}: down", board.unit)?;
        return writeln!(text, "  {why}");
    }
    let Board { unit, level, state, .. } = board;
    let interface = board.interface.as_deref().unwrap_or("unknown");
    let mac = board.mac.as_deref().unwrap_or("unknown");
    let name = board.name.as_ref().map(|name| format!(" {}", name.escape_debug())).unwrap_or_default();
    writeln!(text, "unit {unit}: {interface} {mac}{name} level {level}: {state}")?;
    let verdict = match &board.subnet {
        Some(subnet) => subnet::verdict(board, subnet),
        None => verdict(board),
    };
    writeln!(text, "  {verdict}")?;
    if let Some(gone) = board.gone() {
        writeln!(text, "  {gone}")?;
    }
    for warning in &board.warnings {
        writeln!(text, "  warning: {warning}")?;
    }
    if let Some(plan) = &board.plan {
        write_plan(text, plan)?;
    }
    if let Some(subnet) = &board.subnet {
        return subnet::write(text, board, subnet);
    }
    write_troubles(text, board, interface)?;
    write_map(text, board)?;
    write_host_types(text, board)?;
    write_tree(text, board)?;
    write_addresses(text, board)?;
    match &board.data_path {
        Some(path) => write_data_path(text, board, path),
        None => Ok(()),
    }
}

/// Writes which map the agent holds, and what is in it.
fn write_map(text: &mut String, board: &Board) -> fmt::Result {
    let Some(version) = &board.map_version else { return Ok(()) };
    // Two hosts without an xbar can only have heard each other over a cable between them.
    let pair =
        if (board.hosts, board.xbars) == (2, 0) { ", the two hosts are cabled to each other" } else { "" };
    let [hosts, xbars, cables, routes] =
        [(board.hosts, "host"), (board.xbars, "xbar"), (board.cables, "cable"), (board.routes, "route")]
            .map(|(count, thing)| plural(count, thing));
    writeln!(
        text,
        "  map {}/{}: {hosts}, {xbars}, {cables} between xbars{pair}; {routes}",
        version.mac, version.counter
    )
}

/// Writes where in the tree of hosts the agent is by which maps come.
fn write_tree(text: &mut String, board: &Board) -> fmt::Result {
    let Some(leader) = &board.leader else { return Ok(()) };
    let called: Vec<_> = board.children.iter().map(|mac| board.called(mac)).collect();
    let children = if called.is_empty() { "none".to_owned() } else { called.join(" ") };
    let parent = board.parent.as_deref().map_or_else(|| "none".to_owned(), |mac| board.called(mac));
    let leader = board.called(leader);
    writeln!(text, "  global mapper {leader}, parent {parent}, children {children}")
}

/// Writes the addresses of IP that the host has on the fabric, and those that it looks for.
fn write_addresses(text: &mut String, board: &Board) -> fmt::Result {
    let addresses: String = board.addresses.iter().map(|address| format!(", {address}")).collect();
    if board.tap.is_none() && !addresses.is_empty() {
        writeln!(text, "  others are told of the addresses{}", addresses.trim_start_matches(','))?;
    }
    if let Some(tap) = &board.tap {
        writeln!(text, "  IP over the fabric by {}{addresses}, MTU {}", tap.name, tap.mtu)?;
        if tap.refused > 0 {
            writeln!(text, "  {} did not take {} frames: is it up, and memory left?", tap.name, tap.refused)?;
        }
    }
    for network in &board.picking {
        writeln!(text, "  an address of {network} is being picked")?;
    }
    Ok(())
}

/// Writes what users' packets go by, and what does not go by the kernel.
fn write_data_path(text: &mut String, board: &Board, path: &DataPath) -> fmt::Result {
    // The other fields, such as the hosts to which only shorter packets get through, are among the warnings.
    let DataPath { kind, why, installed, missing, put_right, troubles, .. } = path;
    let carried = match installed {
        0 => String::new(),
        &count => format!(" to {}", plural(count, "host")),
    };
    writeln!(text, "  packets go by {kind}{carried}: {why}")?;
    write_missing(
        text,
        board,
        missing.iter().filter(|missing| *installed > 0 || !why.contains(&missing.why)),
    )?;
    write_put_right(text, *put_right, troubles)
}

/// Writes which hosts' packets go by the tap interface, those with one reason together.
fn write_missing<'a>(
    text: &mut String,
    board: &Board,
    missing: impl Iterator<Item = &'a Reason>,
) -> fmt::Result {
    /// The most hosts that are named for one reason.
    const MOST: usize = 8;
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    missing.for_each(|Reason { mac, why }| by_reason.entry(why).or_default().push(mac));
    for (why, hosts) in by_reason {
        let named: Vec<_> = hosts.iter().take(MOST).map(|mac| board.called(mac)).collect();
        let more = match hosts.len().saturating_sub(MOST) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        writeln!(text, "  packets to {}{more} go by the tap interface: {why}", named.join(", "))?;
    }
    Ok(())
}

/// Writes what the hosts run, if they differ. Hosts that do not run what most do are named.
fn write_host_types(text: &mut String, board: &Board) -> fmt::Result {
    let [most, others @ ..] = &board.host_types[..] else { return Ok(()) };
    if others.is_empty() && most.host_type == board.host_type {
        return Ok(());
    }
    write!(text, "  hosts run: {} {}", most.count, most.name)?;
    for HostsOfType { name, count, hosts, .. } in others {
        let more = if *count > hosts.len() { " and more" } else { "" };
        let hosts: Vec<_> = hosts.iter().map(|mac| board.called(mac)).collect();
        write!(text, "; {count} {name}: {}{more}", hosts.join(", "))?;
    }
    writeln!(text)
}

/// Describes the counts of frames and of lost log lines, which change all the time.
pub(super) fn describe_frames(board: &Board) -> String {
    let frames = board.counters.frames;
    let [received, sent, unsent] =
        [FrameCount::Received, FrameCount::Sent, FrameCount::Unsent].map(|kind| frames[kind]);
    let lost = match frames[FrameCount::Overruns] {
        0 => String::new(),
        overruns => format!(", {overruns} lost as they came too fast"),
    };
    let lines_lost = match board.counters.log_lines_lost {
        0 => String::new(),
        lines => format!("  {} of its log lost: not read, or not written\n", plural(lines, "line")),
    };
    match board.no_answer {
        Some(_) => String::new(),
        None if board.subnet.is_some() => {
            format!("  {received} datagrams received, {sent} sent\n{lines_lost}")
        }
        None => format!(
            "  {received} frames received{lost}, {sent} sent, {unsent} could not be sent\n{lines_lost}"
        ),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use mapper_daemon::agent::status::MapVersionDto;
    use mapper_proto::wire::AgentState;

    /// A board that is configured, in a network that is, too.
    pub(in crate::cli::board_info) fn configured() -> Board {
        Board {
            interface: Some("eth1".to_owned()),
            mac: Some("02:00:00:00:00:01".to_owned()),
            level: 1,
            state: AgentState::Configured.into(),
            configured: true,
            network_configured: true,
            interface_exists: true,
            carrier: true,
            no_answer: None,
            ..Board::silent(0, String::new())
        }
    }

    #[test]
    fn what_is_gone_stands_below_the_verdict() {
        let mut board = configured();
        board.gone_hosts = vec!["02:00:00:00:00:09".to_owned()];
        let lines = |board: &Board| describe_board(board).lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(lines(&board)[1], "  Network is fully configured.");
        assert_eq!(lines(&board)[2], "  1 host seen since the start is gone: 02:00:00:00:00:09");
        board.gone_cables = vec![["a:1".to_owned(), "b:2".to_owned()]];
        board.gone_cables_hosts = vec![[Some("02:00:00:00:00:09".to_owned()), None]];
        board.names = [("02:00:00:00:00:09".to_owned(), "h9".to_owned())].into();
        board.warnings = vec!["the tap interface is down".to_owned()];
        let called = "h9 (02:00:00:00:00:09)";
        let expected =
            format!("  1 host and 1 cable seen since the start are gone: {called}, a:1 of {called} to b:2");
        let expected = expected.as_str();
        assert_eq!(lines(&board)[2..], [expected, "  warning: the tap interface is down"]);
    }

    #[test]
    fn what_hosts_run_is_told_if_they_differ() {
        let of_type = |host_type, name: &str, hosts: &[&str]| HostsOfType {
            host_type,
            name: name.to_owned(),
            count: hosts.len(),
            hosts: hosts.iter().map(|&mac| mac.to_owned()).collect(),
        };
        let alike = vec![of_type(4, "ethernet", &["a", "b"])];
        let mut board = Board { host_type: 4, host_types: alike, ..configured() };
        assert!(!describe_board(&board).contains("run:"));
        board.host_types.push(of_type(1, "gm", &["02:00:00:00:00:09"]));
        let text = describe_board(&board);
        assert!(text.contains("\n  hosts run: 2 ethernet; 1 gm: 02:00:00:00:00:09\n"), "{text}");
    }

    #[test]
    fn one_is_not_called_many() {
        let version = MapVersionDto { mac: "02:00:00:00:00:01".to_owned(), counter: 1 };
        let board = Board { map_version: Some(version), hosts: 2, xbars: 1, routes: 1, ..configured() };
        let text = describe_board(&board);
        assert!(text.contains(": 2 hosts, 1 xbar, 0 cables between xbars; 1 route\n"), "{text}");
    }

    #[test]
    fn two_hosts_face_to_face_are_told_from_hosts_without_a_cable() {
        let version = MapVersionDto { mac: "02:00:00:00:00:01".to_owned(), counter: 1 };
        let board = Board { map_version: Some(version), hosts: 2, routes: 1, ..configured() };
        let told = "0 cables between xbars, the two hosts are cabled to each other; 1 route\n";
        assert!(describe_board(&board).contains(told), "{}", describe_board(&board));
        let alone = Board { hosts: 1, carrier: false, state: AgentState::Isolated.into(), ..board };
        let text = describe_board(&alone);
        assert!(!text.contains("cabled to each other") && text.contains("has no carrier"), "{text}");
    }

    #[test]
    fn why_packets_go_by_the_tap_interface_is_told_for_hosts_together_also_where_nothing_is_installed() {
        let reason = |mac: &str, why: &str| Reason { mac: mac.to_owned(), why: why.to_owned() };
        let missing =
            vec![reason("a", "no SRv6 there"), reason("b", "no address"), reason("c", "no SRv6 there")];
        let none = "no way through kernels is proved: no SRv6 there";
        let path = DataPath { missing, ..DataPath::tap(none) };
        let board = |path: DataPath| Board { data_path: Some(path), ..configured() };
        let text = describe_board(&board(path.clone()));
        let expected =
            format!("  packets go by tap: {none}\n  packets to b go by the tap interface: no address\n");
        assert!(text.ends_with(&expected), "{text}");
        let text = describe_board(&board(DataPath { installed: 1, ..path }));
        assert!(text.ends_with("  packets to a, c go by the tap interface: no SRv6 there\n  packets to b go by the tap interface: no address\n"), "{text}");
    }

    #[test]
    fn the_first_line_of_a_board_ends_with_its_state() {
        for (board, state) in [(configured(), "configured"), (Board::silent(3, String::new()), "down")] {
            let text = describe_board(&board);
            assert_eq!(text.lines().next().unwrap().split(' ').next_back(), Some(state));
        }
    }
}
