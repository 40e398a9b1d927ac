//! The files that `ibacm` reads, as they are. Each reader takes the text and no path; an error names the line.

pub mod address_file;
pub mod hosts_file;
pub mod options_file;
pub mod path_dump;

pub use path_dump::{PathTable, PathTableReader};

use mapper_proto::quote;
use thiserror::Error;

use crate::wire::Address;

/// The most bytes of a word that an error repeats.
const MOST_QUOTED: usize = 80;

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {what}")]
pub struct BadLine {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it, and what would be right.
    pub what: String,
}

impl BadLine {
    fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

/// The lines of a text that are no comment, each with its number and its words.
fn lines(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    text.lines().enumerate().filter_map(|(at, line)| {
        let words: Vec<_> = line.split('#').next()?.split_whitespace().collect();
        (!words.is_empty()).then_some((at + 1, words))
    })
}

/// A word as an error shows it.
fn quoted(word: &str) -> String {
    format!("`{}`", quote::harmless(word, MOST_QUOTED))
}

/// A name, or an address of IP if it is one.
fn address(word: &str) -> Address {
    Address::parse(word)
}

/// A number, in hexadecimal digits behind `0x`.
fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}
