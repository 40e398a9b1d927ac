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

/// A check, and other interfaces of which the same is to be said.
struct Alike<'a> {
    check: &'a Check,
    others: Vec<&'a str>,
}

impl Alike<'_> {
    /// Whether a finding of another interface is the same, and what to do about it but for the interface's name. What is as it should be
    /// is told of each.
    fn has(&self, other: &Check) -> bool {
        let advice = |check: &Check| {
            let name = check.interface.as_deref().unwrap_or_default();
            check.fix.as_ref().map(|fix| fix.replace(name, "\0"))
        };
        let Self { check, .. } = self;
        let is_wrong = check.status != Outcome::Ok && check.interface.is_some() && other.interface.is_some();
        let finding = |check: &Check| (check.name, check.status, check.what.clone());
        is_wrong && finding(check) == finding(other) && advice(check) == advice(other)
    }
}

/// The checks in their order, those with the same finding at the first of them.
fn together(checks: &[Check]) -> Vec<Alike<'_>> {
    let mut told: Vec<Alike<'_>> = Vec::new();
    for check in checks {
        match (told.iter_mut().find(|alike| alike.has(check)), &check.interface) {
            (Some(alike), Some(interface)) => alike.others.push(interface),
            _ => told.push(Alike { check, others: Vec::new() }),
        }
    }
    told
}

/// Describes each check in a line, with what to do below it. Interfaces of which the same is to be said share one.
fn describe(checks: &[Check]) -> String {
    let mut text = String::new();
    let checks = together(checks);
    for Alike { check, others } in &checks {
        let status = match check.status {
            Outcome::Ok => "ok",
            Outcome::Warning => "warning",
            Outcome::Failed => "FAILED",
        };
        let names: Vec<&str> = check.interface.as_deref().into_iter().chain(others.iter().copied()).collect();
        let interfaces = if names.is_empty() { String::new() } else { names.join(", ") + " " };
        text.push_str(&format!("{status:<8} {interfaces}{}: {}\n", check.name, check.what));
        if let Some(fix) = &check.fix {
            // The advice has the name of the first of them, if it needs one.
            let is_named = check.interface.as_ref().is_some_and(|name| fix.contains(name));
            let same = match others.as_slice() {
                [_, ..] if is_named => format!("; the same for {}", others.join(", ")),
                _ => String::new(),
            };
            text.push_str(&format!("         to do: {fix}{same}\n"));
        }
    }
    let count = |status| checks.iter().filter(|alike| alike.check.status == status).count();
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

    #[test]
    fn what_is_the_same_of_several_interfaces_is_said_once() {
        let check = |interface: &str, mtu: u32, status| Check {
            name: "MTU",
            interface: Some(interface.to_owned()),
            status,
            what: format!("{mtu} bytes"),
            fix: (status != Outcome::Ok).then(|| format!("`ip link set {interface} mtu 9000`")),
            repair: None,
        };
        let warned = |interface, mtu| check(interface, mtu, Outcome::Warning);
        let fine = |interface| check(interface, 9000, Outcome::Ok);
        let checks =
            [warned("eth1", 1500), fine("eth2"), warned("eth3", 4000), warned("eth10", 1500), fine("eth4")];
        let expected = "warning  eth1, eth10 MTU: 1500 bytes\n         \
                        to do: `ip link set eth1 mtu 9000`; the same for eth10\n\
                        ok       eth2 MTU: 9000 bytes\n\
                        warning  eth3 MTU: 4000 bytes\n         to do: `ip link set eth3 mtu 9000`\n\
                        ok       eth4 MTU: 9000 bytes\n0 failed, 2 to look at.\n";
        assert_eq!(describe(&checks), expected);
        let without_a_name = |check: Check| Check { fix: Some("plug the cable in".to_owned()), ..check };
        let told = describe(&[warned("eth1", 1500), warned("eth2", 1500)].map(without_a_name));
        assert!(told.contains("eth1, eth2 MTU") && told.contains("to do: plug the cable in\n"), "{told}");
    }
}
