//! The options that count at a port of InfiniBand alone.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::Options;
use super::resolve::millis;

/// What counts at a port of InfiniBand alone, with all defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubnetConfig {
    /// Which engines compute tables.
    pub engines: mapper_opensm::Options,
    /// Adapters have 2^lmc LIDs.
    pub lmc: u8,
    /// The file of the LIDs that ports were given.
    pub lid_file: Option<PathBuf>,
    /// The file of the key of management.
    pub key_file: Option<PathBuf>,
    /// The time from one look at all switches to the next.
    pub watch_interval: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// Most datagrams under way at a time.
    pub window: NonZeroUsize,
    /// The file that each datagram is recorded in.
    pub record: Option<PathBuf>,
}

/// Engines in the order in which they are tried, apart by commas; or `best`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineNames(String);

impl FromStr for EngineNames {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let options: Result<mapper_opensm::Options, _> = format!("engines={text}").parse();
        let told =
            |error: mapper_opensm::OptionError| error.to_string().trim_start_matches("engines: ").to_owned();
        match options {
            // Text behind a semicolon would be another setting.
            Ok(_) if !text.contains(';') => Ok(Self(text.to_owned())),
            Ok(_) => Err("expected names of engines, apart by commas".to_owned()),
            Err(error) => Err(told(error)),
        }
    }
}

impl<'de> serde::Deserialize<'de> for EngineNames {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

const DEFAULT_WATCH_INTERVAL: Duration = Duration::from_secs(10);
const DEFAULT_TIMEOUT: Duration = Duration::from_millis(500);
const DEFAULT_WINDOW: NonZeroUsize = NonZeroUsize::new(8).unwrap();

impl SubnetConfig {
    pub(super) fn of(options: &Options) -> Self {
        let engines = options.engine.as_ref().map(|EngineNames(names)| format!("engines={names}"));
        let layers = options.max_layers.map(|layers| format!("max-layers={}", layers.get()));
        let settings: Vec<String> = engines.into_iter().chain(layers).collect();
        let window = options.mad_window.and_then(|window| NonZeroUsize::new(window.get() as usize));
        Self {
            // Both settings were checked when they were read, so they parse.
            engines: settings.join(";").parse().unwrap_or_default(),
            lmc: options.lmc.map_or(0, |lmc| lmc.get() as u8),
            lid_file: options.lid_file.clone(),
            key_file: options.m_key_file.clone(),
            watch_interval: millis(options.watch_interval_ms, DEFAULT_WATCH_INTERVAL),
            timeout: millis(options.mad_timeout_ms, DEFAULT_TIMEOUT),
            window: window.unwrap_or(DEFAULT_WINDOW),
            record: options.record.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_looked_at_when_they_are_read() {
        assert!("updn,ftree".parse::<EngineNames>().is_ok() && "best".parse::<EngineNames>().is_ok());
        let refused = |text: &str| text.parse::<EngineNames>().unwrap_err();
        assert!(refused("upsidedown").starts_with("`upsidedown` is no engine"));
        assert!(refused("updn;reassign").starts_with("expected names of engines"));
        assert!(refused("file").starts_with("file computes no tables"));
        let options = Options { engine: Some("lash".parse().unwrap()), ..Options::default() };
        assert!(SubnetConfig::of(&options).engines.engines().is_some());
    }
}
