//! Reads configuration files, which are keys of TOML in one file or in a directory of several files.

use std::io::Read;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::{FileOptions, wrong_line};

/// The longest configuration file that is read. All keys with their longest values take less than a tenth of
/// it.
const MAX_CONFIG_BYTES: u64 = 1 << 20;
/// The file in a directory of configuration files that is for all daemons of the machine.
const FILE_OF_ALL: &str = "mapper.toml";

/// Why a configuration file cannot be used.
#[derive(Debug, Error)]
pub enum ConfigFileError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file is too long.
    #[error("{} is longer than {MAX_CONFIG_BYTES} bytes, which no configuration needs", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// The file has an unknown key, a wrong value, or is malformed.
    #[error("{}:{line}: {message}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
}

/// Reads a file of options, or a directory of them. Of a directory, the file of all daemons is read by
/// `read_common`, and the file called `own` overrides it. Either may be missing.
///
/// # Errors
/// If one of the files cannot be read, or has an unknown key or wrong value. The error names file and line.
pub fn read_file_or_dir<T: FileOptions>(
    path: &Path,
    own: Option<&str>,
    read_common: impl FnOnce(&Path) -> Result<T, ConfigFileError>,
) -> Result<T, ConfigFileError> {
    if !path.is_dir() {
        return read_toml(path);
    }
    let own = own.map(|name| read_if_there::<T>(&path.join(format!("{name}.toml")))).transpose()?;
    Ok(own.unwrap_or_default().or(read_common(&path.join(FILE_OF_ALL))?))
}

/// Reads a file of options. If there is none, no option is set.
///
/// # Errors
/// As [`read_toml`].
pub fn read_if_there<T: FileOptions>(path: &Path) -> Result<T, ConfigFileError> {
    // If it cannot be told whether the file exists, it is read, which gives an error that names the reason.
    if path.try_exists().unwrap_or(true) { read_toml(path) } else { Ok(T::default()) }
}

/// Reads a file of options, which are keys of TOML.
///
/// # Errors
/// If the file cannot be read, or has an unknown key or wrong value. The error names the line.
pub fn read_toml<T: FileOptions>(path: &Path) -> Result<T, ConfigFileError> {
    let unreadable = |source| ConfigFileError::Unreadable { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(MAX_CONFIG_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_CONFIG_BYTES {
        return Err(ConfigFileError::TooLong { path: path.to_owned() });
    }
    let parsed = match std::str::from_utf8(&bytes) {
        Ok(text) => parse_toml(text),
        Err(error) => {
            let before = bytes.iter().take(error.valid_up_to());
            Err((1 + before.filter(|&&byte| byte == b'\n').count(), "not UTF-8 text".to_owned()))
        }
    };
    parsed.map_err(|(line, message)| ConfigFileError::Wrong { path: path.to_owned(), line, message })
}

/// The options in a text, or the number of the line that is wrong and why.
fn parse_toml<T: FileOptions>(text: &str) -> Result<T, (usize, String)> {
    toml::Deserializer::parse(text).and_then(T::read_from).map_err(|error: toml::de::Error| {
        let at = error.span().map_or(text.len(), |span| span.start);
        let line = 1 + text.bytes().take(at).filter(|&byte| byte == b'\n').count();
        let message = error.message().trim_end().replace('\n', ", ");
        (line, wrong_line::explained(text, at, &message, T::EXAMPLES))
    })
}
