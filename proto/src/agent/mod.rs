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
//!                        ^        collect      |                 the global mapper: Mapping
//!                        |                     |                 parent gone: Mapping
//!                        |<--- none to be had -+                 all others: Passive
//!                        +---------------------------------------------------+
//! ```
//!
//! Nothing waits for ever. Each state that waits has a deadline, and a way out when it passes:
//!
//! | state | ends after | then |
//! |---|---|---|
//! | Starting | `start_delay`; level 0 stays | Mapping |
//! | Mapping | all tries of all probes; a pause ends after 4 s, a hush after half a `probe_timeout` | Routing, or Mapping again |
//! | Passive | two queries in vain of a parent in the tree, `silence_limit` without a word of any, four of them without a map | Mapping |
//! | Fetching | `silence_limit` without one more piece, and a limit for all pieces | Mapping |
//! | Routing | `silence_limit` without routes: goes on as if there were none, and takes them when they come | verifies, as Configured does; Isolated if alone |
//! | Configured | verifies: silence of a neighbour in the tree ends it | Mapping or Passive |
//! | Isolated | verifies; with a twin: `silence_limit` without a word of it | Mapping |
//!
//! Where it says Mapping, level 0 is Starting again.
//!
//! An agent that has seen its map refuted never takes that version again (see `refuted`).
//! `transitions` tests each edge.
//!
//! A mapper that finds no other host is Isolated instead of Configured, and so is an agent whose address
//! another host has too: it takes no part until it is alone with it. Level 0 stays Starting
//! until a mapper finds it.
//!
//! One file a concern:
//!
//! - `machine` (the agent itself), `timers` (what wakes it), `parent` (whom it waits for), `settings`, `status`, `event`;
//! - what comes in: `accept` (frames are checked), `guard` (which messages are believed), `dispatch` (which scout and reply
//!   is for what), `probed` (probes); and what leaves: `send`, `requests` (scouts that wait for a reply);
//! - `contact` (election), `mapping`, `backoff` (how often a map is given up), `cause` (why one ends or is made), `pause`
//!   (quiet while one maps);
//! - the map in force: `fetch` (distribution), `tree`, `held`, `mtu`, `refuted` (maps that are known not to hold), `lossy` (cables
//!   that lose frames, as maps show them), `twin` (two hosts with one address);
//! - `watch`, `verify` and `checks` (verification), `doubts` (cables that are said to be dead), `liveness` (checks of paths
//!   in use), `echo` (single frames there and back);
//! - `service` (questions of what runs beside the agent).

mod accept;
mod backoff;
mod cause;
mod checks;
mod contact;
mod dispatch;
mod doubts;
mod echo;
mod event;
mod fetch;
mod guard;
mod held;
mod liveness;
mod lossy;
mod machine;
mod mapping;
mod mtu;
mod parent;
mod pause;
mod probed;
mod refuted;
mod requests;
mod send;
mod service;
mod settings;
mod status;
mod timers;
#[cfg(test)]
mod transitions;
mod tree;
mod twin;
mod verify;
mod watch;

pub use cause::{CableCause, Cause, CauseKind};
pub use echo::Echo;
pub use event::{Event, Transmit};
pub use liveness::{CableTest, LivenessCount, PathId, PathUse};
pub use machine::Agent;
pub use pause::LONGEST_PAUSE;
pub use service::{AskedService, ServiceQuestion};
pub use settings::Settings;
pub use status::{FrameDrop, MappingCost, Purpose, Status, Unreachable};
