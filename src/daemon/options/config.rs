//! The configuration of an agent's daemon: its options with all defaults filled in.

use std::path::PathBuf;
use std::time::Duration;

use mapper_host::names::HostName;
use mapper_machine::link::address::InterfaceAddress;
use mapper_machine::options::ServiceConfig;
use mapper_proto::agent::Settings;

/// What a message takes beside the piece of a map in it: route, headers, addresses, trailer, CRC-32.
const MESSAGE_OVERHEAD_BYTES: usize = 200;

/// What an agent's daemon needs to know: the options, with defaults where nothing was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The network interface, or for a node the name that is made of all its ports.
    pub interface: String,
    /// The interfaces of a node's crossbar; none for an agent alone.
    pub ports: Vec<String>,
    /// The options that daemons of any kind have.
    pub service: ServiceConfig,
    /// The agent's settings. They do not include its address, which is not known before the interface is
    /// opened.
    pub settings: Settings,
    /// Seed of the agent's random choices.
    pub seed: Option<u64>,
    /// Routes to each destination.
    pub num_passes: u8,
    /// Board number.
    pub unit: u8,
    /// Whether the user set the board number. If not, the daemon takes any that is free.
    pub unit_given: bool,
    /// The file that each new map is stored in.
    pub map_file: Option<PathBuf>,
    /// If set, the daemon ends once mapping is complete everywhere, and fails after this time.
    pub map_once: Option<Duration>,
    /// The name of the host's Ethernet interface over the fabric.
    pub tap: Option<String>,
    /// The addresses of IP that this interface gets.
    pub addresses: Vec<InterfaceAddress>,
    /// The file with the keys of the mapper's messages.
    pub key_file: Option<PathBuf>,
    /// What this host is called. If not set, it has the machine's name.
    pub host_name: Option<HostName>,
}

impl Config {
    /// The least MTU of the interface: its frames must hold the mapper's longest messages.
    pub fn needed_mtu(&self) -> u32 {
        u32::try_from(self.settings.piece_bytes + MESSAGE_OVERHEAD_BYTES).unwrap_or(u32::MAX)
    }

    /// How many routes there are to a destination, and how long they may be.
    pub fn route_options(&self) -> mapper_routing::Options {
        mapper_routing::Options { passes: self.num_passes, max_hops: self.settings.max_hops as u8 }
    }
}
