//! What the server tells: fabrics with their layout, and moments of them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use mapper_proto::map::Fabric;
use serde::Serialize;
use tokio::sync::watch;

use crate::page::Scene;

/// Most fabrics that are kept.
const MOST_SCENES: usize = 16;
/// Most moments that are kept, and most bytes of them.
const MOST_MOMENTS: usize = 200;
const MOST_MOMENT_BYTES: usize = 4 << 20;

/// How a host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostState {
    /// Nobody told.
    Unknown,
    /// It holds the map of all, and proved routes.
    Configured,
    /// It maps, collects the map or computes routes.
    AtWork,
    /// It is in the map and does not answer.
    Silent,
    /// It was there and is not in the map.
    Missing,
    /// It hears nobody.
    Isolated,
}

/// How a cable is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CableState {
    /// As it should be, as far as anybody told.
    Whole,
    /// It carries nothing, and routes lead around it.
    Dead,
    /// It was there and is not in the map.
    Missing,
    /// It carries shorter frames than some host sends.
    Narrow,
}

/// How a fabric is at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Moment {
    /// When it was, for people, where that is not the time of day.
    pub(crate) at: Option<String>,
    /// When it was, in milliseconds since the beginning of 1970, if it was before the server began.
    pub(crate) unix_ms: Option<u64>,
    /// What happened, for people.
    pub(crate) what: String,
    /// How it is, in a few words.
    pub(crate) says: String,
    /// What is wrong, a line each.
    pub(crate) troubles: Vec<String>,
    /// Why hosts are as they are, by their addresses.
    pub(crate) reasons: BTreeMap<String, String>,
    /// By host; empty if nothing is known of any.
    pub(crate) hosts: Vec<HostState>,
    /// By cable; empty if nothing is known of any.
    pub(crate) cables: Vec<CableState>,
}

/// A moment as the page takes it. States are digits, in the order of the fabric's hosts and cables.
#[derive(Debug, Serialize)]
struct Update<'a> {
    /// The server, so that a page sees that another one answers.
    server: u64,
    seq: u64,
    scene: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unix_ms: Option<u64>,
    /// When it was told, in milliseconds since the server began; not where others say when it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_ms: Option<u64>,
    what: &'a str,
    says: &'a str,
    troubles: &'a [String],
    reasons: &'a BTreeMap<String, String>,
    hosts: String,
    cables: String,
}

/// A fabric and its scene.
#[derive(Debug)]
pub(crate) struct Told {
    /// The fabric.
    pub(crate) fabric: Fabric,
    /// The scene as JSON.
    pub(crate) json: String,
}

/// What a source tells and the server passes on: the last fabrics and moments, all of them bounded.
#[derive(Debug)]
pub(crate) struct Feed {
    server: u64,
    began: Instant,
    state: Mutex<State>,
    /// The number of the last moment, which wakes those who wait.
    seq: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    scenes: BTreeMap<u64, Arc<Told>>,
    last_scene: u64,
    /// Moments as JSON, with their numbers.
    moments: VecDeque<(u64, Arc<str>)>,
    bytes: usize,
    last: Option<Moment>,
}

impl Feed {
    /// A feed that has told nothing. `server` is another number at each start of a server. Fabrics are numbered from it on, so that
    /// what a page asks of the server that was there before is not answered for another fabric.
    pub(crate) fn new(server: u32) -> Self {
        let server = u64::from(server) << 20;
        let state = State { last_scene: server, ..State::default() };
        Self { server, began: Instant::now(), state: Mutex::new(state), seq: watch::Sender::new(0) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What is kept is whole at any time, so it does not matter who ended while holding it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Milliseconds since the server began.
    pub(crate) fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    /// Tells another fabric, of which the moments that follow are.
    pub(crate) fn tell_fabric(&self, fabric: Fabric, title: String) {
        let scene = Scene::new(&fabric, title);
        self.tell_scene(fabric, &scene);
    }

    /// Tells a fabric that is shown with more behind it, which no engine routes by.
    pub(crate) fn tell_fabric_with(&self, fabric: Fabric, shown: &Fabric, title: String) {
        self.tell_scene(fabric, &Scene::new(shown, title));
    }

    fn tell_scene(&self, fabric: Fabric, scene: &Scene) {
        // The scene is made of numbers, strings and maps with string keys, all of which JSON can hold.
        let json = serde_json::to_string(scene).unwrap_or_default();
        let mut state = self.state();
        state.last_scene += 1;
        let number = state.last_scene;
        state.scenes.insert(number, Arc::new(Told { fabric, json }));
        while state.scenes.len() > MOST_SCENES {
            state.scenes.pop_first();
        }
        state.last = None;
    }

    /// Tells how the last fabric is now, unless it is as it was.
    pub(crate) fn tell(&self, moment: Moment) {
        let mut state = self.state();
        let unchanged = state.last.as_ref().is_some_and(|last| {
            Moment { at: None, what: String::new(), ..last.clone() }
                == Moment { at: None, what: String::new(), ..moment.clone() }
        });
        if unchanged {
            return;
        }
        let seq = *self.seq.borrow() + 1;
        let update = Update {
            server: self.server,
            seq,
            scene: state.last_scene,
            at: moment.at.as_deref(),
            unix_ms: moment.unix_ms,
            at_ms: (moment.at.is_none() && moment.unix_ms.is_none()).then(|| self.now_ms()),
            what: &moment.what,
            says: &moment.says,
            troubles: &moment.troubles,
            reasons: &moment.reasons,
            hosts: moment.hosts.iter().map(|&state| char::from(b'0' + state as u8)).collect(),
            cables: moment.cables.iter().map(|&state| char::from(b'0' + state as u8)).collect(),
        };
        let json: Arc<str> = serde_json::to_string(&update).unwrap_or_default().into();
        state.bytes += json.len();
        state.moments.push_back((seq, json));
        while state.moments.len() > MOST_MOMENTS
            || (state.bytes > MOST_MOMENT_BYTES && state.moments.len() > 1)
        {
            if let Some((_, json)) = state.moments.pop_front() {
                state.bytes -= json.len();
            }
        }
        // Pages can show only moments whose fabric is kept.
        state.last = Some(moment);
        drop(state);
        self.seq.send_replace(seq);
    }

    /// A fabric that was told, if it is kept.
    pub(crate) fn scene(&self, number: u64) -> Option<Arc<Told>> {
        self.state().scenes.get(&number).cloned()
    }

    /// Numbers of moments, as they come.
    pub(crate) fn follow(&self) -> watch::Receiver<u64> {
        self.seq.subscribe()
    }

    /// The last moment for a page that has seen those up to `seen`, with its number, as JSON. One that has seen none gets all
    /// that are kept with it. `None` if it has seen the last.
    pub(crate) fn update(&self, seen: u64) -> Option<(u64, String)> {
        let state = self.state();
        let (seq, last) = state.moments.back()?;
        if *seq == seen {
            return None;
        }
        let now = self.now_ms();
        let body = last.strip_suffix('}').unwrap_or(last);
        let first = state.scenes.keys().next().copied().unwrap_or(0);
        let history = match seen {
            0 => {
                let is_shown = |json: &&Arc<str>| scene_of(json) >= first;
                let kept: Vec<&str> =
                    state.moments.iter().map(|(_, json)| json).filter(is_shown).map(|json| &**json).collect();
                format!(",\"history\":[{}]", kept.join(","))
            }
            _ => String::new(),
        };
        Some((*seq, format!("{body},\"now_ms\":{now}{history}}}")))
    }
}

/// The number of the scene of a moment that is JSON.
fn scene_of(json: &str) -> u64 {
    let number = json.split("\"scene\":").nth(1).unwrap_or_default();
    number.split(',').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    use super::*;

    fn moment(what: &str, state: HostState) -> Moment {
        Moment { what: what.to_owned(), hosts: vec![state], ..Moment::default() }
    }

    #[test]
    fn a_page_gets_all_at_first_and_then_what_is_new() {
        let feed = Feed::new(1);
        feed.tell_fabric(generate("ring:n=3").unwrap(), "ring".to_owned());
        assert_eq!(feed.update(0), None);
        feed.tell(moment("one", HostState::Configured));
        feed.tell(moment("two", HostState::Silent));
        let first: serde_json::Value = serde_json::from_str(&feed.update(0).unwrap().1).unwrap();
        assert_eq!((&first["seq"], &first["hosts"]), (&2.into(), &"3".into()));
        assert_eq!(first["history"].as_array().unwrap().len(), 2);
        assert_eq!(feed.update(2), None);
        feed.tell(moment("again", HostState::Silent));
        assert_eq!(feed.update(1).unwrap().0, 2, "what is as it was is no news");
        feed.tell(moment("three", HostState::Missing));
        let next: serde_json::Value = serde_json::from_str(&feed.update(2).unwrap().1).unwrap();
        assert_eq!((&next["what"], &next["history"]), (&"three".into(), &serde_json::Value::Null));
    }

    #[test]
    fn fabrics_of_two_servers_have_different_numbers_in_every_event() {
        let told = |server| -> serde_json::Value {
            let feed = Feed::new(server);
            feed.tell_fabric(generate("ring:n=3").unwrap(), "ring".to_owned());
            feed.tell(moment("one", HostState::Configured));
            serde_json::from_str(&feed.update(0).unwrap().1).unwrap()
        };
        let (one, other) = (told(1), told(u32::MAX));
        assert!(one["server"] != other["server"] && one["scene"] != other["scene"], "{one} {other}");
        assert!(other["scene"].as_u64().unwrap() < 1 << 53, "scripts count so far without a mistake");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let feed = Feed::new(1);
        for number in 0..3 * MOST_MOMENTS {
            if number % 10 == 0 {
                feed.tell_fabric(generate("ring:n=3").unwrap(), "ring".to_owned());
            }
            feed.tell(moment(&number.to_string(), HostState::Silent));
            feed.tell(moment(&number.to_string(), HostState::Missing));
        }
        let state = feed.state();
        assert_eq!((state.moments.len(), state.scenes.len()), (MOST_MOMENTS, MOST_SCENES));
        drop(state);
        let told: serde_json::Value = serde_json::from_str(&feed.update(0).unwrap().1).unwrap();
        for moment in told["history"].as_array().unwrap() {
            assert!(feed.scene(moment["scene"].as_u64().unwrap()).is_some(), "it can be shown");
        }
    }
}
