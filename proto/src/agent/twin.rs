//! Two hosts with one address: both are named, neither is believed.
//!
//! An agent is told from all others, and from its former self, by its session.
//!
//! - One that hears its own address with another session asks back: only who answers is there, and
//!   is a twin. It then leaves the network, says so in all that it sends, and asks the twin once a
//!   second. After the limit on silence it is alone with its address, and begins anew.
//! - A mapper that finds one address at two places leaves both hosts out of the map's hosts, and
//!   keeps their ports in the map as contested: so nobody takes them for strangers, and all can say
//!   what is wrong. As long as the map is in force the global mapper asks them with each cycle of
//!   verification, and thereby tells them: a host that never maps would not find its twin.

use super::cause::Cause;
use super::event::Event;
use super::machine::Agent;
use super::requests::{Asked, Requests};
use super::status::{FrameDrop, Unreachable};
use super::timers::Timer;
use crate::Instant;
use crate::map::{AddressConflict, Place, PortRef};
use crate::wire::{AgentState, Answer, Info, Probe, Reason, Reply, RoundTrip, Route, Scout};

/// Most contested ports that the global mapper asks in one cycle of verification.
const MOST_ASKED: usize = 64;

/// Another host that has this agent's address.
#[derive(Debug)]
pub(super) struct Twin {
    /// The way there and back, if this agent has met it.
    way: Option<RoundTrip>,
    /// When it answered last, or a mapper told of it.
    last_word: Instant,
    /// Where hosts with the address are, as a mapper told.
    places: Vec<Place>,
}

impl Twin {
    /// What is wrong and what to do, in words for a person.
    fn why(&self, conflict: &AddressConflict) -> String {
        let advice = "has this address too: give one of them another address";
        match &self.way {
            Some(way) if self.places.is_empty() && way.there.is_empty() => {
                format!("the host at the other end of the cable {advice}")
            }
            Some(RoundTrip { there, .. }) if self.places.is_empty() => {
                format!("another host, {} xbars away by route {there}, {advice}", there.hops())
            }
            _ => conflict.to_string(),
        }
    }
}

impl Agent {
    /// Handles a probe with this agent's address that this agent did not send.
    pub(super) fn probe_of_own_address(&mut self, now: Instant, probe: &Probe, left: &Route) {
        let way_back: Route = left.elements().skip(1).collect();
        self.ask_back(now, RoundTrip { there: way_back.clone(), back: probe.way_there.clone() });
        self.answer(&probe.info, probe.id, way_back, Answer::Probe);
    }

    /// Handles a scout with this agent's address.
    pub(super) fn scout_of_own_address(&mut self, now: Instant, scout: Scout) {
        let answer = match scout.reason {
            // This is the agent's own scout, which somebody has thrown back.
            _ if scout.info.session == self.session => None,
            Reason::Mapping => Some(Answer::Mapping),
            Reason::Verify => Some(Answer::Verify),
            Reason::AddressConflict { .. } => Some(Answer::AddressConflict),
            Reason::QueryMapVersion { .. }
            | Reason::Tree { .. }
            | Reason::MapRequest { .. }
            | Reason::Pause { .. }
            | Reason::Resume
            | Reason::Printf { .. }
            | Reason::Alive { .. }
            | Reason::Hello
            | Reason::Service { .. } => None,
        };
        let Some(answer) = answer else {
            self.dropped.count(FrameDrop::Implausible);
            return;
        };
        let way = scout.way.reversed();
        self.ask_back(now, way.clone());
        self.answer(&scout.info, scout.id, way.there, answer);
    }

    /// Asks who sends with this agent's address, unless that is known. A former self, whose frames
    /// are still on their way, does not answer.
    fn ask_back(&mut self, now: Instant, way: RoundTrip) {
        let is_met = self.twin.as_ref().is_some_and(|twin| twin.way.is_some());
        if !is_met && !self.requests.waits_for(Asked::Twin) {
            self.ask(now, Asked::Twin, way, Reason::Verify, self.settings.probe_tries);
        }
    }

    /// Handles the answer of a host with this agent's address. If it answers what this agent asked just now, it
    /// is a twin.
    pub(super) fn reply_of_own_address(&mut self, now: Instant, reply: &Reply) {
        if reply.info.session == self.session {
            self.dropped.count(FrameDrop::Unexpected);
            return;
        }
        if self.cycle.as_ref().is_some_and(|cycle| cycle.waits_for(reply.id)) {
            let step = self.cycle.as_mut().and_then(|cycle| cycle.handle_host(reply.id));
            return self.take_step(now, step);
        }
        if self.doubt_hit_host(now, reply.id) {
            return;
        }
        let way = if reply.id & Requests::ID_BIT == 0 {
            self.mapping.as_ref().and_then(|mapping| mapping.way_of(reply.id))
        } else {
            let request = self.requests.take_answered_by_any(reply.id, &reply.answer);
            request.map(|request| request.way)
        };
        match (way, &mut self.twin) {
            (None, _) => self.dropped.count(FrameDrop::Unexpected),
            (Some(way), Some(twin)) => {
                twin.last_word = now;
                twin.way.get_or_insert(way);
            }
            (Some(way), None) => self.become_contested(now, Some(way), Vec::new()),
        }
    }

    /// Handles a mapper's word that another host has this agent's address.
    pub(super) fn hear_address_conflict(&mut self, now: Instant, info: &Info, places: Vec<Place>) {
        if info.flags.contested {
            // The mapper shares an address with another host: one that this host had before and gave back, so that it is still told here.
            self.dropped.count(FrameDrop::Implausible);
            return;
        }
        let from_higher = info.rank > self.rank();
        match &mut self.twin {
            Some(twin) => {
                if from_higher {
                    twin.last_word = now;
                }
                if twin.places != places {
                    twin.places = places;
                    self.tell_contested();
                }
            }
            // A lower mapper may not silence a higher one, which finds its twin when it maps itself.
            None if from_higher => self.become_contested(now, None, places),
            None => self.dropped.count(FrameDrop::Implausible),
        }
    }

    /// Leaves the network: as long as two hosts have one address, neither is believed.
    fn become_contested(&mut self, now: Instant, way: Option<RoundTrip>, places: Vec<Place>) {
        self.twin = Some(Box::new(Twin { way, last_word: now, places }));
        self.leave_tree(now, Cause::TwinFound);
        self.parent = None;
        self.held = None;
        self.suspects.clear();
        self.heard.clear();
        self.state = AgentState::Isolated;
        self.tell_contested();
        self.look_for_twin(now);
    }

    fn tell_contested(&mut self) {
        let why = self.twin.as_ref().map(|twin| twin.why(&self.own_conflict(&twin.places)));
        if let Some(why) = why {
            self.event(Event::AddressContested { why });
        }
    }

    /// Begins anew if no other host has this agent's address any more, else asks it again.
    pub(super) fn look_for_twin(&mut self, now: Instant) {
        let Some(twin) = &self.twin else { return };
        if now.since(twin.last_word) >= self.settings.silence_limit {
            self.twin = None;
            return self.map_again(now, Cause::TwinGone);
        }
        if let Some(way) = twin.way.clone() {
            let reason = Reason::AddressConflict { places: twin.places.clone() };
            self.requests.forget(|asked| asked == Asked::Twin);
            self.ask(now, Asked::Twin, way, reason, self.settings.probe_tries);
        }
        self.set_timer(Timer::Twin, now + self.settings.query_interval);
    }

    /// Keeps away from a host that says that another has its address. Returns whether it says so.
    pub(super) fn avoid_contested(&mut self, now: Instant, info: &Info) -> bool {
        let waits_for_it = self.state == AgentState::Passive
            && self.parent.as_ref().is_some_and(|parent| parent.rank.mac == info.rank.mac);
        if info.flags.contested && waits_for_it {
            self.map_again(now, Cause::MapperContested);
        }
        // A host that the maker of this map did not believe is neither followed nor taken for a stranger.
        let held = self.held.as_ref().filter(|held| held.valid);
        let not_believed = held.is_some_and(|held| held.conflicts.iter().any(|c| c.mac == info.rank.mac));
        info.flags.contested || not_believed
    }

    /// Declares the map invalid, and returns true, if a host of the map says that another has its address.
    pub(super) fn heard_contested(&mut self, now: Instant, info: &Info, suspect: Option<PortRef>) -> bool {
        let contested = info.flags.contested;
        if contested && self.backoff.counts(now, info.rank.mac) {
            let cause = Cause::AddressShared { mac: info.rank.mac };
            self.invalidate(now, cause, suspect.as_slice());
        }
        contested
    }

    /// The global mapper asks the hosts at contested ports whether they are still there, and tells
    /// them of each other.
    pub(super) fn watch_contested(&mut self, now: Instant) {
        let Some(held) = self.held.as_ref().filter(|held| held.valid) else { return };
        let mut questions = Vec::new();
        for (index, (contested, way)) in held.contested.iter().enumerate().take(MOST_ASKED) {
            let places = held.places_of(contested.mac);
            // Where only one place is known, the host there has told this agent of its twin, and need not be
            // told.
            let reason = match places.len() {
                0 | 1 => Reason::Verify,
                _ => Reason::AddressConflict { places: places.to_vec() },
            };
            questions.push((Asked::Contested(index), way.clone(), reason));
        }
        self.requests.forget(|asked| matches!(asked, Asked::Contested(_)));
        for (asked, way, reason) in questions {
            self.ask(now, asked, way, reason, self.verify_tries());
        }
    }

    /// Handles the answer of the host at a contested port.
    pub(super) fn hear_contested(&mut self, now: Instant, index: usize, info: &Info) {
        let Some(held) = self.held.as_ref().filter(|held| held.valid) else { return };
        let Some(&(contested, _)) = held.contested.get(index) else { return };
        let mac = contested.mac;
        let cause = if info.rank.mac != mac {
            Cause::ContestedReplaced { found: info.rank.mac, mac }
        } else if held.places_of(mac).len() < 2 && !info.flags.contested {
            Cause::ContestedAlone { mac }
        } else {
            return;
        };
        self.refute_contested(now, index, cause);
    }

    /// Declares the map invalid, as the host at a contested port does not answer.
    pub(super) fn contested_silent(&mut self, now: Instant, index: usize) {
        self.refute_contested(now, index, Cause::ContestedSilent);
    }

    fn refute_contested(&mut self, now: Instant, index: usize, cause: Cause) {
        let contested = self.held.as_ref().and_then(|held| held.contested.get(index)).map(|&(c, _)| c);
        if let Some(contested) = contested.filter(|contested| self.backoff.counts(now, contested.mac)) {
            self.invalidate(now, cause, &[contested.at]);
        }
    }

    fn own_conflict(&self, places: &[Place]) -> AddressConflict {
        AddressConflict { mac: self.settings.mac, places: places.to_vec() }
    }

    /// The addresses that several hosts have, as far as this agent knows.
    pub(super) fn address_conflicts(&self) -> Vec<AddressConflict> {
        let own = self.twin.as_ref().map(|twin| self.own_conflict(&twin.places));
        let of_map = self.held.iter().flat_map(|held| &held.conflicts).cloned();
        own.into_iter().chain(of_map).collect()
    }

    /// Why the hosts whose addresses others have, too, are out of reach, in words for a person.
    pub(super) fn contested_unreachable(&self) -> Vec<Unreachable> {
        let why = |conflict: &AddressConflict| match &self.twin {
            Some(twin) => twin.why(conflict),
            None => conflict.to_string(),
        };
        let conflicts = self.address_conflicts();
        conflicts.iter().map(|conflict| Unreachable { mac: conflict.mac, why: why(conflict) }).collect()
    }
}
