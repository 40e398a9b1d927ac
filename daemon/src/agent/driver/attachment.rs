//! Attaches an agent to the fabric, by an interface or by a crossbar in the same process.

use std::collections::BTreeMap;
use std::rc::Rc;

use mapper_proto::map::LinkMtu;
use mapper_proto::wire::{Crossbar, CrossbarKind};
use mapper_proto::{Mac, PortSet, Tally};
use tracing::{info, warn};

use super::direct_cable;
use super::kept_identity::KeptIdentity;
use super::outer_ports::{OpenedPort, OuterPorts};
use super::patterns::{Candidates, Matched};
use crate::agent::DaemonError;
use crate::agent::crossbar_tag;
use crate::agent::options::Config;
use crate::agent::status::{BoardPort, FrameCount};
use crate::xbar::Switch;
use crate::xbar::cable::CableStatus;
use crate::xbar::hellos::Hellos;
use mapper_fabric::wording::with_causes;
use mapper_machine::interface_lock::InterfaceLock;
use mapper_machine::link::interface::Interface;
use mapper_machine::link::port::EthernetPort;
use mapper_machine::link::{Link, LinkError, internal};

/// The number of a node's first port.
pub(super) const FIRST_PORT: u8 = 1;
/// The most ports of a node, the one to its agent among them.
const MOST_PORTS: u8 = 255;

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
    /// Who is at the other ends of the cables.
    pub(super) hellos: Rc<Hellos>,
    /// Frames that arrived at the interface of an agent alone and were not for the agent.
    pub(super) held_back: Tally<FrameCount>,
    /// Frames that arrived at the interface of an agent alone and were not addressed as those of the fabric are.
    pub(super) foreign: u64,
    /// The address and tag that are kept for later starts, if patterns name ports.
    identity: Option<KeptIdentity>,
}

impl Attachment {
    /// Opens the interface that the configuration names, or the ports of a node.
    ///
    /// # Errors
    /// If an interface cannot be used, or belongs to another daemon.
    pub(super) fn open(config: &Config) -> Result<Self, DaemonError> {
        if config.is_node() { Self::node(config) } else { Self::interface(config) }
    }

    /// Keeps the address and tag of the node for later starts, if they depend on which ports exist.
    pub(super) fn keep_identity(&self, config: &Config) {
        let path = KeptIdentity::path(config);
        if let Some(Err(error)) = self.identity.as_ref().map(|identity| identity.write(&path)) {
            warn!(
                path = %path.display(),
                %error,
                "the node's address cannot be kept: after a start at which other ports exist it may have another"
            );
        }
    }

    /// Keeps that the node has also had the ports that have come since its start.
    pub(super) fn keep_new_ports(&mut self, config: &Config) {
        if self.identity.as_mut().is_some_and(|identity| identity.learn(self.outer.macs())) {
            self.keep_identity(config);
        }
    }

    /// All ports of a node's crossbar, as if each had carrier.
    pub(super) fn ports(&self) -> PortSet {
        (FIRST_PORT..=self.outer.agent_port()).collect()
    }

    /// The tag of a node's crossbar.
    pub(super) fn tag(&self) -> Option<u64> {
        match self.crossbar.as_ref()?.kind() {
            CrossbarKind::Tagged { tag } => Some(tag),
            CrossbarKind::Plain => None,
        }
    }

    /// The ports of a node that lead out of the machine; empty for an agent alone.
    pub(super) fn outer_ports(&self) -> Vec<BoardPort> {
        let Some(switch) = &self.crossbar else { return Vec::new() };
        let status = switch.status();
        status.ports.iter().filter(|port| self.outer.has(port.port)).map(BoardPort::from).collect()
    }

    /// How long frames may be now, by the MTU of the interfaces; `None` while there are no interfaces. A port
    /// without carrier has no cable that frames could take, so it counts only if no port has any.
    pub(super) fn link_mtu(&self) -> Option<LinkMtu> {
        let found = match &self.crossbar {
            Some(_) => {
                let ports = with_carrier(self.outer_ports());
                LinkMtu::of_ports(ports.iter().filter_map(|port| Some((port.port, port.mtu?))))
            }
            // The interface of an agent alone has no port number, so 0 is given.
            None => LinkMtu::of_ports(self.link.mtu().map(|mtu| (0, mtu))),
        };
        (found.bytes > 0).then_some(found)
    }

    /// The longest frame that the cables of this machine carry, at both of their ends, in bytes; `None` while no interface has
    /// carrier.
    pub(super) fn least_cable(&self) -> Option<u32> {
        let ports = self.outer_ports();
        let cabled = ports.iter().filter(|port| port.carrier);
        let of_ports = cabled.filter_map(|port| Some(port.cable.carries(port.mtu?)));
        let alone = self.cable().filter(|_| self.link.carrier());
        let of_alone = alone.and_then(|cable| Some(cable.carries(self.link.mtu()?)));
        of_ports.chain(of_alone).min()
    }

    /// What is known of the cable of an agent alone; `None` for a node, whose ports have one each.
    pub(super) fn cable(&self) -> Option<CableStatus> {
        self.crossbar.is_none().then(|| self.hellos.cable(direct_cable::PORT))
    }

    fn interface(config: &Config) -> Result<Self, DaemonError> {
        set_up(&config.interface)?;
        let (port, mac) =
            EthernetPort::open_usable(&config.interface, config.service.marking, config.needed_mtu())?;
        let outer = OuterPorts::one(InterfaceLock::take(&config.interface)?);
        let mtu = port.mtu().unwrap_or_else(|| config.needed_mtu());
        let (hellos, held_back) = (Hellos::new(), Tally::default());
        Ok(Self {
            link: port.into(),
            mac,
            mtu,
            crossbar: None,
            outer,
            hellos,
            held_back,
            foreign: 0,
            identity: None,
        })
    }

    /// Makes a crossbar over all ports, and a cable inside the process from its last port to the agent. The
    /// agent's address is that of the first port that exists, and the crossbar's tag begins with it; if
    /// patterns name ports, [`KeptIdentity`] says what they are.
    fn node(config: &Config) -> Result<Self, DaemonError> {
        let (mut links, mut held, mut macs) = (Vec::new(), BTreeMap::new(), Vec::new());
        let mut numbers = FIRST_PORT..MOST_PORTS;
        for (name, number) in config.ports.iter().zip(&mut numbers) {
            let (port, link) = OpenedPort::new(name, config)?.hold(false);
            macs.extend(port.mac);
            held.insert(number, port);
            links.push((number, link));
        }
        let named = macs.len();
        let mut matched = Matched::default();
        if !config.patterns.is_empty() {
            let candidates = Candidates::now()?;
            for (interface, why_not) in candidates.matching(config) {
                if let Some(why) = why_not {
                    matched.leave_out(&interface.name, why);
                    continue;
                }
                let (port, link) = match OpenedPort::new(&interface.name, config) {
                    Ok(opened) => opened.hold(true),
                    Err(error) => {
                        matched.keep_from_it(&interface.name, &with_causes(&error));
                        continue;
                    }
                };
                let Some(number) = numbers.next() else { break };
                macs.extend(port.mac);
                held.insert(number, port);
                links.push((number, link));
            }
        }
        let identity = if config.patterns.is_empty() {
            None
        } else {
            let kept = KeptIdentity::read(&KeptIdentity::path(config));
            let (named, matching) = macs.split_at(named);
            KeptIdentity::choose(kept, &crossbar_tag::machine_id(), named, matching)
        };
        let (mac, tag) = match (&identity, macs.first()) {
            (Some(KeptIdentity { mac, tag, .. }), _) => (*mac, *tag),
            (None, Some(mac)) => {
                (*mac, mapper_proto::crossbar_tag::derive(&crossbar_tag::machine_id(), &macs))
            }
            (None, None) if !config.patterns.is_empty() => return Err(matched.no_port(config)),
            (None, None) => {
                let first = config.ports.first().cloned().unwrap_or_default();
                return Err(LinkError::NoSuchInterface(first).into());
            }
        };
        let ports = links.len() as u8 + 1;
        let agent_port = FIRST_PORT + ports - 1;
        let (own, crossbars) = internal::pair(&config.interface, mac, config.service.marking);
        links.push((agent_port, crossbars.into()));
        let kind = CrossbarKind::Tagged { tag };
        let crossbar = Crossbar { kind, first_port: FIRST_PORT, ports, carriers: PortSet::NONE };
        let switch = Switch::new(&config.interface, crossbar, links);
        let mtu = switch.least_mtu().unwrap_or_else(|| config.needed_mtu());
        let outer = OuterPorts::new(held, agent_port, matched);
        let (hellos, held_back) = (Rc::clone(switch.hellos()), Tally::default());
        let crossbar = Some(Rc::new(switch));
        Ok(Self { link: own.into(), mac, mtu, crossbar, outer, hellos, held_back, foreign: 0, identity })
    }
}

/// The ports that have carrier, or all if none has.
fn with_carrier(mut ports: Vec<BoardPort>) -> Vec<BoardPort> {
    if ports.iter().any(|port| port.carrier) {
        ports.retain(|port| port.carrier);
    }
    ports
}

/// Sets an interface up if it is down. Returns it as it was found, or `None` if it does not exist. If the
/// process lacks the privilege, the interface stays down, which is logged.
///
/// # Errors
/// If the kernel does not answer.
pub(super) fn set_up(name: &str) -> Result<Option<Interface>, LinkError> {
    let found = Interface::look_up(name)?;
    if let Some(interface) = &found {
        set_up_found(interface);
    }
    Ok(found)
}

/// Sets an interface up that was found down, as [`set_up`] does.
pub(super) fn set_up_found(interface: &Interface) {
    if !interface.ethernet || interface.up {
        return;
    }
    let name = &interface.name;
    match interface.set_up() {
        Ok(()) => info!(interface = name, "the interface was down: set it up"),
        Err(error) => warn!(interface = name, %error, "the interface is down, and cannot be set up"),
    }
}
