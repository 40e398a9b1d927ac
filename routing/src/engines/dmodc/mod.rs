//! dmodc: fat trees that may have lost xbars and cables, in closed form.
//!
//! After Gliksberg, Capra, Louvet, Garcia, Sohier: "High-Quality Fault-Resiliency in Fat-Tree Networks", 2019.
//! Nothing is counted as tables are filled: each entry follows from the numbers of its xbar and its destination
//! alone, so all are computed in parallel, and little changes when a cable breaks.
//!
//! 1. `tiers`: how high each xbar stands, which cables lead up and down, and the divider of each xbar.
//! 2. `costs`: how far each xbar is from a destination by going down only, or up and then down.
//! 3. `numbers`: leaves that are near each other stand together, hosts of one leaf in the order of their ports.
//! 4. `fill`: an entry leads to one of the neighbours that are nearer to the destination. The destination's
//!    number, divided by the divider and taken modulo how many neighbours there are, says which. One of the
//!    cables to it is chosen in the same way.
//!
//! On a whole tree this is D-mod-K. Routes go up and then down, so they are free of credit loops. Entries of
//! tables that were in force stay if they lead to one of those neighbours, as any of them leads nearer; `mend` finds the
//! few that do not.

mod costs;
mod fill;
mod mend;
mod numbers;
#[cfg(test)]
mod tests;
mod tiers;

use rayon::prelude::*;
use thiserror::Error;

use super::algorithm::Algorithm;
use super::balanced::ranks::Order;
use super::refusal::Advice;
use super::services::{self, Others};
use super::{Engine, EngineError, Refusal, Routing, Setting, Settings, in_force};
use crate::Subnet;
use costs::Costs;
use fill::Filling;
use numbers::Numbers;
use tiers::Tiers;

/// Fat trees that may have lost parts, in closed form.
pub(super) struct Dmodc;

impl Algorithm for Dmodc {
    fn name(&self) -> &'static str {
        "dmodc"
    }

    fn summary(&self) -> &'static str {
        "fat trees that lost xbars or cables, in closed form; no credit loops"
    }

    fn obeys(&self, _: &Settings) -> &'static [Setting] {
        &[Setting::Roots, Setting::Previous]
    }

    /// # Errors
    /// If some leaf cannot reach another by going up and then down, though cables lead there.
    fn compute(&self, subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
        let refuse = |why: DmodcRefusal| EngineError::refuse(Engine::Dmodc, why);
        let by_shape = crate::Tiers::of(&subnet.topology);
        let tiers = Tiers::new(subnet, settings.roots.as_deref(), &by_shape).map_err(refuse)?;
        let leaves = by_shape.leaves();
        let costs: Vec<Costs<'_>> = leaves.par_iter().map(|&leaf| Costs::to(&tiers, leaf)).collect();
        if let Some((from, to)) = apart(subnet, leaves, &costs) {
            let (from, to) = (subnet.names.xbar(from), subnet.names.xbar(to));
            return Err(refuse(DmodcRefusal::Apart { from, to }));
        }
        let numbers = Numbers::new(subnet, leaves, &costs);
        let in_force = in_force::tables(settings);
        let filling = Filling { subnet, tiers: &tiers, leaves, costs: &costs, numbers: &numbers, in_force };
        let mut tables = mend::tables(&filling).unwrap_or_else(|| fill::tables(&filling));
        let order = || Order::updn(subnet, &Settings::default(), &tiers.depths());
        if by_shape.served().is_empty() {
            services::reach_xbars(subnet, &by_shape, Others::InOrder, order, in_force, &mut tables);
        } else {
            let order = order().with_one_top(&subnet.topology, &by_shape);
            services::join(subnet, &by_shape, &order, in_force, &mut tables);
        }
        let notes = services::note(&subnet.topology, &by_shape).into_iter().collect();
        Ok(Routing { notes, ..Routing::in_one_layer(tables) })
    }
}

/// Why a fabric is no tree that it can serve.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
enum DmodcRefusal {
    /// No way up and then down joins two leaves, by their names.
    #[error("no way leads from {from} up and then down to {to}; name the roots (--root-guid-file)")]
    Apart { from: String, to: String },
    #[error("its xbars stand in {tiers} tiers, more than any tree has")]
    TooManyTiers { tiers: u32 },
}

impl From<DmodcRefusal> for Refusal {
    fn from(why: DmodcRefusal) -> Self {
        let instead = match &why {
            DmodcRefusal::Apart { .. } => Advice::Or(Engine::Nue),
            DmodcRefusal::TooManyTiers { .. } => Advice::Only(Engine::Nue),
        };
        Self::own_advising(why, Some(instead))
    }
}

/// Two leaves that cables join but no way up and then down does, if there are any.
fn apart(subnet: &Subnet, leaves: &[u32], costs: &[Costs<'_>]) -> Option<(u32, u32)> {
    let topology = &subnet.topology;
    leaves.par_iter().zip(costs).find_map_first(|(&to, costs)| {
        let is_apart =
            |&from: &u32| !costs.reaches(from) && topology.component(from) == topology.component(to);
        leaves.iter().copied().find(is_apart).map(|from| (from, to))
    })
}
