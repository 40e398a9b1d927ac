//! A subnet as a fabric describes it.

use mapper_proto::map::{Fabric, Map, PortRef};
use thiserror::Error;

use super::Model;
use crate::mad::NodeKind;

/// The most nodes of a fabric that the fault search takes: after each write it walks the tables from each host to each other.
const MAX_NODES: usize = 256;
/// The most ports of a switch.
const MAX_PORTS: u8 = 254;

/// Why a fabric is no subnet for the fault search.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SubnetError {
    /// It has too many nodes.
    #[error(
        "it has {0} hosts and xbars; the fault search over InfiniBand takes {MAX_NODES}, as it walks all tables after each write"
    )]
    TooLarge(usize),
    /// Managers need a host to run at.
    #[error("it has no host at an xbar, and managers run at hosts")]
    NoHost,
    /// A host has no cable.
    #[error("host {0} has no cable; the fault search begins with a whole fabric")]
    NoCable(usize),
    /// A port has a number that no port of InfiniBand has.
    #[error("xbar {xbar} has a cable in port {port}; ports of a switch of InfiniBand count from 1 to 254")]
    Port {
        /// The xbar.
        xbar: u32,
        /// Its port.
        port: u8,
    },
    /// Some xbars do not reach each other.
    #[error("no cables lead from its first xbar to xbar {0}; the fault search begins with a whole fabric")]
    Parted(usize),
}

impl Model {
    /// The subnet that a fabric describes, its hosts, and its switches.
    pub(crate) fn of(fabric: &Fabric) -> Result<(Self, Vec<usize>, Vec<usize>), SubnetError> {
        let map = &fabric.map;
        let count = map.hosts.len() + map.xbars.len();
        if count > MAX_NODES {
            return Err(SubnetError::TooLarge(count));
        }
        let mut model = Self::default();
        let hosts: Vec<usize> = map.hosts.iter().map(|_| model.add(NodeKind::Adapter, 1)).collect();
        let ports = ports_of(map)?;
        let switches: Vec<usize> =
            ports.into_iter().map(|ports| model.add(NodeKind::Switch, ports)).collect();
        let end = |of: PortRef| (switches[of.xbar as usize], of.port);
        for (nth, host) in map.hosts.iter().enumerate() {
            let at = host.at.ok_or(SubnetError::NoCable(nth))?;
            model.cable((hosts[nth], 1), end(at));
        }
        for cable in &map.cables {
            model.cable(end(cable.a), end(cable.b));
        }
        let first = *switches.first().filter(|_| !hosts.is_empty()).ok_or(SubnetError::NoHost)?;
        let reached = model.switches_around(first);
        match switches.iter().position(|switch| !reached.contains(switch)) {
            Some(parted) => Err(SubnetError::Parted(parted)),
            None => Ok((model, hosts, switches)),
        }
    }
}

/// How many ports each switch has: as many as the fabric says, and all that cables are in.
fn ports_of(map: &Map) -> Result<Vec<u8>, SubnetError> {
    let mut ports: Vec<u8> = map.xbars.iter().map(|xbar| xbar.ports.clamp(1, MAX_PORTS)).collect();
    let of_cables = map.cables.iter().flat_map(|cable| [cable.a, cable.b]);
    for PortRef { xbar, port } in of_cables.chain(map.hosts.iter().filter_map(|host| host.at)) {
        if port == 0 || port > MAX_PORTS {
            return Err(SubnetError::Port { xbar, port });
        }
        ports[xbar as usize] = ports[xbar as usize].max(port);
    }
    Ok(ports)
}
