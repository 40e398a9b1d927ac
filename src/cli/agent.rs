//! `mapper agent`.

use std::path::PathBuf;
use std::process::ExitCode;

use mapper_daemon::agent::driver::{self, DaemonEnd};
use mapper_daemon::agent::options::{Options, Source};
use mapper_daemon::subnet;

use super::{CliError, Format, output};

/// Options of `mapper agent`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Read options from this file, in the manner of mapper.toml. Of a directory, read mapper.toml and
    /// over it IF.toml of the interface, if they are there. The command line wins.
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
}

/// Runs `mapper agent`. With `--map-once` and `--format json` prints, once mapping is complete everywhere,
/// `{"schema":"mapper.agent/1","complete":true,"hosts":N}` with the number of hosts in the map. A
/// daemon in the background prints nothing.
///
/// # Errors
/// If the command fails. The error is worded for the user.
pub fn run(args: Args, format: Format) -> Result<ExitCode, CliError> {
    let source = Source::agent(args.options, args.config);
    let config = source.read()?;
    // A name of the form of a port of InfiniBand cannot be an interface of Ethernet.
    let end = match config.interface.parse() {
        Ok(port) => subnet::run(config, port)?,
        Err(_) => driver::run(source)?,
    };
    finish(end, format)
}

/// Prints how an agent or a node ended, if there is anything to print.
///
/// # Errors
/// If standard output cannot be written.
pub(super) fn finish(end: DaemonEnd, format: Format) -> Result<ExitCode, CliError> {
    if let DaemonEnd::Background(status) = end {
        return Ok(status);
    }
    if format == Format::Json
        && let Some(text) = report(end)
    {
        output::print(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn report(end: DaemonEnd) -> Option<String> {
    let DaemonEnd::Complete { hosts } = end else { return None };
    let report = serde_json::json!({ "schema": "mapper.agent/1", "complete": true, "hosts": hosts });
    Some(format!("{report}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_mapped_once_says_of_how_many_hosts() {
        let text = report(DaemonEnd::Complete { hosts: 3 }).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json, serde_json::json!({ "schema": "mapper.agent/1", "complete": true, "hosts": 3 }));
        assert!(text.ends_with('\n'));
        assert_eq!(report(DaemonEnd::Stopped), None);
    }
}
