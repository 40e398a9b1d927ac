//! The event loop of a running agent.

use std::future::pending;
use std::io;
use std::time::Duration;

use mapper_host::kernel_path::KernelPath;
use mapper_host::{Host, UserFrames};
use mapper_proto::agent::Settings;
use mapper_proto::map::{LinkMtu, MapVersion};
use mapper_proto::wire::{CrossbarKind, Printer};
use mapper_proto::{Instant, Mac};
use tokio::sync::{mpsc, watch};
use tracing::{Level, debug, enabled, info, trace};

use super::DaemonEnd;
use super::addresses::Addresses;
use super::attachment::Attachment;
use super::computation::Computation;
use super::direct_cable::hello_due;
use super::followers::Followers;
use super::history::Maps;
use super::kernel_side::{KernelSide, from_kernel};
use super::plan::PlanWatch;
use super::resolution::Resolution;
use super::soundings::Measurements;
use super::user_interface::UserInterface;
use crate::daemon::DaemonError;
use crate::daemon::metrics::{self, Causes, KnownFabric};
use crate::daemon::options::{Config, Source};
use crate::daemon::status::{AgentRequest, dead_ports, state_name};
use crate::hosts_file::told::HostsFile;
use mapper_machine::clock::Clock;
use mapper_machine::link::batch::Batch;
use mapper_machine::link::ethernet::{EthernetFrame, MAX_FRAME_BYTES};
use mapper_machine::link::held_address::AddressMonitor;
use mapper_machine::link::interface::{InterfaceChange, InterfaceMonitor};
use mapper_machine::log::{self, RateLimit};
use mapper_machine::metrics::Exporter;
use mapper_machine::notify::Notifier;
use mapper_machine::signals::{Signal, Signals};
use mapper_machine::status::{Client, StatusServer};
use mapper_proto::PortSet;

/// How many requests wait to be answered at most.
const REQUESTS: usize = 16;
/// How many frames of the user are taken in before timers and sockets have their turn.
const BURST: usize = 64;
/// The time in which one line is logged about each peer that speaks another version of the protocol, and one
/// about each peer with another key.
const VERSION_LINE_INTERVAL: Duration = Duration::from_secs(60);
/// The time in which one line of level `debug` is logged about other dropped frames of each peer.
const DROP_LINE_INTERVAL: Duration = Duration::from_secs(1);
/// For how many peers the time of their last line is remembered.
const PEERS_REMEMBERED: usize = 1024;

/// A running agent, and all that it works with.
pub(super) struct Driver {
    /// The command line and files that `config` was read from.
    pub(super) source: Source,
    pub(super) config: Config,
    pub(super) attachment: Attachment,
    pub(super) notifier: Notifier,
    clock: Clock,
    pub(super) host: Host,
    /// The tap interface that users' frames come from and go to, if there is one.
    pub(super) users: Option<UserInterface>,
    /// The kernel as the way of users' packets, or why it is not used.
    pub(super) kernel: Result<KernelSide, String>,
    /// What users' packets go by, as the log says it.
    pub(super) told_data_path: String,
    /// The carriers of a node's crossbar, and those that the host was last told of.
    carriers: Option<(watch::Receiver<PortSet>, PortSet)>,
    pub(super) computation: Computation,
    /// Programs that wait for names, addresses or paths to change.
    pub(super) followers: Followers,
    /// What programs ask for that is not announced, and what they say of this machine.
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
    /// What is known of this machine's addresses beside what the host knows.
    pub(super) addresses: Addresses,
    /// The warnings about interfaces that were last logged.
    pub(super) warned: Vec<String>,
    /// Why the last map could not be stored, if that failed.
    pub(super) store_failure: Option<io::Error>,
    /// When to store the map again, as names have come since it was stored.
    pub(super) store_names_at: Option<Instant>,
    /// The file of hosts' names, if one is kept.
    pub(super) hosts_file: Option<HostsFile>,
    /// When to have it written again.
    pub(super) write_hosts_at: Option<Instant>,
    /// The plan of the wiring, if there is one, and what is not as it says.
    pub(super) plan: PlanWatch,
    /// The log of maps.
    pub(super) maps: Maps,
    /// The last map version that was complete everywhere.
    pub(super) complete: Option<MapVersion>,
    /// When to end, as with `map_once` mapping is complete everywhere.
    pub(super) leave_at: Option<Instant>,
    /// Until when routes that are to stay are waited for though no kernel answers along them.
    pub(super) wait_for_answers_until: Instant,
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
        let carriers = attachment.crossbar.as_ref().map(|switch| (switch.carriers(), attachment.ports()));
        let mtu = users.as_ref().and_then(|_| attachment.link_mtu()).unwrap_or_default();
        let settings = Settings { mac: attachment.mac, mtu, ..config.settings.clone() };
        let carried = users.as_ref().map(|_| UserFrames { link_mtu: attachment.mtu, secret });
        Self {
            host: Host::new(settings, config.route_options(), carried, seed, Instant::ZERO),
            notifier: Notifier::new(),
            source,
            config,
            attachment,
            clock: Clock::start(),
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
            warned: Vec::new(),
            store_failure: None,
            store_names_at: None,
            hosts_file: None,
            write_hosts_at: None,
            plan: PlanWatch::default(),
            maps: Maps::default(),
            complete: None,
            leave_at: None,
            wait_for_answers_until: Instant::ZERO,
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    pub(super) async fn drive(
        &mut self,
        (monitor, address_monitor): (&InterfaceMonitor, &AddressMonitor),
        [server, requests_server]: [&StatusServer; 2],
        signals: &mut Signals,
    ) -> Result<DaemonEnd, DaemonError> {
        // Reports from before this moment are dropped, and all interfaces are looked up instead. Among them
        // are reports of the steps in which this process made the tap interface.
        monitor.forget_past();
        self.apply(&InterfaceChange::Missed);
        self.follow_patterns();
        self.follow_address();
        self.look_around()?;
        self.say_name();
        self.follow_addresses()?;
        self.host.pick_addresses(self.now(), &self.config.networks);
        let mut batch = Batch::new();
        let mut buffer = vec![0; MAX_FRAME_BYTES];
        // Requests are read by tasks of their own, so a client that asks slowly does not hold up the loop.
        let (asking, mut asked) = mpsc::channel(REQUESTS);
        loop {
            self.drain(None);
            self.store_names_if_due();
            self.count_packets();
            self.follow_patterns_if_due();
            self.write_hosts_if_due();
            self.check_plan_if_due();
            self.end_lease_if_due();
            self.notifier.feed_if_due(self.now());
            if self.must_leave()? {
                info!("mapping is complete everywhere; leaving");
                return Ok(DaemonEnd::Complete { hosts: self.host.agent().status().hosts });
            }
            let wake_at = self.wake_at();
            tokio::select! {
                () = self.attachment.link.recv_batch(&mut batch) => self.take_frames(&batch),
                ready = user_ready(&self.users) => self.take_user_frames(&mut buffer, ready)?,
                () = carrier_changed(&mut self.carriers) => self.follow_carriers(),
                () = hello_due(&self.attachment) => self.exchange_hellos(),
                said = from_kernel(&mut self.kernel, self.host.kernel_path()) => self.take_from_kernel(said),
                () = self.clock.sleep_until(wake_at) => self.host.handle_timeout(self.now()),
                computed = self.computation.finished() => self.take_routes(computed),
                checked = self.plan.checked() => self.take_checked(checked),
                client = server.accept() => match client {
                    Ok(client) => drop(tokio::spawn(client.answer(self.board()))),
                    Err(error) => debug!(%error, "cannot accept on the status socket"),
                },
                client = requests_server.accept() => match client {
                    Ok(client) => drop(tokio::spawn(take_request(client, asking.clone()))),
                    Err(error) => debug!(%error, "cannot accept on the socket of requests"),
                },
                Some((request, client)) = asked.recv() => self.answer(&request, client),
                request = self.exporter.requested() => {
                    let crossbar = self.attachment.crossbar.as_ref().map(|switch| switch.status());
                    let board = self.board();
                    let text = metrics::render_node(&board, &self.known, crossbar.as_ref(), request.dialect());
                    request.answer(text);
                }
                changes = monitor.changes() => {
                    changes?.iter().for_each(|change| self.apply(change));
                    self.follow_patterns();
                    self.follow_address();
                    self.look_around()?;
                    // An interface that comes may be a port, and have addresses already.
                    self.follow_addresses()?;
                }
                changed = address_monitor.changed() => {
                    changed?;
                    self.follow_addresses()?;
                }
                signal = signals.next() => match signal {
                    Signal::Stop => {
                        info!("told to stop");
                        self.notifier.stopping();
                        return Ok(DaemonEnd::Stopped);
                    }
                    Signal::Reload => {
                        self.notifier.reloading();
                        self.reload();
                        self.notifier.ready();
                    }
                    Signal::ReopenLog => log::reopen(),
                },
            }
        }
    }

    /// Takes in a change of any interface.
    fn apply(&mut self, change: &InterfaceChange) {
        if let Some(users) = &mut self.users {
            users.apply(change);
        }
        let changed = self.attachment.link.apply(change);
        if changed && self.attachment.link.carrier() {
            self.host.own_carrier_is_back(self.now());
        }
        if let Some(switch) = &self.attachment.crossbar {
            switch.apply(change);
        }
        self.follow_carriers();
        self.follow_neighbours();
        if let Ok(side) = &mut self.kernel {
            side.forwarding.look_soon();
        }
        if let Some(mtu) = self.mtu_said() {
            self.host.set_mtu(self.now(), mtu);
        }
        self.follow_rates();
        self.followers.changed();
    }

    /// How long frames may be at this host, which other hosts are told; `None` if it carries no users'
    /// frames, or there is no interface.
    pub(super) fn mtu_said(&self) -> Option<LinkMtu> {
        self.users.as_ref().and_then(|_| self.attachment.link_mtu())
    }

    /// Tells the host which carriers of the node's own crossbar have changed.
    pub(super) fn follow_carriers(&mut self) {
        let now = self.now();
        let Some((carriers, before)) = &mut self.carriers else { return };
        let after = *carriers.borrow_and_update();
        let changes = before.changes_to(after);
        *before = after;
        let Some(tag) = self.own_tag() else { return };
        for (port, up) in changes {
            self.host.handle_carrier(now, tag, port, up);
        }
    }

    /// The tag of the node's own crossbar.
    pub(super) fn own_tag(&self) -> Option<u64> {
        match self.attachment.crossbar.as_ref().map(|switch| switch.kind()) {
            Some(CrossbarKind::Tagged { tag }) => Some(tag),
            Some(CrossbarKind::Plain) | None => None,
        }
    }

    /// When something is due next.
    fn wake_at(&self) -> Option<Instant> {
        let limit = self.config.map_once.map(|limit| Instant::ZERO + limit);
        let due = [
            self.leave_at,
            limit,
            self.notifier.feed_at(),
            self.store_names_at,
            self.count_at(),
            self.write_hosts_at,
            self.plan.due_at(),
            self.lease_ends_at(),
            self.host.poll_timeout(),
        ];
        let due = due.into_iter().chain([self.patterns_due_at()]);
        due.flatten().min()
    }

    /// Whether the agent must end as `map_once` says: mapping is complete everywhere, and the hosts below
    /// this one in the tree had time to hear of that.
    fn must_leave(&mut self) -> Result<bool, DaemonError> {
        let now = self.now();
        if let Some(leave_at) = self.leave_at {
            return match (&self.config.map_file, self.store_failure.take()) {
                (Some(path), Some(source)) => Err(DaemonError::MapFile { path: path.clone(), source }),
                _ => Ok(now >= self.put_off(leave_at)),
            };
        }
        match self.config.map_once {
            Some(limit) if now >= Instant::ZERO + limit => Err(self.map_once_limit(limit)),
            _ => Ok(false),
        }
    }

    /// Puts the end off while routes that are to stay are not there yet, and returns when it is. Others may then still need
    /// this host's answers, so it goes on for as long as after the mapping.
    fn put_off(&mut self, leave_at: Instant) -> Instant {
        let now = self.now();
        let limit = self.config.map_once.map_or(now, |limit| Instant::ZERO + limit);
        if self.config.keep_routes && now < limit && (self.is_trying_ways() || self.waits_for_answers(now)) {
            let at = (now + self.heard_within()).max(leave_at).min(limit);
            self.leave_at = Some(at);
            return at;
        }
        leave_at
    }

    /// Whether some host's kernel answers nothing so far, or some host needs this one's answers, and that may end: it is
    /// told as late as its agent that the mapping is complete.
    fn waits_for_answers(&self, now: Instant) -> bool {
        let waits = |path: &KernelPath| path.lacks_answers() || path.is_needed();
        now < self.wait_for_answers_until && self.host.kernel_path().is_some_and(waits)
    }

    fn map_once_limit(&self, limit: Duration) -> DaemonError {
        let status = self.host.agent().status();
        let hosts: Vec<_> =
            status.unreachable.iter().map(|host| format!("{}: {}", host.mac, host.why)).collect();
        let missing = if hosts.is_empty() {
            match status.hosts {
                0 | 1 => match dead_ports(&self.attachment.outer_ports()) {
                    Some(ports) => format!("and no other host was found: {ports}"),
                    None => "and no other host was found".to_owned(),
                },
                _ => "and the global mapper has not heard from all hosts".to_owned(),
            }
        } else {
            format!("and misses {}", hosts.join("; "))
        };
        DaemonError::MapOnceLimit { limit, state: state_name(status.state), missing }
    }

    fn take_frames(&mut self, batch: &Batch) {
        for frame in batch.frames().filter_map(EthernetFrame::parse) {
            trace!(from = %frame.source, frame = %Printer::new(frame.payload()), "received");
            if !self.take_of_cable(&frame) {
                self.host.handle_frame(self.now(), frame.payload());
                self.drain(Some(frame.source));
            }
        }
        if let Some(users) = &self.users {
            users.flush();
        }
    }

    /// Takes in the frames that the user sends, up to a burst.
    fn take_user_frames(&mut self, buffer: &mut [u8], ready: io::Result<()>) -> Result<(), DaemonError> {
        let now = self.now();
        ready.map_err(|_| DaemonError::TapGone)?;
        if let Some(users) = &self.users {
            for _ in 0..BURST {
                // Frames that are read must be sent, so no more are read than a burst.
                let Some(ethernet) = users.try_read(buffer) else { break };
                self.host.handle_user_frame(now, ethernet);
            }
        }
        Ok(())
    }

    /// Polls the host until there is nothing left. `source` is the sender of the frame that the host was just
    /// given, if it was given one.
    fn drain(&mut self, source: Option<Mac>) {
        self.serve_kernel();
        let link = &self.attachment.link;
        let mut sent = false;
        while let Some(outgoing) = self.host.poll_transmit() {
            if enabled!(Level::TRACE) {
                trace!(frame = %Printer::new(&[outgoing.route, outgoing.frame].concat()), "sent");
            }
            link.queue(outgoing.route, outgoing.frame);
            sent = true;
        }
        if sent {
            link.flush();
        }
        while let Some(ethernet) = self.host.poll_user_frame() {
            if let Some(users) = &self.users {
                users.queue(ethernet);
            }
        }
        while let Some(event) = self.host.poll_event() {
            self.act_on(event, source);
        }
        if let Some(task) = self.host.poll_task() {
            let names = self.config.map_file.as_ref().map(|_| self.names_of_map()).unwrap_or_default();
            self.computation.begin(task, self.config.map_file.clone(), names);
        }
    }
}

/// Waits until the user sends a frame, for ever if there is no tap interface.
async fn user_ready(users: &Option<UserInterface>) -> io::Result<()> {
    match users {
        Some(users) => users.ready().await,
        None => pending().await,
    }
}

/// Waits until a carrier of the own crossbar changes, for ever if there is no crossbar.
async fn carrier_changed(carriers: &mut Option<(watch::Receiver<PortSet>, PortSet)>) {
    if let Some((carriers, _)) = carriers
        && carriers.changed().await.is_ok()
    {
        return;
    }
    pending::<()>().await;
}

/// Reads a client's request, and hands it to the loop.
async fn take_request(mut client: Client, asking: mpsc::Sender<(AgentRequest, Client)>) {
    if let Some(request) = client.request().await {
        // This fails only if the loop has ended, as the daemon is ending.
        let _ended = asking.send((request, client)).await;
    }
}
