//! The engine `sssp`: shortest routes, a tree to each address, balanced over the whole fabric.
//!
//! For one address after another a tree of shortest routes is grown along the least loaded channels, and the
//! load that it puts on each channel counts when the next tree is grown (Hoefler, Schneider, Lumsdaine:
//! "Optimized Routing for Large-Scale InfiniBand Networks", 2009). All routes are in one layer. If they close
//! a circle, they do not pass the proof, and dfsssp serves in place of sssp. If tables were in force, all
//! their entries that lead on along a shortest way stay, unless they close a circle.

use super::algorithm::Algorithm;
use super::shared::Shared;
use super::shortest;
use super::{EngineError, Routing, Setting, Settings};
use crate::Subnet;

/// Shortest routes to each address along the channels that are least loaded so far.
pub(super) struct Sssp;

impl Algorithm for Sssp {
    fn name(&self) -> &'static str {
        "sssp"
    }

    fn summary(&self) -> &'static str {
        "shortest routes, each address by the least loaded channels; may have credit loops"
    }

    fn obeys(&self, _: &Settings) -> &'static [Setting] {
        &[Setting::Previous]
    }

    fn compute(&self, subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
        self.compute_sharing(subnet, settings, &Shared::new(subnet, settings))
    }

    fn compute_sharing(
        &self,
        subnet: &Subnet,
        settings: &Settings,
        shared: &Shared<'_>,
    ) -> Result<Routing, EngineError> {
        let mut notes = Vec::new();
        let kept = shortest::serve_kept(subnet, settings, shared, &mut notes, |_| None);
        let anew = || shared.by_host().trees.tables(subnet);
        let tables = kept.map_or_else(anew, |routing| routing.tables);
        Ok(Routing { notes, ..Routing::in_one_layer(tables) })
    }
}
