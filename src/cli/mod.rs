//! The command line: one file a subcommand.
//!
//! Every subcommand takes `--format text|json`. Results go to standard output, logs to standard
//! error. Failure is exit status 1 (with `mapper.error/1` on standard output under
//! `--format json`), a wrong command line 2.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line prints")]

pub mod agent;
pub mod board_info;
pub mod fabric_argument;
pub mod lab_plan;
pub mod output;
pub mod sim;
pub mod topology;
pub mod xbar;

use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

/// Maps source-routed fabrics and gives every host deadlock-free routes, without a central server.
#[derive(Debug, Parser)]
#[command(name = "mapper", version, max_term_width = 100)]
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
    /// Fabrics as files: generate, convert, show, diff.
    Topology(topology::Args),
    /// Run every host's agent on a simulated fabric.
    Sim(sim::Args),
    /// Run the agent of one interface.
    Agent(agent::Args),
    /// Run a software crossbar.
    Xbar(xbar::Args),
    /// Show the state of this machine's agents.
    BoardInfo(board_info::Args),
    /// Print a fabric as lines that a shell can read, for scripts/lab.
    #[command(hide = true)]
    LabPlan(lab_plan::Args),
}

/// Why a command failed: one text, which says what was wrong and what to do.
pub type CliError = Box<dyn std::error::Error + Send + Sync>;

/// Parses the command line, runs the subcommand, prints failure, and says how the process ends.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let format = cli.format;
    let result = match cli.command {
        Command::Topology(args) => topology::run(args, format),
        Command::Sim(args) => sim::run(args, format),
        Command::Agent(args) => agent::run(args, format),
        Command::Xbar(args) => xbar::run(args, format),
        Command::BoardInfo(args) => board_info::run(args, format),
        Command::LabPlan(args) => lab_plan::run(&args, format),
    };
    result.unwrap_or_else(|error| {
        let message = error_chain(error.as_ref());
        if format == Format::Json {
            println!("{}", serde_json::json!({ "schema": "mapper.error/1", "error": message }));
        }
        eprintln!("mapper: {message}");
        ExitCode::from(1)
    })
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
