//! The addresses that a host picked, kept in a file, so that it tries them first when it starts again.
//!
//! What a host tries first is decided by its MAC, so most hosts would pick the same anyway. Where two hosts once wanted
//! one address, it would depend on which of them starts first.

use std::io;
use std::path::{Path, PathBuf};

use mapper_machine::whole_file;
use mapper_proto::{IpNetworkAddress, Mac};

use super::kept_identity::state_directory;
use crate::agent::options::Config;

/// The most addresses that are kept.
const MOST_KEPT: usize = 64;

/// The addresses that a host has picked, of any network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct KeptAddresses(Vec<IpNetworkAddress>);

impl KeptAddresses {
    /// The file of a host.
    pub(super) fn path(config: &Config) -> PathBuf {
        state_directory(config).join(format!("{}.addresses", config.interface))
    }

    /// What the file holds for the host with this MAC. That is nothing if there is no such file, if it makes no
    /// sense, or if it is another host's, as on the copy of a machine.
    pub(super) fn read(path: &Path, own: Mac) -> Self {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        Self::parse(&text, own).unwrap_or_default()
    }

    /// Keeps the addresses for later starts of the host with this MAC.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn write(&self, path: &Path, own: Mac) -> io::Result<()> {
        let addresses: String = self.0.iter().map(|address| format!("address {address}\n")).collect();
        whole_file::replace(path, &format!("host {own}\n{addresses}"))
    }

    /// The addresses, the one that was picked last first.
    pub(super) fn all(&self) -> &[IpNetworkAddress] {
        &self.0
    }

    /// Takes in that an address was picked, in place of the one that was given up for it.
    pub(super) fn take(&mut self, picked: IpNetworkAddress, given_up: Option<IpNetworkAddress>) {
        self.0.retain(|&kept| kept != picked && Some(kept) != given_up);
        self.0.insert(0, picked);
        self.0.truncate(MOST_KEPT);
    }

    fn parse(text: &str, own: Mac) -> Option<Self> {
        let mut lines = text.lines();
        let host: Mac = lines.next()?.strip_prefix("host ")?.parse().ok()?;
        let addresses = lines.take(MOST_KEPT).map(|line| line.strip_prefix("address ")?.parse().ok());
        (host == own).then(|| addresses.collect::<Option<_>>().map(Self))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_picked_is_read_again_by_its_host_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("eth1.addresses");
        let (own, other) = (Mac::from_position(1), Mac::from_position(2));
        assert_eq!(KeptAddresses::read(&path, own), KeptAddresses::default());
        let address = |text: &str| text.parse().unwrap();
        let mut kept = KeptAddresses::default();
        kept.take(address("10.1.0.7/24"), None);
        kept.take(address("10.2.0.7/24"), None);
        kept.take(address("10.1.0.9/24"), Some(address("10.1.0.7/24")));
        assert_eq!(kept.all(), ["10.1.0.9/24", "10.2.0.7/24"].map(address));
        kept.write(&path, own).unwrap();
        assert_eq!(KeptAddresses::read(&path, own), kept);
        assert_eq!(KeptAddresses::read(&path, other), KeptAddresses::default(), "it is another machine's");
        for damaged in
            ["", "host", "host 1", "address 10.1.0.7/24\n", "host 02:00:00:00:00:01\naddress 10.1\n"]
        {
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(KeptAddresses::read(&path, own), KeptAddresses::default(), "{damaged}");
        }
    }

    #[test]
    fn never_too_many_are_kept() {
        let mut kept = KeptAddresses::default();
        for number in 0..200 {
            kept.take(format!("10.1.0.{number}/24").parse().unwrap(), None);
        }
        assert_eq!(kept.all().len(), MOST_KEPT);
        assert_eq!(kept.all()[0].to_string(), "10.1.0.199/24");
    }
}
