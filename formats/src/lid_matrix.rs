//! Hops from every port to every switch as OpenSM dumps them (`opensm-lid-matrix.dump`) and loads them
//! (`opensm -M FILE`).
//!
//! A header a switch, and a row a switch's LID that a way leads to: the least hops, the hops by port 1, by
//! port 2, and so on, in two hexadecimal digits each; `ff` is no way.
//!
//! ```text
//! Switch: guid 0x0200000000000001
//! 0x0002: 00 ff ff 02 02 # portguid 0x0200000000000001
//! 0x0003: 02 ff ff 02 02 # portguid 0x0200000000000002
//! ```
//!
//! Destinations are told by the GUID of their port first, and then by their LID: a fabric's LIDs may have
//! changed since. Rows of unknown switches, and to what is no switch here, are passed over and counted.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use mapper_proto::map::PortRef;
use rayon::prelude::*;

use super::blocks::{self, Block, hex, quoted};
use super::{FormatError, Loaded, Malformed};
use mapper_fabric::wording::{counted, plural};
use mapper_routing::engines::HopMatrix;
use mapper_routing::tables::SlotEnd;
use mapper_routing::{Far, Subnet};

/// Writes the hops of a subnet, xbars by rising GUID.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, subnet: &Subnet, hops: &HopMatrix) -> io::Result<()> {
    let mut order: Vec<u32> = (0..subnet.topology.xbar_count() as u32).collect();
    order.sort_by_key(|&xbar| (subnet.xbar_guids[xbar as usize], xbar));
    let lids = subnet.destinations.by_lid().into_iter();
    let destinations: Vec<(u32, u32)> = lids
        .filter_map(|(lid, slot)| match subnet.destinations.end(slot) {
            SlotEnd::Xbar(xbar) => Some((lid, xbar)),
            SlotEnd::Host { .. } => None,
        })
        .collect();
    for batch in order.chunks(rayon::current_num_threads()) {
        let of = |&xbar: &u32| of_xbar(subnet, hops, xbar, &destinations);
        let texts: Vec<String> = batch.par_iter().map(of).collect();
        texts.iter().try_for_each(|text| out.write_all(text.as_bytes()))?;
    }
    Ok(())
}

fn of_xbar(subnet: &Subnet, hops: &HopMatrix, xbar: u32, destinations: &[(u32, u32)]) -> String {
    let mut text = format!("Switch: guid 0x{:016x}\n", subnet.xbar_guids[xbar as usize]);
    for &(lid, destination) in destinations {
        let least = hops.least(xbar, destination);
        if least == HopMatrix::NO_PATH {
            continue;
        }
        text += &format!("0x{lid:04x}: {least:02x}");
        for port in 1..=subnet.xbar_ports[xbar as usize] {
            let by_port = match subnet.topology.far(PortRef { xbar, port }) {
                Far::Channel(channel) => hops.by_channel(channel, destination),
                Far::Host(_) | Far::Nothing => HopMatrix::NO_PATH,
            };
            text += &format!(" {by_port:02x}");
        }
        text += &format!(" # portguid 0x{:016x}\n", subnet.xbar_guids[destination as usize]);
    }
    text
}

/// Reads the hops of a subnet. There are none where the file says none.
///
/// # Errors
/// If the file cannot be read, or a line is none of a lid matrix, or has hops for more ports than its
/// xbar has; the error names the line.
pub fn read(path: &Path, subnet: &Subnet) -> Result<Loaded<HopMatrix>, FormatError> {
    let mut reader = LidMatrixReader {
        subnet,
        xbars: (0..).zip(&subnet.xbar_guids).map(|(xbar, &guid)| (guid, xbar)).collect(),
        slots: subnet.destinations.by_lid(),
        hops: HopMatrix::unknown(&subnet.topology),
        current: None,
        unknown_xbars: 0,
        unknown_rows: 0,
    };
    blocks::read(path, parse, |lines| lines?.into_iter().try_for_each(|line| reader.take(line)))?;
    Ok(reader.finish())
}

/// What a line says.
enum Line {
    Switch(u64),
    Row { line: usize, lid: u32, hops: Vec<u8>, guid: Option<u64> },
}

fn parse(block: &Block) -> Result<Vec<Line>, Malformed> {
    let mut lines = Vec::new();
    for (number, line) in block.lines() {
        if line.iter().all(u8::is_ascii_whitespace) || line.starts_with(b"#") {
            continue;
        }
        let parsed = switch(line).map(Line::Switch).or_else(|| row(number, line));
        lines.push(parsed.ok_or_else(|| {
            let expected = "expected `Switch: guid 0x..` or a row `0x<lid>: <hops> <hops by port 1> ..`";
            Malformed::at(number, format!("{} is no line of a lid matrix; {expected}", quoted(line)))
        })?);
    }
    Ok(lines)
}

fn switch(line: &[u8]) -> Option<u64> {
    hex(line.strip_prefix(b"Switch: guid ")?).map(|(guid, _)| guid)
}

fn row(number: usize, line: &[u8]) -> Option<Line> {
    let (lid, rest) = hex(line)?;
    let rest = rest.strip_prefix(b":")?;
    let mut parts = rest.splitn(2, |&byte| byte == b'#');
    let columns = parts.next()?.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let digits = |word| std::str::from_utf8(word).ok().and_then(|word| u8::from_str_radix(word, 16).ok());
    let hops = columns.map(digits).collect::<Option<Vec<u8>>>().filter(|hops| !hops.is_empty())?;
    let comment = parts.next().unwrap_or_default().trim_ascii_start();
    let guid = comment.strip_prefix(b"portguid ").and_then(hex).map(|(guid, _)| guid);
    Some(Line::Row { line: number, lid: u32::try_from(lid).ok()?, hops, guid })
}

/// Where rows go.
enum Current {
    Known(u32),
    Unknown,
}

struct LidMatrixReader<'a> {
    subnet: &'a Subnet,
    xbars: BTreeMap<u64, u32>,
    slots: BTreeMap<u32, u32>,
    hops: HopMatrix,
    current: Option<Current>,
    unknown_xbars: usize,
    unknown_rows: usize,
}

impl LidMatrixReader<'_> {
    fn take(&mut self, line: Line) -> Result<(), Malformed> {
        match line {
            Line::Switch(guid) => {
                let known = self.xbars.get(&guid).map(|&xbar| Current::Known(xbar));
                self.unknown_xbars += usize::from(known.is_none());
                self.current = Some(known.unwrap_or(Current::Unknown));
            }
            Line::Row { line, lid, hops, guid } => match self.current {
                None => {
                    return Err(Malformed::at(line, "a row before any switch; expected `Switch: guid 0x..`"));
                }
                Some(Current::Unknown) => {}
                Some(Current::Known(xbar)) => self.row(line, xbar, self.destination(lid, guid), &hops)?,
            },
        }
        Ok(())
    }

    /// The xbar that a row leads to.
    fn destination(&self, lid: u32, guid: Option<u64>) -> Option<u32> {
        guid.and_then(|guid| self.xbars.get(&guid).copied()).or_else(|| {
            let &slot = self.slots.get(&lid)?;
            match self.subnet.destinations.end(slot) {
                SlotEnd::Xbar(xbar) => Some(xbar),
                SlotEnd::Host { .. } => None,
            }
        })
    }

    fn row(&mut self, line: usize, xbar: u32, to: Option<u32>, hops: &[u8]) -> Result<(), Malformed> {
        let Some(destination) = to else {
            self.unknown_rows += 1;
            return Ok(());
        };
        let ports = self.subnet.xbar_ports[xbar as usize];
        if hops.len() > usize::from(ports) + 1 {
            let problem = format!("hops for {}; expected at most {ports}", plural(hops.len() - 1, "port"));
            return Err(Malformed::at(line, problem));
        }
        let least = hops.iter().copied().min().unwrap_or(HopMatrix::NO_PATH);
        self.hops.set_least(xbar, destination, least);
        for (port, &hops) in (1..).zip(&hops[1..]) {
            if let Far::Channel(channel) = self.subnet.topology.far(PortRef { xbar, port }) {
                self.hops.set_by_channel(channel, destination, hops);
            }
        }
        Ok(())
    }

    fn finish(self) -> Loaded<HopMatrix> {
        let mut notes = Vec::new();
        if self.unknown_xbars > 0 {
            let what = ("switch in it is not in this fabric", "switches in it are not in this fabric");
            notes.push(counted(self.unknown_xbars, what.0, what.1));
        }
        if self.unknown_rows > 0 {
            let what =
                ("row in it leads to what is no switch here", "rows in it lead to what is no switch here");
            notes.push(counted(self.unknown_rows, what.0, what.1));
        }
        Loaded { found: self.hops, notes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mapper_fabric::generate;
    use mapper_routing::engines::{Engine, Settings, hop_matrix};

    fn subnet() -> Subnet {
        Subnet::new(&generate("clos:hosts=8,ports=4").unwrap(), None).unwrap()
    }

    fn read_text(text: &str, subnet: &Subnet) -> Result<Loaded<HopMatrix>, FormatError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        read(file.path(), subnet)
    }

    #[test]
    fn what_is_written_reads_back() {
        let subnet = subnet();
        for engine in [Engine::Minhop, Engine::Updn, Engine::Dnup] {
            let hops = hop_matrix(engine, &subnet, &Settings::default()).unwrap();
            let mut text = Vec::new();
            write(&mut text, &subnet, &hops).unwrap();
            let loaded = read_text(std::str::from_utf8(&text).unwrap(), &subnet).unwrap();
            assert_eq!(loaded, Loaded { found: hops, notes: Vec::new() });
        }
    }

    #[test]
    fn rows_look_as_opensm_has_them() {
        let subnet = subnet();
        let mut text = Vec::new();
        write(&mut text, &subnet, &hop_matrix(Engine::Minhop, &subnet, &Settings::default()).unwrap())
            .unwrap();
        let text = String::from_utf8(text).unwrap();
        let first: Vec<&str> = text.lines().take(3).collect();
        assert_eq!(first[0], "Switch: guid 0x0200000000000001");
        assert_eq!(first[1], "0x0009: 00 ff ff 02 02 # portguid 0x0200000000000001");
        assert_eq!(first[2], "0x000a: 02 ff ff 02 02 # portguid 0x0200000000000002");
    }

    #[test]
    fn bad_lines_are_named_and_strangers_counted() {
        let subnet = subnet();
        let switch = "Switch: guid 0x0200000000000001\n";
        for (text, problem) in [
            ("0x0009: 00 ff\n".to_owned(), ":1: a row before any switch"),
            (format!("{switch}0x0009 00 ff\n"), ":2: `0x0009 00 ff` is no line of a lid matrix"),
            (format!("{switch}0x0009: 00 1ff\n"), ":2: `0x0009: 00 1ff` is no line"),
            (format!("{switch}0x0009: 00 ff ff 02 02 02\n"), ":2: hops for 5 ports; expected at most 4"),
        ] {
            let error = read_text(&text, &subnet).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
        let loaded =
            read_text(&format!("{switch}0x0001: 01 01\nSwitch: guid 0x5\n0x0009: 01\n"), &subnet).unwrap();
        assert_eq!(loaded.notes.len(), 2);
    }
}
