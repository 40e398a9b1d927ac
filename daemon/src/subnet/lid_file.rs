//! The LIDs that were given, in a file, in OpenSM's format (`guid2lid`): a line a port, with its GUID, and the first and
//! the last of its LIDs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, io};

use mapper_ib::lids::{LAST_LID, LidRange, Lids};
use mapper_machine::whole_file;
use thiserror::Error;
use tracing::warn;

use crate::agent::options::Config;

/// Why a file of LIDs cannot be used.
#[derive(Debug, Error)]
pub enum LidFileError {
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is no text.
    #[error("{} is no text, and so no file of LIDs; correct it, or take it away to have all LIDs given anew", path.display())]
    NoText {
        /// The file.
        path: PathBuf,
    },
    /// A line is none of OpenSM's.
    #[error(
        "{}:{line}: `{text}` is no port's LIDs; expected its GUID, its first and its last LID, as in \
         0x0002c90300a1b2c3 0x0001 0x0001; correct it, or take the file away to have all LIDs given anew",
        path.display()
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line.
        line: usize,
        /// What it says.
        text: String,
    },
}

/// The most bytes of a file that is read: three times as many lines as there are LIDs.
const MAX_BYTES: u64 = 8 << 20;

/// The greatest LMC.
const MOST_LMC: u32 = 7;

/// The file that keeps the LIDs.
#[derive(Debug)]
pub(super) struct LidFile {
    path: PathBuf,
}

impl LidFile {
    /// The file that is configured; else one in the state directory that the service manager gives, else in the run
    /// directory.
    pub(super) fn of(config: &Config) -> Self {
        let by_default = || {
            let state = env::var_os("STATE_DIRECTORY").filter(|directory| !directory.is_empty());
            let directory = state.map_or_else(|| config.service.run_dir.clone(), PathBuf::from);
            directory.join(format!("{}.lids", config.interface.replace(['/', ':'], "-")))
        };
        let path = config.subnet.lid_file.clone().unwrap_or_else(by_default);
        Self { path }
    }

    /// What was given before; nothing if there is no file.
    ///
    /// # Errors
    /// If it cannot be read, or a line is wrong.
    pub(super) fn read(&self) -> Result<Lids, LidFileError> {
        let failed = |source| LidFileError::Read { path: self.path.clone(), source };
        let bytes = match std::fs::metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Lids::default()),
            result => result.map_err(failed)?.len(),
        };
        if bytes > MAX_BYTES {
            return Err(failed(io::ErrorKind::FileTooLarge.into()));
        }
        let bytes = std::fs::read(&self.path).map_err(failed)?;
        let text = String::from_utf8(bytes).map_err(|_| LidFileError::NoText { path: self.path.clone() })?;
        parse(&self.path, &text)
    }

    /// Keeps what is given now. A failure is logged: the subnet works without, until the next start.
    pub(super) fn write(&self, lids: &Lids) {
        let line = |(guid, range): (&u64, &LidRange)| {
            format!("{guid:#018x} {:#06x} {:#06x}\n\n", range.first, range.last())
        };
        let text: String = lids.all().iter().map(line).collect();
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let made = folder.map_or(Ok(()), std::fs::create_dir_all);
        if let Err(error) = made.and_then(|()| whole_file::replace(&self.path, &text)) {
            warn!(path = %self.path.display(), %error, "the LIDs cannot be kept for the next start");
        }
    }
}

fn parse(path: &Path, text: &str) -> Result<Lids, LidFileError> {
    let mut given = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = || LidFileError::Line {
            path: path.to_owned(),
            line: number,
            text: mapper_proto::quote::visible(line),
        };
        let (guid, range) = port(line).ok_or_else(wrong)?;
        given.insert(guid, range);
    }
    Ok(Lids::new(given))
}

/// The GUID and the LIDs in a line. Of a range that no LMC makes, the LIDs that are too many do not count.
fn port(line: &str) -> Option<(u64, LidRange)> {
    let words: Vec<u64> = line.split_whitespace().map(number).collect::<Option<_>>()?;
    let &[guid, first, last] = &words[..] else { return None };
    if guid == 0 || first == 0 || first > last || last > LAST_LID.into() {
        return None;
    }
    let lmc = (last - first + 1).ilog2().min(first.trailing_zeros()).min(MOST_LMC);
    Some((guid, LidRange { first: u16::try_from(first).ok()?, lmc: lmc as u8 }))
}

fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lids_come_back_from_their_file_and_a_wrong_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = LidFile { path: folder.path().join("state").join("lids") };
        assert_eq!(file.read().unwrap(), Lids::default());
        let wide = LidRange { first: 2, lmc: 1 };
        let single = LidRange { first: 0x4000, lmc: 0 };
        let lids = Lids::new(BTreeMap::from([(0x10, wide), (0x0002_c903_00a1_b2c3, single)]));
        file.write(&lids);
        assert_eq!(file.read().unwrap(), lids);
        let text = std::fs::read_to_string(&file.path).unwrap();
        assert!(text.starts_with("0x0000000000000010 0x0002 0x0003\n\n"), "as OpenSM writes it: {text}");
        assert!(text.ends_with(" 0x4000 0x4000\n\n"), "{text}");
        for wrong in ["0x10 0x0 0x0", "0x10 2", "x 1 1", "0x10 0xc000 0xc000", "0 1 1"] {
            std::fs::write(&file.path, format!("# so\n{wrong}\n")).unwrap();
            let told = file.read().unwrap_err().to_string();
            assert!(told.contains(&format!("lids:2: `{wrong}` is no port's LIDs")), "{told}");
        }
        std::fs::write(&file.path, [0x30, 0xFF, 0x0A]).unwrap();
        let told = file.read().unwrap_err().to_string();
        assert!(told.contains("lids is no text, and so no file of LIDs"), "{told}");
    }
}
