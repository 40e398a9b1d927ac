//! Planned against found wiring.
//!
//! 1. `matching` finds out which node of the one fabric is which of the other: by ids, addresses and tags, by
//!    descriptions, and where these tell little, by structure (`alike`), whatever their ports count from
//!    (`numbering`).
//! 2. `sockets` puts both fabrics as plugs in the sockets of the same nodes.
//! 3. `advice` finds the fewest moves by which a person turns the found wiring into the planned one, and says
//!    each by the names of both ends.
//! 4. [`severity`] says what each of these mistakes costs: it cuts off hosts, takes bandwidth, or changes no
//!    more than what is called how.
//!
//! Nothing here does I/O, and nothing depends on the order of a hash: the command and the agents stand on it.

mod advice;
mod alike;
mod check;
pub mod matching;
mod numbering;
pub mod severity;
mod sockets;

use std::fmt;

pub use check::{Difference, PlanCheck};

/// A node by its id, which programs match, and by the name that people call it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NodeName {
    /// The id in the file.
    pub id: String,
    /// What people call it.
    pub name: String,
}

/// The end of a cable. It is a host, which has no port number here, or an xbar and its port.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NodePort {
    /// The node.
    pub node: NodeName,
    /// The port of an xbar, as the plan numbers it.
    pub port: Option<i16>,
}

impl fmt::Display for NodePort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.node.name),
            None => f.write_str(&self.node.name),
        }
    }
}

/// A cable by its two ends, the lower one first.
pub type Cable = [NodePort; 2];

/// How the nodes of two fabrics are matched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MatchedBy {
    /// By ids, addresses and tags.
    #[default]
    Ids,
    /// By descriptions too, as most ids are in one fabric only.
    Descriptions,
    /// By what is cabled to what too, as most descriptions are in one fabric only as well.
    Structure,
}

impl MatchedBy {
    /// The name in JSON, and in words for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ids => "ids",
            Self::Descriptions => "descriptions",
            Self::Structure => "structure",
        }
    }
}

/// Whether an id is one that an explored map gives to an xbar without an id of its own.
pub fn is_by_position(name: &str) -> bool {
    let digits = name.strip_prefix('x').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}
