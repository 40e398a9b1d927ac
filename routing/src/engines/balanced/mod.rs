//! minhop, updn, dnup and dor, balanced over the whole fabric.
//!
//! 1. [`ways`]: by which ports of each xbar a legal shortest way leads on to each destination xbar, by one [`search`] for 64
//!    destinations, a bit each.
//! 2. [`chains`]: by which xbars each host's routes come in, so that channels serve as few hosts as they can.
//! 3. [`sweep`]: each destination's entries, near to far along its chains, then far to near by the loads; once for all
//!    xbars that are [`alike`].
//! 4. [`fill`]: all destinations in rounds, parts of a round in parallel. If loads decided anything, all is
//!    chosen once more, now that the loads are known.
//! 5. [`kept`]: right entries of tables that were in force stay; [`runs`] tests them a row at a time, and for [`twins`] by
//!    the same ways, and [`own_rows`] while the ways are searched.
//!
//! The shape of rounds depends on the fabric only, so the tables do not depend on the number of threads.

mod alike;
mod chains;
mod connect;
mod dimension;
mod fill;
mod kept;
mod mend;
mod notes;
mod own_rows;
mod ports;
pub(super) mod ranks;
mod runs;
mod same_ways;
mod search;
mod spread;
mod sweep;
#[cfg(test)]
mod tests;
mod turns;
mod twins;
mod ways;
mod weighted;

use super::services::{self, Others};
use super::{Engine, EngineError, Refusal, Routing, Settings, in_force};
use crate::{Subnet, Tiers};
use alike::Alike;
use chains::Chains;
use dimension::FirstPort;
use fill::Filler;
use kept::Previous;
use ports::XbarPorts;
use ranks::{Order, Roots, find_roots};
pub(super) use same_ways::has_minhop_the_ways_of_updn;

/// Computes the tables of minhop, updn, dnup or dor.
///
/// # Errors
/// If updn finds no roots.
pub(super) fn compute(engine: Engine, subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
    compute_in_order(engine, subnet, settings).map(|(routing, _)| routing)
}

/// Computes the tables of updn or dnup. Adds the entries by which xbars above the leaves are reached by their own
/// addresses where no legal way leads there.
///
/// # Errors
/// As [`compute`].
pub(super) fn compute_with_xbars(
    engine: Engine,
    subnet: &Subnet,
    settings: &Settings,
) -> Result<Routing, EngineError> {
    let (mut routing, order) = compute_in_order(engine, subnet, settings)?;
    let tiers = Tiers::of(&subnet.topology);
    if let Some(order) = order.filter(|_| tiers.served().is_empty()) {
        let in_force = in_force::tables(settings);
        // Routes that connect roots go down and then up.
        let others = if settings.connect_roots { Others::InAnyOrder } else { Others::InOrder };
        services::reach_xbars(subnet, &tiers, others, || order, in_force, &mut routing.tables);
    }
    Ok(routing)
}

/// The tables, and the order to which their routes keep, if they keep to one.
fn compute_in_order(
    engine: Engine,
    subnet: &Subnet,
    settings: &Settings,
) -> Result<(Routing, Option<Order>), EngineError> {
    let topology = &subnet.topology;
    let mut notes = notes::taken_otherwise(settings);
    let tiers = Tiers::of(topology);
    let mut roots = Roots::none();
    if engine == Engine::Updn {
        roots = find_roots(subnet, settings, &tiers)
            .map_err(|why| EngineError::refuse(engine, Refusal::own(why)))?;
        notes.extend(roots.note.take());
    }
    let order = Order::of(engine, subnet, settings, &tiers, &roots);
    if order.is_some() {
        notes.extend(services::note(topology, &tiers));
    }
    let previous = in_force::tables(settings).map(Previous::new);
    let ports = XbarPorts::new(topology, settings, order.as_ref());
    let first_port = (engine == Engine::Dor).then(|| FirstPort::new(&ports, settings));
    let chains = Chains::new(subnet, settings, &ports);
    let alike = Alike::new(topology, &ports);
    let filler = Filler::new(subnet, &ports, &chains, &alike, first_port.as_ref(), settings.scatter);
    let mut tables = filler.tables(previous.as_ref());
    if let Some(order) = order.as_ref().filter(|_| settings.connect_roots) {
        let apart = connect::connect(subnet, order, &roots.xbars, &mut tables);
        if apart > 0 {
            notes.push(format!("{apart} pairs of roots cannot be connected without a risk of deadlock"));
        }
    }
    Ok((Routing { notes, ..Routing::in_one_layer(tables) }, order))
}
