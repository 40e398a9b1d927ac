//! Has engines compete. Only as much is proved and measured as it takes to tell the best, and the next best.
//!
//! 1. All engines compute, and what several of them begin with is computed once. If two of them lead frames alike, one of
//!    them is proved and measured for both.
//! 2. Tables that are proved are measured by the first matchings, which are all matchings if there are few hosts. Tables
//!    that are so far behind that they are neither the best nor the next best are out, with the bisection that was seen
//!    so far.
//! 3. All others are measured by all matchings. If hosts are told apart from service adapters, those that are as good as
//!    the best are measured by matchings of hosts alone, too, and these decide among them.
//!
//! Which engines compute side by side depends on the fabric alone, so the outcome is the same on any number of threads.

use rayon::prelude::*;

use super::Watch;
use super::alike::{Passed, lead_hosts_alike};
use super::choice::{self, KEPT_SHARE, NEARLY, TablesCandidate};
use super::plan::Plan;
use crate::engines::selection::{self, Computed, Proof, Selection, Tried};
use crate::engines::shared::Shared;
use crate::engines::{Engine, Routing, WhyNotServed};
use crate::{Bisection, Matchings, Measured, Subnet, TableRoutes};

/// How many standard errors of the first matchings must lie between tables that stay in and tables that are
/// out.
const FAR: f64 = 4.0;

/// The tables of one engine, or of several that lead frames alike, which are not proved yet.
struct Entrant {
    engine: Engine,
    alike: Vec<Engine>,
    computed: Computed,
    passed: Passed,
}

/// Tables that are proved, as far as they are measured.
struct Contender {
    selection: Selection,
    alike: Vec<Engine>,
    changed: Option<u64>,
    measured: Measured,
    passed: Passed,
}

impl Contender {
    fn candidate(self) -> TablesCandidate {
        let Self { selection, alike, changed, measured, .. } = self;
        TablesCandidate { selection, alike, bisection: measured.bisection(), changed }
    }
}

/// The engines of one round, which compete.
pub(super) struct Race<'a> {
    subnet: &'a Subnet,
    plan: &'a Plan,
    matchings: &'a Matchings,
    shared: Shared<'a>,
    contenders: Vec<Contender>,
    others: Vec<Tried>,
}

impl<'a> Race<'a> {
    pub(super) fn new(subnet: &'a Subnet, plan: &'a Plan, matchings: &'a Matchings) -> Self {
        let shared = Shared::new(subnet, plan.settings());
        Self { subnet, plan, matchings, shared, contenders: Vec::new(), others: Vec::new() }
    }

    /// Has engines compete, which stand in the order in which they are preferred. Returns the candidates of
    /// which one may serve, and why the others do not.
    pub(super) fn run(
        mut self,
        engines: &[Engine],
        watch: &impl Watch,
    ) -> (Vec<TablesCandidate>, Vec<Tried>) {
        for engines in engines.chunks(self.plan.side_by_side()) {
            let entries = self.compute(engines, watch);
            let judged: Vec<_> = entries.into_par_iter().map(|entry| self.judge(entry)).collect();
            for judged in judged {
                match judged {
                    Ok(contender) => self.contenders.push(contender),
                    Err(tried) => self.others.extend(tried),
                }
            }
            self.drop_those_behind();
        }
        let Self { subnet, matchings, contenders, others, .. } = self;
        let complete = |mut contender: Contender| {
            matchings.complete(&routes(subnet, &contender.selection), &mut contender.measured);
            contender.candidate()
        };
        let mut candidates: Vec<TablesCandidate> = contenders.into_par_iter().map(complete).collect();
        if matchings.tell_hosts_apart() {
            let least = choice::least_as_good(&candidates, true);
            candidates.par_iter_mut().filter(|candidate| candidate.bisection.mean >= least).for_each(
                |TablesCandidate { selection, bisection, .. }| {
                    bisection.of_hosts = matchings.of_hosts(&routes(subnet, selection));
                },
            );
        }
        (candidates, others)
    }

    /// The tables that engines compute, without those that an engine before them computed alike.
    fn compute(&mut self, engines: &[Engine], watch: &impl Watch) -> Vec<Entrant> {
        let (subnet, settings) = (self.subnet, self.plan.settings());
        let compute = |&engine: &Engine| {
            let computed = selection::compute(subnet, engine, settings, &self.shared, Proof::Required);
            watch.end_attempt();
            (engine, computed)
        };
        if engines.contains(&Engine::Dnup) && engines.contains(&Engine::Nue) {
            self.shared.begin_with_dnup(settings);
        }
        let computed: Vec<_> = engines.par_iter().map(compute).collect();
        // Entries that no host's frame comes by count only if those that were in force are to stay, or if
        // frames for xbars are proved, too.
        let is_whole = self.plan.in_force(subnet).is_some() || settings.xbar_destinations;
        let is_alike = |one: &Routing, passed: &Passed, other: &Routing| {
            let is_same = || one.layers == other.layers && one.tables == other.tables;
            if is_whole { is_same() } else { lead_hosts_alike(subnet, (one, passed), other) }
        };
        let mut entries: Vec<Entrant> = Vec::new();
        for (engine, computed) in computed {
            let computed = match computed {
                Ok(computed) => computed,
                Err(why_not) => {
                    self.others.push(Tried { engine, why_not });
                    continue;
                }
            };
            let before = self.contenders.iter_mut();
            let before = before.map(|one| (&one.selection.routing, &one.passed, &mut one.alike));
            let beside = entries.iter_mut();
            let beside = beside.map(|one| (&one.computed.routing, &one.passed, &mut one.alike));
            let mut there = before.chain(beside);
            match there.find(|(routing, passed, _)| is_alike(routing, passed, &computed.routing)) {
                Some((_, _, alike)) => alike.push(engine),
                None => {
                    let passed = Passed::new(subnet);
                    entries.push(Entrant { engine, alike: Vec::new(), computed, passed });
                }
            }
        }
        entries
    }

    /// Proves tables, and measures them by the first matchings.
    fn judge(&self, entry: Entrant) -> Result<Contender, Vec<Tried>> {
        let Entrant { engine, alike, computed, passed } = entry;
        let proof = computed.prove(self.subnet, self.plan.settings());
        if !proof.holds() {
            let why_not = WhyNotServed::Unproved(Box::new(proof));
            let tried = |engine| Tried { engine, why_not: why_not.clone() };
            return Err(std::iter::once(engine).chain(alike).map(tried).collect());
        }
        let selection = computed.selected(engine, proof);
        let in_force = self.plan.in_force(self.subnet);
        let changed = in_force.map(|before| self.subnet.changed_entries(&selection.routing.tables, before));
        let measured = self.matchings.begin(&routes(self.subnet, &selection));
        Ok(Contender { selection, alike, changed, measured, passed })
    }

    /// Takes out those that can be neither as good as the best nor the next best.
    fn drop_those_behind(&mut self) {
        let seen = |contender: &Contender| contender.measured.bisection();
        let mut at_least: Vec<f64> = Vec::new();
        for contender in &self.contenders {
            let Bisection { mean, error, .. } = seen(contender);
            // If several engines compute the same, one may be the best and another the next best.
            at_least.extend(vec![mean - FAR * error; 1 + contender.alike.len()]);
        }
        at_least.sort_by(|one, other| other.total_cmp(one));
        let (Some(best), Some(next)) = (at_least.first(), at_least.get(1)) else { return };
        let is_behind = |contender: &Contender| {
            let Bisection { mean, error, .. } = seen(contender);
            // An engine that is hardly worse than the best may be chosen in its place.
            let share = match contender.changed {
                Some(_) => KEPT_SHARE,
                None if self.matchings.tell_hosts_apart() => NEARLY,
                None => 1.0,
            };
            mean + FAR * error < next.min(share * best)
        };
        let (behind, ahead): (Vec<_>, Vec<_>) = self.contenders.drain(..).partition(is_behind);
        self.contenders = ahead;
        self.others.extend(behind.into_iter().flat_map(|contender| contender.candidate().beaten()));
    }
}

fn routes<'a>(subnet: &'a Subnet, selection: &'a Selection) -> TableRoutes<'a> {
    TableRoutes::proved(subnet, &selection.routing.tables, selection.proof.max_hops)
}
