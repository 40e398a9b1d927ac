//! `mapper view`: a page that shows a fabric in a browser, and what serves it.
//!
//! ```text
//! file, simulation, agents --Fabric, Moment--> Feed --JSON--> server --events--> page
//!                                                |              ^
//!                                   Scene, with its layout      +-- routes, loads, cuts: Consequences
//! ```
//!
//! - [`scene`]: a fabric as the page draws it, with its layout.
//! - [`page`]: HTML, style and script as one file, with a fabric in it or without.
//! - [`source`]: where what is shown comes from.
//! - [`feed`]: what was told, kept within bounds for pages that come later.
//! - [`server`]: HTTP, and who is answered.
//!
//! Routes and loads by any engine, and what cut cables change, come from `crate::consequences`.

pub(crate) mod feed;
pub(crate) mod page;
pub(crate) mod scene;
pub(crate) mod server;
pub(crate) mod source;

pub(crate) use scene::Scene;
