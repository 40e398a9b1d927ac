//! The engine `updn`: shortest routes that go up to a root and then down.

use super::algorithm::Algorithm;
use super::{Engine, EngineError, Routing, Setting, Settings, balanced, opensm};
use crate::Subnet;

/// Shortest routes that go up to a root and then down.
pub(super) struct Updn;

impl Algorithm for Updn {
    fn name(&self) -> &'static str {
        "updn"
    }

    fn summary(&self) -> &'static str {
        "shortest routes up to a root and down again; no credit loops"
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
                Setting::Roots,
                Setting::Ids,
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
                Setting::Roots,
                Setting::Ids,
                Setting::ConnectRoots,
            ]
        }
    }

    fn compute(&self, subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
        if opensm::is_wanted(settings) {
            opensm::compute(Engine::Updn, subnet, settings)
        } else {
            balanced::compute_with_xbars(Engine::Updn, subnet, settings)
        }
    }
}
