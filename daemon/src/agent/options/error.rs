//! Why options do not make a configuration.

use mapper_machine::options::{DataPathChoice, ZeroDestination};
use thiserror::Error;

use super::node_ports::MAX_NODE_PORTS;

/// Why options do not make a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum OptionsError {
    /// No interface was named.
    #[error(
        "name the interface that is cabled to the fabric: --interface IF, or `interface = \"IF\"` in the file"
    )]
    NoInterface,
    /// A node was given an interface, but it has only ports.
    #[error("a node has no interface but ports; take `interface` out, or run `mapper agent`")]
    InterfaceOfNode,
    /// An agent was given ports, but it has only an interface.
    #[error("an agent has no ports but an interface; take `ports` out, or run `mapper node`")]
    PortsOfAgent,
    /// A node was given no ports, or too many.
    #[error(
        "name 1 to {MAX_NODE_PORTS} interfaces that are cabled to others: --ports IF,IF, or `ports = [..]` in the file"
    )]
    PortCount,
    /// The ports of a node name an interface twice, or have an empty name.
    #[error("a port of the node is named twice, or has no name")]
    PortTwice,
    /// The ports of a node have numbers, which only those of a crossbar may have.
    #[error(
        "a node takes its ports by the names of interfaces, in their order, as in eth1,eth2, or by patterns like \
         eth*; numbers like 1=eth1 are for `mapper xbar`"
    )]
    PortOfXbar,
    /// The tap has the name of an interface to the fabric, so users' frames would go round in a circle.
    #[error("tap names an interface that is cabled to the fabric; give the tap interface a name of its own")]
    TapIsPort,
    /// There is an address of IP, but no tap interface to give it to.
    #[error(
        "an address is that of the interface over the fabric: name that, too, with --tap NAME or `tap = \"NAME\"`"
    )]
    AddressWithoutTap,
    /// An agent was told what users' packets go by, but has no interface over the fabric by which they could come.
    #[error(
        "--data-path {0} is for packets to and from the interface over the fabric: name that, too, with --tap NAME or \
         `tap = \"NAME\"`"
    )]
    DataPathWithoutTap(DataPathChoice),
    /// An option of the command line has no effect at a port of this kind.
    #[error(
        "--{option} has no effect here: it is for {counts_at}; take it out, or put it into the file that all agents share"
    )]
    WithoutEffect {
        /// The option's name.
        option: &'static str,
        /// The ports where it has an effect.
        counts_at: &'static str,
    },
    /// There is somebody to tell of changes, but no plan.
    #[error("on-change tells what is not as planned: name the plan, too, by `file` in the table [plan]")]
    OnChangeWithoutPlan,
    /// The destination address of frames is zero, which no interface has.
    #[error(transparent)]
    Destination(#[from] ZeroDestination),
    /// A parent would count as silent before the agent has asked it.
    #[error(
        "silence-limit-ms ({silence_limit_ms}) is not longer than query-interval-ms ({query_interval_ms}): a parent \
         must be asked before it can be silent"
    )]
    SilenceBelowQuery {
        /// How long a parent may stay silent.
        silence_limit_ms: u128,
        /// The time between two questions to the parent.
        query_interval_ms: u128,
    },
}
