//! The best of all that was tried.

use super::plan::Plan;
use super::{ORDER, place};
use crate::engines::selection::{Selection, Tried};
use crate::engines::{NotRouted, WhyNotServed};

/// Tables that keep entries of those in force are taken if their effective bisection is at least this part of the best.
const KEPT_SHARE: f64 = 0.95;

/// Tables that are proved, and how good they are.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) selection: Selection,
    pub(super) effective_bisection: f64,
    /// Standard error of the effective bisection.
    pub(super) error: f64,
    /// How many entries differ from the tables that were in force, if there were any.
    pub(super) changed: Option<u64>,
}

impl Candidate {
    /// The least effective bisection with which another is as good: no worse than can be measured, or hardly worse
    /// where others may keep more of what was in force.
    fn least_as_good(&self) -> f64 {
        let by_error = self.effective_bisection - 2.0 * self.error;
        if self.changed.is_some() { by_error.min(KEPT_SHARE * self.effective_bisection) } else { by_error }
    }

    /// The smallest of those that are as good is taken: that of fewest changed entries, then of fewest layers, then of
    /// the simplest engine.
    fn rank(&self) -> (Option<u64>, u8, usize) {
        (self.changed, self.selection.routing.layers.count, place(self.selection.engine))
    }

    /// Whether it is taken before another, whatever else there is.
    fn is_before(&self, other: &Self) -> bool {
        self.effective_bisection >= other.effective_bisection && self.rank() < other.rank()
    }

    fn beaten(self) -> Tried {
        let why_not = WhyNotServed::Beaten { effective_bisection: self.effective_bisection };
        Tried { engine: self.selection.engine, why_not }
    }
}

/// What is left of some attempts.
///
/// A set of attempts leaves the same, whatever the order in which they were put together: candidates stay until one is
/// known that is taken before them, or is better than can be measured.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    /// Those of which one may be taken.
    candidates: Vec<Candidate>,
    /// The least effective bisection that is as good as that of the best.
    least: f64,
    others: Vec<Tried>,
}

impl Default for Choice {
    /// Nothing was tried yet.
    fn default() -> Self {
        Self { candidates: Vec::new(), least: f64::NEG_INFINITY, others: Vec::new() }
    }
}

impl Choice {
    /// Of an attempt that came to nothing.
    pub(super) fn without(tried: Tried) -> Self {
        Self { others: vec![tried], ..Self::default() }
    }

    /// Of tables that were proved.
    pub(super) fn of(candidate: Candidate) -> Self {
        Self { least: candidate.least_as_good(), candidates: vec![candidate], ..Self::default() }
    }

    /// What is left of two.
    #[must_use]
    pub(super) fn and(mut self, other: Self) -> Self {
        self.others.extend(other.others);
        self.least = self.least.max(other.least);
        self.candidates.extend(other.candidates);
        let mut place = 0;
        while let Some(candidate) = self.candidates.get(place) {
            let is_worse = candidate.effective_bisection < self.least;
            if is_worse || self.candidates.iter().any(|other| other.is_before(candidate)) {
                self.others.push(self.candidates.swap_remove(place).beaten());
            } else {
                place += 1;
            }
        }
        self
    }

    /// Whether any engine serves.
    pub(super) fn serves(&self) -> bool {
        !self.candidates.is_empty()
    }

    /// What serves, with all other engines as those that were tried.
    ///
    /// # Errors
    /// If none serves.
    pub(super) fn finish(mut self, plan: &Plan) -> Result<Selection, NotRouted> {
        self.candidates.sort_by_key(Candidate::rank);
        let mut candidates = self.candidates.into_iter();
        let best = candidates.next();
        self.others.extend(candidates.map(Candidate::beaten));
        let served = best.as_ref().map(|best| best.selection.engine);
        for engine in ORDER {
            let is_there = |tried: &Tried| tried.engine == engine;
            if served != Some(engine) && !self.others.iter().any(is_there) {
                self.others.push(plan.why_left_out(engine));
            }
        }
        self.others.sort_by_key(|tried| place(tried.engine));
        match best {
            Some(best) => Ok(Selection { tried: self.others, ..best.selection }),
            None => Err(NotRouted { tried: self.others }),
        }
    }
}
