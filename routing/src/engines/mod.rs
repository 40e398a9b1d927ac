//! The engines: how routes are chosen.
//!
//! [`dispersive`] computes one host's source routes, as every agent does. The others compute forwarding
//! tables for a whole [`Subnet`], each in a module of its own behind [`Engine::compute`].
//! [`select`] tries several, and lets nothing out that is not proved.

mod balanced;
pub mod dispersive;
mod file;
pub mod ftree;
mod lash;
mod opensm;
mod selection;
mod settings;
pub mod torus;

pub use opensm::{HopMatrix, hop_matrix};
pub use selection::{Answer, NotRouted, Selection, SourceSelection, Tried, answer, select};
pub use settings::{Balance, Settings, SubnetNode};

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::Subnet;
use super::tables::{Layers, Tables};

/// A way to compute forwarding tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Engine {
    /// Shortest routes, balanced.
    Minhop,
    /// Shortest routes that go up to a root and then down.
    Updn,
    /// Shortest routes that go down and then up.
    Dnup,
    /// Fat trees: every shift of the hosts without congestion.
    Ftree,
    /// Shortest routes in layers, each free of deadlock.
    Lash,
    /// Dimension order: the first port of the shortest ones.
    Dor,
    /// Direction order: tori and meshes that may have lost cables.
    Torus,
    /// Tables from a file.
    File,
    /// The agents' own source routes, several a pair.
    Dispersive,
}

impl Engine {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Minhop,
        Self::Updn,
        Self::Dnup,
        Self::Ftree,
        Self::Lash,
        Self::Dor,
        Self::Torus,
        Self::File,
        Self::Dispersive,
    ];

    /// The name that a user gives.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Minhop => "minhop",
            Self::Updn => "updn",
            Self::Dnup => "dnup",
            Self::Ftree => "ftree",
            Self::Lash => "lash",
            Self::Dor => "dor",
            Self::Torus => "torus",
            Self::File => "file",
            Self::Dispersive => "dispersive",
        }
    }

    /// Computes tables. They are not proved yet: [`select`] does that.
    ///
    /// # Errors
    /// If the engine cannot serve this fabric, or not with these settings.
    pub fn compute(self, subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError> {
        if opensm::serves(self, settings) {
            return opensm::compute(self, subnet, settings);
        }
        match self {
            Self::Minhop | Self::Updn | Self::Dnup | Self::Dor => balanced::compute(self, subnet, settings),
            Self::Ftree => ftree::compute(subnet, settings),
            Self::Lash => lash::compute(subnet, settings),
            Self::Torus => torus::compute(subnet, settings),
            Self::File => file::compute(subnet, settings),
            Self::Dispersive => {
                Err(EngineError::refuse(self, "it computes source routes, and no forwarding tables"))
            }
        }
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
    /// What a user should know: guesses that were made, settings without effect here.
    pub notes: Vec<String>,
}

impl Routing {
    /// Tables in one layer.
    pub fn in_one_layer(tables: Tables) -> Self {
        Self { tables, layers: Layers::single(), notes: Vec::new() }
    }
}

/// Why an engine does not serve.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{engine} cannot serve: {why}")]
pub struct EngineError {
    /// The engine.
    pub engine: Engine,
    /// What is wrong with the fabric or the settings, and what would help.
    pub why: String,
}

impl EngineError {
    /// An engine refuses, for this reason.
    pub fn refuse(engine: Engine, why: impl Into<String>) -> Self {
        Self { engine, why: why.into() }
    }
}
