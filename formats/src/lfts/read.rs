//! Dumps of forwarding tables, read.

use std::collections::BTreeMap;
use std::path::Path;

use mapper_proto::map::Fabric;

use super::PortNumbers;
use super::notes::Notes;
use crate::blocks::{self, Block, decimal, hex, quoted};
use crate::{FormatError, Loaded, Malformed};
use mapper_routing::tables::{ByXbar, SlotEnd};
use mapper_routing::{Subnet, Tables};

/// Reads the tables of a subnet, which must be of this fabric. They have no entry where the file has none.
///
/// A header begins an xbar's table, and clears what an earlier one said of it. Rows of an xbar that the
/// fabric does not have, and rows to LIDs that it does not have, are passed over, and the notes say so. A row
/// whose port GUID is another node's than its LID leads to that node.
///
/// # Errors
/// If the fabric's ports cannot be numbered from 1, or the file cannot be read, or a line is none of a dump, or names a port
/// that its xbar does not have; the error names the line.
pub fn read(path: &Path, fabric: &Fabric, subnet: &Subnet) -> Result<Loaded<Tables>, FormatError> {
    let numbers = PortNumbers::of(fabric)?;
    let known = Known::of(subnet);
    let mut reader = TablesReader {
        subnet,
        numbers,
        tables: ByXbar::new(subnet.topology.xbar_count(), subnet.destinations.slot_count()),
        current: Current::Before,
        seen: vec![false; subnet.topology.xbar_count()],
        in_table: false,
        ends: 0,
        notes: Notes::default(),
    };
    blocks::read(path, |block| parse(block, &known), |block| reader.take(block))?;
    Ok(reader.finish())
}

/// Finds destinations and xbars by what a dump calls them.
struct Known {
    /// The slot of each LID; [`NO_SLOT`] for LIDs that are nobody's.
    by_lid: Vec<u32>,
    /// The slot of each port GUID; a host's first one.
    by_guid: BTreeMap<u64, u32>,
    /// The port GUID of each slot.
    guids: Vec<u64>,
    /// The xbar of each GUID.
    xbars: BTreeMap<u64, u32>,
    /// How many addresses each host has. The first is a multiple of this number.
    addresses: u32,
}

const NO_SLOT: u32 = u32::MAX;

impl Known {
    fn of(subnet: &Subnet) -> Self {
        let destinations = &subnet.destinations;
        let (mut by_lid, mut by_guid, mut guids) = (Vec::new(), BTreeMap::new(), Vec::new());
        for slot in 0..destinations.slot_count() as u32 {
            let lid = destinations.lid(slot) as usize;
            if by_lid.len() <= lid {
                by_lid.resize(lid + 1, NO_SLOT);
            }
            by_lid[lid] = slot;
            let guid = match destinations.end(slot) {
                SlotEnd::Xbar(xbar) => subnet.xbar_guids[xbar as usize],
                SlotEnd::Host { host, .. } => subnet.host_port_guids[host as usize],
            };
            by_guid.entry(guid).or_insert(slot);
            guids.push(guid);
        }
        let mut xbars = BTreeMap::new();
        for (xbar, &guid) in (0..).zip(&subnet.xbar_guids) {
            xbars.entry(guid).or_insert(xbar);
        }
        Self { by_lid, by_guid, guids, xbars, addresses: 1 << destinations.lmc() }
    }

    /// The slot that a row leads to, and how it was found.
    fn slot(&self, lid: u64, guid: Option<u64>) -> (u32, Found) {
        let lid_index = usize::try_from(lid).unwrap_or(usize::MAX);
        let by_lid = self.by_lid.get(lid_index).copied().unwrap_or(NO_SLOT);
        match guid {
            Some(guid) if by_lid != NO_SLOT && self.guids[by_lid as usize] == guid => (by_lid, Found::Both),
            Some(guid) => match self.by_guid.get(&guid) {
                // Which of a host's addresses was meant is in the LID's last bits.
                Some(&first) => {
                    let path = (lid % u64::from(self.addresses)) as u32;
                    let same = self.guids.get((first + path) as usize) == Some(&guid);
                    (if same { first + path } else { first }, Found::Moved)
                }
                None => (by_lid, Found::UnknownGuid),
            },
            None => (by_lid, Found::Both),
        }
    }
}

/// How a row's destination was found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// By its LID, and its port GUID is that node's, or not given.
    Both,
    /// By its port GUID; the LID is another's.
    Moved,
    /// By its LID; the port GUID is nobody's.
    UnknownGuid,
}

/// What a block says, in order.
struct Parsed {
    events: Vec<Event>,
    /// The first line that is none of a dump, and what is wrong with it. What follows was not parsed.
    broken: Option<Malformed>,
}

enum Event {
    /// A table begins: an xbar's, or one that the fabric does not have.
    Header {
        line: usize,
        xbar: Option<u32>,
    },
    Row {
        line: usize,
        slot: u32,
        port: u32,
        found: Found,
    },
    /// A table ends.
    End,
}

fn parse(block: &Block, known: &Known) -> Parsed {
    let mut parsed = Parsed { events: Vec::new(), broken: None };
    for (line, text) in block.lines() {
        match parse_line(line, text, known) {
            Ok(event) => parsed.events.extend(event),
            Err(problem) => {
                parsed.broken = Some(Malformed::at(line, problem));
                break;
            }
        }
    }
    parsed
}

fn parse_line(line: usize, text: &[u8], known: &Known) -> Result<Option<Event>, String> {
    if let [b'0', b'x', ..] = text {
        return row(line, text, known).map(Some);
    }
    if text.starts_with(b"#") {
        return Ok(None);
    }
    let is_header = find(text, b"Unicast lids").is_some();
    if is_header {
        let guid = find(text, b" guid ").and_then(|at| hex(&text[at + 6..]));
        let (guid, _) = guid.ok_or_else(|| {
            format!("{} names no switch; expected ` guid 0x` and up to 16 hexadecimal digits", quoted(text))
        })?;
        return Ok(Some(Event::Header { line, xbar: known.xbars.get(&guid).copied() }));
    }
    // Beside rows ibroute prints titles of columns, and both programs print how many rows there are.
    let words = text.trim_ascii();
    if words.ends_with(b"lids dumped") {
        return Ok(Some(Event::End));
    }
    if words.is_empty() || words.starts_with(b"Lid  Out") || words.starts_with(b"Port     Info") {
        return Ok(None);
    }
    if find(text, b"Multicast").is_some() {
        return Err("a dump of multicast tables; expected unicast ones".to_owned());
    }
    Err(format!(
        "{} is no line of a table; expected `Unicast lids .. guid 0x..`, or `0x`, a LID, a blank and a port",
        quoted(text)
    ))
}

/// A row: `0x<lid> <port>`, and what it leads to.
fn row(line: usize, text: &[u8], known: &Known) -> Result<Event, String> {
    let expected = || format!("{}: expected `0x`, a LID, a blank and a port number", quoted(text));
    let (lid, rest) = hex(text).ok_or_else(expected)?;
    let [b' ', rest @ ..] = rest else {
        return Err(expected());
    };
    let (port, rest) = decimal(rest.trim_ascii_start()).ok_or_else(expected)?;
    if rest.first().is_some_and(|byte| !byte.is_ascii_whitespace()) {
        return Err(expected());
    }
    let guid = match find(rest, b" portguid ").or_else(|| find(rest, b"(portguid ")) {
        None => None,
        Some(at) => {
            let guid = hex(&rest[at + 10..]).map(|(guid, _)| guid);
            Some(guid.ok_or_else(|| {
                format!("{}: expected `portguid 0x` and up to 16 hexadecimal digits", quoted(text))
            })?)
        }
    };
    let (slot, found) = known.slot(lid, guid);
    Ok(Event::Row { line, slot, port, found })
}

/// Where a text has another one first.
fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text[from..].iter().position(|&byte| byte == wanted[0]) {
        from += at;
        if text[from..].starts_with(wanted) {
            return Some(from);
        }
        from += 1;
    }
    None
}

/// Whose rows are being read.
#[derive(Clone, Copy)]
enum Current {
    /// Nobody's yet.
    Before,
    /// An xbar's that the fabric does not have.
    Unknown,
    Xbar(u32),
}

/// Puts rows into tables.
struct TablesReader<'a> {
    subnet: &'a Subnet,
    numbers: PortNumbers,
    tables: ByXbar,
    current: Current,
    seen: Vec<bool>,
    /// Whether rows may follow: the last table was not ended.
    in_table: bool,
    /// Tables that were ended.
    ends: u64,
    notes: Notes,
}

impl TablesReader<'_> {
    fn take(&mut self, block: Parsed) -> Result<(), Malformed> {
        for event in block.events {
            self.in_table = !matches!(event, Event::End);
            match event {
                Event::End => self.ends += 1,
                Event::Header { line, xbar } => self.begin(line, xbar),
                Event::Row { line, slot, port, found } => self.row(line, slot, port, found)?,
            }
        }
        block.broken.map_or(Ok(()), Err)
    }

    fn begin(&mut self, line: usize, xbar: Option<u32>) {
        let Some(xbar) = xbar else {
            self.current = Current::Unknown;
            self.notes.unknown_xbars.add(line);
            return;
        };
        self.current = Current::Xbar(xbar);
        self.seen[xbar as usize] = true;
        self.tables.begin(xbar);
    }

    fn row(&mut self, line: usize, slot: u32, number: u32, found: Found) -> Result<(), Malformed> {
        let xbar = match self.current {
            Current::Xbar(xbar) => xbar,
            Current::Unknown => return Ok(()),
            Current::Before => {
                return Err(Malformed::at(
                    line,
                    "a row before any table; expected `Unicast lids .. guid 0x..`",
                ));
            }
        };
        let port = self.numbers.read(xbar, number).map_err(|last| {
            let name = &self.subnet.names.xbars[xbar as usize];
            Malformed::at(
                line,
                format!("xbar `{name}` has no port {number}; expected a port from 0 to {last}"),
            )
        })?;
        if slot == NO_SLOT {
            self.notes.unknown_lids.add(line);
            return Ok(());
        }
        match found {
            Found::Both => {}
            Found::Moved => self.notes.moved.add(line),
            Found::UnknownGuid => self.notes.unknown_guids.add(line),
        }
        if self.subnet.destinations.slot_of_xbar(xbar) != slot {
            self.tables.set(slot, port);
        } else if number != 0 {
            self.notes.own.add(line);
        }
        Ok(())
    }

    fn finish(self) -> Loaded<Tables> {
        let mut notes = self.notes.texts();
        // A table that was written by hand may lack the line that ends it.
        if self.in_table && self.ends > 0 {
            notes
                .push("the last table has no end (`lids dumped`): the file may have been cut off".to_owned());
        }
        let missing: Vec<&str> = (self.seen.iter().zip(&self.subnet.names.xbars))
            .filter(|(seen, _)| !**seen)
            .map(|(_, name)| name.as_str())
            .collect();
        if let Some(first) = missing.first() {
            notes.push(match missing.len() {
                1 => format!("the file has no table of xbar {first}"),
                count => format!("the file has no table of {count} xbars, {first} one of them"),
            });
        }
        Loaded { found: self.tables.finish(), notes }
    }
}
