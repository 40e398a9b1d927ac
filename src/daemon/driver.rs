//! The loop that drives one agent: everything that it waits for, and what follows.

use std::future::pending;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use mapper_proto::agent::{Agent, Event, Settings};
use mapper_proto::map::{Map, MapVersion};
use mapper_proto::wire::{FrameError, Printer};
use mapper_proto::{Instant, Mac};
use tokio::task::JoinHandle;
use tracing::{Level, debug, enabled, error, info, trace, warn};

use super::DaemonError;
use super::interface_lock::InterfaceLock;
use super::log::{self, Log, RateLimit};
use super::map_file;
use super::metrics::{self, Causes, Exporter, KnownFabric};
use super::options::Config;
use super::process::{self, Detached, PidFile, Starter};
use super::routes::{RouteOptions, RouteTable, RouteTableError};
use super::signals::StopSignals;
use super::status::{Board, StatusServer, Surroundings, state_name};
use crate::link::ethernet::{Frame, MAX_FRAME_BYTES};
use crate::link::interface::{Change, Monitor};
use crate::link::port::Port;
use crate::routing;

/// Frames taken in before timers and sockets have their turn.
const BURST: usize = 64;
/// What a message takes beside the piece of a map in it: route, headers, addresses, CRC-32.
const MESSAGE_OVERHEAD_BYTES: usize = 200;
/// One line a peer in this time about versions of the protocol that are not spoken here.
const VERSION_LINE_INTERVAL: Duration = Duration::from_secs(60);
/// One line a peer in this time about other frames that are dropped, if verbose.
const DROP_LINE_INTERVAL: Duration = Duration::from_secs(1);
/// Peers whose last line is remembered.
const PEERS_REMEMBERED: usize = 1024;

/// Runs the agent of one interface until it is told to stop (SIGTERM, SIGINT), or with `map_once`
/// until mapping is complete everywhere.
///
/// # Errors
/// If it cannot start, or `map_once` ran out of time.
pub fn run(config: Config) -> Result<ExitCode, DaemonError> {
    let starter = match config.daemon_pid_file.is_some().then(process::detach).transpose()? {
        Some(Detached::Parent(status)) => return Ok(status),
        Some(Detached::Daemon(starter)) => Some(starter),
        None => None,
    };
    let log = log::start(&config.log).map_err(|source| DaemonError::Log {
        path: config.log.file.clone().unwrap_or_else(|| "standard error".into()),
        source,
    })?;
    let _pid_file = config.daemon_pid_file.as_deref().map(PidFile::create).transpose()?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(DaemonError::Runtime)?;
    let result = runtime.block_on(serve(config, starter, Arc::new(log)));
    // Routes that are still being computed are not waited for.
    runtime.shutdown_background();
    if let Err(error) = &result {
        // The command line prints it; this line is for the file.
        error!(target: log::FAILURE, "{}", with_causes(error));
    }
    result.map(|()| ExitCode::SUCCESS)
}

async fn serve(config: Config, starter: Option<Starter>, log: Arc<Log>) -> Result<(), DaemonError> {
    log.attend().map_err(DaemonError::Runtime)?;
    let mut signals = StopSignals::new().map_err(DaemonError::Runtime)?;
    // The monitor first: then no change is missed between looking and listening.
    let monitor = Monitor::new()?;
    let needed_mtu = u32::try_from(config.settings.piece_bytes + MESSAGE_OVERHEAD_BYTES).unwrap_or(u32::MAX);
    let (port, mac) = Port::open_usable(&config.interface, config.marking, needed_mtu)?;
    if let Some(path) = &config.map_file {
        map_file::check(path).map_err(|source| DaemonError::MapFile { path: path.clone(), source })?;
    }
    let server = StatusServer::bind(&config.run_dir, config.unit)?;
    let _lock = InterfaceLock::take(&config.interface)?;
    let exporter = Exporter::new(config.metrics_listen.as_ref(), config.metrics_file.as_deref())?;
    let seed = match config.seed {
        Some(seed) => seed,
        None => random_seed().map_err(DaemonError::Runtime)?,
    };
    let mut driver = Driver::new(config, port, mac, seed, exporter);
    info!(interface = driver.port.name(), %mac, unit = driver.config.unit, seed, "the agent runs");
    if !driver.port.carrier() {
        warn!(interface = driver.port.name(), "no carrier: is the cable plugged in?");
    }
    if let Some(starter) = starter {
        starter.ready()?;
    }
    driver.drive(&monitor, &server, &mut signals).await
}

fn random_seed() -> io::Result<u64> {
    let mut bytes = [0; 8];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    if filled == bytes.len() {
        Ok(u64::from_ne_bytes(bytes))
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// What comes of a map: its routes, or why there are none.
struct Computed {
    map: Arc<Map>,
    neighbours: Vec<Mac>,
    table: Result<RouteTable, RouteTableError>,
    stored: io::Result<()>,
}

struct Driver {
    config: Config,
    port: Port,
    mac: Mac,
    start: tokio::time::Instant,
    agent: Agent,
    /// The routes in use. Replaced whole.
    table: Option<RouteTable>,
    routing_failure: Option<String>,
    /// Routes being computed for a map; one at a time.
    computing: Option<JoinHandle<Computed>>,
    /// The newest map that came while others were being routed.
    waiting: Option<(Arc<Map>, Vec<Mac>)>,
    version_lines: RateLimit,
    drop_lines: RateLimit,
    causes: Causes,
    exporter: Exporter,
    known: KnownFabric,
    /// Why the last map could not be stored, if so.
    store_failure: Option<io::Error>,
    /// The last map version that was complete everywhere.
    complete: Option<MapVersion>,
    /// When to leave, as mapping is complete everywhere.
    leave_at: Option<Instant>,
}

impl Driver {
    fn new(config: Config, port: Port, mac: Mac, seed: u64, exporter: Exporter) -> Self {
        let settings = Settings { mac, ..config.settings.clone() };
        Self {
            agent: Agent::new(settings, seed, Instant::ZERO),
            config,
            port,
            mac,
            start: tokio::time::Instant::now(),
            table: None,
            routing_failure: None,
            computing: None,
            waiting: None,
            version_lines: RateLimit::new(VERSION_LINE_INTERVAL, PEERS_REMEMBERED),
            drop_lines: RateLimit::new(DROP_LINE_INTERVAL, PEERS_REMEMBERED),
            causes: Causes::default(),
            exporter,
            known: KnownFabric::new(),
            store_failure: None,
            complete: None,
            leave_at: None,
        }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.start.elapsed()
    }

    async fn drive(
        &mut self,
        monitor: &Monitor,
        server: &StatusServer,
        signals: &mut StopSignals,
    ) -> Result<(), DaemonError> {
        // What changed before the monitor was heard for the first time.
        self.port.apply(&Change::Missed);
        let mut buffer = vec![0; MAX_FRAME_BYTES];
        loop {
            self.drain(None);
            if self.must_leave()? {
                info!("mapping is complete everywhere; leaving");
                return Ok(());
            }
            let wake_at = self.wake_at();
            tokio::select! {
                bytes = self.port.recv(&mut buffer) => self.take_frames(&mut buffer, bytes),
                () = sleep_until(self.start, wake_at) => self.agent.handle_timeout(self.now()),
                computed = finished(&mut self.computing) => self.take_routes(computed),
                client = server.accept() => match client {
                    Ok(client) => drop(tokio::spawn(client.answer(self.board()))),
                    Err(error) => debug!(%error, "cannot accept on the status socket"),
                },
                request = self.exporter.requested() => {
                    let text = metrics::render(&self.board(), &self.known, request.dialect());
                    request.answer(text);
                }
                changes = monitor.changes() => for change in changes? {
                    self.port.apply(&change);
                },
                () = signals.told_to_stop() => {
                    info!("told to stop");
                    return Ok(());
                }
            }
        }
    }

    /// When something falls due.
    fn wake_at(&self) -> Option<Instant> {
        let limit = self.config.map_once.map(|limit| Instant::ZERO + limit);
        [self.agent.poll_timeout(), self.leave_at, limit].into_iter().flatten().min()
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
            "and the global mapper has not heard from all hosts".to_owned()
        } else {
            format!("and misses {}", hosts.join("; "))
        };
        DaemonError::MapOnceLimit { limit, state: state_name(status.state), missing }
    }

    fn take_frames(&mut self, buffer: &mut [u8], mut bytes: usize) {
        for _ in 0..BURST {
            if let Some(frame) = Frame::parse(&buffer[..bytes]) {
                trace!(from = %frame.source, frame = %Printer::new(frame.payload()), "received");
                self.agent.handle_frame(self.now(), frame.payload());
                self.drain(Some(frame.source));
            }
            match self.port.try_recv(buffer) {
                Some(more) => bytes = more,
                None => break,
            }
        }
    }

    /// Sends what the agent has to send, and acts on what happened. `source` sent the frame that
    /// made it happen, if it was one.
    fn drain(&mut self, source: Option<Mac>) {
        while let Some(transmit) = self.agent.poll_transmit() {
            if enabled!(Level::TRACE) {
                let payload = [transmit.route.as_bytes(), &transmit.frame[..]].concat();
                trace!(frame = %Printer::new(&payload), "sent");
            }
            self.port.send(transmit.route.as_bytes(), &transmit.frame);
        }
        while let Some(event) = self.agent.poll_event() {
            self.act_on(event, source);
        }
    }

    fn act_on(&mut self, event: Event, source: Option<Mac>) {
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
            // Whatever it says: as a quoted string it cannot pass for a line of ours.
            Event::Printed { from, text } => info!(%from, ?text, "printf"),
            Event::Dropped { error } => self.log_dropped(error, source),
        }
    }

    fn network_complete(&mut self, version: MapVersion) {
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
            FrameError::UnknownVersion(_) => {}
            _ if self.drop_lines.allows(self.now(), from) => debug!(%from, %error, "dropped"),
            _ => {}
        }
    }

    /// Computes the routes for a map, beside the loop.
    fn route(&mut self, map: Arc<Map>, neighbours: Vec<Mac>) {
        if self.exporter.is_wanted() {
            self.known.see(&map);
        }
        info!(version = %map.version, hosts = map.hosts.len(), xbars = map.xbars.len(), "map installed");
        if self.computing.is_some() {
            self.waiting = Some((map, neighbours));
            return;
        }
        let (mac, map_file) = (self.mac, self.config.map_file.clone());
        let options = RouteOptions {
            routes: routing::Options {
                passes: self.config.num_passes,
                max_hops: self.config.settings.max_hops as u8,
            },
            non_clos: self.config.non_clos,
        };
        self.computing = Some(tokio::task::spawn_blocking(move || {
            let stored = map_file.map_or(Ok(()), |path| map_file::write(&path, &map));
            let table = RouteTable::compute(&map, mac, options);
            Computed { map, neighbours, table, stored }
        }));
    }

    /// Puts routes to use, all at once.
    fn take_routes(&mut self, mut computed: Option<Computed>) {
        self.computing = None;
        if let Some(computed) = &mut computed {
            self.store_failure = std::mem::replace(&mut computed.stored, Ok(())).err();
            if let Some(error) = &self.store_failure {
                error!(path = ?self.config.map_file, %error, "cannot store the map");
            }
        }
        let now = self.now();
        match computed {
            None => error!("the computation of routes broke off"),
            Some(Computed { map, neighbours, table: Ok(table), .. }) => {
                debug!(version = %map.version, routes = table.count(), "routes proved");
                let routes =
                    neighbours.into_iter().filter_map(|mac| Some((mac, table.first_to(mac)?))).collect();
                if !table.unreachable().is_empty() {
                    warn!(hosts = ?table.unreachable(), "no route leads to these hosts of the map");
                }
                self.table = Some(table);
                self.routing_failure = None;
                self.agent.handle_routes(now, map.version, routes);
            }
            Some(Computed { map, table: Err(error), .. }) => {
                let why = with_causes(&error);
                error!(version = %map.version, "{why}");
                self.routing_failure = Some(why.clone());
                self.agent.handle_routing_failure(now, map.version, why);
            }
        }
        if let Some((map, neighbours)) = self.waiting.take() {
            self.route(map, neighbours);
        }
    }

    fn board(&self) -> Board {
        let around = Surroundings {
            unit: self.config.unit,
            interface: self.port.name(),
            host_type: self.config.settings.host_type,
            carrier: self.port.carrier(),
            routes: self.table.as_ref().map_or(0, RouteTable::count),
            routing_failure: self.routing_failure.as_deref(),
            traffic: self.port.traffic(),
            causes: &self.causes,
            now: self.now(),
        };
        Board::new(&self.agent.status(), around)
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Waits until `at`, for ever if there is none.
async fn sleep_until(start: tokio::time::Instant, at: Option<Instant>) {
    match at.and_then(|at| start.checked_add(at.since(Instant::ZERO))) {
        Some(at) => tokio::time::sleep_until(at).await,
        None => pending().await,
    }
}

/// Waits for the computation, for ever if there is none; `None` if it broke off.
async fn finished(computing: &mut Option<JoinHandle<Computed>>) -> Option<Computed> {
    match computing {
        Some(handle) => handle.await.ok(),
        None => pending().await,
    }
}
