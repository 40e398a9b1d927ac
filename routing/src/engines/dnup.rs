//! The engine `dnup`: shortest routes that go down and then up.

use thiserror::Error;

use super::algorithm::Algorithm;
use super::shared::Shared;
use super::{Engine, EngineError, Refusal, Routing, Setting, Settings, balanced, opensm};
use crate::tables::Tables;
use crate::{Subnet, Topology};

/// Shortest routes that go down and then up.
pub(super) struct Dnup;

impl Algorithm for Dnup {
    fn name(&self) -> &'static str {
        "dnup"
    }

    fn summary(&self) -> &'static str {
        "shortest routes down and up again: the mirror image of updn"
    }

    fn obeys(&self, settings: &Settings) -> &'static [Setting] {
        if opensm::is_wanted(settings) {
            &[
                Setting::Balance,
                Setting::Previous,
                Setting::OrderFirst,
                Setting::UncountedPorts,
                Setting::Scatter,
                Setting::PortOrder,
                Setting::PortShifting,
                Setting::ConnectRoots,
            ]
        } else {
            &[
                Setting::Balance,
                Setting::Previous,
                Setting::OrderFirst,
                Setting::UncountedPorts,
                Setting::HopWeights,
                Setting::Scatter,
                Setting::Ids,
            ]
        }
    }

    fn compute(&self, subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
        if opensm::is_wanted(settings) {
            opensm::compute(Engine::Dnup, subnet, settings)
        } else {
            let routing = balanced::compute_with_xbars(Engine::Dnup, subnet, settings)?;
            match first_apart(subnet, &routing.tables) {
                None => Ok(routing),
                Some(apart) => Err(EngineError::refuse(Engine::Dnup, Refusal::own(apart))),
            }
        }
    }

    fn compute_sharing(
        &self,
        subnet: &Subnet,
        settings: &Settings,
        shared: &Shared<'_>,
    ) -> Result<Routing, EngineError> {
        shared.dnup(settings).cloned().unwrap_or_else(|| self.compute(subnet, settings))
    }
}

/// Two xbars with hosts that cables join, but no way down and then up.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "no way leads from {from} down to an xbar from which {to} is reached by going up; use nue, which needs no tiers, or \
     name ids (--ids-guid-file) in an order by which they meet"
)]
struct Apart {
    from: String,
    to: String,
}

/// The first two xbars with hosts between which there is no route.
fn first_apart(subnet: &Subnet, tables: &Tables) -> Option<Apart> {
    let topology: &Topology = &subnet.topology;
    let leaves: Vec<u32> = (0..topology.xbar_count() as u32).filter(|&xbar| subnet.is_leaf(xbar)).collect();
    leaves.iter().find_map(|&to| {
        let row = tables.of_slot(subnet.destinations.host_slots_of(to).next()?);
        let lacks = |&&from: &&u32| {
            row[from as usize] == Tables::NONE && topology.component(from) == topology.component(to)
        };
        let from = *leaves.iter().find(lacks)?;
        Some(Apart { from: subnet.names.xbar(from).to_string(), to: subnet.names.xbar(to).to_string() })
    })
}
