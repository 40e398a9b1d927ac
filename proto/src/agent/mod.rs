//! The life of one agent.
//!
//! [`Agent`] is a deterministic state machine. The driver feeds it frames, timeouts and routes
//! (`handle_*`), and after each drains what it wants to send, when it wants to be woken and what
//! happened (`poll_*`). Time is passed in and never goes back.
//!
//! ```text
//! Starting --slept--> Mapping --explored--> Routing --routes in place--> Configured
//!                      |   ^                  ^                          (verifies, for ever)
//!   a higher mapper met|   |parent silent     |all pieces here               |
//!                      v   |                  |                              | map invalid
//!                     Passive --- told to --> Fetching                       v
//!                        ^        collect                  the global mapper: Mapping
//!                        +-------------------------------- all others: Passive
//! ```
//!
//! A mapper that finds no other host is Isolated instead of Configured, and so is an agent whose address
//! another host has too: it takes no part until it is alone with it. Level 0 stays Starting
//! until a mapper finds it.
//!
//! One file a concern: `accept` (what comes in is checked and told apart), `guard` (who is
//! believed), `machine` (the agent itself), `probed`, `contact` (election), `mapping`,
//! `fetch` (distribution), `tree` and `held` (the map in force), `watch`, `verify` and `checks`
//! (verification), `liveness` (checks of paths in use), `doubts` (cables that are said to be dead),
//! `pause` (quiet while one maps), `twin` (two hosts with one address), `requests` (scouts that wait for a reply), `send` (what leaves
//! the agent).

mod accept;
mod backoff;
mod checks;
mod contact;
mod doubts;
mod event;
mod fetch;
mod guard;
mod held;
mod liveness;
mod machine;
mod mapping;
mod pause;
mod probed;
mod requests;
mod send;
mod settings;
mod status;
mod tree;
mod twin;
mod verify;
mod watch;

pub use event::{Event, Transmit};
pub use liveness::{LivenessStatus, PathId};
pub use machine::Agent;
pub use settings::Settings;
pub use status::{Dropped, MappingCost, Sent, Status, Unreachable};
