//! Tori and meshes that may have lost cables and xbars.
//!
//! 1. A [`Grid`] is a torus or mesh as coordinates: where each xbar stands, which channels lead which way.
//! 2. [`recognise`] finds it in a map, [`TorusStatement`] states what the map leaves open.

mod grid;
mod missing;
mod recognition;
mod statement;

pub use grid::{Dimension, Grid, GridError, Way};
pub use missing::MissingCable;
pub use recognition::{NoTorus, recognise};
pub use statement::{BadStatement, TorusStatement};
