//! The addresses that a host picked, kept in a file, so that it tries them first when it starts again.
//!
//! What a host tries first is decided by its MAC, so most hosts would pick the same anyway. Where two hosts once wanted
//! one address, it would depend on which of them starts first.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use mapper_machine::whole_file;
use mapper_proto::{IpNetworkAddress, Mac};

use super::kept_identity::state_directory;
use crate::agent::options::Config;

/// The most addresses that are kept.
const MOST_KEPT: usize = 64;
/// The most bytes of a file. As many addresses as are kept have fewer.
const MOST_BYTES: u64 = 8 << 10;
/// The most hosts whose addresses are kept for interfaces of one name: an interface may have another MAC at each start.
const MOST_HOSTS: usize = 256;

/// The addresses that a host has picked, of any network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct KeptAddresses {
    /// The addresses, of each network the one that was picked last first.
    all: Vec<IpNetworkAddress>,
    /// What the file has of them.
    written: Vec<IpNetworkAddress>,
}

impl KeptAddresses {
    /// The file of the host with this MAC. Agents of several namespaces may have a state directory and the name of an
    /// interface in common, but no MAC.
    pub(super) fn path(config: &Config, own: Mac) -> PathBuf {
        path_of(&state_directory(config), &config.interface, own)
    }

    /// What the file holds for the host with this MAC. That is nothing if there is no such file, or if it is another
    /// host's.
    ///
    /// # Errors
    /// If the file cannot be read, is too long, or makes no sense.
    pub(super) fn read(path: &Path, own: Mac) -> io::Result<Self> {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            file => file?,
        };
        let mut text = String::new();
        file.take(MOST_BYTES + 1).read_to_string(&mut text)?;
        if text.len() as u64 > MOST_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("it is longer than {MOST_BYTES} bytes"),
            ));
        }
        let (host, addresses) = parse(&text)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it is no list of addresses"))?;
        let all = if host == own { addresses } else { Vec::new() };
        Ok(Self { written: all.clone(), all })
    }

    /// Keeps the addresses for later starts of the host with this MAC. Returns whether they were written, which they are
    /// not if the file has them already.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn write(&mut self, path: &Path, own: Mac) -> io::Result<bool> {
        if self.all == self.written {
            return Ok(false);
        }
        let addresses: String = self.all.iter().map(|address| format!("address {address}\n")).collect();
        whole_file::replace(path, &format!("host {own}\n{addresses}"))?;
        self.written.clone_from(&self.all);
        Ok(true)
    }

    /// The addresses, of each network the one that was picked last first.
    pub(super) fn all(&self) -> &[IpNetworkAddress] {
        &self.all
    }

    /// Takes in that an address was picked, in place of the one that was given up for it.
    pub(super) fn take(&mut self, picked: IpNetworkAddress, given_up: Option<IpNetworkAddress>) {
        self.all.retain(|&kept| Some(kept) != given_up);
        // If it is the first of its network already, nothing is to be done: its order among addresses of other networks does not
        // matter, and to change it would cost a write at each start.
        if self.all.iter().find(|kept| picked.contains(kept.ip())) == Some(&picked) {
            return;
        }
        self.all.retain(|&kept| kept != picked);
        self.all.insert(0, picked);
        self.all.truncate(MOST_KEPT);
    }
}

/// Removes the files of interfaces of this name that were written longest ago, if those of too many hosts are there. What
/// cannot be looked at or removed takes room and does no other harm.
pub(super) fn forget_oldest(config: &Config, own: Mac) {
    forget_all_but(MOST_HOSTS, &state_directory(config), &config.interface, own);
}

fn forget_all_but(most_hosts: usize, directory: &Path, interface: &str, own: Mac) {
    let mut others = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let mac = name.to_str().and_then(|name| host_of(name, interface)).filter(|&mac| mac != own);
        if let (Some(_), Ok(written)) = (mac, entry.metadata().and_then(|file| file.modified())) {
            others.push((written, entry.path()));
        }
    }
    others.sort_unstable();
    let too_many = (others.len() + 1).saturating_sub(most_hosts);
    for (_, path) in others.into_iter().take(too_many) {
        let _stays = std::fs::remove_file(path);
    }
}

fn path_of(directory: &Path, interface: &str, host: Mac) -> PathBuf {
    directory.join(format!("{interface}.{host}.addresses"))
}

/// Whose file it is that has this name, if it is one of interfaces of the name `interface`.
fn host_of(name: &str, interface: &str) -> Option<Mac> {
    name.strip_prefix(interface)?.strip_prefix('.')?.strip_suffix(".addresses")?.parse().ok()
}

/// Whose addresses a text has, and the addresses; `None` if it makes no sense.
fn parse(text: &str) -> Option<(Mac, Vec<IpNetworkAddress>)> {
    let mut lines = text.lines();
    let host = lines.next()?.strip_prefix("host ")?.parse().ok()?;
    let addresses = lines.take(MOST_KEPT).map(|line| line.strip_prefix("address ")?.parse().ok());
    Some((host, addresses.collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpNetworkAddress {
        text.parse().unwrap()
    }

    #[test]
    fn what_was_picked_is_read_again_by_its_host_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (own, other) = (Mac::from_position(1), Mac::from_position(2));
        let path = path_of(dir.path(), "eth1", own);
        assert_eq!(KeptAddresses::read(&path, own).unwrap(), KeptAddresses::default());
        let mut kept = KeptAddresses::default();
        kept.take(address("10.1.0.7/24"), None);
        kept.take(address("10.2.0.7/24"), None);
        kept.take(address("10.1.0.9/24"), Some(address("10.1.0.7/24")));
        assert_eq!(kept.all(), ["10.1.0.9/24", "10.2.0.7/24"].map(address));
        kept.write(&path, own).unwrap();
        assert_eq!(KeptAddresses::read(&path, own).unwrap(), kept);
        assert_eq!(
            KeptAddresses::read(&path, other).unwrap(),
            KeptAddresses::default(),
            "it is another machine's"
        );
    }

    #[test]
    fn two_hosts_with_interfaces_of_one_name_keep_theirs_in_one_directory() {
        let dir = tempfile::tempdir().unwrap();
        let hosts = [1, 2].map(Mac::from_position);
        let path = |own| path_of(dir.path(), "eth1", own);
        let addresses = ["10.1.0.1/24", "10.1.0.2/24"].map(address);
        for (own, picked) in hosts.into_iter().zip(addresses) {
            let mut kept = KeptAddresses::read(&path(own), own).unwrap();
            kept.take(picked, None);
            kept.write(&path(own), own).unwrap();
        }
        let read = hosts.map(|own| KeptAddresses::read(&path(own), own).unwrap().all().to_vec());
        assert_eq!(read, addresses.map(|picked| vec![picked]));
    }

    #[test]
    fn a_file_that_cannot_be_read_makes_no_sense_or_has_no_end_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let own = Mac::from_position(1);
        let path = path_of(dir.path(), "eth1", own);
        let long = format!("host {own}\n{}", "address 10.1.0.7/24\n".repeat(1000));
        for damaged in
            ["", "host", "host 1", "address 10.1.0.7/24\n", "host 02:00:00:00:00:01\naddress 10.1\n", &long]
        {
            std::fs::write(&path, damaged).unwrap();
            assert!(KeptAddresses::read(&path, own).is_err(), "{damaged}");
        }
        assert!(KeptAddresses::read(Path::new("/dev/zero"), own).is_err());
        assert!(KeptAddresses::read(dir.path(), own).is_err(), "it is a directory");
    }

    #[test]
    fn what_the_file_has_is_not_written_again() {
        let dir = tempfile::tempdir().unwrap();
        let own = Mac::from_position(1);
        let path = path_of(dir.path(), "eth1", own);
        let mut kept = KeptAddresses::default();
        kept.take(address("10.1.0.7/24"), None);
        kept.take(address("10.2.0.7/24"), None);
        kept.write(&path, own).unwrap();
        let mut kept = KeptAddresses::read(&path, own).unwrap();
        std::fs::remove_file(&path).unwrap();
        for same in ["10.1.0.7/24", "10.2.0.7/24"] {
            kept.take(address(same), None);
            assert!(!kept.write(&path, own).unwrap());
        }
        assert!(!path.exists());
        kept.take(address("10.1.0.8/24"), None);
        assert!(kept.write(&path, own).unwrap());
        kept.take(address("10.1.0.7/24"), None);
        assert_eq!(kept.all(), ["10.1.0.7/24", "10.1.0.8/24", "10.2.0.7/24"].map(address));
        kept.write(&path, own).unwrap();
        assert_eq!(KeptAddresses::read(&path, own).unwrap(), kept);
    }

    #[test]
    fn never_too_many_are_kept_and_all_of_them_are_read_again() {
        let mut kept = KeptAddresses::default();
        for number in 0..200 {
            kept.take(address(&format!("2001:db8:1111:2222:3333:4444:5555:1{number:03}/128")), None);
        }
        assert_eq!(kept.all().len(), MOST_KEPT);
        assert_eq!(kept.all()[0].to_string(), "2001:db8:1111:2222:3333:4444:5555:1199/128");
        let dir = tempfile::tempdir().unwrap();
        let own = Mac::from_position(1);
        let path = path_of(dir.path(), "eth1", own);
        kept.write(&path, own).unwrap();
        assert_eq!(KeptAddresses::read(&path, own).unwrap(), kept);
    }

    #[test]
    fn the_files_of_the_hosts_that_wrote_longest_ago_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = |interface, number| path_of(dir.path(), interface, Mac::from_position(number));
        for number in 1..=4 {
            std::fs::write(path("eth1", number), "").unwrap();
            let file = File::options().write(true).open(path("eth1", number)).unwrap();
            let now = file.metadata().unwrap().modified().unwrap();
            file.set_modified(now - std::time::Duration::from_secs(60 * u64::from(number))).unwrap();
        }
        std::fs::write(path("eth1.5", 9), "").unwrap();
        std::fs::write(dir.path().join("eth1.history"), "").unwrap();
        forget_all_but(3, dir.path(), "eth1", Mac::from_position(4));
        let left = [1, 2, 3, 4].map(|number| path("eth1", number).exists());
        assert_eq!(left, [true, true, false, true], "its own stays");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 5);
    }
}
