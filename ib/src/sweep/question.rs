//! What a sweep asks.

use super::found::{NodeIndex, PortOf};
use crate::mad::Attribute;

/// What is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SweepQuestion {
    /// What the node behind a port is; without a port, what the node that sends is.
    Node { behind: Option<PortOf> },
    /// What people call a node.
    Description { node: NodeIndex },
    /// The state of a port.
    Port { node: NodeIndex, port: u8 },
}

impl SweepQuestion {
    /// The attribute and its modifier.
    pub(super) fn asks(&self) -> (Attribute, u32) {
        match *self {
            Self::Node { .. } => (Attribute::NodeInfo, 0),
            Self::Description { .. } => (Attribute::NodeDescription, 0),
            Self::Port { port, .. } => (Attribute::PortInfo, port.into()),
        }
    }
}
