//! Changes a file that belongs to the machine and that others change too, as /etc/hosts.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;

/// The most bytes of such a file.
const MOST_BYTES: u64 = 64 << 20;
/// How often a change is tried anew, as others changed the file meanwhile.
const TRIES: usize = 8;

/// Changes the text of the file as `change` says, of the text that it has; a file that is not there has none.
///
/// The file is replaced as a whole where that can be: then whoever reads it sees the old text or the new one. Where
/// it is a mount of its own, has attributes that would be lost, or its folder or owner allows no other, the
/// text is written into the file as it stands.
///
/// # Errors
/// If the file cannot be read or written, or `change` refuses.
pub fn change(
    path: &Path,
    mut change: impl FnMut(&[u8]) -> Result<Vec<u8>, io::Error>,
) -> Result<(), io::Error> {
    // A link stays, and what it leads to is changed.
    let path = match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        path => path?,
    };
    for _ in 0..TRIES {
        let (text, seen) = read(&path)?;
        let new = change(&text)?;
        if new == text {
            return Ok(());
        }
        match replace(&path, seen.as_ref(), &new) {
            Ok(Replaced::Done) => return Ok(()),
            Ok(Replaced::ChangedMeanwhile) => {}
            Ok(Replaced::InPlaceOnly) => return write_in_place(&path, &new),
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "others keep changing it"))
}

/// What came of an attempt to replace a file.
enum Replaced {
    Done,
    ChangedMeanwhile,
    InPlaceOnly,
}

/// The text of a file and what it is like, or `None` if it is not there.
fn read(path: &Path) -> io::Result<(Vec<u8>, Option<Metadata>)> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), None)),
        file => file?,
    };
    let seen = file.metadata()?;
    if !seen.is_file() || seen.len() > MOST_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file of text, or far too large"));
    }
    let mut text = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut text)?;
    Ok((text, Some(seen)))
}

fn replace(path: &Path, seen: Option<&Metadata>, text: &[u8]) -> io::Result<Replaced> {
    if seen.is_some_and(|seen| seen.nlink() > 1) || has_attributes(path) {
        return Ok(Replaced::InPlaceOnly);
    }
    let beside = beside(path)?;
    let result = write_beside(&beside, seen, text).and_then(|()| {
        let now = std::fs::metadata(path).ok();
        if now.as_ref().map(identity) != seen.map(identity) {
            return Ok(Replaced::ChangedMeanwhile);
        }
        std::fs::rename(&beside, path).map(|()| Replaced::Done)
    });
    if !matches!(result, Ok(Replaced::Done)) {
        // The new file may not even have been made.
        let _removed = std::fs::remove_file(&beside);
    }
    match result {
        Err(error) if seen.is_some() && is_refusal(error.kind()) => Ok(Replaced::InPlaceOnly),
        result => result,
    }
}

/// Whether the kind of an error says that a file cannot be replaced here, though it might be written.
fn is_refusal(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::ResourceBusy
            | io::ErrorKind::CrossesDevices
    )
}

/// What tells a file from what others make of it.
fn identity(file: &Metadata) -> (u64, u64, u64, i64, i64) {
    (file.dev(), file.ino(), file.len(), file.mtime(), file.mtime_nsec())
}

/// Whether the file has access lists, labels or the like, which a new file would not have.
fn has_attributes(path: &Path) -> bool {
    rustix::fs::listxattr(path, &mut [0u8; 0][..]).is_ok_and(|bytes| bytes > 0)
}

fn beside(path: &Path) -> io::Result<PathBuf> {
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_owned();
    name.push(format!(".{}.mapper", std::process::id()));
    Ok(path.with_file_name(name))
}

/// Writes a new file with the mode and the owners of the old one.
fn write_beside(path: &Path, old: Option<&Metadata>, text: &[u8]) -> io::Result<()> {
    // A file of an earlier process with the same number may be left.
    let _removed = std::fs::remove_file(path);
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let mode = old.map_or(0o644, |old| old.mode() & 0o7777);
    file.set_permissions(Permissions::from_mode(mode))?;
    let made = file.metadata()?;
    if let Some(old) = old.filter(|old| (old.uid(), old.gid()) != (made.uid(), made.gid())) {
        fchown(&file, Some(old.uid()), Some(old.gid()))?;
    }
    file.write_all(text)?;
    file.sync_all()
}

fn write_in_place(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    // Room is taken first, so that a full disk leaves the old text. Not all file systems can do that.
    let room = rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, text.len().max(1) as u64);
    if room == Err(rustix::io::Errno::NOSPC) {
        return Err(io::ErrorKind::StorageFull.into());
    }
    file.write_all(text)?;
    file.set_len(text.len() as u64)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn append(path: &Path, more: &str) -> io::Result<()> {
        change(path, |text| Ok([text, more.as_bytes()].concat()))
    }

    #[test]
    fn a_file_is_replaced_with_the_same_mode_and_a_link_to_it_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("hosts"), dir.path().join("link"));
        std::fs::write(&path, "old\n").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let before = std::fs::metadata(&path).unwrap();
        append(&link, "new\n").unwrap();
        let after = std::fs::metadata(&path).unwrap();
        assert_ne!(before.ino(), after.ino());
        assert_eq!(before.mode(), after.mode());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old\nnew\n");
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        append(&path, "").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().ino(), after.ino(), "what is right is not written");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "nothing is left beside it");
    }

    #[test]
    fn a_file_with_two_names_is_written_as_it_stands() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("hosts"), dir.path().join("other"));
        std::fs::write(&path, "a long text\n").unwrap();
        std::fs::hard_link(&path, &other).unwrap();
        change(&path, |_| Ok(b"short\n".to_vec())).unwrap();
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "short\n");
    }

    #[test]
    fn one_that_is_not_there_is_made_and_what_is_no_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hosts");
        append(&path, "new\n").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o644);
        assert!(append(dir.path(), "x").is_err());
        assert!(append(&dir.path().join("nowhere").join("hosts"), "x").is_err());
    }

    #[test]
    fn what_others_write_meanwhile_is_not_lost() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hosts");
        std::fs::write(&path, "old\n").unwrap();
        let interrupted = std::cell::Cell::new(false);
        change(&path, |text| {
            if !interrupted.replace(true) {
                std::fs::write(&path, "others\n")?;
            }
            Ok([text, b"new\n"].concat())
        })
        .unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "others\nnew\n");
    }
}
