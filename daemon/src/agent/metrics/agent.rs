//! The metrics of an agent.

use super::known::KnownFabric;
use crate::agent::status::{Board, Counters, FrameCount};
use crate::word::words;
use mapper_host::data::{DataCount, DataStatus};
use mapper_host::healing::HealingCount;
use mapper_machine::metrics::{Dialect, Exposition, FamilyKind, Unit};
use mapper_proto::agent::{LivenessCount, Purpose};
use mapper_proto::wire::AgentState;
use mapper_proto::{Counted, Mac, Tally};

/// The metrics of the agent that this board shows, and of the fabric as its maps have shown it. `name_of` tells what a host is
/// called, if that is known.
pub(crate) fn render(
    board: &Board,
    known: &KnownFabric,
    name_of: &dyn Fn(Mac) -> Option<String>,
    dialect: Dialect,
) -> String {
    let interface = board.interface.as_deref().unwrap_or_default();
    let mut text = Exposition::new(dialect, &[("interface", interface)]);
    write_agent(&mut text, board);
    write_fabric(&mut text, board, known);
    write_names(&mut text, known, name_of);
    write_messages(&mut text, &board.counters);
    write_healing(&mut text, board);
    write_tap(&mut text, board);
    if let Some(subnet) = &board.subnet {
        super::subnet::write(&mut text, subnet);
    }
    text.finish()
}

fn write_agent(text: &mut Exposition, board: &Board) {
    let unit = board.unit.to_string();
    let labels = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("unit", unit.as_str()),
        ("mac", board.mac.as_deref().unwrap_or_default()),
        ("host_name", board.name.as_deref().unwrap_or_default()),
    ];
    text.family(FamilyKind::Info, "mapper_agent", Unit::None, "The agent and its program.")
        .sample(&labels, 1);
    text.family(
        FamilyKind::Gauge,
        "mapper_agent_uptime",
        Unit::Seconds,
        "How long the agent has been running.",
    )
    .sample_float(&[], board.uptime_ms as f64 / 1e3);
    text.family(FamilyKind::StateSet, "mapper_agent_state", Unit::None, "Where the agent is in its life.")
        .states(words::<AgentState>(), board.state.as_str());
    let help = "Lines of the log that were lost, as nobody read them or they could not be written.";
    text.counter("mapper_agent_log_lines_lost", Unit::None, help, board.counters.log_lines_lost);
    text.gauge(
        "mapper_agent_configured",
        "1 if the agent holds a valid map and proved routes for it.",
        board.configured.into(),
    );
    let leads = board.leader.is_some() && board.leader == board.mac;
    text.gauge("mapper_agent_is_global_mapper", "1 if this agent made the map in force.", leads.into());
    text.gauge("mapper_agent_carrier", "1 if the agent's interface has carrier.", board.carrier.into());
    text.gauge(
        "mapper_agent_routing_failed",
        "1 if the last map could not be routed.",
        board.routing_failure.is_some().into(),
    );
    text.gauge(
        "mapper_network_configured",
        "1 if every host of the map has said that it is configured, and there are others.",
        board.network_configured.into(),
    );
}

fn write_fabric(text: &mut Exposition, board: &Board, known: &KnownFabric) {
    let version = board.map_version.as_ref();
    text.gauge(
        "mapper_map_version",
        "Counter of the map in force, 0 without one.",
        version.map_or(0, |version| version.counter.into()),
    );
    text.gauge("mapper_map_hosts", "Hosts in the map.", board.hosts as u64);
    text.gauge("mapper_map_xbars", "Xbars in the map.", board.xbars as u64);
    text.gauge("mapper_map_cables", "Cables between xbars in the map.", board.cables as u64);
    text.gauge("mapper_routes", "Routes in use, several a destination.", board.routes as u64);
    let gone = known.cables_gone();
    text.gauge("mapper_cables_gone", "Cables seen since the start that the last map lacks.", gone);
    let gone = known.hosts_gone();
    text.gauge("mapper_hosts_gone", "Hosts seen since the start that the last map lacks.", gone);
    let dead = board.dead_cables.len() as u64;
    text.gauge("mapper_cables_dead", "Cables of the map that are known to be dead.", dead);
    let lossy = board.lossy_cables.len() as u64;
    text.gauge("mapper_cables_lossy", "Cables of the map that carry frames and lose many.", lossy);
    let left_out = board.left_out_cables as u64;
    text.gauge(
        "mapper_cables_left_out",
        "Cables of the map that no host's routes use, as they lose frames.",
        left_out,
    );
    let clashes = board.address_clashes.len() as u64;
    text.gauge("mapper_address_clashes", "Addresses of IP that two or more hosts have, up to 64.", clashes);

    if let Some(plan) = &board.plan {
        let readable = plan.failure.is_none();
        text.gauge(
            "mapper_plan_readable",
            "1 if the plan of the wiring could be read last time.",
            readable.into(),
        );
        let help = "What is not as planned in the wiring, by what it costs.";
        let severities = [("cuts-off", plan.cuts_off), ("bandwidth", plan.bandwidth), ("label", plan.label)];
        let mut family = text.family(FamilyKind::Gauge, "mapper_plan_differences", Unit::None, help);
        for (severity, count) in severities {
            family.sample(&[("severity", severity)], count as u64);
        }
    }

    let help =
        "1 if the cable between two xbars is there, 0 if it was seen since the start and is gone or dead.";
    let mut cables = text.family(FamilyKind::Gauge, "mapper_cable_up", Unit::None, help);
    for (a, b, up) in known.cables(&board.dead_cables) {
        cables.sample(&[("a", &a), ("b", &b)], up.into());
    }
    let help =
        "1 if the host is in the map and answers as it should, 0 if not or if it was seen and is gone.";
    let mut hosts = text.family(FamilyKind::Gauge, "mapper_host_up", Unit::None, help);
    for (mac, there) in known.hosts() {
        let mac = mac.to_string();
        let up = there && board.unreachable.iter().all(|host| host.mac != mac);
        hosts.sample(&[("mac", &mac)], up.into());
    }
}

/// What the hosts are called, and whose node an end of a cable is. Names come and change, so they are no labels of the metrics
/// that tell what is up: these would begin anew with each name. A query joins them.
fn write_names(text: &mut Exposition, known: &KnownFabric, name_of: &dyn Fn(Mac) -> Option<String>) {
    let help = "What the host is called, once it has told its name.";
    let mut hosts = text.family(FamilyKind::Info, "mapper_host", Unit::None, help);
    for (mac, _) in known.hosts() {
        if let Some(name) = name_of(mac) {
            hosts.sample(&[("mac", &mac.to_string()), ("host_name", &name)], 1);
        }
    }
    let help = "The host whose node each end's xbar is, or else the only one there, if it has told its name.";
    let mut cables = text.family(FamilyKind::Info, "mapper_cable", Unit::None, help);
    for ([a, b], hosts) in known.hosts_of_cables() {
        let called = hosts.map(|host| host.and_then(|mac| Some((mac.to_string(), name_of(mac)?))));
        if called.iter().any(Option::is_some) {
            let [(a_mac, a_name), (b_mac, b_name)] = called.map(Option::unwrap_or_default);
            let labels = [
                ("a", a.as_str()),
                ("b", &b),
                ("a_mac", &a_mac),
                ("a_host_name", &a_name),
                ("b_mac", &b_mac),
                ("b_host_name", &b_name),
            ];
            cables.sample(&labels, 1);
        }
    }
}

fn write_messages(text: &mut Exposition, counters: &Counters) {
    let Counters { frames, sent, dropped, directory_refused, resolution_refused, mapping, causes, .. } =
        counters;
    let mut family =
        text.family(FamilyKind::Counter, "mapper_link_frames", Unit::None, "Frames on the interface.");
    family.by(
        "what",
        &[
            ("received", frames[FrameCount::Received]),
            ("sent", frames[FrameCount::Sent]),
            ("unsent", frames[FrameCount::Unsent]),
        ],
    );
    let help = "Frames that the kernel lost, as they arrived faster than they were taken.";
    text.counter("mapper_overruns", Unit::None, help, frames[FrameCount::Overruns]);

    let sent_for: Vec<_> =
        sent.iter().filter_map(|(purpose, _, number)| Some((label(purpose)?, number))).collect();
    let help = "Messages sent, by what they are for; retries are counted.";
    text.family(FamilyKind::Counter, "mapper_messages_sent", Unit::None, help).by("kind", &sent_for);
    let help = "Scouts and probes of verification that were sent again, as no answer came in time.";
    text.counter("mapper_retries", Unit::None, help, sent[Purpose::Retry]);
    let help = "Frames dropped, by why.";
    text.family(FamilyKind::Counter, "mapper_frames_dropped", Unit::None, help).by("reason", &named(dropped));
    let help = "What other hosts told of names and addresses and was not taken, by why.";
    text.family(FamilyKind::Counter, "mapper_directory_refused", Unit::None, help)
        .by("reason", &named(directory_refused));
    let help =
        "Questions of other hosts for names and addresses, and answers to them, that were not taken, by why.";
    text.family(FamilyKind::Counter, "mapper_resolution_refused", Unit::None, help)
        .by("reason", &named(resolution_refused));

    let mut family =
        text.family(FamilyKind::Counter, "mapper_mappings", Unit::None, "Mappings begun here, by cause.");
    for cause in causes {
        family.sample(&[("cause", &cause.cause)], cause.mappings);
    }
    let mut family =
        text.family(FamilyKind::Counter, "mapper_maps_ended", Unit::None, "Maps given up, by cause.");
    for cause in causes {
        family.sample(&[("cause", &cause.cause)], cause.maps_ended);
    }
    let help = "How long the last mapping by this agent took.";
    let mut family = text.family(FamilyKind::Gauge, "mapper_last_mapping", Unit::Seconds, help);
    if let Some(mapping) = mapping {
        family.sample_float(&[], mapping.took_ms / 1e3);
    }
}

/// The label of what messages are sent for. Retries have none, since they have a metric of their own.
const fn label(purpose: Purpose) -> Option<&'static str> {
    Some(match purpose {
        Purpose::SwitchProbe => "switch_probe",
        Purpose::Scout => "scout",
        Purpose::Compare => "compare",
        Purpose::Tree => "tree",
        Purpose::Query => "query",
        Purpose::Piece => "piece",
        Purpose::Verify => "verify",
        Purpose::Reply => "reply",
        Purpose::Hello => "hello",
        Purpose::Service => "service",
        Purpose::Retry => return None,
    })
}

/// Each count of a tally, with the name of its kind.
fn named<K: Counted>(tally: &Tally<K>) -> Vec<(&'static str, u64)> {
    tally.iter().map(|(_, name, number)| (name, number)).collect()
}

fn write_healing(text: &mut Exposition, board: &Board) {
    let liveness = board.counters.liveness;
    text.gauge(
        "mapper_paths_watched",
        "Paths in use whose liveness is checked.",
        liveness[LivenessCount::Watched],
    );
    let help = "Paths in use that are not checked, for want of room.";
    text.gauge("mapper_paths_unwatched", help, liveness[LivenessCount::Unwatched]);
    let help = "Liveness checks sent along paths in use.";
    text.counter("mapper_liveness_checks", Unit::None, help, liveness[LivenessCount::ChecksSent]);
    let help = "Paths in use that were declared down.";
    text.counter("mapper_paths_failed", Unit::None, help, liveness[LivenessCount::Failures]);
    let help = "Cables said to be dead that answered when they were checked.";
    text.counter("mapper_cables_cleared", Unit::None, help, liveness[LivenessCount::Cleared]);

    let repairs = board.counters.repairs;
    let help = "Routes computed around dead cables, before there was a new map.";
    text.counter("mapper_repairs", Unit::None, help, repairs[HealingCount::Repairs]);
    let causes = [
        ("carrier", repairs[HealingCount::CarrierLosses]),
        ("notice", repairs[HealingCount::Notices]),
        ("silent_path", repairs[HealingCount::SilentPaths]),
    ];
    let help = "What was heard of dead cables, by how: carrier loss, notice of a crossbar, silent path.";
    text.family(FamilyKind::Counter, "mapper_cable_losses", Unit::None, help).by("cause", &causes);
}

fn write_tap(text: &mut Exposition, board: &Board) {
    let Some(tap) = &board.tap else { return };
    let DataStatus { counts, dropped } = tap.counters;
    let help = "Users' frames over the fabric: out from this host, in to it.";
    let mut family = text.family(FamilyKind::Counter, "mapper_tap_frames", Unit::None, help);
    family.by("direction", &[("out", counts[DataCount::FramesOut]), ("in", counts[DataCount::FramesIn])]);
    let help = "Bytes of users' frames over the fabric: out from this host, in to it.";
    let mut family = text.family(FamilyKind::Counter, "mapper_tap", Unit::Bytes, help);
    family.by("direction", &[("out", counts[DataCount::BytesOut]), ("in", counts[DataCount::BytesIn])]);
    let help = "Users' frames that went to all hosts.";
    text.counter("mapper_tap_broadcasts", Unit::None, help, counts[DataCount::Broadcasts]);
    let help = "Copies made of users' frames that went to all hosts.";
    text.counter("mapper_tap_broadcast_copies", Unit::None, help, counts[DataCount::BroadcastCopies]);
    let help = "Notices of crossbars that a user's frame could not be delivered.";
    text.counter("mapper_tap_notices", Unit::None, help, counts[DataCount::Notices]);
    let help = "Notices that were not believed.";
    text.counter("mapper_tap_notices_ignored", Unit::None, help, counts[DataCount::NoticesIgnored]);
    let help = "Users' frames sent again another way, after a notice.";
    text.counter("mapper_tap_resent", Unit::None, help, counts[DataCount::Resent]);
    let help = "Users' frames of which a notice came, and that were not sent again.";
    text.counter("mapper_tap_given_up", Unit::None, help, counts[DataCount::GivenUp]);
    text.counter(
        "mapper_flows_moved",
        Unit::None,
        "Flows that changed to another route.",
        counts[DataCount::FlowsMoved],
    );
    text.counter(
        "mapper_route_swaps",
        Unit::None,
        "Tables of routes put to use.",
        counts[DataCount::RouteSwaps],
    );
    text.gauge(
        "mapper_routes_in_use",
        "Routes that carried frames during the last second.",
        counts[DataCount::RoutesInUse],
    );
    let help = "Users' frames dropped, by why.";
    text.family(FamilyKind::Counter, "mapper_tap_dropped", Unit::None, help).by("reason", &named(&dropped));
    let help = "Users' frames from the fabric that the kernel did not take.";
    text.counter("mapper_tap_refused", Unit::None, help, tap.refused);
}

#[cfg(test)]
mod tests {
    use mapper_proto::agent::FrameDrop;
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::agent::status::{DeadCable, MapVersionDto, Reason, Tap};
    use mapper_proto::map::{Cable, Host, Map, PortRef, Xbar};

    fn board() -> Board {
        let mac = Mac::from_position(1).to_string();
        let mut board = Board {
            interface: Some("eth1".to_owned()),
            mac: Some(mac.clone()),
            leader: Some(mac.clone()),
            state: AgentState::Configured.into(),
            configured: true,
            map_version: Some(MapVersionDto { mac, counter: 7 }),
            hosts: 2,
            unreachable: vec![Reason { mac: Mac::from_position(2).to_string(), why: "silent".to_owned() }],
            dead_cables: vec![DeadCable {
                tag: Some("0x020000000002000b".to_owned()),
                port: 2,
                ..DeadCable::default()
            }],
            tap: Some(Tap { name: "fabric0".to_owned(), ..Tap::default() }),
            ..Board::silent(0, String::new())
        };
        let cause = "a \"quoted\" cause".to_owned();
        board.counters.causes = vec![super::super::CauseCounters { cause, maps_ended: 2, mappings: 1 }];
        board.counters.dropped.add(FrameDrop::BadCrc, 5);
        board
    }

    fn known() -> KnownFabric {
        let at = |xbar, port| PortRef { xbar, port };
        let host = |n| Host { mac: Mac::from_position(n), level: 1, host_type: 4, at: Some(at(n - 1, 1)) };
        let xbar = |tag| Xbar { ports: 4, tag: Some(tag), ports_known: true };
        let mut known = KnownFabric::new();
        let cables = vec![Cable::new(at(0, 2), at(1, 2)), Cable::new(at(0, 3), at(1, 3))];
        let map = Map {
            hosts: vec![host(1), host(2)],
            xbars: vec![xbar(0x0200_0000_0001_000a), xbar(0x0200_0000_0002_000b)],
            cables,
            ..Map::default()
        };
        known.see(&map);
        known
    }

    /// The second host has told no name yet.
    fn name_of(mac: Mac) -> Option<String> {
        (mac == Mac::from_position(1)).then(|| "n1".to_owned())
    }

    #[test]
    fn hosts_are_called_by_name_in_families_of_their_own() {
        let text = render(&board(), &known(), &name_of, Dialect::OpenMetrics);
        let of = |family: &str| text.lines().filter(|line| line.starts_with(family)).collect::<Vec<_>>();
        assert_eq!(
            of("mapper_host_info{"),
            [r#"mapper_host_info{interface="eth1",mac="02:00:00:00:00:01",host_name="n1"} 1"#]
        );
        let cable = |port| {
            format!(
                r#"mapper_cable_info{{interface="eth1",a="0x020000000001000a:{port}",b="0x020000000002000b:{port}",a_mac="02:00:00:00:00:01",a_host_name="n1",b_mac="",b_host_name=""}} 1"#
            )
        };
        assert_eq!(of("mapper_cable_info{"), [cable(2), cable(3)]);
        let nameless = render(&board(), &known(), &|_| None, Dialect::OpenMetrics);
        assert!(!nameless.contains("_info{interface=\"eth1\",a=") && !nameless.contains("mapper_host_info{"));
    }

    #[test]
    fn the_numbers_are_those_of_the_board() {
        let text = render(&board(), &known(), &name_of, Dialect::OpenMetrics);
        for line in [
            r#"mapper_agent_state{interface="eth1",mapper_agent_state="configured"} 1"#,
            r#"mapper_agent_state{interface="eth1",mapper_agent_state="mapping"} 0"#,
            r#"mapper_agent_is_global_mapper{interface="eth1"} 1"#,
            r#"mapper_map_version{interface="eth1"} 7"#,
            r#"mapper_frames_dropped_total{interface="eth1",reason="bad_crc"} 5"#,
            r#"mapper_maps_ended_total{interface="eth1",cause="a \"quoted\" cause"} 2"#,
            r#"mapper_cable_up{interface="eth1",a="0x020000000001000a:2",b="0x020000000002000b:2"} 0"#,
            r#"mapper_cable_up{interface="eth1",a="0x020000000001000a:3",b="0x020000000002000b:3"} 1"#,
            r#"mapper_host_up{interface="eth1",mac="02:00:00:00:00:01"} 1"#,
            r#"mapper_host_up{interface="eth1",mac="02:00:00:00:00:02"} 0"#,
            r#"mapper_tap_bytes_total{interface="eth1",direction="in"} 0"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn every_family_is_described_once_and_keeps_its_samples_together() {
        crate::xbar::metrics::assert_well_formed(&render(&board(), &known(), &name_of, Dialect::OpenMetrics));
    }

    /// Reads the metrics with the parser of the Python client of Prometheus, if that is installed.
    #[test]
    fn the_parsers_of_prometheus_read_both_formats() {
        let python = std::env::var("MAPPER_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let run = |module: &str, input: &str| {
            let program = format!(
                "import sys\nfrom prometheus_client.{module} import text_string_to_metric_families as parse\n\
                 print(sum(len(family.samples) for family in parse(sys.stdin.read())))"
            );
            let mut command = Command::new(&python);
            command
                .args(["-c", &program])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            let mut child = command.spawn().ok()?;
            let _no_reader = child.stdin.take().unwrap().write_all(input.as_bytes());
            child.wait_with_output().ok()
        };
        let there = run("parser", "x 1\n").is_some_and(|output| output.status.success());
        if !mapper_needs::or_skip(there, "the Python module prometheus_client") {
            return;
        }
        for (module, dialect) in
            [("openmetrics.parser", Dialect::OpenMetrics), ("parser", Dialect::Prometheus)]
        {
            let text = render(&board(), &known(), &name_of, dialect);
            let output = run(module, &text).unwrap();
            assert!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&output.stderr));
            let samples: usize = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
            assert_eq!(samples, text.lines().filter(|line| !line.starts_with('#')).count());
        }
    }
}
