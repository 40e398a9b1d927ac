//! Why maps were given up and made, counted by kind.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Most kinds that are told apart.
const MAX_KINDS: usize = 32;
/// The kind of all others.
const OTHER: &str = "other";

/// How often one kind of cause led to something.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CauseCounters {
    /// The cause in words, with `*` for names and numbers.
    pub cause: String,
    /// Maps that it ended.
    pub maps_ended: u64,
    /// Mappings that this agent began because of it.
    pub mappings: u64,
}

/// Causes since the start. A cause is told by an agent's words for it, less addresses and numbers,
/// so their kinds are few; more than a bound are counted together.
#[derive(Debug, Default)]
pub struct Causes {
    kinds: BTreeMap<String, CauseCounters>,
}

impl Causes {
    /// A map was given up because of this.
    pub fn map_ended(&mut self, cause: &str) {
        self.entry(cause).maps_ended += 1;
    }

    /// A mapping began because of this.
    pub fn mapping_began(&mut self, cause: &str) {
        self.entry(cause).mappings += 1;
    }

    /// All kinds, in the order of their words.
    pub fn counters(&self) -> Vec<CauseCounters> {
        self.kinds.values().cloned().collect()
    }

    fn entry(&mut self, cause: &str) -> &mut CauseCounters {
        let mut kind = kind_of(cause);
        if self.kinds.len() >= MAX_KINDS && !self.kinds.contains_key(&kind) {
            OTHER.clone_into(&mut kind);
        }
        let fresh = CauseCounters { cause: kind.clone(), ..CauseCounters::default() };
        self.kinds.entry(kind).or_insert(fresh)
    }
}

/// The words of a cause, less those that name something: addresses, tags, numbers.
fn kind_of(cause: &str) -> String {
    let names_something = |word: &&str| {
        let hex = word.chars().all(|c| c.is_ascii_hexdigit() || c == ':');
        word.chars().any(|c| c.is_ascii_digit()) || (word.len() >= 12 && hex)
    };
    let words = cause.split_whitespace().map(|word| if names_something(&word) { "*" } else { word });
    let kind = words.collect::<Vec<_>>().join(" ");
    if kind.is_empty() { "start".to_owned() } else { kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_of_a_kind_are_counted_together() {
        let mut causes = Causes::default();
        causes.map_ended("host 02:00:00:00:00:01 no longer answers");
        causes.map_ended("host ab:cd:ef:ab:cd:ef no longer answers");
        causes.mapping_began("host 02:00:00:00:00:03 no longer answers");
        causes.map_ended("xbar aaaaaaaaaaaaaaaa stands where 0000000000000003 was");
        causes.mapping_began("");
        let expected =
            [("host * no longer answers", 2, 1), ("start", 0, 1), ("xbar * stands where * was", 1, 0)];
        let counters = causes.counters();
        let found: Vec<_> = counters.iter().map(|c| (c.cause.as_str(), c.maps_ended, c.mappings)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_kinds_are_bounded() {
        let mut causes = Causes::default();
        for first in 'a'..='z' {
            for second in 'a'..='z' {
                causes.map_ended(&format!("{first}{second}"));
            }
        }
        let counters = causes.counters();
        assert_eq!(counters.len(), MAX_KINDS + 1);
        assert_eq!(counters.iter().map(|c| c.maps_ended).sum::<u64>(), 26 * 26);
    }
}
