//! The configuration of an agent's daemon: its options with all defaults filled in.

use std::path::PathBuf;
use std::time::Duration;

use mapper_host::directory::HostName;
use mapper_machine::kernel::Ability;
use mapper_machine::link::address::InterfaceAddress;
use mapper_machine::options::{DataPathChoice, OnChange, PlanKeys, ServiceConfig, Text};
use mapper_proto::IpNetworkAddress;
use mapper_proto::agent::Settings;

use super::{FabricPrefix, OptionsError, SubnetConfig};

/// What a message takes beside the piece of a map in it: route, headers, addresses, trailer, CRC-32.
const MESSAGE_OVERHEAD_BYTES: usize = 200;

/// What an agent's daemon needs to know: the options, with defaults where nothing was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The network interface, or for a node the name that is made of all its ports.
    pub interface: String,
    /// The interfaces of a node's crossbar that are named; none for an agent alone.
    pub ports: Vec<String>,
    /// Patterns of names: the interfaces that match are ports of the node too. None for an agent alone.
    pub patterns: Vec<String>,
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
    /// The plan of the fabric's wiring.
    pub plan: Option<PlanConfig>,
    /// If set, the daemon ends once mapping is complete everywhere, and fails after this time.
    pub map_once: Option<Duration>,
    /// The name of the host's Ethernet interface over the fabric.
    pub tap: Option<String>,
    /// The addresses of IP that this interface gets.
    pub addresses: Vec<InterfaceAddress>,
    /// What users' packets go by.
    pub data_path: DataPathChoice,
    /// Which abilities of the kernel are not used.
    pub kernel_avoid: Vec<Ability>,
    /// Whether the kernel's routes stay when the daemon ends.
    pub keep_routes: bool,
    /// The networks of IPv4. Out of each the interface gets an address that no other host has.
    pub networks: Vec<IpNetworkAddress>,
    /// The network of IPv6 in which the interface gets the address that its MAC makes.
    pub fabric_prefix: FabricPrefix,
    /// The file of hosts' names in which the names of the fabric's hosts are kept.
    pub hosts_file: Option<PathBuf>,
    /// The file with the keys of the mapper's messages.
    pub key_file: Option<PathBuf>,
    /// What this host is called. If not set, it has the machine's name.
    pub host_name: Option<HostName>,
    /// What counts at a port of InfiniBand alone.
    pub subnet: SubnetConfig,
}

/// The plan that a daemon compares its maps with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanConfig {
    /// A file in any format of fabrics or lists of cables, or a generator's spec.
    pub file: String,
    /// Who is told when what is not as planned changes.
    pub on_change: Option<OnChange>,
}

impl PlanConfig {
    /// The plan that keys ask for, if they do.
    ///
    /// # Errors
    /// If somebody is to be told of changes, and there is no plan.
    pub(super) fn of(keys: PlanKeys) -> Result<Option<Self>, OptionsError> {
        let on_change = keys.on_change.map(Text::value);
        match keys.file {
            Some(file) => Ok(Some(Self { file, on_change })),
            None if on_change.is_some() => Err(OptionsError::OnChangeWithoutPlan),
            None => Ok(None),
        }
    }
}

impl Config {
    /// The mark of what this daemon keeps in files of others. It is the name of its interface over the
    /// fabric, or else of its interface to the fabric.
    pub fn mark(&self) -> &str {
        self.tap.as_deref().unwrap_or(&self.interface)
    }

    /// Whether this is the configuration of a node, and not of an agent alone.
    pub fn is_node(&self) -> bool {
        !self.ports.is_empty() || !self.patterns.is_empty()
    }

    /// The least MTU of the interface: its frames must hold the mapper's longest messages.
    pub fn needed_mtu(&self) -> u32 {
        u32::try_from(self.settings.piece_bytes + MESSAGE_OVERHEAD_BYTES).unwrap_or(u32::MAX)
    }

    /// How many routes there are to a destination, and how long they may be.
    pub fn route_options(&self) -> mapper_routing::RouteOptions {
        mapper_routing::RouteOptions { passes: self.num_passes, max_hops: self.settings.max_hops as u8 }
    }
}
