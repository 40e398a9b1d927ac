//! Has agents find out what nobody has told: who has a name or an address, and paths from ports of InfiniBand.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use mapper_acm::fabric::{FoundPath, Learned, Wanted};
use mapper_acm::service::Ask;
use mapper_acm::wire::PathRecord;
use tokio::time::timeout;
use tracing::debug;

use super::agents::{AgentError, PATIENCE, ask, read_json, read_owner};
use super::state::State;
use crate::agent::status::{
    AgentRequest, MAX_RESOLVED_BYTES, PathEnd, PathFound, PathTo, WhoHas, requests_socket_path,
};

/// How long an agent may take to find a path, for which it may have to ask the subnet's administration several times.
const PATH_PATIENCE: Duration = Duration::from_secs(20);

/// Has agents find out what the service wants to know, for ever.
pub(super) async fn have_found_out(run_dir: PathBuf, state: Rc<State>) {
    loop {
        state.next_to_ask().await;
        loop {
            // The service must not stay borrowed while a task begins.
            let asked = state.service.borrow_mut().poll_ask(state.clock.now());
            let Some(asked) = asked else { break };
            // From now on it is waited for.
            state.question_waits();
            let (path, state) = (requests_socket_path(&run_dir, asked.unit), Rc::clone(&state));
            tokio::task::spawn_local(async move { find_out(&path, asked, &state).await });
        }
    }
}

async fn find_out(path: &Path, asked: Ask, state: &State) {
    let Ask { unit, wanted, timeout, retries, .. } = asked;
    let wanted = match wanted {
        Wanted::Address(wanted) if !asked.seeks_path => wanted,
        wanted => return find_path(path, unit, &wanted, state).await,
    };
    let millis = |duration: Duration| u32::try_from(duration.as_millis()).unwrap_or(u32::MAX);
    let request = AgentRequest::WhoHas { wanted: wanted.to_string(), timeout_ms: millis(timeout), retries };
    let patience = timeout.saturating_mul(retries.saturating_add(1)) + PATIENCE;
    let found = match tokio::time::timeout(patience, owners(path, &request)).await {
        Ok(found) => found,
        Err(_) => Err(AgentError::Silent),
    };
    if let Err(error) = &found {
        debug!(unit, "the agent did not ask who has {wanted:?}: {error}");
    }
    let owners = found.ok();
    if let Some(several) = owners.as_deref().filter(|owners| owners.len() > 1) {
        let all: Vec<_> = several.iter().map(|owner| owner.mac.to_string()).collect();
        let shown = wanted.to_string().escape_debug().to_string();
        state.tell_of_clash(unit, shown, all.join(" and "));
    }
    state.change(|service| service.handle_asked(state.clock.now(), unit, &wanted, owners.as_deref()));
}

/// Has the agent at a port of InfiniBand find a path.
async fn find_path(path: &Path, unit: u8, wanted: &Wanted, state: &State) {
    let end = match wanted {
        Wanted::Address(address) => PathEnd::Named(address.to_string()),
        Wanted::Lid(lid) => PathEnd::Lid(*lid),
    };
    let request = AgentRequest::PathTo(end);
    let found = timeout(PATH_PATIENCE, found_path(path, &request)).await.unwrap_or(Err(AgentError::Silent));
    // If the agent has told other paths since, this answer does not belong to them: it is dropped, and asked for anew.
    let found = found.map(|(number, found)| found.filter(|_| state.is_of_told_paths(unit, number)));
    if let Err(error) = &found {
        debug!(unit, "the agent did not find the path to {wanted:?}: {error}");
    }
    let found = found.ok().flatten();
    if found == Some(FoundPath::Several) {
        debug!(unit, "several nodes go by {wanted:?}, and it is answered as none of them");
    }
    state.change(|service| service.handle_path(state.clock.now(), unit, wanted, found.as_ref()));
}

/// The number of the paths to which an answer belongs, and what was found; `None` if nobody could be asked.
async fn found_path(
    path: &Path,
    request: &AgentRequest,
) -> Result<(Option<u64>, Option<FoundPath>), AgentError> {
    let PathTo { paths_number, found } = read_json(&ask(path, request, MAX_RESOLVED_BYTES as u64).await?)?;
    let found = match found {
        PathFound::Record(bytes) => {
            let record = bytes.first_chunk().ok_or(AgentError::NoRecord(bytes.len()))?;
            Some(FoundPath::Path(PathRecord::parse(record)))
        }
        PathFound::Nobody => Some(FoundPath::Nobody),
        PathFound::NoPath => Some(FoundPath::NoPath),
        PathFound::Several => Some(FoundPath::Several),
        PathFound::Unavailable => None,
    };
    Ok((paths_number, found))
}

async fn owners(path: &Path, request: &AgentRequest) -> Result<Vec<Learned>, AgentError> {
    match read_json(&ask(path, request, MAX_RESOLVED_BYTES as u64).await?)? {
        WhoHas::Owners(owners) => owners.iter().map(read_owner).collect(),
        WhoHas::Refused(why) => Err(AgentError::Refused(why)),
    }
}
