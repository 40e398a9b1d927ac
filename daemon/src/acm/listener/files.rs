//! The files that a place where clients connect consists of, and those that tell clients where it is.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::ListenError;

/// Files and links that were made, which are removed when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Files(Vec<Made>);

#[derive(Debug)]
struct Made {
    path: PathBuf,
    /// Where it leads, if it is a link.
    leads_to: Option<PathBuf>,
}

impl Files {
    /// The file of a socket that is there.
    pub(super) fn of_socket(path: &Path) -> Self {
        Self(vec![Made { path: path.to_owned(), leads_to: None }])
    }

    /// Writes the port where clients look for it.
    pub(super) fn write_port(
        &mut self,
        port: u16,
        file: &Path,
        link: Option<&Path>,
    ) -> Result<(), ListenError> {
        std::fs::write(file, format!("{port}\n")).map_err(|source| ListenError::File {
            path: file.to_owned(),
            option: "--port-file",
            source,
        })?;
        self.0.push(Made { path: file.to_owned(), leads_to: None });
        self.link(file, link, "--port-link")
    }

    /// Makes a link, in place of another link.
    pub(super) fn link(
        &mut self,
        to: &Path,
        link: Option<&Path>,
        option: &'static str,
    ) -> Result<(), ListenError> {
        let Some(link) = link else { return Ok(()) };
        let make = || {
            if std::fs::symlink_metadata(link).is_ok_and(|found| found.file_type().is_symlink()) {
                std::fs::remove_file(link)?;
            }
            symlink(to, link)
        };
        make().map_err(|source| ListenError::File { path: link.to_owned(), option, source })?;
        self.0.push(Made { path: link.to_owned(), leads_to: Some(to.to_owned()) });
        Ok(())
    }

    /// Leaves to others what they have made anew in place of it.
    pub(super) fn leave_to(&mut self, others: &Self) {
        self.0.retain(|made| others.0.iter().all(|other| other.path != made.path));
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for Made { path, leads_to } in self.0.iter().rev() {
            let is_ours = match leads_to {
                Some(to) => std::fs::read_link(path).is_ok_and(|found| found == *to),
                None => true,
            };
            if is_ours {
                // This fails only if somebody else has removed the file.
                let _already_gone = std::fs::remove_file(path);
            }
        }
    }
}
