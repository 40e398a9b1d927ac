//! The service level (layer) of each pair of hosts: a line `0x<source LID> 0x<destination LID> <level>`.
//!
//! Written for all pairs: each source by its first LID, each destination by all of its LIDs. Read for any of
//! a host's LIDs. Lines that begin with `#` are comments.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use rayon::prelude::*;

use super::blocks::{self, Block, decimal, hex, quoted};
use super::{FormatError, Malformed};
use crate::routing::Subnet;
use crate::routing::tables::{End, Layers};

/// Bytes of text that are made at once, unless one host a core needs more.
const BATCH_BYTES: usize = 64 << 20;

/// Writes the level of all pairs of hosts, sources and destinations by rising LID.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, subnet: &Subnet, layers: &Layers) -> io::Result<()> {
    let ends: Vec<Line> = (subnet.destinations.by_lid().into_iter())
        .filter_map(|(lid, slot)| match subnet.destinations.end(slot) {
            End::Host { host, path } => {
                let xbar = subnet.xbar_of_host(host)?;
                Some(Line { host, path, xbar, lid: format!("0x{lid:04x} ").into_bytes() })
            }
            End::Xbar(_) => None,
        })
        .collect();
    let sources: Vec<&Line> = ends.iter().filter(|end| end.path == 0).collect();
    let bytes_a_source: usize = ends.iter().map(|end| 2 * end.lid.len() + 4).sum();
    let at_once = (BATCH_BYTES / bytes_a_source.max(1)).max(rayon::current_num_threads());
    for batch in sources.chunks(at_once) {
        let text = |source: &&Line| {
            let mut text = Vec::with_capacity(bytes_a_source);
            for end in ends.iter().filter(|end| end.host != source.host) {
                let level = layers.service_level(source.xbar, end.xbar);
                text.extend_from_slice(&source.lid);
                text.extend_from_slice(&end.lid);
                if level >= 10 {
                    text.push(b'0' + level / 10);
                }
                text.extend_from_slice(&[b'0' + level % 10, b'\n']);
            }
            text
        };
        let texts: Vec<Vec<u8>> = batch.par_iter().map(text).collect();
        texts.iter().try_for_each(|text| out.write_all(text))?;
    }
    Ok(())
}

/// An address of a host, and its text.
struct Line {
    host: u32,
    path: u8,
    xbar: u32,
    lid: Vec<u8>,
}

/// The service levels that hosts of an xbar use to a destination, as a file gives them to single hosts.
///
/// Tables lead all frames from an xbar to a destination the same way, whatever their level. So it is enough
/// to know the set of levels for each xbar with hosts and each slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceLevels {
    /// The place of each xbar with hosts in `sets`; `u32::MAX` for others.
    place: Vec<u32>,
    slots: usize,
    /// The levels (a bit each) of each xbar with hosts, by slot.
    sets: Vec<u16>,
}

impl ServiceLevels {
    /// The levels (a bit each) of frames from hosts of an xbar to a slot; none for an xbar without hosts.
    pub fn of(&self, source: u32, slot: u32) -> u16 {
        match self.place[source as usize] {
            u32::MAX => 0,
            place => self.sets[place as usize * self.slots + slot as usize],
        }
    }

    /// All levels in use, a bit each.
    pub fn in_use(&self) -> u16 {
        self.sets.iter().fold(0, |all, set| all | set)
    }

    /// The same as a layer for each pair of xbars, if each pair has one level only.
    pub fn by_pair(&self, subnet: &Subnet) -> Option<Layers> {
        let xbars = subnet.topology.xbar_count();
        let in_use = self.in_use();
        if in_use == 0 {
            return Some(Layers::single());
        }
        let first = in_use.trailing_zeros() as u8;
        let count = (u16::BITS - in_use.leading_zeros()) as u8 - first;
        let mut by_pair = vec![0; xbars * xbars];
        for source in 0..xbars as u32 {
            for to in 0..xbars as u32 {
                let slots = subnet.destinations.host_slots_of(to);
                let set = slots.fold(0, |all, slot| all | self.of(source, slot));
                match set.count_ones() {
                    0 => {}
                    1 => by_pair[source as usize * xbars + to as usize] = set.trailing_zeros() as u8 - first,
                    _ => return None,
                }
            }
        }
        Some(Layers::by_pair(count, first, by_pair, xbars))
    }
}

/// Service levels from a file.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The levels.
    pub levels: ServiceLevels,
    /// What a user should know: lines that were passed over, pairs without a line.
    pub notes: Vec<String>,
}

/// Reads the levels of a subnet's pairs of hosts. Pairs without a line have level 0.
///
/// # Errors
/// If the file cannot be read, a line is malformed, or two lines give one pair two levels; the error names
/// the line.
pub fn read(path: &Path, subnet: &Subnet) -> Result<Loaded, FormatError> {
    let by_lid = subnet.destinations.by_lid();
    let mut reader = Reader::new(subnet);
    blocks::read(path, |block| parse(block, &by_lid), |block| reader.take(block))?;
    Ok(reader.finish())
}

/// A line, or what is wrong with it.
type Parsed = Vec<(usize, Result<Pair, String>)>;

/// A line of a pair; no slot where a LID is nobody's.
struct Pair {
    from: Option<u32>,
    to: Option<u32>,
    level: u8,
}

fn parse(block: &Block, by_lid: &BTreeMap<u32, u32>) -> Parsed {
    let mut parsed = Vec::new();
    for (line, text) in block.lines() {
        let words = text.trim_ascii();
        if words.is_empty() || words.starts_with(b"#") {
            continue;
        }
        let pair = pair(words, by_lid).ok_or_else(|| {
            let expected = "expected `0x<source LID> 0x<destination LID> <level from 0 to 15>`";
            format!("{}: {expected}", quoted(text))
        });
        let is_broken = pair.is_err();
        parsed.push((line, pair));
        if is_broken {
            break;
        }
    }
    parsed
}

fn pair(words: &[u8], by_lid: &BTreeMap<u32, u32>) -> Option<Pair> {
    let slot = |lid: u64| u32::try_from(lid).ok().and_then(|lid| by_lid.get(&lid).copied());
    let (from, rest) = hex(words)?;
    let (to, rest) = hex(rest.strip_prefix(b" ")?.trim_ascii_start())?;
    let (level, rest) = decimal(rest.strip_prefix(b" ")?.trim_ascii_start())?;
    let level = u8::try_from(level).ok().filter(|&level| level < Layers::MAX && rest.is_empty())?;
    Some(Pair { from: slot(from), to: slot(to), level })
}

/// Puts lines together.
struct Reader<'a> {
    subnet: &'a Subnet,
    levels: ServiceLevels,
    /// The level of each pair that had a line, by source host and slot; [`NO_LINE`] for others.
    of_pair: Vec<u8>,
    foreign: u64,
    first_foreign: usize,
}

const NO_LINE: u8 = u8::MAX;

impl<'a> Reader<'a> {
    fn new(subnet: &'a Subnet) -> Self {
        let slots = subnet.destinations.slot_count();
        let mut place = vec![u32::MAX; subnet.topology.xbar_count()];
        let leaves = (0..subnet.topology.xbar_count() as u32).filter(|&xbar| subnet.is_leaf(xbar));
        let mut count = 0;
        for leaf in leaves {
            place[leaf as usize] = count;
            count += 1;
        }
        Self {
            subnet,
            levels: ServiceLevels { place, slots, sets: vec![0; count as usize * slots] },
            of_pair: vec![NO_LINE; subnet.topology.host_count() * slots],
            foreign: 0,
            first_foreign: 0,
        }
    }

    fn take(&mut self, parsed: Parsed) -> Result<(), Malformed> {
        for (line, pair) in parsed {
            let pair = pair.map_err(|problem| Malformed::at(line, problem))?;
            let end = |slot: Option<u32>| match self.subnet.destinations.end(slot?) {
                End::Host { host, .. } => Some(host),
                End::Xbar(_) => None,
            };
            let (Some(from), Some(to), Some(slot)) = (end(pair.from), end(pair.to), pair.to) else {
                if self.foreign == 0 {
                    self.first_foreign = line;
                }
                self.foreign += 1;
                continue;
            };
            let known = &mut self.of_pair[from as usize * self.levels.slots + slot as usize];
            if *known != NO_LINE && *known != pair.level {
                let problem = format!(
                    "hosts {} and {} have level {known} in a line before, and {} here; expected one level a pair",
                    self.subnet.topology.mac(from),
                    self.subnet.topology.mac(to),
                    pair.level
                );
                return Err(Malformed::at(line, problem));
            }
            *known = pair.level;
        }
        Ok(())
    }

    fn finish(mut self) -> Loaded {
        let mut without = 0_u64;
        let hosts = self.subnet.topology.host_count() as u32;
        for from in 0..hosts {
            let Some(xbar) = self.subnet.xbar_of_host(from) else { continue };
            for to in (0..hosts).filter(|&to| to != from) {
                for slot in self.subnet.destinations.slots_of_host(to) {
                    let level = match self.of_pair[from as usize * self.levels.slots + slot as usize] {
                        NO_LINE => {
                            without += 1;
                            0
                        }
                        level => level,
                    };
                    let place = self.levels.place[xbar as usize] as usize;
                    self.levels.sets[place * self.levels.slots + slot as usize] |= 1 << level;
                }
            }
        }
        let mut notes = Vec::new();
        if self.foreign > 0 {
            let (count, first) = (self.foreign, self.first_foreign);
            notes.push(format!(
                "{count} lines name LIDs that no host has, and are passed over (the first at line {first})"
            ));
        }
        if without > 0 {
            notes.push(format!(
                "{without} pairs of a host and an address have no line, and travel at level 0"
            ));
        }
        Loaded { levels: self.levels, notes }
    }
}

#[cfg(test)]
mod tests {
    use mapper_sim::topology::generate;

    use super::*;

    fn subnet(spec: &str, lmc: u8) -> Subnet {
        Subnet::new(&generate(spec).unwrap(), Some(lmc)).unwrap()
    }

    fn load(text: &str, subnet: &Subnet) -> Result<Loaded, FormatError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sls");
        std::fs::write(&path, text).unwrap();
        read(&path, subnet)
    }

    fn written(subnet: &Subnet, layers: &Layers) -> String {
        let mut text = Vec::new();
        write(&mut text, subnet, layers).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn levels_are_a_line_a_pair_and_read_back() {
        let ring = subnet("ring:n=3,hosts=1", 0);
        assert_eq!(
            written(&ring, &Layers::single()),
            "0x0001 0x0002 0\n0x0001 0x0003 0\n0x0002 0x0001 0\n0x0002 0x0003 0\n0x0003 0x0001 0\n0x0003 0x0002 0\n"
        );
        let torus = subnet("torus:x=3,y=2,hosts=3", 1);
        let by_pair: Vec<u8> = (0..36).map(|pair| pair % 5 + pair / 7).collect();
        let layers = Layers::by_pair(10, 6, by_pair, 6);
        let text = written(&torus, &layers);
        assert_eq!(text.lines().count(), 18 * 17 * 2);
        let loaded = load(&text, &torus).unwrap();
        assert_eq!(loaded.notes, Vec::<String>::new());
        let again = loaded.levels.by_pair(&torus).unwrap();
        assert_eq!(written(&torus, &again), text);
    }

    #[test]
    fn hosts_of_one_xbar_may_differ() {
        let clos = subnet("clos:hosts=8,ports=4", 0);
        let text = written(&clos, &Layers::single()).replace("0x0001 0x0008 0", "0x0001 0x0008 3");
        let loaded = load(&text, &clos).unwrap();
        assert_eq!(loaded.levels.by_pair(&clos), None);
        let slot = clos.destinations.slots_of_host(7).start;
        let source = clos.xbar_of_host(0).unwrap();
        assert_eq!((loaded.levels.of(source, slot), loaded.levels.in_use()), (0b1001, 0b1001));
    }

    #[test]
    fn pairs_without_a_line_are_told_and_travel_at_level_0() {
        let ring = subnet("ring:n=3,hosts=1", 0);
        let loaded = load("# levels\n0x1 0x2 1\n0x1 0x99 2\n0x1 0x2 1\n", &ring).unwrap();
        assert_eq!(
            loaded.notes,
            [
                "1 lines name LIDs that no host has, and are passed over (the first at line 3)",
                "5 pairs of a host and an address have no line, and travel at level 0",
            ]
        );
        assert_eq!(loaded.levels.in_use(), 0b11);
    }

    #[test]
    fn broken_lines_are_refused() {
        let ring = subnet("ring:n=3,hosts=1", 0);
        for (text, expected) in [
            ("0x1 0x2", ":1: `0x1 0x2`: expected `0x<source LID> 0x<destination LID> <level from 0 to 15>`"),
            ("0x1 0x2 16", ":1: `0x1 0x2 16`: expected"),
            ("\n0x1 0x2 1 1", ":2: `0x1 0x2 1 1`: expected"),
            ("1 2 1", ":1: `1 2 1`: expected"),
            (
                "0x1 0x2 1\n0x1 0x2 2",
                ":2: hosts 02:00:00:00:00:01 and 02:00:00:00:00:02 have level 1 in a line",
            ),
        ] {
            let error = load(text, &ring).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
