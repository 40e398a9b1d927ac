//! Why a fabric is not served.

use thiserror::Error;

use super::recognition::NoTorus;
use crate::engines::Refusal;
use mapper_fabric::names::Names;
use mapper_fabric::wording::plural;

/// Why a fabric is no torus that can be served.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum TorusRefusal {
    /// It is no torus or mesh, or not the one that is stated.
    #[error("{}{}", .written_at.iter().map(|at| format!("{at}: ")).collect::<String>(), .error.describe(names))]
    NoTorus {
        /// What does not fit.
        error: NoTorus,
        /// What people call the fabric's nodes.
        names: Box<Names>,
        /// Where the statement that does not fit is written, such as `t.toml:3`.
        written_at: Option<String>,
    },
    /// No frame could follow the tables of these regions. Given are their sizes, the dimension that they cut,
    /// and the dimension before it in which they are wider than one router.
    #[error(
        "regions of {} x {} x {} cannot be routed as one: frames that come in by {cut}- may not go along {wide} any \
         more; make regions as long as the fabric along {cut}, or 1 long along {wide}",
        size[0], size[1], size[2]
    )]
    Regions { size: [u8; 3], cut: &'static str, wide: &'static str },
    /// The rules know no way between some pairs.
    #[error("{explanation}")]
    Unconnected {
        /// Which pair, and which missing links are to blame.
        explanation: String,
    },
    /// Its routes need too many layers.
    #[error("its routes need more than the {most} layers that may be used; allow more (--max-layers)")]
    TooManyLayers { most: u8 },
    /// Routes that must share a layer close a circle of these channels.
    #[error("routes could wait for each other in a circle: {}", channels.join(", "))]
    Circle { channels: Vec<String> },
    /// It is not served, whichever axes are called X, Y and Z.
    #[error("{as_named}; nor would {} for the axes do", plural(*others, "other name"))]
    WhateverAxes {
        /// Why it is not served with the axes as they are.
        as_named: Box<Refusal>,
        /// How many other names were tried.
        others: usize,
    },
}
