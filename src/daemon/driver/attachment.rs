//! Attaches an agent to the fabric, by an interface or by a crossbar in the same process.

use mapper_proto::PortSet;
use std::collections::BTreeMap;
use std::rc::Rc;

use mapper_proto::Mac;
use mapper_proto::map::LinkMtu;
use mapper_proto::wire::{Crossbar, CrossbarKind};
use tracing::{info, warn};

use super::crossbar_tag;
use super::outer_ports::{Opened, OuterPorts};
use crate::daemon::DaemonError;
use crate::daemon::options::Config;
use crate::daemon::status::BoardPort;
use crate::xbar::Switch;
use mapper_machine::interface_lock::InterfaceLock;
use mapper_machine::link::interface::Interface;
use mapper_machine::link::port::Port;
use mapper_machine::link::{Link, LinkError, internal};

/// The number of a node's first port.
const FIRST_PORT: u8 = 1;

/// How an agent is attached to the fabric.
#[derive(Debug)]
pub(super) struct Attachment {
    /// The link that the agent sends and receives by.
    pub(super) link: Link,
    /// The agent's address.
    pub(super) mac: Mac,
    /// The most bytes behind an Ethernet header.
    pub(super) mtu: u32,
    /// The crossbar of a node; `None` for an agent alone.
    pub(super) crossbar: Option<Rc<Switch>>,
    /// The interfaces that lead out of the machine.
    pub(super) outer: OuterPorts,
}

impl Attachment {
    /// Opens the interface that the configuration names, or the ports of a node.
    ///
    /// # Errors
    /// If an interface cannot be used, or belongs to another daemon.
    pub(super) fn open(config: &Config) -> Result<Self, DaemonError> {
        if config.ports.is_empty() { Self::interface(config) } else { Self::node(config) }
    }

    /// All ports of a node's crossbar, as if each had carrier.
    pub(super) fn ports(&self) -> PortSet {
        (FIRST_PORT..=self.outer.agent_port()).collect()
    }

    /// The ports of a node that lead out of the machine; empty for an agent alone.
    pub(super) fn outer_ports(&self) -> Vec<BoardPort> {
        let Some(switch) = &self.crossbar else { return Vec::new() };
        let status = switch.status();
        status.ports.iter().filter(|port| self.outer.has(port.port)).map(BoardPort::from).collect()
    }

    /// How long frames may be now, by the MTU of the interfaces; `None` while there are no interfaces.
    pub(super) fn link_mtu(&self) -> Option<LinkMtu> {
        let found = match &self.crossbar {
            Some(_) => {
                let ports = self.outer_ports();
                LinkMtu::of_ports(ports.iter().filter_map(|port| Some((port.port, port.mtu?))))
            }
            // The interface of an agent alone has no port number, so 0 is given.
            None => LinkMtu::of_ports(self.link.mtu().map(|mtu| (0, mtu))),
        };
        (found.bytes > 0).then_some(found)
    }

    fn interface(config: &Config) -> Result<Self, DaemonError> {
        set_up(&config.interface)?;
        let (port, mac) = Port::open_usable(&config.interface, config.service.marking, config.needed_mtu())?;
        let outer = OuterPorts::one(InterfaceLock::take(&config.interface)?);
        let mtu = port.mtu().unwrap_or_else(|| config.needed_mtu());
        Ok(Self { link: port.into(), mac, mtu, crossbar: None, outer })
    }

    /// Makes a crossbar over all ports, and a cable inside the process from its last port to the agent. The
    /// agent's address is that of the first port that exists, and the crossbar's tag begins with it.
    fn node(config: &Config) -> Result<Self, DaemonError> {
        let (mut links, mut held, mut macs) = (Vec::new(), BTreeMap::new(), Vec::new());
        for (number, name) in (FIRST_PORT..).zip(&config.ports) {
            let opened = Opened::new(name, config)?;
            macs.extend(opened.mac);
            held.insert(number, opened.lock);
            links.push((number, opened.link));
        }
        let first = config.ports.first().cloned().unwrap_or_default();
        let mac = *macs.first().ok_or(LinkError::NoSuchInterface(first))?;
        let ports = links.len() as u8 + 1;
        let agent_port = FIRST_PORT + ports - 1;
        let (own, crossbars) = internal::pair(&config.interface, mac, config.service.marking);
        links.push((agent_port, crossbars.into()));
        let kind = CrossbarKind::Tagged { tag: crossbar_tag::derive(&crossbar_tag::machine_id(), &macs) };
        let crossbar = Crossbar { kind, first_port: FIRST_PORT, ports, carriers: PortSet::NONE };
        let switch = Switch::new(&config.interface, crossbar, links);
        let mtu = switch.least_mtu().unwrap_or_else(|| config.needed_mtu());
        let outer = OuterPorts::new(held, agent_port);
        Ok(Self { link: own.into(), mac, mtu, crossbar: Some(Rc::new(switch)), outer })
    }
}

/// Sets an interface up if it is down. Returns it as it was found, or `None` if it does not exist. If the
/// process lacks the privilege, the interface stays down, which is logged.
///
/// # Errors
/// If the kernel does not answer.
pub(super) fn set_up(name: &str) -> Result<Option<Interface>, LinkError> {
    let found = Interface::look_up(name)?;
    if let Some(interface) = found.as_ref().filter(|interface| interface.ethernet && !interface.up) {
        match interface.set_up() {
            Ok(()) => info!(interface = name, "the interface was down: set it up"),
            Err(error) => warn!(interface = name, %error, "the interface is down, and cannot be set up"),
        }
    }
    Ok(found)
}
