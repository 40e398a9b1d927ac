//! Addresses that several hosts have, as boards show them.

use mapper_host::directory::Clash;
use serde::{Deserialize, Serialize};

/// An address of IP that two or more hosts of the map have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressClash {
    /// The address.
    pub address: String,
    /// The MACs of all hosts that have it.
    pub hosts: Vec<String>,
    /// Whether two or more of them were told to have it, so that the clash stays. If at most one was, the
    /// hosts that picked the address pick another one.
    pub lasting: bool,
}

impl From<Clash> for AddressClash {
    fn from(Clash { ip, hosts, is_lasting }: Clash) -> Self {
        let hosts = hosts.iter().map(ToString::to_string).collect();
        Self { address: ip.to_string(), hosts, lasting: is_lasting }
    }
}
