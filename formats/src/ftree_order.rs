//! The order of hosts that ftree's tables are made for, as OpenSM dumps it (`opensm-ftree-ca-order.dump`).
//!
//! Leaf by leaf a line a compute node, `0x%04x<TAB>description`, and `0xFFFF<TAB>DUMMY` up to the number of
//! the largest leaf. A job whose ranks follow the order shifts without congestion on a full tree.

use std::io::{self, Write};

use mapper_proto::map::Fabric;
use thiserror::Error;

use mapper_routing::Subnet;
use mapper_routing::engines::ftree::HostOrder;

/// The LID of lines that only pad.
const DUMMY_LID: u32 = 0xffff;

/// A line of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderLine {
    /// A compute node.
    Node {
        /// Its LID.
        lid: u32,
        /// What the fabric calls it.
        description: String,
    },
    /// No node: the leaf is smaller than the largest.
    Dummy,
}

/// A line that is none of an ordering file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{line}: expected `0x<LID>`, a tab and a description, found `{found}`")]
pub struct OrderError {
    /// The file.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// Its beginning.
    pub found: String,
}

/// Writes an order of the hosts of a subnet, which must be of this fabric. A host is there by its first
/// LID.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, fabric: &Fabric, subnet: &Subnet, order: &HostOrder) -> io::Result<()> {
    for leaf in &order.leaves {
        for &host in &leaf.hosts {
            let label = &fabric.hosts[host as usize];
            let name = if label.description.is_empty() { &label.name } else { &label.description };
            let lid = subnet.destinations.lid(subnet.destinations.slots_of_host(host).start);
            writeln!(out, "0x{lid:04x}\t{}", name.replace(|c: char| c.is_control(), " "))?;
        }
        for _ in leaf.hosts.len()..order.padded {
            writeln!(out, "0xFFFF\tDUMMY")?;
        }
    }
    Ok(())
}

/// Reads an ordering file. `file` is what errors call it.
///
/// # Errors
/// If a line is not `0x<LID><TAB>description`.
pub fn read(file: &str, text: &str) -> Result<Vec<OrderLine>, OrderError> {
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    lines
        .map(|(line, number)| {
            parse(line).ok_or_else(|| OrderError {
                file: file.to_owned(),
                line: number,
                found: line.chars().take(MOST_SHOWN).collect(),
            })
        })
        .collect()
}

/// Most letters of a bad line that an error shows.
const MOST_SHOWN: usize = 40;

fn parse(line: &str) -> Option<OrderLine> {
    let (lid, description) = line.split_once('\t')?;
    let digits = lid.strip_prefix("0x").or_else(|| lid.strip_prefix("0X"))?;
    let lid = u32::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))?;
    if lid == DUMMY_LID && description == "DUMMY" {
        return Some(OrderLine::Dummy);
    }
    Some(OrderLine::Node { lid, description: description.to_owned() })
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;
    use proptest::prelude::*;

    use super::*;
    use mapper_routing::engines::Settings;

    #[test]
    fn leaves_are_padded_to_the_largest() {
        let mut fabric = generate("clos:hosts=8,ports=4").unwrap();
        fabric.map.hosts[3].at = None;
        let subnet = Subnet::new(&fabric, None).unwrap();
        let mut text = Vec::new();
        write(&mut text, &fabric, &subnet, &HostOrder::new(&subnet, &Settings::default())).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..4], ["0x0001\th1", "0x0002\th2", "0x0003\th3", "0xFFFF\tDUMMY"]);
        assert_eq!(lines.len(), 8);
        let read = read("order", &text).unwrap();
        assert_eq!((read.len(), &read[3]), (8, &OrderLine::Dummy));
        assert_eq!(read[2], OrderLine::Node { lid: 3, description: "h3".into() });
    }

    #[test]
    fn a_bad_line_is_named() {
        let error = read("order", "0x0001\th1\n7 h2\n").unwrap_err();
        assert_eq!(error.to_string(), "order:2: expected `0x<LID>`, a tab and a description, found `7 h2`");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in ".{0,200}") {
            let _ = read("order", &text);
        }
    }
}
