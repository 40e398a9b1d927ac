//! `mapper watch`: how this machine's agents and their fabric are, in a terminal of 80 columns.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use mapper_fabric::wording::plural;
use mapper_machine::options::default_run_dir;
use mapper_proto::quote;
use serde_json::json;

use super::{CliError, Format, output};
use crate::daemon::status::{Board, FrameCount};
use crate::view::feed::{HostState, Moment};
use crate::view::source::agents::{Boards, Known, boards};

/// How often the agents are asked.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// The columns of a terminal that everybody has.
const COLUMNS: usize = 80;
/// Most lines about what is wrong, and about what happened.
const MOST_TROUBLES: usize = 8;
const MOST_EVENTS: usize = 8;
/// By how much the second line of what is too long for one is moved to the right.
const INDENT: usize = 4;
/// The escape sequence that clears a terminal.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Options of `mapper watch`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directory of the status sockets. [default: $MAPPER_RUN_DIR, or /run/mapper]
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
    /// Show how all is now, and end.
    #[arg(long)]
    once: bool,
}

/// What is shown.
#[derive(Default)]
struct Screen {
    known: Known,
    /// What happened, with the seconds since the start.
    events: VecDeque<(u64, String)>,
    /// Frames received and sent at the last look, by unit.
    frames: BTreeMap<u8, (u64, u64)>,
    says: String,
}

/// Runs `mapper watch`, until it is ended from outside. A terminal is drawn anew every second; elsewhere, and with `--format json`,
/// each change is printed.
///
/// # Errors
/// If standard output cannot be written.
pub fn run(args: &Args, format: Format) -> Result<ExitCode, CliError> {
    let run_dir = args.run_dir.clone().unwrap_or_else(default_run_dir);
    let is_terminal = std::io::stdout().is_terminal();
    let began = Instant::now();
    let mut screen = Screen::default();
    let mut shown: Option<Moment> = None;
    loop {
        let boards = boards(&run_dir);
        let what = screen.known.renew(&run_dir, &boards.boards);
        let moment = screen.known.moment(&boards, what.unwrap_or_default());
        screen.note(began.elapsed().as_secs(), &moment);
        let is_news =
            shown.as_ref().is_none_or(|shown| Moment { what: String::new(), ..moment.clone() } != *shown);
        match format {
            Format::Json if is_news => output::print(&format!("{}\n", json_of(&moment, &boards)))?,
            Format::Text if is_terminal && !args.once => {
                output::print(&format!("{CLEAR}{}", screen.text(&moment, &boards.boards)))?;
            }
            Format::Text if is_news => output::print(&screen.text(&moment, &boards.boards))?,
            _ => {}
        }
        if args.once {
            let none = boards.boards.iter().all(|board| board.no_answer.is_some());
            return Ok(if none { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
        shown = Some(Moment { what: String::new(), ..moment });
        screen.frames = boards.boards.iter().map(|board| (board.unit, frames(board))).collect();
        std::thread::sleep(ASK_EVERY);
    }
}

fn frames(board: &Board) -> (u64, u64) {
    let frames = board.counters.frames;
    (frames[FrameCount::Received], frames[FrameCount::Sent])
}

fn json_of(moment: &Moment, boards: &Boards) -> serde_json::Value {
    let units = boards.boards.iter().map(|board| json!({ "unit": board.unit, "state": board.state }));
    json!({
        "schema": "mapper.watch/1",
        "says": moment.says,
        "what": moment.what,
        "units": units.collect::<Vec<_>>(),
        "troubles": moment.troubles,
    })
}

impl Screen {
    /// Notes what happened.
    fn note(&mut self, second: u64, moment: &Moment) {
        let mut news = Vec::new();
        if !moment.what.is_empty() {
            news.push(moment.what.clone());
        }
        if moment.says != self.says {
            self.says.clone_from(&moment.says);
            news.push(moment.says.clone());
        }
        self.events.extend(news.into_iter().map(|what| (second, what)));
        while self.events.len() > MOST_EVENTS {
            self.events.pop_front();
        }
    }

    fn text(&self, moment: &Moment, boards: &[Board]) -> String {
        let map = &self.known.fabric.map;
        let configured = moment.hosts.iter().filter(|&&state| state == HostState::Configured).count();
        let counts = [(map.hosts.len(), "host"), (map.xbars.len(), "xbar"), (map.cables.len(), "cable")];
        let [hosts, xbars, cables] = counts.map(|(count, thing)| plural(count, thing));
        let mut lines = vec![
            format!("{}: {hosts}, {xbars}, {cables} between xbars", moment.says),
            format!("{configured} known to be configured"),
            String::new(),
            format!(
                "{:<5} {:<15} {:<11} {:<18} {:>6} {:>9} {:>9}",
                "unit", "interface", "state", "leader", "routes", "in/s", "out/s"
            ),
        ];
        for board in boards {
            lines.push(self.board(board));
        }
        if !moment.troubles.is_empty() {
            lines.extend([String::new(), "What is wrong".to_owned()]);
            lines.extend(moment.troubles.iter().take(MOST_TROUBLES).map(|trouble| format!("  {trouble}")));
            if let Some(more @ 1..) = moment.troubles.len().checked_sub(MOST_TROUBLES) {
                lines.push(format!("  and {more} more"));
            }
        }
        lines.extend([String::new(), "What happened".to_owned()]);
        lines.extend(self.events.iter().rev().map(|(second, what)| format!("{second:>6} s  {what}")));
        lines.iter().fold(String::new(), |mut text, line| {
            // Names and reasons come from other machines: what a terminal obeys is made visible. Writing to a String never fails.
            let shown: Vec<char> = quote::visible(line).trim_end().chars().collect();
            let (first, rest) = shown.split_at(shown.len().min(COLUMNS));
            let _infallible = writeln!(text, "{}", first.iter().collect::<String>());
            if !rest.is_empty() {
                let rest = rest.iter().take(COLUMNS - INDENT).collect::<String>();
                let _infallible = writeln!(text, "{:INDENT$}{rest}", "");
            }
            text
        })
    }

    /// A board in a line, with the frames since the last look.
    fn board(&self, board: &Board) -> String {
        let rate = |of: fn((u64, u64)) -> u64| {
            let last = self.frames.get(&board.unit).copied();
            last.map_or_else(|| "-".to_owned(), |last| of(frames(board)).saturating_sub(of(last)).to_string())
        };
        let leader = board.leader.as_ref().map(|mac| board.called(mac)).unwrap_or_default();
        let cut = |text: &str, most: usize| text.chars().take(most).collect::<String>();
        format!(
            "{:<5} {:<15} {:<11} {:<18} {:>6} {:>9} {:>9}",
            board.unit,
            cut(board.interface.as_deref().unwrap_or("-"), 15),
            if board.no_answer.is_some() { "down" } else { board.state.as_str() },
            cut(&leader, 18),
            board.routes,
            rate(|(received, _)| received),
            rate(|(_, sent)| sent),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eighty_columns_hold_it_whatever_names_are_like() {
        let board = Board {
            interface: Some("a-very-long-interface-name".to_owned()),
            leader: Some("x".repeat(100)),
            state: "configured".to_owned(),
            no_answer: None,
            ..Board::silent(3, String::new())
        };
        let mut screen = Screen::default();
        screen.frames.insert(3, (0, 0));
        let troubles =
            (0..20).map(|number| format!("trouble \x1b[2J {number} {}", "y".repeat(200))).collect();
        let moment = Moment {
            what: "map 1".to_owned(),
            says: "1 host silent".to_owned(),
            troubles,
            ..Moment::default()
        };
        (0..20).for_each(|second| screen.note(second, &moment));
        let text = screen.text(&moment, &[board]);
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        assert!(!text.contains('\x1b') && text.lines().count() < 40, "{text}");
        assert!(
            text.contains("1 host silent")
                && text.contains("and 12 more")
                && text.contains("    19 s  map 1"),
            "{text}"
        );
    }
}
