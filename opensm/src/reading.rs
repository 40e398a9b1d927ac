//! Makes a fabric of the subnet that OpenSM hands over, or says what is wrong with it.

use std::collections::BTreeMap;

use mapper_proto::Mac;
use mapper_proto::map::{Cable, Fabric, Host, HostLabel, PortRef, Xbar, XbarLabel, host_type};
use mapper_routing::Tables;
use thiserror::Error;

use crate::{Adapter, Request, Switch};

/// A subnet that cannot be read. OpenSM may see such for a moment, while nodes come and go.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BadSubnet {
    /// There is no switch to make a table for.
    #[error("the subnet has no switch")]
    NoSwitch,
    /// A switch that says that it has no ports.
    #[error("{0} has no ports")]
    NoPorts(String),
    /// A node with LID 0, or one that is no unicast LID.
    #[error("{name} has LID {lid}; expected 1 to {LAST_LID}")]
    Lid {
        /// The node.
        name: String,
        /// Its LID.
        lid: u16,
    },
    /// Two nodes with one GUID.
    #[error("{first} and {second} have one GUID")]
    GuidTwice {
        /// A node that has it.
        first: String,
        /// Another.
        second: String,
    },
    /// A cable in a port that the switch does not have.
    #[error("{name} has a cable in port {port}, but its ports are 1 to {ports}")]
    NoSuchPort {
        /// The switch.
        name: String,
        /// The port.
        port: u8,
        /// How many ports it has.
        ports: u8,
    },
    /// A cable to a node that is not there.
    #[error(
        "{name} port {port} leads to port {peer_port} of the node with GUID {peer:#018x}, which is not there"
    )]
    Nowhere {
        /// The switch.
        name: String,
        /// Its port.
        port: u8,
        /// What is said to be at the other end.
        peer: u64,
        /// The port at the other end.
        peer_port: u8,
    },
    /// A cable of which the switch at its other end does not know.
    #[error("{name} port {port} leads to {peer} port {peer_port}, which does not lead back")]
    OneWay {
        /// The switch.
        name: String,
        /// Its port.
        port: u8,
        /// The switch at the other end.
        peer: String,
        /// The port of that switch.
        peer_port: u8,
    },
    /// A port of an adapter that two cables lead to.
    #[error("two cables lead to {0}")]
    TwoCables(String),
    /// Adapters with more or fewer LIDs than others.
    #[error("{name} has LMC {lmc}, and others have {others}; all adapters must have the same")]
    Lmc {
        /// The adapter.
        name: String,
        /// Its LID mask control.
        lmc: u8,
        /// The LID mask control of the first adapter.
        others: u8,
    },
}

/// The fabric of a request, with what adapters it has that no cable leads to.
pub(crate) struct RequestedFabric {
    pub(crate) fabric: Fabric,
    pub(crate) lmc: u8,
    /// The names of adapters that no cable leads to.
    pub(crate) isolated: Vec<String>,
}

/// Largest unicast LID.
pub(crate) const LAST_LID: u16 = 0xbfff;

/// Reads what OpenSM handed over. Switches and adapters keep their order.
pub(crate) fn read(request: &Request) -> Result<RequestedFabric, BadSubnet> {
    if request.switches.is_empty() {
        return Err(BadSubnet::NoSwitch);
    }
    let places = Places::of(request)?;
    check_lids(request)?;
    let mut fabric = Fabric::default();
    for switch in &request.switches {
        fabric.map.xbars.push(Xbar { ports: switch.ports, tag: Some(switch.guid), ports_known: true });
        fabric.xbars.push(XbarLabel {
            name: format!("S-{:016x}", switch.guid),
            description: switch.description.clone(),
            guid: Some(switch.guid),
            system_guid: Some(switch.system_guid).filter(|&guid| guid != 0),
            lid: Some(switch.lid),
        });
    }
    for (host, adapter) in (0..).zip(&request.adapters) {
        fabric.map.hosts.push(Host {
            mac: Mac::from_position(host),
            level: 0,
            host_type: host_type::GM,
            at: None,
        });
        fabric.hosts.push(label_of(adapter));
    }
    places.join(request, &mut fabric)?;
    let alone = fabric.map.hosts.iter().zip(&request.adapters).filter(|(host, _)| host.at.is_none());
    let isolated = alone.map(|(_, adapter)| adapter.name()).collect();
    for (host, label) in fabric.map.hosts.iter().zip(&mut fabric.hosts) {
        label.uncabled = host.at.is_none();
    }
    let lmc = request.adapters.first().map_or(0, |adapter| adapter.lmc);
    Ok(RequestedFabric { fabric, lmc, isolated })
}

fn label_of(adapter: &Adapter) -> HostLabel {
    HostLabel {
        name: format!("H-{:016x}:{}", adapter.node_guid, adapter.port),
        description: adapter.description.clone(),
        guid: Some(adapter.node_guid),
        port_guid: Some(adapter.port_guid),
        system_guid: Some(adapter.system_guid).filter(|&guid| guid != 0),
        node_port: adapter.port,
        node_ports: adapter.port,
        lid: Some(adapter.lid),
        lmc: adapter.lmc,
        uncabled: false,
    }
}

fn check_lids(request: &Request) -> Result<(), BadSubnet> {
    let is_unicast = |lid: u16, lmc: u8| {
        let last = u32::from(lid) + (1_u32 << lmc.min(7)) - 1;
        lid != 0 && last <= u32::from(LAST_LID)
    };
    for switch in &request.switches {
        if switch.ports == 0 {
            return Err(BadSubnet::NoPorts(switch.name()));
        }
        if !is_unicast(switch.lid, switch.lmc) {
            return Err(BadSubnet::Lid { name: switch.name(), lid: switch.lid });
        }
    }
    let others = request.adapters.first().map_or(0, |adapter| adapter.lmc);
    for adapter in &request.adapters {
        if !is_unicast(adapter.lid, adapter.lmc) {
            return Err(BadSubnet::Lid { name: adapter.name(), lid: adapter.lid });
        }
        if adapter.lmc != others {
            return Err(BadSubnet::Lmc { name: adapter.name(), lmc: adapter.lmc, others });
        }
    }
    Ok(())
}

/// Where nodes stand in the lists of the request.
struct Places {
    switches: BTreeMap<u64, u32>,
    /// Each port of an adapter, by the GUID of its node and its number there.
    adapters: BTreeMap<(u64, u8), u32>,
}

impl Places {
    fn of(request: &Request) -> Result<Self, BadSubnet> {
        let mut places = Self { switches: BTreeMap::new(), adapters: BTreeMap::new() };
        for (index, switch) in (0..).zip(&request.switches) {
            if let Some(first) = places.switches.insert(switch.guid, index) {
                let first = request.switches[first as usize].name();
                return Err(BadSubnet::GuidTwice { first, second: switch.name() });
            }
        }
        for (index, adapter) in (0..).zip(&request.adapters) {
            let key = (adapter.node_guid, adapter.port);
            let first = places.adapters.insert(key, index);
            let first = first.map(|first| request.adapters[first as usize].name());
            let switch = places.switches.get(&adapter.node_guid);
            let switch = switch.map(|&switch| request.switches[switch as usize].name());
            if let Some(first) = first.or(switch) {
                return Err(BadSubnet::GuidTwice { first, second: adapter.name() });
            }
        }
        Ok(places)
    }

    /// Adds the cables to the fabric.
    fn join(&self, request: &Request, fabric: &mut Fabric) -> Result<(), BadSubnet> {
        let ends: BTreeMap<(u64, u8), (u64, u8)> = request
            .switches
            .iter()
            .flat_map(|switch| switch.links.iter().map(move |link| (switch.guid, link)))
            .map(|(guid, link)| ((guid, link.port), (link.peer, link.peer_port)))
            .collect();
        for (xbar, switch) in (0..).zip(&request.switches) {
            for link in &switch.links {
                let (name, port) = (switch.name(), link.port);
                if port == 0 || port > switch.ports || port == Tables::NONE {
                    return Err(BadSubnet::NoSuchPort { name, port, ports: switch.ports });
                }
                let at = PortRef { xbar, port };
                if let Some(&peer) = self.switches.get(&link.peer) {
                    if ends.get(&(link.peer, link.peer_port)) != Some(&(switch.guid, port)) {
                        let peer = request.switches[peer as usize].name();
                        return Err(BadSubnet::OneWay { name, port, peer, peer_port: link.peer_port });
                    }
                    let far = PortRef { xbar: peer, port: link.peer_port };
                    if at <= far {
                        fabric.map.cables.push(Cable::new(at, far));
                    }
                } else if let Some(&host) = self.adapters.get(&(link.peer, link.peer_port)) {
                    let place = &mut fabric.map.hosts[host as usize].at;
                    if place.replace(at).is_some() {
                        return Err(BadSubnet::TwoCables(request.adapters[host as usize].name()));
                    }
                } else {
                    let (peer, peer_port) = (link.peer, link.peer_port);
                    return Err(BadSubnet::Nowhere { name, port, peer, peer_port });
                }
            }
        }
        Ok(())
    }
}

impl Switch {
    fn name(&self) -> String {
        format!("switch \"{}\" ({:#018x})", printable(&self.description), self.guid)
    }
}

impl Adapter {
    fn name(&self) -> String {
        format!("adapter \"{}\" ({:#018x}) port {}", printable(&self.description), self.node_guid, self.port)
    }
}

/// A description without what a terminal obeys.
fn printable(description: &str) -> String {
    description.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::tests::ring;

    fn refusal(change: impl FnOnce(&mut Request)) -> String {
        let mut request = ring(4);
        change(&mut request);
        read(&request).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_ring_is_read() {
        let read = read(&ring(4)).unwrap();
        assert_eq!(read.fabric.map.cables.len(), 4);
        assert!(read.fabric.map.hosts.iter().all(|host| host.at.is_some()));
        assert_eq!((read.lmc, read.isolated.len()), (0, 0));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        assert_eq!(refusal(|it| it.switches.clear()), "the subnet has no switch");
        assert_eq!(refusal(|it| it.switches[1].ports = 0), "switch \"s1\" (0x0000000000000101) has no ports");
        assert_eq!(
            refusal(|it| it.adapters[2].lid = 0),
            "adapter \"h2\" (0x0000000000000202) port 1 has LID 0; expected 1 to 49151"
        );
        assert!(refusal(|it| it.switches[0].lid = 0xc000).ends_with("has LID 49152; expected 1 to 49151"));
        assert_eq!(
            refusal(|it| it.switches[0].links[0].peer = 0xdead),
            "switch \"s0\" (0x0000000000000100) port 1 leads to port 1 of the node with GUID \
             0x000000000000dead, which is not there"
        );
        assert!(
            refusal(|it| it.switches[0].links[0].port = 9)
                .contains("has a cable in port 9, but its ports are 1 to 3")
        );
        assert!(refusal(|it| it.switches[1].links.truncate(2)).ends_with("which does not lead back"));
        assert!(refusal(|it| it.adapters[1].node_guid = 0x200).ends_with("have one GUID"));
        assert!(
            refusal(|it| it.adapters[1].lmc = 1)
                .ends_with("has LMC 1, and others have 0; all adapters must have the same")
        );
        assert!(
            refusal(|it| {
                it.switches[1].links[0].peer = 0x200;
            })
            .starts_with("two cables lead to adapter \"h0\"")
        );
    }

    #[test]
    fn adapters_without_a_cable_are_told_and_stay_out() {
        let mut request = ring(4);
        request.switches[3].links.remove(0);
        let read = read(&request).unwrap();
        assert_eq!(read.isolated, ["adapter \"h3\" (0x0000000000000203) port 1"]);
        assert!(read.fabric.hosts[3].uncabled);
    }
}
