//! The wire format as tables, for programs that show frames and are not written in Rust.
//!
//! The codec is written by hand, as it checks and bounds what it reads. These tables describe the
//! same bytes, and a property test takes any message through both: the table finds the fields, and in
//! them the values, that the codec wrote. The Wireshark dissector is made from them.

mod tables;

pub use tables::{ELEMENTS, FRAME};

use std::ops::RangeInclusive;

/// Fields that stand one behind the other.
#[derive(Debug)]
pub struct Record {
    /// Its name, in lower case: parts joined by dots, words by underscores. The names of its fields
    /// follow behind a dot, so no two records have one name.
    pub name: &'static str,
    /// The fields, first to last.
    pub fields: &'static [Field],
}

/// A field of a record.
#[derive(Debug)]
pub struct Field {
    /// Its name, in lower case, words joined by underscores.
    pub name: &'static str,
    /// What it says, in a sentence without its full stop.
    pub about: &'static str,
    /// How it travels.
    pub shape: Shape,
}

/// How a field travels. All numbers are big-endian.
#[derive(Debug)]
pub enum Shape {
    /// A number.
    Unsigned {
        /// How many bytes it has: 1, 2, 4 or 8.
        bytes: usize,
        /// How people read it.
        base: Base,
    },
    /// A number that stands for a word.
    Code {
        /// How many bytes it has: 1 or 4.
        bytes: usize,
        /// The numbers that are known, with their words.
        names: &'static [(u32, &'static str)],
    },
    /// A number of single bits.
    Flags {
        /// How many bytes it has: 1 or 2.
        bytes: usize,
        /// The bits that mean something.
        flags: &'static [Flag],
    },
    /// An Ethernet address.
    Mac,
    /// A map version: the address of who made the map and a counter of four bytes. All zeros stand for
    /// no map.
    MapVersion,
    /// A route behind a byte that says how many bytes it has.
    Route,
    /// A set of ports: 32 bytes with a bit for each, port 0 being the lowest bit of the first.
    PortSet,
    /// As many bytes as the number says.
    Bytes(usize),
    /// Bytes behind a number of two bytes that says how many they are.
    CountedBytes,
    /// UTF-8 behind a number of two bytes that says how many bytes it has.
    CountedText,
    /// A number of two bytes, and as many zeros behind it.
    Room,
    /// As many zeros as the number says.
    Zeros(usize),
    /// The fields of another record.
    Record(&'static Record),
    /// Records behind a byte that says how many they are.
    List(&'static Record),
    /// A byte that is 1 if what follows is there, and 0 if it is not.
    Optional(&'static Shape),
    /// A byte that says which of these records follows.
    Choice(&'static [Variant]),
    /// An Ethernet frame, to the end of the body.
    Ethernet,
}

/// How people read a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// In decimal digits.
    Decimal,
    /// In hexadecimal digits, all of them.
    Hexadecimal,
}

/// A single bit.
#[derive(Debug)]
pub struct Flag {
    /// The number with this bit alone.
    pub mask: u16,
    /// Its name, in lower case, words joined by underscores.
    pub name: &'static str,
    /// What it says, in a sentence without its full stop.
    pub about: &'static str,
}

/// One of several records that a byte chooses from.
#[derive(Debug)]
pub struct Variant {
    /// The byte.
    pub code: u8,
    /// What follows it.
    pub record: &'static Record,
}

/// The parts of a frame, behind its route.
#[derive(Debug)]
pub struct FrameLayout {
    /// The header: its first field is the kind, its third the flags, its last how many bytes the body has.
    pub header: Record,
    /// What stands behind the header if [`Self::stamp_mask`] is among the flags. The CRC-32 of the
    /// frame leaves it out.
    pub stamp: Record,
    /// The flag that says that there is a stamp area.
    pub stamp_mask: u8,
    /// The body, by the frame's kind.
    pub bodies: &'static [Body],
    /// What stands behind the body if [`Self::signature_mask`] is among the flags.
    pub signature: Record,
    /// The flag that says that there is a signature.
    pub signature_mask: u8,
    /// What stands behind all.
    pub end: Record,
}

/// The body of a kind of frame.
#[derive(Debug)]
pub struct Body {
    /// The kind.
    pub kind: u32,
    /// The fields of the body.
    pub record: &'static Record,
}

/// A kind of route element.
#[derive(Debug)]
pub struct ElementLayout {
    /// The first bytes that tell this kind.
    pub first: RangeInclusive<u8>,
    /// How many bytes it has.
    pub bytes: usize,
    /// What it does.
    pub kind: ElementKind,
}

/// What a route element does: see [`Element`](super::Element).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ElementKind {
    /// Leaves by the arrival port plus the six low bits of the byte, which are signed.
    Relative,
    /// Leaves by the port that the second byte names.
    Absolute,
    /// Asks the crossbar who it is.
    Identify,
}

impl Record {
    /// What people call it: the last part of its name, words joined by hyphens.
    pub fn title(&self) -> String {
        self.name.rsplit('.').next().unwrap_or_default().replace('_', "-")
    }
}

#[cfg(test)]
mod tests;
