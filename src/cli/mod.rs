//! The command line, with one file for each subcommand.
//!
//! Every subcommand takes `--format text|json`. Results go to standard output, logs to standard error. If a
//! command fails, even if only in writing its results, the exit status is 1, and under `--format json` there
//! is a `mapper.error/1` on standard output. After a wrong command line the exit status is 2. If the reader
//! of standard output ends early (`| head`), it is 141.

pub mod acm;
pub mod agent;
mod asking;
mod best;
pub mod board_info;
pub mod check;
pub mod dissector;
pub mod doctor;
mod engine_names;
pub mod fabric_argument;
pub mod generate_docs;
pub mod hosts_keeper;
mod judgement;
pub mod key;
pub mod lab_plan;
mod lids;
mod nobody_there;
pub mod node;
mod notes;
pub mod output;
mod places;
pub mod plan;
mod progress;
mod put_right;
mod refusal;
pub mod resolve;
pub mod route;
mod shown_source;
pub mod sim;
pub mod soundings;
mod threads;
pub mod topology;
pub mod view;
pub mod watch;
pub mod what_if;
pub mod xbar;

use std::ffi::OsString;
use std::num::{IntErrorKind, ParseIntError};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use mapper_proto::quote;

use mapper_machine::log;

/// How many characters wide help is at most.
const HELP_WIDTH: usize = 100;

/// Maps source-routed fabrics and gives every host deadlock-free routes, without a central server.
#[derive(Debug, Parser)]
#[command(name = "mapper", version, max_term_width = HELP_WIDTH)]
pub struct Cli {
    /// How to print results.
    #[arg(long, global = true, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// How to print results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For a person.
    Text,
    /// One JSON object with its `schema`.
    Json,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Fabrics as files: generate, convert, show, diff, discover.
    Topology(topology::Args),
    /// Planned against found wiring: what to do, what hurts most first.
    Plan(plan::Args),
    /// Say what a change of a fabric costs, or which single failure hurts most.
    WhatIf(Box<what_if::Args>),
    /// Compute forwarding tables for a fabric, prove them free of deadlock, measure and write them.
    Route(Box<route::Args>),
    /// Prove and measure tables or routes that anyone made; exit status 3 if a proof fails.
    Check(check::Args),
    /// Run every host's agent on a simulated fabric.
    Sim(sim::Args),
    /// Show a fabric in a browser: a file, a simulation as it runs, or the maps of this machine's agents.
    View(Box<view::Args>),
    /// Show in a terminal how this machine's agents and their fabric are, and what happens.
    Watch(watch::Args),
    /// Run the agent of one interface.
    Agent(agent::Args),
    /// Run crossbar and agent of a machine that is cabled to others directly, without a switch.
    Node(node::Args),
    /// Run a software crossbar.
    Xbar(Box<xbar::Args>),
    /// Show the state of this machine's agents; exit status 1 if none answers.
    BoardInfo(board_info::Args),
    /// Say which host a name, a MAC or an address stands for, and how frames get there; exit status 1 if none.
    Resolve(resolve::Args),
    /// Walk the ways to a host hop by hop, and name the first that does not answer; exit status 1 if the host answers
    /// along none.
    Trace(soundings::TraceArgs),
    /// Send frames along each way to a host and back, and say how long they take; exit status 1 if none comes back.
    Ping(soundings::PingArgs),
    /// Measure what each way to a host carries, by trains of packets; exit status 1 if none tells.
    Bandwidth(soundings::BandwidthArgs),
    /// Tell programs the paths to names and addresses, as InfiniBand's ibacm does: service, queries, files.
    Acm(acm::Args),
    /// Find out what keeps an agent from working on this machine, and what to do.
    Doctor(doctor::Args),
    /// Print a script by which Wireshark and tshark show the agents' frames.
    Dissector(dissector::Args),
    /// Make a key for a key file.
    Key(key::Args),
    /// Keep the names of a fabric's hosts in a file; daemons start this.
    #[command(hide = true)]
    HostsKeeper(hosts_keeper::Args),
    /// Print a fabric as lines that a shell can read, for scripts/lab.
    #[command(hide = true)]
    LabPlan(lab_plan::Args),
    /// Write manual pages and shell completions, for packages.
    #[command(hide = true)]
    GenerateDocs(generate_docs::Args),
}

/// Why a command failed: one text, which says what was wrong and what to do.
pub type CliError = Box<dyn std::error::Error + Send + Sync>;

/// The error for options that do not go together if that shows only once the work is done.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

impl UsageError {
    /// The exit status of a wrong command line, which clap uses too.
    const EXIT_STATUS: u8 = 2;
}

/// Parses the command line, runs the subcommand, prints failure, and says how the process ends.
pub fn main() -> ExitCode {
    let cli = match parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return refuse_usage(&error),
    };
    let format = cli.format;
    let result = match cli.command {
        Command::Topology(args) => topology::run(args, format),
        Command::Plan(args) => plan::run(&args, format),
        Command::WhatIf(args) => what_if::run(&args, format),
        Command::Route(args) => route::run(*args, format),
        Command::Check(args) => check::run(args, format),
        Command::Sim(args) => sim::run(args, format),
        Command::View(args) => view::run(&args, format),
        Command::Watch(args) => watch::run(&args, format),
        Command::Agent(args) => agent::run(args, format),
        Command::Node(args) => node::run(args, format),
        Command::Xbar(args) => xbar::run(*args, format),
        Command::BoardInfo(args) => board_info::run(args, format),
        Command::Resolve(args) => resolve::run(&args, format),
        Command::Trace(args) => soundings::trace(&args, format),
        Command::Ping(args) => soundings::ping(&args, format),
        Command::Bandwidth(args) => soundings::bandwidth(&args, format),
        Command::Acm(args) => acm::run(args, format),
        Command::Doctor(args) => doctor::run(args, format),
        Command::Dissector(args) => dissector::run(&args, format),
        Command::Key(args) => key::run(&args, format),
        Command::HostsKeeper(args) => hosts_keeper::run(&args),
        Command::LabPlan(args) => lab_plan::run(&args, format),
        Command::GenerateDocs(args) => generate_docs::run(&args, format),
    };
    let status = result.unwrap_or_else(|error| fail(&error, format));
    log::flush();
    status
}

/// Reads the command line. Errors are clap's, but where these would mislead.
fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut command = with_negative_numbers(Cli::command());
    let matches = command.try_get_matches_from_mut(arguments);
    let mut matches = matches.map_err(|error| clearer(error, &command))?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// The command with options that take a word like `-1` for their value, not for another option. So each says what values it takes.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| {
        let takes_values = !arg.is_positional() && arg.get_action().takes_values();
        arg.allow_negative_numbers(takes_values)
    });
    command.mut_subcommands(with_negative_numbers)
}

/// The error without commands that users do not call, and with words for what Rust says of a number.
fn clearer(mut error: clap::Error, command: &clap::Command) -> clap::Error {
    if let Some(ContextValue::Strings(names)) = error.get(ContextKind::ValidSubcommand) {
        let is_hidden = |name: &String| command.find_subcommand(name).is_some_and(clap::Command::is_hide_set);
        let shown = names.iter().filter(|name| !is_hidden(name)).cloned().collect();
        error.insert(ContextKind::ValidSubcommand, ContextValue::Strings(shown));
    }
    // The tip to write `--` before a negative number leads to another error, as no argument by place is one.
    let unknown = error.get(ContextKind::InvalidArg).map(ToString::to_string).unwrap_or_default();
    if error.kind() == ErrorKind::UnknownArgument
        && unknown.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(Vec::new()));
    }
    let no_number = std::error::Error::source(&error).and_then(|why| why.downcast_ref::<ParseIntError>());
    if no_number.is_some_and(|why| *why.kind() == IntErrorKind::InvalidDigit) {
        let said = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
        let (option, value) = (said(ContextKind::InvalidArg), said(ContextKind::InvalidValue));
        let what =
            format!("invalid value '{value}' for '{option}': expected a whole number that is not negative\n");
        return clap::Error::raw(ErrorKind::ValueValidation, what);
    }
    error
}

/// Prints why a command failed, and returns the exit status.
fn fail(error: &CliError, format: Format) -> ExitCode {
    if error.is::<output::ReaderGone>() {
        return ExitCode::from(output::ReaderGone::EXIT_STATUS);
    }
    // File names in the message may come from anywhere, so what a terminal obeys is made visible.
    let lines: Vec<String> = error_chain(error.as_ref()).split('\n').map(quote::visible).collect();
    let message = lines.join("\n");
    if format == Format::Json {
        print_json_error(&message);
    }
    // If standard error cannot be written, the exit status still tells of the failure.
    let _unheard = log::say(&format!("mapper: {message}\n"));
    ExitCode::from(if error.is::<UsageError>() { UsageError::EXIT_STATUS } else { 1 })
}

/// Prints what is wrong with the command line, or the help or version that it asked for.
fn refuse_usage(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && json_is_asked_for(std::env::args_os()) {
        print_json_error(&usage_message(error));
    }
    if !error.use_stderr() {
        // This is no error: the user asked for the help or the version.
        return output::print_help(error)
            .map_or_else(|failed| fail(&failed, Format::Text), |()| ExitCode::SUCCESS);
    }
    // If standard error cannot be written, the exit status still tells of the failure.
    let _unheard = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Whether a command line that could not be parsed asks for JSON.
fn json_is_asked_for(arguments: impl IntoIterator<Item = OsString>) -> bool {
    let mut after_format = false;
    arguments.into_iter().any(|argument| {
        let json = argument == "--format=json" || (after_format && argument == "json");
        after_format = argument == "--format";
        json
    })
}

/// What is wrong with the command line in clap's words, without the usage that follows.
fn usage_message(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "a command is missing; --help lists them".to_owned();
    }
    let text = error.render().to_string();
    // Tips and the usage follow in later paragraphs, which are left out.
    let text = text.split("\n\n").next().unwrap_or_default();
    let words: Vec<_> = text.trim_start_matches("error: ").split_whitespace().collect();
    words.join(" ")
}

fn print_json_error(message: &str) {
    let error = serde_json::json!({ "schema": "mapper.error/1", "error": message });
    // If standard output cannot be written, the failure is still printed to standard error.
    let _unheard = output::print(&format!("{error}\n"));
}

/// An error and all its causes, joined by colons.
fn error_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_found_on_a_wrong_command_line() {
        let asked = |line: &str| json_is_asked_for(line.split(' ').map(OsString::from));
        assert!(asked("mapper xbar --format json"));
        assert!(asked("mapper --format=json nonsense"));
        assert!(!asked("mapper xbar --format text json"));
        assert!(!asked("mapper xbar json"));
    }

    #[test]
    fn each_option_says_what_is_wrong_with_a_negative_number() {
        let said = |line: &str| {
            let arguments = line.split(' ').map(OsString::from);
            parse(arguments).unwrap_err().render().to_string()
        };
        let seed = said("mapper sim --seed -1");
        assert!(
            seed.contains("'-1' for '--seed <SEED>': expected a whole number that is not negative"),
            "{seed}"
        );
        let passes = said("mapper sim --passes -1");
        assert!(passes.contains("-1 is not in 1..=64"), "{passes}");
        for line in ["mapper sim -1", "mapper sim --loss -1%"] {
            let unknown = said(line);
            assert!(
                unknown.contains("unexpected argument '-1' found") && !unknown.contains("tip:"),
                "{unknown}"
            );
        }
    }

    #[test]
    fn commands_that_no_user_calls_are_not_listed() {
        let said =
            parse(["mapper", "--format", "json"].map(OsString::from)).unwrap_err().render().to_string();
        assert!(
            said.contains("topology, plan") && !said.contains("lab-plan") && !said.contains("keeper"),
            "{said}"
        );
    }

    #[test]
    fn what_is_wrong_is_said_in_a_line() {
        let message = |line: &str| usage_message(&Cli::try_parse_from(line.split(' ')).unwrap_err());
        assert_eq!(message("mapper xbar --nonsense"), "unexpected argument '--nonsense' found");
        assert!(message("mapper xbar").ends_with("were not provided: --ports <[N=]IF,..>"));
        assert_eq!(message("mapper"), "a command is missing; --help lists them");
    }
}
