//! The best that is proved: which engines to try on a fabric, and which of them serves it best.
//!
//! A `Plan` says which engines to try in which rounds, a `Race` has those of a round compete, and `choice` takes the
//! best of what it leaves. [`choose`] runs a plan.

mod alike;
mod choice;
mod plan;
mod race;
#[cfg(test)]
mod tests;

use super::selection::Selection;
use super::{Engine, NotRouted, Settings};
use crate::{Matchings, Subnet};
use plan::Plan;
use race::Race;

/// Engines in the order in which they are preferred if their tables are equally good, the simplest first.
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

/// All engines in the order in which they are preferred, the simplest first. Those that `SIMPLEST` does not
/// name come last, in the order of [`Engine::ALL`].
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

/// Is told what happens while a plan runs.
pub trait Watch: Sync {
    /// A round begins, in which so many engines are tried.
    fn begin_round(&self, _engines: usize) {}

    /// An engine of the round has computed.
    fn end_attempt(&self) {}
}

/// Watches nothing, for plans that nobody watches.
impl Watch for () {}

/// Tries the engines that suit a fabric, and keeps the tables with the best effective bisection. If several
/// are equally good as far as can be measured, it keeps those with fewer layers, or of the simpler engine. If
/// tables were in force, it keeps those that change the fewest of their entries. The choice does not depend
/// on the number of threads.
///
/// The bisection of those that are far behind the next best is measured by a quarter of the matchings only.
///
/// # Errors
/// If no engine serves.
pub fn choose(subnet: &Subnet, settings: &Settings, watch: &impl Watch) -> Result<Selection, NotRouted> {
    let plan = Plan::new(subnet, settings);
    let matchings = Matchings::draw(subnet, plan.settings().seed);
    let mut others = Vec::new();
    for round in plan.rounds() {
        watch.begin_round(round.len());
        let (candidates, tried) = Race::new(subnet, &plan, &matchings).run(&round, watch);
        others.extend(tried);
        if !candidates.is_empty() {
            return choice::choose(candidates, others, &plan);
        }
    }
    choice::choose(Vec::new(), others, &plan)
}
