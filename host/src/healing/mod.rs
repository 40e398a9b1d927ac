//! What this host knows of dead cables until there is a new map.
//!
//! [`Healing`] is told what was seen, and says what to do: route around the cables that are dead now
//! (`Action::Repair`), and tell the agent of a cable, so that there will be a new map
//! (`Action::TellAgent`). It waits for nothing and sends nothing; time is passed in.
//!
//! | source | certain | until |
//! |---|---|---|
//! | the own crossbar: no carrier | yes | the carrier is back |
//! | a notice: a crossbar's port has no carrier | yes | tests are answered, or the own crossbar sees carrier |
//! | a path in use is silent | no | tests are answered, or the path answers again |
//! | two other cables of one of its xbars are silent | no | tests are answered |
//! | it loses many frames and carries the others | no | many tests in a row are answered |
//!
//! A cable that is held for dead counts as dead until something proves that it lives, even if no new map
//! comes for a long time. It is tested by frames of the agent's own (`Action::Test`), which are as long as
//! the users' frames that were lost; users' frames themselves never try it. A cable that is back in use after
//! its tests and falls silent again has to answer twice as many tests in a row. The number is doubled at most
//! `MOST_DOUBLINGS` times.
//!
//! A repair may use turns that are safe only while certain cables are dead (see [`mapper_routing::repair`]).
//! So only cables that are *proved* dead open such turns: cables without carrier, and cables that gave no
//! answer to their last test. With the first answer a cable is no longer proved dead, and the turns are
//! closed at once.
//!
//! A cable that loses frames is not dead: no turn opens for it, and the agent is not told. Routes go around it where others lead there,
//! and the global mapper is told (`crate::loss_reports`), whose next map leaves it out of all routes. Where many cables lose frames it is
//! likelier that there is too much traffic, and moving that to the cables that are left would make it worse: so routes go around one
//! of eight cables at most, and one at least.
//!
//! A new map ends all that is known of dead cables, with four exceptions. Lost carrier at the own crossbar
//! counts as long as the cable is in the map. So does a cable that passes the mapper's frames but not users'
//! frames, as every new map lists it. One that loses many is remembered for a minute even if a map lacks it, as exploring may miss it.
//! And a map that only shows other cables as lossy was made without exploring, so all that is known holds on.
//!
//! The cable of a silent host is not routed around, as there is no way around it. The agent is told of it,
//! and it is shown and tested.

mod cables;
mod known;
mod lossy;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use enum_map::Enum;
use mapper_proto::agent::{CableCause, CableTest, PathId};
use mapper_proto::map::{MapVersion, PortRef, TaggedPort};
use mapper_proto::{Instant, Mac, Tally};
use mapper_routing::DeadCables;
use strum::IntoStaticStr;

use crate::routes::Basis;
use cables::{CableEnd, Cables, TestLike};
use known::Known;
pub use lossy::LossyCable;

/// How often the agent is told which cables to test: well before it forgets them.
const TEST_REPEAT: Duration = Duration::from_millis(400);
/// How many answers in a row show that a cable lives that has failed for the first time.
const ANSWERS: u32 = 3;
/// How many answers in a row show that a cable loses no frames any more, or hardly any: of a cable that loses a tenth so many
/// come once in a thousand times.
const ANSWERS_OF_LOSSY: u32 = 64;
/// How long it is known of a cable that it lost frames after a map that lacks it.
const ABSENT_FOR: Duration = Duration::from_secs(60);
/// How many dead cables are kept at once. More are left to the next map.
const LIMIT: usize = 256;
/// How often the number of answers that show that a cable lives is doubled at most.
const MOST_DOUBLINGS: u32 = 4;

/// What the host is to do about dead cables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Route around [`Healing::dead`], which has changed.
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
        /// How the cable was found dead.
        cause: CableCause,
    },
    /// Have the agent test a cable that is held for dead.
    Test {
        /// The map that the port is of.
        version: MapVersion,
        /// A port that holds the cable.
        at: PortRef,
        /// The route of the test, and how many answers it takes.
        test: CableTest,
    },
}

/// A cable that is held for dead now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadCable {
    /// The port that holds it at the xbar that the map lists first.
    pub at: PortRef,
    /// When it was found dead.
    pub since: Instant,
    /// How it was found dead, by the surest source.
    pub cause: CableCause,
}

/// What is counted of dead cables since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum HealingCount {
    /// Times that routes had to be computed around other dead cables than before.
    Repairs,
    /// Cables found dead by lost carrier at the own crossbar.
    CarrierLosses,
    /// Cables found dead by a notice.
    Notices,
    /// Cables found dead by a silent path.
    SilentPaths,
    /// Cables found to lose many frames.
    LossyCables,
    /// Cables in use again as their carrier is back, a path answers again, or tests are answered.
    CameBack,
    /// Reports of dead cables that named no cable of the map.
    Ignored,
    /// Dead cables that were too many to keep.
    Overload,
}

/// A cable that lost frames and is in no map now.
#[derive(Debug)]
struct Absent {
    known: Known,
    /// Its ends that were at tagged xbars, each as tag and port, the lower one first.
    ends: Vec<(u64, u8)>,
    /// How often it had lost frames and then answered its tests.
    relapses: u32,
    /// When it is forgotten.
    until: Instant,
}

/// What this host knows of dead cables of the map whose routes are in use. See the
/// [module](self).
#[derive(Debug, Default)]
pub struct Healing {
    /// The cables of that map, if there is one.
    cables: Option<Cables>,
    /// The cables that are held for dead, by the lower of their ports in the map.
    known: BTreeMap<PortRef, Known>,
    /// How often each cable failed silently and then answered its tests.
    relapses: BTreeMap<PortRef, u32>,
    /// How often each cable lost frames and then answered its tests. That is kept from map to map, as there is a new one each time.
    lossy_relapses: BTreeMap<PortRef, u32>,
    /// The cables that lost frames, by a port, and that the map in force lacks: exploring misses what loses frames.
    absent: BTreeMap<TaggedPort, Absent>,
    /// The ports of the own crossbar without carrier, each with that crossbar's tag.
    no_carrier: BTreeSet<(u64, u8)>,
    /// The dead cables that routes were last computed around.
    repaired: DeadCables,
    to_tell: VecDeque<(PortRef, CableCause)>,
    /// The cables whose tests the agent is to be told of now.
    to_test: VecDeque<PortRef>,
    /// When the agent is told of the tests of all cables again.
    test_at: Instant,
    counts: Tally<HealingCount>,
}

impl Healing {
    /// Begins without a map and without any dead cable.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Takes in that the host with the address `own` has put the routes of a whole map to use. Of the map
    /// before, only cables that pass the mapper's frames but not users' frames, or lose many, are kept.
    pub(crate) fn map_installed(&mut self, now: Instant, basis: Arc<Basis>, own: Mac) {
        let before = self.cables.replace(Cables::new(basis, own));
        if before.iter().zip(&self.cables).any(|(before, now)| before.differs_in_losses_alone(now)) {
            return self.routes_changed(now);
        }
        let known = std::mem::take(&mut self.known);
        self.relapses.clear();
        self.repaired = DeadCables::default();
        self.to_tell.clear();
        self.to_test.clear();
        for (tag, port) in self.no_carrier.clone() {
            self.lose_carrier(now, tag, port);
        }
        let is_users_only = |known: &Known| known.cause() == Some(CableCause::UsersOnly);
        let kept = known.into_iter().filter(|(_, known)| is_users_only(known) || known.lossy.is_some());
        let here = |at| {
            let (before, now) = (before.as_ref()?, self.cables.as_ref()?);
            before.tags_of(at).filter_map(|(tag, port)| now.at_tag(tag, port)).next()
        };
        let before_this = std::mem::take(&mut self.lossy_relapses);
        self.lossy_relapses =
            before_this.iter().filter_map(|(&at, &count)| Some((here(at)?.at, count))).collect();
        let mut lost_sight = Vec::new();
        for (at, known) in kept {
            if let Some(cable) = here(at) {
                let silence = is_users_only(&known);
                let Known { since, lossy, frame_bytes, .. } = known;
                let kept = Known {
                    silence,
                    cleared: silence,
                    lossy,
                    frame_bytes,
                    unanswered: known.unanswered,
                    ..Known::new(since, cable.is_host)
                };
                self.known.entry(cable.at).or_insert(kept);
            } else if known.lossy.is_some() && !known.is_host {
                let ends: Vec<_> = before.iter().flat_map(|before| before.tags_of(at)).collect();
                let Some(&(tag, port)) = ends.first() else { continue };
                let relapses = before_this.get(&at).copied().unwrap_or_default();
                let absent = Absent { known, ends, relapses, until: now + ABSENT_FOR };
                lost_sight.push((TaggedPort { tag, port }, absent));
            }
        }
        lost_sight.truncate(LIMIT.saturating_sub(self.absent.len()));
        self.absent.extend(lost_sight);
        self.find_absent();
        self.test_now(now);
    }

    /// Takes in that there are routes of another map, which shows the same fabric, and other cables that lose frames. It was made without
    /// exploring, so it shows cables that are dead, too: these are known further on, and the agent is told of them again.
    fn routes_changed(&mut self, now: Instant) {
        self.repaired = DeadCables::default();
        let found = self.known.iter().filter_map(|(&at, known)| Some((at, known.found()?)));
        self.to_tell = found.filter(|&(_, cause)| cause != CableCause::UsersOnly).collect();
        self.to_test.clear();
        self.test_now(now);
    }

    /// Takes up what is known of cables that are back in the map, at both of their ends.
    fn find_absent(&mut self) {
        let cables = self.cables.as_ref();
        let here = |(port, absent): (&TaggedPort, &Absent)| {
            let found = cables?.at_tag(port.tag, port.port)?;
            let is_same = cables?.tags_of(found.at).eq(absent.ends.iter().copied());
            (is_same && !found.is_host).then_some((*port, found))
        };
        let back: Vec<_> = self.absent.iter().filter_map(here).collect();
        for (port, CableEnd { at, is_host }) in back {
            let Some(Absent { known, relapses, .. }) = self.absent.remove(&port) else { continue };
            let Known { since, lossy, frame_bytes, .. } = known;
            self.known.entry(at).or_insert(Known { lossy, frame_bytes, ..Known::new(since, is_host) });
            self.lossy_relapses.entry(at).or_insert(relapses);
        }
    }

    /// Takes in that the own crossbar, which has this tag, lost or regained carrier at a port.
    pub(crate) fn carrier(&mut self, now: Instant, tag: u64, port: u8, up: bool) {
        if up {
            self.no_carrier.remove(&(tag, port));
            self.regain_carrier(tag, port);
        } else if self.no_carrier.len() < LIMIT && self.no_carrier.insert((tag, port)) {
            self.lose_carrier(now, tag, port);
        }
    }

    /// Takes in a notice of the crossbar with this tag that its port has no carrier. The notice's token must
    /// have been checked.
    pub(crate) fn notice(&mut self, now: Instant, tag: u64, port: u8) {
        let cable = self.cables.as_ref().and_then(|cables| cables.at_tag(tag, port));
        self.learn(now, cable, CableCause::Notice, |known| (known.notice, known.unanswered) = (true, true));
    }

    /// Takes in that a path in use is silent. `hops` are the ports by which it leaves its xbars, on the map
    /// whose routes are in use. The first `reached` of these xbars still answer, and checks of `frame_bytes`
    /// bytes did not pass.
    pub(crate) fn path_down(
        &mut self,
        now: Instant,
        path: PathId,
        hops: &[PortRef],
        (reached, frame_bytes): (usize, usize),
    ) {
        // If no xbar answers, the dead cable is this host's own, which the agent watches itself.
        let Some(&at) = reached.checked_sub(1).and_then(|last| hops.get(last)) else {
            self.counts.count(HealingCount::Ignored);
            return;
        };
        let cable = self.cables.as_ref().and_then(|cables| cables.at(at));
        let is_silent = |known: &Known| known.silence;
        let was_silent = cable.and_then(|cable| self.known.get(&cable.at)).is_some_and(is_silent);
        self.learn(now, cable, CableCause::Silence, |known| {
            if known.silent.len() < LIMIT {
                known.silent.insert(path);
            }
            known.silence = true;
            known.frame_bytes = known.frame_bytes.max(frame_bytes);
        });
        if !was_silent {
            self.suspect_beyond(now, at, frame_bytes);
        }
    }

    /// Suspects all cables of the xbar that the cable in this port leads to, if two of them are silent: it may be the xbar
    /// that is dead, and silence tells of one cable a path, so paths through it would be taken and left one after the other.
    /// Whatever of these cables lives is in use again when it has answered its tests. The agent is told of none of them.
    fn suspect_beyond(&mut self, now: Instant, at: PortRef, frame_bytes: usize) {
        let beside: Vec<PortRef> = self.cables.iter().flat_map(|cables| cables.beside(at)).collect();
        let is_silent = |at: &&PortRef| self.known.get(at).is_some_and(|known| known.silence);
        if beside.iter().filter(is_silent).count() < 2 {
            return;
        }
        for at in beside {
            if !self.known.contains_key(&at) && self.known.len() < LIMIT {
                let known = Known { suspected: true, frame_bytes, ..Known::new(now, false) };
                self.known.insert(at, known);
                self.test_now(now);
            }
        }
    }

    /// Takes in that a cable of this map has answered all its tests.
    pub(crate) fn cable_up(&mut self, version: MapVersion, at: PortRef) {
        let Some(known) = self.known_of(version, at).filter(|known| !known.no_carrier) else { return };
        // A cable that was held for dead has shown that it lives, but not yet that it loses no frames.
        let was_lossy = known.cause().is_none() && known.lossy.take().is_some();
        let failed_silently = std::mem::take(&mut known.silence) | was_lossy;
        known.suspected = false;
        known.notice = false;
        let relapses = if was_lossy { &mut self.lossy_relapses } else { &mut self.relapses };
        if failed_silently && (relapses.len() < LIMIT || relapses.contains_key(&at)) {
            *relapses.entry(at).or_default() += 1;
        }
        self.drop_live();
    }

    /// Takes in that the mapper's frames pass a cable of this map that was said to be silent.
    pub(crate) fn cable_cleared(&mut self, version: MapVersion, at: PortRef) {
        if let Some(known) = self.known_of(version, at) {
            known.cleared = true;
        }
    }

    /// Takes in that a cable of this map that is held for dead was tested, and whether it answered.
    pub(crate) fn cable_asked(&mut self, version: MapVersion, at: PortRef, answered: bool) {
        if let Some(known) = self.known_of(version, at) {
            known.unanswered = !answered;
        }
    }

    fn known_of(&mut self, version: MapVersion, at: PortRef) -> Option<&mut Known> {
        let cables = self.cables.as_ref().filter(|cables| cables.version() == version)?;
        self.known.get_mut(&cables.at(at)?.at)
    }

    /// Takes in that a path that was silent answers again.
    pub(crate) fn path_up(&mut self, path: PathId) {
        for known in self.known.values_mut() {
            if known.silent.remove(&path) && known.silent.is_empty() {
                known.silence = false;
            }
        }
        self.drop_live();
    }

    /// What the host is to do next. To be called until there is nothing left.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Action> {
        self.absent.retain(|_, absent| absent.until > now);
        let version = self.cables.as_ref()?.version();
        let dead = self.dead();
        if dead != self.repaired {
            self.repaired = dead;
            self.counts.count(HealingCount::Repairs);
            return Some(Action::Repair { version });
        }
        if let Some((at, cause)) = self.to_tell.pop_front() {
            return Some(Action::TellAgent { version, at, cause });
        }
        if now >= self.test_at && !self.known.is_empty() {
            self.to_test = self.known.keys().copied().collect();
            self.test_at = now + TEST_REPEAT;
        }
        while let Some(at) = self.to_test.pop_front() {
            if let Some(test) = self.test_of(at) {
                return Some(Action::Test { version, at, test });
            }
        }
        None
    }

    /// When [`Self::poll`] is to be called next even if nothing else happens.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        (self.cables.is_some() && self.known.values().any(|known| !known.no_carrier)).then_some(self.test_at)
    }

    /// How a cable is tested. `None` if that is not needed, or if no live cables lead there.
    fn test_of(&mut self, at: PortRef) -> Option<CableTest> {
        let known = self.known.get(&at).filter(|known| !known.no_carrier)?;
        // While a cable is held for dead its tests tell whether it is, also if it is known to lose frames.
        let is_lossy_alone = known.lossy.is_some() && known.cause().is_none();
        let (first, may_repeat, relapses) = if is_lossy_alone {
            (ANSWERS_OF_LOSSY, false, &self.lossy_relapses)
        } else {
            (ANSWERS, true, &self.relapses)
        };
        let relapses = relapses.get(&at).copied().unwrap_or_default();
        let answers = first << relapses.min(MOST_DOUBLINGS);
        let like = TestLike { frame_bytes: known.frame_bytes, answers, may_repeat };
        let cables = self.cables.as_mut()?;
        cables.test_of(at, &self.repaired.avoided, like).or_else(|| {
            // Cables that lose frames are better than none.
            let is_dead = |at: &PortRef| self.known.get(at).is_some_and(|known| known.cause().is_some());
            let dead: BTreeSet<PortRef> = self.repaired.avoided.iter().copied().filter(is_dead).collect();
            (dead != self.repaired.avoided).then(|| cables.test_of(at, &dead, like)).flatten()
        })
    }

    /// Has the next poll tell the agent which cables to test.
    const fn test_now(&mut self, now: Instant) {
        self.test_at = now;
    }

    /// The cables that routes go around now, each by one of its ports.
    pub fn dead(&self) -> DeadCables {
        // No route leads over a cable that the map leaves out.
        let is_left_out = |at| self.cables.as_ref().is_some_and(|cables| cables.is_left_out(at));
        let goes_around = |(at, known): &(&PortRef, &Known)| {
            known.is_avoided() && !(known.cause().is_none() && is_left_out(**at))
        };
        let avoided = || self.known.iter().filter(goes_around);
        let proved = avoided().filter(|(_, known)| known.is_proved());
        DeadCables {
            avoided: avoided().map(|(&at, _)| at).collect(),
            proved: proved.map(|(&at, _)| at).collect(),
        }
    }

    /// The cables that are held for dead for their silence alone, each by the lower of its ports.
    pub(crate) fn silent(&self) -> BTreeSet<PortRef> {
        let silent = self.known.iter().filter(|(_, known)| known.cause() == Some(CableCause::Silence));
        silent.map(|(&at, _)| at).collect()
    }

    /// The cables that are held for dead now, with the cause of each.
    pub fn dead_cables(&self) -> impl Iterator<Item = DeadCable> + '_ {
        self.known
            .iter()
            .filter_map(|(&at, known)| Some(DeadCable { at, since: known.since, cause: known.cause()? }))
    }

    /// What happened to cables since the start.
    pub fn counts(&self) -> &Tally<HealingCount> {
        &self.counts
    }

    fn lose_carrier(&mut self, now: Instant, tag: u64, port: u8) {
        let cable = self.cables.as_ref().and_then(|cables| cables.at_tag(tag, port));
        self.learn(now, cable, CableCause::Carrier, |known| known.no_carrier = true);
    }

    fn regain_carrier(&mut self, tag: u64, port: u8) {
        let Some(cables) = &self.cables else { return };
        let Some(cable) = cables.at_tag(tag, port) else { return };
        if let Some(known) = self.known.get_mut(&cable.at) {
            // Both ends of a cable may be at this host's own crossbar, and the other end still without
            // carrier.
            known.no_carrier = cables.tags_of(cable.at).any(|end| self.no_carrier.contains(&end));
            known.notice = false;
        }
        self.drop_live();
    }

    /// Takes in that a cable was found dead in this way. `update` notes that in what is known of the cable.
    fn learn(
        &mut self,
        now: Instant,
        cable: Option<CableEnd>,
        cause: CableCause,
        update: impl FnOnce(&mut Known),
    ) {
        let Some(CableEnd { at, is_host }) = cable else {
            self.counts.count(HealingCount::Ignored);
            return;
        };
        if self.known.len() >= LIMIT && !self.known.contains_key(&at) {
            self.counts.count(HealingCount::Overload);
            return;
        }
        let known = self.known.entry(at).or_insert_with(|| Known::new(now, is_host));
        let before = known.found();
        if known.cause().is_none() {
            known.since = now;
            // An earlier test may have been one of a cable that loses frames, and proves nothing of this one.
            known.unanswered = false;
        }
        update(known);
        if before.is_none() {
            self.counts.count(match cause {
                CableCause::Carrier => HealingCount::CarrierLosses,
                CableCause::Notice => HealingCount::Notices,
                CableCause::Silence | CableCause::UsersOnly => HealingCount::SilentPaths,
            });
            self.test_now(now);
        }
        // The agent is told of a dead cable once, and again when its death becomes certain.
        if before.is_none_or(|before| cause.is_certain() && !before.is_certain()) {
            self.to_tell.push_back((at, cause));
            self.to_tell.truncate(LIMIT);
        }
    }

    /// Forgets the cables that nothing holds for dead any more, and counts them.
    fn drop_live(&mut self) {
        let before = self.known.len();
        self.known.retain(|_, known| known.cause().is_some() || known.lossy.is_some());
        self.counts.add(HealingCount::CameBack, (before - self.known.len()) as u64);
    }
}
