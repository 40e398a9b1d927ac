//! Key files: the secrets that all agents of a network share.
//!
//! Each line is a key: its number, then its secret as 64 hexadecimal digits; `#` begins a comment. The
//! first key signs, and all keys are accepted. Keys are therefore changed without a gap in three steps: add
//! the new key as second line on all hosts, then make it the first on all hosts, then remove the old one.
//!
//! ```text
//! # fabric of room 4
//! 17 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//! ```

use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use mapper_proto::wire::{Key, KeyRing, KeyRingError, SECRET_BYTES};
use rustix::rand::{GetRandomFlags, getrandom};
use thiserror::Error;

/// The longest key file that is read, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// Why a key file is not used. The error never shows what is in the file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// The file cannot be read.
    #[error("cannot read the key file {}{}", path.display(), whose_it_must_be(source, path))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The path names a directory, a device or the like.
    #[error("the key file {} is no ordinary file", path.display())]
    NoFile {
        /// The file.
        path: PathBuf,
    },
    /// The mode of the file lets others read or change it.
    #[error(
        "others may read or change the key file {0} (its mode is {mode:03o}), so its keys are no secret; \
         make new ones, and let its owner alone use it: chmod 600 {0}",
        path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The file belongs to somebody else.
    #[error(
        "the key file {} belongs to user {owner}, who can change it; it must belong to root or to the user \
         that runs this",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The owner's number.
        owner: u32,
    },
    /// The file is no text, or longer than any key file.
    #[error("the key file {} is no text of at most 64 KiB", path.display())]
    NoText {
        /// The file.
        path: PathBuf,
    },
    /// A line is no key.
    #[error("{}:{line}: {what}; a line is a number and 64 hexadecimal digits, as `mapper key` prints them", path.display())]
    BadLine {
        /// The file.
        path: PathBuf,
        /// Which line, counted from 1.
        line: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The keys of the file make no key ring.
    #[error("the key file {}: {source}", path.display())]
    BadRing {
        /// The file.
        path: PathBuf,
        /// What is wrong with the keys.
        source: KeyRingError,
    },
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    NoRandomness(#[source] io::Error),
}

/// What to do about a key file that the system does not let this process read.
fn whose_it_must_be(why: &io::Error, path: &Path) -> String {
    if why.kind() != io::ErrorKind::PermissionDenied {
        return String::new();
    }
    let path = path.display();
    format!(
        ", which must belong to the user that runs this: the package's daemons run as user mapper, so for these \
         `chown mapper {path}`"
    )
}

/// Reads a key file.
///
/// # Errors
/// If the file cannot be read, somebody else may read or change it, or it holds no keys.
pub fn read(path: &Path) -> Result<KeyRing, KeyFileError> {
    read_of(path, rustix::process::geteuid().as_raw())
}

/// Reads a key file for a daemon that runs as `user`, to whom the file must belong if not to root.
///
/// # Errors
/// If the file cannot be read, somebody else may read or change it, or it holds no keys.
pub fn read_of(path: &Path, user: u32) -> Result<KeyRing, KeyFileError> {
    let text = read_text(path, user)?;
    let keys = parse(path, &text)?;
    let salt = u64::from_ne_bytes(random_bytes().map_err(KeyFileError::NoRandomness)?);
    KeyRing::new(keys, salt).map_err(|source| KeyFileError::BadRing { path: path.to_owned(), source })
}

fn read_text(path: &Path, user: u32) -> Result<String, KeyFileError> {
    let unreadable = |source| KeyFileError::Unreadable { path: path.to_owned(), source };
    let ordinary = |metadata: Metadata| {
        let no_file = || KeyFileError::NoFile { path: path.to_owned() };
        metadata.is_file().then_some(metadata).ok_or_else(no_file)
    };
    // The path is examined before it is opened: to open a device may have effects, and to open a pipe may
    // wait for its writer.
    ordinary(fs::metadata(path).map_err(unreadable)?)?;
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(unreadable)?;
    // The mode and owner are those of the open file. The path may name another file by now.
    let metadata = ordinary(file.metadata().map_err(unreadable)?)?;
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(KeyFileError::Exposed { path: path.to_owned(), mode });
    }
    let owner = metadata.uid();
    if owner != 0 && owner != user {
        return Err(KeyFileError::Foreign { path: path.to_owned(), owner });
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    let text = String::from_utf8(bytes).ok().filter(|text| text.len() as u64 <= MAX_BYTES);
    text.ok_or_else(|| KeyFileError::NoText { path: path.to_owned() })
}

fn parse(path: &Path, text: &str) -> Result<Vec<Key>, KeyFileError> {
    let mut keys = Vec::new();
    for (nth, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            let bad = |what| KeyFileError::BadLine { path: path.to_owned(), line: nth + 1, what };
            keys.push(parse_key(line).map_err(bad)?);
        }
    }
    Ok(keys)
}

fn parse_key(line: &str) -> Result<Key, &'static str> {
    let mut words = line.split_whitespace();
    let (Some(id), Some(secret), None) = (words.next(), words.next(), words.next()) else {
        return Err("there are not two words");
    };
    let id = id.parse().map_err(|_| "the first word is no number below 4294967296")?;
    let secret = parse_secret(secret.as_bytes()).ok_or("the second word is not 64 hexadecimal digits")?;
    if secret == [0; SECRET_BYTES] {
        return Err("the secret is all zeros, which is none");
    }
    Ok(Key::new(id, secret))
}

fn parse_secret(digits: &[u8]) -> Option<[u8; SECRET_BYTES]> {
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    let mut secret = [0; SECRET_BYTES];
    for (nth, byte) in secret.iter_mut().enumerate() {
        *byte = u8::try_from(digit(2 * nth)? << 4 | digit(2 * nth + 1)?).ok()?;
    }
    (digits.len() == 2 * SECRET_BYTES).then_some(secret)
}

/// A fresh number and secret from the system's random source. The secret is in hexadecimal, as in a key file.
///
/// # Errors
/// If the system gives no random numbers.
pub fn fresh() -> io::Result<(u32, String)> {
    let secret: [u8; SECRET_BYTES] = random_bytes()?;
    let digits = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((u32::from_ne_bytes(random_bytes()?), digits))
}

fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        filled += getrandom(rest, GetRandomFlags::empty())?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const SECRET: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

    fn file(text: &str, mode: u32) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        std::fs::set_permissions(file.path(), PermissionsExt::from_mode(mode)).unwrap();
        file
    }

    fn ids(text: &str) -> Result<Vec<u32>, String> {
        let file = file(text, 0o600);
        let name = file.path().display().to_string();
        let ring = read(file.path()).map_err(|error| error.to_string().replace(&name, "FILE"))?;
        Ok(ring.ids().collect())
    }

    #[test]
    fn the_first_key_signs_and_comments_are_left_out() {
        let text = format!("# one\n\n 7 {SECRET} # signs\r\n3\t{}\n", SECRET.to_uppercase());
        assert_eq!(ids(&text), Ok(vec![7, 3]));
    }

    #[test]
    fn who_may_not_read_a_key_file_is_told_whose_it_must_be() {
        let path = Path::new("/etc/mapper/key");
        let unreadable = |kind: io::ErrorKind| {
            KeyFileError::Unreadable { path: path.to_owned(), source: kind.into() }.to_string()
        };
        assert!(unreadable(io::ErrorKind::PermissionDenied).contains("`chown mapper /etc/mapper/key`"));
        assert_eq!(unreadable(io::ErrorKind::NotFound), "cannot read the key file /etc/mapper/key");
    }

    #[test]
    fn a_fresh_key_is_a_line_of_a_key_file_and_never_the_same() {
        let (id, secret) = fresh().unwrap();
        assert_eq!(ids(&format!("{id} {secret}")), Ok(vec![id]));
        assert_ne!(fresh().unwrap().1, secret);
    }

    #[test]
    fn a_file_that_others_may_read_or_change_is_refused() {
        for mode in [0o604, 0o602, 0o640, 0o620, 0o644, 0o666, 0o601] {
            let file = file(&format!("1 {SECRET}"), mode);
            let error = read(file.path()).unwrap_err();
            assert!(matches!(error, KeyFileError::Exposed { mode: seen, .. } if seen == mode), "{error}");
        }
        for mode in [0o600, 0o400] {
            assert!(read(file(&format!("1 {SECRET}"), mode).path()).is_ok());
        }
    }

    #[test]
    fn a_file_of_another_user_is_refused() {
        let file = file(&format!("1 {SECRET}"), 0o600);
        if !mapper_needs::root() {
            return;
        }
        std::os::unix::fs::chown(file.path(), Some(12_345), None).unwrap();
        assert!(matches!(read(file.path()), Err(KeyFileError::Foreign { owner: 12_345, .. })));
    }

    #[test]
    fn what_is_malformed_is_named_by_its_line_and_never_shown() {
        let short = &SECRET[1..];
        for (text, what) in [
            (format!("1 {SECRET}\n2 {short}"), "FILE:2: the second word is not 64 hexadecimal digits"),
            (format!("1 {short}x"), "FILE:1: the second word is not 64"),
            (format!("1 {SECRET}0"), "FILE:1: the second word is not 64"),
            (format!("4294967296 {SECRET}"), "FILE:1: the first word is no number"),
            (format!("-1 {SECRET}"), "FILE:1: the first word is no number"),
            (format!("1 {SECRET}\n2 {}", "0".repeat(64)), "FILE:2: the secret is all zeros"),
            (SECRET.to_owned(), "FILE:1: there are not two words"),
            (format!("1 {SECRET} x"), "FILE:1: there are not two words"),
            (format!("1 {SECRET}\n1 {SECRET}"), "the key file FILE: two keys have the number 1"),
            ("# none\n".to_owned(), "the key file FILE: there is no key in it"),
        ] {
            let error = ids(&text).unwrap_err();
            assert!(error.starts_with(what) && !error.contains(&short[..20]), "{error}");
        }
        assert!(matches!(read(Path::new("/dev/null")), Err(KeyFileError::NoFile { .. })));
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        assert!(matches!(read(&pipe), Err(KeyFileError::NoFile { .. })), "nobody writes: it must not wait");
        assert!(matches!(read(Path::new("/nonexistent")), Err(KeyFileError::Unreadable { .. })));
        let long = file(&"#".repeat(MAX_BYTES as usize + 1), 0o600);
        assert!(matches!(read(long.path()), Err(KeyFileError::NoText { .. })));
    }
}
