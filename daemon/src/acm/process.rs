//! The service as a process of its own.

use std::collections::VecDeque;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use mapper_fabric::wording::with_causes;
use mapper_machine::log;
use mapper_machine::notify::Notifier;
use mapper_machine::options::ServiceConfig;
use mapper_machine::privileges::{self, Needs};
use mapper_machine::process::Starter;
use mapper_machine::service::{self, Ran, ServiceError};
use mapper_machine::signals::{Signal, Signals};
use thiserror::Error;
use tokio::time::sleep;
use tracing::{debug, error, info, warn};

use super::listener::{ListenError, Listener, Moved, Stream};
use super::options::{AcmConfig, AcmConfigError, AcmSource, ListenPlace};
use super::places::Places;
use super::state::State;
use super::{agents, connection, finding};

/// How long to wait after a connection could not be accepted, as it still waits then.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why the service cannot run.
#[derive(Debug, Error)]
pub enum AcmError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] AcmConfigError),
    /// Clients cannot connect.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The process cannot become a daemon.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

/// Runs the service until it is told to stop (SIGTERM, SIGINT). On SIGHUP it reads its configuration again. On SIGUSR1
/// it opens the log file again.
///
/// # Errors
/// If it cannot start.
pub fn run(source: &AcmSource) -> Result<ExitCode, AcmError> {
    let config = source.read()?;
    let ServiceConfig { daemon_pid_file, log, .. } = config.service.clone();
    let serve = |starter| serve(source, config, starter);
    Ok(match service::run::<(), AcmError, _>(daemon_pid_file.as_deref(), &log, serve)? {
        Ran::Background(status) => status,
        Ran::Ended(()) => ExitCode::SUCCESS,
    })
}

async fn serve(source: &AcmSource, mut config: AcmConfig, starter: Option<Starter>) -> Result<(), AcmError> {
    let mut signals = Signals::new().map_err(ServiceError::Runtime)?;
    let mut listener = Listener::open(&config.place)?;
    privileges::give_up_all_but(Needs::default()).map_err(ServiceError::from)?;
    config.notes.iter().for_each(|note| warn!("{note}"));
    let state = Rc::new(State::new(std::mem::take(&mut config.settings)));
    tokio::task::spawn_local(agents::follow_all(config.service.run_dir.clone(), Rc::clone(&state)));
    tokio::task::spawn_local(finding::have_found_out(config.service.run_dir.clone(), Rc::clone(&state)));
    let timer = Rc::clone(&state);
    tokio::task::spawn_local(async move { timer.give_up_in_time().await });
    info!(place = listener.shown(), clients = config.most_clients, "the ACM service runs");
    let mut notifier = Notifier::new();
    notifier.ready();
    if let Some(starter) = starter {
        starter.ready().map_err(ServiceError::from)?;
    }
    let places = Places::new(config.most_clients);
    let (mut next_client, mut accepted) = (0, VecDeque::new());
    loop {
        tokio::select! {
            stream = accept(&listener), if accepted.is_empty() => accepted.extend(stream),
            () = places.room(), if !accepted.is_empty() => {
                if let Some(stream) = accepted.pop_front() {
                    next_client += 1;
                    let place = places.take(next_client);
                    let served =
                        connection::serve(stream, next_client, Rc::clone(&state), config.client_timeout, place);
                    tokio::task::spawn_local(served);
                }
            }
            signal = signals.next() => match signal {
                Signal::Stop => {
                    info!("told to stop");
                    notifier.stopping();
                    agents::withdraw_names(&config.service.run_dir, &state).await;
                    return Ok(());
                }
                Signal::Reload => {
                    notifier.reloading();
                    if let Some(to) = reload(source, &mut config, &state, &places) {
                        listener = relocate(listener, &mut config, to, &mut accepted)?;
                    }
                    notifier.ready();
                }
                Signal::ReopenLog => log::reopen(),
            },
            () = state.clock.sleep_until(notifier.feed_at()) => notifier.feed_if_due(state.clock.now()),
        }
    }
}

/// Waits for a client.
async fn accept(listener: &Listener) -> Option<Stream> {
    match listener.accept().await {
        Ok(stream) => Some(stream),
        Err(error) => {
            debug!(%error, "cannot accept a client");
            sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

/// Reads the configuration again. What can change while the service runs does so; of the rest it says that it takes a
/// restart. A configuration that is wrong changes nothing. Returns where clients are to connect from now on, if that has
/// changed.
fn reload(source: &AcmSource, config: &mut AcmConfig, state: &State, places: &Places) -> Option<ListenPlace> {
    let new = match source.read() {
        Ok(new) => new,
        Err(error) => {
            error!("the configuration stays as it was: {error}");
            return None;
        }
    };
    // There is no `..` here, so that a new option does not compile before it is decided whether it counts only at start.
    let AcmConfig { service, place, most_clients, client_timeout, settings, notes } = new;
    let (service, keys) = config.service.read_again(service);
    places.set_most(most_clients);
    if service.log.level != config.service.log.level {
        log::set_level(service.log.level);
    }
    notes.iter().for_each(|note| warn!("{note}"));
    for key in keys {
        warn!("{key} changed, which counts after a restart only");
    }
    config.service = service;
    (config.client_timeout, config.most_clients) = (client_timeout, most_clients);
    state.change(|service| service.set_settings(state.clock.now(), settings));
    state.names_changed();
    info!("the configuration was read again");
    (place != config.place).then_some(place)
}

/// Has clients connect elsewhere from now on. Those that are connected stay so, and those that came to the old place and were
/// not accepted yet are served as well.
fn relocate(
    listener: Listener,
    config: &mut AcmConfig,
    to: ListenPlace,
    accepted: &mut VecDeque<Stream>,
) -> Result<Listener, ListenError> {
    if listener.is_handed_over() {
        warn!(
            "the socket is the service manager's: change mapper-acm.socket for another mode, socket or port"
        );
        config.place = to;
        return Ok(listener);
    }
    let Moved { listener, waiting, failed } = listener.move_to(&config.place, &to)?;
    accepted.extend(waiting);
    if let Some(error) = failed {
        error!(place = listener.shown(), "the service stays where it is: {}", with_causes(&error));
    } else {
        config.place = to;
        info!(place = listener.shown(), "clients connect here now");
    }
    Ok(listener)
}
