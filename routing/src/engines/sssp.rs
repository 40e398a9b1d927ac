//! The engine `sssp`: shortest routes, a tree to each address, balanced over the whole fabric.
//!
//! For one address after another a tree of shortest routes is grown along the least loaded channels, and what it
//! puts on each channel counts when the next is grown (Hoefler, Schneider, Lumsdaine: "Optimized Routing for
//! Large-Scale InfiniBand Networks", 2009). All is in one layer: where that closes a circle, it does not pass
//! the proof, and dfsssp is what serves.

use super::algorithm::Algorithm;
use super::shortest::{Choice, ShortestTrees};
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
        &[]
    }

    fn compute(&self, subnet: &Subnet, _: &Settings) -> Result<Routing, EngineError> {
        Ok(Routing::in_one_layer(ShortestTrees::new(subnet, Choice::LeastLoadedByHost).trees.tables(subnet)))
    }
}
