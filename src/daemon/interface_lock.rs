//! One agent an interface: two would answer each other's frames.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use rustix::fs::FlockOperation;
use thiserror::Error;

/// Most bytes read of what the holder of a lock says of itself.
const MAX_HOLDER_BYTES: u64 = 100;

/// An interface that this agent cannot have for itself.
#[derive(Debug, Error)]
pub enum InterfaceLockError {
    /// Another agent runs on it.
    #[error("interface `{interface}` already has an agent: {holder}; stop that one first")]
    Taken {
        /// The interface.
        interface: String,
        /// The other agent, in words.
        holder: String,
    },
    /// The lock file cannot be written.
    #[error("cannot lock interface `{interface}` in the run directory")]
    Io {
        /// The interface.
        interface: String,
        /// Why.
        source: io::Error,
    },
}

/// An interface held for one agent. The kernel lets it go when the process ends, however it ends;
/// the file stays in the run directory, as whoever waits for it may have it open.
#[derive(Debug)]
pub struct InterfaceLock {
    _locked: File,
}

impl InterfaceLock {
    /// Takes the interface for the agent of `unit`.
    ///
    /// # Errors
    /// If another agent of this run directory has it, or the file cannot be written.
    pub fn take(run_dir: &Path, interface: &str, unit: u8) -> Result<Self, InterfaceLockError> {
        let failed = |source| InterfaceLockError::Io { interface: interface.to_owned(), source };
        let path = run_dir.join(format!("{interface}.lock"));
        let mut options = OpenOptions::new();
        let mut file =
            options.create(true).truncate(false).read(true).write(true).open(path).map_err(failed)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut holder = String::new();
                file.take(MAX_HOLDER_BYTES).read_to_string(&mut holder).map_err(failed)?;
                let (interface, holder) = (interface.to_owned(), holder.trim().to_owned());
                return Err(InterfaceLockError::Taken { interface, holder });
            }
            Err(error) => return Err(failed(error.into())),
        }
        file.set_len(0).map_err(failed)?;
        writeln!(file, "unit {unit}, process {}", std::process::id()).map_err(failed)?;
        Ok(Self { _locked: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_has_one_agent_and_the_other_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let held = InterfaceLock::take(dir.path(), "eth1", 3).unwrap();
        let error = InterfaceLock::take(dir.path(), "eth1", 4).unwrap_err().to_string();
        assert!(error.contains("`eth1`") && error.contains("unit 3, process "), "{error}");
        InterfaceLock::take(dir.path(), "eth2", 4).unwrap();
        drop(held);
        InterfaceLock::take(dir.path(), "eth1", 4).unwrap();
    }
}
