//! What an administrator writes into `event_plugin_options`.

use std::path::PathBuf;
use std::str::FromStr;

use mapper_routing::engines::Engine;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What is to be computed, and by what.
///
/// Written as `engines=ftree,updn;roots=0x10,0x20;max-layers=4`: settings apart by semicolons, without
/// blanks, each at most once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// The engines that are tried, in this order; none if the best of all is wanted.
    #[serde(with = "engine_names")]
    engines: Option<Vec<Engine>>,
    /// The GUIDs of the switches that are roots; engines find them if none is given.
    pub roots: Vec<u64>,
    /// Most layers, before the switches' virtual lanes are looked at. If it is not given, the best of all is looked for
    /// in one layer, and engines that are named may use all lanes.
    max_layers: Option<u8>,
    /// How long a computation may take.
    pub limit_s: u16,
    /// Whether everything is balanced anew at each sweep, whatever is in force.
    pub reassign: bool,
    /// The program that computes, if it is not the one that came with the plugin.
    pub worker: Option<PathBuf>,
}

/// Why a text is no options of the plugin.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OptionError {
    /// A setting that the plugin does not have.
    #[error("`{0}` is no setting; expected engines=, roots=, max-layers=, seconds=, worker= or reassign")]
    Unknown(String),
    /// A setting that is there twice.
    #[error("`{0}` is there twice; leave one of them out")]
    Twice(String),
    /// A name that is no engine's that computes tables.
    #[error("engines: `{0}` is no engine; expected {best} or any of {those}", best = Options::BEST, those = names())]
    NoEngine(String),
    /// An engine that has no tables, or reads them from a file.
    #[error("engines: {0} computes no tables for OpenSM; leave it out")]
    NoTables(Engine),
    /// The best of all beside engines that are named.
    #[error("engines: best stands alone, for it tries all engines that suit the fabric")]
    BestAndOthers,
    /// A list without any entry.
    #[error("`{0}` names nothing; leave it out or name some, apart by commas")]
    Empty(&'static str),
    /// A text that is no GUID.
    #[error("roots: `{0}` is no GUID; expected a number such as 0x0002c90300a1b2c3")]
    Guid(String),
    /// A number out of range.
    #[error("{setting}: `{given}` is out of range; give {least} to {most}")]
    Number {
        /// The setting.
        setting: &'static str,
        /// What is given.
        given: String,
        /// Smallest number.
        least: u16,
        /// Largest number.
        most: u16,
    },
}

impl Default for Options {
    fn default() -> Self {
        Self {
            engines: None,
            roots: Vec::new(),
            max_layers: None,
            limit_s: 60,
            reassign: false,
            worker: None,
        }
    }
}

impl Options {
    /// The name that is given to have the best of all engines chosen.
    const BEST: &str = "best";

    /// Most layers: as many as there are data lanes.
    pub const MAX_LAYERS: u8 = 15;

    /// The engines that are tried, in this order; `None` if the best of all is wanted.
    pub fn engines(&self) -> Option<Vec<Engine>> {
        self.engines.clone()
    }

    /// Whether a limit on layers is given.
    pub fn limits_layers(&self) -> bool {
        self.max_layers.is_some()
    }

    /// Most layers where switches have so many lanes.
    pub fn layers(&self, lanes: u8) -> u8 {
        let wanted = self.max_layers.unwrap_or(if self.engines.is_some() { Self::MAX_LAYERS } else { 1 });
        wanted.min(lanes).max(1)
    }
}

impl FromStr for Options {
    type Err = OptionError;

    fn from_str(text: &str) -> Result<Self, OptionError> {
        let mut options = Self::default();
        let mut seen = Vec::new();
        for setting in text.split(';').map(str::trim).filter(|setting| !setting.is_empty()) {
            let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
            if seen.contains(&name) {
                return Err(OptionError::Twice(name.to_owned()));
            }
            seen.push(name);
            match name {
                "engines" => options.engines = engines(value)?,
                "roots" => options.roots = roots(value)?,
                "max-layers" => {
                    options.max_layers =
                        Some(number("max-layers", value, u16::from(Self::MAX_LAYERS))? as u8);
                }
                "seconds" => options.limit_s = number("seconds", value, 3600)?,
                "worker" if !value.is_empty() => options.worker = Some(PathBuf::from(value)),
                "reassign" if setting == name => options.reassign = true,
                _ => return Err(OptionError::Unknown(setting.to_owned())),
            }
        }
        Ok(options)
    }
}

fn items(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// Whether an engine computes tables of a subnet by itself.
const fn computes_tables(engine: Engine) -> bool {
    !matches!(engine, Engine::File | Engine::Dispersive)
}

/// The engines that may be named.
fn names() -> String {
    let engines = Engine::ALL.into_iter().filter(|&engine| computes_tables(engine));
    engines.map(Engine::name).collect::<Vec<_>>().join(", ")
}

fn engines(value: &str) -> Result<Option<Vec<Engine>>, OptionError> {
    let mut engines = Vec::new();
    if value.trim() == Options::BEST {
        return Ok(None);
    }
    for item in items(value) {
        if item == Options::BEST {
            return Err(OptionError::BestAndOthers);
        }
        let engine: Engine = item.parse().map_err(|_| OptionError::NoEngine(item.to_owned()))?;
        if !computes_tables(engine) {
            return Err(OptionError::NoTables(engine));
        }
        engines.push(engine);
    }
    if engines.is_empty() { Err(OptionError::Empty("engines")) } else { Ok(Some(engines)) }
}

/// Engines by name, as they travel to the process that computes. A name that it does not know is refused.
mod engine_names {
    use mapper_routing::engines::Engine;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        engines: &Option<Vec<Engine>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let names: Option<Vec<&str>> =
            engines.as_ref().map(|engines| engines.iter().map(|engine| engine.name()).collect());
        names.serialize(serializer)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(
        deserializer: D,
    ) -> Result<Option<Vec<Engine>>, D::Error> {
        let names: Option<Vec<String>> = Option::deserialize(deserializer)?;
        let engine = |name: String| {
            name.parse().map_err(|_| D::Error::custom(format!("`{name}` is no engine of this version")))
        };
        names.map(|names| names.into_iter().map(engine).collect()).transpose()
    }
}

fn roots(value: &str) -> Result<Vec<u64>, OptionError> {
    let guid = |item: &str| {
        let digits = item.strip_prefix("0x").unwrap_or(item);
        u64::from_str_radix(digits, 16).map_err(|_| OptionError::Guid(item.to_owned()))
    };
    let roots = items(value).map(guid).collect::<Result<Vec<_>, _>>()?;
    if roots.is_empty() { Err(OptionError::Empty("roots")) } else { Ok(roots) }
}

fn number(setting: &'static str, value: &str, most: u16) -> Result<u16, OptionError> {
    let known = value.parse().ok().filter(|number| (1..=most).contains(number));
    known.ok_or_else(|| OptionError::Number { setting, given: value.to_owned(), least: 1, most })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_stand_apart_by_semicolons() {
        let options: Options =
            "engines=updn,lash;roots=0x10,20;max-layers=4;seconds=5;reassign".parse().unwrap();
        assert_eq!(options.engines(), Some(vec![Engine::Updn, Engine::Lash]));
        assert_eq!(options.roots, [0x10, 0x20]);
        assert_eq!((options.layers(8), options.limit_s, options.reassign), (4, 5, true));
        assert_eq!("".parse(), Ok(Options::default()));
        assert_eq!("engines=best".parse(), Ok(Options::default()));
    }

    #[test]
    fn engines_arrive_at_the_worker_and_an_unknown_one_is_refused() {
        let options: Options = "engines=updn,lash".parse().unwrap();
        let mut bytes = postcard::to_stdvec(&options).unwrap();
        assert_eq!(postcard::from_bytes::<Options>(&bytes).unwrap(), options);
        let at = bytes.windows(4).position(|name| name == b"lash").unwrap();
        bytes[at] = b'b';
        assert!(postcard::from_bytes::<Options>(&bytes).is_err());
    }

    #[test]
    fn layers_are_no_more_than_lanes_and_one_for_the_best_of_all() {
        let layers = |text: &str, lanes| text.parse::<Options>().unwrap().layers(lanes);
        assert_eq!([layers("", 8), layers("max-layers=4", 8), layers("max-layers=4", 2)], [1, 4, 2]);
        assert_eq!([layers("engines=lash", 8), layers("engines=lash;max-layers=3", 8)], [8, 3]);
        assert_eq!(layers("engines=lash", 0), 1);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let said = |text: &str| text.parse::<Options>().unwrap_err().to_string();
        assert!(said("engine=updn").contains("`engine=updn` is no setting; expected engines="));
        assert!(
            said("engines=upsidedown")
                .contains("`upsidedown` is no engine; expected best or any of minhop, updn")
        );
        assert_eq!(said("engines="), "`engines` names nothing; leave it out or name some, apart by commas");
        assert_eq!(said("engines=file"), "engines: file computes no tables for OpenSM; leave it out");
        assert_eq!(
            said("engines=best,updn"),
            "engines: best stands alone, for it tries all engines that suit the fabric"
        );
        assert!(said("roots=spine").contains("`spine` is no GUID"));
        assert_eq!(said("max-layers=16"), "max-layers: `16` is out of range; give 1 to 15");
        assert_eq!(said("seconds=1;seconds=2"), "`seconds` is there twice; leave one of them out");
    }
}
