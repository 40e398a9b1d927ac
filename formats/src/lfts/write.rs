//! Dumps of forwarding tables, written.

use std::io::{self, Write};

use mapper_fabric::identity;
use mapper_proto::map::Fabric;
use rayon::prelude::*;

use super::{PortNumbers, PortZero};
use mapper_routing::tables::SlotEnd;
use mapper_routing::{Subnet, Tables};

/// Bytes of text that are made at once, unless one xbar a core needs more.
const BATCH_BYTES: usize = 64 << 20;

/// What is said of the destination behind each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comments {
    /// Its kind, GUID and name.
    All,
    /// Its GUID alone, if it is known: all that OpenSM reads.
    Guids,
}

/// Writes tables of a subnet.
///
/// All that the tables do not change is made once: a row is one and the same for all xbars but for its three
/// digits.
#[derive(Debug)]
pub struct Dump<'a> {
    fabric: &'a Fabric,
    subnet: &'a Subnet,
    numbers: PortNumbers,
    rows: Vec<Row>,
    /// The text of all rows.
    text: Vec<u8>,
}

/// A destination's row.
#[derive(Debug)]
struct Row {
    slot: u32,
    /// Where it ends in the text; it begins where the one before ends.
    end: usize,
    /// Where its port's digits begin, from its beginning.
    digits: usize,
}

impl<'a> Dump<'a> {
    /// Prepares to write tables of this subnet, which must be of this fabric.
    ///
    /// # Errors
    /// If ports cannot be numbered from 1.
    pub fn new(fabric: &'a Fabric, subnet: &'a Subnet) -> Result<Self, PortZero> {
        Self::with_comments(fabric, subnet, Comments::All)
    }

    /// Prepares to write nothing but what OpenSM reads: of what stands behind a row, the GUID alone.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn terse(fabric: &'a Fabric, subnet: &'a Subnet) -> Result<Self, PortZero> {
        Self::with_comments(fabric, subnet, Comments::Guids)
    }

    fn with_comments(fabric: &'a Fabric, subnet: &'a Subnet, comments: Comments) -> Result<Self, PortZero> {
        let mut dump =
            Self { fabric, subnet, numbers: PortNumbers::of(fabric)?, rows: Vec::new(), text: Vec::new() };
        for (lid, slot) in subnet.destinations.by_lid() {
            let begin = dump.text.len();
            dump.text.extend(format!("0x{lid:04x} ").into_bytes());
            let digits = dump.text.len() - begin;
            dump.text.extend(format!("000{}\n", dump.comment(slot, comments)).into_bytes());
            dump.rows.push(Row { slot, end: dump.text.len(), digits });
        }
        Ok(dump)
    }

    /// What a destination is. Its port's GUID is there only if it is known: one that was made up here would
    /// mean nothing, or another node, to the program that reads it.
    fn comment(&self, slot: u32, comments: Comments) -> String {
        let (kind, guid, name) = match self.subnet.destinations.end(slot) {
            SlotEnd::Xbar(xbar) => ("Switch", self.known_guid(xbar), self.xbar_description(xbar)),
            SlotEnd::Host { host, .. } => {
                let label = &self.fabric.hosts[host as usize];
                let guid = label.port_guid.map(|_| self.subnet.host_port_guids[host as usize]);
                ("Channel Adapter", guid, description(&label.description, &label.name))
            }
        };
        match (guid, comments) {
            (Some(guid), Comments::All) => format!(" # {kind} portguid 0x{guid:016x}: '{name}'"),
            (None, Comments::All) => format!(" # {kind}: '{name}'"),
            // OpenSM looks for this word behind a space.
            (Some(guid), Comments::Guids) => format!(" # portguid 0x{guid:016x}"),
            (None, Comments::Guids) => String::new(),
        }
    }

    fn known_guid(&self, xbar: u32) -> Option<u64> {
        let known = self.fabric.xbars[xbar as usize].guid.is_some()
            || identity(&self.fabric.map.xbars[xbar as usize]).is_some();
        known.then(|| self.subnet.xbar_guids[xbar as usize])
    }

    fn xbar_description(&self, xbar: u32) -> String {
        let label = &self.fabric.xbars[xbar as usize];
        description(&label.description, &label.name)
    }

    /// Writes the table of every xbar, by rising GUID as OpenSM does.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write, tables: &Tables) -> io::Result<()> {
        let mut order: Vec<u32> = (0..self.subnet.topology.xbar_count() as u32).collect();
        order.sort_by_key(|&xbar| (self.subnet.xbar_guids[xbar as usize], xbar));
        let at_once = (BATCH_BYTES / self.text.len().max(1)).max(rayon::current_num_threads());
        for batch in order.chunks(at_once) {
            let texts: Vec<Vec<u8>> = batch.par_iter().map(|&xbar| self.of_xbar(tables, xbar)).collect();
            texts.iter().try_for_each(|text| out.write_all(text))?;
        }
        Ok(())
    }

    fn of_xbar(&self, tables: &Tables, xbar: u32) -> Vec<u8> {
        let own_slot = self.subnet.destinations.slot_of_xbar(xbar);
        let last_lid = self.rows.last().map_or(0, |row| self.subnet.destinations.lid(row.slot));
        let header = format!(
            "Unicast lids [0-{last_lid}] of switch Lid {} guid 0x{:016x} ('{}'):\n",
            self.subnet.destinations.lid(own_slot),
            self.subnet.xbar_guids[xbar as usize],
            self.xbar_description(xbar)
        );
        let mut text = Vec::with_capacity(self.text.len() + header.len() + 32);
        text.extend_from_slice(header.as_bytes());
        let mut begin = 0;
        for row in &self.rows {
            let line = &self.text[begin..row.end];
            begin = row.end;
            let number = match tables.port(xbar, row.slot) {
                _ if row.slot == own_slot => 0,
                Tables::NONE => continue,
                port => self.numbers.written(xbar, port),
            };
            let digits = text.len() + row.digits;
            text.extend_from_slice(line);
            text[digits..digits + 3].copy_from_slice(&[
                b'0' + number / 100,
                b'0' + number / 10 % 10,
                b'0' + number % 10,
            ]);
        }
        // OpenSM says how far it counted, not how many rows there are.
        text.extend(format!("{last_lid} lids dumped\n").into_bytes());
        text
    }
}

/// A description that stays on its line; the name if there is none.
fn description(description: &str, name: &str) -> String {
    let text = if description.is_empty() { name } else { description };
    text.replace(|c: char| c.is_control(), " ")
}
