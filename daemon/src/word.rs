//! Words by which boards and metrics tell what something is, such as the state of an agent.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use strum::VariantArray;

/// What boards tell by words: an enum that derives `VariantArray` and `IntoStaticStr`, so that no variant can be left out.
pub trait Worded: VariantArray + Copy + Eq + Into<&'static str> {
    /// The word for it, on which programs rely.
    fn word(self) -> &'static str {
        self.into()
    }
}

impl<K: VariantArray + Copy + Eq + Into<&'static str>> Worded for K {}

/// The words for all variants.
pub fn words<K: Worded>() -> impl Iterator<Item = &'static str> {
    K::VARIANTS.iter().map(|known| known.word())
}

/// One of these, or the word of a board of another version, whose program knows more: it is shown as it came.
///
/// Outside of the program it is a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word<K> {
    /// What this version knows.
    Known(K),
    /// A word that this version does not know.
    Other(String),
}

impl<K: Worded> Word<K> {
    /// The word itself.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(known) => known.word(),
            Self::Other(word) => word,
        }
    }

    /// What it is, if this version knows it.
    pub const fn known(&self) -> Option<K> {
        match self {
            Self::Known(known) => Some(*known),
            Self::Other(_) => None,
        }
    }
}

/// What nobody has told yet.
impl<K> Default for Word<K> {
    fn default() -> Self {
        Self::Other(String::new())
    }
}

impl<K> From<K> for Word<K> {
    fn from(known: K) -> Self {
        Self::Known(known)
    }
}

impl<K: Worded> PartialEq<K> for Word<K> {
    fn eq(&self, other: &K) -> bool {
        self.known() == Some(*other)
    }
}

impl<K: Worded> fmt::Display for Word<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<K: Worded> Serialize for Word<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de, K: Worded> Deserialize<'de> for Word<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let known = K::VARIANTS.iter().find(|known| known.word() == word);
        Ok(known.map_or(Self::Other(word), |&known| Self::Known(known)))
    }
}

#[cfg(test)]
mod tests {
    use mapper_ib::mad::SmState;
    use mapper_proto::wire::AgentState;

    use super::*;

    #[test]
    fn words_of_other_versions_are_shown_as_they_came() {
        for (json, known) in [(r#""mapping""#, Some(AgentState::Mapping)), (r#""dreaming""#, None)] {
            let word: Word<AgentState> = serde_json::from_str(json).unwrap();
            assert_eq!(word.known(), known);
            assert_eq!(serde_json::to_string(&word).unwrap(), json);
        }
    }

    /// Programs rely on these.
    #[test]
    fn words_are_those_of_the_contract() {
        let agent = ["starting", "mapping", "passive", "fetching", "routing", "configured", "isolated"];
        assert!(words::<AgentState>().eq(agent));
        assert!(words::<SmState>().eq(["not-active", "discovering", "standby", "master"]));
    }
}
