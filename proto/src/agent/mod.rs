//! The life of one agent.
//!
//! [`Agent`] is a deterministic state machine. The driver feeds it frames, timeouts and routes
//! (`handle_*`), and after each drains what it wants to send, when it wants to be woken and what
//! happened (`poll_*`). Time is passed in and never goes back.
//!
//! ```text
//!            a higher mapper is met                its parent says: collect the map
//! Mapping ------------------------------> Passive ---------------------------------> Fetching
//!    |  ^                                  |   ^                                        |
//!    |  | parent silent                    |   | map invalid (not the global mapper)    | all
//!    |  +----------------------------------+   |                                        | pieces
//!    | explored                                |            routes in place             v
//!    +---------------------------------------> | Configured <------------------------ Routing
//!                                                  (verifies, for ever)
//! ```
//!
//! One file a concern: [`contact`](self) (election), `mapping`, `fetch`, `held` (the map in
//! force and the tree), `verify` and `checks`, `requests` (scouts that wait for a reply).

mod event;
mod settings;
mod status;

pub use event::{Event, Transmit};
pub use settings::Settings;
pub use status::{Dropped, MappingCost, Sent, Status, Unreachable};
