//! `mapper watch`: how a fabric is, in a terminal of 80 columns: this machine's agents, a file, or a simulation as it runs.

mod loads;
mod screen;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mapper_daemon::agent::status::{Board, FrameCount};
use mapper_fabric::names::Names;
use mapper_machine::options::default_run_dir;
use mapper_proto::map::Fabric;
use serde_json::{Value, json};

use super::engine_names::{WantedEngine, WantedName};
use super::fabric_argument::FabricArgument;
use super::shown_source::{ShownSource, SimulationArgs};
use super::{CliError, Format, output};
use crate::view::feed::{Feed, Moment};
use crate::view::source::agents::{Boards, Known, boards};
use crate::view::source::traffic::Traffic;
use loads::Loads;
use screen::{Screen, Width};

/// How often the agents are asked.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// How often it is looked whether a fabric or a simulation has changed.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The escape sequence that clears a terminal.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Options of `mapper watch`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A fabric to watch in place of this machine's agents: a file as of `mapper view`, which is read again whenever it changes,
    /// or a spec.
    #[arg(value_name = "TOPOLOGY")]
    topology: Option<FabricArgument>,
    #[command(flatten)]
    simulation: SimulationArgs,
    /// Whose loads are shown: those of this engine over the cables that are whole. Without TOPOLOGY the routes in force of this
    /// machine's hosts are, unless an engine is named.
    #[arg(short, long, value_name = "NAME", value_parser = WantedName, hide_possible_values = true,
          default_value_if("topology", clap::builder::ArgPredicate::IsPresent, Some("minhop")))]
    engine: Option<WantedEngine>,
    /// Directory of the status sockets. [default: $MAPPER_RUN_DIR, or /run/mapper]
    #[arg(long, value_name = "DIR", conflicts_with = "topology")]
    run_dir: Option<PathBuf>,
    /// Show how all is now, and end.
    #[arg(long)]
    once: bool,
}

/// Runs `mapper watch`, until it is ended from outside, or there is nothing more to come. A terminal is drawn anew at each change;
/// elsewhere, and with `--format json`, each change is printed.
///
/// # Errors
/// If there is no fabric, or standard output cannot be written.
pub fn run(args: &Args, format: Format) -> Result<ExitCode, CliError> {
    let is_terminal = std::io::stdout().is_terminal();
    let width = if is_terminal { Width::Terminal } else { Width::Any };
    let printer = Printer { format, clears: is_terminal && !args.once, width };
    match &args.topology {
        Some(topology) => watch_fabric(args, ShownSource::of(topology, &args.simulation)?, printer),
        None => watch_agents(args, &args.run_dir.clone().unwrap_or_else(default_run_dir), printer),
    }
}

/// Where and how it is shown.
#[derive(Clone, Copy)]
struct Printer {
    format: Format,
    /// Whether a terminal is drawn anew.
    clears: bool,
    width: Width,
}

impl Printer {
    fn print(self, text: &str, json: &Value) -> Result<(), CliError> {
        output::print(&match self.format {
            Format::Json => format!("{json}\n"),
            Format::Text if self.clears => format!("{CLEAR}{text}"),
            Format::Text => text.to_owned(),
        })
    }
}

/// Shows a file or a simulation.
fn watch_fabric(args: &Args, source: ShownSource, printer: Printer) -> Result<ExitCode, CliError> {
    let feed = Arc::new(Feed::new(0));
    let teller = Arc::clone(&feed);
    let source: JoinHandle<()> =
        thread::Builder::new().name("source".to_owned()).spawn(move || source.tell(&teller))?;
    let (began, mut seen) = (Instant::now(), 0);
    let (mut screen, mut loads) = (Screen::default(), Loads::default());
    loop {
        // The end is asked for before the news, so that the last news is still shown.
        let is_over = source.is_finished();
        let happened = feed.happened(seen);
        if let (Some(last), Some((told, moment))) = (happened.last(), feed.latest()) {
            seen = last.seq;
            let events: Vec<Value> = happened
                .iter()
                .filter(|event| !event.what.is_empty())
                .map(|event| json!({ "at": event.at, "what": event.what }))
                .collect();
            for event in happened {
                screen.note(event.at.unwrap_or_else(|| seconds(began)), &event.what, &event.says);
            }
            loads.follow(args.engine, &told.fabric, &moment);
            let names = Names::of(&told.fabric);
            let lines = loads.lines(&told.fabric, &names, printer.width);
            let text = screen.text(&moment, &told.fabric, &names, (&[], &lines), printer.width);
            let mut json = json_of(&moment, &told.fabric, &loads.json(&told.fabric));
            json["happened"] = json!(events);
            printer.print(&text, &json)?;
            if args.once {
                return Ok(ExitCode::SUCCESS);
            }
        }
        if is_over {
            return Ok(ExitCode::SUCCESS);
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Shows the agents of a run directory.
fn watch_agents(args: &Args, run_dir: &Path, printer: Printer) -> Result<ExitCode, CliError> {
    let began = Instant::now();
    let (mut known, mut traffic, mut loads) = (Known::default(), Traffic::default(), Loads::default());
    let mut screen = Screen::default();
    let mut frames: BTreeMap<u8, (u64, u64)> = BTreeMap::new();
    let mut shown: Option<Moment> = None;
    loop {
        let boards = boards(run_dir);
        let what = known.renew(run_dir, &boards.boards);
        known.show_gone(&boards.boards);
        let moment = known.moment(&boards, what.unwrap_or_default());
        traffic.renew(run_dir, &known, &boards.boards);
        screen.note(seconds(began), &moment.what, &moment.says);
        let is_news =
            shown.as_ref().is_none_or(|shown| Moment { what: String::new(), ..moment.clone() } != *shown);
        if is_news || (printer.clears && printer.format == Format::Text) {
            let fabric = known.shown();
            let names = Names::of(fabric);
            if args.engine.is_some() {
                loads.follow(args.engine, &known.fabric, &moment);
            } else {
                loads.take(&traffic);
            }
            let units = unit_lines(&boards.boards, &frames, printer.width);
            let lines = loads.lines(fabric, &names, printer.width);
            let text = screen.text(&moment, fabric, &names, (&units, &lines), printer.width);
            let mut json = json_of(&moment, fabric, &loads.json(fabric));
            json["units"] = units_json(&boards);
            printer.print(&text, &json)?;
        }
        if args.once {
            let none = boards.boards.iter().all(|board| board.no_answer.is_some());
            return Ok(if none { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
        shown = Some(Moment { what: String::new(), ..moment });
        frames = boards.boards.iter().map(|board| (board.unit, frames_of(board))).collect();
        thread::sleep(ASK_EVERY);
    }
}

/// The time since the start, for people.
fn seconds(began: Instant) -> String {
    format!("{} s", began.elapsed().as_secs())
}

fn json_of(moment: &Moment, fabric: &Fabric, loads: &Value) -> Value {
    let away = screen::away(moment, fabric);
    let away: Vec<Value> = away
        .iter()
        .map(|&(host, state)| json!({ "host": fabric.hosts[host].name, "state": state }))
        .collect();
    json!({
        "schema": "mapper.watch/1",
        "at": moment.at,
        "says": moment.says,
        "what": moment.what,
        "hosts": fabric.hosts.len(),
        "away": away,
        "loads": loads,
        "troubles": moment.troubles,
    })
}

fn units_json(boards: &Boards) -> Value {
    let units = boards.boards.iter().map(|board| json!({ "unit": board.unit, "state": board.state }));
    json!(units.collect::<Vec<_>>())
}

/// Frames received and sent.
fn frames_of(board: &Board) -> (u64, u64) {
    let frames = board.counters.frames;
    (frames[FrameCount::Received], frames[FrameCount::Sent])
}

/// A table of boards, with the frames since the last look.
fn unit_lines(boards: &[Board], last: &BTreeMap<u8, (u64, u64)>, width: Width) -> Vec<String> {
    let head = format!(
        "{:<5} {:<15} {:<11} {:<18} {:>6} {:>9} {:>9}",
        "unit", "interface", "state", "leader", "routes", "in/s", "out/s"
    );
    let line = |board: &Board| {
        let rate = |of: fn((u64, u64)) -> u64| {
            let last = last.get(&board.unit).copied();
            last.map_or_else(
                || "-".to_owned(),
                |last| of(frames_of(board)).saturating_sub(of(last)).to_string(),
            )
        };
        let leader = board.leader.as_ref().map(|mac| board.called(mac)).unwrap_or_default();
        format!(
            "{:<5} {:<15} {:<11} {:<18} {:>6} {:>9} {:>9}",
            board.unit,
            width.cut(board.interface.as_deref().unwrap_or("-"), 15),
            if board.no_answer.is_some() { "down" } else { board.state.as_str() },
            width.cut(&leader, 18),
            board.routes,
            rate(|(received, _)| received),
            rate(|(_, sent)| sent),
        )
    };
    [head].into_iter().chain(boards.iter().map(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mapper_proto::wire::AgentState;

    #[test]
    fn a_table_of_boards_fits_80_columns_whatever_names_are_like() {
        let board = Board {
            interface: Some("a-very-long-interface-name".to_owned()),
            leader: Some("x".repeat(100)),
            state: AgentState::Configured.into(),
            no_answer: None,
            ..Board::silent(3, String::new())
        };
        let lines = unit_lines(&[board], &BTreeMap::from([(3, (0, 0))]), Width::Terminal);
        assert!(lines.iter().all(|line| line.chars().count() <= screen::COLUMNS), "{lines:?}");
    }
}
