//! The words in which the user says what a crossbar is: its ports, its name, its kind and its tag.

use std::str::FromStr;

use crate::xbar::ports::NamedPort;

/// The longest name of a crossbar: it is part of the path of a unix socket, which has at most 107 bytes.
const MAX_NAME_BYTES: usize = 64;

/// A word in the list of ports that the user gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortWord {
    /// A port.
    Port(NamedPort),
    /// A number alone, which says how many ports there are.
    Count(u8),
}

impl FromStr for PortWord {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(count) => Ok(Self::Count(count)),
            Err(_) => text.parse().map(Self::Port),
        }
    }
}

/// What a crossbar understands, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KindName {
    /// Anonymous: knows relative route elements only.
    Plain,
    /// Knows all route elements and has an identity.
    Tagged,
}

/// A crossbar's name, which can be part of the name of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(pub(super) String);

impl Name {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = !text.is_empty() && text.len() <= MAX_NAME_BYTES && !text.contains(['/', '\0']);
        plain.then(|| Self(text.to_owned())).ok_or_else(|| "expected 1 to 64 bytes without `/`".to_owned())
    }
}

/// The identity of a tagged crossbar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TagText(pub(super) u64);

impl FromStr for TagText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let tag = u64::from_str_radix(digits, 16);
        tag.map(Self).map_err(|_| "expected up to 16 hexadecimal digits".to_owned())
    }
}
