//! The Wireshark dissector of the agents' frames, in Lua.
//!
//! The descriptions of records and fields are those of [`mapper_proto::wire::layout`], written as Lua
//! tables; `dissect.lua` beside this file reads frames by them.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use mapper_machine::link::ethernet::Marking;
use mapper_proto::wire::PROTOCOL_VERSION;
use mapper_proto::wire::layout::{
    Base, ELEMENTS, ElementKind, FRAME, Field, Flag, FrameLayout, Record, Shape,
};

/// The part of the dissector that reads frames by the tables.
const DISSECT: &str = include_str!("dissect.lua");

/// The text of the dissector: a script that Wireshark and tshark load.
pub fn lua() -> String {
    let mut tables = Tables::default();
    // To write to a string cannot fail.
    let _always_written = tables.write_all(&FRAME);
    format!("{}\n{DISSECT}", tables.text)
}

/// Records as Lua tables, each written before the first that names it.
#[derive(Default)]
struct Tables {
    text: String,
    written: BTreeSet<&'static str>,
}

impl Tables {
    fn write_all(&mut self, frame: &FrameLayout) -> fmt::Result {
        let ethertype = Marking::default().ethertype;
        writeln!(
            self.text,
            "-- Wireshark dissector of mapper's frames. `mapper dissector` writes it, and the tables in it from\n\
             -- those of the protocol: change these instead.\n\
             --\n\
             --   tshark -X lua_script:mapper.lua -r FILE\n\
             --\n\
             -- Frames may have any EtherType that the agents are told to use; this one is the default.\n\
             local ethertype = {ethertype:#06x}\n\
             local protocol_version = {PROTOCOL_VERSION}\n\n\
             -- Route elements, by their first byte.\n\
             local elements = {{"
        )?;
        for element in &ELEMENTS {
            let (low, high) = (element.first.start(), element.first.end());
            let kind = match element.kind {
                ElementKind::Relative => "relative",
                ElementKind::Absolute => "absolute",
                ElementKind::Identify => "identify",
            };
            let bytes = element.bytes;
            writeln!(
                self.text,
                "  {{ low = {low:#04x}, high = {high:#04x}, bytes = {bytes}, kind = {kind:?} }},"
            )?;
        }
        write!(self.text, "}}\n\n-- Fields in the order in which they travel.\nlocal records = {{}}\n")?;
        for body in frame.bodies {
            self.write_record(body.record)?;
        }
        write!(self.text, "\n-- A frame behind its route.\nlocal frame = {{}}\n")?;
        for (part, record) in [
            ("header", &frame.header),
            ("stamp", &frame.stamp),
            ("signature", &frame.signature),
            ("ending", &frame.end),
        ] {
            self.write_fields(&format!("frame.{part}"), record)?;
        }
        writeln!(self.text, "frame.stamp_mask = {:#04x}", frame.stamp_mask)?;
        writeln!(self.text, "frame.signature_mask = {:#04x}", frame.signature_mask)?;
        writeln!(self.text, "frame.bodies = {{")?;
        for body in frame.bodies {
            writeln!(self.text, "  [{:#010x}] = records[{:?}],", body.kind, body.record.name)?;
        }
        writeln!(self.text, "}}")
    }

    /// Writes a record, after the records that it names.
    fn write_record(&mut self, record: &Record) -> fmt::Result {
        if !self.written.insert(record.name) {
            return Ok(());
        }
        for field in record.fields {
            match field.shape {
                Shape::Record(below) | Shape::List(below) => self.write_record(below)?,
                Shape::Choice(variants) => {
                    variants.iter().try_for_each(|variant| self.write_record(variant.record))?;
                }
                _ => {}
            }
        }
        self.write_fields(&format!("records[{:?}]", record.name), record)
    }

    fn write_fields(&mut self, target: &str, record: &Record) -> fmt::Result {
        let (name, title) = (record.name, record.title());
        if record.fields.is_empty() {
            return writeln!(self.text, "{target} = {{ name = {name:?}, title = {title:?} }}");
        }
        writeln!(self.text, "{target} = {{\n  name = {name:?}, title = {title:?},")?;
        for Field { name, about, shape } in record.fields {
            let title = words(name);
            writeln!(self.text, "  {{\n    name = {name:?}, title = {title:?},")?;
            writeln!(self.text, "    about = {about:?},")?;
            self.write_shape(&title, shape, 4)?;
            writeln!(self.text, "  }},")?;
        }
        writeln!(self.text, "}}")
    }

    /// Writes the entries of a table that say how a field is encoded.
    fn write_shape(&mut self, title: &str, shape: &Shape, indent: usize) -> fmt::Result {
        let margin = " ".repeat(indent);
        let text = &mut self.text;
        match shape {
            Shape::Unsigned { bytes, base } => {
                let base = match base {
                    Base::Decimal => "decimal",
                    Base::Hexadecimal => "hexadecimal",
                };
                writeln!(text, "{margin}shape = \"unsigned\", bytes = {bytes}, base = {base:?},")
            }
            Shape::Code { bytes, names } => {
                writeln!(text, "{margin}shape = \"code\", bytes = {bytes},")?;
                let names: Vec<String> =
                    names.iter().map(|(number, word)| format!("[{number}] = {word:?}")).collect();
                writeln!(text, "{margin}names = {{ {} }},", names.join(", "))
            }
            Shape::Flags { bytes, flags } => {
                writeln!(text, "{margin}shape = \"flags\", bytes = {bytes},\n{margin}flags = {{")?;
                for Flag { mask, name, about } in *flags {
                    let (title, width) = (words(name), 2 + 2 * bytes);
                    writeln!(
                        text,
                        "{margin}  {{ mask = {mask:#0width$x}, name = {name:?}, title = {title:?},"
                    )?;
                    writeln!(text, "{margin}    about = {about:?} }},")?;
                }
                writeln!(text, "{margin}}},")
            }
            Shape::Mac => writeln!(text, "{margin}shape = \"mac\","),
            Shape::MapVersion => writeln!(text, "{margin}shape = \"map_version\","),
            Shape::Route => writeln!(text, "{margin}shape = \"route\","),
            Shape::PortSet => writeln!(text, "{margin}shape = \"port_set\","),
            Shape::Bytes(bytes) => writeln!(text, "{margin}shape = \"bytes\", bytes = {bytes},"),
            Shape::CountedBytes => writeln!(text, "{margin}shape = \"counted_bytes\","),
            Shape::CountedText => writeln!(text, "{margin}shape = \"counted_text\","),
            Shape::Room => writeln!(text, "{margin}shape = \"room\","),
            Shape::Zeros(bytes) => writeln!(text, "{margin}shape = \"zeros\", bytes = {bytes},"),
            Shape::Record(record) => {
                writeln!(text, "{margin}shape = \"record\", record = records[{:?}],", record.name)
            }
            Shape::List(record) => {
                writeln!(text, "{margin}shape = \"list\", record = records[{:?}],", record.name)
            }
            Shape::Optional(inner) => {
                writeln!(
                    text,
                    "{margin}shape = \"optional\",\n{margin}inner = {{\n{margin}  title = {title:?},"
                )?;
                self.write_shape(title, inner, indent + 2)?;
                writeln!(self.text, "{margin}}},")
            }
            Shape::Choice(variants) => {
                writeln!(text, "{margin}shape = \"choice\",\n{margin}variants = {{")?;
                for variant in *variants {
                    writeln!(text, "{margin}  [{}] = records[{:?}],", variant.code, variant.record.name)?;
                }
                writeln!(text, "{margin}}},")
            }
            Shape::Ethernet => writeln!(text, "{margin}shape = \"ethernet\","),
        }
    }
}

/// A name as people read it: words with blanks between them, the first with a capital letter.
fn words(name: &str) -> String {
    const ABBREVIATIONS: [&str; 4] = ["crc", "id", "mac", "mtu"];
    let capitals = |word: &str| match ABBREVIATIONS.contains(&word) {
        true => word.to_ascii_uppercase(),
        false => word.to_owned(),
    };
    let text = name.split('_').map(capitals).collect::<Vec<_>>().join(" ");
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_dissector_that_is_shipped_is_that_of_the_tables() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/wireshark/mapper.lua");
        let text = super::lua();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let shipped = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(shipped == text, "{} differs; UPDATE_GOLDEN=1 rewrites it", path.display());
    }
}
