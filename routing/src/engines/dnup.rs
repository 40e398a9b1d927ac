//! The engine `dnup`: shortest routes that go down and then up.

use super::algorithm::Algorithm;
use super::{Engine, EngineError, Routing, Setting, Settings, balanced, opensm};
use crate::Subnet;

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
            balanced::compute(Engine::Dnup, subnet, settings)
        }
    }
}
