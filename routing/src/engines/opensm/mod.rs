//! minhop, updn, dnup and dor as OpenSM 3.3.23 computes them, entry by entry, for comparison.
//!
//! 1. [`hops`] finds the least hops from each xbar to each destination's xbar, and which channels begin
//!    such routes; [`ranked`] does so where routes must keep to up and down.
//! 2. [`order`] says in which order destinations are served.
//! 3. [`rows`] fills each xbar's table by itself, with a counter for each port.
//!
//! All that the fabric decides in OpenSM is the same here. Two things depend on more than the fabric:
//!
//! - Its maps are sorted by GUIDs as numbers of the machine that it runs on. Here they are sorted as on
//!   a little-endian machine, which compares GUIDs from their last byte on.
//! - With scatter it draws from the C library's generator, across all xbars. Here each xbar has a generator
//!   of its own, so these tables are equally random but different.

mod hops;
mod matrix;
mod order;
mod paths;
mod ranked;
mod roots;
mod rows;
#[cfg(test)]
mod tests;

use thiserror::Error;

use super::{Balance, Engine, EngineError, Refusal, Routing, Settings};
use crate::Subnet;
use hops::{LeastHops, Search, WeightedHops};
use order::DestinationOrder;
use rows::Rows;

pub use matrix::HopMatrix;

/// Whether tables are to be made as OpenSM makes them, which is so if its balance is asked for or hops are
/// given.
pub(super) fn is_wanted(settings: &Settings) -> bool {
    settings.balance == Balance::Opensm || settings.hops.is_some()
}

/// Why tables cannot be made as OpenSM makes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
enum OpensmRefusal {
    #[error("the lid matrix is of another fabric; give that of this one, or none")]
    OtherMatrix,
    #[error("no root is given; name the xbars at the top in a file (--root-guid-file)")]
    NoRootGiven,
    #[error("no root is found; name the xbars at the top in a file (--root-guid-file)")]
    NoRootFound,
    #[error("no xbar has a host, so there is no lowest rank to start from")]
    NoLeaf,
}

/// The tables of minhop, updn, dnup or dor, exactly as OpenSM makes them.
///
/// # Errors
/// If the engine finds no roots or no leaves, or the hops are another fabric's.
pub(super) fn compute(engine: Engine, subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
    let refuse = |why: OpensmRefusal| Err(EngineError::refuse(engine, Refusal::own(why)));
    let least = match &settings.hops {
        Some(hops) if !hops.is_of(&subnet.topology) => {
            return refuse(OpensmRefusal::OtherMatrix);
        }
        Some(hops) => LeastHops::of_matrix(&subnet.topology, hops),
        None => with_search(engine, subnet, settings, |search| LeastHops::of(search))?,
    };
    let order = DestinationOrder::new(subnet, settings);
    let rows = Rows::new(subnet, settings, &least, &order, engine == Engine::Dor);
    let mut routing = Routing::in_one_layer(rows.tables());
    if settings.scatter.is_some() {
        let note = "scatter draws from another generator than OpenSM's: as random, not the same tables";
        routing.notes.push(note.to_owned());
    }
    Ok(routing)
}

/// The hops from each port to each xbar that an engine of this module reckons with.
///
/// # Errors
/// If the engine finds no roots or no leaves.
pub fn hop_matrix(engine: Engine, subnet: &Subnet, settings: &Settings) -> Result<HopMatrix, EngineError> {
    with_search(engine, subnet, settings, |search| HopMatrix::of(search))
}

/// Calls a function with an engine's search for hops.
fn with_search<T>(
    engine: Engine,
    subnet: &Subnet,
    settings: &Settings,
    use_it: impl FnOnce(&dyn Search) -> T,
) -> Result<T, EngineError> {
    let minhop = WeightedHops::new(&subnet.topology, &settings.hop_weights);
    let refuse = |why: OpensmRefusal| EngineError::refuse(engine, Refusal::own(why));
    Ok(match engine {
        Engine::Updn => use_it(&ranked::updn(subnet, settings, &minhop).map_err(refuse)?),
        Engine::Dnup => use_it(&ranked::dnup(subnet, settings, &minhop).map_err(refuse)?),
        _ => use_it(&minhop),
    })
}
