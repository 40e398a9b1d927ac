//! The engine `minhop`: shortest routes, balanced.

use super::algorithm::Algorithm;
use super::shared::Shared;
use super::{Engine, EngineError, Routing, Setting, Settings, balanced, opensm};
use crate::{Subnet, Tiers};

/// Shortest routes, balanced.
pub(super) struct Minhop;

impl Algorithm for Minhop {
    fn name(&self) -> &'static str {
        "minhop"
    }

    fn summary(&self) -> &'static str {
        "shortest routes, balanced; may have credit loops where the fabric has circles"
    }

    fn obeys(&self, settings: &Settings) -> &'static [Setting] {
        if opensm::is_wanted(settings) {
            &[
                Setting::Balance,
                Setting::Previous,
                Setting::OrderFirst,
                Setting::UncountedPorts,
                Setting::HopWeights,
                Setting::Scatter,
                Setting::PortOrder,
                Setting::PortShifting,
                Setting::Hops,
            ]
        } else {
            &[
                Setting::Balance,
                Setting::Previous,
                Setting::OrderFirst,
                Setting::UncountedPorts,
                Setting::HopWeights,
                Setting::Scatter,
                Setting::Hops,
            ]
        }
    }

    fn compute(&self, subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
        if opensm::is_wanted(settings) {
            opensm::compute(Engine::Minhop, subnet, settings)
        } else {
            balanced::compute(Engine::Minhop, subnet, settings)
        }
    }

    fn compute_sharing(
        &self,
        subnet: &Subnet,
        settings: &Settings,
        shared: &Shared<'_>,
    ) -> Result<Routing, EngineError> {
        match shared.dnup(settings) {
            // Where there are service adapters above the leaves, its routes keep to the order of dnup.
            Some(Ok(by_dnup)) if !Tiers::of(&subnet.topology).served().is_empty() => Ok(by_dnup.clone()),
            _ => self.compute(subnet, settings),
        }
    }
}
