//! The maps that agents of this machine had before: their logs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mapper_daemon::agent::history::{History, MAX_HISTORY_BYTES, MapEvent};
use mapper_daemon::agent::status::{AgentRequest, Board, MAX_ROUTES_BYTES};
use mapper_formats as formats;
use mapper_proto::Mac;
use mapper_proto::map::Fabric;
use serde_json::Value;

use super::agents::{Known, boards, name_xbars};
use super::asking::{ask, at_once};
use crate::view::feed::{Moment, Recall};

/// How long agents may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// How many changes stand in a line.
const MOST_IN_LINE: usize = 3;
/// What stands where states are told.
const SAYS: &str = "from the log of maps, which has no states of hosts";

/// The maps in the logs of all agents, the oldest first, each once, with a unit that has it. An agent that does not tell has none.
pub(super) fn maps(run_dir: &Path, boards: &[Board]) -> Vec<(u8, MapEvent)> {
    let deadline = Instant::now() + PATIENCE;
    let told = at_once(boards, |board| {
        ask::<History>(run_dir, board.unit, &AgentRequest::History, (deadline, MAX_HISTORY_BYTES))
    });
    let told = boards.iter().zip(told).filter_map(|(board, history)| Some((board.unit, history?)));
    let mut events: Vec<(u8, MapEvent)> =
        told.flat_map(|(unit, history)| history.events.into_iter().map(move |event| (unit, event))).collect();
    events.sort_by_key(|(_, event)| event.unix_ms);
    events.dedup_by(|(_, next), (_, event)| next.version == event.version && next.what == event.what);
    events
}

/// How the map that came to a unit at a time is found again.
pub(super) fn recall(run_dir: &Path, unit: u8, unix_ms: u64, named: &Fabric) -> Recall {
    let (run_dir, names) = (run_dir.to_owned(), names(named));
    Arc::new(move || kept_map(&run_dir, unit, unix_ms, &names))
}

/// How the newest maps of these versions are found again, as they stood beside each other.
pub(super) fn recall_of_versions(run_dir: &Path, versions: Vec<String>, named: &Fabric) -> Recall {
    let (run_dir, names) = (run_dir.to_owned(), names(named));
    Arc::new(move || {
        let events = maps(&run_dir, &boards(&run_dir).boards);
        let mut known = Known::default();
        for version in &versions {
            let (unit, event) = events.iter().rev().find(|(_, event)| event.version == *version)?;
            let fabric = kept_map(&run_dir, *unit, event.unix_ms, &names)?;
            known.add(version.clone(), fabric, (versions.len() > 1).then_some(*unit));
        }
        Some(known.fabric)
    })
}

/// What hosts are called now, by their addresses.
type HostNames = Arc<BTreeMap<Mac, String>>;

fn names(fabric: &Fabric) -> HostNames {
    let hosts = fabric.map.hosts.iter().zip(&fabric.hosts);
    Arc::new(hosts.map(|(host, label)| (host.mac, label.name.clone())).collect())
}

/// A map that an agent has kept. Hosts that had told no name then have that of now.
fn kept_map(run_dir: &Path, unit: u8, unix_ms: u64, names: &HostNames) -> Option<Fabric> {
    let deadline = Instant::now() + PATIENCE;
    let request = AgentRequest::PastMap { unix_ms };
    let map = ask::<Option<Value>>(run_dir, unit, &request, (deadline, MAX_ROUTES_BYTES))??;
    let mut fabric = formats::parse("the map of then", &map.to_string()).ok()?;
    for (host, label) in fabric.map.hosts.iter().zip(&mut fabric.hosts) {
        if let Some(name) = names.get(&host.mac).filter(|_| label.name == host.mac.to_string()) {
            label.name.clone_from(name);
        }
    }
    name_xbars(&mut fabric);
    Some(fabric)
}

/// What the newest maps of these versions changed and why; `None` if a log lacks one of them.
pub(super) fn of_versions(events: &[(u8, MapEvent)], versions: &[&str]) -> Option<String> {
    let line = |version: &&str| {
        let (_, event) = events.iter().rev().find(|(_, event)| event.version == **version)?;
        Some(event.line(MOST_IN_LINE))
    };
    versions.iter().map(line).collect::<Option<Vec<_>>>().map(|lines| lines.join("; "))
}

/// A map of then, as a moment.
pub(super) fn moment(event: &MapEvent) -> Moment {
    let MapEvent { hosts, xbars, cables, .. } = event;
    Moment {
        unix_ms: Some(event.unix_ms),
        what: event.line(MOST_IN_LINE),
        says: SAYS.to_owned(),
        troubles: [format!("{hosts} hosts, {xbars} crossbars, {cables} cables, led by {}", event.leader)]
            .into_iter()
            .chain(event.what.iter().cloned())
            .collect(),
        ..Moment::default()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::{UnixListener, UnixStream};

    use mapper_daemon::agent::status::requests_socket_path;

    use super::*;
    use crate::view::feed::{Feed, Seen};

    fn event(number: u64) -> MapEvent {
        MapEvent {
            unix_ms: 1_000_000 + number,
            version: format!("02:00:00:00:00:01/{number}"),
            what: vec![format!("node{number} is gone")],
            ..MapEvent::default()
        }
    }

    #[test]
    fn a_map_is_told_by_its_log_and_another_by_nobody() {
        let events = [(0, event(1)), (0, event(2))];
        let line = |versions: &[&str]| of_versions(&events, versions);
        assert_eq!(line(&["02:00:00:00:00:01/2"]).unwrap(), "map 02:00:00:00:00:01/2: node2 is gone");
        assert!(
            line(&["02:00:00:00:00:01/1", "02:00:00:00:00:01/2"]).unwrap().contains("node1 is gone; map")
        );
        assert_eq!(line(&["02:00:00:00:00:01/3"]), None);
    }

    #[test]
    fn an_agent_that_answers_late_takes_no_time_from_others() {
        let dir = tempfile::tempdir().unwrap();
        let bind = |unit| UnixListener::bind(requests_socket_path(dir.path(), unit)).unwrap();
        let (late, prompt) = (bind(0), bind(1));
        let answer = |mut client: UnixStream, number| {
            BufReader::new(&client).read_line(&mut String::new()).unwrap();
            let history = History { events: vec![event(number)] };
            client.write_all(&serde_json::to_vec(&history).unwrap()).unwrap();
        };
        // The first answers once the other has.
        let agents = std::thread::spawn(move || {
            let first = late.accept().unwrap().0;
            answer(prompt.accept().unwrap().0, 2);
            answer(first, 1);
        });
        let maps = maps(dir.path(), &[0, 1].map(|unit| Board::silent(unit, String::new())));
        assert_eq!(maps, [(0, event(1)), (1, event(2))]);
        agents.join().unwrap();
    }

    #[test]
    fn what_was_before_the_server_is_in_the_history_of_the_page() {
        let feed = Feed::new(1);
        let nothing: Recall = Arc::new(|| None);
        (1..4).for_each(|number| {
            feed.tell_past(&moment(&event(number)), "ring".to_owned(), Arc::clone(&nothing));
        });
        feed.tell_fabric(mapper_fabric::generate("ring:n=3").unwrap(), "ring".to_owned());
        feed.tell(Moment::default());
        let told: Value = serde_json::from_str(&feed.update(&mut Seen::default())[0]).unwrap();
        let history = told["history"].as_array().unwrap();
        assert_eq!(history.len(), 4);
        assert_eq!((&history[1]["unix_ms"], &history[1]["hosts"]), (&1_000_002.into(), &"".into()));
        assert!(
            history[1]["at_ms"].is_null() && history[1]["what"].as_str().unwrap().contains("node2 is gone")
        );
    }
}
