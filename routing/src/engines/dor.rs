//! The engine `dor`: dimension order.

use super::algorithm::Algorithm;
use super::{Engine, EngineError, Routing, Setting, Settings, balanced, opensm};
use crate::Subnet;

/// Dimension order: the first port of the shortest ones.
pub(super) struct Dor;

impl Algorithm for Dor {
    fn name(&self) -> &'static str {
        "dor"
    }

    fn summary(&self) -> &'static str {
        "dimension order: the lowest port of the shortest ways, for meshes and hypercubes"
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
                Setting::PortOrder,
                Setting::Hops,
            ]
        }
    }

    fn compute(&self, subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
        if opensm::is_wanted(settings) {
            opensm::compute(Engine::Dor, subnet, settings)
        } else {
            balanced::compute(Engine::Dor, subnet, settings)
        }
    }
}
