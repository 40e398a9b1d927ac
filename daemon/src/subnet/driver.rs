//! What the manager waits for: datagrams, moments, tables, signals.

use std::time::Duration;

use mapper_ib::Packet;
use mapper_ib::manager::{Event, SubnetManager, Task};
use mapper_ib::record::Direction;
use mapper_machine::clock::Clock;
use mapper_machine::interface_lock::InterfaceLock;
use mapper_machine::log;
use mapper_machine::mad_port::{ManagerPort, PortName};
use mapper_machine::metrics::Exporter;
use mapper_machine::notify::Notifier;
use mapper_machine::privileges::{self, Needs};
use mapper_machine::process::Starter;
use mapper_machine::service::ServiceError;
use mapper_machine::signals::{Signal, Signals};
use mapper_machine::status::{Client, StatusServer};
use mapper_machine::timer::Timer;
use mapper_proto::Instant;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::{debug, info, warn};

use super::lid_file::LidFile;
use super::paths::Paths;
use super::record_file::RecordFile;
use super::shown::Shown;
use super::tables::{self, Computed};
use super::{SubnetAgentError, settings, told};
use crate::agent::driver::{DaemonEnd, bind_status};
use crate::agent::options::Config;
use crate::agent::status::{self, AgentRequest, Board, requests_socket_path};

/// How long leaving may take: another manager is told to take over, and may be gone itself.
const LEAVING_LIMIT: Duration = Duration::from_secs(2);

/// How many requests of programs wait to be answered.
const REQUESTS: usize = 16;

pub(super) async fn serve(
    mut config: Config,
    name: PortName,
    starter: Option<Starter>,
) -> Result<DaemonEnd, SubnetAgentError> {
    let mut signals = Signals::new().map_err(ServiceError::Runtime)?;
    let manager_settings = settings::of(&config)?;
    let lid_file = LidFile::of(&config);
    let lids = lid_file.read()?;
    let _lock = InterfaceLock::take(&name.lock_name())?;
    let port = ManagerPort::open(&name, manager_settings.sweep.timeout)?;
    let server = bind_status(&mut config)?;
    let requests_path = requests_socket_path(&config.service.run_dir, config.unit);
    let requests_server = status::bind_at(requests_path, config.unit, config.service.group.as_deref())?;
    privileges::give_up_all_but(Needs { raw_sockets: false, network_administration: false, files: false })
        .map_err(ServiceError::from)?;
    let record = match &config.subnet.record {
        Some(path) => Some(
            RecordFile::create(path)
                .map_err(|source| SubnetAgentError::Record { path: path.clone(), source })?,
        ),
        None => None,
    };
    let exporter = Exporter::new(&config.service)?;
    if let Some(starter) = starter {
        starter.ready().map_err(ServiceError::from)?;
    }
    let paths = Paths::new(&config, &name);
    let clock = Clock::start();
    let mut manager = SubnetManager::new(manager_settings, lids, clock.now());
    if let PortName::Ibsim(_) = name {
        manager.send_first_segments_only();
    }
    let mut driver = SubnetDriver {
        manager,
        port,
        name: name.to_string(),
        timer: Timer::new(clock),
        clock,
        lid_file,
        computation: None,
        notifier: Notifier::new(),
        last_problem: String::new(),
        shown: Shown::default(),
        paths,
        record,
        exporter,
        config,
    };
    info!(port = driver.name, unit = driver.config.unit, "the agent runs");
    driver.notifier.ready();
    driver.drive([&server, &requests_server], &mut signals).await
}

struct SubnetDriver {
    manager: SubnetManager,
    port: ManagerPort,
    name: String,
    clock: Clock,
    timer: Timer,
    lid_file: LidFile,
    computation: Option<(u64, JoinHandle<Computed>)>,
    notifier: Notifier,
    last_problem: String,
    shown: Shown,
    paths: Paths,
    record: Option<RecordFile>,
    exporter: Exporter,
    config: Config,
}

impl SubnetDriver {
    async fn drive(
        &mut self,
        [server, requests_server]: [&StatusServer; 2],
        signals: &mut Signals,
    ) -> Result<DaemonEnd, SubnetAgentError> {
        // Requests are read by tasks of their own, so a client that asks slowly does not hold up the loop.
        let (asking, mut asked) = mpsc::channel(REQUESTS);
        let mut leave_by: Option<Instant> = None;
        let give_up = self.config.map_once.map(|limit| (self.clock.now() + limit, limit));
        let mut end = DaemonEnd::Stopped;
        loop {
            let now = self.clock.now();
            self.advance(now)?;
            if let Some(hosts) = self.tell()
                && self.config.map_once.is_some()
                && leave_by.is_none()
            {
                end = DaemonEnd::Complete { hosts };
                leave_by = Some(self.begin_to_leave());
                continue;
            }
            if self.manager.has_left() || leave_by.is_some_and(|by| by <= now) {
                return Ok(end);
            }
            if let Some((at, limit)) = give_up
                && at <= now
                && leave_by.is_none()
            {
                let why = std::mem::take(&mut self.last_problem);
                return Err(SubnetAgentError::MapOnceLimit { limit_s: limit.as_secs(), why });
            }
            if let Some(task) = self.manager.poll_task() {
                self.begin_to_compute(task);
            }
            let moments =
                [self.manager.poll_timeout(), leave_by, give_up.map(|(at, _)| at), self.notifier.feed_at()];
            let next = moments.into_iter().flatten().filter(|&at| at != Instant::FAR).min();
            tokio::select! {
                packets = self.port.receive() => self.receive(packets)?,
                () = self.timer.sleep_until(next) => {}
                computed = finished(&mut self.computation) => self.take(computed),
                client = server.accept() => match client {
                    Ok(client) => drop(tokio::spawn(client.answer(self.board()))),
                    Err(error) => debug!(%error, "cannot accept on the status socket"),
                },
                client = requests_server.accept() => match client {
                    Ok(client) => drop(tokio::spawn(take_request(client, asking.clone()))),
                    Err(error) => debug!(%error, "cannot accept on the socket of requests"),
                },
                Some((request, client)) = asked.recv() => self.answer(&request, client),
                request = self.exporter.requested() => self.shown.tell_metrics(&self.board(), request),
                signal = signals.next() => match signal {
                    Signal::Stop if leave_by.is_none() => leave_by = Some(self.begin_to_leave()),
                    Signal::Stop => return Ok(end),
                    Signal::Reload => warn!("options of an agent of InfiniBand count at its start"),
                    Signal::ReopenLog => log::reopen(),
                },
            }
        }
    }

    /// Does what is due now, and sends what that leads to.
    fn advance(&mut self, now: Instant) -> Result<(), SubnetAgentError> {
        self.notifier.feed_if_due(now);
        if self.manager.poll_timeout().is_some_and(|at| at <= now) {
            self.manager.handle_timeout(now);
        }
        self.paths.see(&mut self.manager);
        self.send()
    }

    fn receive(&mut self, packets: std::io::Result<Vec<Packet>>) -> Result<(), SubnetAgentError> {
        let now = self.clock.now();
        for packet in packets.map_err(|source| self.gone(source))? {
            if let Some(record) = &mut self.record {
                record.add(now, Direction::Received, &packet);
            }
            self.manager.handle_packet(&packet, now);
        }
        Ok(())
    }

    /// Answers a request of a program.
    fn answer(&mut self, request: &AgentRequest, client: Client) {
        match request {
            AgentRequest::Paths => self.paths.tell(client),
            AgentRequest::Changed { seen } => self.paths.follow(*seen, client),
            AgentRequest::PathTo(end) => {
                self.paths.find(&mut self.manager, end, client, self.clock.now());
            }
            // Nodes of a subnet go by their descriptions alone.
            AgentRequest::MoreNames(_) => drop(tokio::spawn(client.answer_json(|| serde_json::to_vec(&())))),
            other => self.shown.answer(other, client),
        }
    }

    fn board(&self) -> Board {
        self.shown.board(&self.config, &self.manager, self.clock.now())
    }

    fn gone(&self, source: std::io::Error) -> SubnetAgentError {
        SubnetAgentError::Gone { port: self.name.clone(), source }
    }

    fn send(&mut self) -> Result<(), SubnetAgentError> {
        let now = self.clock.now();
        while let Some(packet) = self.manager.poll_transmit(now) {
            self.port.send(&packet).map_err(|source| self.gone(source))?;
            if let Some(record) = &mut self.record {
                record.add(now, Direction::Sent, &packet);
            }
        }
        if let Some(record) = &mut self.record {
            record.flush();
        }
        Ok(())
    }

    /// Logs what happened. Returns how many hosts the subnet has, if it is up now.
    fn tell(&mut self) -> Option<usize> {
        let mut up = None;
        while let Some(event) = self.manager.poll_event() {
            if let Event::Up { .. } | Event::StandsBy { .. } = &event {
                self.shown.see(&self.name, &self.manager);
            }
            match &event {
                Event::Up { failed: 0, adapters, .. } => up = Some(*adapters),
                Event::Lids => self.lid_file.write(self.manager.lids()),
                Event::Problem(problem) | Event::NoRoutes(problem) => self.last_problem.clone_from(problem),
                _ => {}
            }
            told::log(&event);
        }
        up
    }

    fn begin_to_leave(&mut self) -> Instant {
        self.notifier.stopping();
        self.manager.leave();
        self.clock.now() + LEAVING_LIMIT
    }

    fn begin_to_compute(&mut self, task: Task) {
        let options = self.config.subnet.engines.clone();
        let number = task.number;
        self.computation =
            Some((number, tokio::task::spawn_blocking(move || tables::compute(&task, options))));
    }

    fn take(&mut self, (number, computed): (u64, Computed)) {
        let now = self.clock.now();
        for said in &computed.said {
            info!("{said}");
        }
        self.manager.handle_routes(number, computed.routes, now);
    }
}

/// Reads a client's request, and hands it to the loop.
async fn take_request(mut client: Client, asking: mpsc::Sender<(AgentRequest, Client)>) {
    if let Some(request) = client.request().await {
        // This fails only if the loop has ended, as the agent is ending.
        let _ended = asking.send((request, client)).await;
    }
}

/// Waits for the computation under way, or for ever if there is none.
async fn finished(computation: &mut Option<(u64, JoinHandle<Computed>)>) -> (u64, Computed) {
    let Some((number, running)) = computation else { return std::future::pending().await };
    let (number, result) = (*number, running.await);
    *computation = None;
    let computed = result.unwrap_or_else(|error| Computed {
        said: Vec::new(),
        routes: Err(format!("the computation of tables failed: {error}")),
    });
    (number, computed)
}
