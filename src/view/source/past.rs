//! The maps that agents of this machine had before: their logs.

use std::path::Path;
use std::time::{Duration, Instant};

use mapper_machine::status;

use crate::daemon::history::{History, MAX_HISTORY_BYTES, MapEvent};
use crate::daemon::status::{AgentRequest, Board, requests_socket_path};
use crate::view::feed::Moment;

/// How long agents may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// How many changes stand in a line.
const MOST_IN_LINE: usize = 3;
/// What stands where states are told: no picture of then is kept.
const SAYS: &str = "from the log of maps; the picture is of the first map that this page has";

/// The maps in the logs of all agents, the oldest first, each once. An agent that does not tell has none.
pub(super) fn maps(run_dir: &Path, boards: &[Board]) -> Vec<MapEvent> {
    let deadline = Instant::now() + PATIENCE;
    let ask = |board: &Board| {
        let question = status::ask::<History>(requests_socket_path(run_dir, board.unit)).ok()??;
        let question = question.request(&AgentRequest::History).ok()?;
        Some(question.answer_json(deadline, MAX_HISTORY_BYTES, "the history of maps").ok()?.events)
    };
    let mut events: Vec<MapEvent> = boards.iter().filter_map(ask).flatten().collect();
    events.sort_by_key(|event| event.unix_ms);
    events.dedup_by(|next, event| next.version == event.version && next.what == event.what);
    events
}

/// What the newest maps of these versions changed and why; `None` if a log lacks one of them.
pub(super) fn of_versions(events: &[MapEvent], versions: &[&str]) -> Option<String> {
    let line = |version: &&str| {
        let event = events.iter().rev().find(|event| event.version == **version)?;
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
    use super::*;
    use crate::view::feed::Feed;

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
        let events = [event(1), event(2)];
        let line = |versions: &[&str]| of_versions(&events, versions);
        assert_eq!(line(&["02:00:00:00:00:01/2"]).unwrap(), "map 02:00:00:00:00:01/2: node2 is gone");
        assert!(
            line(&["02:00:00:00:00:01/1", "02:00:00:00:00:01/2"]).unwrap().contains("node1 is gone; map")
        );
        assert_eq!(line(&["02:00:00:00:00:01/3"]), None);
    }

    #[test]
    fn what_was_before_the_server_is_in_the_history_of_the_page() {
        let feed = Feed::new(1);
        feed.tell_fabric(mapper_fabric::generate("ring:n=3").unwrap(), "ring".to_owned());
        (1..4).for_each(|number| feed.tell(moment(&event(number))));
        feed.tell(Moment::default());
        let told: serde_json::Value = serde_json::from_str(&feed.update(0).unwrap().1).unwrap();
        let history = told["history"].as_array().unwrap();
        assert_eq!(history.len(), 4);
        assert_eq!((&history[1]["unix_ms"], &history[1]["hosts"]), (&1_000_002.into(), &"".into()));
        assert!(
            history[1]["at_ms"].is_null() && history[1]["what"].as_str().unwrap().contains("node2 is gone")
        );
    }
}
