//! What the server tells: fabrics with their layout, and moments of them.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use mapper_proto::map::Fabric;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::watch;

use mapper_formats::page::Scene;

/// Most fabrics that are kept.
const MOST_SCENES: usize = 16;
/// Most fabrics of before that are kept once they were found again.
const MOST_RECALLED: usize = 4;
/// Most moments that are kept, and most bytes of them.
const MOST_MOMENTS: usize = 200;
const MOST_MOMENT_BYTES: usize = 4 << 20;

/// How a host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostState {
    /// Nobody has told how it is.
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

/// What happened at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Happened {
    /// The number of the moment.
    pub(crate) seq: u64,
    /// When it was, for people, where that is not the time of day.
    #[serde(default)]
    pub(crate) at: Option<String>,
    /// What happened; empty if there is nothing to say.
    pub(crate) what: String,
    /// How all was then, in a few words.
    pub(crate) says: String,
}

/// A fabric and its scene.
#[derive(Debug)]
pub(crate) struct Told {
    /// The fabric.
    pub(crate) fabric: Fabric,
    /// The scene as JSON.
    pub(crate) json: String,
}

impl Told {
    fn new(fabric: Fabric, scene: &Scene) -> Self {
        // The scene is made of numbers, strings and maps with string keys, all of which JSON can hold.
        Self { json: serde_json::to_string(scene).unwrap_or_default(), fabric }
    }
}

/// Finds a fabric of before again, when somebody wants to see it; `None` if it is not to be had any more. It may take seconds.
pub(crate) type Recall = Arc<dyn Fn() -> Option<Fabric> + Send + Sync>;

/// A fabric that is not kept, and how it is found again.
#[derive(Clone)]
struct Past {
    title: String,
    recall: Recall,
}

impl fmt::Debug for Past {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Past({:?})", self.title)
    }
}

/// What somebody who follows has been told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Seen {
    moment: u64,
    traffic: u64,
}

/// What a source tells and the server passes on: the last fabrics and moments, all of them bounded.
#[derive(Debug)]
pub(crate) struct Feed {
    server: u64,
    began: Instant,
    state: Mutex<State>,
    /// How often anything was told, which wakes those who wait.
    news: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    scenes: BTreeMap<u64, Arc<Told>>,
    /// How fabrics that moments are of are found again when they are not kept any more.
    past: BTreeMap<u64, Past>,
    /// The fabrics that were found again last.
    recalled: VecDeque<(u64, Arc<Told>)>,
    last_scene: u64,
    last_seq: u64,
    last_traffic: u64,
    /// Moments as JSON, with their numbers and those of their fabrics.
    moments: VecDeque<(u64, u64, Arc<str>)>,
    bytes: usize,
    last: Option<Moment>,
    /// What goes over the cables of the last scene, as JSON, and how often that was told.
    traffic: Option<(u64, Arc<str>)>,
}

impl Feed {
    /// A feed that has told nothing. `server` is another number at each start of a server. Fabrics are numbered from it on, so that
    /// what a page asks of the server that was there before is not answered for another fabric.
    pub(crate) fn new(server: u32) -> Self {
        let server = u64::from(server) << 20;
        let state = State { last_scene: server, ..State::default() };
        Self { server, began: Instant::now(), state: Mutex::new(state), news: watch::Sender::new(0) }
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
        self.tell_scene(fabric, &scene, None);
    }

    /// Tells a fabric that is shown with more behind it, which no engine routes by, and which `recall` finds again when it is kept
    /// no more.
    pub(crate) fn tell_fabric_with(&self, fabric: Fabric, shown: &Fabric, title: String, recall: Recall) {
        let scene = Scene::new(shown, title.clone());
        self.tell_scene(fabric, &scene, Some(Past { title, recall }));
    }

    fn tell_scene(&self, fabric: Fabric, scene: &Scene, past: Option<Past>) {
        let told = Arc::new(Told::new(fabric, scene));
        let mut state = self.state();
        let number = state.next_scene();
        state.scenes.insert(number, told);
        state.past.extend(past.map(|past| (number, past)));
        while state.scenes.len() > MOST_SCENES {
            state.scenes.pop_first();
        }
        state.last = None;
        state.traffic = None;
    }

    /// Tells a moment of before, with how the fabric of then is found again. It comes before the fabric of now is told, with which it
    /// is passed on.
    pub(crate) fn tell_past(&self, moment: &Moment, title: String, recall: Recall) {
        let mut state = self.state();
        let number = state.next_scene();
        state.past.insert(number, Past { title, recall });
        state.add(self, moment, number);
    }

    /// Tells what goes over the cables of the last fabric. It is no moment: nobody looks back at it.
    pub(crate) fn tell_traffic(&self, traffic: &impl Serialize) {
        let mut state = self.state();
        let mut told = json!({ "server": self.server, "traffic": traffic });
        told["traffic"]["scene"] = json!(state.last_scene);
        state.last_traffic += 1;
        state.traffic = Some((state.last_traffic, told.to_string().into()));
        drop(state);
        self.wake();
    }

    fn wake(&self) {
        self.news.send_modify(|news| *news += 1);
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
        let scene = state.last_scene;
        state.add(self, &moment, scene);
        state.last = Some(moment);
        drop(state);
        self.wake();
    }

    /// A fabric that was told, if it is kept, or was found again.
    pub(crate) fn scene(&self, number: u64) -> Option<Arc<Told>> {
        let state = self.state();
        let recalled = || state.recalled.iter().find(|(of, _)| *of == number).map(|(_, told)| told);
        state.scenes.get(&number).or_else(recalled).cloned()
    }

    /// A fabric that was told, which is found again if it is not kept. That may take seconds.
    pub(crate) fn recall(&self, number: u64) -> Option<Arc<Told>> {
        if let Some(told) = self.scene(number) {
            return Some(told);
        }
        let Past { title, recall } = self.state().past.get(&number).cloned()?;
        let fabric = recall()?;
        let scene = Scene::new(&fabric, title);
        let told = Arc::new(Told::new(fabric, &scene));
        let mut state = self.state();
        state.recalled.push_back((number, Arc::clone(&told)));
        if state.recalled.len() > MOST_RECALLED {
            state.recalled.pop_front();
        }
        Some(told)
    }

    /// Wakes whoever waits for news.
    pub(crate) fn follow(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// The fabric that was told last and how it is, for somebody who shows no page. `None` before both were told.
    pub(crate) fn latest(&self) -> Option<(Arc<Told>, Moment)> {
        let state = self.state();
        Some((Arc::clone(state.scenes.get(&state.last_scene)?), state.last.clone()?))
    }

    /// What happened after the moment `seen`, each with the number of its moment.
    pub(crate) fn happened(&self, seen: u64) -> Vec<Happened> {
        let state = self.state();
        let new = state.moments.iter().filter(|(seq, ..)| *seq > seen);
        new.filter_map(|(_, _, json)| serde_json::from_str(json).ok()).collect()
    }

    /// What is new to a page that has seen `seen`, as JSON, each piece by itself: the last moment, and what goes over cables. One
    /// that has seen none gets all moments that are kept with it. What goes over cables is told after a moment.
    pub(crate) fn update(&self, seen: &mut Seen) -> Vec<String> {
        let state = self.state();
        let Some((seq, _, last)) = state.moments.back() else { return Vec::new() };
        let mut news = Vec::new();
        if *seq != seen.moment {
            let now = self.now_ms();
            let body = last.strip_suffix('}').unwrap_or(last);
            let history = match seen.moment {
                0 => format!(",\"history\":[{}]", state.history().join(",")),
                _ => String::new(),
            };
            news.push(format!("{body},\"now_ms\":{now}{history}}}"));
            seen.moment = *seq;
        }
        if let Some((number, traffic)) = state.traffic.as_ref().filter(|(number, _)| *number != seen.traffic)
        {
            news.push(traffic.to_string());
            seen.traffic = *number;
        }
        news
    }
}

impl State {
    fn next_scene(&mut self) -> u64 {
        self.last_scene += 1;
        self.last_scene
    }

    fn add(&mut self, feed: &Feed, moment: &Moment, scene: u64) {
        self.last_seq += 1;
        let update = Update {
            server: feed.server,
            seq: self.last_seq,
            scene,
            at: moment.at.as_deref(),
            unix_ms: moment.unix_ms,
            at_ms: (moment.at.is_none() && moment.unix_ms.is_none()).then(|| feed.now_ms()),
            what: &moment.what,
            says: &moment.says,
            troubles: &moment.troubles,
            reasons: &moment.reasons,
            hosts: moment.hosts.iter().map(|&state| char::from(b'0' + state as u8)).collect(),
            cables: moment.cables.iter().map(|&state| char::from(b'0' + state as u8)).collect(),
        };
        let json: Arc<str> = serde_json::to_string(&update).unwrap_or_default().into();
        self.bytes += json.len();
        self.moments.push_back((self.last_seq, scene, json));
        while self.moments.len() > MOST_MOMENTS || (self.bytes > MOST_MOMENT_BYTES && self.moments.len() > 1)
        {
            if let Some((_, _, json)) = self.moments.pop_front() {
                self.bytes -= json.len();
            }
        }
        let first = self.moments.front().map_or(scene, |&(_, scene, _)| scene);
        self.past.retain(|&number, _| number >= first);
    }

    /// The moments whose fabric is kept or can be found again.
    fn history(&self) -> Vec<&str> {
        let is_shown = |scene: &u64| self.scenes.contains_key(scene) || self.past.contains_key(scene);
        self.moments.iter().filter(|(_, scene, _)| is_shown(scene)).map(|(_, _, json)| &**json).collect()
    }
}

#[cfg(test)]
mod tests;
