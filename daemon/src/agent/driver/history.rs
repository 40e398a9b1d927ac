//! Takes note of each map: what it changes, and why it was made.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use mapper_machine::status::Client;
use mapper_proto::agent::Cause;
use mapper_proto::map::Map;
use tracing::warn;

use super::kept_identity::state_directory;
use super::state::Driver;
use crate::agent::history::{History, HistoryFile, KeptMaps, MOST_TOLD, MapEvent, MapToKeep, Writer};
use crate::agent::metrics::Present;
use crate::agent::options::Config;

/// The maps so far, and what is known of the next one.
#[derive(Debug, Default)]
pub(super) struct Maps {
    recent: VecDeque<MapEvent>,
    /// The last maps themselves.
    kept: Option<KeptMaps>,
    writer: Option<Writer>,
    /// The first reason since the last map why it was given up or a new one is being made.
    cause: Option<String>,
}

impl Maps {
    /// The maps that the file of this agent has. New ones will be written to it.
    ///
    /// # Errors
    /// If there can be no thread that writes.
    pub(super) fn open(config: &Config) -> io::Result<Self> {
        let file = HistoryFile::new(path(config, "history"));
        let kept = KeptMaps::new(path(config, "maps"));
        let recent = file.read(MOST_TOLD).into();
        let writer = Some(Writer::start(file, kept.clone())?);
        Ok(Self { recent, kept: Some(kept), writer, cause: None })
    }

    /// Why maps cannot be written, in words; `None` if they can.
    pub(super) fn failure(&self) -> Option<String> {
        self.writer.as_ref().and_then(Writer::failure)
    }

    fn add(&mut self, event: MapEvent, map: MapToKeep) {
        if let Some(writer) = &self.writer {
            writer.write(event.clone(), map);
        }
        self.recent.push_back(event);
        if self.recent.len() > MOST_TOLD {
            self.recent.pop_front();
        }
    }
}

/// The path of a file or directory of an agent, by its kind: in the state directory that the service manager
/// gives, or else in the run directory, which is empty after each boot.
fn path(config: &Config, kind: &str) -> PathBuf {
    state_directory(config).join(format!("{}.{kind}", config.interface))
}

/// The time of day, in milliseconds since the beginning of 1970.
#[expect(clippy::disallowed_types, reason = "people are told when it was; nothing is timed by it")]
fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    since.as_millis().try_into().unwrap_or(u64::MAX)
}

impl Driver {
    /// Takes note of why a new map will be made.
    pub(super) fn note_cause(&mut self, cause: &Cause) {
        if self.maps.cause.is_none() {
            self.maps.cause = Some(self.cause_in_words(cause));
        }
    }

    /// Takes note of a map. `before` is what the maps so far have shown to be there.
    pub(super) fn note_map(&mut self, map: &Arc<Map>, before: &Present) {
        let what = match before.is_empty() {
            true => vec!["the first map since the agent began".to_owned()],
            false => before.changes_to(&self.known.present(), |mac| self.called(mac)),
        };
        let event = MapEvent {
            unix_ms: unix_ms(),
            version: map.version.to_string(),
            leader: self.called(map.version.mac),
            hosts: map.hosts.len(),
            xbars: map.xbars.len(),
            cables: map.cables.len(),
            what,
            cause: self.maps.cause.take(),
        };
        self.maps.add(event, MapToKeep { map: Arc::clone(map), names: self.names_of_map() });
    }

    /// Tells the last maps.
    pub(super) fn tell_history(&self, client: Client) {
        let history = History { events: self.maps.recent.iter().cloned().collect() };
        drop(tokio::spawn(client.answer_json(move || serde_json::to_vec(&history))));
    }

    /// Tells the map that came at a time, or null if it is not kept.
    pub(super) fn tell_past_map(&self, unix_ms: u64, client: Client) {
        let kept = self.maps.kept.clone();
        let read = move || kept.and_then(|kept| kept.read(unix_ms)).unwrap_or_else(|| "null".to_owned());
        drop(tokio::spawn(client.answer_json(move || Ok(read().into_bytes()))));
    }

    /// Begins to keep the maps on disk. If that fails, they are kept in memory alone.
    pub(super) fn keep_history(&mut self) {
        match Maps::open(&self.config) {
            Ok(maps) => self.maps = maps,
            Err(error) => warn!("the history of maps is not written: {error}"),
        }
    }
}
