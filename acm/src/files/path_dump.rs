//! The file of `route_preload opensm_full_v1`: OpenSM's dump of path records. A block for each node begins with
//! `Channel Adapter 0x<GUID>, base LID <LID>, ..` (or `Switch`, `Router`), and in it a line for each destination is
//! `<LID> : <SL> : <MTU> : <rate>`, with the codes that [`codes`](crate::codes) has.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use super::{BadLine, number, quoted};
use crate::codes::{mtu_bytes, rate_mbps};
use crate::wire::{PathRecord, Selected};
use mapper_ib::lids::LAST_LID;

/// The longest file that is read: the paths between some 14,000 hosts. A path takes four bytes of memory, less than a third
/// of its line, so this bounds the memory as well.
pub const MOST_BYTES: u64 = 4 << 30;
/// How long packets may live, as OpenSM has it.
const LIFE_TIME: u8 = 18;
/// The prefix of GIDs of a subnet that was given none.
const PREFIX: u128 = 0xfe80 << 112;

/// A path of the file, packed, as there may be some hundred millions: the code of the rate (6 bits), that of the MTU (3 bits)
/// and the service level (4 bits).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry(u16);

impl Entry {
    /// `mtu` and `rate` are codes.
    fn new(sl: u8, mtu: u8, rate: u8) -> Self {
        Self(u16::from(rate) << 7 | u16::from(mtu) << 4 | u16::from(sl))
    }

    fn sl(self) -> u8 {
        (self.0 & 0xf) as u8
    }

    fn mtu(self) -> u8 {
        (self.0 >> 4 & 0x7) as u8
    }

    fn rate(self) -> u8 {
        (self.0 >> 7) as u8
    }
}

/// The paths of a file, by the GUIDs of their ends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PathTable {
    lids: BTreeMap<u64, u16>,
    guids: BTreeMap<u16, u64>,
    /// The paths from each LID, by the LIDs that they lead to.
    paths: BTreeMap<u16, Vec<(u16, Entry)>>,
}

/// Reads a file line by line, so that a long one need not be in memory as a whole.
#[derive(Debug, Default)]
pub struct PathTableReader {
    table: PathTable,
    /// How many lines there were.
    lines: usize,
    /// The LID of the node whose paths follow.
    from: Option<u16>,
}

impl PathTableReader {
    /// Takes the next line.
    ///
    /// # Errors
    /// If it is none of its kind, or gives a LID or a GUID to two nodes.
    pub fn line(&mut self, line: &str) -> Result<(), BadLine> {
        self.lines += 1;
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(head) =
            ["Channel Adapter", "Switch", "Router"].iter().find_map(|it| line.strip_prefix(it))
        {
            self.from = Some(self.table.node(self.lines, head)?);
        } else if !line.is_empty() {
            let from = self.from.ok_or_else(|| BadLine::new(self.lines, "a path before the first node"))?;
            self.table.path_line(self.lines, from, line)?;
        }
        Ok(())
    }

    /// What all lines say together. Of two lines for one path the last counts.
    pub fn finish(mut self) -> PathTable {
        for paths in self.table.paths.values_mut() {
            // The sort is stable: of several lines for one path the last comes first, and that one stays.
            paths.reverse();
            paths.sort_by_key(|&(to, _)| to);
            paths.dedup_by_key(|&mut (to, _)| to);
            paths.shrink_to_fit();
        }
        self.table
    }
}

impl PathTable {
    /// Reads a text.
    ///
    /// # Errors
    /// If a line is none of its kind, or gives a LID or a GUID to two nodes.
    pub fn parse(text: &str) -> Result<Self, BadLine> {
        let mut reader = PathTableReader::default();
        text.lines().try_for_each(|line| reader.line(line))?;
        Ok(reader.finish())
    }

    /// Takes the line that a block begins with, and returns the LID.
    fn node(&mut self, line: usize, head: &str) -> Result<u16, BadLine> {
        let mut parts = head.split(',').map(str::trim);
        let guid = parts.next().unwrap_or_default();
        let guid = number(guid).filter(|_| guid.starts_with("0x"));
        let lid = parts.find_map(|part| part.strip_prefix("base LID")).map(str::trim);
        let (Some(guid), Some(lid)) = (guid, lid) else {
            return Err(BadLine::new(line, "expected `0x<GUID>, base LID <LID>` behind the kind of node"));
        };
        let lid = self.lid(line, lid)?;
        if self.guids.insert(lid, guid).is_some_and(|other| other != guid) {
            return Err(BadLine::new(line, format!("LID {lid} belongs to another node already")));
        }
        if let Some(other) = self.lids.insert(guid, lid).filter(|&other| other != lid) {
            return Err(BadLine::new(line, format!("GUID {guid:#018x} has LID {other} already")));
        }
        Ok(lid)
    }

    fn path_line(&mut self, line: usize, from: u16, text: &str) -> Result<(), BadLine> {
        let words: Vec<&str> = text.split(':').map(str::trim).collect();
        let [lid, sl, mtu, rate] = words[..] else {
            return Err(BadLine::new(line, format!("{} is no `LID : SL : MTU : rate`", quoted(text))));
        };
        let to = self.lid(line, lid)?;
        let code = |word: &str| number(word).and_then(|code| u8::try_from(code).ok());
        let wrong = |what: &str, word: &str| BadLine::new(line, format!("{} is no {what}", quoted(word)));
        let sl = code(sl).filter(|&sl| sl < 16).ok_or_else(|| wrong("service level from 0 to 15", sl))?;
        let mtu =
            code(mtu).filter(|&mtu| mtu_bytes(mtu).is_some()).ok_or_else(|| wrong("code of an MTU", mtu))?;
        let rate = code(rate)
            .filter(|&rate| rate_mbps(rate).is_some())
            .ok_or_else(|| wrong("code of a rate", rate))?;
        self.paths.entry(from).or_default().push((to, Entry::new(sl, mtu, rate)));
        Ok(())
    }

    fn entry(&self, from: u16, to: u16) -> Option<Entry> {
        let paths = self.paths.get(&from)?;
        let at = paths.binary_search_by_key(&to, |&(to, _)| to).ok()?;
        Some(paths[at].1)
    }

    fn lid(&self, line: usize, word: &str) -> Result<u16, BadLine> {
        let lid = number(word).and_then(|lid| u16::try_from(lid).ok());
        lid.filter(|lid| (1..=LAST_LID).contains(lid))
            .ok_or_else(|| BadLine::new(line, format!("{} is no LID from 1 to {LAST_LID:#x}", quoted(word))))
    }

    /// How many paths there are.
    pub fn len(&self) -> usize {
        self.paths.values().map(Vec::len).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// The GID of the node with this LID.
    pub fn with_lid(&self, lid: u16) -> Option<Ipv6Addr> {
        self.guids.get(&lid).map(|&guid| Ipv6Addr::from(PREFIX | u128::from(guid)))
    }

    /// Whether some node has this GID.
    pub fn has_gid(&self, gid: Ipv6Addr) -> bool {
        self.lid_of(gid).is_some()
    }

    fn lid_of(&self, gid: Ipv6Addr) -> Option<u16> {
        // Whatever prefix the subnet has, the GUID is the lower half.
        self.lids.get(&((u128::from(gid) & u128::from(u64::MAX)) as u64)).copied()
    }

    /// The path from one GID to another in this partition.
    pub fn path(&self, sgid: Ipv6Addr, dgid: Ipv6Addr, pkey: u16) -> Option<PathRecord> {
        let (slid, dlid) = (self.lid_of(sgid)?, self.lid_of(dgid)?);
        let entry = self.entry(slid, dlid)?;
        Some(PathRecord {
            dgid,
            sgid,
            dlid,
            slid,
            // What is told of the way back decides whether the path is reversible.
            reversible: self.entry(dlid, slid).is_some_and(|back| back.sl() == entry.sl()),
            paths: 1,
            pkey,
            sl: entry.sl(),
            mtu: Selected::exactly(entry.mtu()),
            rate: Selected::exactly(entry.rate()),
            life_time: Selected::exactly(LIFE_TIME),
            ..PathRecord::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "# FULL\nSwitch 0x00000000000000aa, base LID 3, MTU 4\n0x0001 : 0  : 4  : 3\n\n\
        Channel Adapter 0x0002c90300000001, base LID 1, LMC 0, port GUID 0x0002c90300000001\n\
        # LID : SL : MTU : RATE\n0x0002 : 1  : 5  : 16\n0x0003 : 0 : 4 : 3\n\
        Channel Adapter 0x0002c90300000002, base LID 2, LMC 0\n0x0001 : 1 : 5 : 16\n";

    #[test]
    fn paths_are_found_by_gids() {
        let table = PathTable::parse(DUMP).unwrap();
        let gid = |lid| table.with_lid(lid).unwrap();
        let path = table.path(gid(1), gid(2), 0xffff).unwrap();
        assert_eq!((path.slid, path.dlid, path.sl, path.mtu.value, path.rate.value), (1, 2, 1, 5, 16));
        assert!(table.path(gid(2), gid(3), 0xffff).is_none() && table.len() == 4);
        let elsewhere: Ipv6Addr = "fec0::2:c903:0:2".parse().unwrap();
        assert!(table.has_gid(elsewhere) && !table.has_gid("fe80::1".parse().unwrap()));
    }

    #[test]
    fn a_path_is_reversible_if_the_way_back_has_the_same_service_level() {
        let back = "Switch 0x3, base LID 3\n1 : 0 : 4 : 3\nChannel Adapter 0x4, base LID 4\n1 : 2 : 4 : 3\n";
        let there = "Channel Adapter 0x1, base LID 1\n3 : 0 : 4 : 3\n4 : 1 : 4 : 3\n5 : 0 : 4 : 3\n";
        let table = PathTable::parse(&format!("{there}{back}Switch 0x5, base LID 5\n")).unwrap();
        let gid = |lid| table.with_lid(lid).unwrap();
        let is_reversible = |to| table.path(gid(1), gid(to), 0xffff).unwrap().reversible;
        // Level 0 both ways; level 1 there and level 2 back; no way back.
        assert_eq!([3, 4, 5].map(is_reversible), [true, false, false]);
    }

    #[test]
    fn of_two_lines_for_one_path_the_last_counts() {
        let text =
            "Switch 0x1, base LID 1\n3 : 1 : 4 : 3\n2 : 1 : 4 : 3\n2 : 2 : 5 : 24\nSwitch 0x2, base LID 2\n";
        let table = PathTable::parse(text).unwrap();
        let gid = |lid| table.with_lid(lid).unwrap();
        let path = table.path(gid(1), gid(2), 0xffff).unwrap();
        assert_eq!((table.len(), path.sl, path.mtu.value, path.rate.value), (2, 2, 5, 24));
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (text, said) in [
            ("1 : 0 : 4 : 3", "line 1: a path before the first node"),
            ("Switch 7, base LID 1", "line 1: expected `0x<GUID>"),
            ("Switch 0x7, LID 1", "line 1: expected `0x<GUID>"),
            ("Switch 0x7, base LID 0xc000", "line 1: `0xc000` is no LID"),
            ("Switch 0x7, base LID 1\nSwitch 0x8, base LID 1", "line 2: LID 1 belongs to another"),
            (
                "Switch 0x7, base LID 1\nSwitch 0x7, base LID 2",
                "line 2: GUID 0x0000000000000007 has LID 1 already",
            ),
            ("Switch 0x7, base LID 1\n1 : 0 : 4", "line 2: `1 : 0 : 4` is no `LID : SL"),
            ("Switch 0x7, base LID 1\n1 : 16 : 4 : 3", "line 2: `16` is no service level"),
            ("Switch 0x7, base LID 1\n1 : 0 : 6 : 3", "line 2: `6` is no code of an MTU"),
            ("Switch 0x7, base LID 1\n1 : 0 : 4 : 1", "line 2: `1` is no code of a rate"),
        ] {
            let error = PathTable::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }
}
