//! What several engines begin with: computed once for all that are tried on a fabric.

use std::sync::OnceLock;

use super::shortest::{Choice, KeptTrees, ShortestTrees};
use super::{Engine, EngineError, Routing, Settings};
use crate::{Subnet, Tables};

/// What sssp, lash and dfsssp begin with, and nue after dnup. It belongs to a subnet and to the settings that engines are tried with; whoever is
/// the first to need a part of it computes that, and others wait.
///
/// Nothing in here is computed in parallel: a thread that waits for parts of its own work takes up other work meanwhile, which
/// may be an engine that waits for that very thread.
pub(super) struct Shared<'a> {
    subnet: &'a Subnet,
    xbar_destinations: bool,
    by_host: OnceLock<ShortestTrees>,
    are_by_host_in_one_layer: OnceLock<bool>,
    by_xbar: OnceLock<ShortestTrees>,
    kept: OnceLock<KeptTrees>,
    dnup: OnceLock<Result<Routing, EngineError>>,
}

impl<'a> Shared<'a> {
    /// Nothing is computed yet.
    pub(super) fn new(subnet: &'a Subnet, settings: &Settings) -> Self {
        Self {
            subnet,
            xbar_destinations: settings.xbar_destinations,
            by_host: OnceLock::new(),
            are_by_host_in_one_layer: OnceLock::new(),
            by_xbar: OnceLock::new(),
            kept: OnceLock::new(),
            dnup: OnceLock::new(),
        }
    }

    /// Has dnup compute, in parallel and so before other engines begin, unless some of the settings decide what comes of it.
    pub(super) fn begin_with_dnup(&self, settings: &Settings) {
        if settings.only(Engine::Dnup.obeys(settings)) == self.plain() {
            self.dnup.get_or_init(|| Engine::Dnup.compute(self.subnet, &self.plain()));
        }
    }

    /// What dnup computes by an engine's settings, if that is known.
    pub(super) fn dnup(&self, settings: &Settings) -> Option<&Result<Routing, EngineError>> {
        self.dnup.get().filter(|_| *settings == self.plain())
    }

    /// Settings of which nobody set any, but whether frames for xbars count.
    fn plain(&self) -> Settings {
        Settings { xbar_destinations: self.xbar_destinations, ..Settings::default() }
    }

    /// A tree of least loaded shortest routes to each address of a host.
    pub(super) fn by_host(&self) -> &ShortestTrees {
        self.by_host.get_or_init(|| ShortestTrees::new(self.subnet, Choice::LeastLoadedByHost))
    }

    /// Whether all frames that go along the trees of [`Self::by_host`] can do so in one layer.
    pub(super) fn are_by_host_in_one_layer(&self) -> bool {
        let trees = &self.by_host().trees;
        *self
            .are_by_host_in_one_layer
            .get_or_init(|| trees.fit_one_layer(self.subnet, self.xbar_destinations))
    }

    /// A tree of least loaded shortest routes to each xbar.
    pub(super) fn by_xbar(&self) -> &ShortestTrees {
        self.by_xbar.get_or_init(|| ShortestTrees::new(self.subnet, Choice::LeastLoaded))
    }

    /// Shortest trees that keep all that leads on of the tables that were in force, which are the same for all engines.
    pub(super) fn kept(&self, in_force: &Tables) -> &KeptTrees {
        self.kept.get_or_init(|| KeptTrees::grow(self.subnet, in_force, self.xbar_destinations))
    }
}
