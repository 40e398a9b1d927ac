//! `mapper route` and `mapper check` as a user runs them: tables and routes as files, what is refused, exit
//! statuses, JSON.

mod best;
mod cache;
pub(crate) mod command;
mod compare;
mod isolated;
mod lids;
mod names;
mod opensm_options;
mod outputs;
mod refusals;
mod settings;
mod source_routes;
mod tables;
mod torus;
