//! What a change of a fabric costs: who is cut off, what becomes of routes, loads and tables.
//!
//! - [`change`]: cables that are cut, nodes that are removed, cables that are added, and the fabric after that.
//! - [`routed`]: what routes an engine gives a fabric, before or after a change.
//! - [`entries`]: which entries of tables are others after it.
//! - [`parting`]: which hosts a change parts from the others.
//! - [`single`]: every single cable or xbar that may fail, the worst first.
//!
//! Nothing here does I/O. The page of `mapper view` and `mapper what-if` stand on it.

pub(crate) mod change;
pub(crate) mod entries;
pub(crate) mod parting;
pub(crate) mod routed;
pub(crate) mod single;

pub(crate) use change::Change;
pub(crate) use routed::{By, Routed};
