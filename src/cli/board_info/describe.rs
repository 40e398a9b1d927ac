//! Describes boards as text for a person.

use std::fmt::{self, Write as _};

use super::subnet;
use crate::daemon::status::{
    AddressClash, Board, BoardPort, DataPath, DeadCable, FrameCount, HostsOfType, Mismatch, PlanDifference,
    PlanStanding, Reason, dead_ports, unequal_mtus,
};
use crate::xbar::XbarStatus;
use crate::xbar::cable::CableStatus;
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
    if let Some(version) = &board.map_version {
        // Two hosts without an xbar can only have heard each other over a cable between them.
        let pair = if (board.hosts, board.xbars) == (2, 0) {
            ", the two hosts are cabled to each other"
        } else {
            ""
        };
        let [hosts, xbars, cables, routes] =
            [(board.hosts, "host"), (board.xbars, "xbar"), (board.cables, "cable"), (board.routes, "route")]
                .map(|(count, thing)| plural(count, thing));
        writeln!(
            text,
            "  map {}/{}: {hosts}, {xbars}, {cables} between xbars{pair}; {routes}",
            version.mac, version.counter
        )?;
    }
    write_host_types(text, board)?;
    if let Some(leader) = &board.leader {
        let called: Vec<_> = board.children.iter().map(|mac| board.called(mac)).collect();
        let children = if called.is_empty() { "none".to_owned() } else { called.join(" ") };
        let parent = board.parent.as_deref().map_or_else(|| "none".to_owned(), |mac| board.called(mac));
        let leader = board.called(leader);
        writeln!(text, "  global mapper {leader}, parent {parent}, children {children}")?;
    }
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
    match &board.data_path {
        Some(path) => write_data_path(text, board, path),
        None => Ok(()),
    }
}

/// Writes what users' packets go by, and what does not go by the kernel.
fn write_data_path(text: &mut String, board: &Board, path: &DataPath) -> fmt::Result {
    /// The most hosts that are named.
    const MOST: usize = 8;
    let DataPath { kind, why, installed, missing, put_right, troubles, objects: _ } = path;
    let carried = match installed {
        0 => String::new(),
        &count => format!(" to {}", plural(count, "host")),
    };
    writeln!(text, "  packets go by {kind}{carried}: {why}")?;
    for Reason { mac, why } in missing.iter().take(MOST).filter(|_| *installed > 0) {
        writeln!(text, "  packets to {} go by the tap interface: {why}", board.called(mac))?;
    }
    if *put_right > 0 {
        writeln!(
            text,
            "  {} put right in the kernel, as others had changed them",
            plural(*put_right, "object")
        )?;
    }
    troubles.iter().try_for_each(|trouble| writeln!(text, "  the kernel: {trouble}"))
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

/// Describes a crossbar: a line, and below it a line for each port without carrier.
pub(super) fn describe_xbar(xbar: &XbarStatus) -> String {
    let XbarStatus { name, kind, tag, ports, .. } = xbar;
    if let Some(why) = &xbar.no_answer {
        return format!("crossbar {name}: down\n  {why}\n");
    }
    let tag = tag.as_ref().map(|tag| format!(" {tag}")).unwrap_or_default();
    let up = ports.iter().filter(|port| port.carrier).count();
    let mut text = format!("crossbar {name}: {kind}{tag}: {up} of {} ports have carrier\n", ports.len());
    for port in ports.iter().filter(|port| !port.carrier) {
        let why = match (port.exists, port.up) {
            (false, _) => "there is no such interface",
            (true, false) => "it is down",
            (true, true) => "no carrier",
        };
        text.push_str(&format!("  port {} ({}): {why}\n", port.port, port.interface));
    }
    text
}

/// Whether the network can be used, and if not, what is missing.
fn verdict(board: &Board) -> String {
    let mismatches = board.counters.mismatches().into_iter();
    let other_keys: Vec<_> = mismatches
        .filter(|mismatch| mismatch.name == "key")
        .map(|mismatch| describe_mismatch(&mismatch))
        .collect();
    let why = match board.state.as_str() {
        "configured" if !board.unreachable.is_empty() => "hosts do not answer as they should",
        "configured" if !board.network_configured => {
            "this board is, but the global mapper has not heard that all others are"
        }
        "configured" if !board.dead_cables.is_empty() => {
            "cables of the map are dead, and routes lead around them"
        }
        "configured" if !board.narrow_cables.is_empty() => {
            "cables of the map carry shorter frames than hosts send"
        }
        "configured" if cables(board).any(CableStatus::mtus_differ) => {
            "the two ends of a cable carry frames of different length"
        }
        "configured" if unequal_mtus(&board.ports).is_some() => {
            "the ports of this node carry frames of different length"
        }
        "configured" => return "Network is fully configured.".to_owned(),
        "starting" if board.level == 0 => "this board never maps (level 0), and no mapper has come forward",
        "starting" => "this board has just begun",
        "mapping" => "this board explores the fabric",
        "passive" => "this board waits for the map of the global mapper",
        "fetching" => "this board collects the map from its parent",
        "routing" if board.routing_failure.is_some() => "there are no routes for the map",
        "routing" => "this board computes its routes",
        "isolated" if board.unreachable.iter().any(|host| Some(&host.mac) == board.mac.as_ref()) => {
            "this board stays out of it, as another host has its address"
        }
        "isolated" if !other_keys.is_empty() => {
            return format!("Network is not fully configured: the keys differ: {}.", other_keys.join("; "));
        }
        "isolated" => return format!("Network is not fully configured: {}.", nobody_found(&board.ports)),
        _ => "this board has no routes for a valid map",
    };
    format!("Network is not fully configured: {why}.")
}

/// The cables of this machine.
fn cables(board: &Board) -> impl Iterator<Item = &CableStatus> {
    board.cable.iter().chain(board.ports.iter().map(|port| &port.cable))
}

/// Why no other host was found, as far as this machine can tell.
fn nobody_found(ports: &[BoardPort]) -> String {
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
fn write_troubles(text: &mut String, board: &Board, interface: &str) -> fmt::Result {
    if !board.carrier {
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
        writeln!(text, "  {}", describe_cable(cable))?;
    }
    for AddressClash { address, hosts, lasting } in &board.address_clashes {
        let hosts: Vec<_> = hosts.iter().map(|mac| board.called(mac)).collect();
        let hosts = hosts.join(" and ");
        let then = if *lasting { "give all but one of them another" } else { "all but one pick another" };
        writeln!(text, "  the address {address} is that of {hosts}: {then}")?;
    }
    if !board.network_configured {
        for mismatch in board.counters.mismatches() {
            // For an isolated host, `verdict` already says that its keys differ.
            if board.state != "isolated" || mismatch.name != "key" {
                writeln!(text, "  {}", describe_mismatch(&mismatch))?;
            }
        }
    }
    Ok(())
}

fn describe_mismatch(mismatch: &Mismatch) -> String {
    let Mismatch { frames, what, fix, .. } = mismatch;
    format!("dropped {frames} {what}: {fix}")
}

fn describe_cable(cable: &DeadCable) -> String {
    let DeadCable { xbar, tag, port, since_ms, why } = cable;
    let xbar = tag.as_ref().map_or_else(|| format!("number {xbar} of the map"), Clone::clone);
    format!("the cable at port {port} of xbar {xbar} has been dead for {} s: {why}", since_ms / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::status::{MapVersionDto, NarrowCable, Reason};
    use mapper_proto::agent::FrameDrop;

    fn configured() -> Board {
        Board {
            interface: Some("eth1".to_owned()),
            mac: Some("02:00:00:00:00:01".to_owned()),
            level: 1,
            state: "configured".to_owned(),
            configured: true,
            network_configured: true,
            carrier: true,
            no_answer: None,
            ..Board::silent(0, String::new())
        }
    }

    fn reason() -> Reason {
        Reason { mac: "02:00:00:00:00:09".to_owned(), why: "runs no agent".to_owned() }
    }

    #[test]
    fn the_network_is_fully_configured_only_when_it_is() {
        let full = "Network is fully configured.";
        assert!(describe_board(&configured()).contains(full));
        let in_state = |state: &str| Board { configured: false, state: state.to_owned(), ..configured() };
        for board in [
            Board { network_configured: false, ..configured() },
            Board { unreachable: vec![reason()], ..configured() },
            Board { dead_cables: vec![DeadCable::default()], ..configured() },
            Board {
                narrow_cables: vec![NarrowCable { mtu: 1500, longest: 9000, ends: Vec::new() }],
                ..configured()
            },
            in_state("starting"),
            in_state("mapping"),
            in_state("passive"),
            in_state("fetching"),
            in_state("routing"),
            in_state("isolated"),
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
    fn who_is_missing_is_named_with_the_reason() {
        let text = describe_board(&Board { unreachable: vec![reason()], ..configured() });
        assert!(text.contains("02:00:00:00:00:09: runs no agent"), "{text}");
    }

    #[test]
    fn what_is_gone_stands_below_the_verdict() {
        let mut board = configured();
        board.gone_hosts = vec!["02:00:00:00:00:09".to_owned()];
        let lines = |board: &Board| describe_board(board).lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(lines(&board)[1], "  Network is fully configured.");
        assert_eq!(lines(&board)[2], "  1 host seen since the start is gone: 02:00:00:00:00:09");
        board.gone_cables = vec![["a:1".to_owned(), "b:2".to_owned()]];
        board.warnings = vec!["the tap interface is down".to_owned()];
        let expected = "  1 host and 1 cable seen since the start are gone: 02:00:00:00:00:09, a:1 to b:2";
        assert_eq!(lines(&board)[2..], [expected, "  warning: the tap interface is down"]);
    }

    #[test]
    fn one_that_is_isolated_by_its_key_says_so_once() {
        let mut board = Board {
            state: "isolated".to_owned(),
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
            let state = "isolated".to_owned();
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
        let alone = Board { hosts: 1, carrier: false, state: "isolated".to_owned(), ..board };
        let text = describe_board(&alone);
        assert!(!text.contains("cabled to each other") && text.contains("has no carrier"), "{text}");
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
    fn the_first_line_of_a_board_ends_with_its_state() {
        for (board, state) in [(configured(), "configured"), (Board::silent(3, String::new()), "down")] {
            let text = describe_board(&board);
            assert_eq!(text.lines().next().unwrap().split(' ').next_back(), Some(state));
        }
    }

    #[test]
    fn a_crossbar_is_a_line_and_a_line_for_each_port_that_is_down() {
        let port = |port, exists, carrier| crate::xbar::PortStatus {
            port,
            interface: format!("eth{port}"),
            exists,
            up: exists,
            carrier,
            ..Default::default()
        };
        let xbar = XbarStatus {
            name: "leaf".to_owned(),
            kind: "plain".to_owned(),
            ports: vec![port(1, true, true), port(2, true, false), port(3, false, false)],
            ..XbarStatus::default()
        };
        let expected = "crossbar leaf: plain: 1 of 3 ports have carrier\n  port 2 (eth2): no carrier\n  \
                        port 3 (eth3): there is no such interface\n";
        assert_eq!(describe_xbar(&xbar), expected);
        let down = describe_xbar(&XbarStatus::silent("leaf", "it is stopped".to_owned()));
        assert_eq!(down, "crossbar leaf: down\n  it is stopped\n");
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
