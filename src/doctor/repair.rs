//! What can be mended without asking: commands that touch the ports of the fabric alone, and those that undo them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde::Serialize;

use super::Check;

/// Where programs of administrators are, for users whose path lacks these directories.
const ADMINISTRATION: [&str; 2] = ["/usr/sbin", "/sbin"];

/// A way to mend what a check found, which cuts the machine off from nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// The commands, in order.
    pub commands: Vec<String>,
    /// The commands that undo them.
    pub undo: Vec<String>,
}

impl Repair {
    /// One command, and the one that undoes it.
    pub(super) fn new(command: impl Into<String>, undo: impl Into<String>) -> Self {
        Self { commands: vec![command.into()], undo: vec![undo.into()] }
    }

    /// Sets a setting of the kernel, as `sysctl` takes it.
    pub(super) fn of_setting(setting: &str, before: i32, value: i32) -> Self {
        Self::new(format!("sysctl -w {setting}={value}"), format!("sysctl -w {setting}={before}"))
    }
}

/// Commands as they stand in advice.
pub(super) fn in_words(commands: &[String]) -> String {
    commands.iter().map(|command| format!("`{command}`")).collect::<Vec<_>>().join(", ")
}

/// What was mended, or could not be, as `mapper.doctor/1` has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mended {
    /// What was checked.
    pub name: &'static str,
    /// The interface that was checked, if it was one.
    pub interface: Option<String>,
    /// The commands that were carried out.
    pub done: Vec<String>,
    /// The commands that undo them.
    pub undo: Vec<String>,
    /// Why a command failed, and what comes after it was left.
    pub error: Option<String>,
}

/// Carries out the repairs of these checks.
pub fn mend(checks: &[Check]) -> Vec<Mended> {
    let with_repair = checks.iter().filter_map(|check| Some((check, check.repair.as_ref()?)));
    with_repair.map(|(check, repair)| carry_out(check, repair)).collect()
}

fn carry_out(check: &Check, Repair { commands, undo }: &Repair) -> Mended {
    let (name, interface) = (check.name, check.interface.clone());
    let mut done = Vec::new();
    for command in commands {
        if let Err(why) = run(command) {
            let undo = undo.iter().take(done.len()).cloned().collect();
            return Mended { name, interface, done, undo, error: Some(format!("`{command}`: {why}")) };
        }
        done.push(command.clone());
    }
    Mended { name, interface, done, undo: undo.clone(), error: None }
}

/// Runs a command, whose words have no blanks. Settings of the kernel are written without another program, which
/// small systems lack.
fn run(command: &str) -> Result<(), String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    if let ["sysctl", "-w", assignment] = *words.as_slice() {
        let (setting, value) = assignment.split_once('=').ok_or("no value")?;
        return std::fs::write(Path::new("/proc/sys").join(setting), value)
            .map_err(|error| error.to_string());
    }
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    let output = output_of(program, arguments).ok_or_else(|| format!("there is no program {program}"))??;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// Runs a program to its end; `None` if there is no such program.
pub(super) fn output_of(program: &str, arguments: &[&str]) -> Option<Result<Output, String>> {
    let path = find(program)?;
    Some(Command::new(path).args(arguments).output().map_err(|error| error.to_string()))
}

/// Where a program is.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain(ADMINISTRATION.map(PathBuf::from));
    dirs.map(|dir| dir.join(program)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fails_ends_the_repair_and_only_what_was_done_is_to_be_undone() {
        let repair = Repair {
            commands: ["true", "false", "true"].map(str::to_owned).to_vec(),
            undo: ["undo 1", "undo 2", "undo 3"].map(str::to_owned).to_vec(),
        };
        let mended = carry_out(&Check::warning("x", "y", "z"), &repair);
        assert_eq!((mended.done, mended.undo), (vec!["true".to_owned()], vec!["undo 1".to_owned()]));
        assert!(mended.error.unwrap().starts_with("`false`"));
    }

    #[test]
    fn a_program_that_is_missing_is_named() {
        assert_eq!(run("nosuchprogram here"), Err("there is no program nosuchprogram".to_owned()));
        assert!(output_of("nosuchprogram", &[]).is_none());
    }
}
