//! Every single fault of a fabric, each in a run of its own.
//!
//! A run without faults gives the moments that matter, at which some agent does something that it reports.
//! Right behind each of these moments every fault strikes once at every place, and is mended soon, late, or
//! never. At some of them, and once all are configured, each end of each cable moves to each free port, and
//! moves back soon, late, or never. Each frame of that run is lost once, alone or with what its sender sends
//! again the same way.
//!
//! Pairs of faults follow, of which the second strikes while agents map because of the first. An end of each
//! cable moves, and each frame that is sent until all have the new map is lost with what is sent again. Or an
//! end moves or a cable is cut, and at every moment until all have the new map a cable, host or xbar goes,
//! too. Each is a [`Scenario`], with all its checks.

mod possible;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use mapper_proto::Instant;
use mapper_proto::map::Fabric;
use rayon::prelude::*;
use thiserror::Error;

use super::{Outcome, Scenario, Violation};
use crate::fabric::Plant;
use crate::faults::Fault;
use crate::setup::{FaultFile, Setup, SetupError, UserSetup};
use crate::world::{FabricCount, Stopped, TraceError, TraceEvent, TraceSink, Until, WorldError};
use possible::{cases_of, changes_the_fabric, firsts, mendings, most_gap, moves, struck};

/// The most moments, with the last one among them, at which ends of cables move. There are many more such
/// faults than others.
const MOVING_MOMENTS: usize = 6;
/// How long the run without faults goes on once all are configured, so that it has rounds of verification.
const VERIFIED: Duration = Duration::from_millis(300);
/// The longest time from the first of two faults to the second.
const REMAPPED: Duration = Duration::from_secs(5);
/// Frames a second that users send at each host unless the setup says otherwise.
const USERS_RATE: f64 = 50.0;
/// To how many other hosts each host's users send in turn.
const PARTNERS: usize = 4;

/// Every single fault of a fabric.
#[derive(Clone, Debug)]
pub struct Each {
    fabric: Fabric,
    setup: Setup,
    plant: Plant,
    /// The moments that matter, in their order.
    moments: Vec<Instant>,
    /// Frames sent in the run without faults.
    frames: u64,
    /// When the run without faults was over.
    ended_at: Instant,
    cases: Vec<Case>,
    /// How many cases have one fault. They are the first ones.
    single: usize,
}

/// One fault, or two, in an otherwise undisturbed run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Case {
    /// What goes wrong.
    pub fault: Fault,
    /// When it goes wrong.
    pub at: Instant,
    /// How long after the fault all is put right; `None` if it stays as it is.
    pub mended_after: Option<Duration>,
    /// A second fault, and how long after the first it strikes.
    pub then: Option<(Fault, Duration)>,
}

/// Why the faults of a fabric cannot be tried.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EachError {
    /// The run without faults could not begin.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The run without faults could not go on.
    #[error(transparent)]
    World(#[from] WorldError),
    /// Even without faults, not all hosts get configured.
    #[error("even without a fault, not all are configured within {limit:?}: {why}")]
    NotConfigured {
        /// How long they had.
        limit: Duration,
        /// What is still wrong.
        why: String,
    },
    /// There are more cases than can be run.
    #[error("that makes {cases} runs, more than {most}: take a smaller fabric", most = Each::MAX_CASES)]
    TooMany {
        /// How many.
        cases: u64,
    },
}

/// What came of the faults that were tried.
#[derive(Debug, Default)]
pub struct Tried {
    /// The faults that led to something that must not be, in the order in which they were to be tried.
    pub failures: Vec<Failure>,
    /// For each kind of fault, the longest time that users of two hosts heard nothing of each other behind
    /// such a fault. Only faults count that struck when all had settled, and only the time before they were
    /// mended, while cables led from one host to the other.
    pub longest_gaps: BTreeMap<&'static str, Duration>,
}

/// A fault that was tried, and what it led to that must not be.
#[derive(Debug)]
pub struct Failure {
    /// Which case.
    pub number: usize,
    /// What must not be, in words.
    pub why: String,
}

impl Each {
    /// Most cases of a fabric.
    pub const MAX_CASES: u64 = 10_000_000;

    /// All faults of a fabric that is run with this setup. The setup's own faults are left out.
    ///
    /// # Errors
    /// If the fabric does not even work without faults, or is too large.
    pub fn of(fabric: Fabric, mut setup: Setup) -> Result<Self, EachError> {
        setup.faults = FaultFile::default();
        let rate = setup.users.map_or(USERS_RATE, |users| users.rate);
        let from = Some(Duration::ZERO);
        setup.users = Some(UserSetup { rate, partners: PARTNERS, from, flows: 1, broadcasts: false });
        let mut world = setup.world(&fabric)?;
        let moments = Moments::default();
        world.record(Box::new(moments.clone()));
        let limit = setup.limit_at();
        if world.run(Until::Configured, limit)? == Stopped::Limit {
            let why = world.verdict().why_not;
            return Err(EachError::NotConfigured { limit: setup.limit, why });
        }
        let ended_at = world.now() + VERIFIED;
        world.run(Until::After(ended_at.since(Instant::ZERO)), ended_at)?;
        let moments = moments.behind(ended_at);
        let (plant, frames) = (world.plant().clone(), world.stats().frames[FabricCount::Sent]);
        let mut each = Self { fabric, setup, plant, moments, frames, ended_at, cases: Vec::new(), single: 0 };
        each.list()?;
        each.list_pairs()?;
        Ok(each)
    }

    fn list(&mut self) -> Result<(), EachError> {
        let struck = struck(&self.plant, self.setup.signed, self.setup.kernels);
        let moves = moves(&self.plant);
        let moving = self.moving_moments();
        let runs = |faults: &[Fault], moments: &[Instant]| {
            let a_moment: u64 = faults.iter().map(|&fault| mendings(fault).count() as u64).sum();
            a_moment * moments.len() as u64
        };
        let cases = runs(&struck, &self.moments) + runs(&moves, &moving) + 2 * self.frames;
        if cases > Self::MAX_CASES {
            return Err(EachError::TooMany { cases });
        }
        let struck = struck.iter().flat_map(|&fault| cases_of(fault, &self.moments));
        let moved = moves.iter().flat_map(|&fault| cases_of(fault, &moving));
        let mended_after = Some(self.ended_at.since(Instant::ZERO));
        let lost = [Fault::Lose, Fault::LoseTries].into_iter().flat_map(|lose| {
            let at = Instant::ZERO;
            (1..=self.frames).map(move |number| Case { fault: lose(number), at, mended_after, then: None })
        });
        self.cases = struck.chain(moved).chain(lost).collect();
        self.single = self.cases.len();
        Ok(())
    }

    /// The moments at which ends of cables move, in their order.
    fn moving_moments(&self) -> Vec<Instant> {
        let apart = self.moments.len().div_ceil(MOVING_MOMENTS).max(1);
        let mut moments: Vec<Instant> = self.moments.iter().rev().step_by(apart).copied().collect();
        moments.reverse();
        moments
    }

    /// Lists the pairs of faults.
    fn list_pairs(&mut self) -> Result<(), EachError> {
        let changes: Vec<Fault> =
            struck(&self.plant, false, false).into_iter().filter(changes_the_fabric).collect();
        for fault in firsts(&self.plant) {
            let first = Case { fault, at: self.ended_at, mended_after: None, then: None };
            let (moments, frames) = self.remapping(&first)?;
            if matches!(fault, Fault::Move { .. }) {
                let lost = (1..=frames).map(|number| (Fault::LoseTries(number), Duration::ZERO));
                self.cases.extend(lost.map(|then| Case { then: Some(then), ..first }));
            }
            // An end that the first fault has moved is at its new port when the second strikes.
            let moved = |then: Fault| match (fault, then) {
                (Fault::Move { from, to }, Fault::Cut(end)) if end == from => Fault::Cut(to),
                _ => then,
            };
            for at in moments {
                let after = at.since(self.ended_at);
                self.cases
                    .extend(changes.iter().map(|&then| Case { then: Some((moved(then), after)), ..first }));
            }
            if self.cases.len() as u64 > Self::MAX_CASES {
                return Err(EachError::TooMany { cases: self.cases.len() as u64 });
            }
        }
        Ok(())
    }

    /// The moments that matter from a fault on until all have a new map, and how many frames are sent until then.
    fn remapping(&self, first: &Case) -> Result<(Vec<Instant>, u64), EachError> {
        let mut world = self.scenario(first).setup.world(&self.fabric)?;
        // This ends just before the fault, so that the moment of the fault itself counts.
        let before = self.ended_at.since(Instant::ZERO).saturating_sub(Duration::from_nanos(1));
        world.run(Until::After(before), self.ended_at)?;
        let (moments, sent) = (Moments::default(), world.stats().frames[FabricCount::Sent]);
        world.record(Box::new(moments.clone()));
        let limit = self.ended_at + REMAPPED;
        world.run(Until::Configured, limit)?;
        let end = world.now();
        Ok((moments.behind(end), world.stats().frames[FabricCount::Sent] - sent))
    }

    /// All cases: those of one fault stand together, in the order of their times.
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// How many of the cases have one fault. They come first, and then those with two.
    pub fn single(&self) -> usize {
        self.single
    }

    /// How many moments there are at which faults strike.
    pub fn moments(&self) -> usize {
        self.moments.len()
    }

    /// How many frames were sent in the run without faults.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// A case as the lines of a fault file.
    pub fn fault_file(&self, case: &Case) -> String {
        let at = case.at.as_nanos();
        let mut text = format!("at {at}ns {}\n", case.fault.describe(&self.plant));
        if let Some((fault, after)) = case.then {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "at {}ns {}", (case.at + after).as_nanos(), fault.describe(&self.plant));
        }
        if case.mended_after.is_some() {
            // `heal` leaves cables where they are, so a cable that was moved is moved back.
            let mend = match case.fault {
                Fault::Move { from, to } => Fault::Move { from: to, to: from },
                _ => Fault::Heal,
            };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "at {}ns {}", case.over_at().as_nanos(), mend.describe(&self.plant));
        }
        text
    }

    /// A case as a scenario.
    pub fn scenario(&self, case: &Case) -> Scenario {
        let mut setup = self.setup.clone();
        setup.faults = FaultFile { name: "the fault".to_owned(), text: self.fault_file(case) };
        let most_gap = self.most_gap(case);
        Scenario { fabric: self.fabric.clone(), setup, healed_at: case.over_at(), most_gap }
    }

    /// Whether a fault strikes when all have settled. Only of such faults it is promised how fast they are
    /// healed.
    fn strikes_the_settled(&self, case: &Case) -> bool {
        case.at >= self.ended_at && case.then.is_none()
    }

    /// For how long a pair of hosts may lose all frames. Gaps are told from frames that are sent now and
    /// then, so they look longer by the time between two frames.
    fn most_gap(&self, case: &Case) -> Option<Duration> {
        let users = self.setup.users.filter(|_| self.strikes_the_settled(case))?;
        Some(most_gap(case, self.setup.kernels)? + users.turn())
    }

    /// Runs the cases of these numbers side by side. Calls `done` after each.
    pub fn run(&self, numbers: &[usize], done: impl Fn() + Sync) -> Tried {
        let run = |&number: &usize| {
            let outcome = self.cases.get(number).map(|case| (case, self.try_case(case)));
            done();
            (number, outcome)
        };
        let outcomes: Vec<_> = numbers.par_iter().map(run).collect();
        let mut tried = Tried::default();
        for (number, (case, outcome)) in outcomes.into_iter().filter_map(|(n, outcome)| Some((n, outcome?))) {
            match outcome {
                Err(why) => tried.failures.push(Failure { number, why }),
                Ok(outcome) if self.strikes_the_settled(case) => {
                    let longest = tried.longest_gaps.entry(case.kind()).or_default();
                    *longest = outcome.users.longest_gap.max(*longest);
                }
                Ok(_) => {}
            }
        }
        tried
    }

    /// Runs a case. The error says what must not be.
    fn try_case(&self, case: &Case) -> Result<Outcome, String> {
        let scenario = self.scenario(case);
        let run = || -> Result<Outcome, Violation> { scenario.run(None) };
        // If one case panics, what the others found must not be lost.
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(outcome) => outcome.map_err(|violation| violation.to_string()),
            Err(_) => Err("a panic".to_owned()),
        }
    }
}

impl Case {
    /// The kind of the case: the word of its fault in a fault file, or a name for the pair of its faults.
    pub fn kind(&self) -> &'static str {
        match (self.fault, self.then) {
            (fault, None) => fault.word(),
            (_, Some((Fault::LoseTries(_), _))) => "move, then lose-tries",
            (Fault::Move { .. }, Some(_)) => "move, then another",
            (_, Some(_)) => "cut, then another",
        }
    }

    /// When nothing more happens to the fabric.
    pub fn over_at(&self) -> Instant {
        let second = self.then.map_or(Duration::ZERO, |(_, after)| after);
        self.at + self.mended_after.unwrap_or(second)
    }
}

/// How many cases there are of each kind.
pub fn count_kinds<'a>(cases: impl IntoIterator<Item = &'a Case>) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    cases.into_iter().for_each(|case| *counts.entry(case.kind()).or_default() += 1);
    counts
}

/// Notes the moments at which anything happens.
#[derive(Clone, Default)]
struct Moments(Rc<RefCell<BTreeSet<Instant>>>);

impl Moments {
    /// The moments right behind these, and the one when all is over.
    fn behind(&self, end: Instant) -> Vec<Instant> {
        let moment = Duration::from_nanos(1);
        let mut behind: Vec<Instant> = self.0.borrow().iter().map(|&at| at + moment).collect();
        behind.push(end);
        behind
    }
}

impl TraceSink for Moments {
    fn event(&mut self, event: &TraceEvent<'_>, _: u64) -> Result<(), TraceError> {
        self.0.borrow_mut().insert(event.at);
        Ok(())
    }

    fn checkpoint(&mut self, _: Instant, _: u64, _: u64) -> Result<(), TraceError> {
        Ok(())
    }

    fn end(&mut self, _: Instant, _: u64) -> Result<(), TraceError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
