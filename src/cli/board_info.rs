//! `mapper board-info`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::{CliError, Format, error_chain, output};
use crate::daemon::options::default_run_dir;
use crate::daemon::status::{Board, StatusSocketError, ask, units};

/// The exit status when `--wait` runs out of time.
const TIMED_OUT: u8 = 4;
/// How often the agents are asked while waiting.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// An agent that says nothing for so long is taken for stuck.
const PATIENCE: Duration = Duration::from_secs(1);
/// The least time given to agents to answer, however little is left to wait.
const LEAST_PATIENCE: Duration = Duration::from_millis(100);

/// Options of `mapper board-info`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Ask only this board. May be repeated.
    #[arg(short = 'b', short_alias = 'B', long = "unit", value_name = "BOARD")]
    units: Vec<u8>,
    /// Directory of the status sockets. May be repeated. [default: $MAPPER_RUN_DIR, or /run/mapper]
    #[arg(long = "run-dir", value_name = "DIR")]
    run_dirs: Vec<PathBuf>,
    /// Wait until every board asked for is configured; exit status 4 if time runs out.
    #[arg(long, value_name = "SECONDS")]
    wait: Option<u64>,
}

#[derive(Serialize)]
struct Output<'a> {
    schema: &'static str,
    boards: &'a [Board],
}

/// Runs it.
///
/// # Errors
/// In words for the user.
pub fn run(mut args: Args, format: Format) -> Result<ExitCode, CliError> {
    if args.run_dirs.is_empty() {
        args.run_dirs.push(default_run_dir());
    }
    let deadline = args.wait.and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds)));
    // Without a wait, or with one too long for the clock, there is no deadline.
    let left =
        || deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()));
    let mut found = Found::ask(&args, left())?;
    while args.wait.is_some() && !found.all_configured() && !left().is_zero() {
        thread::sleep(POLL_INTERVAL.min(left()));
        found = Found::ask(&args, left())?;
    }
    match format {
        Format::Json => {
            let answer = Output { schema: "mapper.board-info/1", boards: &found.boards };
            output::print(&(serde_json::to_string_pretty(&answer)? + "\n"))?;
        }
        Format::Text => output::print(&found.describe())?,
    }
    let timed_out = args.wait.is_some() && !found.all_configured();
    Ok(if timed_out { ExitCode::from(TIMED_OUT) } else { ExitCode::SUCCESS })
}

/// What the status sockets said.
struct Found {
    boards: Vec<Board>,
    /// Places asked where no agent has a socket, in words.
    missing: Vec<String>,
}

impl Found {
    /// Asks all agents at once, and gives them together the time that is `left`, or less.
    fn ask(args: &Args, left: Duration) -> Result<Self, StatusSocketError> {
        let mut missing = Vec::new();
        let mut questions = Vec::new();
        for run_dir in &args.run_dirs {
            let asked = if args.units.is_empty() { units(run_dir)? } else { args.units.clone() };
            if asked.is_empty() {
                missing.push(format!("no agent has a status socket in {}", run_dir.display()));
            }
            for unit in asked {
                match ask(run_dir, unit).transpose() {
                    Some(question) => questions.push((unit, question)),
                    None => missing.push(format!(
                        "no agent of unit {unit} has a status socket in {}",
                        run_dir.display()
                    )),
                }
            }
        }
        let deadline = Instant::now() + left.clamp(LEAST_PATIENCE, PATIENCE);
        let boards = questions.into_iter().map(|(unit, question)| {
            let answer = question.and_then(|question| question.answer(deadline));
            answer.unwrap_or_else(|error| Board::silent(unit, error_chain(&error)))
        });
        Ok(Self { boards: boards.collect(), missing })
    }

    fn all_configured(&self) -> bool {
        self.missing.is_empty() && self.boards.iter().all(|board| board.configured)
    }

    fn describe(&self) -> String {
        let mut text: String = self.boards.iter().map(describe_board).collect();
        for place in &self.missing {
            text.push_str(place);
            text.push('\n');
        }
        text
    }
}

/// One line with the state as its last word, then what else there is to know, indented.
fn describe_board(board: &Board) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _infallible = write_board(&mut text, board);
    text
}

fn write_board(text: &mut String, board: &Board) -> std::fmt::Result {
    if let Some(why) = &board.no_answer {
        writeln!(text, "unit {}: down", board.unit)?;
        return writeln!(text, "  {why}");
    }
    let Board { unit, level, state, .. } = board;
    let interface = board.interface.as_deref().unwrap_or("unknown");
    let mac = board.mac.as_deref().unwrap_or("unknown");
    writeln!(text, "unit {unit}: {interface} {mac} level {level}: {state}")?;
    writeln!(text, "  {}", verdict(board))?;
    if !board.carrier {
        writeln!(text, "  interface {interface} has no carrier: is it up, and the cable plugged in?")?;
    }
    if let Some(version) = &board.map_version {
        let Board { hosts, xbars, cables, routes, .. } = board;
        writeln!(
            text,
            "  map {}/{}: {hosts} hosts, {xbars} xbars, {cables} cables between xbars; {routes} routes",
            version.mac, version.counter
        )?;
    }
    if let Some(why) = &board.routing_failure {
        writeln!(text, "  routing failed: {why}")?;
    }
    if let Some(leader) = &board.leader {
        let children = if board.children.is_empty() { "none".to_owned() } else { board.children.join(" ") };
        let parent = board.parent.as_deref().unwrap_or("none");
        writeln!(text, "  global mapper {leader}, parent {parent}, children {children}")?;
    }
    for host in &board.unreachable {
        writeln!(text, "  host {}: {}", host.mac, host.why)?;
    }
    let counters = &board.counters;
    writeln!(
        text,
        "  {} frames received, {} sent, {} could not be sent",
        counters.frames.received, counters.frames.sent, counters.frames.unsent
    )
}

/// Whether the network can be used, and if not, what is missing.
fn verdict(board: &Board) -> &'static str {
    match (board.network_configured, board.configured, board.unreachable.is_empty()) {
        (true, true, true) => "Network is fully configured.",
        (_, true, false) => "Network is not fully configured: hosts of the map do not answer as they should.",
        (_, true, true) => {
            "Network is not fully configured: this board is, but the global mapper has not heard of all others."
        }
        (_, false, _) => "Network is not fully configured: this board has no routes for a valid map.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::status::Reason;
    use std::os::unix::net::UnixListener;

    fn silent(unit: u8) -> Board {
        Board::silent(unit, "it is stopped".to_owned())
    }

    fn configured() -> Board {
        Board {
            interface: Some("eth1".to_owned()),
            mac: Some("02:00:00:00:00:01".to_owned()),
            state: "configured".to_owned(),
            configured: true,
            network_configured: true,
            carrier: true,
            no_answer: None,
            ..silent(0)
        }
    }

    #[test]
    fn the_network_is_fully_configured_only_when_it_is() {
        let full = "Network is fully configured.";
        assert!(describe_board(&configured()).contains(full));
        let reason = Reason { mac: "02:00:00:00:00:09".to_owned(), why: "runs no agent".to_owned() };
        for board in [
            Board { network_configured: false, ..configured() },
            Board { unreachable: vec![reason], ..configured() },
            Board { configured: false, state: "mapping".to_owned(), ..configured() },
            silent(0),
        ] {
            assert!(!describe_board(&board).contains(full), "{board:?}");
        }
    }

    #[test]
    fn who_is_missing_is_named_with_the_reason() {
        let reason = Reason { mac: "02:00:00:00:00:09".to_owned(), why: "runs no agent".to_owned() };
        let text = describe_board(&Board { unreachable: vec![reason], ..configured() });
        assert!(text.contains("02:00:00:00:00:09: runs no agent"), "{text}");
    }

    #[test]
    fn the_first_line_of_a_board_ends_with_its_state() {
        for (board, state) in [(configured(), "configured"), (silent(3), "down")] {
            let text = describe_board(&board);
            assert_eq!(text.lines().next().unwrap().split(' ').next_back(), Some(state));
        }
    }

    #[test]
    fn who_does_not_answer_is_shown_with_the_reason_and_hides_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let _stuck = UnixListener::bind(dir.path().join("0.sock")).unwrap();
        drop(UnixListener::bind(dir.path().join("7.sock")).unwrap());
        let args = Args { units: Vec::new(), run_dirs: vec![dir.path().to_owned()], wait: None };
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
    fn nothing_there_is_not_configured() {
        let found = Found { boards: Vec::new(), missing: vec!["no agent".to_owned()] };
        assert!(!found.all_configured());
        assert!(Found { boards: vec![configured()], missing: Vec::new() }.all_configured());
        assert!(!Found { boards: vec![configured(), silent(1)], missing: Vec::new() }.all_configured());
    }
}
