//! `mapper board-info --routes`: the routes that each board has in force.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mapper_daemon::agent::options::HostType;
use mapper_daemon::agent::status::{
    AgentRequest, ByDestination, ByLid, BySegments, MAX_ROUTES_BYTES, RouteInForce, RouteUse, RoutesInForce,
    SegmentsDiffer, requests_socket_path,
};
use mapper_fib::segments::{Element, way};
use mapper_formats::json::VersionJson;
use mapper_formats::routes::{
    ByDestinationJson, BySegmentsJson, DifferenceJson, ObjectDiffersJson, RouteJson, RoutesJson, SCHEMA,
    SegmentsDifferJson, file_name,
};

use crate::cli::{CliError, output};
use mapper_machine::status::{self, Question, StatusSocketError};

/// How long a board may take to send its routes. On the largest map and a busy machine that takes some
/// seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks the boards of these run directories and units for their routes. The answers are in the same order,
/// with `None` for a board whose daemon has ended.
///
/// # Errors
/// If a board may not be asked, does not answer in time, or what it answers are no routes.
pub(super) fn ask(places: &[(PathBuf, u8)]) -> Result<Vec<Option<RoutesInForce>>, StatusSocketError> {
    let deadline = Instant::now() + PATIENCE;
    let asked = places.iter().map(|(run_dir, unit)| {
        let question = status::ask(requests_socket_path(run_dir, *unit))?;
        question.map(|question| question.request(&AgentRequest::Routes)).transpose()
    });
    let asked: Vec<_> = asked.collect();
    let answer = |question: Question<_>| question.answer_json(deadline, MAX_ROUTES_BYTES, "routes");
    let answers = asked.into_iter().map(|question| match question {
        Ok(question) => question.map(answer).transpose(),
        // The daemon of this socket has ended, so it has no routes in force.
        Err(StatusSocketError::LeftBehind { .. }) => Ok(None),
        Err(error) => Err(error),
    });
    answers.collect()
}

/// Describes each route in a line, with where it leads, by which ports, and what it is used for.
pub(super) fn describe(routes: &RoutesInForce) -> String {
    let mut text = String::new();
    for RouteInForce { to, name, host_type, hop_names, used_for, frames, segments, packets, .. } in
        &routes.routes
    {
        // The address stands beside the name, as two hosts may have one name. Names come from other machines,
        // so they are escaped.
        let name = if name == to { to.clone() } else { format!("{} {to}", name.escape_debug()) };
        let used_for = match used_for {
            RouteUse::Flows => "flows",
            RouteUse::Agent => "agent",
            RouteUse::Spare => "spare",
            RouteUse::CutOff => "cut off",
        };
        let runs = HostType::name(*host_type);
        let via = hop_names.iter().map(|hop| hop.escape_debug().to_string()).collect::<Vec<_>>();
        let via = if via.is_empty() { "the cable".to_owned() } else { via.join(" ") };
        // Writing to a String never fails.
        let kernel = match segments.is_empty() {
            true => String::new(),
            false => format!(", in the kernel by {}, {packets} packets", segments.join(" ")),
        };
        let _infallible =
            writeln!(text, "  route to {name} ({runs}) by {via}: {used_for}, {frames} frames{kernel}");
    }
    for ByDestination { to, name, ports, behind, ways, packets } in &routes.by_destination {
        let name = if name == to { to.clone() } else { format!("{} {to}", name.escape_debug()) };
        let port = |(at, port): (usize, &u8)| {
            let behind = behind.get(at).filter(|name| !name.is_empty());
            let behind = behind.map(|name| format!(" to {}", name.escape_debug())).unwrap_or_default();
            let hops: Vec<_> =
                ways.get(at).into_iter().flatten().map(|hop| hop.escape_debug().to_string()).collect();
            let by = if hops.is_empty() { String::new() } else { format!(" by {}", hops.join(" ")) };
            format!("port {port}{behind}{by}")
        };
        let ports: Vec<_> = ports.iter().enumerate().map(port).collect();
        let ports = ports.join(", or ");
        let _infallible = writeln!(
            text,
            "  route to {name} in the kernel by its destination, out of {ports}, {packets} packets"
        );
    }
    text += &in_the_kernel_alone(routes);
    text += &otherwise_than_told(routes);
    for ByLid { to, name, lid, layer, hop_names, .. } in &routes.by_lid {
        let name = if name == to { to.clone() } else { format!("{} {to}", name.escape_debug()) };
        let via: Vec<_> = hop_names.iter().map(|hop| hop.escape_debug().to_string()).collect();
        let _infallible =
            writeln!(text, "  route to {name} at LID {lid}, service level {layer}, by {}", via.join(" "));
    }
    for host in &routes.without_route {
        let name = routes.names.get(&host.mac);
        let name = name.map(|name| format!("{} ", name.escape_debug())).unwrap_or_default();
        let _infallible = writeln!(text, "  no route to {name}{}: {}", host.mac, host.why);
    }
    text
}

/// Describes the segments by which the kernel sends though no route of the agent has them: packets take these ways all the
/// same.
fn in_the_kernel_alone(routes: &RoutesInForce) -> String {
    let told: BTreeSet<(&str, Way<'_>)> =
        routes.routes.iter().map(|route| (route.to.as_str(), way_of(&route.segments))).collect();
    let alone =
        routes.by_segments.iter().filter(|it| !told.contains(&(it.to.as_str(), way_of(&it.segments))));
    let line = |BySegments { to, name, port, segments, packets }: &BySegments| {
        let name = if name == to { to.clone() } else { format!("{} {to}", name.escape_debug()) };
        let segments = segments.join(" ");
        format!("  route to {name} in the kernel by {segments}, out of port {port}, {packets} packets\n")
    };
    alone.map(line).collect()
}

/// Where segments lead, which is one way for packets of IPv4 and IPv6; or the segments themselves if they lead nowhere.
type Way<'a> = Result<Vec<Element>, &'a [String]>;

fn way_of(segments: &[String]) -> Way<'_> {
    let addresses: Option<Vec<Ipv6Addr>> = segments.iter().map(|it| it.parse().ok()).collect();
    addresses.and_then(|addresses| way(&addresses)).ok_or(segments)
}

/// Describes where the kernel holds others than it was told, or why nobody knows.
fn otherwise_than_told(routes: &RoutesInForce) -> String {
    let line = |SegmentsDiffer { to, name, addresses, port, segments, held }: &SegmentsDiffer| {
        let name = if name == to { to.clone() } else { format!("{} {to}", name.escape_debug()) };
        let (addresses, segments) = (addresses.join(" "), segments.join(" "));
        let (does, told) = match held {
            true => ("sends", "which it was not told"),
            false => ("does not send", "as it was told"),
        };
        format!("  the kernel {does} to {name} ({addresses}) by {segments} out of port {port}, {told}\n")
    };
    let object = |ObjectDiffersJson { object, how }: &ObjectDiffersJson| {
        let object = object.escape_debug();
        match how {
            DifferenceJson::Missing => format!("  the kernel lacks {object}, as it was told\n"),
            DifferenceJson::Other => format!("  the kernel has another {object} than it was told\n"),
            DifferenceJson::Extra => format!("  the kernel has {object}, which it was not told\n"),
        }
    };
    let mut text: String = routes.segments_differ.iter().map(line).collect();
    text.extend(routes.objects_differ.iter().map(object));
    if let Some(why) = &routes.segments_not_compared {
        // Writing to a String never fails.
        let _infallible =
            writeln!(text, "  the kernel's routes were not held against what it was told: {why}");
    }
    text
}

/// Writes the routes of each board to a file of its own, as `mapper.routes/1`, for `mapper check`.
///
/// # Errors
/// If the folder or a file cannot be written.
pub(super) fn write_dir<'a>(
    dir: &Path,
    boards: impl IntoIterator<Item = &'a RoutesInForce>,
) -> Result<(), CliError> {
    fs::create_dir_all(dir).map_err(|error| format!("cannot make {}: {error}", dir.display()))?;
    for board in boards {
        let Some(version) = &board.map_version else { continue };
        let host = board.host.parse().map_err(|error| format!("{}: {error}", board.host))?;
        let route = |route: &RouteInForce| RouteJson {
            to: route.to.clone(),
            layer: route.layer,
            hops: route.hops.clone(),
            bytes: route.bytes.clone(),
        };
        let by_destination =
            |it: &ByDestination| ByDestinationJson { to: it.to.clone(), ports: it.ports.clone() };
        let by_segments = |it: &BySegments| BySegmentsJson {
            to: it.to.clone(),
            port: it.port,
            segments: it.segments.clone(),
        };
        let differ = |it: &SegmentsDiffer| SegmentsDifferJson {
            to: it.to.clone(),
            port: it.port,
            segments: it.segments.clone(),
            held: it.held,
        };
        let json = RoutesJson {
            schema: SCHEMA.to_owned(),
            host: board.host.clone(),
            map_version: VersionJson { mac: version.mac.clone(), counter: version.counter },
            routes: board.routes.iter().map(route).collect(),
            by_destination: board.by_destination.iter().map(by_destination).collect(),
            by_segments: board.by_segments.iter().map(by_segments).collect(),
            segments_differ: board.segments_differ.iter().map(differ).collect(),
            objects_differ: board.objects_differ.clone(),
            segments_not_compared: board.segments_not_compared.clone(),
        };
        output::write_file(&dir.join(file_name(host)), &(serde_json::to_string(&json)? + "\n"))?;
    }
    Ok(())
}

/// Writes the map that the routes of all boards belong to as `mapper.map/1`.
///
/// # Errors
/// If no board has a map, boards hold different maps, or the file cannot be written.
pub(super) fn write_map<'a>(
    path: &Path,
    boards: impl IntoIterator<Item = &'a RoutesInForce>,
) -> Result<(), CliError> {
    let mut with_map = boards.into_iter().filter(|board| board.map.is_some());
    let first =
        with_map.next().ok_or("no board has routes for a valid map; ask again when one is configured")?;
    if let Some(other) = with_map.find(|other| other.map_version != first.map_version) {
        let (one, other) = (&first.host, &other.host);
        return Err(
            format!("{one} and {other} hold different maps; ask again when all are configured").into()
        );
    }
    output::write_file(path, &(serde_json::to_string_pretty(&first.map)? + "\n"))
}

#[cfg(test)]
mod tests {
    use mapper_daemon::agent::status::MapVersionDto;

    use super::*;

    fn nothing() -> RoutesInForce {
        RoutesInForce {
            host: String::new(),
            map_version: None,
            map: None,
            routes: Vec::new(),
            without_route: Vec::new(),
            names: std::collections::BTreeMap::new(),
            by_destination: Vec::new(),
            by_segments: Vec::new(),
            segments_differ: Vec::new(),
            objects_differ: Vec::new(),
            segments_not_compared: None,
            by_lid: Vec::new(),
        }
    }

    #[test]
    fn segments_that_no_route_of_the_agent_has_are_shown_and_all_are_written_to_files() {
        let by_segments = |last: &str| BySegments {
            to: "02:00:00:00:00:02".to_owned(),
            name: "h2".to_owned(),
            port: 1,
            segments: vec![format!("fcbb:bb00:f101:{last}:fff4::")],
            packets: 5,
        };
        let differ = |held| SegmentsDiffer {
            to: "02:00:00:00:00:02".to_owned(),
            name: "h2".to_owned(),
            addresses: vec!["10.1.0.2".to_owned()],
            port: 1,
            segments: by_segments("4").segments,
            held,
        };
        let route = RouteInForce {
            to: "02:00:00:00:00:02".to_owned(),
            name: "h2".to_owned(),
            host_type: 0,
            hops: Vec::new(),
            via: Vec::new(),
            hop_names: Vec::new(),
            layer: 0,
            bytes: String::new(),
            segments: by_segments("3").segments,
            packets: 5,
            used_for: RouteUse::Spare,
            frames: 0,
        };
        let routes = RoutesInForce {
            host: "02:00:00:00:00:01".to_owned(),
            map_version: Some(MapVersionDto { mac: "02:00:00:00:00:01".to_owned(), counter: 1 }),
            routes: vec![route],
            by_segments: vec![by_segments("3"), by_segments("4")],
            segments_differ: vec![differ(true), differ(false)],
            segments_not_compared: Some("why".to_owned()),
            ..nothing()
        };
        let text = describe(&routes);
        assert_eq!(text.lines().count(), 5, "{text}");
        let alone = "  route to h2 02:00:00:00:00:02 in the kernel by fcbb:bb00:f101:4:fff4::, out of port 1, 5 packets\n";
        let to = "to h2 02:00:00:00:00:02 (10.1.0.2) by fcbb:bb00:f101:4:fff4:: out of port 1";
        let differ = format!(
            "  the kernel sends {to}, which it was not told\n  the kernel does not send {to}, as it was told\n"
        );
        let why = "  the kernel's routes were not held against what it was told: why\n";
        assert!(text.ends_with(&format!("{alone}{differ}{why}")), "{text}");

        let dir = tempfile::tempdir().unwrap();
        write_dir(dir.path(), [&routes]).unwrap();
        let file = fs::read(dir.path().join("02-00-00-00-00-01.json")).unwrap();
        let json: RoutesJson = serde_json::from_slice(&file).unwrap();
        let last = BySegmentsJson {
            to: "02:00:00:00:00:02".to_owned(),
            port: 1,
            segments: vec!["fcbb:bb00:f101:4:fff4::".to_owned()],
        };
        assert_eq!((json.by_segments.len(), &json.by_segments[1]), (2, &last));
        let held: Vec<bool> = json.segments_differ.iter().map(|it| it.held).collect();
        assert_eq!((held, json.segments_not_compared.as_deref()), (vec![true, false], Some("why")));
    }

    #[test]
    fn of_a_route_by_destination_who_is_behind_each_port_stands_in_its_line() {
        let by = ByDestination {
            to: "02:00:00:00:00:02".to_owned(),
            name: "h2".to_owned(),
            ports: vec![1, 2],
            behind: vec!["h2".to_owned(), "h3".to_owned()],
            ways: vec![vec!["h2:3".to_owned()], vec!["h3:2".to_owned(), "h2:3".to_owned()]],
            packets: 2,
        };
        let routes = |by_destination| RoutesInForce { by_destination, ..nothing() };
        let start = "  route to h2 02:00:00:00:00:02 in the kernel by its destination, out of";
        assert_eq!(
            describe(&routes(vec![by.clone()])),
            format!("{start} port 1 to h2 by h2:3, or port 2 to h3 by h3:2 h2:3, 2 packets\n")
        );
        // A daemon of an older version tells no names.
        let older = ByDestination { behind: Vec::new(), ways: Vec::new(), ..by };
        assert_eq!(describe(&routes(vec![older])), format!("{start} port 1, or port 2, 2 packets\n"));
    }
}
