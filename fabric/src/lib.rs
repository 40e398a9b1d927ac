//! Makes fabrics from a *spec*, the name of a shape and its measures: `clos:hosts=128,ports=16`.
//!
//! The shapes are those of [`SHAPES`]:
//!
//! ```text
#![doc = include_str!("shapes.txt")]
//! ```
//!
//! Ports count from 1. Hosts are named `h1`, `h2`, and so on, and have the addresses
//! `Mac::from_position(1)`, and so on. All xbars are tagged; an xbar's tag follows from its index.

mod builder;
mod clos;
mod cluster;
mod dragonfly;
mod grid;
mod identity;
mod irregular;
pub mod machine;
pub mod names;
mod now;
pub mod parts;
mod random;
mod service;
pub mod shape;
mod spec;
mod tree;
pub mod wording;

pub use identity::{INVENTED_TAGS, identity};
pub use spec::SpecError;

use mapper_proto::map::Fabric;

use spec::Spec;

/// All shapes and their keys, for people.
pub const SHAPES: &str = include_str!("shapes.txt");

/// Most xbars in a generated fabric: as many as a map can name.
pub const MAX_XBARS: u64 = 65_535;
/// Most hosts in a generated fabric.
pub const MAX_HOSTS: u64 = 200_000;
/// Most ports of an xbar.
pub const MAX_PORTS: u64 = 255;

/// What makes the fabrics of one kind.
type Generator = fn(&Spec<'_>) -> Result<Fabric, SpecError>;

/// Every kind of fabric and what makes it.
const KINDS: [(&str, Generator); 11] = [
    ("clos", clos::clos),
    ("cluster", cluster::cluster),
    ("xgft", tree::xgft),
    ("irregular", irregular::irregular),
    ("torus", grid::torus),
    ("mesh", grid::mesh),
    ("ring", grid::ring),
    ("hypercube", grid::hypercube),
    ("dragonfly", dragonfly::dragonfly),
    ("random", random::random),
    ("now", now::now),
];

/// Whether `argument` begins like a spec: with a kind of fabric and a colon, or its end.
pub fn is_spec(argument: &str) -> bool {
    let kind = argument.split_once(':').map_or(argument, |(kind, _)| kind);
    KINDS.iter().any(|&(name, _)| name == kind)
}

/// The fabric that a spec describes. The same spec gives the same fabric.
///
/// # Errors
/// If the kind or a key is unknown, a key is missing or its value is out of range, or no such
/// fabric can be. The error names the key and what was expected.
pub fn generate(spec: &str) -> Result<Fabric, SpecError> {
    let (kind, keys) = spec.trim().split_once(':').unwrap_or((spec.trim(), ""));
    let (name, generator) = KINDS
        .iter()
        .find(|&&(name, _)| name == kind)
        .ok_or_else(|| SpecError::unknown_kind(kind, KINDS.iter().map(|&(name, _)| name)))?;
    generator(&Spec::parse(name, keys)?)
}

#[cfg(test)]
mod tests;
