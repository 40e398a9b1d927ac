//! `mapper doctor`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use mapper_daemon::agent::options::Options;
use serde::Serialize;

use super::{CliError, Format, output};
use crate::doctor::{self, Check, Mended, Outcome, Subject};
use mapper_machine::options::{DataPathChoice, ProcessKeys};

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
    /// What users' packets are to go by: auto, srv6, routes or tap [default: as configured, or auto].
    #[arg(long, value_name = "KIND")]
    data_path: Option<DataPathChoice>,
    /// Mend what can be mended without cutting this machine off from anything, say how to undo it, and examine again.
    #[arg(long)]
    fix: bool,
}

/// The configuration directory of installed daemons.
const CONFIG_DIR: &str = "/etc/mapper";

#[derive(Serialize)]
struct DoctorJson<'a> {
    schema: &'static str,
    checks: &'a [Check],
    /// What `--fix` did.
    #[serde(skip_serializing_if = "Option::is_none")]
    mended: Option<&'a [Mended]>,
}

/// Runs `mapper doctor`. The exit status is 1 if a check failed.
///
/// # Errors
/// If the command fails. The error is worded for the user.
pub fn run(args: Args, format: Format) -> Result<ExitCode, CliError> {
    let Args { interfaces, ports, config, key_file, tap, run_dir, data_path, fix } = args;
    let installed = || Some(PathBuf::from(CONFIG_DIR)).filter(|path| Path::is_dir(path));
    let config = config.or_else(installed);
    let process = ProcessKeys { run_dir, ..ProcessKeys::default() };
    let options = Options { key_file, tap, data_path, process, ..Options::default() };
    let subject = Subject { interfaces, ports, options, file: config };
    let mut checks = doctor::examine(&subject);
    let mended = fix.then(|| doctor::mend(&checks));
    if mended.as_ref().is_some_and(|mended| !mended.is_empty()) {
        checks = doctor::examine(&subject);
    }
    match format {
        Format::Json => {
            let answer = DoctorJson { schema: "mapper.doctor/1", checks: &checks, mended: mended.as_deref() };
            output::print(&(serde_json::to_string_pretty(&answer)? + "\n"))?;
        }
        Format::Text => output::print(&(describe_mended(mended.as_deref()) + &describe(&checks)))?,
    }
    let failed = checks.iter().any(|check| check.status == Outcome::Failed);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Describes what `--fix` did, and how to undo it.
fn describe_mended(mended: Option<&[Mended]>) -> String {
    let Some(mended) = mended else { return String::new() };
    let mut text = String::new();
    for Mended { name, interface, done, undo, error } in mended {
        let interface = interface.as_ref().map(|name| format!("{name} ")).unwrap_or_default();
        for command in done {
            text.push_str(&format!("mended   {interface}{name}: {command}\n"));
        }
        for command in undo {
            text.push_str(&format!("         to undo: {command}\n"));
        }
        if let Some(error) = error {
            text.push_str(&format!("FAILED   {interface}{name}: not mended: {error}\n"));
        }
    }
    if mended.is_empty() {
        text.push_str("There is nothing that can be mended without asking.\n");
    }
    text
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
            repair: None,
        };
        let expected = "FAILED   eth1 carrier: there is none\n         to do: plug the cable in\n1 failed, 0 to look at.\n";
        assert_eq!(describe(&[check]), expected);
        assert_eq!(describe(&[]), "All is well.\n");
    }
}
