//! The service level (layer) of each pair of hosts: a line `0x<source LID> 0x<destination LID> <level>`.
//!
//! Written for all pairs: each source by its first LID, each destination by all of its LIDs. Read for any of
//! a host's LIDs. Lines that begin with `#` are comments.

use std::io::{self, Write};
use std::path::Path;

use rayon::prelude::*;

use super::blocks::{self, Block, decimal, hex, quoted};
use super::loaded::LineCount;
use super::{FormatError, Loaded, Malformed};
use mapper_fabric::wording::counted;
use mapper_routing::Subnet;
use mapper_routing::tables::{Layers, ServiceLevels, SlotEnd};

/// Bytes of text that are made at once, unless one host a core needs more.
const BATCH_BYTES: usize = 64 << 20;

/// Writes the level of all pairs of hosts, sources and destinations by rising LID.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, subnet: &Subnet, layers: &Layers) -> io::Result<()> {
    let ends: Vec<Line> = (subnet.destinations.by_lid().into_iter())
        .filter_map(|(lid, slot)| match subnet.destinations.end(slot) {
            SlotEnd::Host { host, path } => {
                let xbar = subnet.xbar_of_host(host)?;
                Some(Line { host, path, xbar, lid: format!("0x{lid:04x} ").into_bytes() })
            }
            SlotEnd::Xbar(_) => None,
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

/// Reads the levels of a subnet's pairs of hosts. Pairs without a line have level 0; a pair with several
/// lines has all their levels.
///
/// # Errors
/// If the file cannot be read, or a line is malformed; the error names the line.
pub fn read(path: &Path, subnet: &Subnet) -> Result<Loaded<ServiceLevels>, FormatError> {
    let mut hosts = Vec::new();
    for (lid, slot) in subnet.destinations.by_lid() {
        if let SlotEnd::Host { host, .. } = subnet.destinations.end(slot) {
            hosts.resize((lid as usize + 1).max(hosts.len()), None);
            hosts[lid as usize] = Some((host, slot));
        }
    }
    let mut reader = ServiceLevelReader::new(subnet);
    blocks::read(path, |block| parse(block, &hosts), |block| reader.take(block))?;
    Ok(reader.finish())
}

/// What a block says, in order.
struct Parsed {
    lines: Vec<Pair>,
    /// Lines of LIDs that no host has.
    foreign: LineCount,
    /// The first line that is malformed, and what is wrong with it. What follows was not parsed.
    broken: Option<Malformed>,
}

/// A line of a pair: the source, the slot that it sends to, the level.
type Pair = (u32, u32, u8);

/// The host and the slot of each LID that is a host's.
type HostsByLid = [Option<(u32, u32)>];

fn parse(block: &Block, hosts: &HostsByLid) -> Parsed {
    let mut parsed = Parsed { lines: Vec::new(), foreign: LineCount::default(), broken: None };
    let known = |lid: u64| hosts.get(usize::try_from(lid).ok()?).copied().flatten();
    for (line, text) in block.lines() {
        let words = text.trim_ascii();
        if words.is_empty() || words.starts_with(b"#") {
            continue;
        }
        let Some((from, to, level)) = pair(words) else {
            let expected = "expected `0x<source LID> 0x<destination LID> <level from 0 to 15>`";
            parsed.broken = Some(Malformed::at(line, format!("{}: {expected}", quoted(text))));
            break;
        };
        match (known(from), known(to)) {
            (Some((from, _)), Some((_, slot))) => parsed.lines.push((from, slot, level)),
            _ => parsed.foreign.add(line),
        }
    }
    parsed
}

/// The LIDs and the level of a line.
fn pair(words: &[u8]) -> Option<(u64, u64, u8)> {
    let (from, rest) = hex(words)?;
    let (to, rest) = hex(rest.strip_prefix(b" ")?.trim_ascii_start())?;
    let (level, rest) = decimal(rest.strip_prefix(b" ")?.trim_ascii_start())?;
    let level = u8::try_from(level).ok().filter(|&level| level < Layers::MAX && rest.is_empty())?;
    Some((from, to, level))
}

/// Puts lines together.
struct ServiceLevelReader<'a> {
    subnet: &'a Subnet,
    levels: ServiceLevels,
    /// Which pairs had a line: a bit for each source host and slot.
    listed: Vec<u64>,
    foreign: LineCount,
}

impl<'a> ServiceLevelReader<'a> {
    fn new(subnet: &'a Subnet) -> Self {
        let slots = subnet.destinations.slot_count();
        Self {
            subnet,
            levels: ServiceLevels::new(subnet),
            listed: vec![0; (subnet.topology.host_count() * slots).div_ceil(64)],
            foreign: LineCount::default(),
        }
    }

    fn take(&mut self, parsed: Parsed) -> Result<(), Malformed> {
        for (from, slot, level) in parsed.lines {
            self.add(from, slot, level);
            let bit = self.bit(from, slot);
            self.listed[bit / 64] |= 1 << (bit % 64);
        }
        self.foreign.add_all(&parsed.foreign);
        parsed.broken.map_or(Ok(()), Err)
    }

    fn bit(&self, from: u32, slot: u32) -> usize {
        from as usize * self.subnet.destinations.slot_count() + slot as usize
    }

    fn add(&mut self, from: u32, slot: u32, level: u8) {
        let Some(xbar) = self.subnet.xbar_of_host(from) else { return };
        self.levels.add(xbar, slot, level);
    }

    fn finish(mut self) -> Loaded<ServiceLevels> {
        let mut without = 0_u64;
        let hosts = self.subnet.topology.host_count() as u32;
        for from in (0..hosts).filter(|&from| self.subnet.xbar_of_host(from).is_some()) {
            for to in (0..hosts).filter(|&to| to != from) {
                for slot in self.subnet.destinations.slots_of_host(to) {
                    let bit = self.bit(from, slot);
                    if self.listed[bit / 64] >> (bit % 64) & 1 == 0 {
                        self.add(from, slot, 0);
                        without += 1;
                    }
                }
            }
        }
        let mut notes = Vec::new();
        if self.foreign.count > 0 {
            let LineCount { count, first_line } = self.foreign;
            notes.push(match count {
                1 => format!("line {first_line} names a LID that no host has, and is passed over"),
                _ => format!(
                    "{count} lines name LIDs that no host has, and are passed over (the first at line \
                     {first_line})"
                ),
            });
        }
        if without > 0 {
            notes.push(counted(
                without,
                "pair of a host and an address has no line, and travels at level 0",
                "pairs of a host and an address have no line, and travel at level 0",
            ));
        }
        Loaded { found: self.levels, notes }
    }
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    use super::*;

    fn subnet(spec: &str, lmc: u8) -> Subnet {
        Subnet::new(&generate(spec).unwrap(), Some(lmc)).unwrap()
    }

    fn load(text: &str, subnet: &Subnet) -> Result<Loaded<ServiceLevels>, FormatError> {
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
        let of: Vec<u8> = (0..36).map(|pair| pair % 5 + pair / 7).collect();
        let layers = Layers::by_destination(10, 6, of, 6);
        let text = written(&torus, &layers);
        assert_eq!(text.lines().count(), 18 * 17 * 2);
        let loaded = load(&text, &torus).unwrap();
        assert_eq!(loaded.notes, Vec::<String>::new());
        let again = loaded.found.by_pair(&torus).unwrap();
        assert_eq!(written(&torus, &again), text);
    }

    #[test]
    fn hosts_of_one_xbar_may_differ() {
        let clos = subnet("clos:hosts=8,ports=4", 0);
        let text = written(&clos, &Layers::single()).replace("0x0001 0x0008 0", "0x0001 0x0008 3");
        let loaded = load(&text, &clos).unwrap();
        assert_eq!(loaded.found.by_pair(&clos), None);
        let slot = clos.destinations.slots_of_host(7).start;
        let source = clos.xbar_of_host(0).unwrap();
        assert_eq!((loaded.found.of(source, slot), loaded.found.in_use()), (0b1001, 0b1001));
    }

    #[test]
    fn pairs_without_a_line_are_told_and_travel_at_level_0() {
        let ring = subnet("ring:n=3,hosts=1", 0);
        let loaded = load("# levels\n0x1 0x2 1\n0x1 0x99 2\n0x1 0x2 1\n", &ring).unwrap();
        assert_eq!(
            loaded.notes,
            [
                "line 3 names a LID that no host has, and is passed over",
                "5 pairs of a host and an address have no line, and travel at level 0",
            ]
        );
        assert_eq!(loaded.found.in_use(), 0b11);
    }

    #[test]
    fn broken_lines_are_refused() {
        let ring = subnet("ring:n=3,hosts=1", 0);
        for (text, expected) in [
            ("0x1 0x2", ":1: `0x1 0x2`: expected `0x<source LID> 0x<destination LID> <level from 0 to 15>`"),
            ("0x1 0x2 16", ":1: `0x1 0x2 16`: expected"),
            ("\n0x1 0x2 1 1", ":2: `0x1 0x2 1 1`: expected"),
            ("1 2 1", ":1: `1 2 1`: expected"),
        ] {
            let error = load(text, &ring).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
