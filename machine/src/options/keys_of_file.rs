//! Reads a file whose keys are those of a type and of the groups of options that it shares with other types.
//!
//! `#[serde(flatten)]` does not do: with it unknown keys are not refused, and errors lose the line of a wrong
//! value. So each key is handed either to the type, which has no field for the groups' keys, or to its group.

use serde::de::value::StringDeserializer;
use serde::de::{
    Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::shared::Shared;

/// The options of a kind of daemon, which are keys of their own and those of the groups.
pub trait FileOptions: DeserializeOwned + Default {
    /// The key of this type behind which a list of all keys has those of the process group.
    const PROCESS_FOLLOWS: &'static str;
    /// The key of this type behind which a list of all keys has those of the frame group. Those of metrics and
    /// log come last.
    const FRAMES_FOLLOW: &'static str;
    /// A file in which keys have values, also in comments; of a wrong value of a key its line there is an example.
    const EXAMPLES: &'static str;

    /// These options with the values of the groups' keys.
    #[must_use]
    fn with(self, shared: Shared) -> Self;

    /// These options, and those of `file` where these are not set.
    #[must_use]
    fn or(self, file: Self) -> Self;

    /// Reads a document.
    ///
    /// # Errors
    /// If a key is unknown, or a value is wrong.
    fn read_from<'de, D: Deserializer<'de>>(document: D) -> Result<Self, D::Error> {
        let mut shared = Shared::default();
        let own = Self::deserialize(Sorted {
            inner: document,
            shared: &mut shared,
            follow: Follow { process: Self::PROCESS_FOLLOWS, frames: Self::FRAMES_FOLLOW },
        })?;
        Ok(own.with(shared))
    }
}

/// A deserializer of a document without the groups' keys, which go to `shared`.
struct Sorted<'a, D> {
    inner: D,
    shared: &'a mut Shared,
    follow: Follow,
}

/// The keys of the type behind which those of a group are listed.
#[derive(Clone, Copy)]
struct Follow {
    process: &'static str,
    frames: &'static str,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Sorted<'_, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let Self { inner, shared, follow } = self;
        inner.deserialize_struct(name, fields, Table { visitor, shared, own: Own { fields, follow } })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The keys of the type itself.
#[derive(Clone, Copy)]
struct Own {
    fields: &'static [&'static str],
    follow: Follow,
}

impl Own {
    /// All keys that there are, in the order of the command line.
    fn all(self) -> Vec<&'static str> {
        let with_group = |&field: &&'static str| {
            let group = match field {
                _ if field == self.follow.process => Shared::PROCESS,
                _ if field == self.follow.frames => Shared::FRAMES,
                _ => &[],
            };
            std::iter::once(field).chain(group.iter().copied())
        };
        let own = self.fields.iter().flat_map(with_group);
        own.chain(Shared::METRICS.iter().copied()).chain(Shared::LOG.iter().copied()).collect()
    }

    fn unknown<E: Error>(self, key: &str) -> E {
        let all: Vec<_> = self.all().into_iter().map(|key| format!("`{key}`")).collect();
        // The message is worded as serde words it.
        E::custom(format_args!("unknown field `{key}`, expected one of {}", all.join(", ")))
    }
}

struct Table<'a, V> {
    visitor: V,
    shared: &'a mut Shared,
    own: Own,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Table<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(Keys { map, shared: self.shared, own: self.own })
    }
}

/// The keys of a table without those of groups.
struct Keys<'a, A> {
    map: A,
    shared: &'a mut Shared,
    own: Own,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Keys<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, mut seed: K) -> Result<Option<K::Value>, A::Error> {
        // A wrong key must be refused inside `next_key_seed`, and a wrong value inside `next_value`, as only
        // there the TOML reader adds the line to the error.
        loop {
            match self.map.next_key_seed(Key { seed, own: self.own })? {
                None => return Ok(None),
                Some(Sort::Own(value)) => return Ok(Some(value)),
                Some(Sort::Shared(key, unused)) => {
                    self.shared.take(&key, &mut self.map)?;
                    seed = unused;
                }
            }
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// Whether a key belongs to the type or to a group.
enum Sort<K, T> {
    Own(T),
    Shared(String, K),
}

struct Key<K> {
    seed: K,
    own: Own,
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for Key<K> {
    type Value = Sort<K, K::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let key = String::deserialize(deserializer)?;
        if Shared::has(&key) {
            return Ok(Sort::Shared(key, self.seed));
        }
        if !self.own.fields.contains(&key.as_str()) {
            return Err(self.own.unknown(&key));
        }
        let key: StringDeserializer<D::Error> = key.into_deserializer();
        self.seed.deserialize(key).map(Sort::Own)
    }
}
