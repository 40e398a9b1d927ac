//! Replaces a file as a whole, so that whoever reads it sees the old text or the new one.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Replaces the file's text. If that fails, for example for lack of room, the old text stays.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let beside = beside(path)?;
    let result = write_synced(&beside, text).and_then(|()| std::fs::rename(&beside, path));
    if result.is_err() {
        // The error that is returned is the first one, whether or not this one fails as well.
        let _may_not_be_there = std::fs::remove_file(&beside);
    }
    result
}

/// Checks that the file can be replaced, before there is anything to write.
pub fn check(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let beside = beside(path)?;
    File::create(&beside)?;
    std::fs::remove_file(&beside)
}

/// The path of the new file that is renamed to `path`.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_owned();
    name.push(format!(".{}.new", std::process::id()));
    Ok(path.with_file_name(name))
}

fn write_synced(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_leaves_the_old_text_whole_and_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("text");
        replace(&path, "old").unwrap();
        // A directory stands where the new text is to be written first.
        let beside = beside(&path).unwrap();
        std::fs::create_dir(&beside).unwrap();
        assert!(replace(&path, "new").is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        std::fs::remove_dir(&beside).unwrap();
        replace(&path, "new").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_found_out_before() {
        let dir = tempfile::tempdir().unwrap();
        check(&dir.path().join("text")).unwrap();
        assert!(check(dir.path()).is_err());
        assert!(check(&dir.path().join("nowhere").join("text")).is_err());
    }
}
