//! Writes several files that replace the old ones together.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{OutputPlace, on_stdout, place_of, unwritable, write_as_it_is, write_new};
use crate::cli::CliError;

/// New files that are renamed to their places together once all are complete.
///
/// Until [`Self::commit`] the old files stay, and they stay for good if it is never called. A path that is no
/// plain file (a pipe, a device, standard output) is written to at once.
#[derive(Debug, Default)]
pub struct Staged {
    /// Each new file and the path to which it is to be renamed.
    moves: Vec<(PathBuf, PathBuf)>,
    /// The temporary folders for new files, each inside the folder that the files are for.
    beside: Vec<PathBuf>,
    /// The folders that this made, outer ones first.
    made: Vec<PathBuf>,
}

impl Staged {
    /// Writes a file.
    ///
    /// # Errors
    /// If the file or its folder cannot be written.
    pub fn file(
        &mut self,
        path: &Path,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), CliError> {
        let written = match place_of(path) {
            OutputPlace::StandardOutput => return on_stdout(write),
            OutputPlace::AsItIs => write_as_it_is(path, write),
            OutputPlace::File { place, beside } => {
                self.moves.push((beside.clone(), place));
                write_new(&beside, write)
            }
        };
        written.map_err(|error| unwritable(path, error))
    }

    /// Makes a folder if there is none, and in it a temporary folder, which is returned. Files that are
    /// written there are moved to the folder by [`Self::commit`].
    ///
    /// # Errors
    /// If the folders cannot be made.
    pub fn folder(&mut self, folder: &Path) -> Result<PathBuf, CliError> {
        let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
        let missing: Vec<&Path> = folder.ancestors().take_while(is_missing).collect();
        self.made.extend(missing.iter().rev().map(|&folder| folder.to_owned()));
        let beside = folder.join(format!(".mapper.{}.new", std::process::id()));
        self.beside.push(beside.clone());
        let made = fs::create_dir_all(folder).and_then(|()| match fs::create_dir(&beside) {
            // A process with the same process id was killed before it was done and left this folder behind.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_dir_all(&beside)?;
                fs::create_dir(&beside)
            }
            made => made,
        });
        made.map_err(|error| unwritable(folder, error))?;
        Ok(beside)
    }

    /// Moves all files to their places.
    ///
    /// # Errors
    /// If a file cannot be moved. Most reasons are found before anything is moved; if a rename itself fails,
    /// files that were moved before stay there.
    pub fn commit(mut self) -> Result<(), CliError> {
        for beside in &self.beside {
            let folder = beside.parent().unwrap_or(beside);
            let names = fs::read_dir(beside).and_then(Iterator::collect::<io::Result<Vec<_>>>);
            let names = names.map_err(|error| unwritable(folder, error))?;
            self.moves.extend(names.iter().map(|new| (new.path(), folder.join(new.file_name()))));
        }
        // A folder in the place of a file must be found before anything is moved.
        if let Some((_, place)) = self.moves.iter().find(|(_, place)| place.is_dir()) {
            return Err(unwritable(place, io::ErrorKind::IsADirectory.into()));
        }
        for (new, place) in &self.moves {
            fs::rename(new, place).map_err(|error| unwritable(place, error))?;
        }
        self.moves.clear();
        self.made.clear();
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // An error while cleaning up is ignored, as the error that led here was returned.
        for (new, _) in &self.moves {
            let _ = fs::remove_file(new);
        }
        for beside in &self.beside {
            let _ = fs::remove_dir_all(beside);
        }
        for folder in self.made.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_run_left_is_not_taken_over() {
        let dir = tempfile::tempdir().unwrap();
        let left = dir.path().join(format!(".mapper.{}.new", std::process::id()));
        fs::create_dir(&left).unwrap();
        fs::write(left.join("stale"), "of another fabric").unwrap();
        let mut staged = Staged::default();
        let new = staged.folder(dir.path()).unwrap();
        fs::write(new.join("fresh"), "").unwrap();
        staged.commit().unwrap();
        let names: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["fresh"]);
    }

    /// Writes a file, and two into a folder.
    fn stage(folder: &Path, text: &str) -> Staged {
        let mut staged = Staged::default();
        staged.file(&folder.join("a"), |out| out.write_all(text.as_bytes())).unwrap();
        let new = staged.folder(&folder.join("deep/routes")).unwrap();
        fs::write(new.join("1"), text).unwrap();
        fs::write(new.join("2"), text).unwrap();
        staged
    }

    fn read(folder: &Path) -> [String; 3] {
        ["a", "deep/routes/1", "deep/routes/2"].map(|name| fs::read_to_string(folder.join(name)).unwrap())
    }

    #[test]
    fn all_files_are_replaced_or_none() {
        let folder = tempfile::tempdir().unwrap();
        drop(stage(folder.path(), "never"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing stays");
        stage(folder.path(), "old").commit().unwrap();
        let mut failed = stage(folder.path(), "new");
        failed.file(&folder.path().join("b"), |_| Err(io::ErrorKind::StorageFull.into())).unwrap_err();
        drop(failed);
        assert_eq!(read(folder.path()), ["old"; 3]);
        stage(folder.path(), "new").commit().unwrap();
        assert_eq!(read(folder.path()), ["new"; 3]);
        // A folder stands in the place of a file, so the other files must stay as they were.
        fs::remove_file(folder.path().join("deep/routes/2")).unwrap();
        fs::create_dir(folder.path().join("deep/routes/2")).unwrap();
        let error = stage(folder.path(), "newer").commit().unwrap_err();
        assert!(error.to_string().ends_with("deep/routes/2"), "{error}");
        assert_eq!(fs::read_to_string(folder.path().join("a")).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing stays beside them");
        assert_eq!(fs::read_dir(folder.path().join("deep/routes")).unwrap().count(), 2);
    }
}
