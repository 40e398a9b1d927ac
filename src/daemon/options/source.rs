//! Where a configuration comes from, so that it can be read again.

use std::path::PathBuf;

use thiserror::Error;

use super::{Config, ConfigFileError, Options, OptionsError};
use crate::daemon::keys::{self, KeyFileError};

/// A command line, and the configuration file that it names.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    line: Options,
    file: Option<PathBuf>,
    role: Role,
}

/// What is configured.
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
    /// The file is at fault.
    #[error(transparent)]
    File(#[from] ConfigFileError),
    /// The options do not go together.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The keys are at fault.
    #[error(transparent)]
    Keys(#[from] KeyFileError),
}

impl Source {
    /// That of `mapper agent`. The command line wins over the file.
    pub fn agent(line: Options, file: Option<PathBuf>) -> Self {
        Self { line, file, role: Role::Agent }
    }

    /// That of `mapper node`. The command line wins over the file.
    pub fn node(line: Options, file: Option<PathBuf>) -> Self {
        Self { line, file, role: Role::Node }
    }

    /// Reads the file, if there is one, and puts both together; reads the keys, too.
    ///
    /// # Errors
    /// If the file cannot be read or is wrong, the options do not make a configuration, or the key
    /// file is not used.
    pub fn read(&self) -> Result<Config, ConfigError> {
        let file = self.file.as_deref().map(Options::read).transpose()?.unwrap_or_default();
        let mut config = self.line.clone().or(file).resolve(self.role)?;
        config.settings.keys = config.key_file.as_deref().map(keys::read).transpose()?;
        Ok(config)
    }
}
