//! `mapper view`: what serves a page that shows a fabric in a browser.
//!
//! ```text
//! file, simulation, agents --Fabric, Moment--> Feed --JSON--> server --events--> page
//!                                                |              ^
//!                                   Scene, with its layout      +-- routes, loads, cuts: Consequences
//! ```
//!
//! - [`source`]: where what is shown comes from.
//! - [`feed`]: what was told, kept within bounds for pages that come later.
//! - [`server`]: HTTP, and who is answered.
//!
//! The page itself, and the scene that it draws, are in `mapper_formats::page`, from which files are written too. Routes and loads by any
//! engine, and what cut cables change, come from `crate::consequences`.

pub(crate) mod feed;
pub(crate) mod server;
pub(crate) mod source;
