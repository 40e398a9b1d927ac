//! Long files of lines, read in blocks that are parsed on all cores.
//!
//! Tables of a large fabric are gigabytes of text. So no file is held in memory as a whole, and none is
//! refused for its length: what bounds the work is the fabric that it is read for.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

pub(super) use mapper_proto::quote::quoted;
use rayon::prelude::*;

use super::{FormatError, Malformed};

/// Bytes that are parsed at once by one core. A line must fit.
const BLOCK_BYTES: usize = 1 << 20;

/// The most blocks that are parsed while those before are taken, which one core does: more would wait and hold memory.
const MOST_BLOCKS: usize = 32;

/// Whole lines of a file.
pub(super) struct Block {
    /// The number of the first line.
    pub(super) first_line: usize,
    bytes: Vec<u8>,
}

impl Block {
    /// The lines, with their numbers and without what ends them.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let text = self.bytes.strip_suffix(b"\n").unwrap_or(&self.bytes);
        let lines = (!self.bytes.is_empty()).then(|| text.split(|&byte| byte == b'\n'));
        let bare = |line: &'_ [u8]| line.len() - usize::from(line.last() == Some(&b'\r'));
        (self.first_line..).zip(lines.into_iter().flatten()).map(move |(n, line)| (n, &line[..bare(line)]))
    }
}

/// Reads a file in blocks of whole lines. `parse` makes something of each block, on all cores; `take` gets
/// what it made, in the order of the file, and stops the reading by an error.
///
/// # Errors
/// If the file cannot be read or has a line longer than a block; and `take`'s.
pub(super) fn read<T: Send>(
    path: &Path,
    parse: impl Fn(&Block) -> T + Sync,
    mut take: impl FnMut(T) -> Result<(), Malformed> + Send,
) -> Result<(), FormatError> {
    let malformed = |wrong: Malformed| wrong.in_file(&path.display().to_string());
    let file = File::open(path);
    let mut blocks =
        Blocks::new(file.map_err(|source| FormatError::Unreadable { path: path.to_owned(), source })?);
    let mut batch = blocks.batch();
    let mut parsed: Vec<T> = Vec::new();
    loop {
        // While some cores parse, one takes what was parsed before and reads what comes after.
        let before = std::mem::take(&mut parsed);
        let take_and_read = || {
            before.into_iter().try_for_each(&mut take)?;
            Ok(batch.end.is_none().then(|| blocks.batch()))
        };
        let next: Result<Option<Batch>, Malformed>;
        (next, parsed) = rayon::join(take_and_read, || batch.blocks.par_iter().map(&parse).collect());
        match next.map_err(malformed)? {
            Some(next) => batch = next,
            None => break,
        }
    }
    parsed.into_iter().try_for_each(&mut take).map_err(malformed)?;
    match batch.end {
        None | Some(End::OfFile) => Ok(()),
        Some(End::TooLong(line)) => {
            let problem = format!("a line longer than {BLOCK_BYTES} bytes; expected a text file");
            Err(malformed(Malformed::at(line, problem)))
        }
        Some(End::Unreadable(source)) => Err(FormatError::Unreadable { path: path.to_owned(), source }),
    }
}

/// Blocks that follow each other, enough for all cores, or [`MOST_BLOCKS`].
struct Batch {
    blocks: Vec<Block>,
    /// Why no more blocks follow.
    end: Option<End>,
}

/// Why no more blocks follow.
enum End {
    OfFile,
    /// The line with this number is too long.
    TooLong(usize),
    Unreadable(io::Error),
}

/// Cuts a file into blocks at the ends of lines.
struct Blocks<R> {
    file: R,
    /// The beginning of a line whose end is in the next block.
    rest: Vec<u8>,
    next_line: usize,
}

impl<R: Read> Blocks<R> {
    fn new(file: R) -> Self {
        Self { file, rest: Vec::new(), next_line: 1 }
    }

    fn batch(&mut self) -> Batch {
        let mut blocks = Vec::new();
        for _ in 0..MOST_BLOCKS.min(2 * rayon::current_num_threads()) {
            match self.next() {
                Ok(block) => blocks.push(block),
                Err(end) => return Batch { blocks, end: Some(end) },
            }
        }
        Batch { blocks, end: None }
    }

    fn next(&mut self) -> Result<Block, End> {
        let mut bytes = std::mem::take(&mut self.rest);
        let wanted = (BLOCK_BYTES - bytes.len()) as u64;
        let read = self.file.by_ref().take(wanted).read_to_end(&mut bytes).map_err(End::Unreadable)?;
        let at_end = (read as u64) < wanted;
        let end = match bytes.iter().rposition(|&byte| byte == b'\n') {
            _ if at_end => bytes.len(),
            Some(last) => last + 1,
            None => return Err(End::TooLong(self.next_line)),
        };
        if bytes.is_empty() {
            return Err(End::OfFile);
        }
        self.rest = bytes.split_off(end);
        let first_line = self.next_line;
        self.next_line += bytes.iter().filter(|&&byte| byte == b'\n').count();
        Ok(Block { first_line, bytes })
    }
}

/// The hexadecimal number after `0x` that a text begins with, and what follows it. At most 16 digits.
pub(super) fn hex(text: &[u8]) -> Option<(u64, &[u8])> {
    let [b'0', b'x', digits @ ..] = text else {
        return None;
    };
    let length = digits.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    if !(1..=16).contains(&length) {
        return None;
    }
    let value = digits[..length].iter().fold(0, |value, &digit| {
        let digit = if digit.is_ascii_digit() { digit - b'0' } else { (digit | 0x20) - b'a' + 10 };
        value << 4 | u64::from(digit)
    });
    Some((value, &digits[length..]))
}

/// The decimal number that a text begins with, and what follows it. At most 9 digits.
pub(super) fn decimal(text: &[u8]) -> Option<(u32, &[u8])> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=9).contains(&length) {
        return None;
    }
    let value = text[..length].iter().fold(0, |value, &digit| value * 10 + u32::from(digit - b'0'));
    Some((value, &text[length..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_lines(text: &[u8]) -> Result<Vec<(usize, Vec<u8>)>, FormatError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        std::fs::write(&path, text).unwrap();
        let mut all = Vec::new();
        let parse = |block: &Block| block.lines().map(|(n, line)| (n, line.to_vec())).collect::<Vec<_>>();
        read(&path, parse, |lines| {
            all.extend(lines);
            Ok(())
        })?;
        Ok(all)
    }

    #[test]
    fn every_line_comes_once_with_its_number() {
        assert!(read_lines(b"").unwrap().is_empty());
        let expected = vec![(1, b"a".to_vec()), (2, Vec::new()), (3, b"b".to_vec())];
        assert_eq!(read_lines(b"a\n\nb").unwrap(), expected);
        assert_eq!(read_lines(b"a\r\n\r\nb\n").unwrap(), expected);
        let long: Vec<u8> = (0..400_000).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
        let lines = read_lines(&long).unwrap();
        assert_eq!(lines.len(), 400_000);
        for (n, (number, line)) in lines.iter().enumerate() {
            assert_eq!((*number, line), (n + 1, &format!("line {n}").into_bytes()));
        }
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut text = b"one\n".to_vec();
        text.resize(3 * BLOCK_BYTES, b'x');
        let error = read_lines(&text).unwrap_err().to_string();
        assert!(error.ends_with(":2: a line longer than 1048576 bytes; expected a text file"), "{error}");
    }

    #[test]
    fn numbers_are_read_as_far_as_they_go() {
        assert_eq!(hex(b"0x00fF rest"), Some((255, &b" rest"[..])));
        assert_eq!((hex(b"0x"), hex(b"12"), hex(b"0x11111111222222223")), (None, None, None));
        assert_eq!(decimal(b"017 #"), Some((17, &b" #"[..])));
        assert_eq!((decimal(b"x"), decimal(b"1234567890")), (None, None));
    }
}
