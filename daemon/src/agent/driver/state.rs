//! A running agent, and all that it works with.

use std::io;
use std::time::Duration;

use mapper_host::{Host, UserFrames};
use mapper_proto::agent::Settings;
use mapper_proto::map::MapVersion;
use mapper_proto::{Instant, PortSet};
use tokio::sync::watch;

use super::addresses::Addresses;
use super::attachment::Attachment;
use super::computation::Computation;
use super::followers::Followers;
use super::history::Maps;
use super::kernel_side::KernelSide;
use super::plan::PlanWatch;
use super::resolution::Resolution;
use super::soundings::Measurements;
use super::user_interface::UserInterface;
use super::warnings::Warned;
use crate::agent::metrics::{Causes, KnownFabric};
use crate::agent::options::{Config, Source};
use crate::hosts_file::told::HostsFile;
use mapper_machine::clock::Clock;
use mapper_machine::log::RateLimit;
use mapper_machine::metrics::Exporter;
use mapper_machine::notify::Notifier;
use mapper_machine::timer::Timer;

/// The time in which one line is logged about each peer that speaks another version of the protocol, and one
/// about each peer with another key.
const VERSION_LINE_INTERVAL: Duration = Duration::from_secs(60);
/// The time in which one line of level `debug` is logged about other dropped frames of each peer.
const DROP_LINE_INTERVAL: Duration = Duration::from_secs(1);
/// For how many peers the time of their last line is remembered.
const PEERS_REMEMBERED: usize = 1024;

/// Why routes could not be computed.
#[derive(Debug)]
pub(super) struct RoutingFailure {
    /// As the host says it to others, who may know no names.
    pub(super) why: String,
    /// With hosts called by their names.
    pub(super) in_words: String,
}

/// A running agent, and all that it works with.
pub(super) struct Driver {
    /// The command line and files that `config` was read from.
    pub(super) source: Source,
    pub(super) config: Config,
    pub(super) attachment: Attachment,
    pub(super) notifier: Notifier,
    pub(super) clock: Clock,
    /// Goes off when something is due.
    pub(super) timer: Timer,
    pub(super) host: Host,
    /// The tap interface that users' frames come from and go to, if there is one.
    pub(super) users: Option<UserInterface>,
    /// The kernel as the way of users' packets, or why it is not used.
    pub(super) kernel: Result<KernelSide, String>,
    /// What users' packets go by, as the log says it.
    pub(super) told_data_path: String,
    /// The carriers of a node's crossbar.
    pub(super) carriers: Option<watch::Receiver<PortSet>>,
    pub(super) computation: Computation,
    /// Programs that wait for names, addresses or paths to change.
    pub(super) followers: Followers,
    /// Names and addresses that are not announced: those that programs ask for, and those that they say this
    /// machine has.
    pub(super) resolution: Resolution,
    /// What is being measured for programs that asked.
    pub(super) measurements: Measurements,
    pub(super) version_lines: RateLimit,
    pub(super) key_lines: RateLimit,
    pub(super) drop_lines: RateLimit,
    pub(super) causes: Causes,
    pub(super) exporter: Exporter,
    /// What all maps have shown, for the metrics.
    pub(super) known: KnownFabric,
    /// What is known of this machine's addresses that the host does not know.
    pub(super) addresses: Addresses,
    /// The warnings that were logged and are in force still.
    pub(super) warned: Warned,
    /// Why the last map could not be stored, if that failed.
    pub(super) store_failure: Option<io::Error>,
    /// Why routes could not be computed the last time that this failed.
    pub(super) failed: Option<RoutingFailure>,
    /// When to store the map again, as names have come since it was stored.
    pub(super) store_names_at: Option<Instant>,
    /// The file of hosts' names, if one is kept.
    pub(super) hosts_file: Option<HostsFile>,
    /// When to have the file of hosts' names written again.
    pub(super) write_hosts_at: Option<Instant>,
    /// The plan of the wiring, if there is one, and what is not as it says.
    pub(super) plan: PlanWatch,
    /// The log of maps.
    pub(super) maps: Maps,
    /// The last map version that was complete everywhere.
    pub(super) complete: Option<MapVersion>,
    /// When to give back what was needed for what happened last, if nothing happens until then.
    pub(super) rest_at: Option<Instant>,
    /// Whether the agent is to end now, as mapping is complete everywhere.
    pub(super) has_mapped_once: bool,
}

impl Driver {
    /// A driver that has not begun yet. `secret` is the key of the tokens in users' frames, and `seed` is for
    /// everything else that is random.
    pub(super) fn new(
        source: Source,
        config: Config,
        attachment: Attachment,
        (users, kernel): (Option<UserInterface>, Result<KernelSide, String>),
        (seed, secret): (u64, u64),
        exporter: Exporter,
    ) -> Self {
        let carriers = attachment.crossbar.as_ref().map(|switch| switch.carriers());
        let mtu = users.as_ref().and_then(|_| attachment.link_mtu()).unwrap_or_default();
        let settings = Settings { mac: attachment.mac, mtu, ..config.settings.clone() };
        let carried = users.as_ref().map(|_| UserFrames { link_mtu: attachment.mtu, secret });
        let clock = Clock::start();
        Self {
            host: Host::new(settings, config.route_options(), carried, seed, Instant::ZERO),
            notifier: Notifier::new(),
            source,
            config,
            attachment,
            timer: Timer::new(clock),
            clock,
            users,
            kernel,
            told_data_path: String::new(),
            carriers,
            computation: Computation::default(),
            followers: Followers::default(),
            resolution: Resolution::default(),
            measurements: Measurements::default(),
            version_lines: RateLimit::new(VERSION_LINE_INTERVAL, PEERS_REMEMBERED),
            key_lines: RateLimit::new(VERSION_LINE_INTERVAL, PEERS_REMEMBERED),
            drop_lines: RateLimit::new(DROP_LINE_INTERVAL, PEERS_REMEMBERED),
            causes: Causes::default(),
            exporter,
            known: KnownFabric::new(),
            addresses: Addresses::default(),
            warned: Warned::default(),
            store_failure: None,
            failed: None,
            store_names_at: None,
            hosts_file: None,
            write_hosts_at: None,
            plan: PlanWatch::default(),
            maps: Maps::default(),
            complete: None,
            rest_at: None,
            has_mapped_once: false,
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }
}
