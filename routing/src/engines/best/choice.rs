//! The best of all that was tried.

use super::plan::Plan;
use super::{ORDER, place};
use crate::engines::selection::{Selection, Tried};
use crate::engines::{Engine, NotRouted, WhyNotServed};
use crate::{Bisection, Mean};

/// Tables that keep entries of those in force are taken if their effective bisection is at least this part of the best.
pub(super) const KEPT_SHARE: f64 = 0.95;

/// If there are service adapters, which hardly send, tables whose effective bisection is at least this part
/// of the best count as equally good, and the bandwidth of hosts alone decides among them.
pub(super) const NEARLY: f64 = 0.98;

/// Tables that are proved, and how good they are.
#[derive(Debug, Clone)]
pub(super) struct TablesCandidate {
    pub(super) selection: Selection,
    /// Other engines, which are less simple and compute the same.
    pub(super) alike: Vec<Engine>,
    pub(super) bisection: Bisection,
    /// How many entries differ from the tables that were in force, if there were any.
    pub(super) changed: Option<u64>,
}

impl TablesCandidate {
    /// The least mean with which another candidate is as good, if this one has the given mean. It is no worse
    /// than can be measured, or hardly worse if others may keep more of the tables that were in force.
    fn least_as_good(&self, mean: Mean) -> f64 {
        let by_error = mean.value - 2.0 * mean.error;
        if self.changed.is_some() { by_error.min(KEPT_SHARE * mean.value) } else { by_error }
    }

    fn of_all(&self) -> Mean {
        Mean { value: self.bisection.mean, error: self.bisection.error }
    }

    /// Of the candidates that are as good, the one with the smallest rank is taken. It has the fewest changed
    /// entries, then the fewest layers, then the simplest engine.
    fn rank(&self) -> (Option<u64>, u8, usize) {
        (self.changed, self.selection.routing.layers.count, place(self.selection.engine))
    }

    /// All engines that compute these tables, as engines that were tried while another one serves.
    pub(super) fn beaten(self) -> impl Iterator<Item = Tried> {
        let Self { selection, alike, bisection, .. } = self;
        std::iter::once(selection.engine).chain(alike).map(move |engine| beaten(engine, bisection))
    }
}

fn beaten(engine: Engine, bisection: Bisection) -> Tried {
    Tried { engine, why_not: WhyNotServed::Beaten { effective_bisection: bisection.mean } }
}

/// The least effective bisection of all with which a candidate is as good as the best. Where hosts are told apart from service
/// adapters, what hosts alone get decides among these.
pub(super) fn least_as_good(candidates: &[TablesCandidate], are_hosts_apart: bool) -> f64 {
    let least = |candidate: &TablesCandidate| {
        let mean = candidate.of_all();
        let least = candidate.least_as_good(mean);
        if are_hosts_apart { least.min(NEARLY * mean.value) } else { least }
    };
    candidates.iter().map(least).fold(f64::NEG_INFINITY, f64::max)
}

/// The candidates that are as good as the best, and the others.
fn as_good(candidates: Vec<TablesCandidate>) -> (Vec<TablesCandidate>, Vec<TablesCandidate>) {
    let are_hosts_apart = candidates.iter().any(|candidate| candidate.bisection.of_hosts.is_some());
    let least = least_as_good(&candidates, are_hosts_apart);
    let (mut as_good, mut worse): (Vec<_>, Vec<_>) =
        candidates.into_iter().partition(|candidate| candidate.bisection.mean >= least);
    let of_hosts = |candidate: &TablesCandidate| candidate.bisection.of_hosts;
    let least = as_good.iter().filter_map(|one| Some(one.least_as_good(of_hosts(one)?)));
    let least = least.fold(f64::NEG_INFINITY, f64::max);
    worse.extend(as_good.extract_if(.., |one| of_hosts(one).is_some_and(|mean| mean.value < least)));
    (as_good, worse)
}

/// The candidate that serves, with all other engines as those that were tried.
///
/// # Errors
/// If there is no candidate.
pub(super) fn choose(
    candidates: Vec<TablesCandidate>,
    mut others: Vec<Tried>,
    plan: &Plan,
) -> Result<Selection, NotRouted> {
    let (mut as_good, worse) = as_good(candidates);
    as_good.sort_by_key(TablesCandidate::rank);
    let mut as_good = as_good.into_iter();
    let best = as_good.next();
    others.extend(as_good.chain(worse).flat_map(TablesCandidate::beaten));
    if let Some(TablesCandidate { alike, bisection, .. }) = &best {
        others.extend(alike.iter().map(|&engine| beaten(engine, *bisection)));
    }
    let served = best.as_ref().map(|best| best.selection.engine);
    for engine in ORDER {
        let is_there = |tried: &Tried| tried.engine == engine;
        if served != Some(engine) && !others.iter().any(is_there) {
            others.push(plan.why_left_out(engine));
        }
    }
    others.sort_by_key(|tried| place(tried.engine));
    match best {
        Some(TablesCandidate { selection, bisection, .. }) => {
            Ok(Selection { tried: others, bisection: Some(bisection), ..selection })
        }
        None => Err(NotRouted { tried: others }),
    }
}
