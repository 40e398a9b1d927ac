//! The record of all datagrams, if one is wanted: a line each, as [`mapper_ib::record`] has it.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use mapper_ib::Packet;
use mapper_ib::record::{Direction, Recorded};
use mapper_proto::Instant;
use tracing::warn;

/// The most bytes of a record, so that one that is forgotten fills no disk. It is room for a million datagrams.
const MAX_BYTES: u64 = 1 << 30;

/// The file of the record.
#[derive(Debug)]
pub(super) struct RecordFile {
    path: PathBuf,
    /// `None` once it is full, or could not be written.
    file: Option<BufWriter<File>>,
    written: u64,
}

impl RecordFile {
    /// Begins a record, in place of one that is there. Nobody else may read it, as it has the key of management.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        Ok(Self { path: path.to_owned(), file: Some(BufWriter::new(file)), written: 0 })
    }

    /// Adds a datagram.
    pub(super) fn add(&mut self, at: Instant, direction: Direction, packet: &Packet) {
        let Some(file) = &mut self.file else { return };
        let line = format!("{}\n", Recorded { at, direction, packet: packet.clone() });
        self.written += line.len() as u64;
        let added = match self.written > MAX_BYTES {
            true => Err(io::ErrorKind::FileTooLarge.into()),
            false => file.write_all(line.as_bytes()),
        };
        self.end_upon(added);
    }

    /// Hands all to the system, so that whoever reads the file sees it.
    pub(super) fn flush(&mut self) {
        if let Some(file) = &mut self.file {
            let flushed = file.flush();
            self.end_upon(flushed);
        }
    }

    fn end_upon(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            warn!(path = %self.path.display(), %error, "the record of datagrams ends here");
            self.file = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use mapper_ib::Address;
    use mapper_ib::mad::MAD_BYTES;

    #[test]
    fn a_record_is_for_its_owner_alone_and_has_a_line_for_each_datagram() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        let mut file = RecordFile::create(&path).unwrap();
        let packet = Packet { address: Address::Directed, mad: [0; MAD_BYTES] };
        file.add(Instant::ZERO, Direction::Sent, &packet);
        file.add(Instant::ZERO, Direction::Received, &packet);
        file.flush();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let text = std::fs::read_to_string(&path).unwrap();
        let read: Vec<Recorded> = text.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(
            read.iter().map(|line| line.direction).collect::<Vec<_>>(),
            [Direction::Sent, Direction::Received]
        );
        assert!(RecordFile::create(&folder.path().join("nonexistent/record")).is_err());
    }
}
