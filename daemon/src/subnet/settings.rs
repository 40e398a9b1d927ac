//! What the manager is set to, from the options of an agent.

use std::path::Path;

use mapper_fabric::{MAX_HOSTS, MAX_XBARS};
use mapper_ib::manager::ManagerSettings;
use mapper_ib::sweep::SweepSettings;
use std::time::Duration;

use super::SubnetAgentError;
use crate::agent::options::Config;

/// How often a datagram without an answer is sent again.
const RETRIES: u32 = 3;
/// The time from one question to the master to the next, while standing by.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long packets may stay in the switches: one second as OpenSM sets it, and a little.
const DRAIN: Duration = Duration::from_millis(1100);
/// How soon it is tried again after something failed.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// The highest priority among managers.
const MAX_PRIORITY: u8 = 15;

/// The settings of the manager, as these options ask for.
///
/// # Errors
/// If the file of the key of management cannot be read, or has no key.
pub(super) fn of(config: &Config) -> Result<ManagerSettings, SubnetAgentError> {
    let subnet = &config.subnet;
    let key = subnet.key_file.as_deref().map_or(Ok(0), read_key)?;
    let level = config.settings.level;
    Ok(ManagerSettings {
        sweep: SweepSettings {
            window: subnet.window,
            timeout: subnet.timeout,
            retries: RETRIES,
            max_nodes: (MAX_HOSTS + MAX_XBARS) as usize,
            key,
        },
        priority: (level > 0).then(|| level.min(MAX_PRIORITY)),
        lmc: subnet.lmc,
        watch_interval: subnet.watch_interval,
        poll_interval: POLL_INTERVAL,
        drain: DRAIN,
        retry_delay: RETRY_DELAY,
    })
}

/// The key of management in a file: a number of 64 bits that is not 0, as `0x0123456789abcdef`.
///
/// # Errors
/// If the file cannot be read, or has no key.
pub fn read_key(path: &Path) -> Result<u64, SubnetAgentError> {
    let wrong = |why: String| SubnetAgentError::Key { path: path.to_owned(), why };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let digits = text.trim().trim_start_matches("0x");
    let key = u64::from_str_radix(digits, 16).ok().filter(|&key| key != 0);
    key.ok_or_else(|| wrong("expected a number of up to 16 hexadecimal digits, and not 0".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_number_that_is_not_zero() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            read_key(file.path())
        };
        assert_eq!(read("0x00f1\n").unwrap(), 0xF1);
        assert!(read("0").unwrap_err().to_string().ends_with("hexadecimal digits, and not 0"));
        assert!(read("secret").is_err() && read_key(Path::new("/nonexistent")).is_err());
    }
}
