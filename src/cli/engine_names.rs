//! The names of the engines, for the command line, its help and its completions.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};

use super::best;
use mapper_routing::engines::{Balance, Engine, Setting, UnknownEngine};

/// What to route by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WantedEngine {
    /// The best that is proved.
    Best,
    /// This one.
    Engine(Engine),
}

/// Reads an engine's name, or that the best is wanted.
#[derive(Clone)]
pub(super) struct WantedName;

impl TypedValueParser for WantedName {
    type Value = WantedEngine;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<WantedEngine, Error> {
        if value == best::NAME {
            return Ok(WantedEngine::Best);
        }
        let also = format!("{}, ", best::NAME);
        named(command, arg, value, &also).map(WantedEngine::Engine)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let best = PossibleValue::new(best::NAME).help(best::SUMMARY);
        Some(Box::new(std::iter::once(best).chain(EngineName.possible_values()?)))
    }
}

/// What may stand in a list of engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listed {
    /// What to route by.
    Wanted(WantedEngine),
    /// No engine may serve but those of the list: OpenSM's word for it, which stands among the engines.
    NoFallback,
}

/// OpenSM's word in a list of engines for none but these.
const OPENSMS_NO_FALLBACK: &str = "no_fallback";

/// Reads what may stand in a list of engines.
#[derive(Clone)]
pub(super) struct ListedName;

impl TypedValueParser for ListedName {
    type Value = Listed;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Listed, Error> {
        if value == OPENSMS_NO_FALLBACK {
            return Ok(Listed::NoFallback);
        }
        WantedName.parse_ref(command, arg, value).map(Listed::Wanted)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        // Completions know the option --no-fallback, which says the same.
        WantedName.possible_values()
    }
}

/// What OpenSM calls its engine for tori, which `torus` follows.
const OPENSMS_TORUS: &str = "torus-2QoS";

/// Reads an engine's name, or OpenSM's name for it.
#[derive(Clone)]
pub(super) struct EngineName;

impl TypedValueParser for EngineName {
    type Value = Engine;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Engine, Error> {
        named(command, arg, value, "")
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let value = |engine: Engine| PossibleValue::new(engine.name()).help(engine.summary());
        Some(Box::new(Engine::ALL.into_iter().map(value)))
    }
}

/// The engine of this name. The error lists the names of all engines behind those of `also`.
fn named(command: &Command, arg: Option<&Arg>, value: &OsStr, also: &str) -> Result<Engine, Error> {
    let name = StringValueParser::new().parse_ref(command, arg, value)?;
    let own_name = if name == OPENSMS_TORUS { Engine::Torus.name() } else { &name };
    own_name.parse().map_err(|_: UnknownEngine| {
        let option = arg.map(ToString::to_string).unwrap_or_default();
        let all = Engine::ALL.map(Engine::name).join(", ");
        let what =
            format!("invalid value '{name}' for '{option}': `{name}` is no engine; expected {also}{all}\n");
        Error::raw(ErrorKind::ValueValidation, what).with_cmd(command)
    })
}

/// The help of an option that is a setting: the engines that obey it, and what it does. Engines that obey it only
/// as OpenSM balances are named with that option.
pub(super) fn help_of(setting: Setting, what: &str) -> String {
    let always = setting.engines(Balance::Fabric);
    let exact = setting.engines(Balance::Opensm).into_iter().filter(|engine| !always.contains(engine));
    let names = |engines: Vec<Engine>| engines.into_iter().map(Engine::name).collect::<Vec<_>>().join(", ");
    let exact = names(exact.collect());
    let with_balance = if exact.is_empty() { exact } else { format!("{exact} with --balance opensm") };
    let whose = [names(always), with_balance];
    let whose: Vec<&str> = whose.iter().map(String::as_str).filter(|names| !names.is_empty()).collect();
    format!("{}: {what}", whose.join(", "))
}

/// How many layers engines may use unless that is said.
pub(super) const DEFAULT_LAYERS: &str =
    "[default: 1 for best and nue, and as many as it needs for another engine that is named]";

/// The help text that lists the engines.
pub(super) fn help() -> String {
    let width = Engine::ALL.map(|engine| engine.name().len()).into_iter().max().unwrap_or_default();
    let line = |name: &str, summary: &str| format!("  {name:<width$}  {summary}\n");
    let engines = Engine::ALL.map(|engine| line(engine.name(), engine.summary()));
    format!("Engines:\n{}{}{REST}", line(best::NAME, best::SUMMARY), engines.concat())
}

const REST: &str = "
Nothing is written unless every pair has a route, no route is a loop or too long, and no layer can
deadlock. An engine whose tables fail is passed over like one that cannot serve.

A changed entry (changed_entries) is an out port that the tables of --previous do not have, or have
otherwise, or have and these do not; switches' entries for themselves do not count.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::HELP_WIDTH;

    #[test]
    fn each_engine_has_one_line_of_the_help() {
        let help = help();
        let (engines, _) = help.split_once("\n\n").unwrap();
        // There are two lines more: the heading, and the best of all.
        assert_eq!(engines.lines().count(), 2 + Engine::ALL.len());
        for line in help.lines() {
            assert!(line.len() <= HELP_WIDTH, "{line}");
        }
    }

    #[test]
    fn the_error_for_a_name_lists_those_that_may_stand_there() {
        use clap::Parser;
        let said =
            |line: &str| crate::cli::Cli::try_parse_from(line.split(' ')).unwrap_err().render().to_string();
        for line in ["mapper route t --engine foo", "mapper what-if t --each cable --engine foo"] {
            assert!(said(line).contains("`foo` is no engine; expected best, minhop, "), "{line}");
        }
        assert!(
            said("mapper route t --compare foo").contains("expected minhop, "),
            "the best compares nothing"
        );
    }

    #[test]
    fn settings_name_the_engines_that_obey_them() {
        let help = help_of(Setting::Roots, "the roots");
        let (engines, what) = help.split_once(": ").unwrap();
        assert!(engines.split(", ").any(|name| name == "updn") && what == "the roots", "{help}");
        let help = help_of(Setting::ConnectRoots, "roots reach each other");
        assert!(help.contains("updn") && help.contains("dnup with --balance opensm: roots reach"), "{help}");
    }
}
