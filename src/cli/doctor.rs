//! `mapper doctor`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;

use super::{CliError, Format, output};
use crate::daemon::options::Options;
use crate::doctor::{self, Check, Outcome, Subject};
use mapper_machine::options::ProcessKeys;

/// Options of `mapper doctor`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// An interface that is cabled to the fabric. May be repeated. [default: those that the
    /// configuration names, and those that a daemon works on]
    #[arg(long = "interface", value_name = "IF")]
    interfaces: Vec<String>,
    /// The interfaces of a node or crossbar.
    #[arg(long, alias = "port", value_name = "IF,..", value_delimiter = ',')]
    ports: Vec<String>,
    /// The configuration file, or the directory of such files. [default: /etc/mapper, if it is there]
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
    /// The key file of the agent.
    #[arg(long, value_name = "PATH")]
    key_file: Option<PathBuf>,
    /// The agent is to make a tap interface of this name.
    #[arg(long, value_name = "NAME")]
    tap: Option<String>,
    /// Directory of the status sockets.
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
}

/// The configuration directory of installed daemons.
const CONFIG_DIR: &str = "/etc/mapper";

#[derive(Serialize)]
struct Output<'a> {
    schema: &'static str,
    checks: &'a [Check],
}

/// Runs `mapper doctor`. The exit status is 1 if a check failed.
///
/// # Errors
/// If the command fails. The error is worded for the user.
pub fn run(args: Args, format: Format) -> Result<ExitCode, CliError> {
    let Args { interfaces, ports, config, key_file, tap, run_dir } = args;
    let installed = || Some(PathBuf::from(CONFIG_DIR)).filter(|path| Path::is_dir(path));
    let config = config.or_else(installed);
    let process = ProcessKeys { run_dir, ..ProcessKeys::default() };
    let options = Options { key_file, tap, process, ..Options::default() };
    let checks = doctor::examine(&Subject { interfaces, ports, options, file: config });
    match format {
        Format::Json => {
            let answer = Output { schema: "mapper.doctor/1", checks: &checks };
            output::print(&(serde_json::to_string_pretty(&answer)? + "\n"))?;
        }
        Format::Text => output::print(&describe(&checks))?,
    }
    let failed = checks.iter().any(|check| check.status == Outcome::Failed);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Describes each check in a line, with what to do below it.
fn describe(checks: &[Check]) -> String {
    let mut text = String::new();
    for check in checks {
        let status = match check.status {
            Outcome::Ok => "ok",
            Outcome::Warning => "warning",
            Outcome::Failed => "FAILED",
        };
        let interface = check.interface.as_ref().map(|name| format!("{name} ")).unwrap_or_default();
        text.push_str(&format!("{status:<8} {interface}{}: {}\n", check.name, check.what));
        if let Some(fix) = &check.fix {
            text.push_str(&format!("         to do: {fix}\n"));
        }
    }
    let count = |status| checks.iter().filter(|check| check.status == status).count();
    match (count(Outcome::Failed), count(Outcome::Warning)) {
        (0, 0) => text.push_str("All is well.\n"),
        (failed, warnings) => text.push_str(&format!("{failed} failed, {warnings} to look at.\n")),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_is_a_line_with_what_to_do_below() {
        let check = Check {
            name: "carrier",
            interface: Some("eth1".to_owned()),
            status: Outcome::Failed,
            what: "there is none".to_owned(),
            fix: Some("plug the cable in".to_owned()),
        };
        let expected = "FAILED   eth1 carrier: there is none\n         to do: plug the cable in\n1 failed, 0 to look at.\n";
        assert_eq!(describe(&[check]), expected);
        assert_eq!(describe(&[]), "All is well.\n");
    }
}
