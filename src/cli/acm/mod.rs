//! `mapper acm`: the ACM service, and the tools for it.

pub mod config;
pub mod query;
pub mod serve;

use std::process::ExitCode;

use super::{CliError, Format};

/// Options of `mapper acm`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Run the service, which tells programs the path to a name or an address, as ibacm does.
    Serve(Box<serve::Args>),
    /// Ask a service for paths, counters or endpoints, as ib_acme does.
    Query(query::Args),
    /// Write the files ibacm_addr.cfg and ibacm_opts.cfg for this machine, as ib_acme does.
    Config(config::Args),
}

/// Runs `mapper acm`.
///
/// # Errors
/// If the command fails. The error is worded for the user.
pub fn run(args: Args, format: Format) -> Result<ExitCode, CliError> {
    match args.command {
        Command::Serve(args) => serve::run(*args),
        Command::Query(args) => query::run(&args, format),
        Command::Config(args) => config::run(&args, format),
    }
}
