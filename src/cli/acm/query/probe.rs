//! Probes along a path and back, which the agents of this machine send.

use std::path::Path;
use std::time::{Duration, Instant};

use mapper_acm::fabric::{gid_of, mac_of};
use mapper_acm::wire::PathRecord;
use mapper_machine::status as sockets;
use serde::Serialize;

use mapper_daemon::agent::status::{
    AgentRequest, Answered, MAX_SOUNDED_BYTES, Traced, TracedWay, requests_socket_path, units,
};

/// How long an agent may take: it asks each hop several times.
const PATIENCE: Duration = Duration::from_secs(10);

/// What came of probes along a path.
#[derive(Debug, Serialize)]
pub(super) struct Probed {
    /// Whether the host answered.
    pub(super) reached: bool,
    /// The crossbar or host that did not answer first, as far as it can be told.
    pub(super) stopped_at: Option<String>,
    /// What that means, in words.
    pub(super) verdict: String,
}

/// Has the agent at the path's source send probes along the path and back.
pub(super) fn probe(run_dir: &Path, path: &PathRecord) -> Probed {
    let failed = |verdict: String| Probed { reached: false, stopped_at: None, verdict };
    let Some(to) = mac_of(path.dgid) else {
        return failed(
            "the destination is no host of a fabric of agents, so none can send a probe".to_owned(),
        );
    };
    match trace(run_dir, path, &to.to_string()) {
        Ok(Some(way)) => Probed::of(&way),
        Ok(None) => {
            failed(format!("no agent of this machine is at the path's source ({})", run_dir.display()))
        }
        Err(why) => failed(why),
    }
}

/// The way that the agents' frames take along the path, hop by hop; `None` if no agent here is at its source.
fn trace(run_dir: &Path, path: &PathRecord, to: &str) -> Result<Option<TracedWay>, String> {
    let in_words = |error: sockets::StatusSocketError| error.to_string();
    for unit in units(run_dir).map_err(in_words)? {
        let board = mapper_daemon::agent::status::ask(run_dir, unit).map_err(in_words)?;
        let Some(board) = board else { continue };
        let mac = board.answer(Instant::now() + PATIENCE).map_err(in_words)?.mac;
        let is_source = mac.and_then(|mac| mac.parse().ok()).is_some_and(|mac| gid_of(mac) == path.sgid);
        let question =
            sockets::ask::<Answered<Traced>>(requests_socket_path(run_dir, unit)).map_err(in_words)?;
        let Some(question) = question.filter(|_| is_source) else { continue };
        let question = question
            .request(&AgentRequest::Trace { host: to.to_owned(), frame_bytes: 0 })
            .map_err(in_words)?;
        let answer = question.answer_json(Instant::now() + PATIENCE, MAX_SOUNDED_BYTES, "trace of a route");
        return match answer.map_err(in_words)? {
            Answered::Measured(traced) => {
                // The first of the agents' ways is the one that paths are made of.
                let way = traced.ways.into_iter().find(|way| way.by == "agents");
                way.map(Some).ok_or_else(|| "no route leads there".to_owned())
            }
            Answered::Refused(why) => Err(why),
        };
    }
    Ok(None)
}

impl Probed {
    fn of(way: &TracedWay) -> Self {
        let stopped_at = way.stops_at.and_then(|at| way.hops.get(at)).map(|hop| hop.name.clone());
        let reached = way.hops.last().is_some_and(|host| host.received > 0);
        Self { reached, stopped_at, verdict: way.verdict.clone() }
    }
}

#[cfg(test)]
mod tests {
    use mapper_daemon::agent::status::TracedHop;

    use super::*;

    #[test]
    fn the_first_that_does_not_answer_is_where_the_probes_stopped() {
        let hop = |name: &str, received| TracedHop {
            name: name.to_owned(),
            leaves_by: None,
            sent: 3,
            received,
            rtt_ms: None,
            answered_by: None,
        };
        let way = |received: [usize; 3], stops_at| TracedWay {
            by: "agents".to_owned(),
            in_use: true,
            hops: ["xbar0", "xbar1", "n3"].iter().zip(received).map(|(name, got)| hop(name, got)).collect(),
            stops_at,
            verdict: "so it is".to_owned(),
            forks_at: None,
        };
        let cut = Probed::of(&way([3, 0, 0], Some(1)));
        assert_eq!((cut.reached, cut.stopped_at.as_deref()), (false, Some("xbar1")));
        assert_eq!(cut.verdict, "so it is");
        let whole = Probed::of(&way([3, 3, 1], None));
        assert_eq!((whole.reached, whole.stopped_at), (true, None));
    }
}
