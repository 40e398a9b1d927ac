//! The cache as a file.
//!
//! A line `mapper.unicast-cache/2 HEADER TABLES LAYERS CHECKSUM` with three lengths in bytes and the CRC-32 of
//! what follows; the fabric as JSON; the tables, a byte an entry, as [`Tables::to_ports`]; the layers, a byte a pair of
//! xbars, unless all is in layer 0.
//!
//! [`Tables::to_ports`]: crate::Tables::to_ports

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use thiserror::Error;

use super::UnicastCache;
use super::held::Held;

const MAGIC: &str = "mapper.unicast-cache/2";
/// Longest first line.
const MAX_LINE_BYTES: u64 = 256;
/// Most bytes of the fabric: 65,536 hosts take about 16 MB.
const MAX_HEADER_BYTES: usize = 128 << 20;
/// Most bytes of tables and layers: those of 65,536 hosts on 6,144 xbars take 440 MB.
const MAX_TABLE_BYTES: usize = 2 << 30;

/// Why a file gives no cache.
#[derive(Debug, Error)]
pub enum CacheFileError {
    /// It cannot be read.
    #[error("it cannot be read")]
    Unreadable(#[from] io::Error),
    /// It is something else.
    #[error("it is no unicast cache of this version")]
    Foreign,
    /// It was cut off, or changed.
    #[error("it is damaged")]
    Damaged,
}

impl UnicastCache {
    /// Reads a cache; none if there is no file.
    ///
    /// # Errors
    /// If the file cannot be read, or is no cache. It can be replaced by a new one then.
    pub fn read(path: &Path) -> Result<Option<Self>, CacheFileError> {
        match File::open(path) {
            Ok(file) => Self::read_from(&mut BufReader::new(file)).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads a cache.
    ///
    /// # Errors
    /// If the bytes are no cache.
    pub fn read_from(input: &mut impl BufRead) -> Result<Self, CacheFileError> {
        let mut line = Vec::new();
        input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
        let line = String::from_utf8(line).map_err(|_| CacheFileError::Foreign)?;
        let words: Vec<&str> = line.strip_suffix('\n').ok_or(CacheFileError::Foreign)?.split(' ').collect();
        let &[MAGIC, header, tables, layers, sum] = &words[..] else {
            return Err(CacheFileError::Foreign);
        };
        let header = read_part(input, header, MAX_HEADER_BYTES)?;
        let ports = read_part(input, tables, MAX_TABLE_BYTES)?;
        let layers = read_part(input, layers, MAX_TABLE_BYTES)?;
        let nothing_follows = input.fill_buf()?.is_empty();
        if !nothing_follows || checksum([&header, &ports, &layers]) != sum {
            return Err(CacheFileError::Damaged);
        }
        let held: Held = serde_json::from_slice(&header).map_err(|_| CacheFileError::Damaged)?;
        let xbars = held.xbars.len();
        let pairs = if held.has_layers() { xbars * xbars } else { 0 };
        let sized = ports.len() == xbars * held.slot_count as usize && layers.len() == pairs;
        if !sized || !held.is_sound() {
            return Err(CacheFileError::Damaged);
        }
        Ok(Self { held, ports, layers })
    }

    /// Writes the cache.
    ///
    /// # Errors
    /// If `out` cannot take it.
    pub fn write_to(&self, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        let header = serde_json::to_vec(&self.held)?;
        let sum = checksum([&header, &self.ports, &self.layers]);
        writeln!(out, "{MAGIC} {} {} {} {sum}", header.len(), self.ports.len(), self.layers.len())?;
        out.write_all(&header)?;
        out.write_all(&self.ports)?;
        out.write_all(&self.layers)
    }
}

/// Reads as many bytes as a word says. A word that promises more bytes than there are takes no memory for
/// them.
fn read_part(input: &mut impl BufRead, length: &str, most: usize) -> Result<Vec<u8>, CacheFileError> {
    let length: usize = length.parse().map_err(|_| CacheFileError::Damaged)?;
    if length > most {
        return Err(CacheFileError::Damaged);
    }
    let mut bytes = Vec::new();
    input.by_ref().take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() == length { Ok(bytes) } else { Err(CacheFileError::Damaged) }
}

/// The checksum shows damage, and does not protect against forgery: whatever is read is compared with the
/// fabric and proved anyway.
fn checksum(parts: [&[u8]; 3]) -> String {
    let mut checksum = crc32fast::Hasher::new();
    parts.iter().for_each(|part| checksum.update(part));
    format!("{:08x}", checksum.finalize())
}
