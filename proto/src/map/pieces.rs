//! A map cut into pieces that fit a message, and put together again.
//!
//! A piece is its kind (u8), how many entries it has (u16), and the entries. Pieces stand in the
//! order hosts, xbars, cables, contested ports, rules, frame sizes, lossy cables; the entries of all pieces of a kind, one after the
//! other, are that part of the map. A map without hosts has one empty piece of hosts.
//!
//! - a host, 11 bytes: MAC, level, host type, xbar (u16, 0xffff without a place), port;
//! - an xbar, 2 or 10 bytes: ports, flags (tagged, port numbers known), the tag if it has one;
//! - a run of cables, 3 + 4n bytes: xbar (u16), how many (u8), then for each: its port, the other
//!   end's xbar (u16) and port;
//! - a contested port, 9 bytes: MAC, xbar (u16), port;
//! - a rule, 6 bytes: the MAC of a host with `non-clos`, if the global mapper has it not; if it has,
//!   pieces of another kind list it, and then the hosts without;
//! - how long frames may be, 12 bytes, if hosts differ: MAC, MTU (u16), ports (u32). First the MAC of nobody with
//!   the greatest MTU, then the hosts with less;
//! - a run of lossy cables, as of cables.
//!
//! One map has one encoding for a piece size.

use thiserror::Error;

use super::{Cable, Contested, FrameSizes, Host, LinkMtu, Map, MapDefect, MapVersion, PortRef, Xbar};
use crate::wire::Answer;
use crate::wire::cursor::{Unreadable, WireReader, Write};
use crate::{Mac, PortSet};

/// The kinds of pieces, in the order in which they stand.
mod kind {
    pub(super) const HOSTS: u8 = 1;
    pub(super) const XBARS: u8 = 2;
    pub(super) const CABLES: u8 = 3;
    pub(super) const CONTESTED: u8 = 4;
    pub(super) const WITH_NON_CLOS: u8 = 5;
    pub(super) const ALL_BUT_NON_CLOS: u8 = 6;
    pub(super) const FRAME_SIZES: u8 = 7;
    pub(super) const LOSSY: u8 = 8;
}

/// Bytes of a piece before its entries: kind and count.
const HEADER_BYTES: usize = 3;
/// The longest entry: a run of one cable is shorter, and longer runs are cut.
const LONGEST_ENTRY_BYTES: usize = 11;
/// The xbar of a host that has no place.
const NO_XBAR: u16 = u16::MAX;

const FLAG_TAGGED: u8 = 0x01;
const FLAG_PORTS_KNOWN: u8 = 0x02;

/// Pieces that make no map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PieceError {
    /// No pieces, or more than [`Assembly::MAX_PIECES`].
    #[error("a map cannot have {0} pieces; 1 to {max} are possible", max = Assembly::MAX_PIECES)]
    BadCount(u16),
    /// A piece beyond the number of pieces.
    #[error("there is no piece {0}")]
    NoSuchPiece(u16),
    /// A piece longer than [`Answer::MAX_PIECE_BYTES`], or empty.
    #[error("piece {piece} has {bytes} bytes")]
    BadLength {
        /// Which piece.
        piece: u16,
        /// How long it is.
        bytes: usize,
    },
    /// Some pieces are missing.
    #[error("piece {0} is missing")]
    Missing(u16),
    /// A piece whose fields make no sense.
    #[error("piece {0} is malformed")]
    Malformed(u16),
    /// The pieces are whole, but what they say is no map.
    #[error("the map makes no sense: {0}")]
    Defect(#[from] MapDefect),
}

/// Cuts a map into pieces of at most `piece_bytes` bytes each (no fewer than 32, no more than
/// [`Answer::MAX_PIECE_BYTES`]).
///
/// The map must pass [`Map::check`]; otherwise the pieces will not go together again.
pub fn encode_pieces(map: &Map, piece_bytes: usize) -> Vec<Vec<u8>> {
    let mut cutter = Cutter {
        most_bytes: piece_bytes.clamp(32, Answer::MAX_PIECE_BYTES),
        done: Vec::new(),
        piece: vec![kind::HOSTS, 0, 0],
        entries: 0,
    };
    for host in &map.hosts {
        cutter.entry(LONGEST_ENTRY_BYTES, |out| write_host(host, out));
    }
    cutter.next_kind(kind::XBARS);
    for xbar in &map.xbars {
        cutter.entry(LONGEST_ENTRY_BYTES, |out| write_xbar(xbar, out));
    }
    cutter.next_kind(kind::CABLES);
    cutter.cables(&map.cables);
    cutter.next_kind(kind::CONTESTED);
    for contested in &map.contested {
        cutter.entry(CONTESTED_BYTES, |out| write_contested(contested, out));
    }
    cutter.next_kind(if map.rules.non_clos { kind::ALL_BUT_NON_CLOS } else { kind::WITH_NON_CLOS });
    let leader = map.hosts.first().filter(|_| map.rules.non_clos).map(|host| host.mac);
    for mac in leader.iter().chain(&map.rules.differ) {
        cutter.entry(RULE_BYTES, |out| out.put_mac(*mac));
    }
    cutter.next_kind(kind::FRAME_SIZES);
    let FrameSizes { longest, less } = &map.frame_sizes;
    let longest = (*longest > 0).then_some((Mac::NOBODY, LinkMtu { bytes: *longest, ports: PortSet::NONE }));
    for entry in longest.iter().chain(less) {
        cutter.entry(FRAME_SIZE_BYTES, |out| write_frame_size(entry, out));
    }
    cutter.next_kind(kind::LOSSY);
    cutter.cables(&map.lossy);
    cutter.finish()
}

const RULE_BYTES: usize = 6;
const FRAME_SIZE_BYTES: usize = 12;
const RUN_HEADER_BYTES: usize = 3;
const CABLE_BYTES: usize = 4;
const CONTESTED_BYTES: usize = 9;

/// Fills one piece after the other.
struct Cutter {
    most_bytes: usize,
    done: Vec<Vec<u8>>,
    piece: Vec<u8>,
    entries: u16,
}

impl Cutter {
    /// How many bytes still fit the piece, after a new one was begun if it is fewer than `least`.
    fn room_bytes(&mut self, least: usize) -> usize {
        if self.piece.len() + least > self.most_bytes {
            self.next_piece(self.piece[0]);
        }
        self.most_bytes - self.piece.len()
    }

    fn entry(&mut self, bytes: usize, write: impl FnOnce(&mut Vec<u8>)) {
        self.room_bytes(bytes);
        write(&mut self.piece);
        self.entries += 1;
    }

    /// Runs of cables.
    fn cables(&mut self, cables: &[Cable]) {
        for of_xbar in cables.chunk_by(|x, y| x.a.xbar == y.a.xbar) {
            let mut rest = of_xbar;
            while !rest.is_empty() {
                let room = self.room_bytes(RUN_HEADER_BYTES + CABLE_BYTES) - RUN_HEADER_BYTES;
                let (run, later) =
                    rest.split_at(rest.len().min(room / CABLE_BYTES).min(usize::from(u8::MAX)));
                self.entry(RUN_HEADER_BYTES + CABLE_BYTES * run.len(), |out| write_run(run, out));
                rest = later;
            }
        }
    }

    fn next_kind(&mut self, kind: u8) {
        // The first piece stands even if there are no hosts.
        if self.entries > 0 || self.piece[0] == kind::HOSTS {
            self.next_piece(kind);
        } else {
            self.piece[0] = kind;
        }
    }

    fn next_piece(&mut self, kind: u8) {
        self.piece[1..HEADER_BYTES].copy_from_slice(&self.entries.to_be_bytes());
        let mut next = Vec::with_capacity(self.most_bytes);
        next.extend([kind, 0, 0]);
        self.done.push(std::mem::replace(&mut self.piece, next));
        self.entries = 0;
    }

    fn finish(mut self) -> Vec<Vec<u8>> {
        if self.entries > 0 {
            self.next_piece(kind::LOSSY);
        }
        self.done
    }
}

fn xbar_index(index: u32) -> u16 {
    u16::try_from(index).unwrap_or(NO_XBAR)
}

fn write_host(host: &Host, out: &mut Vec<u8>) {
    let Host { mac, level, host_type, at } = *host;
    out.put_mac(mac);
    out.put_u8(level);
    out.put_u8(host_type);
    out.put_u16(at.map_or(NO_XBAR, |at| xbar_index(at.xbar)));
    out.put_u8(at.map_or(0, |at| at.port));
}

fn read_host(reader: &mut WireReader<'_>) -> Result<Host, Unreadable> {
    let (mac, level, host_type) = (reader.mac()?, reader.u8()?, reader.u8()?);
    let at = match (reader.u16()?, reader.u8()?) {
        (NO_XBAR, 0) => None,
        (NO_XBAR, _) => return Err(Unreadable),
        (xbar, port) => Some(PortRef { xbar: u32::from(xbar), port }),
    };
    Ok(Host { mac, level, host_type, at })
}

fn write_xbar(xbar: &Xbar, out: &mut Vec<u8>) {
    let Xbar { ports, tag, ports_known } = *xbar;
    let tagged = if tag.is_some() { FLAG_TAGGED } else { 0 };
    let known = if ports_known { FLAG_PORTS_KNOWN } else { 0 };
    out.put_u8(ports);
    out.put_u8(tagged | known);
    if let Some(tag) = tag {
        out.put_u64(tag);
    }
}

fn read_xbar(reader: &mut WireReader<'_>) -> Result<Xbar, Unreadable> {
    let (ports, flags) = (reader.u8()?, reader.u8()?);
    if flags & !(FLAG_TAGGED | FLAG_PORTS_KNOWN) != 0 {
        return Err(Unreadable);
    }
    let tag = if flags & FLAG_TAGGED == 0 { None } else { Some(reader.u64()?) };
    Ok(Xbar { ports, tag, ports_known: flags & FLAG_PORTS_KNOWN != 0 })
}

/// Writes cables whose smaller ends are at one xbar.
fn write_run(run: &[Cable], out: &mut Vec<u8>) {
    let Some(first) = run.first() else { return };
    out.put_u16(xbar_index(first.a.xbar));
    out.put_u8(run.len() as u8);
    for Cable { a, b } in run {
        out.put_u8(a.port);
        out.put_u16(xbar_index(b.xbar));
        out.put_u8(b.port);
    }
}

fn read_run(reader: &mut WireReader<'_>, cables: &mut Vec<Cable>) -> Result<(), Unreadable> {
    let (xbar, count) = (u32::from(reader.u16()?), reader.u8()?);
    if count == 0 {
        return Err(Unreadable);
    }
    for _ in 0..count {
        let a = PortRef { xbar, port: reader.u8()? };
        let b = PortRef { xbar: u32::from(reader.u16()?), port: reader.u8()? };
        cables.push(Cable { a, b });
    }
    Ok(())
}

fn write_contested(Contested { mac, at }: &Contested, out: &mut Vec<u8>) {
    out.put_mac(*mac);
    out.put_u16(xbar_index(at.xbar));
    out.put_u8(at.port);
}

fn read_contested(reader: &mut WireReader<'_>) -> Result<Contested, Unreadable> {
    let mac = reader.mac()?;
    Ok(Contested { mac, at: PortRef { xbar: u32::from(reader.u16()?), port: reader.u8()? } })
}

/// Reads a rule of a map whose global mapper has `non-clos`; the first names that one.
fn read_rule(mac: Mac, map: &mut Map) -> Result<(), Unreadable> {
    if map.rules.non_clos {
        map.rules.differ.push(mac);
        return Ok(());
    }
    if !map.rules.differ.is_empty() || map.hosts.first().is_none_or(|host| host.mac != mac) {
        return Err(Unreadable);
    }
    map.rules.non_clos = true;
    Ok(())
}

fn write_frame_size((mac, mtu): &(Mac, LinkMtu), out: &mut Vec<u8>) {
    out.put_mac(*mac);
    mtu.write(out);
}

/// Reads how long frames may be at a host; the first says how long they can be at all.
fn read_frame_size(reader: &mut WireReader<'_>, sizes: &mut FrameSizes) -> Result<(), Unreadable> {
    let (mac, mtu) = (reader.mac()?, LinkMtu::read(reader)?);
    match (mac, sizes.longest) {
        (Mac::NOBODY, 0) if mtu.ports.is_empty() && mtu.bytes > 0 => sizes.longest = mtu.bytes,
        (Mac::NOBODY, _) | (_, 0) => return Err(Unreadable),
        (host, _) => sizes.less.push((host, mtu)),
    }
    Ok(())
}

/// The pieces of one map on their way in.
///
/// Memory is bounded by [`Assembly::MAX_PIECES`] times [`Answer::MAX_PIECE_BYTES`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assembly {
    version: MapVersion,
    pieces: Vec<Option<Vec<u8>>>,
    missing: usize,
}

impl Assembly {
    /// Most pieces of a map.
    pub const MAX_PIECES: u16 = 4096;

    /// Room for a map of this version in this many pieces.
    ///
    /// # Errors
    /// [`PieceError::BadCount`] if there are none or too many.
    pub fn new(version: MapVersion, pieces: u16) -> Result<Self, PieceError> {
        if pieces == 0 || pieces > Self::MAX_PIECES {
            return Err(PieceError::BadCount(pieces));
        }
        Ok(Self { version, pieces: vec![None; usize::from(pieces)], missing: usize::from(pieces) })
    }

    /// Which map it will be.
    pub const fn version(&self) -> MapVersion {
        self.version
    }

    /// How many pieces the map has.
    pub fn pieces(&self) -> u16 {
        self.pieces.len() as u16
    }

    /// Takes in a piece. Says whether it was missing; one that is there already is left as it is.
    ///
    /// # Errors
    /// If there is no such piece, or the bytes are none or too many.
    pub fn insert(&mut self, index: u16, bytes: Vec<u8>) -> Result<bool, PieceError> {
        let slot = self.pieces.get_mut(usize::from(index)).ok_or(PieceError::NoSuchPiece(index))?;
        if bytes.is_empty() || bytes.len() > Answer::MAX_PIECE_BYTES {
            return Err(PieceError::BadLength { piece: index, bytes: bytes.len() });
        }
        if slot.is_some() {
            return Ok(false);
        }
        *slot = Some(bytes);
        self.missing -= 1;
        Ok(true)
    }

    /// The pieces that are not yet there, in rising order.
    pub fn missing(&self) -> impl Iterator<Item = u16> + '_ {
        (0..).zip(&self.pieces).filter(|(_, piece)| piece.is_none()).map(|(index, _)| index)
    }

    /// Whether all pieces are there.
    pub const fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// Puts the map together.
    ///
    /// # Errors
    /// If a piece is missing or malformed, or the map does not pass [`Map::check`].
    pub fn finish(&self) -> Result<Map, PieceError> {
        match self.missing().next() {
            Some(index) => Err(PieceError::Missing(index)),
            None => put_together(self.version, self.pieces.iter().flatten()),
        }
    }

    /// The pieces themselves, to be handed on; those that are missing are left out.
    pub fn into_pieces(self) -> Vec<Vec<u8>> {
        self.pieces.into_iter().flatten().collect()
    }
}

/// Puts the pieces of a map together.
///
/// # Errors
/// If there are no pieces, a piece is malformed, or the map does not pass [`Map::check`].
pub fn decode_pieces(version: MapVersion, pieces: &[Vec<u8>]) -> Result<Map, PieceError> {
    if pieces.is_empty() {
        return Err(PieceError::BadCount(0));
    }
    put_together(version, pieces.iter())
}

fn put_together<'a>(
    version: MapVersion,
    pieces: impl Iterator<Item = &'a Vec<u8>>,
) -> Result<Map, PieceError> {
    let mut map = Map { version, ..Map::default() };
    let mut last_kind = kind::HOSTS;
    for (index, piece) in (0..).zip(pieces) {
        let malformed = PieceError::Malformed(index);
        let no_hosts = map.hosts.is_empty();
        let (kind, entries) = read_piece(piece, &mut map).map_err(|Unreadable| malformed)?;
        // Hosts begin with the first piece, and only the first may say that there are none.
        let in_place = if index == 0 {
            kind == kind::HOSTS
        } else {
            kind >= last_kind && entries > 0 && !(kind == kind::HOSTS && no_hosts)
        };
        if !in_place {
            return Err(malformed);
        }
        last_kind = kind;
    }
    map.check()?;
    Ok(map)
}

/// Adds what one piece says to the map. Returns the piece's kind and how many entries it has.
fn read_piece(piece: &[u8], map: &mut Map) -> Result<(u8, u16), Unreadable> {
    let mut reader = WireReader::new(piece);
    let (kind, count) = (reader.u8()?, reader.u16()?);
    for _ in 0..count {
        match kind {
            kind::HOSTS => map.hosts.push(read_host(&mut reader)?),
            kind::XBARS => map.xbars.push(read_xbar(&mut reader)?),
            kind::CABLES => read_run(&mut reader, &mut map.cables)?,
            kind::CONTESTED => map.contested.push(read_contested(&mut reader)?),
            kind::WITH_NON_CLOS => map.rules.differ.push(reader.mac()?),
            kind::ALL_BUT_NON_CLOS => read_rule(reader.mac()?, map)?,
            kind::FRAME_SIZES => read_frame_size(&mut reader, &mut map.frame_sizes)?,
            kind::LOSSY => read_run(&mut reader, &mut map.lossy)?,
            _ => return Err(Unreadable),
        }
    }
    reader.finish()?;
    Ok((kind, count))
}

#[cfg(test)]
mod tests;
