//! Where results go: standard output, or a file that is replaced as a whole.

mod staged;

pub use staged::Staged;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::CliError;

/// A result that could not be written.
#[derive(Debug, Error)]
#[error("cannot write {target}")]
struct WriteError {
    target: String,
    source: io::Error,
}

/// Prints to standard output. A reader that has seen enough (`| head`) is no error.
///
/// # Errors
/// If standard output cannot be written.
pub fn print(text: &str) -> Result<(), CliError> {
    print_to_reader(text).map(drop)
}

/// Like [`print()`]; says whether there is still a reader.
///
/// # Errors
/// If standard output cannot be written.
pub fn print_to_reader(text: &str) -> Result<bool, CliError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(WriteError { target: "standard output".to_owned(), source: error }.into()),
    }
}

/// Prints to standard error: what is said of results that go to standard output themselves.
///
/// # Errors
/// If standard error cannot be written.
pub fn print_aside(text: &str) -> Result<(), CliError> {
    let written = io::stderr().lock().write_all(text.as_bytes());
    written.map_err(|source| WriteError { target: "standard error".to_owned(), source }.into())
}

/// Writes a file: first beside it, then in its place, so that a failure loses nothing. What is
/// not a plain file (`/dev/stdout`, a pipe) is written as it is; `-` is standard output.
///
/// # Errors
/// If the file or its folder cannot be written.
pub fn write_file(path: &Path, text: &str) -> Result<(), CliError> {
    stream_file(path, |out| out.write_all(text.as_bytes()))
}

/// Like [`write_file`], for what is too long to be held in memory.
///
/// # Errors
/// If the file or its folder cannot be written.
pub fn stream_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), CliError> {
    let mut staged = Staged::default();
    staged.file(path, write)?;
    staged.commit()
}

/// Whether a path means this program's standard output: `-`, its names in `/dev` and `/proc`, or the file
/// that it leads to.
pub fn is_standard_output(path: &Path) -> bool {
    const NAMES: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
    let is_its_file = || -> io::Result<bool> {
        let out = File::from(io::stdout().as_fd().try_clone_to_owned()?).metadata()?;
        let there = fs::metadata(path)?;
        Ok(there.is_file() && (there.dev(), there.ino()) == (out.dev(), out.ino()))
    };
    NAMES.iter().any(|&name| path == Path::new(name)) || is_its_file().unwrap_or_default()
}

/// How what a path names is written.
enum Place {
    StandardOutput,
    /// A pipe or a device.
    AsItIs,
    /// First `beside` the place, then there.
    File {
        place: PathBuf,
        beside: PathBuf,
    },
}

fn place_of(path: &Path) -> Place {
    if is_standard_output(path) {
        return Place::StandardOutput;
    }
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return Place::AsItIs;
    }
    // A link stays, and what it leads to is replaced.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let beside = place.with_file_name(format!(".{name}.{}.new", std::process::id()));
    Place::File { place, beside }
}

fn unwritable(path: &Path, source: io::Error) -> CliError {
    WriteError { target: path.display().to_string(), source }.into()
}

/// A reader that has seen enough is no error here either.
fn stream_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

fn write_as_it_is(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    buffered(OpenOptions::new().write(true).open(path)?, write).map(drop)
}

fn write_new(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    buffered(file, write)?.sync_all()
}

fn buffered(file: File, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<File> {
    let mut out = BufWriter::new(file);
    write(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_stays_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        write_file(&path, "one").unwrap();
        write_file(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_error_names_the_file() {
        let error = write_file(Path::new("no/such/folder/a.json"), "").unwrap_err();
        assert_eq!(error.to_string(), "cannot write no/such/folder/a.json");
        assert!(write_file(Path::new("/"), "").is_err());
    }
}
