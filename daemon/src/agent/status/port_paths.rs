//! Paths from a port of InfiniBand, which are asked for one by one.

use std::net::Ipv6Addr;

use serde::{Deserialize, Serialize};

/// The port of InfiniBand that an agent is at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownPort {
    /// The name of its device, as ibacm's files have it.
    pub device: String,
    /// The GUID of its device.
    pub device_guid: u64,
    /// Its number at that device.
    pub number: u8,
    /// How many ports the device has.
    pub count: u8,
    /// Its GID.
    pub gid: Ipv6Addr,
    /// Its first LID; 0 for none.
    pub lid: u16,
    /// 2^lmc LIDs belong to it.
    pub lmc: u8,
    /// What its node is called: its description, and the first word of that.
    pub names: Vec<String>,
}

/// Where a path is to lead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathEnd {
    /// To a node that is called so, or a port with this GID.
    Named(String),
    /// To the port that has this LID.
    Lid(u16),
}

/// The answer to [`AgentRequest::PathTo`](super::AgentRequest::PathTo).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathTo {
    /// The number in the file of [`paths_number_path`](super::paths_number_path) to which this belongs; `None` if the
    /// agent has no such file.
    pub paths_number: Option<u64>,
    /// What was found.
    pub found: PathFound,
}

/// What came of asking for a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathFound {
    /// The path as a record of InfiniBand's, 64 bytes.
    Record(Vec<u8>),
    /// No node or port has this name, GID or LID.
    Nobody,
    /// A node or port has it, but no path leads there.
    NoPath,
    /// Several nodes have this name.
    Several,
    /// The subnet's administration could not be asked, or does not answer.
    Unavailable,
}
