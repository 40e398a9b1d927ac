//! `mapper generate-docs`: writes manual pages and shell completions from the definitions of the commands.
//!
//! It is hidden, as only the build of packages runs it.

mod page;
mod sections;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_complete::aot::{Shell, generate_to};

use super::{Cli, CliError, Format, output};

/// Options of `mapper generate-docs`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where `man/man1` and its like, and `completions/bash` and its like, are made.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// Runs `mapper generate-docs`.
///
/// # Errors
/// If the command fails. The error is worded for the user.
pub fn run(args: &Args, _format: Format) -> Result<ExitCode, CliError> {
    let mut command = visible(&Cli::command());
    write_completions(&mut command, &args.dir.join("completions"))?;
    command.build();
    let man = args.dir.join("man");
    write_pages(&command, &man)?;
    write_page(&man, "mapper.toml", "5", &page::configuration())?;
    Ok(ExitCode::SUCCESS)
}

/// A copy of a command without hidden subcommands.
fn visible(command: &Command) -> Command {
    // clap cannot remove a subcommand, so a new command is built.
    let mut visible = Command::new(command.get_name().to_owned())
        .args(command.get_arguments())
        .groups(command.get_groups())
        .subcommands(command.get_subcommands().filter(|below| !below.is_hide_set()).map(self::visible))
        // Pages like `mapper-help-topology` would say nothing.
        .disable_help_subcommand(true);
    if let Some(about) = command.get_about() {
        visible = visible.about(about.clone());
    }
    if let Some(help) = command.get_after_long_help() {
        visible = visible.after_long_help(help.clone());
    }
    if command.get_version().is_some() {
        visible = visible.version(env!("CARGO_PKG_VERSION"));
    }
    visible
}

fn write_completions(command: &mut Command, dir: &Path) -> Result<(), CliError> {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let dir = dir.join(shell.to_string());
        make(&dir)?;
        generate_to(shell, command, "mapper", &dir)
            .map_err(|error| format!("cannot write the completions in {}: {error}", dir.display()))?;
    }
    Ok(())
}

/// Writes the manual pages of a command and of all its subcommands.
fn write_pages(command: &Command, man: &Path) -> Result<(), CliError> {
    let page = page::of_command(command)?;
    write_page(man, &page.name, page.section, &page.text)?;
    for below in command.get_subcommands() {
        write_pages(below, man)?;
    }
    Ok(())
}

fn write_page(man: &Path, name: &str, section: &str, text: &str) -> Result<(), CliError> {
    let dir = man.join(format!("man{section}"));
    make(&dir)?;
    output::write_file(&dir.join(format!("{name}.{section}")), text)
}

fn make(dir: &Path) -> Result<(), CliError> {
    Ok(fs::create_dir_all(dir).map_err(|error| format!("cannot make {}: {error}", dir.display()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(dir: &Path) -> Vec<String> {
        let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn every_command_has_its_page_and_every_shell_its_completions() {
        let dir = tempfile::tempdir().unwrap();
        run(&Args { dir: dir.path().to_owned() }, Format::Text).unwrap();
        let commands = files(&dir.path().join("man/man1"));
        for page in ["mapper.1", "mapper-board-info.1", "mapper-topology.1", "mapper-topology-diff.1"] {
            assert!(commands.iter().any(|name| name == page), "{page}: {commands:?}");
        }
        assert!(
            !commands.iter().any(|name| name.contains("help") || name.contains("lab-plan")),
            "{commands:?}"
        );
        let daemons = files(&dir.path().join("man/man8"));
        for page in ["mapper-agent.8", "mapper-xbar.8"] {
            assert!(daemons.iter().any(|name| name == page), "{page}: {daemons:?}");
        }
        assert_eq!(files(&dir.path().join("man/man5")), ["mapper.toml.5"]);
        for (shell, file) in [("bash", "mapper.bash"), ("zsh", "_mapper"), ("fish", "mapper.fish")] {
            assert_eq!(files(&dir.path().join("completions").join(shell)), [file]);
        }
    }

    #[test]
    fn the_page_of_a_daemon_tells_options_statuses_files_and_examples() {
        let dir = tempfile::tempdir().unwrap();
        run(&Args { dir: dir.path().to_owned() }, Format::Text).unwrap();
        let page = fs::read_to_string(dir.path().join("man/man8/mapper-agent.8")).unwrap();
        for part in ["\\-\\-map\\-once", ".SH \"EXIT STATUS\"", ".SH FILES", "/run/mapper", ".SH EXAMPLES"] {
            assert!(page.contains(part), "{part}:\n{page}");
        }
    }
}
