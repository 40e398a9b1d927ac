//! Tori and meshes that may have lost cables and xbars.
//!
//! 1. A [`Grid`] is a torus or mesh as coordinates: where each xbar stands, which channels lead which way.

mod grid;

pub use grid::{Dimension, Grid, GridError, Way};
