//! The engine `sssp`: shortest routes, a tree to each address, balanced over the whole fabric.
//!
//! For one address after another a tree of shortest routes is grown along the least loaded channels, and what it
//! puts on each channel counts when the next is grown (Hoefler, Schneider, Lumsdaine: "Optimized Routing for
//! Large-Scale InfiniBand Networks", 2009). All is in one layer: where that closes a circle, it does not pass
//! the proof, and dfsssp is what serves. Of tables that were in force all that leads on along a shortest way stays,
//! unless that closes a circle.

use super::algorithm::Algorithm;
use super::shared::Shared;
use super::shortest;
use super::{EngineError, Routing, Setting, Settings};
use crate::Subnet;

/// Shortest routes, each address by the channels that are least loaded so far.
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
