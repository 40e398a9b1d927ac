//! Makes manual pages, in the language of man(7).

use std::io;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::sections::{self, Sections};

/// The manual that all pages belong to.
const MANUAL: &str = "Mapper manual";
/// What exit status 1 means of a command that says no more of it.
const FAILED: &str = "It failed; standard error says why, and standard output too under --format json.";
/// The configuration file, as it is delivered.
const CONFIGURATION: &str = include_str!("../../../mapper.toml");

/// The page of a command.
pub(super) struct Page {
    /// The name of the page, such as `mapper-board-info`.
    pub(super) name: String,
    /// The section of the manual that the page is in.
    pub(super) section: &'static str,
    /// The page in the language of man(7).
    pub(super) text: String,
}

/// The page of a command, on which [`Command::build`] must have been called.
pub(super) fn of_command(command: &Command) -> io::Result<Page> {
    let name = display_name(command);
    let sections = sections::of(&name);
    let man = Man::new(command.clone()).title(name.to_uppercase()).section(sections.number);
    // The version stands where other pages have a date, so that a page is the same whenever it is made.
    let man = man.date(version()).source("mapper").manual(MANUAL);
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    let mut rest = Roff::new();
    add_commands(&mut rest, command);
    if let Some(help) = command.get_after_long_help() {
        rest.control("SH", ["NOTES"]);
        add_verbatim(&mut rest, &help.to_string());
    }
    add_sections(&mut rest, &sections);
    add_see_also(&mut rest, &name, command);
    rest.to_writer(&mut text)?;
    let text = String::from_utf8(text).map_err(io::Error::other)?;
    Ok(Page { name, section: sections.number, text })
}

/// The page of `mapper.toml`, which shows the file with its comments.
pub(super) fn configuration() -> String {
    let mut page = Roff::new();
    page.control("TH", ["MAPPER.TOML", "5", &version(), "mapper", MANUAL]);
    page.control("SH", ["NAME"]);
    page.text([roman("mapper.toml - configuration of mapper agent and mapper node")]);
    page.control("SH", ["DESCRIPTION"]);
    page.text([roman(
        "Every option of mapper-agent(8) is a key of this file, which it reads where --config names it. \
         The units of systemd and the init script read /etc/mapper/mapper.toml, and over it the file of an \
         interface, /etc/mapper/IF.toml, or /etc/mapper/node.toml. This is the file with all keys and their \
         defaults:",
    )]);
    add_verbatim(&mut page, CONFIGURATION);
    page.control("SH", ["SEE ALSO"]);
    page.text([bold("mapper-agent"), roman("(8)")]);
    page.to_roff()
}

fn version() -> String {
    format!("mapper {}", env!("CARGO_PKG_VERSION"))
}

fn display_name(command: &Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

fn add_commands(page: &mut Roff, command: &Command) {
    let mut commands = command.get_subcommands().peekable();
    if commands.peek().is_some() {
        page.control("SH", ["COMMANDS"]);
    }
    for below in commands {
        let name = display_name(below);
        page.control("TP", []);
        page.text([bold(name.as_str()), roman(format!("({})", sections::of(&name).number))]);
        page.text([roman(below.get_about().map(ToString::to_string).unwrap_or_default())]);
    }
}

fn add_sections(page: &mut Roff, sections: &Sections) {
    page.control("SH", ["EXIT STATUS"]);
    let failed = match sections.unmet {
        Some(unmet) => format!("{unmet} Or the command could not do its work, and standard error says why."),
        None => FAILED.to_owned(),
    };
    let common =
        [("0", "It did what it was told to."), ("1", failed.as_str()), ("2", "The command line was wrong.")];
    for (status, meaning) in common.iter().chain(sections.statuses) {
        add_item(page, status, meaning);
    }
    if !sections.signals.is_empty() {
        page.control("SH", ["SIGNALS"]);
    }
    for (signal, meaning) in sections.signals {
        add_item(page, signal, meaning);
    }
    if !sections.files.is_empty() {
        page.control("SH", ["FILES"]);
    }
    for (file, meaning) in sections.files {
        add_item(page, file, meaning);
    }
    if !sections.examples.is_empty() {
        page.control("SH", ["EXAMPLES"]);
    }
    for (what, commands) in sections.examples {
        page.text([roman(*what)]);
        add_verbatim(page, commands);
    }
}

fn add_item(page: &mut Roff, name: &str, meaning: &str) {
    page.control("TP", []);
    page.text([bold(name)]);
    page.text([roman(meaning)]);
}

/// Adds text whose lines stay as they are.
fn add_verbatim(page: &mut Roff, text: &str) {
    page.control("PP", []);
    page.control("RS", ["4"]);
    page.control("nf", []);
    for line in text.lines() {
        page.text([roman(line)]);
    }
    page.control("fi", []);
    page.control("RE", []);
    page.control("PP", []);
}

/// Adds references to the page of the command above and to that of the configuration file.
fn add_see_also(page: &mut Roff, name: &str, command: &Command) {
    // The command's own name may have hyphens, too.
    let above = name.strip_suffix(command.get_name()).and_then(|above| above.strip_suffix('-'));
    let mut pages: Vec<_> = above.map(|above| (above, sections::of(above).number)).into_iter().collect();
    if command.get_arguments().any(|argument| argument.get_id() == "config") || name == "mapper" {
        pages.push(("mapper.toml", "5"));
    }
    page.control("SH", ["SEE ALSO"]);
    for (nth, (name, section)) in pages.iter().enumerate() {
        let comma = if nth + 1 < pages.len() { "," } else { "" };
        page.text([bold(*name), roman(format!("({section}){comma}"))]);
    }
}
