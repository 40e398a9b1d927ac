//! `mapper board-info`.

mod crossbar;
mod describe;
mod found;
mod routes;
mod subnet;
mod verdict;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use super::{CliError, Format, output, places};
use found::Found;
use mapper_machine::log;
use mapper_machine::options::default_run_dir;

/// The exit status when `--wait` runs out of time.
const TIMED_OUT: u8 = 4;
/// How often the agents are asked while waiting.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How often the agents are asked while watching.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// The escape sequence that clears a terminal.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Options of `mapper board-info`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Ask only this board. May be repeated.
    #[arg(short = 'b', short_alias = 'B', long = "unit", value_name = "BOARD")]
    units: Vec<u8>,
    /// Ask every board and crossbar of this machine.
    #[arg(long, conflicts_with = "units")]
    all: bool,
    /// Directory of the status sockets. May be repeated. [default: $MAPPER_RUN_DIR, or /run/mapper]
    #[arg(long = "run-dir", value_name = "DIR")]
    run_dirs: Vec<PathBuf>,
    /// Wait until every board asked for is configured, and has the addresses that it picks; exit status 4 if time runs
    /// out before all are configured.
    #[arg(long, value_name = "SECONDS")]
    wait: Option<u64>,
    /// Keep asking, and show each change until interrupted; with --format json one object a line.
    #[arg(long, conflicts_with = "wait")]
    watch: bool,
    /// Show also the routes in force: by which ports each leads, and what it is used for.
    #[arg(long, conflicts_with = "watch")]
    routes: bool,
    /// With --routes: write each board's into this folder, as mapper.routes/1, for `mapper check`.
    #[arg(long, value_name = "DIR", requires = "routes")]
    routes_dir: Option<PathBuf>,
    /// With --routes: write the map that they belong to into this file, as mapper.map/1.
    #[arg(long, value_name = "FILE", requires = "routes")]
    map_file: Option<PathBuf>,
}

/// Runs `mapper board-info`. The exit status is 1 if no board answers, if a board that was
/// named is missing or silent, or if a board may not be asked by this user.
///
/// # Errors
/// If the command fails. The error is worded for the user.
pub fn run(mut args: Args, format: Format) -> Result<ExitCode, CliError> {
    if args.run_dirs.is_empty() {
        args.run_dirs.push(default_run_dir());
    }
    args.check_places()?;
    if args.watch {
        return watch(&args, format);
    }
    let deadline = args.wait.and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds)));
    // There is no deadline without `--wait`, or if it is longer than the clock can count.
    let left =
        || deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()));
    let mut found = Found::ask(&args, left())?;
    // Whoever waits may want to use the addresses that are picked a moment later.
    let is_ready = |found: &Found| found.all_configured() && found.all_picked();
    while args.wait.is_some() && !is_ready(&found) && !left().is_zero() {
        thread::sleep(POLL_INTERVAL.min(left()));
        found = Found::ask(&args, left())?;
    }
    // It takes a moment until these boards know that all other hosts are configured. A person who sees them
    // configured and the network not would wonder, so that is waited for too.
    while args.wait.is_some()
        && format == Format::Text
        && is_ready(&found)
        && !found.networks_configured()
        && !left().is_zero()
    {
        thread::sleep(POLL_INTERVAL.min(left()));
        let later = Found::ask(&args, left())?;
        if !is_ready(&later) {
            break;
        }
        found = later;
    }
    if args.routes {
        found.ask_routes()?;
        if let Some(dir) = &args.routes_dir {
            routes::write_dir(dir, found.routes())?;
        }
        if let Some(file) = &args.map_file {
            routes::write_map(file, found.routes())?;
        }
    }
    match format {
        Format::Json => {
            output::print(&(serde_json::to_string_pretty(&found.to_json())? + "\n"))?;
            // If standard error cannot be written, the exit status still tells that nobody is there.
            let _unheard = log::say(&found.why_nobody());
        }
        Format::Text => output::print(&found.describe())?,
    }
    let timed_out = args.wait.is_some() && !found.all_configured();
    Ok(match (timed_out, found.refused() || found.nobody_there()) {
        (true, _) => ExitCode::from(TIMED_OUT),
        (false, true) => ExitCode::FAILURE,
        (false, false) => ExitCode::SUCCESS,
    })
}

impl Args {
    /// Refuses files that share a path, or cannot be written.
    fn check_places(&self) -> Result<(), CliError> {
        let outputs = [("--routes-dir", &self.routes_dir), ("--map-file", &self.map_file)];
        places::check(&places::given(&outputs), &[])
    }
}

/// Shows the boards again whenever anything but counters and times has changed.
fn watch(args: &Args, format: Format) -> Result<ExitCode, CliError> {
    let clear = if std::io::stdout().is_terminal() { CLEAR } else { "" };
    let mut shown = None;
    loop {
        let found = Found::ask(args, Duration::MAX)?;
        let steady = found.clone().steady();
        if shown.as_ref() != Some(&steady) {
            let text = match format {
                Format::Json => serde_json::to_string(&found.to_json())? + "\n",
                Format::Text => format!("{clear}{}\n", found.describe_without_frames()),
            };
            output::print(&text)?;
            shown = Some(steady);
        }
        thread::sleep(WATCH_INTERVAL);
    }
}
