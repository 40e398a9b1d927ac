//! Follows the agents of this machine: which there are, and what they know.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use mapper_acm::fabric::{Host, Learned, Path as FabricPath, Port, Unit};
use mapper_acm::wire::Address;
use mapper_proto::Mac;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use super::state::State;
use crate::agent::status::{
    AgentRequest, Change, KnownOwner, KnownPaths, KnownPort, MAX_ROUTES_BYTES, PathsNumberReader,
    paths_number_path, requests_socket_path,
};

/// How often the run directory is looked at for agents that have started.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long an agent may take to answer. It answers at once unless it hangs.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait before an agent that did not answer is asked again.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// How many times in a row an agent does not answer before it counts as gone.
const GONE_AFTER: u32 = 50;
/// How often an agent is told what else this machine goes by, well before it forgets that.
const TELL_EVERY: Duration = Duration::from_secs(15);
/// How many names and addresses that several hosts have are told at most.
const MOST_CLASHES: usize = 64;
/// The most bytes of the number of a change.
const MAX_CHANGE_BYTES: u64 = 1024;

/// Why an agent cannot be followed.
#[derive(Debug, Error)]
pub(super) enum AgentError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it does not answer")]
    Silent,
    #[error("what it says is not understood; agent and service must be of one version: {0}")]
    NotJson(#[from] serde_json::Error),
    #[error("it names a host {0:?}, which is no MAC")]
    NoMac(String),
    #[error("it tells a path of {0} bytes, where a record has 64")]
    NoRecord(usize),
    #[error("{0}")]
    Refused(String),
}

/// Follows all agents that have a socket in the run directory, now or later, for ever.
pub(super) async fn follow_all(run_dir: PathBuf, state: Rc<State>) {
    let followed: Rc<RefCell<BTreeSet<u8>>> = Rc::default();
    let mut is_readable = true;
    loop {
        match units(&run_dir) {
            Ok(units) => {
                is_readable = true;
                for unit in units {
                    if followed.borrow_mut().insert(unit) {
                        let (path, state) = (requests_socket_path(&run_dir, unit), Rc::clone(&state));
                        let followed = Rc::clone(&followed);
                        tokio::task::spawn_local(async move {
                            tokio::select! {
                                () = follow(unit, &path, &state) => {}
                                () = keep_telling(unit, &path, &state) => {}
                            }
                            followed.borrow_mut().remove(&unit);
                        });
                    }
                }
            }
            Err(error) if is_readable => {
                is_readable = false;
                warn!(%error, "cannot read {}, where agents have their sockets", run_dir.display());
            }
            Err(_) => {}
        }
        sleep(LOOK_EVERY).await;
    }
}

/// The numbers of the agents that have a socket for requests.
fn units(run_dir: &Path) -> io::Result<BTreeSet<u8>> {
    let entries = match std::fs::read_dir(run_dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        entries => entries?,
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let unit = |name: String| name.strip_suffix(".requests")?.parse::<u8>().ok();
    Ok(names.filter_map(unit).collect())
}

/// Follows one agent until it has been gone for a while.
async fn follow(unit: u8, path: &Path, state: &State) {
    let (mut seen, mut failures) = (None, 0);
    loop {
        match next_change(unit, path, state, seen).await {
            Ok(number) => (seen, failures) = (Some(number), 0),
            Err(error) => {
                if failures == 0 {
                    debug!(unit, "the agent cannot be asked: {error}");
                }
                // Whatever the lost agent knew may have changed since, so it is kept, but told to nobody until the agent is back.
                state.service.borrow_mut().lose(unit);
                (seen, failures) = (None, failures + 1);
                if failures == 1
                    && matches!(&error, AgentError::Io(why) if why.kind() == io::ErrorKind::PermissionDenied)
                {
                    warn!(unit, "may not ask the agent on {}; run as its user, or as root", path.display());
                }
                if failures >= GONE_AFTER && !path.exists() {
                    info!(unit, "the agent is gone");
                    state.forget_paths(unit);
                    return state.change(|service| service.remove_unit(state.clock.now(), unit));
                }
                sleep(AGAIN_AFTER).await;
            }
        }
    }
}

/// Tells an agent what else this machine goes by, again and again, and at once when that has changed. Never ends.
async fn keep_telling(unit: u8, path: &Path, state: &State) {
    let mut has_told = false;
    loop {
        // Changes are waited for before the names are read, so that none is missed.
        let changed = state.names_may_differ();
        tokio::pin!(changed);
        changed.as_mut().enable();
        let names: Vec<String> =
            state.service.borrow().more_names(unit).iter().map(ToString::to_string).collect();
        if has_told || !names.is_empty() {
            let has_names = !names.is_empty();
            match tell_names(path, names).await {
                Ok(()) => has_told = has_names,
                Err(error) => debug!(unit, "the agent cannot be told this machine's names: {error}"),
            }
        }
        tokio::select! {
            () = sleep(TELL_EVERY) => {}
            () = changed => {}
        }
    }
}

async fn tell_names(path: &Path, names: Vec<String>) -> Result<(), AgentError> {
    in_time(ask(path, &AgentRequest::MoreNames(names), MAX_CHANGE_BYTES)).await.map(drop)
}

/// Tells all agents that nobody here goes by the names of files any more, as the service ends.
pub(super) async fn withdraw_names(run_dir: &Path, state: &State) {
    for unit in units(run_dir).unwrap_or_default() {
        let has_names = !state.service.borrow().more_names(unit).is_empty();
        if has_names && let Err(error) = tell_names(&requests_socket_path(run_dir, unit), Vec::new()).await {
            debug!(unit, "the agent cannot be told that this machine's names are gone: {error}");
        }
    }
}

/// Waits until an agent knows something else than at the change `seen`, and takes that.
async fn next_change(unit: u8, path: &Path, state: &State, seen: Option<u64>) -> Result<u64, AgentError> {
    let request = AgentRequest::Changed { seen };
    let asked = ask(path, &request, MAX_CHANGE_BYTES);
    let Change { number } = match seen {
        // The agent answers once there is something new to tell.
        Some(_) => serde_json::from_slice(&asked.await?)?,
        None => serde_json::from_slice(&in_time(asked).await?)?,
    };
    if seen == Some(number) {
        return Ok(number);
    }
    state.service.borrow_mut().suspect(unit);
    let (is_settled, known) = loop {
        let bytes = in_time(ask(path, &AgentRequest::Paths, MAX_ROUTES_BYTES as u64)).await?;
        // To read what a large fabric is takes a while, in which clients are served.
        let read = tokio::task::spawn_blocking(move || read_paths(&bytes)).await;
        let (is_settled, number, known) = read.map_err(io::Error::other)??;
        // An answer from before a change is dropped, and the agent is asked anew.
        if are_of_now(unit, path, state, number) {
            break (is_settled, known);
        }
    };
    let hosts = known.host_count();
    let dropped = state.change(|service| {
        let is_new = service.endpoints().iter().all(|endpoint| endpoint.key.0 != unit);
        // While an agent computes routes, what it told before is kept, and not told.
        let dropped = if is_settled || is_new { service.set_unit(state.clock.now(), unit, known) } else { 0 };
        if !is_settled {
            service.suspect(unit);
        }
        dropped
    });
    if seen.is_none() {
        // The agent has just started, or this service has.
        state.names_changed();
    }
    let clashes =
        state.service.borrow().clashes(unit).into_iter().take(MOST_CLASHES).map(|(address, owners)| {
            let owners: Vec<_> = owners.iter().map(ToString::to_string).collect();
            // A name came from another machine, and may contain what a terminal obeys.
            (address.to_string().escape_debug().to_string(), owners.join(" and "))
        });
    state.tell_of_clashes(unit, clashes.collect());
    tell_of_contradictions(unit, state);
    debug!(unit, number, hosts, dropped, is_settled, "the agent knows");
    Ok(number)
}

/// Logs which names and addresses a file tells otherwise than the hosts that have them.
fn tell_of_contradictions(unit: u8, state: &State) {
    let service = state.service.borrow();
    let lines = service.contradicted(unit).take(MOST_CLASHES).map(|(address, mac, gid)| {
        let shown = address.to_string().escape_debug().to_string();
        format!("{shown} is answered as that of {mac}, which says so; a file says that it is {gid}")
    });
    let lines = lines.collect();
    state.tell_of_contradictions(unit, lines);
}

/// Whether the paths that an agent has told are those of now, as far as it says how often they have changed.
fn are_of_now(unit: u8, requests_path: &Path, state: &State, number: Option<u64>) -> bool {
    let run_dir = requests_path.parent().unwrap_or(Path::new(""));
    let Some(number) = number else {
        state.forget_paths(unit);
        return true;
    };
    match PathsNumberReader::open(&paths_number_path(run_dir, unit)) {
        Ok(reader) => state.paths_were_told(unit, reader, number),
        Err(error) => {
            debug!(unit, %error, "the file with the number of the agent's paths cannot be read");
            state.forget_paths(unit);
            true
        }
    }
}

pub(super) async fn in_time<T>(asked: impl Future<Output = Result<T, AgentError>>) -> Result<T, AgentError> {
    timeout(PATIENCE, asked).await.map_err(|_| AgentError::Silent)?
}

/// Asks an agent, and reads all of its answer.
pub(super) async fn ask(path: &Path, request: &AgentRequest, most_bytes: u64) -> Result<Vec<u8>, AgentError> {
    let mut stream = UnixStream::connect(path).await?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    let mut answer = Vec::new();
    stream.take(most_bytes).read_to_end(&mut answer).await?;
    if answer.is_empty() {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(answer)
}

/// What an agent knows, whether that is settled, and the number of these paths.
fn read_paths(bytes: &[u8]) -> Result<(bool, Option<u64>, Unit), AgentError> {
    let KnownPaths { interface, host, is_settled, paths_number, hosts, learned, port, .. } =
        read_json(bytes)?;
    if let Some(port) = port {
        return Ok((is_settled, paths_number, read_port(port)));
    }
    let mut macs = BTreeMap::new();
    for known in hosts {
        let path = known.path.map(|path| FabricPath {
            hops: path.hops,
            layer: path.layer,
            mtu_bytes: path.mtu_bytes,
            rate_mbps: path.rate_mbps,
            is_reversible: path.reversible,
        });
        let mac = read_mac(&known.mac)?;
        macs.insert(mac, Host { mac, name: known.name, addresses: known.addresses, path });
    }
    let mut unit = Unit::new(interface, read_mac(&host)?, macs.into_values());
    for known in learned {
        let owners: Vec<Learned> = known.owners.iter().map(read_owner).collect::<Result<_, _>>()?;
        unit.learn(Address::parse(&known.wanted).into_key(), &owners);
    }
    Ok((is_settled, paths_number, unit))
}

fn read_port(known: KnownPort) -> Unit {
    let KnownPort { device, device_guid, number, count, gid, lid, lmc, names } = known;
    Unit::at_port(device, Port { device_guid, number, count, gid, lid, lmc }, names)
}

pub(super) fn read_owner(owner: &KnownOwner) -> Result<Learned, AgentError> {
    let &KnownOwner { ref mac, rate_mbps, mtu_bytes } = owner;
    Ok(Learned { mac: read_mac(mac)?, rate_mbps, mtu_bytes })
}

pub(super) fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, AgentError> {
    Ok(serde_json::from_slice(bytes)?)
}

pub(super) fn read_mac(text: &str) -> Result<Mac, AgentError> {
    text.parse().map_err(|_| AgentError::NoMac(text.to_owned()))
}
