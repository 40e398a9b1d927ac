//! What a host is called.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

/// What a host is called: text for people, of 1 to 64 bytes and without control characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostName(Arc<str>);

/// Why a text is no host's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum NotAName {
    /// It is empty.
    #[error("a host's name is not empty")]
    Empty,
    /// It is too long.
    #[error("a host's name has at most 64 bytes, and this has {0}")]
    TooLong(usize),
    /// It has a control character.
    #[error("a host's name has no control characters")]
    Control,
}

impl HostName {
    /// The most bytes of a name, which is Linux's limit for host names.
    pub const MAX_BYTES: usize = 64;

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HostName {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        match text {
            "" => Err(NotAName::Empty),
            _ if text.len() > Self::MAX_BYTES => Err(NotAName::TooLong(text.len())),
            _ if text.chars().any(char::is_control) => Err(NotAName::Control),
            _ => Ok(Self(text.into())),
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_text_for_people() {
        assert_eq!("".parse::<HostName>(), Err(NotAName::Empty));
        assert_eq!("x".repeat(65).parse::<HostName>(), Err(NotAName::TooLong(65)));
        assert_eq!("a\nb".parse::<HostName>(), Err(NotAName::Control));
        assert_eq!("knoten-ä 3".parse::<HostName>().unwrap().as_str(), "knoten-ä 3");
    }
}
