//! Writes results to standard output, or to files that are replaced as a whole.

mod closed;
mod staged;

pub use staged::Staged;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::CliError;

/// The error for a result that could not be written.
#[derive(Debug, Error)]
#[error("cannot write {target}")]
struct WriteError {
    target: String,
    source: io::Error,
}

/// The error if nobody reads standard output any more (`| head`). No message is printed for it, as the reader
/// closed standard output itself.
#[derive(Debug, Error)]
#[error("nobody reads standard output any more")]
pub struct ReaderGone;

impl ReaderGone {
    /// The exit status, which is the one that shells report for a program that SIGPIPE ended, as most
    /// programs end then. It is not 0, as not everything was written.
    pub const EXIT_STATUS: u8 = 128 + 13;
}

/// Prints to standard output.
///
/// # Errors
/// If standard output cannot be written. The error is [`ReaderGone`] if nobody reads it any more.
pub fn print(text: &str) -> Result<(), CliError> {
    on_stdout(|out| out.write_all(text.as_bytes()))
}

/// Prints the help or the version that a command line asked for, in colours if standard output is a terminal.
///
/// # Errors
/// If standard output cannot be written, as [`print()`].
pub fn print_help(asked: &clap::Error) -> Result<(), CliError> {
    on_stdout(|_| asked.print())
}

/// Writes to standard output and flushes it.
fn on_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CliError> {
    let failed = |source: io::Error| match source.kind() {
        ErrorKind::BrokenPipe => CliError::from(ReaderGone),
        _ => WriteError { target: "standard output".to_owned(), source }.into(),
    };
    if closed::was_closed() {
        return Err(failed(io::Error::from_raw_os_error(libc::EBADF)));
    }
    let mut out = BufWriter::new(io::stdout().lock());
    write(&mut out).and_then(|()| out.flush()).map_err(failed)
}

/// Prints to standard error. This is for a report about results that themselves go to standard output.
///
/// # Errors
/// If standard error cannot be written.
pub fn print_aside(text: &str) -> Result<(), CliError> {
    let written = io::stderr().lock().write_all(text.as_bytes());
    written.map_err(|source| WriteError { target: "standard error".to_owned(), source }.into())
}

/// Writes a file. The text is first written to a new file, which then replaces the old one, so that a failure
/// loses nothing. A path that is no plain file (`/dev/stdout`, a pipe) is written to directly; `-` is
/// standard output.
///
/// # Errors
/// If the file or its folder cannot be written.
pub fn write_file(path: &Path, text: &str) -> Result<(), CliError> {
    stream_file(path, |out| out.write_all(text.as_bytes()))
}

/// Writes a file as [`write_file`] does, from a function, as the text may be too long for memory.
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

/// How a path is written to.
enum OutputPlace {
    StandardOutput,
    /// The path is a pipe or a device, which is written to directly.
    AsItIs,
    /// The text is written to `beside`, which is then renamed to `place`.
    File {
        place: PathBuf,
        beside: PathBuf,
    },
}

fn place_of(path: &Path) -> OutputPlace {
    if is_standard_output(path) {
        return OutputPlace::StandardOutput;
    }
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return OutputPlace::AsItIs;
    }
    // If the path is a symbolic link, the link stays and its target is replaced.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let beside = place.with_file_name(format!(".{name}.{}.new", std::process::id()));
    OutputPlace::File { place, beside }
}

fn unwritable(path: &Path, source: io::Error) -> CliError {
    WriteError { target: path.display().to_string(), source }.into()
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
