//! Quiet while a mapper maps (`--pause`): how one asks for it, and how those that are asked keep it.
//!
//! A mapper first asks all hosts of its last map and waits for their answers; whom it meets as it maps
//! it asks then. However its mapping ends, it tells all of them that they may go on.
//!
//! What ends a pause may come by another way than what asked for it, and before it, or so late that the same mapper has asked
//! again. The numbers of both scouts tell which was sent first.
//!
//! Whoever is asked obeys, of whatever rank: but never for longer than [`LONGEST_PAUSE`], and not for
//! more than half of the time, whoever asks and however often. So a forged message delays, and no more.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::machine::Agent;
use super::requests::Asked;
use super::timers::Timer;
use crate::map::Map;
use crate::wire::{Reason, RoundTrip, Scout};
use crate::{Instant, Mac};

use super::held::short_ways;

/// Longest pause in a row, and the most that an agent saves up for. The highest mapper may be the one that a forged
/// message has asked: until it has been quiet for so long and has mapped then, others may have to go on with routes
/// of a map that no longer holds, which the fault search allows for 5 s.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(4);

/// Of how many mappers it is remembered that they said that a pause is over.
const MOST_ENDED: usize = 8;

/// What this agent, as a mapper, wants of others.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    /// Hosts still to be asked to pause.
    to_ask: VecDeque<(Mac, RoundTrip)>,
    /// Those that were asked, to be told when it is over.
    asked: BTreeMap<Mac, RoundTrip>,
    /// Ways to those still to be told that it is over.
    to_resume: VecDeque<RoundTrip>,
}

impl Quiet {
    /// Entries in its queues.
    pub(super) fn load(&self) -> usize {
        self.to_ask.len() + self.asked.len() + self.to_resume.len()
    }
}

/// Who asks for a pause or ends it, and by which scout.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asker {
    mac: Mac,
    /// Its run.
    session: u32,
    /// The number of the scout: see [`Requests::begin`](super::requests::Requests::begin).
    id: u32,
}

impl Asker {
    pub(super) const fn of(scout: &Scout) -> Self {
        Self { mac: scout.info.rank.mac, session: scout.info.session, id: scout.id }
    }

    /// Whether the same run of the same agent sent this scout before the other, or it is the same one.
    fn is_before(&self, other: &Self) -> bool {
        let later_by = other.id.wrapping_sub(self.id) & (u32::MAX >> 1);
        self.mac == other.mac && self.session == other.session && later_by < 1 << 30
    }
}

/// The pause that this agent keeps.
#[derive(Debug)]
pub(super) struct Pause {
    /// Who asked for it last; `None` while there is none.
    by: Option<Asker>,
    /// When it began, or the last one ended.
    since: Instant,
    /// For how long this agent was ready to be quiet at that moment: what it has saved up.
    saved: Duration,
    /// Who said last that it is over, the latest last. As that may come by another way, it may overtake what asked for the pause.
    ended: VecDeque<Asker>,
}

impl Pause {
    /// No pause has been asked for yet.
    pub(super) const fn none(now: Instant) -> Self {
        Self { by: None, since: now, saved: LONGEST_PAUSE, ended: VecDeque::new() }
    }

    /// Whether this agent is to be quiet.
    pub(super) const fn is_on(&self) -> bool {
        self.by.is_some()
    }

    /// Begins a pause for `by`, or prolongs one. Returns when it ends; `None` if nothing is saved up, or it is known to be over.
    fn begin(&mut self, now: Instant, by: Asker, asked_for: Duration) -> Option<Instant> {
        if self.ended.iter().any(|ended| by.is_before(ended)) {
            return None;
        }
        if self.by.is_none() {
            self.saved = (self.saved + now.since(self.since)).min(LONGEST_PAUSE);
            self.since = now;
        }
        if self.saved.is_zero() {
            return None;
        }
        self.by = Some(by);
        Some((now + asked_for).min(self.since + self.saved))
    }

    /// Takes in that the pauses that this mapper has asked for so far are over. Returns whether one of them is kept.
    fn note_end(&mut self, by: Asker) -> bool {
        // The message may be late: its mapper may have asked for another pause since, and have ended that, too.
        if !self.ended.iter().any(|ended| by.is_before(ended)) {
            self.ended.retain(|ended| ended.mac != by.mac);
            if self.ended.len() == MOST_ENDED {
                self.ended.pop_front();
            }
            self.ended.push_back(by);
        }
        self.by.is_some_and(|kept| kept.mac == by.mac && !by.is_before(&kept))
    }

    fn end(&mut self, now: Instant) {
        if self.by.take().is_some() {
            self.saved = self.saved.saturating_sub(now.since(self.since));
            self.since = now;
        }
    }
}

impl Agent {
    /// Has all hosts of the last map asked for quiet before anything is explored.
    pub(super) fn ask_all_for_quiet(&mut self, now: Instant, last: &Map) {
        self.quiet.to_ask.extend(short_ways(last, self.settings.mac));
        self.pump_quiet(now);
    }

    /// Has a host asked for quiet that was met, unless it was asked already.
    pub(super) fn ask_for_quiet(&mut self, now: Instant, mac: Mac, way: RoundTrip) {
        let quiet = &self.quiet;
        if !quiet.asked.contains_key(&mac) && quiet.to_ask.iter().all(|(other, _)| *other != mac) {
            self.quiet.to_ask.push_back((mac, way));
            self.pump_quiet(now);
        }
    }

    /// Whether a host has yet to answer that it is quiet.
    pub(super) fn waits_for_quiet(&self) -> bool {
        !self.quiet.to_ask.is_empty() || self.requests.waits_for(Asked::Pause)
    }

    /// Has all that were asked for quiet told that it is over; by the ways of the new map, if there is one.
    pub(super) fn end_quiet(&mut self, now: Instant, map: Option<&Map>) {
        self.quiet.to_ask.clear();
        if self.quiet.asked.is_empty() {
            return;
        }
        self.requests.forget(|asked| asked == Asked::Pause);
        let own = self.settings.mac;
        let mut ways: BTreeMap<_, _> = map.map(|map| short_ways(map, own)).into_iter().flatten().collect();
        let asked = std::mem::take(&mut self.quiet.asked);
        self.quiet.to_resume.extend(asked.into_iter().map(|(mac, way)| ways.remove(&mac).unwrap_or(way)));
        self.pump_quiet(now);
    }

    /// Asks as many as may be under way at once.
    pub(super) fn pump_quiet(&mut self, now: Instant) {
        if self.quiet.to_resume.is_empty() && self.quiet.to_ask.is_empty() {
            return;
        }
        let tries = self.verify_tries();
        let mut under_way = self.requests.count(|asked| matches!(asked, Asked::Pause | Asked::Resume));
        while under_way < self.settings.probe_window {
            if let Some(way) = self.quiet.to_resume.pop_front() {
                self.ask(now, Asked::Resume, way, Reason::Resume, tries);
            } else if let Some((mac, way)) = self.quiet.to_ask.pop_front() {
                self.quiet.asked.insert(mac, way.clone());
                let max_ms = LONGEST_PAUSE.as_millis() as u16;
                self.ask(now, Asked::Pause, way, Reason::Pause { max_ms }, tries);
            } else {
                return;
            }
            under_way += 1;
        }
    }

    /// Handles a mapper's request for quiet.
    pub(super) fn hear_pause(&mut self, now: Instant, by: Asker, max_ms: u16) {
        if let Some(until) = self.pause.begin(now, by, Duration::from_millis(max_ms.into())) {
            self.set_timer(Timer::PauseEnd, until);
        }
    }

    /// Ends the pause if `by` is the mapper that asked for it.
    pub(super) fn hear_resume(&mut self, now: Instant, by: Asker) {
        if self.pause.note_end(by) {
            self.end_pause(now);
        }
    }

    /// Ends the pause that this agent keeps.
    pub(super) fn end_pause(&mut self, now: Instant) {
        self.pause.end(now);
        self.stop_timer(Timer::PauseEnd);
        // Deadlines that passed meanwhile were not acted on because of the pause, and not because this agent was late.
        self.expire_probes(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Settings;
    use crate::map::Rank;
    use crate::wire::{Info, Message};

    fn agent() -> Agent {
        Agent::new(Settings::new(Mac::from_position(9)), 1, Instant::ZERO)
    }

    /// A message of a lower-ranked mapper, later than all before.
    fn hear(agent: &mut Agent, now: Instant, reason: Reason) {
        hear_from(agent, now, 2, (1 << 31) | (now.as_nanos() / 1_000_000) as u32, reason);
    }

    fn hear_from(agent: &mut Agent, now: Instant, position: u32, id: u32, reason: Reason) {
        let rank = Rank { level: 1, mac: Mac::from_position(position) };
        let info = Info { rank, host_type: 4, session: 5, ..Info::default() };
        let scout = Scout { id, info, way: RoundTrip::default(), reason };
        agent.handle_frame(now, &Message::Scout(scout).encode());
    }

    #[test]
    fn a_lower_mapper_is_obeyed_until_it_is_done() {
        let (mut agent, now) = (agent(), Instant::ZERO);
        hear(&mut agent, now, Reason::Pause { max_ms: 1000 });
        assert!(agent.pause.is_on());
        hear(&mut agent, now + Duration::from_millis(5), Reason::Resume);
        assert!(!agent.pause.is_on());
    }

    #[test]
    fn what_ends_a_pause_may_overtake_what_asks_for_it() {
        let (mut agent, now) = (agent(), Instant::ZERO);
        let pause = Reason::Pause { max_ms: 1000 };
        // After the highest number of a scout comes the lowest.
        for [before, after] in [[1, 2], [(1 << 31) - 1, 0]].map(|ids| ids.map(|id: u32| id | 1 << 31)) {
            hear_from(&mut agent, now, 3, 7 | 1 << 31, pause.clone());
            hear_from(&mut agent, now, 2, after, Reason::Resume);
            hear_from(&mut agent, now, 2, before, pause.clone());
            assert_eq!(agent.pause.by.map(|by| by.mac), Some(Mac::from_position(3)));
            hear_from(&mut agent, now, 3, 8 | 1 << 31, Reason::Resume);
            assert!(!agent.pause.is_on(), "nobody maps any more");
            agent = self::agent();
        }
        hear_from(&mut agent, now, 2, 4 | 1 << 31, Reason::Resume);
        hear_from(&mut agent, now, 2, 5 | 1 << 31, pause);
        assert!(agent.pause.is_on(), "it maps again");
    }

    #[test]
    fn what_ends_a_pause_late_ends_no_later_one() {
        let (mut agent, now) = (agent(), Instant::ZERO);
        let pause = Reason::Pause { max_ms: 1000 };
        let mut hear = |id: u32, reason: Reason| {
            hear_from(&mut agent, now, 2, id | 1 << 31, reason);
            agent.pause.is_on()
        };
        assert!(hear(5, pause.clone()));
        assert!(hear(4, Reason::Resume), "of the mapping before");
        assert!(!hear(7, Reason::Resume));
        assert!(!hear(5, Reason::Resume), "once more");
        assert!(!hear(6, pause), "that is over, which is still known");
    }

    #[test]
    fn what_a_pause_delayed_is_no_sign_of_a_busy_machine() {
        let mut agent = agent();
        let mut now = Instant::ZERO;
        // The agent maps, and its probes wait for answers.
        while agent.mapping.as_ref().is_none_or(|mapping| mapping.deadline().is_none()) {
            now = agent.poll_timeout().unwrap();
            agent.handle_timeout(now);
            while agent.poll_transmit().is_some() {}
        }
        hear(&mut agent, now, Reason::Pause { max_ms: 1000 });
        now = now + Duration::from_millis(800);
        hear(&mut agent, now, Reason::Resume);
        agent.handle_timeout(now);
        assert_eq!(agent.answer_wait(now), agent.settings.probe_timeout);
    }

    #[test]
    fn nobody_is_paused_for_ever_however_often_he_is_asked() {
        let (mut agent, step) = (agent(), Duration::from_millis(100));
        let (mut paused, mut in_a_row, mut longest, mut now) = (0, 0, 0, Instant::ZERO);
        for _ in 0..1200 {
            hear(&mut agent, now, Reason::Pause { max_ms: u16::MAX });
            in_a_row = if agent.pause.is_on() { in_a_row + 1 } else { 0 };
            paused += u32::from(agent.pause.is_on());
            longest = longest.max(in_a_row);
            now = now + step;
            agent.handle_timeout(now);
        }
        // Within two minutes that is four seconds at first, and then half of the time.
        assert!((500..=640).contains(&paused), "{paused}");
        assert!(longest <= 40, "{longest}");
    }
}
