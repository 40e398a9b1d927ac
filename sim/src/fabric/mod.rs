//! The physical fabric: xbars, cables and interfaces, and their faults.
//!
//! A [`Plant`] is built from a description and then changed by faults: cables are cut, mended,
//! silenced and moved, xbars lose power or are swapped, interfaces are removed. A frame's whole
//! way is computed when it is sent ([`Plant::walk`]), so a frame costs one event.

mod change;
mod expected;
mod parts;
mod plant;
mod timing;
mod walk;

pub use change::ChangeError;
pub use parts::Parts;
pub use plant::{CableState, Plant, PlantError, PlantNode, PlantPort, Xbars};
pub use timing::{Noise, Timing};
pub use walk::{Fate, Loss};
