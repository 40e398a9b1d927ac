//! Where results go: standard output, or a file that is replaced as a whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;

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

/// Writes a file: first beside it, then in its place, so that a failure loses nothing. What is
/// not a plain file (`/dev/stdout`, a pipe) is written as it is.
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
    let replace = || -> io::Result<()> {
        match fs::metadata(path) {
            Ok(there) if !there.is_file() => {
                return buffered(OpenOptions::new().write(true).open(path)?, write).map(drop);
            }
            _ => {}
        }
        // A link stays, and what it leads to is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = path.file_name().ok_or(ErrorKind::IsADirectory)?.to_string_lossy();
        let beside = path.with_file_name(format!(".{name}.{}.new", std::process::id()));
        let written = write_new(&beside, write).and_then(|()| fs::rename(&beside, &path));
        if written.is_err() {
            // What went wrong is said; that its remains stay too is not worth a second error.
            let _ = fs::remove_file(&beside);
        }
        written
    };
    replace().map_err(|source| WriteError { target: path.display().to_string(), source }.into())
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
