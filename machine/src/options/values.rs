//! The types of options' values. Each is read and checked in one place, for the command line and the file.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer};

use crate::link::ethernet::MIN_ETHERTYPE;

/// A whole number from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounded<const MIN: u32, const MAX: u32>(u32);

impl<const MIN: u32, const MAX: u32> Bounded<MIN, MAX> {
    /// The number, which is within the bounds.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl<const MIN: u32, const MAX: u32> FromStr for Bounded<MIN, MAX> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number: i64 = text.parse().map_err(|_| format!("expected a whole number from {MIN} to {MAX}"))?;
        Self::try_from(number)
    }
}

impl<const MIN: u32, const MAX: u32> TryFrom<i64> for Bounded<MIN, MAX> {
    type Error = String;

    fn try_from(number: i64) -> Result<Self, String> {
        let number = u32::try_from(number).ok().filter(|number| (MIN..=MAX).contains(number));
        number.map(Self).ok_or_else(|| format!("expected a whole number from {MIN} to {MAX}"))
    }
}

impl<'de, const MIN: u32, const MAX: u32> Deserialize<'de> for Bounded<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_i64(WholeNumber)
    }
}

/// Reads a whole number, and says within which bounds it is wanted where there is something else.
struct WholeNumber<const MIN: u32, const MAX: u32>;

impl<const MIN: u32, const MAX: u32> de::Visitor<'_> for WholeNumber<MIN, MAX> {
    type Value = Bounded<MIN, MAX>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {MIN} to {MAX}")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
        number.try_into().map_err(E::custom)
    }
}

/// A value that is text on the command line and in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text<T>(T);

impl<T> Text<T> {
    /// The value.
    pub fn value(self) -> T {
        self.0
    }
}

impl<T: FromStr<Err: fmt::Display>> FromStr for Text<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|error: T::Err| error.to_string())
    }
}

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(de::Error::custom)
    }
}

/// Reads the values of a key that takes a list, or one value alone.
///
/// # Errors
/// If one of them is wrong.
pub fn one_or_more<'de, D, T>(deserializer: D) -> Result<Option<Vec<Text<T>>>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    #[derive(serde::Deserialize)]
    #[serde(untagged, expecting = "expected a text, or a list of texts")]
    enum OneOrMore {
        One(String),
        More(Vec<String>),
    }
    let texts = match OneOrMore::deserialize(deserializer)? {
        OneOrMore::One(text) => vec![text],
        OneOrMore::More(texts) => texts,
    };
    texts.iter().map(|text| text.parse().map_err(de::Error::custom)).collect::<Result<_, _>>().map(Some)
}

/// EtherTypes that the fabric's frames must not have, as the host's protocols or the kernel would take them.
const FOREIGN_ETHERTYPES: [(u16, &str); 5] =
    [(0x0800, "IPv4"), (0x0806, "ARP"), (0x86dd, "IPv6"), (0x8100, "VLAN tags"), (0x88a8, "VLAN tags")];

/// An EtherType, written `0x88b5` or `88b5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EtherType(u16);

impl EtherType {
    /// The number of the EtherType.
    pub const fn number(self) -> u16 {
        self.0
    }
}

impl FromStr for EtherType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let number = u16::from_str_radix(digits, 16).ok().filter(|&number| number >= MIN_ETHERTYPE);
        let number = number.ok_or_else(|| "expected an EtherType from 0x0600 to 0xffff".to_owned())?;
        match FOREIGN_ETHERTYPES.iter().find(|(foreign, _)| *foreign == number) {
            Some((_, whose)) => Err(format!(
                "EtherType 0x{number:04x} is that of {whose}; expected one that nobody else uses"
            )),
            None => Ok(Self(number)),
        }
    }
}

/// The least severe lines that are logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// What stops a daemon or leaves something undone.
    Error,
    /// What an operator should look at.
    Warn,
    /// What has changed.
    #[default]
    Info,
    /// What has changed, and why.
    Debug,
    /// What has changed, why, and every frame.
    Trace,
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// A line of words and fields for people.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
}

/// The address where metrics are served, which only this machine can reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetricsAddress {
    /// A loopback address and port.
    Loopback(SocketAddr),
    /// A unix socket.
    Unix(PathBuf),
}

impl FromStr for MetricsAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        let address: SocketAddr = text
            .parse()
            .map_err(|_| "expected an address and port like 127.0.0.1:9797, or unix:PATH".to_owned())?;
        if address.ip().is_loopback() {
            Ok(Self::Loopback(address))
        } else {
            Err(format!(
                "{address} can be reached from outside; use a loopback address like 127.0.0.1, or unix:PATH"
            ))
        }
    }
}

impl fmt::Display for MetricsAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loopback(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
