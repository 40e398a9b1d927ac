//! Keeps the names of a fabric's hosts in a marked part of a file of hosts' names, as hosts(5).
//!
//! - `block`: what stands in the marked part, and what is left out of it.
//! - [`keeper`]: the small process that writes the file, as the daemon itself may not.
//! - `told`: the daemon's end of the line to that process.

pub(crate) mod block;
pub mod keeper;
pub(crate) mod told;

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// What the file is to have of one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptHost {
    /// What the host is called. It may be no host name.
    pub name: String,
    /// The host's addresses.
    pub addresses: Vec<IpAddr>,
    /// Whether it is this machine itself.
    pub is_own: bool,
}

/// What the daemon asks of the keeper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeeperRequest {
    /// The marked part is to have these hosts and no others.
    Keep(Vec<KeptHost>),
    /// The marked part is to go, as the daemon ends.
    Remove,
}

/// What came of a [`KeeperRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KeeperReply {
    /// Why the file stays as it is, in words.
    pub failure: Option<String>,
    /// Names that are left out, each with why, in words.
    pub left_out: BTreeMap<String, String>,
}
