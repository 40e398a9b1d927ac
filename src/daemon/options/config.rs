//! The options with all defaults filled in.

use std::path::PathBuf;
use std::time::Duration;

use mapper_proto::agent::Settings;

use crate::link::ethernet::Marking;

/// What an agent's daemon needs to know: the options, with defaults where nothing was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The network interface.
    pub interface: String,
    /// How frames are marked.
    pub marking: Marking,
    /// The agent's settings; the address is not known before the interface is opened.
    pub settings: Settings,
    /// Seed of the agent's random choices.
    pub seed: Option<u64>,
    /// Routes to each destination.
    pub num_passes: u8,
    /// Whether to route by up*/down* whatever the fabric looks like.
    pub non_clos: bool,
    /// Board number.
    pub unit: u8,
    /// Directory of the status sockets.
    pub run_dir: PathBuf,
    /// Run in the background, with the process id here.
    pub daemon_pid_file: Option<PathBuf>,
    /// Where each new map is stored.
    pub map_file: Option<PathBuf>,
    /// Leave once the network is complete, and fail after this time.
    pub map_once: Option<Duration>,
    /// Log more.
    pub verbose: bool,
    /// Log there.
    pub verbose_file: Option<PathBuf>,
}
