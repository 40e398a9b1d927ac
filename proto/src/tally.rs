//! Counters, one for each kind of a thing.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{AddAssign, Index};

use enum_map::{EnumArray, EnumMap};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Kinds that are counted apart, each under a name that programs rely on: an enum without fields that derives
/// [`enum_map::Enum`] and [`strum::IntoStaticStr`]. A new kind is counted, summed, sent and shown wherever its tally is.
pub trait Counted: EnumArray<u64, Array: Copy> + Copy + Into<&'static str> {}

impl<K: EnumArray<u64, Array: Copy> + Copy + Into<&'static str>> Counted for K {}

/// How often each kind occurred. Serialised, it is a map from the names to the counts.
#[derive(PartialEq, Eq)]
pub struct Tally<K: Counted>(EnumMap<K, u64>);

impl<K: Counted> Tally<K> {
    /// Counts one of this kind.
    pub fn count(&mut self, kind: K) {
        self.add(kind, 1);
    }

    /// Counts `number` of this kind.
    pub fn add(&mut self, kind: K, number: u64) {
        self.0[kind] += number;
    }

    /// All kinds together.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// The kinds in order, their names, and how often each occurred.
    pub fn iter(&self) -> impl Iterator<Item = (K, &'static str, u64)> + '_ {
        self.0.iter().map(|(kind, &number)| (kind, kind.into(), number))
    }
}

impl<K: Counted> Index<K> for Tally<K> {
    type Output = u64;

    fn index(&self, kind: K) -> &u64 {
        &self.0[kind]
    }
}

impl<K: Counted> AddAssign<&Self> for Tally<K> {
    fn add_assign(&mut self, other: &Self) {
        for (kind, _, number) in other.iter() {
            self.add(kind, number);
        }
    }
}

impl<K: Counted> Default for Tally<K> {
    fn default() -> Self {
        Self(EnumMap::default())
    }
}

impl<K: Counted> FromIterator<(K, u64)> for Tally<K> {
    fn from_iter<I: IntoIterator<Item = (K, u64)>>(counts: I) -> Self {
        let mut tally = Self::default();
        counts.into_iter().for_each(|(kind, number)| tally.add(kind, number));
        tally
    }
}

// Clone and Copy are not derived: that would demand both of the kinds, though only their array of counts
// needs them.
impl<K: Counted> Clone for Tally<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Counted> Copy for Tally<K> {}

impl<K: Counted> fmt::Debug for Tally<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(_, name, number)| (name, number))).finish()
    }
}

impl<K: Counted> Serialize for Tally<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(_, name, number)| (name, number)))
    }
}

impl<'de, K: Counted> Deserialize<'de> for Tally<K> {
    /// Kinds that the map lacks count as 0, and names that are no kinds are passed over.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Counts<K>(PhantomData<K>);

        impl<'de, K: Counted> Visitor<'de> for Counts<K> {
            type Value = Tally<K>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("counts by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tally<K>, A::Error> {
                let mut tally = Tally::default();
                while let Some((name, number)) = map.next_entry::<String, u64>()? {
                    let kind = tally.iter().find(|(_, known, _)| *known == name).map(|(kind, ..)| kind);
                    if let Some(kind) = kind {
                        tally.0[kind] = number;
                    }
                }
                Ok(tally)
            }
        }
        deserializer.deserialize_map(Counts(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use enum_map::Enum;
    use strum::IntoStaticStr;

    use super::Tally;

    #[derive(Clone, Copy, Debug, PartialEq, Enum, IntoStaticStr)]
    #[strum(serialize_all = "snake_case")]
    enum Fruit {
        RedApple,
        Pear,
    }

    #[test]
    fn each_kind_has_a_count_and_a_name() {
        let mut tally = Tally::from_iter([(Fruit::Pear, 2)]);
        tally.count(Fruit::Pear);
        tally += &tally.clone();
        assert_eq!((tally[Fruit::RedApple], tally[Fruit::Pear], tally.total()), (0, 6, 6));
        let shown: Vec<_> = tally.iter().collect();
        assert_eq!(shown, [(Fruit::RedApple, "red_apple", 0), (Fruit::Pear, "pear", 6)]);
        assert_eq!(format!("{tally:?}"), r#"{"red_apple": 0, "pear": 6}"#);
    }
}
