//! The engines: how routes are chosen.
//!
//! [`dispersive`] computes one host's source routes, as every agent does. The others compute forwarding
//! tables for a whole [`Subnet`], each in a module of its own behind [`Engine::compute`].
//! [`select`] tries several, and lets nothing out that is not proved.

mod acyclic;
mod algorithm;
mod balanced;
pub mod best;
mod filling;
mod first_fit;
mod in_force;
mod layer;
mod opensm;
mod pairs;
mod port_runs;
mod refusal;
mod selection;
mod services;
mod setting;
mod settings;
mod shared;
mod shortest;
#[cfg(test)]
mod tests;
mod trees;
mod weighing;

pub use opensm::{HopMatrix, hop_matrix};
pub use refusal::{EngineError, Instead, OwnReason, Refusal, TooManyLayers, WhyNotServed};
pub use selection::{Answer, NotRouted, Proof, Selection, SourceSelection, Tried, answer, select};
pub use setting::Setting;
pub use settings::{Balance, Settings, SubnetNode};

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::Subnet;
use super::tables::{Layers, Tables};
use algorithm::Algorithm;
use shared::Shared;

/// Makes the modules of the engines and [`Engine`] from one list. A line names a module, the type there that
/// implements [`Algorithm`], whose name is also that of the variant, and the doc comment of the variant.
macro_rules! engines {
    ($($visible:vis mod $module:ident: $Engine:ident, $doc:literal;)*) => {
        $($visible mod $module;)*

        /// A way to compute forwarding tables.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Engine {
            $(#[doc = $doc] $Engine,)*
        }

        impl Engine {
            /// All engines.
            pub const ALL: [Self; [$(Self::$Engine),*].len()] = [$(Self::$Engine),*];

            fn algorithm(self) -> &'static dyn Algorithm {
                match self {
                    $(Self::$Engine => &$module::$Engine,)*
                }
            }
        }
    };
}

// `cargo fmt` does not find modules that a macro declares: scripts/format does.
engines! {
    mod minhop: Minhop, "Shortest routes, balanced.";
    mod updn: Updn, "Shortest routes that go up to a root and then down.";
    mod dnup: Dnup, "Shortest routes that go down and then up.";
    pub mod ftree: Ftree, "Fat trees: every shift of the hosts without congestion.";
    mod lash: Lash, "Shortest routes in layers, each free of deadlock.";
    mod sssp: Sssp, "Shortest routes, each address by the least loaded channels.";
    mod dfsssp: Dfsssp, "The routes of sssp in layers, each free of deadlock.";
    mod dmodc: Dmodc, "Fat trees that may have lost parts, in closed form.";
    mod nue: Nue, "Any fabric, in one layer or as many as are allowed.";
    mod dor: Dor, "Dimension order: the first port of the shortest ones.";
    pub mod torus: Torus, "Direction order: tori and meshes that may have lost cables.";
    mod file: File, "Tables from a file.";
    pub mod dispersive: Dispersive, "The agents' own source routes, several a pair.";
}

impl Engine {
    /// The name that a user gives.
    pub fn name(self) -> &'static str {
        self.algorithm().name()
    }

    /// What it is for, in less than a line.
    pub fn summary(self) -> &'static str {
        self.algorithm().summary()
    }

    /// The settings that decide what it computes, when it is given these.
    pub fn obeys(self, settings: &Settings) -> &'static [Setting] {
        self.algorithm().obeys(settings)
    }

    /// What a user should know of settings that have no effect on it.
    pub fn without_effect(self, settings: &Settings) -> Vec<String> {
        setting::without_effect(self, settings)
    }

    /// Checks what can be seen without computing anything: whether it takes these settings, and a fabric of this
    /// size and addresses.
    ///
    /// # Errors
    /// If it does not, and so [`Self::compute`] would fail.
    pub fn check(self, subnet: &Subnet, settings: &Settings) -> Result<(), EngineError> {
        let obeyed = settings.only(self.obeys(settings));
        setting::check(self, settings)
            .and_then(|()| self.algorithm().check(subnet, &obeyed))
            .map_err(|why| EngineError::refuse(self, why))
    }

    /// Computes tables. They are not proved yet: [`select`] does that. Settings that the engine does not obey
    /// are as if nobody had set them, and so are previous tables of another size than this subnet's, which a note tells.
    ///
    /// # Errors
    /// If the engine cannot serve this fabric, or not with these settings.
    pub fn compute(self, subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
        self.compute_sharing(subnet, settings, &Shared::new(subnet, settings))
    }

    /// The same beside other engines, with what they share.
    fn compute_sharing(
        self,
        subnet: &Subnet,
        settings: &Settings,
        shared: &Shared<'_>,
    ) -> Result<Routing, EngineError> {
        self.check(subnet, settings)?;
        let mut obeyed = settings.only(self.obeys(settings));
        let note = in_force::leave_out_others(subnet, &mut obeyed);
        let mut routing = self.algorithm().compute_sharing(subnet, &obeyed, shared)?;
        routing.notes.extend(note);
        Ok(routing)
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no engine's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{name}` is no engine; expected {}", names())]
pub struct UnknownEngine {
    name: String,
}

fn names() -> String {
    Engine::ALL.map(Engine::name).join(", ")
}

impl FromStr for Engine {
    type Err = UnknownEngine;

    fn from_str(name: &str) -> Result<Self, UnknownEngine> {
        let found = Self::ALL.into_iter().find(|engine| engine.name() == name);
        found.ok_or_else(|| UnknownEngine { name: name.to_owned() })
    }
}

/// What an engine computed.
#[derive(Debug, Clone)]
pub struct Routing {
    /// Out ports, by xbar and destination.
    pub tables: Tables,
    /// The layer of each pair.
    pub layers: Layers,
    /// What a user should know: guesses that were made, and values of settings that are taken otherwise than
    /// they were given.
    pub notes: Vec<String>,
}

impl Routing {
    /// Tables in one layer.
    pub fn in_one_layer(tables: Tables) -> Self {
        Self { tables, layers: Layers::single(), notes: Vec::new() }
    }
}
