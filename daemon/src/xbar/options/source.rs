//! Where a crossbar's configuration comes from, so that it can be read again.

use std::path::{Path, PathBuf};

use mapper_machine::options::{self, ConfigFileError, FileOptions as _, Shared, ZeroDestination};
use thiserror::Error;

use super::XbarOptions;
use crate::xbar::ports::PortsError;
use crate::xbar::process::XbarConfig;

/// Why the configuration of a crossbar cannot be used.
#[derive(Debug, Error)]
pub enum XbarConfigError {
    /// The configuration file cannot be read, or is wrong.
    #[error(transparent)]
    File(#[from] ConfigFileError),
    /// The ports do not go together.
    #[error(transparent)]
    Ports(#[from] PortsError),
    /// The crossbar was given no ports.
    #[error("name the interfaces of the crossbar: --ports IF,IF, or `ports = [..]` in the file")]
    NoPorts,
    /// The destination address of frames is zero, which no interface has.
    #[error(transparent)]
    Destination(#[from] ZeroDestination),
    /// The crossbar was to have routes by destination, which come of a map.
    #[error(
        "--data-path routes: a crossbar without an agent holds no map, and so knows no destinations; run `mapper node` \
         on this machine instead, or choose auto, srv6 or tap"
    )]
    NoMap,
    /// The crossbar was to do without an ability of the kernel that it does not use.
    #[error(
        "--kernel-avoid marks: it has no effect here, as it is for machines that send packets of their own, and a crossbar only \
         sends on those of others; take it out"
    )]
    AvoidsMarks,
}

/// A function that reads what the file of all daemons says to daemons of any kind; it returns nothing if
/// there is no such file. The caller passes it in because the file may have keys of agents, which a crossbar
/// does not know.
pub type ReadShared = fn(&Path) -> Result<Shared, ConfigFileError>;

/// A command line and the configuration file that it names, which can be read again.
#[derive(Debug, Clone)]
pub struct XbarSource {
    line: XbarOptions,
    file: Option<PathBuf>,
    read_shared: ReadShared,
}

impl XbarSource {
    /// The source of a crossbar's configuration. The command line wins over the file.
    pub const fn new(line: XbarOptions, file: Option<PathBuf>, read_shared: ReadShared) -> Self {
        Self { line, file, read_shared }
    }

    /// Reads the file, if there is one, and puts both together. Interfaces that are in `current` keep
    /// their numbers.
    ///
    /// # Errors
    /// If the file cannot be read or is wrong, or the options do not make a configuration.
    pub fn read(&self, current: &[(u8, String)]) -> Result<XbarConfig, XbarConfigError> {
        let file = self.file.as_deref().map(|path| self.read_files(path)).transpose()?.unwrap_or_default();
        self.line.clone().or(file).resolve(current)
    }

    /// Reads a configuration file. If the path is a directory, reads its file for all daemons and, over it,
    /// the file of this crossbar.
    fn read_files(&self, path: &Path) -> Result<XbarOptions, ConfigFileError> {
        let own = match &self.line.name {
            Some(name) => format!("xbar-{}", name.clone().value().0),
            None => "xbar".to_owned(),
        };
        options::read_file_or_dir(path, Some(&own), |path| {
            (self.read_shared)(path).map(XbarOptions::of_all_daemons)
        })
    }
}
