//! This agent as a mapper: it drives an [`Explorer`] and turns its requests into frames.

use super::cause::Cause;
use super::status::Purpose;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use rand::Rng;

use super::event::Event;
use super::held::Held;
use super::machine::Agent;
use super::status::MappingCost;
use super::timers::Timer;
use crate::answer_wait::AnswerWait;
use crate::explore::{
    ExploreError, ExploreOutcome, ExploreRequest, ExploreSettings, Explorer, Met, RequestKind,
};
use crate::map::{
    FrameSizes, Host, LinkMtu, Map, MapVersion, Rank, Rules, decode_pieces, encode_pieces, host_type,
    is_isomorphic,
};
use crate::wire::{AgentState, Message, Probe, ProbeKind, Reason, Reply, RoundTrip, Scout, Stamp};
use crate::{Instant, Mac, Tally};

/// Longest wait before a failed exploration is begun anew.
const LONGEST_RETRY: Duration = Duration::from_secs(1);

/// How many mappings in a row may make the same map before the mapper slows down.
const FUTILE_MAPPINGS_ALLOWED: u32 = 3;
/// The wait before the mappings after those, doubled with each of them; shorter than the others' patience
/// with a mapper.
const FIRST_FUTILE_WAIT: Duration = Duration::from_millis(500);
const LONGEST_FUTILE_WAIT: Duration = Duration::from_secs(8);
/// After how long without such a mapping the count begins anew.
const FUTILE_MEMORY: Duration = Duration::from_secs(300);

/// An exploration under way.
#[derive(Debug)]
pub(super) struct Mapping {
    explorer: Explorer,
    /// The map that an incremental exploration began from.
    previous: Option<Map>,
    began: Instant,
    sent_before: Tally<Purpose>,
    /// Ways of the latest requests, so that a host that answers can be reached again.
    ways: VecDeque<(u32, RoundTrip)>,
    /// Whether it waits for those that were asked for quiet before it began.
    waits_for_quiet: bool,
    /// Hosts that are set to `non-clos`.
    non_clos: BTreeSet<Mac>,
    /// How long frames may be at the other hosts, as each said.
    mtus: BTreeMap<Mac, LinkMtu>,
    /// Until when nothing is sent, as a higher mapper seems to be there. That happens at most once in a mapping.
    hushed_until: Option<Instant>,
    /// Whether `hushed_until` is still to come, so that nothing is sent.
    is_hushed: bool,
}

impl Mapping {
    /// The way there and back that a request took, if it is one of the latest.
    pub(super) fn way_of(&self, request: u32) -> Option<RoundTrip> {
        let (_, way) = self.ways.iter().find(|(id, _)| *id == request)?;
        Some(way.clone())
    }

    /// When the next time-out falls due, or the hush is over.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let hush = self.hushed_until.filter(|_| self.is_hushed);
        self.explorer.poll_timeout().into_iter().chain(hush).min()
    }

    /// Takes in how late things have been lately.
    pub(super) fn learn_lateness(&mut self, now: Instant, answers: &AnswerWait) {
        self.explorer.learn_lateness(now, answers);
    }
}

impl Agent {
    /// Gives up what there is and maps; an agent of level 0 waits to be found instead.
    pub(super) fn map_again(&mut self, now: Instant, cause: Cause) {
        self.leave_tree(now, cause.clone());
        self.parent = None;
        if self.settings.level == 0 {
            self.state = AgentState::Starting;
            return;
        }
        self.state = AgentState::Mapping;
        self.mapping_cause = cause;
        let wait = self.mapping_delay(now);
        if wait.is_zero() {
            self.begin_mapping(now);
        } else {
            self.set_timer(Timer::Map, now + wait);
        }
    }

    /// A mapper that fails again and again slows down; an incremental one waits for all suspects.
    fn mapping_delay(&self, now: Instant) -> Duration {
        let step = self.settings.probe_timeout;
        if self.failed_mappings > 0 {
            return (step * (1 << self.failed_mappings.min(10))).min(LONGEST_RETRY);
        }
        if self.settings.map_incrementally && self.last_mapping.is_some() {
            return step * 2;
        }
        // Whatever calls for a new map again and again, and is not in the map, must not keep the
        // fabric busy.
        if self.futile_mappings > FUTILE_MAPPINGS_ALLOWED {
            let doublings = (self.futile_mappings - FUTILE_MAPPINGS_ALLOWED).min(10);
            return (FIRST_FUTILE_WAIT * (1 << doublings)).min(LONGEST_FUTILE_WAIT);
        }
        // Never two mappings back to back: a flapping cable must not keep the fabric busy.
        let rested = self.last_mapping.map_or(Duration::MAX, |last| now.since(last.ended));
        if rested < step { step } else { Duration::ZERO }
    }

    /// Begins to explore.
    pub(super) fn begin_mapping(&mut self, now: Instant) {
        if self.state != AgentState::Mapping {
            return;
        }
        let previous = self.previous_map();
        if let Some(map) = previous.as_ref().filter(|_| self.settings.pause) {
            self.ask_all_for_quiet(now, map);
        }
        // Whoever has keys has reason not to believe what is not signed.
        let prove_tags = self.guard.is_some() || self.failed_mappings > 0;
        // If mapping keeps failing, or each map is found wrong, that may be somebody's doing.
        let greet_hosts = self.guard.is_some() && (self.failed_mappings > 0 || self.futile_mappings > 0);
        // A part that falls silent while mapped and answers whenever the map is verified must not have all hosts map for ever.
        let tell_silent_parts = self.futile_mappings > 0;
        let settings = ExploreSettings {
            prove_tags,
            greet_hosts,
            tell_silent_parts,
            ..ExploreSettings::from(&self.settings)
        };
        let own = Host {
            mac: self.settings.mac,
            level: self.settings.level,
            host_type: self.settings.host_type,
            at: None,
        };
        let seed = self.rng.next_u64();
        let incremental = self.settings.map_incrementally && self.may_trust_last_map(now);
        // A map with contested ports is not built upon, as nothing at those ports was believed.
        let previous = previous.filter(|map| incremental && map.contested.is_empty());
        let mut explorer = match &previous {
            Some(map) => Explorer::incremental(&settings, own, seed, map, &self.sessions, &self.suspects),
            None => Explorer::new(&settings, own, seed),
        };
        explorer.learn_lateness(now, &self.answers);
        // Hosts that are not asked again are taken to be set as the last map says.
        let set_otherwise = |map: &Map| {
            let set = map.hosts.iter().map(|host| host.mac).filter(|mac| map.rules.own_setting(*mac));
            set.collect()
        };
        let non_clos = previous.as_ref().map(set_otherwise).unwrap_or_default();
        let mtus = previous.as_ref().map(|_| self.mtus.clone()).unwrap_or_default();
        self.suspects.clear();
        self.heard.clear();
        self.mapping = Some(Box::new(Mapping {
            explorer,
            previous,
            began: now,
            sent_before: self.sent,
            ways: VecDeque::new(),
            waits_for_quiet: self.settings.pause,
            non_clos,
            mtus,
            hushed_until: None,
            is_hushed: false,
        }));
        self.event(Event::MappingStarted { cause: self.mapping_cause.clone() });
    }

    /// Whether all but the suspect ports of the last map may be trusted. If it failed at once, the
    /// suspects did not tell the whole story.
    fn may_trust_last_map(&self, now: Instant) -> bool {
        let held_long = |last: MappingCost| now.since(last.ended) > self.settings.verify_pause * 2;
        !self.suspects.is_empty() && self.last_mapping.is_some_and(held_long)
    }

    /// The map that this agent made last, if it is its own; phantoms left out.
    fn previous_map(&self) -> Option<Map> {
        if !self.settings.pause && !self.settings.map_incrementally {
            return None;
        }
        let held = self.held.as_ref().filter(|held| held.version.mac == self.settings.mac)?;
        let mut map = decode_pieces(held.version, &held.pieces).ok()?;
        map.hosts.retain(|host| host.host_type != host_type::PHANTOM);
        Some(map)
    }

    /// Sends what the explorer wants to know, and ends the mapping when it knows all.
    pub(super) fn pump_mapping(&mut self, now: Instant) {
        let Some(mut mapping) = self.mapping.take() else { return };
        mapping.waits_for_quiet &= self.waits_for_quiet();
        if mapping.waits_for_quiet {
            self.mapping = Some(mapping);
            return;
        }
        mapping.is_hushed = mapping.hushed_until.is_some_and(|until| until > now);
        if mapping.is_hushed {
            self.mapping = Some(mapping);
            return;
        }
        while let Some(request) = mapping.explorer.poll_probe(now) {
            self.send_probe(&mut mapping, request);
        }
        let Some(result) = mapping.explorer.result() else {
            self.mapping = Some(mapping);
            return;
        };
        self.answers.merge(now, &mapping.explorer.answers());
        match result {
            Ok(map) => self.finish_mapping(now, &mapping, map),
            Err(error) => self.mapping_failed(now, error),
        }
    }

    fn send_probe(&mut self, mapping: &mut Mapping, request: ExploreRequest) {
        let id = request.id;
        let info = self.info();
        let way = way_of(&request);
        let (purpose, message) = match request.kind {
            RequestKind::Probe { kind, left } => {
                let purpose = match kind {
                    ProbeKind::Compare => Purpose::Compare,
                    ProbeKind::Loopback | ProbeKind::Identify => Purpose::SwitchProbe,
                };
                (purpose, Message::Probe(Probe { id, kind, left, info, way_there: way.there.clone() }))
            }
            RequestKind::Scout { .. } => {
                let scout = Scout { id, info, way: way.clone(), reason: Reason::Mapping };
                (Purpose::Scout, Message::Scout(scout))
            }
        };
        self.sent.count(purpose);
        if mapping.ways.len() >= 4 * self.settings.probe_window {
            mapping.ways.pop_front();
        }
        mapping.ways.push_back((id, way));
        self.transmit(request.route, &message);
    }

    /// Hands a probe that came home to exploration. Returns whether that waited for it.
    pub(super) fn mapping_returned(&mut self, now: Instant, id: u32, stamp: Option<&Stamp>) -> bool {
        self.mapping_outcome(now, id, ExploreOutcome::Returned { stamp: stamp.copied() })
    }

    /// Tells exploration that a probe ran into this very host. Returns whether it waited for that probe.
    pub(super) fn mapping_hit_self(&mut self, now: Instant, id: u32) -> bool {
        self.mapping_outcome(now, id, ExploreOutcome::OwnHost)
    }

    fn mapping_outcome(&mut self, now: Instant, id: u32, outcome: ExploreOutcome) -> bool {
        self.mapping.as_mut().is_some_and(|mapping| mapping.explorer.handle_outcome(now, id, outcome))
    }

    /// Hands an agent's answer to a probe or scout to exploration. Returns whether that waited for it.
    pub(super) fn mapping_found_host(&mut self, now: Instant, reply: &Reply) -> bool {
        let info = &reply.info;
        let host = Host { mac: info.rank.mac, level: info.rank.level, host_type: info.host_type, at: None };
        let met = Met { host, session: info.session, contested: info.flags.contested };
        if host.host_type == host_type::PHANTOM
            || !self.mapping_outcome(now, reply.id, ExploreOutcome::Host(met))
        {
            return false;
        }
        let Some(mapping) = self.mapping.as_mut() else { return true };
        if info.flags.non_clos {
            mapping.non_clos.insert(info.rank.mac);
        } else {
            mapping.non_clos.remove(&info.rank.mac);
        }
        mapping.mtus.insert(info.rank.mac, info.mtu);
        let Some(way) = mapping.way_of(reply.id) else { return true };
        if info.rank > self.settings.rank() && !info.flags.contested {
            self.become_passive(now, info, way);
        } else if self.settings.pause {
            self.ask_for_quiet(now, info.rank.mac, way);
        }
        true
    }

    /// Sends no probes for a while, as somebody who has a key, but is not believed yet, says that it ranks
    /// higher and maps: if its answer proves that, the probes would be for nothing. This is done once in a
    /// mapping only, as the message may be a recording.
    pub(super) fn hush(&mut self, now: Instant, rank: Rank) {
        let wait = self.settings.probe_timeout / 2;
        let own = self.settings.rank();
        if let Some(mapping) = self.mapping.as_mut().filter(|_| rank > own) {
            mapping.hushed_until.get_or_insert(now + wait);
        }
    }

    /// Deals with probes of exploration whose time has run out.
    pub(super) fn expire_probes(&mut self, now: Instant) {
        if let Some(mapping) = self.mapping.as_mut() {
            mapping.explorer.handle_timeout(now);
        }
    }

    fn mapping_failed(&mut self, now: Instant, error: ExploreError) {
        self.failed_mappings += 1;
        self.map_again(now, Cause::ExplorationFailed(error));
    }

    fn finish_mapping(&mut self, now: Instant, mapping: &Mapping, mut map: Map) {
        if mapping.previous.as_ref().is_some_and(|previous| is_isomorphic(previous, &map).is_ok()) {
            // Something has changed, but not at the suspect ports, where it was looked for.
            return self.map_again(now, Cause::SuspectsUnchanged);
        }
        map.version = self.next_version();
        map.rules = self.rules(&map, &mapping.non_clos);
        map.frame_sizes = self.frame_sizes(&map, &mapping.mtus);
        let phantoms = (0..u64::from(self.settings.extra_hosts)).map(|i| Host {
            mac: Mac::from_u64(i + 1),
            level: 0,
            host_type: host_type::PHANTOM,
            at: None,
        });
        map.hosts.extend(phantoms);
        map.sort_canonical();
        map.lossy = map.cables_in(&self.lossy);
        // Others would refuse such a map, and follow this mapper all the same.
        if let Err(defect) = map.check() {
            return self.mapping_failed(now, ExploreError::NoMap(defect));
        }
        self.failed_mappings = 0;
        if self.settings.map_incrementally {
            self.sessions = mapping.explorer.sessions();
            self.mtus.clone_from(&mapping.mtus);
        }
        let spent = |purpose| self.sent[purpose] - mapping.sent_before[purpose];
        self.last_mapping = Some(MappingCost {
            switch_probes: spent(Purpose::SwitchProbe),
            scouts: spent(Purpose::Scout),
            compares: spent(Purpose::Compare),
            began: mapping.began,
            ended: now,
        });
        for conflict in mapping.explorer.tag_conflicts() {
            self.event(Event::TagContested { conflict });
        }
        for part in mapping.explorer.parts_left_out() {
            self.event(Event::PartLeftOut { part });
        }
        self.event(Event::Mapped { version: map.version });
        self.end_quiet(now, Some(&map));
        let pieces = encode_pieces(&map, self.settings.piece_bytes);
        match Held::new(&map, pieces, self.settings.mac, self.settings.xbar_check) {
            Some(held) => {
                self.count_futile(now, &held);
                self.install(now, held, map);
            }
            None => {
                self.failed_mappings += 1;
                self.map_again(now, Cause::SelfNotFound);
            }
        }
    }

    /// Counts mappings in a row, shortly after each other, that made the same map.
    fn count_futile(&mut self, now: Instant, held: &Held) {
        let same = self
            .held
            .as_ref()
            .is_some_and(|before| before.version.mac == self.settings.mac && before.digest == held.digest);
        let recent = now.since(self.last_change) < FUTILE_MEMORY;
        if same && recent && !self.settings.thrash {
            self.futile_mappings += 1;
        } else {
            self.futile_mappings = 0;
            self.last_change = now;
        }
    }

    /// The version that follows the last one. Its counter is never 0, which stands for no map.
    pub(super) fn next_version(&mut self) -> MapVersion {
        self.counter = self.counter.checked_add(1).unwrap_or(1);
        MapVersion { mac: self.settings.mac, counter: self.counter }
    }

    /// What all hosts of this map are to obey: this agent's own setting, whatever others are set to.
    fn rules(&self, map: &Map, with_non_clos: &BTreeSet<Mac>) -> Rules {
        let (own, non_clos) = (self.settings.mac, self.settings.non_clos);
        let others = map.hosts.iter().map(|host| host.mac).filter(|mac| *mac != own);
        let mut differ: Vec<_> = others.filter(|mac| with_non_clos.contains(mac) != non_clos).collect();
        differ.sort_unstable();
        Rules { non_clos, differ }
    }

    /// How long frames may be at the hosts of this map, as each said when it was asked.
    fn frame_sizes(&self, map: &Map, mtus: &BTreeMap<Mac, LinkMtu>) -> FrameSizes {
        let said = |mac: Mac| match mac == self.settings.mac {
            true => Some(self.settings.mtu),
            false => mtus.get(&mac).copied(),
        };
        FrameSizes::of(map.hosts.iter().filter_map(|host| Some((host.mac, said(host.mac)?))))
    }
}

/// The ways to and from what a request looks for, its turn left out.
fn way_of(request: &ExploreRequest) -> RoundTrip {
    match &request.kind {
        RequestKind::Probe { left, .. } => {
            let turn = request.route.hops().saturating_sub(usize::from(*left));
            let there = request.route.elements().take(turn).collect();
            let back = request.route.elements().skip(turn + 1).collect();
            RoundTrip { there, back }
        }
        RequestKind::Scout { way_back } => RoundTrip { there: request.route.clone(), back: way_back.clone() },
    }
}
