//! Settings of the kernel's network (`/proc/sys/net`) that forwarding needs: set, noticed when somebody sets them
//! back, and put back at the end.
//!
//! - [`KeptSettings`]: keeps settings, and what was there before.
//! - [`needs`]: what forwarding between ports needs, without cutting the machine off from its other networks.
//! - `record`: what was there before, as a file that outlives a crash.
//!
//! `/proc/sys/net` shows the network namespace of whoever reads it, also if `/proc` was mounted in another one.

mod keeper;
pub mod needs;
mod record;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::link::interface::Interface;

pub use keeper::{Drift, KeptSettings};
pub use needs::{ForwardingNeeds, Lacking};

/// The two families of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SettingFamily {
    V4,
    V6,
}

/// What a setting is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    /// The whole machine.
    Machine,
    /// All interfaces (`conf/all`).
    All,
    /// Interfaces that come later (`conf/default`).
    Default,
    /// An interface. Its number stays when it is renamed.
    Interface { index: u32, name: String },
}

/// A setting, whose values are numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setting {
    family: SettingFamily,
    of: Of,
    key: String,
}

impl Setting {
    fn new(family: SettingFamily, of: Of, key: &str) -> Self {
        Self { family, of, key: key.to_owned() }
    }

    fn path(&self) -> PathBuf {
        Path::new("/proc/sys").join(self.to_string())
    }

    /// Its value; `None` if this kernel, or this machine by now, has no such setting.
    fn read(&self) -> Result<Option<i32>, SettingsError> {
        let read = || -> io::Result<i32> {
            let text = std::fs::read_to_string(self.path())?;
            text.trim().parse().map_err(|_| io::ErrorKind::InvalidData.into())
        };
        match read() {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(SettingsError::Read { setting: self.to_string(), source }),
        }
    }

    fn write(&self, value: i32) -> Result<(), SettingsError> {
        let setting = || self.to_string();
        match std::fs::write(self.path(), value.to_string()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(SettingsError::NoSuchSetting { setting: setting() })
            }
            result => result.map_err(|source| SettingsError::Write { setting: setting(), value, source }),
        }
    }
}

impl fmt::Display for Setting {
    /// As `sysctl` takes it, where names of interfaces may have dots.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = match self.family {
            SettingFamily::V4 => "ipv4",
            SettingFamily::V6 => "ipv6",
        };
        let key = &self.key;
        match &self.of {
            Of::Machine => write!(f, "net/{family}/{key}"),
            Of::All => write!(f, "net/{family}/conf/all/{key}"),
            Of::Default => write!(f, "net/{family}/conf/default/{key}"),
            Of::Interface { name, .. } => write!(f, "net/{family}/conf/{name}/{key}"),
        }
    }
}

/// Switches IPv6 on at an interface of this process's own. Machines may have it switched off at all interfaces that come.
///
/// # Errors
/// If the kernel refuses, or this machine has no IPv6.
pub(crate) fn enable_ipv6(index: u32, name: &str) -> Result<(), SettingsError> {
    let of = Of::Interface { index, name: name.to_owned() };
    Setting::new(SettingFamily::V6, of, "disable_ipv6").write(0)
}

/// Whether this machine forwards packets of IPv6 that come in by other interfaces than these, by their numbers.
///
/// # Errors
/// If the kernel does not tell its interfaces or a setting.
pub fn forwards_v6_beside(ports: &BTreeMap<u32, String>) -> Result<bool, SettingsError> {
    if Setting::new(SettingFamily::V6, Of::All, "forwarding").read()? == Some(1) {
        return Ok(true);
    }
    let all = Interface::all().map_err(SettingsError::Interfaces)?;
    for Interface { index, name, .. } in all.into_iter().filter(|it| !ports.contains_key(&it.index)) {
        if Setting::new(SettingFamily::V6, Of::Interface { index, name }, "force_forwarding").read()?
            == Some(1)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether there is a setting of this name below `/proc/sys/net`.
pub(crate) fn is_there(name: &str) -> bool {
    Path::new("/proc/sys/net").join(name).exists()
}

/// Why a setting is not as it should be, and what to do.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// The kernel does not tell a value.
    #[error("reading the kernel's setting {setting}")]
    Read {
        /// The setting.
        setting: String,
        /// The error.
        source: io::Error,
    },
    /// The kernel does not take a value.
    #[error(
        "the kernel's setting {setting} cannot be set to {value}; do it by `sysctl -w {setting}={value}` on the \
         machine itself, as containers may not"
    )]
    Write {
        /// The setting.
        setting: String,
        /// The value.
        value: i32,
        /// The error.
        source: io::Error,
    },
    /// This kernel, or the interface, has no such setting.
    #[error("the kernel has no setting {setting}; is the interface still there, and IPv6 not switched off?")]
    NoSuchSetting {
        /// The setting.
        setting: String,
    },
    /// What was set before cannot be noted, so nothing was changed.
    #[error(
        "{}: what the kernel's settings were cannot be kept here, so none is changed; give another --run-dir",
        path.display()
    )]
    Record {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// What an earlier run noted cannot be read.
    #[error(
        "{}: what the kernel's settings were before an earlier run cannot be read; delete the file, and the \
         settings of now count as those of before",
        path.display()
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The interfaces of this machine are not known.
    #[error("asking which interfaces there are")]
    Interfaces(#[source] crate::link::LinkError),
}
