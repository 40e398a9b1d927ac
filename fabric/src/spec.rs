//! The text of a spec: keys and values, checked.

use std::ops::RangeInclusive;

use mapper_proto::quote::quoted;
use thiserror::Error;

use super::{MAX_HOSTS, MAX_PORTS, MAX_XBARS};

/// Why a spec describes no fabric.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SpecError {
    /// A kind that nobody knows.
    #[error("there is no kind of fabric {}; expected one of {known}", quoted(.kind))]
    UnknownKind {
        /// What was asked for.
        kind: String,
        /// What there is.
        known: String,
    },
    /// A key that the kind does not take.
    #[error("{kind}: there is no key {}; expected {known}", quoted(.key))]
    UnknownKey {
        /// The kind of fabric.
        kind: &'static str,
        /// The key.
        key: String,
        /// The keys that there are.
        known: String,
    },
    /// A key given twice.
    #[error("{kind}: key {} is given twice", quoted(.key))]
    RepeatedKey {
        /// The kind of fabric.
        kind: &'static str,
        /// The key.
        key: String,
    },
    /// A key that the kind needs.
    #[error("{kind}: key `{key}` is missing; expected {expected}")]
    MissingKey {
        /// The kind of fabric.
        kind: &'static str,
        /// The key.
        key: &'static str,
        /// What its value should be.
        expected: String,
    },
    /// A value that is out of range or does not fit the other keys.
    #[error("{kind}: key {} is {}; expected {expected}", quoted(.key), quoted(.value))]
    BadValue {
        /// The kind of fabric.
        kind: &'static str,
        /// The key.
        key: String,
        /// The value given.
        value: String,
        /// What it should be.
        expected: String,
    },
    /// More hosts or xbars than this program handles.
    #[error("{kind}: that makes {count} {what}; expected at most {limit}")]
    TooLarge {
        /// The kind of fabric.
        kind: &'static str,
        /// `hosts` or `xbars`.
        what: &'static str,
        /// How many.
        count: u64,
        /// How many there may be.
        limit: u64,
    },
}

impl SpecError {
    pub(super) fn unknown_kind<'a>(kind: &str, known: impl Iterator<Item = &'a str>) -> Self {
        Self::UnknownKind { kind: kind.to_owned(), known: known.collect::<Vec<_>>().join(", ") }
    }
}

/// The keys and values of a spec.
pub(super) struct Spec<'a> {
    kind: &'static str,
    keys: Vec<(&'a str, Vec<&'a str>)>,
}

impl<'a> Spec<'a> {
    /// Splits the part behind the colon.
    pub(super) fn parse(kind: &'static str, text: &'a str) -> Result<Self, SpecError> {
        let mut keys: Vec<(&str, Vec<&str>)> = Vec::new();
        for part in text.split([',', ';']).map(str::trim).filter(|part| !part.is_empty()) {
            match (part.split_once('='), keys.last_mut()) {
                (Some((key, value)), _) => {
                    let key = key.trim();
                    if keys.iter().any(|&(known, _)| known == key) {
                        return Err(SpecError::RepeatedKey { kind, key: key.to_owned() });
                    }
                    keys.push((key, vec![value.trim()]));
                }
                (None, Some((_, values))) => values.push(part),
                (None, None) => {
                    return Err(SpecError::BadValue {
                        kind,
                        key: part.to_owned(),
                        value: String::new(),
                        expected: "key=value".to_owned(),
                    });
                }
            }
        }
        Ok(Self { kind, keys })
    }

    /// Refuses every key that is not in `known`.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), SpecError> {
        match self.keys.iter().find(|(key, _)| !known.contains(key)) {
            None => Ok(()),
            Some((key, _)) => Err(SpecError::UnknownKey {
                kind: self.kind,
                key: (*key).to_owned(),
                known: known.join(", "),
            }),
        }
    }

    /// The values of a key, each in `range`; `None` without the key.
    pub(super) fn list(&self, key: &str, range: RangeInclusive<u64>) -> Result<Option<Vec<u64>>, SpecError> {
        let Some((_, values)) = self.keys.iter().find(|&&(name, _)| name == key) else { return Ok(None) };
        let number = |value: &&str| {
            let number = value.parse().ok().filter(|number| range.contains(number));
            number.ok_or_else(|| self.bad(key, value, expectation(&range)))
        };
        values.iter().map(number).collect::<Result<_, _>>().map(Some)
    }

    /// The value of a key that may be missing.
    pub(super) fn optional(&self, key: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, SpecError> {
        match self.list(key, range.clone())?.as_deref() {
            None => Ok(None),
            Some(&[number]) => Ok(Some(number)),
            Some(_) => Err(self.bad(key, "a list", expectation(&range))),
        }
    }

    /// The value of a key that is a word and may be missing.
    pub(super) fn word(&self, key: &str) -> Result<Option<&'a str>, SpecError> {
        match self.keys.iter().find(|&&(name, _)| name == key) {
            None => Ok(None),
            Some((_, values)) => match values[..] {
                [word] => Ok(Some(word)),
                _ => Err(self.bad(key, "a list", "one word")),
            },
        }
    }

    /// The value of a key that must be there.
    pub(super) fn number(&self, key: &'static str, range: RangeInclusive<u64>) -> Result<u64, SpecError> {
        self.optional(key, range.clone())?.ok_or_else(|| self.missing(key, expectation(&range)))
    }

    /// The list of a key that must be there, with `len` values.
    pub(super) fn list_of(
        &self,
        key: &'static str,
        len: usize,
        range: RangeInclusive<u64>,
    ) -> Result<Vec<u64>, SpecError> {
        let expected = || format!("{len} values, each {}", expectation(&range));
        let list = self.list(key, range.clone())?.ok_or_else(|| self.missing(key, expected()))?;
        if list.len() == len { Ok(list) } else { Err(self.bad(key, &join(&list), expected())) }
    }

    /// How many ports each xbar has: key `ports`, else as many as `needed`.
    pub(super) fn ports(&self, needed: u64) -> Result<u8, SpecError> {
        let given = self.optional("ports", 1..=MAX_PORTS)?;
        let ports = given.unwrap_or(needed);
        if ports < needed || ports > MAX_PORTS {
            let (value, expected) = match given {
                Some(ports) if needed <= MAX_PORTS => (ports, format!("at least the {needed} that are used")),
                _ => (needed, format!("a shape whose xbars need at most {MAX_PORTS}")),
            };
            return Err(self.bad("ports", &value.to_string(), expected));
        }
        Ok(ports as u8)
    }

    /// Refuses fabrics that are too large.
    pub(super) fn check_size(&self, xbars: u64, hosts: u64) -> Result<(), SpecError> {
        for (what, count, limit) in [("xbars", xbars, MAX_XBARS), ("hosts", hosts, MAX_HOSTS)] {
            if count > limit {
                return Err(SpecError::TooLarge { kind: self.kind, what, count, limit });
            }
        }
        Ok(())
    }

    /// The error for a key whose value is not as expected.
    pub(super) fn bad(&self, key: &str, value: &str, expected: impl Into<String>) -> SpecError {
        SpecError::BadValue {
            kind: self.kind,
            key: key.to_owned(),
            value: value.to_owned(),
            expected: expected.into(),
        }
    }

    fn missing(&self, key: &'static str, expected: String) -> SpecError {
        SpecError::MissingKey { kind: self.kind, key, expected }
    }
}

fn expectation(range: &RangeInclusive<u64>) -> String {
    match (*range.start(), *range.end()) {
        (0, u64::MAX) => "a number".to_owned(),
        (from, to) if from == to => from.to_string(),
        (from, to) => format!("a number from {from} to {to}"),
    }
}

fn join(list: &[u64]) -> String {
    list.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}
