//! Direction-order routing of tori and meshes that may have lost cables and xbars.
//!
//! 1. A [`Grid`] is a torus or mesh as coordinates: where each xbar stands, which channels lead which way.
//!    [`recognise`] finds it in a map, [`TorusStatement`] states what the map leaves open.
//! 2. `rules` choose a heading for each router and destination, and go round what is broken. Each
//!    destination's `tree` is traced; where routes do not arrive, a `search` takes the rules' place. All
//!    `placements` of the datelines are tried until one connects all pairs, and then other names for the
//!    `axes` (in large grids the likeliest only).
//! 3. `layers` are assigned by the datelines that a route crosses, by its `corners`, or route by route
//!    (`packing`): whichever takes fewest.
//! 4. Headings become `ports`: parallel cables share the destinations.

mod axes;
mod blame;
mod corners;
mod defaults;
mod dependencies;
mod engine;
#[cfg(test)]
mod fabrics;
mod grid;
mod heading;
mod lattice;
mod layer;
mod layers;
mod missing;
mod packing;
mod placements;
mod ports;
mod quick;
mod reach;
mod recognition;
mod refusal;
mod regions;
mod rules;
mod search;
mod serve;
mod statement;
#[cfg(test)]
mod tests;
mod tree;
mod trees;

pub use axes::under_other_names;
pub(super) use engine::Torus;
pub use engine::{compute, compute_on};
pub use grid::{Dimension, Grid, GridError, Sense};
pub use missing::MissingCable;
pub use recognition::{NoTorus, recognise};
pub use statement::{BadStatement, TorusStatement};
