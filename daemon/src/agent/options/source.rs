//! Where a configuration comes from, so that it can be read again.

use std::path::{Path, PathBuf};

use mapper_machine::options::{self, ConfigFileError, FileOptions as _};
use mapper_proto::wire::KeyRing;
use thiserror::Error;

use super::{Config, Options, OptionsError};
use crate::agent::keys::{self, KeyFileError};

/// A command line, and the configuration file that it names.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    line: Options,
    file: Option<PathBuf>,
    role: Role,
}

/// What a configuration is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// An agent at an interface.
    Agent,
    /// A crossbar and an agent behind it.
    Node,
}

/// A configuration that cannot be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The configuration file cannot be read, or is wrong.
    #[error(transparent)]
    File(#[from] ConfigFileError),
    /// The options do not go together.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The key file is not used.
    #[error(transparent)]
    Keys(#[from] KeyFileError),
}

impl Source {
    /// The source of the configuration of `mapper agent`. The command line wins over the file.
    pub fn agent(line: Options, file: Option<PathBuf>) -> Self {
        Self { line, file, role: Role::Agent }
    }

    /// The source of the configuration of `mapper node`. The command line wins over the file.
    pub fn node(line: Options, file: Option<PathBuf>) -> Self {
        Self { line, file, role: Role::Node }
    }

    /// Reads the file, if there is one, and puts both together; reads the keys, too.
    ///
    /// # Errors
    /// If the file cannot be read or is wrong, the options do not make a configuration, or the key
    /// file is not used.
    pub fn read(&self) -> Result<Config, ConfigError> {
        let config = self.read_with(keys::read)?;
        self.line.refuse_what_needs_a_tap(&config)?;
        Ok(config)
    }

    /// Reads the configuration of a daemon that may run as another user, to examine it. Root may thus examine a daemon whose
    /// key file belongs to that user. An interface may be a crossbar's, which has packets although it has no tap interface.
    ///
    /// # Errors
    /// If [`Self::read`] fails for that user.
    pub fn read_for_any_user(&self) -> Result<Config, ConfigError> {
        self.read_with(|path| match keys::read(path) {
            Err(KeyFileError::Foreign { owner, .. }) if rustix::process::geteuid().is_root() => {
                keys::read_of(path, owner)
            }
            result => result,
        })
    }

    fn read_with(
        &self,
        read_keys: impl FnOnce(&Path) -> Result<KeyRing, KeyFileError>,
    ) -> Result<Config, ConfigError> {
        let file = self.file.as_deref().map(|path| self.read_files(path)).transpose()?.unwrap_or_default();
        let mut config = self.line.clone().or(file).resolve(self.role)?;
        self.line.refuse_without_effect(&config.interface)?;
        self.line.refuse_data_path_without_tap(&config)?;
        self.line.refuse_to_keep_no_routes(&config)?;
        config.settings.keys = config.key_file.as_deref().map(read_keys).transpose()?;
        Ok(config)
    }

    /// Reads a configuration file. If the path is a directory, reads its file for all daemons and, over it,
    /// the file of this daemon.
    fn read_files(&self, path: &Path) -> Result<Options, ConfigFileError> {
        let own = match self.role {
            Role::Agent => self.line.interface.as_deref(),
            Role::Node => Some("node"),
        };
        options::read_file_or_dir(path, own, options::read_if_there)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_directory_the_file_of_the_interface_wins_over_that_of_all() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write("mapper.toml", "level = 2\nunit = 7\n");
        write("eth1.toml", "unit = 3\n");
        write("node.toml", "ports = [\"eth5\", \"eth6\"]\n");
        let file = || Some(dir.path().to_owned());
        let agent = |interface: &str| {
            let line = Options { interface: Some(interface.to_owned()), ..Options::default() };
            let config = Source::agent(line, file()).read().unwrap();
            (config.settings.level, config.unit)
        };
        assert_eq!(agent("eth1"), (2, 3));
        assert_eq!(agent("eth2"), (2, 7));
        assert_eq!(Source::node(Options::default(), file()).read().unwrap().settings.level, 2);
        write("eth2.toml", "nonsense = 1\n");
        let line = Options { interface: Some("eth2".to_owned()), ..Options::default() };
        let error = Source::agent(line, file()).read().unwrap_err().to_string();
        assert!(error.contains("eth2.toml:1: "), "{error}");
    }
}
