//! Contact with other agents: the election, and the wait of the losers.
//!
//! Ranks are level, then MAC. When a mapper meets a higher one it becomes passive: it keeps the
//! winner's address and the way to it, asks once a second for its map version, and maps again
//! when the winner falls silent. So does an agent whose map no longer holds, for its parent in the tree. An agent never becomes passive to a lower one, whoever that one
//! follows: so the provisional tree has no circle. Nor does it wait for one that has started again with
//! a level below its own, though the last map has that one for its parent.

use super::cause::Cause;
use std::time::Duration;

use rand::RngExt;

use super::event::Event;
use super::machine::Agent;
use super::parent::Parent;
use super::requests::Asked;
use super::timers::Timer;
use crate::map::ways::follow;
use crate::map::{Map, MapVersion, PortRef, Rank, decode_pieces};
use crate::wire::{AgentState, Info, Reason, RoundTrip, Route};
use crate::{Instant, Mac};

/// How many times [`Settings::silence_limit`](super::Settings::silence_limit) an agent waits for a map.
const PATIENCE: u32 = 4;
/// How many queries in a row a parent in the tree leaves without an answer before it counts as gone. One would
/// do to tell that a host is dead, as in verification. But where the way to the parent is what broke, its new
/// map is on its way, and many agents that each began to map as well would only delay it.
const UNANSWERED_QUERIES: u8 = 2;

impl Agent {
    /// How long this agent waits for a map before it makes one itself.
    pub(super) fn patience(&self) -> Duration {
        self.settings.silence_limit * PATIENCE
    }

    /// Takes in that another agent has sent something of its own accord. `way` leads there and back.
    pub(super) fn contact(&mut self, now: Instant, info: &Info, way: &RoundTrip) {
        let theirs = info.rank;
        if self.twin.is_some() || self.avoid_contested(now, info) {
            return;
        }
        self.note_printeur(info);
        let maps = info.state == AgentState::Mapping;
        if self.held.as_ref().is_none_or(|held| !held.valid) {
            self.note_heard(theirs.mac, &way.there);
        }
        match self.state {
            AgentState::Mapping | AgentState::Starting if theirs.level > 0 && theirs > self.rank() => {
                self.become_passive(now, info, way.clone());
            }
            AgentState::Passive => {
                if let Some(parent) = self.parent.as_mut().filter(|parent| parent.rank.mac == theirs.mac) {
                    parent.hear(now);
                    self.leave_lower_parent(now, info);
                }
            }
            AgentState::Starting if maps => self.wake_early(now),
            AgentState::Mapping | AgentState::Starting => {}
            AgentState::Fetching | AgentState::Routing | AgentState::Configured | AgentState::Isolated => {
                if maps && self.leader().is_none_or(|leader| theirs > leader) {
                    self.become_passive(now, info, way.clone());
                } else if !maps || !self.look_at_level(now, info) {
                    // The levels of all other hosts are looked at when they answer what this agent asks.
                    self.look_at_stranger(now, info, &way.there);
                    self.offer_to_child(now, info);
                }
            }
        }
    }

    /// The global mapper whose map is in force or on its way.
    pub(super) fn leader(&self) -> Option<Rank> {
        self.fetch.as_ref().map(|fetch| fetch.leader).or_else(|| self.held.as_ref().map(|held| held.leader))
    }

    /// Keeps in mind a host that was heard while there was no map to look it up in.
    fn note_heard(&mut self, mac: Mac, way_there: &Route) {
        const LIMIT: usize = 64;
        if self.heard.len() < LIMIT && self.heard.iter().all(|(heard, _)| *heard != mac) {
            self.heard.push((mac, way_there.clone()));
        }
    }

    /// Looks those up who were heard before this map came: one who is not in it came too late for
    /// its making.
    pub(super) fn look_at_heard(&mut self, now: Instant, map: &Map) {
        let at = self.held.as_ref().and_then(|held| held.at);
        for (mac, way_there) in std::mem::take(&mut self.heard) {
            let known = map.hosts.iter().any(|host| host.mac == mac)
                || map.contested.iter().any(|contested| contested.mac == mac);
            if !known && self.backoff.counts(now, mac) {
                let suspect = at.and_then(|at| follow(map, at, &way_there));
                self.invalidate(now, Cause::HostNotInMap { mac }, suspect.as_slice());
            }
        }
    }

    /// Declares the map invalid if this host is not in it.
    fn look_at_stranger(&mut self, now: Instant, info: &Info, way_there: &Route) {
        let mac = info.rank.mac;
        let Some(held) = self.held.as_ref().filter(|held| held.valid && held.version != info.version) else {
            return;
        };
        if held.neighbours().contains(&mac) || held.leader.mac == mac || !self.backoff.counts(now, mac) {
            return;
        }
        let Ok(map) = decode_pieces(held.version, &held.pieces) else { return };
        if map.hosts.iter().all(|host| host.mac != mac) {
            let suspect = held.at.and_then(|at| follow(&map, at, way_there));
            self.invalidate(now, Cause::HostNotInMap { mac }, suspect.as_slice());
        }
    }

    /// Declares the map invalid, and returns true, if a neighbour in the tree or the global mapper has another
    /// level than the map says. It has started again, so the order of the map's hosts, and maybe its global
    /// mapper, are others now.
    pub(super) fn look_at_level(&mut self, now: Instant, info: &Info) -> bool {
        let Rank { level, mac } = info.rank;
        let Some(held) = self.held.as_ref().filter(|held| held.valid && !info.flags.contested) else {
            return false;
        };
        let before = held.level_of(mac).filter(|before| *before != level);
        let Some(before) = before.filter(|_| self.backoff.counts(now, mac)) else { return false };
        self.invalidate(now, Cause::LevelChanged { mac, level, before }, &[]);
        true
    }

    /// Tells a child that maps of the map in force, so that it need not wait until it is verified.
    fn offer_to_child(&mut self, now: Instant, info: &Info) {
        let child = self.held.as_mut().and_then(|held| held.child_mut(info.rank.mac));
        if child.is_some() && info.state == AgentState::Mapping && !info.flags.contested {
            self.tell_child(now, info.rank.mac);
        }
    }

    /// Leaves the parent that a passive agent waits for, and returns true, if it says that it ranks below this
    /// agent and has no map: it may itself wait for this agent, or for one that does.
    fn leave_lower_parent(&mut self, now: Instant, info: &Info) -> bool {
        let is_lower = info.rank < self.rank() && !info.version.is_some();
        if is_lower {
            self.map_again(now, Cause::MapperRestartedLower);
        }
        is_lower
    }

    /// Stops mapping and waits for the map of a higher mapper that was met.
    pub(super) fn become_passive(&mut self, now: Instant, to: &Info, way: RoundTrip) {
        self.leave_tree(now, Cause::HigherMapper { mac: to.rank.mac });
        self.follow(now, Parent::met(to.rank, way.clone(), now));
        self.event(Event::BecamePassive { to: to.rank });
        if self.is_refuted(to.version) {
            self.tell_refuted(now, to.rank.mac, way, to.version);
        }
        self.printeur = to.flags.printeur;
        self.print_at_parent_if_wanted(now, "becomes passive");
        if self.may_join(to) {
            let way = self.parent.as_ref().map(|parent| parent.way.clone()).unwrap_or_default();
            self.begin_fetch(now, to, way, None);
        }
    }

    /// Whether the map that another is configured with can be this agent's as well. So it is for one that
    /// has started again while all others stayed as they were: it need not wait for its parent in the tree
    /// to notice. A map that has come before and did not show this agent, or did not hold, does not come twice.
    fn may_join(&self, other: &Info) -> bool {
        let held = self.held.as_ref().map(|held| held.version);
        other.state == AgentState::Configured
            && other.version.is_some()
            && ![held, self.map_without_me].contains(&Some(other.version))
            && !self.is_refuted(other.version)
    }

    /// Takes this host for the parent, and waits for its map.
    pub(super) fn follow(&mut self, now: Instant, parent: Parent) {
        self.parent = Some(parent);
        self.state = AgentState::Passive;
        self.set_timer(Timer::Query, now + self.settings.query_interval);
    }

    /// Ends the sleep of an agent that hears a lower one map: that one will hear of this agent and wait for its
    /// map. Others may have heard it too and must not all map at once, so the rest of the sleep is drawn anew.
    fn wake_early(&mut self, now: Instant) {
        let Some(due) = self.timers[Timer::Map as usize] else { return };
        if let Some(earliest) = self.asleep_until.take() {
            let apart = self.settings.start_delay.mul_f64(self.rng.random_range(0.0..=0.5));
            self.set_timer(Timer::Map, due.min(now.max(earliest) + apart));
        }
    }

    /// Keeps in mind whether the parent, of whichever tree, accepts network printfs.
    pub(super) fn note_printeur(&mut self, info: &Info) {
        if self.is_parent(info.rank.mac) {
            self.printeur = info.flags.printeur;
        }
    }

    /// Has the parent, of whichever tree, print what happens here, if it accepts network printfs.
    pub(super) fn print_at_parent_if_wanted(&mut self, now: Instant, what: &str) {
        if !self.printeur {
            return;
        }
        let held = self.held.as_ref().filter(|held| held.valid);
        let in_tree = held.and_then(|held| held.routes.get(&held.parent?.mac).cloned());
        let in_waiting = || self.parent.as_ref().map(|parent| parent.way.clone());
        if let Some(way) = in_tree.or_else(in_waiting) {
            let text = format!("{}: {what}", self.settings.mac);
            self.ask(now, Asked::Courtesy, way, Reason::Printf { text }, 1);
        }
    }

    /// Asks the parent for its map version, and tells it of the invalid map once more.
    pub(super) fn query_parent(&mut self, now: Instant) {
        let Some(parent) = self.parent.as_ref().filter(|_| self.state == AgentState::Passive) else { return };
        if now.since(parent.last_heard) >= self.settings.silence_limit {
            return self.map_again(now, Cause::MapperSilent);
        }
        if now.since(parent.since) >= self.patience() {
            return self.map_again(now, Cause::NoMapCame);
        }
        // A query may take longer than the time between two: all its tries are waited for.
        if !self.requests.waits_for(Asked::ParentVersion(parent.rank.mac)) {
            self.report_to_parent(now);
        }
        self.set_timer(Timer::Query, now + self.settings.query_interval);
    }

    /// Asks the parent for its map version, and reports to it if the last map is known not to hold.
    pub(super) fn report_to_parent(&mut self, now: Instant) {
        let Some(parent) = &self.parent else { return };
        let last = self.held.as_ref().filter(|held| !held.valid && !parent.provisional);
        let refuted = last.map(|held| held.version).filter(|version| self.is_refuted(*version));
        let reason = self.refutation(refuted.unwrap_or(MapVersion::NONE));
        let way = parent.way.clone();
        let tries = if parent.provisional { self.settings.probe_tries } else { self.verify_tries() };
        self.ask(now, Asked::ParentVersion(parent.rank.mac), way, reason, tries);
    }

    /// Takes in the map version of the parent that this passive agent waits for.
    pub(super) fn hear_parent_version(&mut self, now: Instant, info: &Info) {
        let Some(parent) = self.parent.as_ref().filter(|_| self.state == AgentState::Passive) else { return };
        if parent.rank.mac != info.rank.mac || self.avoid_contested(now, info) {
            return;
        }
        let Some(parent) = self.parent.as_mut() else { return };
        parent.rank = info.rank;
        parent.hear(now);
        if self.leave_lower_parent(now, info) {
            return;
        }
        let Some(parent) = self.parent.as_ref() else { return };
        // A parent that was met in the election need not be the one that the map names, so its child waits a
        // while for that one.
        let waited = now.since(parent.since) >= self.settings.query_interval * 3;
        let told = self.held.as_ref().map_or(MapVersion::NONE, |held| held.version);
        let is_ready = waited || !parent.provisional;
        let way = parent.way.clone();
        if self.is_refuted(info.version) {
            self.tell_refuted(now, info.rank.mac, way, info.version);
        } else if info.version.is_some() && info.version != told && is_ready {
            self.begin_fetch(now, info, way, None);
        }
    }

    /// Counts a query that the parent of this passive agent has not answered. After too many of them, or past
    /// the limit on silence, the parent counts as gone.
    pub(super) fn parent_silent(&mut self, now: Instant, asked: Mac) {
        let limit = self.settings.silence_limit;
        let Some(parent) = self.parent.as_mut().filter(|_| self.state == AgentState::Passive) else { return };
        if parent.rank.mac != asked {
            return;
        }
        parent.unanswered_queries = parent.unanswered_queries.saturating_add(1);
        if !parent.provisional && parent.unanswered_queries >= UNANSWERED_QUERIES {
            self.map_again(now, Cause::ParentGone);
        } else if now.since(parent.last_heard) >= limit {
            self.map_again(now, Cause::MapperSilent);
        }
    }

    /// Handles a child's question for the map version, or its report that the map no longer holds.
    pub(super) fn hear_query(&mut self, now: Instant, info: &Info, seen: MapVersion, suspects: &[PortRef]) {
        let mac = info.rank.mac;
        let Some(held) = self.held.as_mut() else { return };
        let version = held.version;
        let (valid, xbars) = (held.valid, held.xbars);
        let suspects: Vec<_> = suspects.iter().copied().filter(|s| (s.xbar as usize) < xbars).collect();
        let Some(child) = held.child_mut(mac) else {
            return self.hear_refutation(now, info, seen, &suspects);
        };
        let was_complete = child.complete;
        let same = child.hear(info, version);
        let now_complete = child.complete;
        if seen == version {
            self.note_suspects(&suspects);
            self.refute(version);
            if valid {
                self.invalidate(now, Cause::ChangeReported { mac }, &suspects);
            }
        } else if valid && !same && info.state == AgentState::Passive {
            self.tell_child(now, mac);
        } else if now_complete != was_complete {
            self.completeness_changed(now);
        }
    }

    /// Keeps in mind where the map no longer holds.
    pub(super) fn note_suspects(&mut self, suspects: &[PortRef]) {
        const LIMIT: usize = 64;
        for suspect in suspects {
            if self.suspects.len() < LIMIT && !self.suspects.contains(suspect) {
                self.suspects.push(*suspect);
            }
        }
    }

    /// Whether this address is that of this agent's parent in the tree or in waiting.
    pub(super) fn is_parent(&self, mac: Mac) -> bool {
        let in_tree = self.held.as_ref().filter(|held| held.valid).and_then(|held| held.parent);
        in_tree.is_some_and(|parent| parent.mac == mac)
            || self.parent.as_ref().is_some_and(|parent| parent.rank.mac == mac)
    }
}
