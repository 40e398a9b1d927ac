//! Liveness: checks along the paths that carry users' data.
//!
//! The driver says which paths are in use ([`Agent::watch_path`]), again and again while they are.
//! Each is checked by scouts that the host at its end answers at once, in whatever state it is.
//!
//! Checks and their answers travel as data frames do ([`Data::carry`](crate::wire::Data::carry)), and one in
//! four is as long as the longest of the user's frames lately: what lets the mapper's frames pass and not
//! users', or short ones and not long ones, is found so. A check that is not answered is repeated in its
//! length, and only an answer to one of that length counts. If users send no frames of that length any more, as
//! when cables carry less than before, it is repeated in that of the longest that they do send.
//!
//! ```text
//!       watch_path                 not answered within a quarter of an interval
//!  --------------------> Up ---------------------------------------------------> Doubted
//!                       ^  ^                                                      |   |
//!                       |  +------------------ any answer -----------------------+   | silent for so many
//!                       |                                                             | intervals as misses
//!                       +------ so many answers in a row as misses: PathUp ---- Down <+ are allowed: PathDown
//!
//!  a check that is not answered after one that was, while it is down: Doubted, and from there Down again by any answer
//!  not said to be in use for 1.5 s: forgotten, from any state
//! ```
//!
//! A path that answers costs a frame each way about five times in four intervals: each wait is cut
//! by a random tenth to quarter, so that paths do not fire together. While a path is doubted its checks
//! are repeated each quarter of an interval, so that a few lost frames are not taken for a dead
//! cable; and each interval of silence sends a loopback probe to every xbar of the route, so that
//! [`Event::PathDown`] can say how far it still goes. A path that is down, answers and falls silent before it is up
//! may break in another place now; then that event comes again. Time in which this agent itself was not
//! awake does not count as silence.
//!
//! A path that answers may lose frames all the same. If a tenth of its latest checks got lost,
//! [`Event::PathLosesFrames`] says so; where on it they do is for the driver to find out
//! ([`Agent::echo`]).
//!
//! Ids of checks are matched here and not among the requests of the agent: they come and go by the
//! thousand.

mod cable;
mod losses;
mod path;
#[cfg(test)]
mod tests;

use super::status::FrameDrop;
use std::collections::BTreeMap;
use std::time::Duration;

use enum_map::Enum;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use strum::IntoStaticStr;

pub use self::cable::CableTest;
use self::cable::CableTests;
use self::path::{Due, Pace, Path, State};
use super::event::Event;
use super::machine::Agent;
use super::settings::Settings;
use crate::map::LinkMtu;
use crate::wire::{Data, Element, Message, Probe, ProbeKind, Reason, RoundTrip, Route, Scout};
use crate::{Instant, Mac, Tally};

/// How long a path is watched after the driver last said that it is in use.
const FORGET_AFTER: Duration = Duration::from_millis(1500);
/// After how long without being said to be in use a path may lose its place to another.
const YIELD_AFTER: Duration = Duration::from_millis(750);
/// Most paths that are counted as in use and not watched.
const UNWATCHED_LIMIT: usize = 1024;

/// Names a path of the driver, which gives out the numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PathId(pub u32);

/// A path of the driver that carries data.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PathUse {
    /// The way to its end, and the way back through the same ports.
    pub way: RoundTrip,
    /// The host at its end.
    pub to: Mac,
    /// The longest frame that took it lately, route and all, in bytes.
    pub longest_bytes: usize,
}

/// What is counted of the liveness checks of an agent: what they cost, and what they found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Enum, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum LivenessCount {
    /// Paths that are checked now.
    Watched,
    /// Paths in use that are not checked, as there are too many.
    Unwatched,
    /// Checks and probes sent since the start.
    ChecksSent,
    /// Paths found down since the start.
    Failures,
    /// Cables that were said to be dead and answered when this agent checked them, since the start.
    Cleared,
}

/// What a frame of liveness asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asks {
    /// Whether the host at the end of the path answers a check of this length.
    Host(usize),
    /// Whether this xbar of the path's route answers, counted from 1.
    Xbar(usize),
}

/// A check or probe under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Sent {
    path: PathId,
    asks: Asks,
    /// The token of its frame, until a notice named it.
    token: Option<u64>,
    /// Whether it is a check of the host that repeats none before it.
    is_first: bool,
}

impl Sent {
    /// How long it is, if it is a check of the host that repeats none before it.
    const fn first_check(self) -> Option<usize> {
        match self.asks {
            Asks::Host(bytes) if self.is_first => Some(bytes),
            Asks::Host(_) | Asks::Xbar(_) => None,
        }
    }
}

/// All watched paths.
#[derive(Debug)]
pub(super) struct Liveness {
    paths: BTreeMap<PathId, Path>,
    /// The paths in use that are not watched for want of room, and when each was last said to be in use.
    unwatched: BTreeMap<PathId, Instant>,
    /// Checks and probes under way, by id.
    under_way: BTreeMap<u32, Sent>,
    /// Paths of whose checks many got lost, and how long these were, which the driver has yet to hear.
    losing: Vec<(PathId, usize)>,
    /// Cables that are held for dead.
    cables: CableTests,
    /// When paths out of use are next looked for.
    sweep_at: Instant,
    rng: ChaCha8Rng,
    /// What is counted as it happens.
    pub(super) counts: Tally<LivenessCount>,
}

impl Liveness {
    /// No path is watched. `rng` draws by how much checks come earlier or later.
    pub(super) fn new(rng: ChaCha8Rng) -> Self {
        Self {
            paths: BTreeMap::new(),
            unwatched: BTreeMap::new(),
            under_way: BTreeMap::new(),
            losing: Vec::new(),
            cables: CableTests::default(),
            sweep_at: Instant::FAR,
            rng,
            counts: Tally::default(),
        }
    }

    /// Takes note that a path is in use.
    fn watch(&mut self, now: Instant, id: PathId, used: PathUse, settings: &Settings) {
        self.sweep_at = self.sweep_at.min(now + FORGET_AFTER);
        if let Some(path) = self.paths.get_mut(&id) {
            if path.used.way == used.way {
                path.repeated_at = now;
                path.used = used;
                return;
            }
            // The driver has given the name of a former path to another one.
            self.forget(id);
        } else if self.paths.len() >= settings.liveness_limit && !self.make_room(now) {
            if self.unwatched.len() < UNWATCHED_LIMIT || self.unwatched.contains_key(&id) {
                self.unwatched.insert(id, now);
            }
            return;
        }
        self.unwatched.remove(&id);
        let wait = self.rng.random_range(0.0..1.0);
        let first_check_at = now + settings.liveness_interval.mul_f64(wait);
        self.paths.insert(id, Path::new(now, used, first_check_at));
    }

    /// Forgets the path that was not repeated for the longest time, if that is long enough.
    fn make_room(&mut self, now: Instant) -> bool {
        let oldest = self.paths.iter().min_by_key(|(_, path)| path.repeated_at);
        let Some(id) =
            oldest.filter(|(_, path)| now.since(path.repeated_at) >= YIELD_AFTER).map(|(id, _)| *id)
        else {
            return false;
        };
        self.forget(id);
        true
    }

    fn forget(&mut self, id: PathId) {
        if let Some(path) = self.paths.remove(&id) {
            for (_, id) in path.under_way {
                self.under_way.remove(&id);
            }
        }
    }

    /// Forgets what is out of use.
    fn sweep(&mut self, now: Instant) {
        if self.sweep_at > now {
            return;
        }
        let out_of_use = |at: Instant| now.since(at) >= FORGET_AFTER;
        let gone: Vec<_> =
            self.paths.iter().filter(|(_, path)| out_of_use(path.repeated_at)).map(|(id, _)| *id).collect();
        gone.into_iter().for_each(|id| self.forget(id));
        self.unwatched.retain(|_, at| !out_of_use(*at));
        let oldest = self.paths.values().map(|path| path.repeated_at).chain(self.unwatched.values().copied());
        self.sweep_at = oldest.min().map_or(Instant::FAR, |at| at + FORGET_AFTER);
    }

    /// When the next check falls due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let checks = self.paths.values().map(|path| path.due_at).min();
        checks
            .into_iter()
            .chain(self.cables.deadline())
            .chain([self.sweep_at])
            .filter(|at| *at < Instant::FAR)
            .min()
    }

    /// A path whose time has come, and what it wants done.
    fn next_due(&mut self, now: Instant, settings: &Settings) -> Option<(PathId, Due)> {
        let (id, path) = self.paths.iter_mut().find(|(_, path)| path.due_at <= now)?;
        let cut = self.rng.random_range(0.75..0.9);
        let due = path.fire(now, pace(settings), settings.liveness_interval.mul_f64(cut));
        Some((*id, due))
    }

    /// Notes a frame that is about to be sent under this id.
    fn note_sent(&mut self, now: Instant, id: u32, (path, asks): (PathId, Asks), pace: Pace) {
        self.counts.count(LivenessCount::ChecksSent);
        let Some(of) = self.paths.get_mut(&path) else { return };
        let is_first = matches!(asks, Asks::Host(_)) && of.is_first_check();
        self.under_way.insert(id, Sent { path, asks, token: None, is_first });
        let forgotten = of.note_sent(now, id, pace).and_then(|id| self.under_way.remove(&id));
        if let Some(bytes) = forgotten.and_then(Sent::first_check) {
            self.losing.extend(of.loses_by(bytes, true).map(|bytes| (path, bytes)));
        }
    }

    /// Takes out the path that a frame with this id was sent for, if the frame asked for something of this
    /// kind.
    fn take(&mut self, id: u32, of_kind: impl Fn(Asks) -> bool) -> Option<(&mut Path, PathId, Asks)> {
        let sent = *self.under_way.get(&id).filter(|sent| of_kind(sent.asks))?;
        let Sent { path: name, asks, token, .. } = sent;
        self.under_way.remove(&id);
        let path = self.paths.get_mut(&name)?;
        if let Some(bytes) = sent.first_check() {
            self.losing.extend(path.loses_by(bytes, false).map(|bytes| (name, bytes)));
        }
        if matches!(asks, Asks::Host(_)) {
            path.answered_token = token;
        }
        path.under_way.retain(|(_, sent)| *sent != id);
        Some((path, name, asks))
    }

    /// Notes the token of the check that was sent under this id, as a notice about it would name it.
    fn note_token(&mut self, id: u32, token: Option<u64>) {
        if let Some(sent) = self.under_way.get_mut(&id) {
            sent.token = token;
        }
    }

    /// The token of the next check. Nobody may guess it, as what is said of it is believed.
    pub(super) fn check_token(&mut self) -> u64 {
        self.rng.random_range(1..u64::MAX >> 1)
    }

    /// How many entries all its tables have together.
    pub(super) fn load(&self) -> usize {
        self.paths.len() + self.unwatched.len() + self.under_way.len() + self.cables.len()
    }

    /// What the checks cost and have found.
    pub(super) fn counts(&self) -> Tally<LivenessCount> {
        let mut counts = self.counts;
        counts.add(LivenessCount::Watched, self.paths.len() as u64);
        counts.add(LivenessCount::Unwatched, self.unwatched.len() as u64);
        counts
    }
}

fn pace(settings: &Settings) -> Pace {
    Pace { interval: settings.liveness_interval, misses: u32::from(settings.liveness_misses.max(1)) }
}

impl Agent {
    /// Says that this path carries data, so it is to be checked. To be repeated every few hundred
    /// milliseconds while it is in use; after 1.5 s it is forgotten, and no event tells of it
    /// any more. With other routes the same name is another path.
    ///
    /// Of more paths than [`Settings::liveness_limit`] those are checked that came first and are
    /// repeated. Nothing is checked if [`Settings::liveness_interval`] is zero.
    pub fn watch_path(&mut self, now: Instant, path: PathId, used: PathUse) {
        if !self.settings.liveness_interval.is_zero() {
            self.liveness.watch(now, path, used, &self.settings);
        }
    }

    /// When a host last answered a check of a path to it that is watched; `None` if no such path has been answered.
    pub fn path_answered_at(&self, to: Mac) -> Option<Instant> {
        let there = self.liveness.paths.values().filter(|path| path.used.to == to);
        there.filter_map(|path| path.answered_at).max()
    }

    /// Whether a path to this host is watched.
    pub fn watches_path_to(&self, to: Mac) -> bool {
        self.liveness.paths.values().any(|path| path.used.to == to)
    }

    /// The path that the check with this token was sent along. A crossbar says by such a notice that it could not send
    /// the check on, or that it did and could not do so again: nobody knows the token who did not see the check. A token
    /// counts once.
    pub fn undeliverable_check(&mut self, token: u64) -> Option<PathId> {
        let is_it = |sent: &mut u64| Data::is_same_check(*sent, token);
        let Liveness { under_way, paths, .. } = &mut self.liveness;
        let sent = under_way.values_mut().find_map(|sent| sent.token.take_if(is_it).map(|_| sent.path));
        let answered =
            || paths.iter_mut().find_map(|(name, path)| path.answered_token.take_if(is_it).map(|_| *name));
        sent.or_else(answered)
    }

    /// Sends the checks that fall due, and tells which paths are down.
    pub(super) fn check_paths(&mut self, now: Instant) {
        self.liveness.sweep(now);
        self.test_cables(now);
        while let Some((path, due)) = self.liveness.next_due(now, &self.settings) {
            match due {
                Due::Check => self.check_path(now, path),
                Due::CheckAndProbes => {
                    self.check_path(now, path);
                    self.probe_path(now, path);
                }
                Due::Down => {
                    self.liveness.counts.count(LivenessCount::Failures);
                    let found = self.liveness.paths.get(&path).map(|path| (path.reached, path.check_bytes));
                    let (reached, frame_bytes) = found.unwrap_or_default();
                    self.event(Event::PathDown { path, reached, frame_bytes });
                }
            }
        }
        while let Some((path, frame_bytes)) = self.liveness.losing.pop() {
            self.event(Event::PathLosesFrames { path, frame_bytes });
        }
    }

    /// The longest frame that this host's own interface carries along a route, in bytes, as far as that is known: a port of a
    /// node's crossbar may carry more than the one that carries least.
    fn longest_along(&self, route: &Route) -> Option<usize> {
        let LinkMtu { bytes, ports } = self.settings.mtu;
        let carries_least = |port: u8| ports.contains(port);
        let is_known = ports.is_empty() || self.own_port_along(route).is_some_and(carries_least);
        (bytes > 0 && is_known).then_some(bytes.into())
    }

    /// The port by which a route leaves this host's crossbar.
    fn own_port_along(&self, route: &Route) -> Option<u8> {
        let home = self.held.as_ref()?.at?;
        match route.elements().next()? {
            Element::Relative(turn) => u8::try_from(i16::from(home.port) + i16::from(turn)).ok(),
            Element::Absolute(port) => Some(port),
            Element::Identify => None,
        }
    }

    fn check_path(&mut self, now: Instant, name: PathId) {
        let Some(path) = self.liveness.paths.get(&name) else { return };
        let most_bytes = self.longest_along(&path.used.way.there);
        let Some(path) = self.liveness.paths.get_mut(&name) else { return };
        if let Some(most_bytes) = most_bytes {
            path.shorten_check(most_bytes);
        }
        let PathUse { way, to, .. } = path.used.clone();
        let bytes = path.check_bytes;
        let id = self.new_probe_id();
        self.liveness.note_sent(now, id, (name, Asks::Host(bytes)), pace(&self.settings));
        let token = self.send_check_of_host(id, &way, to, bytes);
        self.liveness.note_token(id, token);
    }

    /// Sends a check of this length along a way, which the host at its end answers. Returns the token of its frame.
    pub(super) fn send_check_of_host(
        &mut self,
        id: u32,
        way: &RoundTrip,
        to: Mac,
        bytes: usize,
    ) -> Option<u64> {
        // A host that does not know this agent yet asks back, along the way back that the check carries.
        let info = self.info();
        let scout = |answer_bytes| {
            Message::Scout(Scout { id, info, way: way.clone(), reason: Reason::Alive { answer_bytes } })
        };
        // The answer is as long as what arrives, which is without the route.
        let least = self.data_bytes(&scout(0), &way.back);
        let answer_bytes = bytes.saturating_sub(way.there.as_bytes().len()).max(least);
        let answer_bytes = u16::try_from(answer_bytes).unwrap_or_default();
        let token = self.liveness.check_token();
        self.transmit_as_data(token, way.clone(), to, &scout(answer_bytes), bytes)
    }

    /// Sends a loopback probe to each xbar of a path's route.
    fn probe_path(&mut self, now: Instant, name: PathId) {
        let Some(path) = self.liveness.paths.get(&name) else { return };
        let (way, to, bytes) = (path.used.way.clone(), path.used.to, path.check_bytes);
        for xbar in 1..=way.there.hops() {
            let id = self.new_probe_id();
            self.liveness.note_sent(now, id, (name, Asks::Xbar(xbar)), pace(&self.settings));
            let token = self.send_probe_of_xbar(id, &way, to, xbar, bytes);
            self.liveness.note_token(id, token);
        }
    }

    /// Sends a loopback probe of this length to an xbar of a way, counted from 1. Returns the token of its frame;
    /// `None` if the way has no such xbar.
    pub(super) fn send_probe_of_xbar(
        &mut self,
        id: u32,
        way: &RoundTrip,
        to: Mac,
        xbar: usize,
        bytes: usize,
    ) -> Option<u64> {
        let there: Vec<_> = way.there.elements().collect();
        let back: Vec<_> = way.back.elements().collect();
        if there.len() != back.len() || !(1..=there.len()).contains(&xbar) {
            return None;
        }
        let before = xbar - 1;
        let way_there: Route = there[..before].iter().copied().collect();
        let mut route = way_there.clone();
        route.push(Element::Relative(0));
        route.extend(back[back.len() - before..].iter().copied());
        let left = u8::try_from(xbar).unwrap_or(u8::MAX);
        let probe = Probe { id, kind: ProbeKind::Loopback, left, info: self.info(), way_there };
        // The probe goes there and back the same way, so its route is its own way back.
        let round_trip = RoundTrip { there: route.clone(), back: route };
        let token = self.liveness.check_token();
        self.transmit_as_data(token, round_trip, to, &Message::Probe(probe), bytes)
    }

    /// Takes in that the host at the end of a path has answered. Returns whether a check waited for that.
    pub(super) fn path_answered(&mut self, now: Instant, id: u32, from: Mac) -> bool {
        let pace = pace(&self.settings);
        let to_host = |asks| matches!(asks, Asks::Host(_));
        let Some((path, name, asks)) = self.liveness.take(id, to_host) else { return false };
        if asks != Asks::Host(path.check_bytes) {
            // The answer to a shorter or longer check says nothing of frames of the length that is in doubt.
            return true;
        }
        match path.hear(now, from, pace) {
            Some(true) => self.event(Event::PathUp { path: name }),
            Some(false) => {}
            None => self.dropped.count(FrameDrop::Implausible),
        }
        true
    }

    /// Takes in that a loopback probe came home. Returns whether it was sent for a path.
    pub(super) fn path_probe_returned(&mut self, id: u32) -> bool {
        let to_xbar = |asks| matches!(asks, Asks::Xbar(_));
        let Some((path, _, Asks::Xbar(xbar))) = self.liveness.take(id, to_xbar) else { return false };
        if path.state() == State::Doubted {
            path.reached = path.reached.max(xbar);
        }
        true
    }
}
