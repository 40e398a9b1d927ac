//! What may be set of the service.

use std::time::Duration;

use crate::files::PathTable;
use crate::files::address_file::NamedEndpoint;
use crate::files::hosts_file::Gids;

/// The settings of a service. They may change while it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How long a question for an unknown name or address waits before it counts as tried once.
    pub timeout: Duration,
    /// How many more times it is tried.
    pub retries: u32,
    /// How long it is remembered whose an address is; `None` for ever.
    pub address_keep: Option<Duration>,
    /// How long a path is remembered; `None` as long as the address that it was asked for.
    pub route_keep: Option<Duration>,
    /// How long it is remembered that nobody has a name or an address.
    pub negative_keep: Duration,
    /// The most addresses, and the most paths, that are remembered.
    pub most_cached: usize,
    /// The most questions that an agent is asked at once about names and addresses of which nothing is known.
    pub most_asked: usize,
    /// The most questions that wait for an answer, of all clients together.
    pub most_waiting: usize,
    /// The most questions of one client that wait.
    pub most_waiting_each: usize,
    /// More names and addresses of this machine, and partitions.
    pub endpoints: Vec<NamedEndpoint>,
    /// Names and addresses whose GIDs a file tells.
    pub addresses: Gids,
    /// Paths that a file tells.
    pub paths: PathTable,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(2),
            retries: 2,
            address_keep: Some(Duration::from_secs(1440 * 60)),
            route_keep: None,
            negative_keep: Duration::from_secs(10),
            most_cached: 65_536,
            most_asked: 16,
            most_waiting: 4_096,
            most_waiting_each: 64,
            endpoints: Vec::new(),
            addresses: Gids::new(),
            paths: PathTable::default(),
        }
    }
}

impl Settings {
    /// How long a question waits in all.
    pub fn patience(&self) -> Duration {
        self.timeout.saturating_mul(self.retries.saturating_add(1))
    }
}
