//! The best that is proved: which engines to try on a fabric, and which of them serves it best.
//!
//! A `Plan` says which engines to try in which rounds, `attempt` tries one, and `Choice` keeps the best of all
//! that were tried. [`choose`] runs a plan.

mod choice;
mod plan;
#[cfg(test)]
mod tests;

use rayon::prelude::*;

use super::selection::{self, Selection};
use super::{Engine, NotRouted, Settings};
use crate::{Quality, Subnet, TableRoutes};
use choice::{Candidate, Choice};
use plan::Plan;

/// Engines in the order in which they are preferred if their tables are as good: the simplest first.
const SIMPLEST: [Engine; 11] = [
    Engine::Ftree,
    Engine::Dmodc,
    Engine::Updn,
    Engine::Minhop,
    Engine::Dnup,
    Engine::Torus,
    Engine::Dor,
    Engine::Sssp,
    Engine::Lash,
    Engine::Dfsssp,
    Engine::Nue,
];

/// All engines, the simplest of equals first. Those that `SIMPLEST` does not name come last, in the order of
/// [`Engine::ALL`].
pub const ORDER: [Engine; Engine::ALL.len()] = {
    let mut order = Engine::ALL;
    let mut placed = 0;
    while placed < SIMPLEST.len() {
        order[placed] = SIMPLEST[placed];
        placed += 1;
    }
    let mut next = 0;
    while next < Engine::ALL.len() {
        let mut at = 0;
        while at < SIMPLEST.len() && SIMPLEST[at] as usize != Engine::ALL[next] as usize {
            at += 1;
        }
        if at == SIMPLEST.len() {
            order[placed] = Engine::ALL[next];
            placed += 1;
        }
        next += 1;
    }
    order
};

fn place(engine: Engine) -> usize {
    ORDER.into_iter().take_while(|&other| other != engine).count()
}

/// What is told while a plan runs.
pub trait Watch: Sync {
    /// A round begins, in which so many engines are tried side by side.
    fn begin_round(&self, _engines: usize) {}

    /// An engine of the round was tried.
    fn end_attempt(&self) {}
}

/// Nobody watches.
impl Watch for () {}

/// Tries the engines that suit a fabric, those of a round side by side, and keeps the tables with the best effective
/// bisection. Of those that are as good as can be measured it keeps the ones with fewer layers, or of the simpler engine;
/// where tables were in force, those that change fewest of their entries. On any number of threads the choice is the
/// same.
///
/// # Errors
/// If no engine serves.
pub fn choose(subnet: &Subnet, settings: &Settings, watch: &impl Watch) -> Result<Selection, NotRouted> {
    let plan = Plan::new(subnet, settings);
    let mut choice = Choice::default();
    for round in plan.rounds() {
        watch.begin_round(round.len());
        let attempts = round.into_par_iter().map(|engine| {
            let attempted = attempt(subnet, engine, &plan);
            watch.end_attempt();
            attempted
        });
        choice = choice.and(attempts.reduce(Choice::default, Choice::and));
        if choice.serves() {
            break;
        }
    }
    choice.finish(&plan)
}

/// Computes, proves and measures by one engine.
fn attempt(subnet: &Subnet, engine: Engine, plan: &Plan) -> Choice {
    match selection::tables(subnet, engine, plan.settings(), false) {
        Err(tried) => Choice::without(tried),
        Ok(selection) => {
            let routes = TableRoutes::proved(subnet, &selection.routing.tables, selection.proof.max_hops);
            let (effective_bisection, error) = Quality::bisection_and_error(&routes, plan.settings().seed);
            let in_force = plan.in_force(subnet);
            let changed = in_force.map(|before| subnet.changed_entries(&selection.routing.tables, before));
            Choice::of(Candidate { selection, effective_bisection, error, changed })
        }
    }
}
