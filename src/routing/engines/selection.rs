//! Tries engines in turn, and lets no tables out that are not proved.

use std::time::Instant;

use thiserror::Error;

use super::{Engine, Routing, Settings};
use crate::routing::Subnet;
use crate::routing::proof::{ProofRules, TablesProof, prove_tables};

/// An engine that was tried and did not serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// The engine.
    pub engine: Engine,
    /// Why it did not serve.
    pub why_not: String,
}

/// Tables, and how they came to be.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The engine that served.
    pub engine: Engine,
    /// Those that were tried before it.
    pub tried: Vec<Tried>,
    /// What it computed.
    pub routing: Routing,
    /// What was proved of that. It holds, unless the caller asked for unproved tables.
    pub proof: TablesProof,
    /// How long the engine took, in milliseconds.
    pub compute_ms: f64,
}

/// No engine served.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no engine serves this fabric: {}", list(.tried))]
pub struct NotRouted {
    /// All that were tried, and why each did not serve.
    pub tried: Vec<Tried>,
}

fn list(tried: &[Tried]) -> String {
    let each = |tried: &Tried| format!("{}: {}", tried.engine, tried.why_not);
    tried.iter().map(each).collect::<Vec<_>>().join("; ")
}

/// The tables of the first engine that computes some which pass the proof.
///
/// With `unproved`, the first engine that computes any serves; the proof says what is wrong with them.
///
/// # Errors
/// If none serves.
pub fn select(
    subnet: &Subnet,
    engines: &[Engine],
    settings: &Settings,
    unproved: bool,
) -> Result<Selection, NotRouted> {
    let mut tried = Vec::new();
    for &engine in engines {
        let started = Instant::now();
        let computed = engine.compute(subnet, settings);
        let compute_ms = started.elapsed().as_secs_f64() * 1e3;
        let why_not = match computed {
            Err(error) => error.why,
            Ok(routing) => {
                let rules =
                    ProofRules { max_hops: settings.max_hops, xbar_destinations: settings.xbar_destinations };
                let proof = prove_tables(subnet, &routing.tables, &routing.layers, &rules);
                if unproved || proof.holds() {
                    return Ok(Selection { engine, tried, routing, proof, compute_ms });
                }
                proof.summary()
            }
        };
        tried.push(Tried { engine, why_not });
    }
    Err(NotRouted { tried })
}
