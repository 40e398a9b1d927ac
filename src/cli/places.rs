//! Checks the paths of results before anything is computed.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::CliError;
use super::output::is_standard_output;

/// An option and the path that it names.
pub(super) type NamedPath<'a> = (&'static str, &'a Path);

/// Those of these options that are given, with the path that each names.
pub(super) fn given<'a>(all: &[(&'static str, &'a Option<PathBuf>)]) -> Vec<NamedPath<'a>> {
    all.iter().filter_map(|&(option, path)| Some((option, path.as_deref()?))).collect()
}

/// The options whose files are read again later, so that they cannot be standard output.
const READ_AGAIN: [&str; 2] = ["--cache", "--routes-dir"];

/// Refuses outputs that would replace an input, share a path, or cannot be written. So no run fails late
/// after it has replaced some of its outputs.
///
/// # Errors
/// If a path is refused. The error names the option.
pub(super) fn check(outputs: &[NamedPath<'_>], inputs: &[NamedPath<'_>]) -> Result<(), CliError> {
    refuse_shared(outputs, inputs)?;
    // A folder of routes need not exist, as it is made when the routes are written.
    outputs.iter().filter(|(option, _)| *option != "--routes-dir").try_for_each(|&(option, path)| {
        probe(path).map_err(|error| format!("{option}: cannot write {}: {error}", path.display()).into())
    })
}

/// Refuses outputs that would replace an input or share a path.
///
/// # Errors
/// If a path is refused. The error names the option.
pub(super) fn refuse_shared(outputs: &[NamedPath<'_>], inputs: &[NamedPath<'_>]) -> Result<(), CliError> {
    for (i, &(option, path)) in outputs.iter().enumerate() {
        if is_standard_output(path) && READ_AGAIN.contains(&option) {
            return Err(format!("{option}: {} is standard output; name another", path.display()).into());
        }
        let same = |other: &&NamedPath<'_>| is_same(path, other.1);
        if let Some((other, _)) = inputs.iter().find(same) {
            return Err(format!("{option}: {} is read by {other}; name another file", path.display()).into());
        }
        if let Some((other, _)) = outputs[..i].iter().find(same) {
            return Err(
                format!("{option}: {} is written by {other}, too; name another", path.display()).into()
            );
        }
    }
    Ok(())
}

/// Whether two paths name one file or folder.
fn is_same(a: &Path, b: &Path) -> bool {
    let is_device = |path: &Path| fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir());
    let is_output = is_standard_output(a) && is_standard_output(b);
    is_output || !is_device(a) && whole(a) == whole(b)
}

/// The path without symbolic links and dots, as far as it exists.
fn whole(path: &Path) -> PathBuf {
    if let Ok(path) = fs::canonicalize(path) {
        return path;
    }
    let folder = fs::canonicalize(folder_of(path)).unwrap_or_else(|_| folder_of(path).to_owned());
    folder.join(path.file_name().unwrap_or_default())
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Checks that a file could be made beside the path. A path that is no plain file is not tried before it is
/// written to.
fn probe(path: &Path) -> std::io::Result<()> {
    match fs::metadata(path) {
        Ok(there) if there.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        Ok(there) if !there.is_file() => return Ok(()),
        _ if is_standard_output(path) => return Ok(()),
        _ => {}
    }
    let folder = fs::canonicalize(path).ok().and_then(|path| Some(path.parent()?.to_owned()));
    let folder = folder.unwrap_or_else(|| folder_of(path).to_owned());
    let trial = folder.join(format!(".mapper.{}.trial", std::process::id()));
    OpenOptions::new().write(true).create_new(true).open(&trial)?;
    fs::remove_file(&trial)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_replaces_no_input_and_no_other_output() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a.net"), folder.path().join("b.lfts"));
        fs::write(&a, "").unwrap();
        let roundabout = folder.path().join(".").join("a.net");
        let said = |outputs: &[NamedPath<'_>], inputs: &[NamedPath<'_>]| {
            check(outputs, inputs).unwrap_err().to_string()
        };
        assert!(said(&[("--lfts", &roundabout)], &[("TOPOLOGY", &a)]).contains("is read by TOPOLOGY"));
        assert!(said(&[("--lfts", &b), ("--sls", &b)], &[]).starts_with("--sls: "));
        let out = [("--lfts", Path::new("-")), ("--sls", Path::new("/dev/stdout"))];
        assert!(said(&out, &[]).contains("is written by --lfts, too"));
        assert!(said(&[("--cache", Path::new("-"))], &[]).contains("is standard output"));
        let said_of_folder = said(&[("--cache", folder.path())], &[]);
        assert!(said_of_folder.starts_with("--cache: cannot write "), "{said_of_folder}");
        assert!(said(&[("--lfts", &folder.path().join("no/b"))], &[]).contains("cannot write"));
        assert!(check(&[("--lfts", &b), ("--sls", Path::new("/dev/null"))], &[("TOPOLOGY", &a)]).is_ok());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing stays");
    }
}
