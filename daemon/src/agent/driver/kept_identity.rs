//! The address and tag of a node whose ports are named by patterns, kept in a file.
//!
//! The kernel finds interfaces in any order, and some of them late. So the address and tag that a node first
//! took are kept with the addresses of its ports, and count at every later start at which the machine has one
//! of these ports. The copy of a machine has other ports, and so ignores the copied file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, io};

use mapper_machine::whole_file;
use mapper_proto::Mac;

use crate::agent::options::Config;
use mapper_proto::crossbar_tag;

/// The most ports whose addresses are kept.
const MOST_PORTS: usize = 254;

/// The directory of what a daemon is to know at its next start: the state directory that the service manager
/// gives, or else the run directory, which is empty after each boot.
pub(super) fn state_directory(config: &Config) -> PathBuf {
    let state = env::var_os("STATE_DIRECTORY").filter(|directory| !directory.is_empty());
    state.map_or_else(|| config.service.run_dir.clone(), PathBuf::from)
}

/// What a node is known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeptIdentity {
    /// The node's address.
    pub(super) mac: Mac,
    /// The tag of its crossbar.
    pub(super) tag: u64,
    /// The addresses of the ports that it has had.
    ports: BTreeSet<Mac>,
}

impl KeptIdentity {
    /// The identity of a node whose ports have these addresses now. It is what was kept, if one of the ports
    /// is among those that were kept. Otherwise the address is that of the first of `named`, the ports that
    /// are named, in their order, or else the lowest address of a port that matches a pattern.
    pub(super) fn choose(
        kept: Option<Self>,
        machine_id: &[u8],
        named: &[Mac],
        matching: &[Mac],
    ) -> Option<Self> {
        let now: BTreeSet<Mac> = named.iter().chain(matching).copied().collect();
        if let Some(mut kept) = kept.filter(|kept| !kept.ports.is_disjoint(&now)) {
            kept.learn(now.into_iter());
            return Some(kept);
        }
        let mac = named.first().or_else(|| matching.iter().min()).copied()?;
        let others = now.iter().copied().filter(|other| *other != mac);
        let telling: Vec<Mac> = std::iter::once(mac).chain(others).collect();
        Some(Self { mac, tag: crossbar_tag::derive(machine_id, &telling), ports: now })
    }

    /// Takes note of ports that the node has now. Returns whether some are new.
    pub(super) fn learn(&mut self, ports: impl Iterator<Item = Mac>) -> bool {
        let before = self.ports.len();
        self.ports.extend(ports.take(MOST_PORTS));
        while self.ports.len() > MOST_PORTS {
            self.ports.pop_first();
        }
        self.ports.len() != before
    }

    /// The file of a node.
    pub(super) fn path(config: &Config) -> PathBuf {
        state_directory(config).join(format!("node-{}.identity", config.interface))
    }

    /// The identity that is kept in a file; `None` if there is no such file, or it makes no sense.
    pub(super) fn read(path: &Path) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(path).ok()?)
    }

    /// Keeps the identity for later starts.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        if Self::read(path).as_ref() == Some(self) {
            return Ok(());
        }
        whole_file::replace(path, &self.to_text())
    }

    fn to_text(&self) -> String {
        let Self { mac, tag, ports } = self;
        let ports: String = ports.iter().map(|port| format!("port {port}\n")).collect();
        format!("address {mac}\ntag {tag:016x}\n{ports}")
    }

    fn parse(text: &str) -> Option<Self> {
        let (mut mac, mut tag, mut ports) = (None, None, BTreeSet::new());
        for line in text.lines().take(MOST_PORTS + 2) {
            match line.split_once(' ')? {
                ("address", word) => mac = Some(word.parse().ok()?),
                ("tag", word) => tag = Some(u64::from_str_radix(word, 16).ok()?),
                ("port", word) => drop(ports.insert(word.parse().ok()?)),
                _ => return None,
            }
        }
        Some(Self { mac: mac?, tag: tag?, ports })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn macs(numbers: &[u32]) -> Vec<Mac> {
        numbers.iter().map(|&number| Mac::from_position(number)).collect()
    }

    #[test]
    fn what_a_node_first_took_it_keeps_whatever_order_its_ports_are_found_in() {
        let choose = |kept: Option<KeptIdentity>, ports: &[u32]| {
            KeptIdentity::choose(kept, b"5a", &[], &macs(ports)).unwrap()
        };
        let first = choose(None, &[5, 3]);
        assert_eq!(first.mac, Mac::from_position(3));
        assert_eq!(choose(None, &[3, 5]), first, "the order does not matter");
        let with_late = choose(Some(first.clone()), &[1, 5]);
        assert_eq!((with_late.mac, with_late.tag), (first.mac, first.tag));
        let late_alone = choose(Some(with_late), &[1]);
        assert_eq!((late_alone.mac, late_alone.tag), (first.mac, first.tag));
        assert_eq!(
            choose(Some(first), &[7, 8]).mac,
            Mac::from_position(7),
            "a copy of the machine has other ports"
        );
    }

    #[test]
    fn ports_that_come_later_are_learned_and_never_too_many() {
        let mut identity = KeptIdentity::choose(None, b"5a", &[], &macs(&[1])).unwrap();
        assert!(identity.learn(macs(&[2]).into_iter()));
        assert!(!identity.learn(macs(&[1, 2]).into_iter()));
        let many: Vec<u32> = (3..1000).collect();
        identity.learn(macs(&many).into_iter());
        assert!(identity.ports.len() <= MOST_PORTS);
    }

    #[test]
    fn a_port_that_is_named_gives_its_address_before_those_of_patterns() {
        let named = KeptIdentity::choose(None, b"5a", &macs(&[9, 2]), &macs(&[1])).unwrap();
        assert_eq!(named.mac, Mac::from_position(9));
        assert_eq!(KeptIdentity::choose(None, b"5a", &[], &[]), None);
    }

    #[test]
    fn it_comes_back_from_its_file_and_a_damaged_one_counts_for_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("node-eth.identity");
        assert_eq!(KeptIdentity::read(&path), None);
        let identity = KeptIdentity::choose(None, b"5a", &[], &macs(&[4, 6])).unwrap();
        identity.write(&path).unwrap();
        assert_eq!(KeptIdentity::read(&path), Some(identity));
        for damaged in ["", "address 02:00:00:00:00:01\n", "tag 7\n", "port x\n", "nonsense\n"] {
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(KeptIdentity::read(&path), None, "{damaged}");
        }
    }
}
