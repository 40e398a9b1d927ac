//! The loop: everything that a running agent waits for, and what follows.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use mapper_proto::agent::{Agent, Event, Settings};
use mapper_proto::map::{LinkMtu, Map, MapVersion};
use mapper_proto::wire::{FrameError, Printer};
use mapper_proto::{Instant, Mac};
use tokio::sync::watch;
use tracing::{Level, debug, enabled, info, trace, warn};

use super::End;
use super::attachment::Attachment;
use super::computation::Computation;
use super::user_data::UserData;
use crate::daemon::DaemonError;
use crate::daemon::healing::Healing;
use crate::daemon::log::{self, RateLimit};
use crate::daemon::metrics::{self, Causes, Exporter, KnownFabric};
use crate::daemon::notify::Notifier;
use crate::daemon::options::{Config, Source};
use crate::daemon::routes::RouteTable;
use crate::daemon::signals::{Signal, Signals};
use crate::daemon::status::{Board, StatusServer, Surroundings, dead_ports, state_name};
use crate::link::batch::Batch;
use crate::link::ethernet::{Frame, MAX_FRAME_BYTES};
use crate::link::interface::{Change, Monitor};
use crate::xbar::Carriers;

/// Frames taken in before timers and sockets have their turn.
const BURST: usize = 64;
/// One line a peer in this time about versions of the protocol that are not spoken here, and one
/// about keys that do not match.
const VERSION_LINE_INTERVAL: Duration = Duration::from_secs(60);
/// One line a peer in this time about other frames that are dropped, if verbose.
const DROP_LINE_INTERVAL: Duration = Duration::from_secs(1);
/// Peers whose last line is remembered.
const PEERS_REMEMBERED: usize = 1024;

/// A running agent, and all that it works with.
pub(super) struct Driver {
    /// Where `config` came from.
    pub(super) source: Source,
    pub(super) config: Config,
    pub(super) attachment: Attachment,
    pub(super) notifier: Notifier,
    pub(super) mac: Mac,
    start: tokio::time::Instant,
    pub(super) agent: Agent,
    /// The routes in use. Replaced whole.
    pub(super) table: Option<Arc<RouteTable>>,
    /// Users' frames, if there is a tap interface.
    pub(super) user_data: Option<UserData>,
    pub(super) healing: Healing,
    /// The carriers of a node's crossbar, and those that were known last.
    pub(super) carriers: Option<(watch::Receiver<Carriers>, Carriers)>,
    pub(super) routing_failure: Option<String>,
    pub(super) computation: Computation,
    /// The map in force or to come, and to whom the agent itself needs a route.
    pub(super) newest: Option<(Arc<Map>, Vec<Mac>)>,
    version_lines: RateLimit,
    key_lines: RateLimit,
    drop_lines: RateLimit,
    causes: Causes,
    pub(super) exporter: Exporter,
    /// What all maps have shown, for the metrics.
    pub(super) known: KnownFabric,
    /// What was last said of interfaces.
    pub(super) warned: Vec<String>,
    /// Why the last map could not be stored, if so.
    pub(super) store_failure: Option<io::Error>,
    /// The last map version that was complete everywhere.
    complete: Option<MapVersion>,
    /// When to leave, as mapping is complete everywhere.
    leave_at: Option<Instant>,
}

impl Driver {
    pub(super) fn new(
        source: Source,
        config: Config,
        attachment: Attachment,
        user_data: Option<UserData>,
        seed: u64,
        exporter: Exporter,
    ) -> Self {
        let mac = attachment.mac;
        let carriers = attachment.crossbar.as_ref().map(|switch| (switch.carriers(), attachment.ports()));
        let mtu = user_data.as_ref().and_then(|_| attachment.link_mtu()).unwrap_or_default();
        let settings = Settings { mac, mtu, ..config.settings.clone() };
        Self {
            agent: Agent::new(settings, seed, Instant::ZERO),
            notifier: Notifier::new(),
            source,
            config,
            attachment,
            mac,
            start: tokio::time::Instant::now(),
            table: None,
            user_data,
            healing: Healing::new(),
            carriers,
            routing_failure: None,
            computation: Computation::default(),
            newest: None,
            version_lines: RateLimit::new(VERSION_LINE_INTERVAL, PEERS_REMEMBERED),
            key_lines: RateLimit::new(VERSION_LINE_INTERVAL, PEERS_REMEMBERED),
            drop_lines: RateLimit::new(DROP_LINE_INTERVAL, PEERS_REMEMBERED),
            causes: Causes::default(),
            exporter,
            known: KnownFabric::new(),
            warned: Vec::new(),
            store_failure: None,
            complete: None,
            leave_at: None,
        }
    }

    pub(super) fn now(&self) -> Instant {
        Instant::ZERO + self.start.elapsed()
    }

    pub(super) async fn drive(
        &mut self,
        monitor: &Monitor,
        [server, routes_server]: [&StatusServer; 2],
        signals: &mut Signals,
    ) -> Result<End, DaemonError> {
        // What changed before the monitor was heard for the first time: how it is now is what counts. This very
        // process has made the tap interface meanwhile, step by step.
        monitor.forget_past();
        self.apply(&Change::Missed);
        self.follow_address();
        self.look_around()?;
        let mut batch = Batch::new();
        let mut buffer = vec![0; MAX_FRAME_BYTES];
        loop {
            self.look_after_routes();
            self.drain(None);
            self.notifier.feed_if_due(self.now());
            if self.must_leave()? {
                info!("mapping is complete everywhere; leaving");
                return Ok(End::Complete { hosts: self.agent.status().hosts });
            }
            let wake_at = self.wake_at();
            tokio::select! {
                () = self.attachment.link.recv_batch(&mut batch) => self.take_frames(&batch),
                ready = user_ready(&self.user_data) => self.take_user_frames(&mut buffer, ready)?,
                () = carrier_changed(&mut self.carriers) => self.follow_carriers(),
                () = sleep_until(self.start, wake_at) => self.agent.handle_timeout(self.now()),
                computed = self.computation.finished() => self.take_routes(computed),
                client = server.accept() => match client {
                    Ok(client) => drop(tokio::spawn(client.answer(self.board()))),
                    Err(error) => debug!(%error, "cannot accept on the status socket"),
                },
                client = routes_server.accept() => match client {
                    Ok(client) => drop(tokio::spawn(client.answer_routes(self.routes_asked()))),
                    Err(error) => debug!(%error, "cannot accept on the socket of routes"),
                },
                request = self.exporter.requested() => {
                    let crossbar = self.attachment.crossbar.as_ref().map(|switch| switch.status());
                    let board = self.board();
                    let text = metrics::render_node(&board, &self.known, crossbar.as_ref(), request.dialect());
                    request.answer(text);
                }
                changes = monitor.changes() => {
                    changes?.iter().for_each(|change| self.apply(change));
                    self.follow_address();
                    self.look_around()?;
                }
                signal = signals.next() => match signal {
                    Signal::Stop => {
                        info!("told to stop");
                        self.notifier.stopping();
                        return Ok(End::Stopped);
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
    fn apply(&mut self, change: &Change) {
        if let Some(user_data) = &mut self.user_data {
            user_data.apply(change);
        }
        let changed = self.attachment.link.apply(change);
        if changed && self.attachment.link.carrier() {
            self.agent.look_again(self.now());
        }
        if let Some(switch) = &self.attachment.crossbar {
            switch.apply(change);
        }
        self.follow_carriers();
        if let Some(mtu) = self.mtu_said() {
            self.agent.set_mtu(self.now(), mtu);
        }
    }

    /// How long frames may be at this host, for others to know; `None` if it carries no users' frames, or no
    /// interface is there to say.
    pub(super) fn mtu_said(&self) -> Option<LinkMtu> {
        self.user_data.as_ref().and_then(|_| self.attachment.link_mtu())
    }

    /// Routes around cables that died, and has those watched that are in use.
    fn look_after_routes(&mut self) {
        self.heal();
        let now = self.now();
        let limit = self.config.settings.liveness_limit;
        if let Some(user_data) = &mut self.user_data {
            user_data.tell_paths(now, &mut self.agent, limit);
        }
    }

    /// When something falls due.
    fn wake_at(&self) -> Option<Instant> {
        let limit = self.config.map_once.map(|limit| Instant::ZERO + limit);
        let paths = self.user_data.as_ref().and_then(UserData::poll_timeout);
        let own = [self.leave_at, limit, self.notifier.feed_at(), paths];
        own.into_iter().chain([self.agent.poll_timeout(), self.healing.poll_timeout()]).flatten().min()
    }

    /// With `map_once`: whether mapping is complete everywhere, and those below had time to hear.
    fn must_leave(&mut self) -> Result<bool, DaemonError> {
        let now = self.now();
        if let Some(leave_at) = self.leave_at {
            return match (&self.config.map_file, self.store_failure.take()) {
                (Some(path), Some(source)) => Err(DaemonError::MapFile { path: path.clone(), source }),
                _ => Ok(now >= leave_at),
            };
        }
        match self.config.map_once {
            Some(limit) if now >= Instant::ZERO + limit => Err(self.map_once_limit(limit)),
            _ => Ok(false),
        }
    }

    fn map_once_limit(&self, limit: Duration) -> DaemonError {
        let status = self.agent.status();
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
        let now = self.now();
        for frame in batch.frames().filter_map(Frame::parse) {
            trace!(from = %frame.source, frame = %Printer::new(frame.payload()), "received");
            let link = &self.attachment.link;
            let (taken, dead) = match &mut self.user_data {
                Some(user_data) => user_data.receive(now, link, frame.payload()),
                None => (false, None),
            };
            if let Some(dead) = dead {
                self.port_is_dead(dead);
            }
            if !taken {
                self.agent.handle_frame(self.now(), frame.payload());
                self.drain(Some(frame.source));
            }
        }
        if let Some(user_data) = &self.user_data {
            user_data.flush();
        }
    }

    /// Sends what the user has to send.
    fn take_user_frames(&mut self, buffer: &mut [u8], ready: io::Result<()>) -> Result<(), DaemonError> {
        let now = self.now();
        ready.map_err(|_| DaemonError::TapGone)?;
        if let Some(user_data) = &mut self.user_data {
            user_data.send_burst(now, &self.attachment.link, buffer, BURST);
        }
        Ok(())
    }

    /// Sends what the agent has to send, and acts on what happened. `source` sent the frame that
    /// made it happen, if it was one.
    fn drain(&mut self, source: Option<Mac>) {
        while let Some(transmit) = self.agent.poll_transmit() {
            if enabled!(Level::TRACE) {
                let payload = [transmit.route.as_bytes(), &transmit.frame[..]].concat();
                trace!(frame = %Printer::new(&payload), "sent");
            }
            self.attachment.link.send(transmit.route.as_bytes(), &transmit.frame);
        }
        while let Some(event) = self.agent.poll_event() {
            self.act_on(event, source);
        }
    }

    fn act_on(&mut self, event: Event, source: Option<Mac>) {
        self.notifier.follow(&event);
        match event {
            Event::MappingStarted { cause } => {
                self.causes.mapping_began(&cause);
                info!(cause, "mapping");
            }
            Event::Mapped { version } => info!(%version, "mapped as global mapper"),
            Event::BecamePassive { to } => info!(mapper = %to.mac, level = to.level, "passive"),
            Event::MapInstalled { map, neighbours } => self.route(map, neighbours),
            Event::MapInvalid { version, cause } => {
                self.causes.map_ended(&cause);
                warn!(%version, cause, "the map no longer holds");
            }
            Event::Configured { version } => info!(%version, "configured"),
            Event::NetworkComplete { version } => self.network_complete(version),
            Event::TagContested { conflict } => warn!("{conflict}"),
            Event::PartLeftOut { part } => warn!("{part}"),
            Event::AddressContested { why } => self.leave_network(&why),
            Event::PathDown { path, reached, frame_bytes } => self.path_is_down(path, reached, frame_bytes),
            Event::PathUp { path } => self.healing.path_up(path),
            Event::CableUp { version, at } => self.healing.cable_up(version, at),
            Event::CableCleared { version, at } => self.healing.cable_cleared(version, at),
            // Whatever it says: as a quoted string it cannot pass for a line of ours.
            Event::Printed { from, text } => info!(%from, ?text, "printf"),
            Event::Dropped { error } => self.log_dropped(error, source),
        }
    }

    fn network_complete(&mut self, version: MapVersion) {
        if self.table.as_ref().is_none_or(|table| table.hosts().is_empty()) {
            // A network of one is complete and of no use: nobody waits for that.
            return;
        }
        // Whether all hosts are heard of comes and goes; that it came is said once a map.
        if self.complete.replace(version) != Some(version) {
            info!(%version, "network is fully configured");
        }
        if self.config.map_once.is_some() && self.leave_at.is_none() {
            // Those below hear it from this agent, when they next ask.
            let settings = &self.config.settings;
            self.leave_at = Some(self.now() + 2 * (settings.query_interval + settings.verify_pause));
        }
    }

    fn log_dropped(&mut self, error: FrameError, source: Option<Mac>) {
        let from = source.unwrap_or_default();
        match error {
            FrameError::UnknownVersion(_) if self.version_lines.allows(self.now(), from) => {
                warn!(%from, "{error}: dropped; run agents of one version on all hosts");
            }
            FrameError::UnexpectedTag(_)
            | FrameError::NoTag
            | FrameError::UnknownKey(_)
            | FrameError::BadTag(_)
                if self.key_lines.allows(self.now(), from) =>
            {
                warn!(%from, "{error}: dropped; give all hosts of one network one key file");
            }
            FrameError::UnknownVersion(_)
            | FrameError::UnexpectedTag(_)
            | FrameError::NoTag
            | FrameError::UnknownKey(_)
            | FrameError::BadTag(_) => {}
            _ if self.drop_lines.allows(self.now(), from) => debug!(%from, %error, "dropped"),
            _ => {}
        }
    }

    fn board(&self) -> Board {
        let around = Surroundings {
            unit: self.config.unit,
            interface: self.attachment.link.name(),
            host_type: self.config.settings.host_type,
            carrier: self.attachment.link.carrier(),
            ports: self.attachment.outer_ports(),
            routes: self.table.as_ref().map_or(0, |table| table.count()),
            routing_failure: self.routing_failure.as_deref(),
            traffic: self.attachment.link.traffic(),
            causes: &self.causes,
            dead_cables: self.dead_cables(),
            narrow_cables: self.narrow_cables(),
            map: self.newest.as_ref().map(|(map, _)| &**map),
            known: &self.known,
            warnings: self.warnings(),
            repairs: self.repair_counters(),
            log_lines_lost: log::lines_lost(),
            tap: self.user_data.as_ref().map(UserData::status),
            addresses: self.config.addresses.iter().map(ToString::to_string).collect(),
            now: self.now(),
        };
        Board::new(&self.agent.status(), around)
    }
}

/// Waits until the user has a frame to send, for ever if there is no tap interface.
async fn user_ready(user_data: &Option<UserData>) -> io::Result<()> {
    match user_data {
        Some(user_data) => user_data.ready().await,
        None => pending().await,
    }
}

/// Waits for a change at the own crossbar, for ever if there is none.
async fn carrier_changed(carriers: &mut Option<(watch::Receiver<Carriers>, Carriers)>) {
    if let Some((carriers, _)) = carriers
        && carriers.changed().await.is_ok()
    {
        return;
    }
    pending::<()>().await;
}

/// Waits until `at`, for ever if there is none.
async fn sleep_until(start: tokio::time::Instant, at: Option<Instant>) {
    match at.and_then(|at| start.checked_add(at.since(Instant::ZERO))) {
        Some(at) => tokio::time::sleep_until(at).await,
        None => pending().await,
    }
}
