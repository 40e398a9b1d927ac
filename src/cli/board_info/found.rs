//! Asks the status sockets, and holds the answers.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use mapper_daemon::agent::status::{
    Board, ByDestination, ByLid, BySegments, Counters, RouteInForce, RoutesInForce, SegmentsDiffer, ask,
    units,
};
use mapper_daemon::xbar::{self, PortStatus, PortTraffic, XbarStatus};
use mapper_formats::routes::ObjectDiffersJson;
use mapper_proto::Tally;
use serde::Serialize;

use super::crossbar::describe_xbar;
use super::describe::{describe_board, describe_frames};
use super::{Args, routes};
use crate::cli::error_chain;
use crate::cli::nobody_there::no_agent;
use mapper_machine::status::StatusSocketError;

/// How long an agent may take to answer. On a busy machine that takes a second or more.
const PATIENCE: Duration = Duration::from_secs(3);
/// The least time given to agents to answer, however little is left to wait.
const LEAST_PATIENCE: Duration = Duration::from_millis(500);

/// The JSON `mapper.board-info/1`.
#[derive(Serialize)]
pub(super) struct BoardInfoJson<'a> {
    schema: &'static str,
    boards: Vec<BoardJson<'a>>,
    /// The crossbars of this machine, with `--all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    xbars: Option<&'a [XbarStatus]>,
}

/// A board, with its routes in force if they were asked for.
#[derive(Serialize)]
struct BoardJson<'a> {
    #[serde(flatten)]
    board: &'a Board,
    #[serde(skip_serializing_if = "Option::is_none")]
    routes_in_force: Option<&'a [RouteInForce]>,
    /// Hosts whose packets kernels forward by the destination alone, with the routes.
    #[serde(skip_serializing_if = "Option::is_none")]
    by_destination: Option<&'a [ByDestination]>,
    /// The segments by which kernels send, with the routes.
    #[serde(skip_serializing_if = "Option::is_none")]
    by_segments: Option<&'a [BySegments]>,
    /// Where these are others than kernels were told, with the routes.
    #[serde(skip_serializing_if = "Option::is_none")]
    segments_differ: Option<&'a [SegmentsDiffer]>,
    /// What else kernels hold otherwise than they were told, with the routes.
    #[serde(skip_serializing_if = "Option::is_none")]
    objects_differ: Option<&'a [ObjectDiffersJson]>,
    /// Why they were not held against what kernels were told, if they were not.
    #[serde(skip_serializing_if = "Option::is_none")]
    segments_not_compared: Option<&'a str>,
    /// The ways by the tables of switches of InfiniBand, if routes were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    by_lid: Option<&'a [ByLid]>,
}

/// The answers of the status sockets.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    boards: Vec<Board>,
    /// The run directory and the unit of each board.
    places: Vec<(PathBuf, u8)>,
    /// The routes of each board, if they were asked for; `None` for one that did not tell.
    routes: Option<Vec<Option<RoutesInForce>>>,
    /// The crossbars, if they were asked.
    xbars: Option<Vec<XbarStatus>>,
    /// Run directories without any agent, in words.
    missing: Vec<String>,
    /// Whether a board that was named is missing or silent, or a board may not be asked by this user.
    refused: bool,
}

impl Found {
    /// Asks all agents at once. They have about the time `left` to answer, but no more than [`PATIENCE`].
    pub(super) fn ask(args: &Args, left: Duration) -> Result<Self, StatusSocketError> {
        let mut missing = Vec::new();
        let mut refused = false;
        let (mut questions, mut places) = (Vec::new(), Vec::new());
        for run_dir in &args.run_dirs {
            let asked = if args.units.is_empty() { units(run_dir)? } else { args.units.clone() };
            let before = questions.len();
            for unit in asked {
                let question = match ask(run_dir, unit) {
                    Ok(Some(question)) => Ok(question),
                    // A daemon that has ended since the directory was read is left out.
                    Ok(None) if args.units.is_empty() => continue,
                    Ok(None) => {
                        refused = true;
                        Err(no_agent(Some(unit), run_dir))
                    }
                    Err(error) => {
                        refused |= matches!(error, StatusSocketError::Denied { .. });
                        Err(error_chain(&error))
                    }
                };
                questions.push((unit, question));
                places.push((run_dir.clone(), unit));
            }
            // All may have ended since the directory was read.
            if questions.len() == before {
                missing.push(no_agent(None, run_dir));
            }
        }
        let deadline = Instant::now() + left.clamp(LEAST_PATIENCE, PATIENCE);
        let boards = questions.into_iter().map(|(unit, question)| {
            let answer =
                question.and_then(|question| question.answer(deadline).map_err(|error| error_chain(&error)));
            answer.unwrap_or_else(|why| Board::silent(unit, why))
        });
        let boards: Vec<_> = boards.collect();
        refused |= !args.units.is_empty() && boards.iter().any(|board| board.no_answer.is_some());
        let mut xbars = args.all.then(Vec::new);
        if let Some(xbars) = &mut xbars {
            for run_dir in &args.run_dirs {
                let answers = xbar::socket::ask_all(run_dir, deadline)?;
                xbars.extend(answers.xbars);
                refused |= answers.denied;
            }
        }
        Ok(Self { boards, places, routes: None, xbars, missing, refused })
    }

    /// Asks the boards for their routes in force.
    pub(super) fn ask_routes(&mut self) -> Result<(), StatusSocketError> {
        self.routes = Some(routes::ask(&self.places)?);
        Ok(())
    }

    /// The routes of the boards that told them.
    pub(super) fn routes(&self) -> impl Iterator<Item = &RoutesInForce> {
        self.routes.iter().flatten().flatten()
    }

    pub(super) fn all_configured(&self) -> bool {
        self.missing.is_empty() && self.boards.iter().all(|board| board.configured)
    }

    /// Whether all boards have the addresses that they pick, or know that there is none for them.
    pub(super) fn all_picked(&self) -> bool {
        self.boards.iter().all(|board| board.picking.is_empty())
    }

    /// Whether no board answered, and no crossbar either if crossbars were asked.
    pub(super) fn nobody_there(&self) -> bool {
        self.boards.iter().all(|board| board.no_answer.is_some())
            && self.xbars.iter().flatten().all(|xbar| xbar.no_answer.is_some())
    }

    /// Why there is nobody to show, a line for each run directory: what JSON has no place for.
    pub(super) fn why_nobody(&self) -> String {
        self.missing.iter().map(|place| format!("mapper: {place}\n")).collect()
    }

    /// Whether every board knows that all hosts of its network are configured.
    pub(super) fn networks_configured(&self) -> bool {
        self.boards.iter().all(|board| board.network_configured)
    }

    /// Whether a board that was named is missing or silent, or a board may not be asked by this user.
    pub(super) fn refused(&self) -> bool {
        self.refused
    }

    /// These answers without counters and times, which change all the time.
    pub(super) fn steady(mut self) -> Self {
        for board in &mut self.boards {
            board.counters = Counters::default();
            board.uptime_ms = 0;
            board.traffic = None;
            board.ports.iter_mut().for_each(|port| port.traffic = PortTraffic::default());
            if let Some(subnet) = &mut board.subnet {
                subnet.counts = Tally::default();
            }
            for cable in &mut board.dead_cables {
                cable.since_ms = 0;
            }
            for cable in &mut board.lossy_cables {
                cable.since_ms = 0;
            }
        }
        for xbar in self.xbars.iter_mut().flatten() {
            xbar.uptime_ms = 0;
            for port in &mut xbar.ports {
                let PortStatus { port: number, interface, exists, up, carrier, mtu, .. } =
                    std::mem::take(port);
                let zero = PortStatus::default();
                *port = PortStatus { port: number, interface, exists, up, carrier, mtu, ..zero };
            }
        }
        self
    }

    pub(super) fn to_json(&self) -> BoardInfoJson<'_> {
        let told = |nth: usize| self.routes.as_ref().map(|routes| routes.get(nth).and_then(Option::as_ref));
        let boards = self.boards.iter().enumerate().map(|(nth, board)| BoardJson {
            board,
            routes_in_force: told(nth).map(|told| told.map_or(&[][..], |told| &told.routes)),
            by_destination: told(nth).map(|told| told.map_or(&[][..], |told| &told.by_destination)),
            by_segments: told(nth).map(|told| told.map_or(&[][..], |told| &told.by_segments)),
            segments_differ: told(nth).map(|told| told.map_or(&[][..], |told| &told.segments_differ)),
            objects_differ: told(nth).map(|told| told.map_or(&[][..], |told| &told.objects_differ)),
            segments_not_compared: told(nth).flatten().and_then(|told| told.segments_not_compared.as_deref()),
            by_lid: told(nth).map(|told| told.map_or(&[][..], |told| &told.by_lid)),
        });
        BoardInfoJson {
            schema: "mapper.board-info/1",
            boards: boards.collect(),
            xbars: self.xbars.as_deref(),
        }
    }

    pub(super) fn describe(&self) -> String {
        self.describe_with(|board| describe_board(board) + &describe_frames(board))
    }

    /// Describes the answers as [`Self::describe`] does, without the counts of frames.
    pub(super) fn describe_without_frames(&self) -> String {
        self.describe_with(describe_board)
    }

    fn describe_with(&self, describe: impl Fn(&Board) -> String) -> String {
        let mut text = String::new();
        for (nth, board) in self.boards.iter().enumerate() {
            text.push_str(&describe(board));
            if let Some(Some(told)) = self.routes.as_ref().and_then(|routes| routes.get(nth)) {
                text.push_str(&routes::describe(told));
            }
        }
        text.extend(self.xbars.iter().flatten().map(describe_xbar));
        for place in &self.missing {
            text.push_str(place);
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    const NOTHING_ELSE: Args = Args {
        units: Vec::new(),
        all: false,
        run_dirs: Vec::new(),
        wait: None,
        watch: false,
        routes: false,
        routes_dir: None,
        map_file: None,
    };

    fn nothing() -> Found {
        Found {
            boards: Vec::new(),
            places: Vec::new(),
            routes: None,
            xbars: None,
            missing: Vec::new(),
            refused: false,
        }
    }

    fn silent(unit: u8) -> Board {
        Board::silent(unit, "it is stopped".to_owned())
    }

    fn configured() -> Board {
        Board { configured: true, no_answer: None, ..silent(0) }
    }

    #[test]
    fn who_does_not_answer_is_shown_with_the_reason_and_hides_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let _stuck = UnixListener::bind(dir.path().join("0.sock")).unwrap();
        drop(UnixListener::bind(dir.path().join("7.sock")).unwrap());
        let args = Args { run_dirs: vec![dir.path().to_owned()], ..NOTHING_ELSE };
        let found = Found::ask(&args, Duration::ZERO).unwrap();
        assert!(!found.all_configured());
        let json = serde_json::to_value(&found.boards).unwrap();
        for (board, unit, why) in [(&json[0], 0, "does not answer"), (&json[1], 7, "runs no more")] {
            assert_eq!((&board["unit"], &board["state"]), (&unit.into(), &"starting".into()));
            assert!(board["mac"].is_null());
            assert!(board["no_answer"].as_str().unwrap().contains(why), "{board}");
        }
    }

    #[test]
    fn where_nobody_answers_nobody_is_there() {
        let found = |boards, xbars| Found { boards, xbars, ..nothing() }.nobody_there();
        assert!(found(vec![silent(0), silent(1)], None));
        assert!(!found(vec![silent(0), configured()], None));
        let mute = || XbarStatus::silent("p1", "it is stopped".to_owned());
        assert!(found(vec![silent(0)], Some(vec![mute()])));
        assert!(!found(vec![silent(0)], Some(vec![XbarStatus { no_answer: None, ..mute() }])));
    }

    #[test]
    fn a_board_that_was_named_and_does_not_answer_is_a_failure() {
        let dir = tempfile::tempdir().unwrap();
        let _stuck = UnixListener::bind(dir.path().join("0.sock")).unwrap();
        drop(UnixListener::bind(dir.path().join("7.sock")).unwrap());
        for (units, refused) in [(vec![0], true), (vec![7], true), (vec![0, 7], true), (vec![], false)] {
            let args = Args { units, run_dirs: vec![dir.path().to_owned()], ..NOTHING_ELSE };
            let found = Found::ask(&args, Duration::ZERO).unwrap();
            assert_eq!((found.refused(), found.nobody_there()), (refused, true), "{args:?}");
        }
    }

    #[test]
    fn a_board_that_was_named_and_is_not_there_is_shown_as_that() {
        let dir = tempfile::tempdir().unwrap();
        let args = Args { units: vec![7], run_dirs: vec![dir.path().to_owned()], ..NOTHING_ELSE };
        let found = Found::ask(&args, Duration::ZERO).unwrap();
        assert!(found.refused() && !found.all_configured());
        assert!(found.describe().contains("unit 7: down\n  no agent of unit 7 has"), "{}", found.describe());
        let found = Found::ask(&Args { units: Vec::new(), ..args }, Duration::ZERO).unwrap();
        assert!(!found.refused() && found.nobody_there());
        assert!(found.describe().contains("mapper doctor"), "{}", found.describe());
        assert!(found.why_nobody().starts_with("mapper: no agent has a status socket in "));
    }

    #[test]
    fn nothing_there_is_not_configured() {
        let found = |boards, missing| Found { boards, missing, ..nothing() };
        assert!(!found(Vec::new(), vec!["no agent".to_owned()]).all_configured());
        assert!(found(vec![configured()], Vec::new()).all_configured());
        assert!(!found(vec![configured(), silent(1)], Vec::new()).all_configured());
    }

    #[test]
    fn counters_and_times_are_no_change_to_a_watcher() {
        let mut later = Board { uptime_ms: 5, ..configured() };
        later.counters.frames.add(mapper_daemon::agent::status::FrameCount::Received, 7);
        let found = |board| Found { boards: vec![board], ..nothing() }.steady();
        assert_eq!(found(configured()), found(later));
        assert_ne!(found(configured()), found(silent(0)));
    }
}
