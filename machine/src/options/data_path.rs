//! What users' packets go by, as the user chooses it.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer};

/// What users' packets go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DataPathChoice {
    /// The best that the kernel here and those on the way can do, host by host.
    #[default]
    Auto,
    /// Segments that kernels obey.
    Srv6,
    /// The kernels' routes by destination.
    Routes,
    /// The tap interface and crossbars in user space alone.
    Tap,
}

impl DataPathChoice {
    const ALL: [Self; 4] = [Self::Auto, Self::Srv6, Self::Routes, Self::Tap];

    /// The name that a user gives.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Srv6 => "srv6",
            Self::Routes => "routes",
            Self::Tap => "tap",
        }
    }

    /// Whether segments may be used.
    pub const fn allows_segments(self) -> bool {
        matches!(self, Self::Auto | Self::Srv6)
    }

    /// Whether routes by destination may be used.
    pub const fn allows_routes(self) -> bool {
        matches!(self, Self::Auto | Self::Routes)
    }
}

impl fmt::Display for DataPathChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DataPathChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|choice| choice.name() == text);
        found.ok_or_else(|| "expected auto, srv6, routes or tap".to_owned())
    }
}

impl<'de> Deserialize<'de> for DataPathChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}
