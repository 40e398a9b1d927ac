//! The fault search: fabrics, fault mixes and times drawn from a seed, and what must hold.
//!
//! First things go wrong while safety is checked all the while: no agent claims to be configured without
//! proved routes of the map that it holds, the routes in use cannot deadlock, queues stay bounded, and with
//! keys nobody believes a forged answer about a name. Then everything is healed, and all agents must reach
//! one map that matches the fabric in bounded time, and keep it. A host that asks for a name is told who has
//! it at that time, whoever had it before.
//!
//! [`each`] is the systematic counterpart: every single fault at every moment that matters.

mod circles;
mod draw;
pub mod each;
mod gaps;

use circles::Watch;
pub use draw::ALL_DRAWN_FROM;

use std::collections::BTreeMap;
use std::time::Duration;

use mapper_proto::Instant;
use mapper_proto::agent::LONGEST_PAUSE;
use mapper_proto::map::Fabric;
use thiserror::Error;

use crate::fabric::PlantNode;
use crate::faults::Fault;
use crate::setup::{Setup, SetupError};
use crate::world::{FrameSink, LOST_AFTER, Stopped, TraceSink, TrafficReport, Until, World, WorldError};

/// A fabric, and what befalls it.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// The fabric.
    pub fabric: Fabric,
    /// How it is run. The faults end with `heal` at [`Self::healed_at`].
    pub setup: Setup,
    /// When everything is put right.
    pub healed_at: Instant,
    /// The longest time that a pair of hosts may lose all frames behind a fault, before everything is put
    /// right and while cables lead from one to the other; `None` if nothing is promised.
    pub most_gap: Option<Duration>,
}

/// What a scenario came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// How long after healing all were configured.
    pub healing: Duration,
    /// The longest time for which the routes in force closed a circle, as hosts had routes of different
    /// maps, or cables were moved under them.
    pub circle: Duration,
    /// The longest time for which they closed one because hosts still used turns that were safe only while a
    /// cable was dead that has come back.
    pub revival: Duration,
    /// What became of users' frames.
    pub users: Users,
    /// The digest of the whole run.
    pub digest: u64,
}

/// What became of users' frames in a scenario.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Users {
    /// Frames sent.
    pub sent: u64,
    /// Frames that did not arrive.
    pub lost: u64,
    /// Frames that arrived behind later ones.
    pub reordered: u64,
    /// Frames that arrived as packets through the kernels.
    pub by_kernel: u64,
    /// The longest time that a pair of hosts lost all frames behind a fault, before all was put right and
    /// while cables led from one to the other.
    pub longest_gap: Duration,
}

/// What must not be.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Violation {
    /// The scenario could not begin, which is a bug in how it was drawn.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The run could not go on.
    #[error(transparent)]
    World(#[from] WorldError),
    /// Something unsafe was seen.
    #[error("at {at:?}: {why}")]
    Unsafe {
        /// When it was seen.
        at: Instant,
        /// What.
        why: String,
    },
    /// The agents did not agree in time.
    #[error("{after:?} after healing: {why}")]
    NotConverged {
        /// How long they had.
        after: Duration,
        /// What is still wrong.
        why: String,
    },
}

impl Scenario {
    /// How long after healing the agents may take to agree.
    pub const PATIENCE: Duration = Duration::from_secs(60);
    /// How long the agents must then stay as they are.
    pub const QUIET: Duration = Duration::from_secs(5);
    /// How often safety is checked.
    const LOOK_EVERY: Duration = Duration::from_millis(250);
    /// Most entries in the queues and tables of an agent, without those of a signed session.
    const MAX_LOAD: usize = 4096;
    /// Most entries that a signed session adds. They remember messages, so that none counts when it is
    /// replayed.
    const MAX_SESSION_LOAD: usize = 16_384;
    /// How long after all agents agreed users' frames must all arrive.
    const SETTLED: Duration = Duration::from_millis(500);
    /// How long users send after that, if each pair has two turns within it. A longer time would show nothing new.
    const USED: Duration = Duration::from_secs(1);
    /// Most frames that agents may have under way at once, for each of them.
    const MAX_IN_FLIGHT: usize = 512;

    /// Runs the scenario and checks all that must hold. All that happens goes to `sink`, if there is one.
    ///
    /// # Errors
    /// If something does not hold.
    pub fn run(&self, sink: Option<Box<dyn TraceSink>>) -> Result<Outcome, Violation> {
        self.run_captured(sink, None)
    }

    /// Does the same as [`Self::run`], and hands all frames at the interfaces of hosts to `frames`, if there
    /// is such a sink.
    ///
    /// # Errors
    /// If something does not hold.
    pub fn run_captured(
        &self,
        sink: Option<Box<dyn TraceSink>>,
        frames: Option<Box<dyn FrameSink>>,
    ) -> Result<Outcome, Violation> {
        let mut world = self.setup.world(&self.fabric)?;
        if let Some(sink) = sink {
            world.record(sink);
        }
        if let Some(frames) = frames {
            world.capture(frames);
        }
        world.watch_routes();
        let outcome = self.run_in(&mut world)?;
        world.end_record().map_err(WorldError::from)?;
        Ok(outcome)
    }

    fn run_in(&self, world: &mut World) -> Result<Outcome, Violation> {
        let watch = &mut Watch::default();
        self.run_checked(world, watch, self.healed_at)?;
        // A cable that was moved late may be moved back after everything else was healed.
        let healed_at = world.last_fault_at().map_or(self.healed_at, |last| last.max(self.healed_at));
        self.run_checked(world, watch, healed_at)?;
        let deadline = healed_at + Self::PATIENCE;
        loop {
            self.run_until_agreed(world, watch, deadline)?;
            let healing = world.now().since(healed_at);
            self.check_agreed(world)?;
            let before = versions(world);
            let agreed_at = world.now();
            // Where packets go through kernels, one of them may forward none: a node whose host was cabled to another crossbar for a
            // while does not forward until that host starts again. Only probes that are not answered show this, and kernels send
            // along such a way until enough probes were missed.
            let left_within = world.kernels_are_left_within();
            // Whoever asked for quiet may be gone, and hosts that keep it ask each other nothing.
            let quiet = self.setup.agents.pause.then_some(LONGEST_PAUSE);
            let settled = quiet.into_iter().chain([left_within]).fold(Self::SETTLED, Duration::max);
            let settled = settled + self.setup.computing();
            let settled_at = agreed_at + settled;
            self.run_checked(world, watch, settled_at)?;
            world.ask_for_all_names();
            // A frame that was sent before all had settled may be lost, and counts as lost only now.
            self.run_checked(world, watch, settled_at + LOST_AFTER)?;
            let lost = world.lost_between_joined();
            self.run_checked(world, watch, settled_at + self.used())?;
            if versions(world) == before {
                world.stop_users();
            }
            self.run_checked(world, watch, (agreed_at + Self::QUIET).max(settled_at + self.used() * 2))?;
            if versions(world) == before {
                self.check_agreed(world)?;
                // Where a kernel does not forward, others may take to its ways once more before they find that again.
                if world.kernels_are_left_within().is_zero() {
                    world.check_packets().map_err(|why| Violation::Unsafe { at: world.now(), why })?;
                }
                world.check_tap_mtus().map_err(|why| Violation::Unsafe { at: world.now(), why })?;
                // Without keys, a host that was hostile may have told others that it has a name which it does
                // not have.
                if self.setup.signed || !world.was_hostile() {
                    let names = world.check_names().and_then(|()| world.check_announced_names());
                    names.map_err(|why| Violation::Unsafe { at: world.now(), why })?;
                }
                let report = world.traffic().unwrap_or_default();
                let users = Users { by_kernel: world.stats().by_kernel, ..users(&report) };
                if let Some(why) = lost_since(world, &lost) {
                    return Err(Violation::Unsafe { at: world.now(), why });
                }
                if let Err(why) = self.check_gaps(&report, world.now()) {
                    return Err(Violation::Unsafe { at: world.now(), why });
                }
                if self.most_gap.is_some_and(|most| users.longest_gap > most) {
                    let gap = users.longest_gap;
                    let why = format!("users of two hosts heard nothing of each other for {gap:?}");
                    return Err(Violation::Unsafe { at: world.now(), why });
                }
                let Watch { circle, revival } = *watch;
                return Ok(Outcome { healing, circle, revival, users, digest: world.digest() });
            }
            // A map may lack nodes that a single cable separates from every host, and it is made anew once
            // verification finds them. That must also end in time.
        }
    }

    /// How long users send once all have settled. Each pair sends twice in that time, so that a gap of before is over, unless
    /// frames are lost still.
    fn used(&self) -> Duration {
        self.setup.users.map_or(Self::USED, |users| Self::USED.max(2 * users.turn()))
    }

    fn run_until_agreed(
        &self,
        world: &mut World,
        watch: &mut Watch,
        deadline: Instant,
    ) -> Result<(), Violation> {
        while world.now() < deadline {
            let next = deadline.min(world.now() + Self::LOOK_EVERY);
            let stopped = world.run(Until::Configured, next)?;
            self.check_safety(world, watch)?;
            if stopped == Stopped::Reached {
                return Ok(());
            }
        }
        let verdict = world.verdict();
        let why =
            if verdict.why_not.is_empty() { "the maps keep changing".to_owned() } else { verdict.why_not };
        Err(Violation::NotConverged { after: Self::PATIENCE, why })
    }

    fn run_checked(&self, world: &mut World, watch: &mut Watch, until: Instant) -> Result<(), Violation> {
        while world.now() < until {
            let next = until.min(world.now() + Self::LOOK_EVERY);
            world.run(Until::After(next.since(Instant::ZERO)), next)?;
            self.check_safety(world, watch)?;
        }
        Ok(())
    }

    fn check_safety(&self, world: &mut World, watch: &mut Watch) -> Result<(), Violation> {
        let hosts = self.fabric.map.hosts.len();
        let in_flight = world.stats().peak_in_flight;
        let most = Self::MAX_LOAD + if self.setup.signed { Self::MAX_SESSION_LOAD } else { 0 };
        let bounded = if in_flight > hosts * Self::MAX_IN_FLIGHT {
            Err(format!("{in_flight} frames were under way at once"))
        } else {
            world.check_load(most)
        };
        let safe = bounded
            .and_then(|()| world.check_routes_watched())
            .and_then(|()| world.check_no_forged_name())
            .and_then(|()| world.check_traffic())
            .and_then(|()| world.prove_union())
            .and_then(|()| self.check_circles(world, watch));
        safe.map_err(|why| Violation::Unsafe { at: world.now(), why })
    }

    fn check_circles(&self, world: &mut World, watch: &mut Watch) -> Result<(), String> {
        let circles = world.take_circles();
        watch.check(&circles, |until| self.was_last_disturbed_at(world, until), self.setup.computing())
    }

    /// When something last happened, up to a moment, of which agents have to learn. Without keys, agents believe a hostile host
    /// that lies about its rank, and those who follow it keep their routes, whatever cables are moved: this goes on until all is
    /// put right.
    fn was_last_disturbed_at(&self, world: &World, until: Instant) -> Instant {
        let struck_at = world.last_change_before(until);
        // Hosts that start later than others are found like hosts that come.
        let started_at = until.min(Instant::ZERO + self.setup.power_on_spread);
        let is_deceived = world.was_hostile() && !self.setup.signed;
        let deceived_until = if is_deceived { until.min(self.healed_at) } else { Instant::ZERO };
        struck_at.max(started_at).max(deceived_until)
    }

    /// Checks that each part has one map and one leader, and that routes lead where they should.
    fn check_agreed(&self, world: &mut World) -> Result<(), Violation> {
        let at = world.now();
        let verdict = world.verdict();
        if !(verdict.configured && verdict.map_matches_fabric) {
            return Err(Violation::Unsafe { at, why: verdict.why_not });
        }
        for leader in &verdict.leaders {
            let others = verdict.leaders.iter().filter(|other| other.version == leader.version);
            if others.count() != 1 {
                let why = format!("two leaders share map {}", leader.version);
                return Err(Violation::Unsafe { at, why });
            }
        }
        world.check_frame_sizes().map_err(|why| Violation::Unsafe { at, why })?;
        world.deliver_all(usize::MAX, self.setup.seed).map_err(|why| Violation::Unsafe { at, why })
    }
}

fn users(report: &TrafficReport) -> Users {
    let faults = report.faults.iter().filter(|effect| effect.fault != Fault::Heal);
    let longest_gap = faults.map(|fault| fault.longest_gap).max().unwrap_or_default();
    Users { sent: report.sent, lost: report.lost, reordered: report.reordered, longest_gap, by_kernel: 0 }
}

/// Which users' frames were lost since these were counted, in words; `None` if none were.
fn lost_since(world: &mut World, before: &BTreeMap<(u32, Option<u32>), u64>) -> Option<String> {
    let lost = world.lost_between_joined().into_iter();
    let lost = lost.map(|(pair, lost)| (pair, lost - before.get(&pair).copied().unwrap_or_default()));
    let lost: Vec<_> = lost.filter(|&(_, lost)| lost > 0).collect();
    let total: u64 = lost.iter().map(|&(_, lost)| lost).sum();
    let name = |host: u32| world.plant().name(PlantNode::Host(host));
    let between = lost
        .iter()
        .map(|&((from, to), lost)| format!("{lost} from {} to {}", name(from), to.map_or("all", name)));
    let between = between.collect::<Vec<_>>().join(", ");
    (total > 0).then(|| format!("{total} users' frames were lost while nothing was wrong: {between}"))
}

/// The map that each host holds.
fn versions(world: &World) -> Vec<mapper_proto::map::MapVersion> {
    let hosts = 0..world.plant().hosts() as u32;
    hosts.map(|host| world.status(host).map(|status| status.version).unwrap_or_default()).collect()
}
