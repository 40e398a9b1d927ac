//! Where a configuration comes from, so that it can be read again.

use std::path::PathBuf;

use thiserror::Error;

use super::{Config, ConfigFileError, Options, OptionsError};

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

    /// Reads the file, if there is one, and puts both together.
    ///
    /// # Errors
    /// If the file cannot be read or is wrong, or the options do not make a configuration.
    pub fn read(&self) -> Result<Config, ConfigError> {
        let file = self.file.as_deref().map(Options::read).transpose()?.unwrap_or_default();
        Ok(self.line.clone().or(file).resolve(self.role)?)
    }
}
