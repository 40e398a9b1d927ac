//! Settings of single hosts, as of a configuration that is read again.

use std::fmt;
use std::time::Duration;

use mapper_proto::agent::Settings;
use mapper_routing::RouteOptions;

/// A setting of a host, and its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Setting {
    /// Whether the maps that it makes have all hosts route by up*/down*.
    NonClos(bool),
    /// Its longest route, in xbars.
    MaxHops(u8),
    /// How long it sleeps at least before its first mapping.
    StartDelay(Duration),
    /// How often it sends a probe in all that is not answered.
    ProbeTries(u8),
    /// How often it asks its parent for the map.
    QueryInterval(Duration),
    /// Its pause at the end of each cycle of verification.
    VerifyPause(Duration),
    /// Most bytes in a piece of a map that it asks for.
    PieceBytes(u16),
    /// The time between two checks of a path that carries frames.
    LivenessInterval(Duration),
    /// How many of these checks may be missed.
    LivenessMisses(u8),
}

impl Setting {
    /// Reads a setting: its name, as in a configuration, and its value.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub(super) fn parse(name: &str, value: &str) -> Result<Self, String> {
        let wrong = |expected: &str| format!("`{value}` is no value of {name}; expected {expected}");
        let number = |least: u64, most: u64| {
            let number = value.parse().ok().filter(|number| (least..=most).contains(number));
            number.ok_or_else(|| wrong(&format!("{least} to {most}")))
        };
        let small = |least: u8, most: u8| number(least.into(), most.into()).map(|number| number as u8);
        let ms = |least: u64, most: u64| number(least, most).map(Duration::from_millis);
        Ok(match name {
            "non-clos" => Self::NonClos(value.parse().map_err(|_| wrong("true or false"))?),
            "max-hops" => Self::MaxHops(small(1, 23)?),
            "start-delay-ms" => Self::StartDelay(ms(0, 60_000)?),
            "probe-tries" => Self::ProbeTries(small(1, 100)?),
            "query-interval-ms" => Self::QueryInterval(ms(10, 60_000)?),
            "verify-pause-ms" => Self::VerifyPause(ms(1, 600_000)?),
            "piece-bytes" => Self::PieceBytes(number(256, 8192)? as u16),
            "liveness-interval-ms" => Self::LivenessInterval(ms(1, 60_000)?),
            "liveness-misses" => Self::LivenessMisses(small(1, 255)?),
            _ => return Err(format!("`{name}` is no setting that can be changed so")),
        })
    }

    /// Has a host's settings show it.
    pub(crate) fn apply(self, settings: &mut Settings, routes: &mut RouteOptions) {
        match self {
            Self::NonClos(non_clos) => settings.non_clos = non_clos,
            Self::MaxHops(hops) => (settings.max_hops, routes.max_hops) = (hops.into(), hops),
            Self::StartDelay(delay) => settings.start_delay = delay,
            Self::ProbeTries(tries) => settings.probe_tries = tries,
            Self::QueryInterval(interval) => settings.query_interval = interval,
            Self::VerifyPause(pause) => settings.verify_pause = pause,
            Self::PieceBytes(bytes) => settings.piece_bytes = bytes.into(),
            Self::LivenessInterval(interval) => settings.liveness_interval = interval,
            Self::LivenessMisses(misses) => settings.liveness_misses = misses,
        }
    }
}

/// Its name and its value, as in a fault file.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NonClos(non_clos) => write!(f, "non-clos {non_clos}"),
            Self::MaxHops(hops) => write!(f, "max-hops {hops}"),
            Self::StartDelay(delay) => write!(f, "start-delay-ms {}", delay.as_millis()),
            Self::ProbeTries(tries) => write!(f, "probe-tries {tries}"),
            Self::QueryInterval(interval) => write!(f, "query-interval-ms {}", interval.as_millis()),
            Self::VerifyPause(pause) => write!(f, "verify-pause-ms {}", pause.as_millis()),
            Self::PieceBytes(bytes) => write!(f, "piece-bytes {bytes}"),
            Self::LivenessInterval(interval) => write!(f, "liveness-interval-ms {}", interval.as_millis()),
            Self::LivenessMisses(misses) => write!(f, "liveness-misses {misses}"),
        }
    }
}
