//! What this host knows of dead cables, before there is a new map.
//!
//! [`Healing`] is told what was seen, and says what to do: route around the cables that are dead now
//! ([`Action::Repair`]), and tell the agent of a cable, so that there will be a new map
//! ([`Action::TellAgent`]). It waits for nothing and sends nothing; time is passed in.
//!
//! | source | certain | until |
//! |---|---|---|
//! | the own crossbar: no carrier | yes | the carrier is back |
//! | a notice: a crossbar's port has no carrier | yes | 3 s after the last notice, or the own crossbar sees carrier |
//! | a path in use is silent | no | 5 s, or the path answers again |
//!
//! A try of a cable that is still silent costs what is sent until that is known. So each time that one
//! is over and the same cable fails silently again it is held for dead twice as long, up to
//! [`MOST_DOUBLINGS`] times. A notice costs nothing, as the frame is sent again, and a cable that comes
//! back is used at once, however often: routes may be safe only while what is held for dead is dead
//! (see [`crate::routing::repair`]). A new map ends everything but lost carrier at the own crossbar,
//! which counts as long as the cable is in the map.
//!
//! A silent host is no dead cable: there is no way around it. The agent is told, no more.

mod cables;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mapper_proto::Instant;
use mapper_proto::agent::PathId;
use mapper_proto::map::{Map, MapVersion, PortRef};

use cables::{CableEnd, Cables};

/// So long after a notice its port is held to have no carrier.
const NOTICE_HOLD: Duration = Duration::from_secs(3);
/// So long after a path fell silent the cable that it failed at is held for dead.
const SILENCE_HOLD: Duration = Duration::from_secs(5);
/// Dead cables known at once; more are left to the next map.
const LIMIT: usize = 256;
/// How often the time that a cable is held for dead doubles at most.
pub const MOST_DOUBLINGS: u32 = 4;

/// How it came out that a cable is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The own crossbar has no carrier there.
    Carrier,
    /// Another crossbar has no carrier there, and said so.
    Notice,
    /// A path in use is silent from there on.
    Silence,
}

impl Cause {
    /// Whether the cable is dead beyond doubt.
    pub const fn is_certain(self) -> bool {
        matches!(self, Self::Carrier | Self::Notice)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Carrier => "no carrier at the own crossbar",
            Self::Notice => "no carrier, says the crossbar",
            Self::Silence => "a path in use is silent from there on",
        })
    }
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Route around [`Healing::dead`], on the map of this version: it has changed.
    Repair {
        /// The map that the ports are of.
        version: MapVersion,
    },
    /// Tell the agent of a cable, if this is still its map.
    TellAgent {
        /// The map that the port is of.
        version: MapVersion,
        /// A port that holds the cable.
        at: PortRef,
        /// How it came out.
        cause: Cause,
    },
}

/// A cable that is held for dead now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadCable {
    /// A port that holds it: that of the xbar listed first.
    pub at: PortRef,
    /// Since when.
    pub since: Instant,
    /// How it came out, by the surest source.
    pub cause: Cause,
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HealingStatus {
    /// Times that routes had to be computed around other dead cables than before.
    pub repairs: u64,
    /// Cables found dead by lost carrier at the own crossbar.
    pub by_carrier: u64,
    /// Cables found dead by a notice.
    pub by_notice: u64,
    /// Cables found dead by a silent path.
    pub by_silence: u64,
    /// Cables in use again as their carrier is back, or a path answers again.
    pub came_back: u64,
    /// Cables tried again as nothing more was heard.
    pub expired: u64,
    /// What named no cable of the map.
    pub ignored: u64,
    /// Dead cables that were too many to keep.
    pub overload: u64,
    /// Cables held for dead now.
    pub dead_now: u64,
}

/// Why a cable is held for dead.
#[derive(Debug)]
struct Known {
    since: Instant,
    no_carrier: bool,
    notice_until: Option<Instant>,
    silence_until: Option<Instant>,
    /// The paths that are silent because of it. At most as many as the agent watches.
    silent: BTreeSet<PathId>,
}

impl Known {
    const fn new(since: Instant) -> Self {
        Self { since, no_carrier: false, notice_until: None, silence_until: None, silent: BTreeSet::new() }
    }

    fn cause(&self) -> Option<Cause> {
        match (self.no_carrier, self.notice_until, self.silence_until) {
            (true, _, _) => Some(Cause::Carrier),
            (_, Some(_), _) => Some(Cause::Notice),
            (_, _, Some(_)) => Some(Cause::Silence),
            (false, None, None) => None,
        }
    }
}

/// What this host knows of dead cables of the map whose routes are in use. See the
/// [module](self).
#[derive(Debug, Default)]
pub struct Healing {
    /// The cables of that map, if there is one.
    cables: Option<Cables>,
    /// By the end that stands first.
    known: BTreeMap<PortRef, Known>,
    /// How often each cable's time was over after it failed silently, without an answer.
    relapses: BTreeMap<PortRef, u32>,
    /// Ports of the own crossbar without carrier: its tag, and the port.
    no_carrier: BTreeSet<(u64, u8)>,
    /// The dead cables that routes were last computed around.
    repaired: BTreeSet<PortRef>,
    to_tell: VecDeque<(PortRef, Cause)>,
    counters: HealingStatus,
}

impl Healing {
    /// Nothing is known, and there is no map.
    pub fn new() -> Self {
        Self::default()
    }

    /// Routes of a whole map were put to use. All that is known of the map before is forgotten.
    pub fn map_installed(&mut self, now: Instant, map: Arc<Map>) {
        self.known.clear();
        self.relapses.clear();
        self.repaired.clear();
        self.to_tell.clear();
        self.cables = Some(Cables::new(map));
        for (tag, port) in self.no_carrier.clone() {
            self.lose_carrier(now, tag, port);
        }
    }

    /// The own crossbar, by its tag, lost or regained carrier at a port.
    pub fn carrier(&mut self, now: Instant, tag: u64, port: u8, up: bool) {
        if up {
            self.no_carrier.remove(&(tag, port));
            self.regain_carrier(tag, port);
        } else if self.no_carrier.len() < LIMIT && self.no_carrier.insert((tag, port)) {
            self.lose_carrier(now, tag, port);
        }
    }

    /// A crossbar said that a port of it has no carrier. Only for notices whose token was checked.
    pub fn notice(&mut self, now: Instant, tag: u64, port: u8) {
        let cable = self.cables.as_ref().and_then(|cables| cables.at_tag(tag, port));
        self.learn(now, cable, Cause::Notice, |known| known.notice_until = Some(now + NOTICE_HOLD));
    }

    /// A path in use is silent. `hops` are the ports by which it leaves its xbars, on the map whose
    /// routes are in use, and the first `reached` of these xbars still answer.
    pub fn path_down(&mut self, now: Instant, path: PathId, hops: &[PortRef], reached: usize) {
        // With no xbar left it is this host's own cable, which its agent watches itself.
        let Some(&at) = reached.checked_sub(1).and_then(|last| hops.get(last)) else {
            self.counters.ignored += 1;
            return;
        };
        let cable = self.cables.as_ref().and_then(|cables| cables.at(at));
        if let Some(CableEnd { at, is_host: true }) = cable {
            self.to_tell.push_back((at, Cause::Silence));
            self.to_tell.truncate(LIMIT);
            return;
        }
        let relapses = cable.and_then(|cable| self.relapses.get(&cable.at)).copied().unwrap_or_default();
        let until = now + SILENCE_HOLD * (1 << relapses.min(MOST_DOUBLINGS));
        self.learn(now, cable, Cause::Silence, |known| {
            if known.silent.len() < LIMIT {
                known.silent.insert(path);
            }
            known.silence_until = Some(until);
        });
    }

    /// A path that was silent answers again.
    pub fn path_up(&mut self, path: PathId) {
        for known in self.known.values_mut() {
            if known.silent.remove(&path) && known.silent.is_empty() {
                known.silence_until = None;
            }
        }
        self.drop_live(|counters| &mut counters.came_back);
    }

    /// What is to be done next; to be called until there is nothing.
    pub fn poll(&mut self, now: Instant) -> Option<Action> {
        self.expire(now);
        let version = self.cables.as_ref()?.version();
        if !self.known.keys().eq(&self.repaired) {
            self.repaired = self.dead();
            self.counters.repairs += 1;
            return Some(Action::Repair { version });
        }
        let (at, cause) = self.to_tell.pop_front()?;
        Some(Action::TellAgent { version, at, cause })
    }

    /// When [`Self::poll`] has something to do even if nothing is heard.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.known.values().flat_map(|known| [known.notice_until, known.silence_until]).flatten().min()
    }

    /// A port of each cable that is held for dead now.
    pub fn dead(&self) -> BTreeSet<PortRef> {
        self.known.keys().copied().collect()
    }

    /// The cables that are held for dead now, with why.
    pub fn dead_cables(&self) -> impl Iterator<Item = DeadCable> + '_ {
        self.known
            .iter()
            .filter_map(|(&at, known)| Some(DeadCable { at, since: known.since, cause: known.cause()? }))
    }

    /// What happened so far.
    pub fn status(&self) -> HealingStatus {
        HealingStatus { dead_now: self.known.len() as u64, ..self.counters }
    }

    fn lose_carrier(&mut self, now: Instant, tag: u64, port: u8) {
        let cable = self.cables.as_ref().and_then(|cables| cables.at_tag(tag, port));
        self.learn(now, cable, Cause::Carrier, |known| known.no_carrier = true);
    }

    fn regain_carrier(&mut self, tag: u64, port: u8) {
        let Some(cables) = &self.cables else { return };
        let Some(cable) = cables.at_tag(tag, port) else { return };
        if let Some(known) = self.known.get_mut(&cable.at) {
            // A cable may have both its ends in the own crossbar.
            known.no_carrier = cables.tags_of(cable.at).any(|end| self.no_carrier.contains(&end));
            known.notice_until = None;
        }
        self.drop_live(|counters| &mut counters.came_back);
    }

    /// Takes in that a cable is dead. `update` gets what is known of it.
    fn learn(
        &mut self,
        now: Instant,
        cable: Option<CableEnd>,
        cause: Cause,
        update: impl FnOnce(&mut Known),
    ) {
        let Some(CableEnd { at, .. }) = cable else {
            self.counters.ignored += 1;
            return;
        };
        if self.known.len() >= LIMIT && !self.known.contains_key(&at) {
            self.counters.overload += 1;
            return;
        }
        let known = self.known.entry(at).or_insert_with(|| Known::new(now));
        let before = known.cause();
        update(known);
        if before.is_none() {
            *match cause {
                Cause::Carrier => &mut self.counters.by_carrier,
                Cause::Notice => &mut self.counters.by_notice,
                Cause::Silence => &mut self.counters.by_silence,
            } += 1;
        }
        // The agent hears of it once, and again when it becomes certain.
        if before.is_none_or(|before| cause.is_certain() && !before.is_certain()) {
            self.to_tell.push_back((at, cause));
            self.to_tell.truncate(LIMIT);
        }
    }

    /// Ends what was not heard of again in time.
    fn expire(&mut self, now: Instant) {
        for (&at, known) in &mut self.known {
            known.notice_until = known.notice_until.filter(|&until| now < until);
            if known.silence_until.is_some_and(|until| now >= until) {
                known.silence_until = None;
                known.silent.clear();
                if self.relapses.len() < LIMIT || self.relapses.contains_key(&at) {
                    *self.relapses.entry(at).or_default() += 1;
                }
            }
        }
        self.drop_live(|counters| &mut counters.expired);
    }

    /// Forgets the cables that nothing holds for dead any more, and counts them.
    fn drop_live(&mut self, counter: impl FnOnce(&mut HealingStatus) -> &mut u64) {
        let before = self.known.len();
        self.known.retain(|_, known| known.cause().is_some());
        *counter(&mut self.counters) += (before - self.known.len()) as u64;
    }
}
