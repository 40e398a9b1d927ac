//! The interfaces that lead out of the machine, and how those of a node come and go while it runs.

use std::collections::BTreeMap;

use mapper_proto::Mac;
use tracing::{error, info, warn};

use super::attachment::set_up;
use super::event_loop::Driver;
use crate::daemon::DaemonError;
use crate::daemon::options::Config;
use crate::xbar::Switch;
use crate::xbar::ports::{self, Numbered, PortName, PortsError};
use mapper_fabric::wording::with_causes;
use mapper_machine::interface_lock::InterfaceLock;
use mapper_machine::link::interface::Interface;
use mapper_machine::link::port::Port;
use mapper_machine::link::{Link, LinkError};

/// The interfaces that this process has, by the numbers of their ports.
#[derive(Debug)]
pub(super) struct OuterPorts {
    held: BTreeMap<u8, InterfaceLock>,
    /// The number of the crossbar's port to a node's agent. It does not change when ports are added.
    agent_port: u8,
}

/// A port of a node, before it is part of the crossbar.
pub(super) struct Opened {
    pub(super) lock: InterfaceLock,
    pub(super) link: Link,
    /// The interface's address, if it exists.
    pub(super) mac: Option<Mac>,
}

impl Opened {
    /// Locks an interface, sets it up and opens it.
    ///
    /// # Errors
    /// If the interface cannot be used, belongs to another daemon, or its MTU is too small.
    pub(super) fn new(name: &str, config: &Config) -> Result<Self, DaemonError> {
        let lock = InterfaceLock::take(name)?;
        let found = set_up(name)?;
        if found.is_none() {
            warn!(interface = name, "the interface does not exist yet; waiting for it");
        }
        let link = Link::from(Port::open(name, config.service.marking)?);
        let needed = config.needed_mtu();
        if let Some(mtu) = link.mtu().filter(|&mtu| mtu < needed) {
            return Err(LinkError::MtuTooSmall { interface: name.to_owned(), mtu, needed }.into());
        }
        Ok(Self { lock, link, mac: found.map(|interface| interface.mac) })
    }
}

impl OuterPorts {
    /// The ports of a node, whose agent is at the port `agent_port`.
    pub(super) const fn new(held: BTreeMap<u8, InterfaceLock>, agent_port: u8) -> Self {
        Self { held, agent_port }
    }

    /// The interface of an agent alone.
    pub(super) fn one(lock: InterfaceLock) -> Self {
        Self::new(BTreeMap::from([(0, lock)]), 0)
    }

    /// The number of the crossbar's port to the agent.
    pub(super) const fn agent_port(&self) -> u8 {
        self.agent_port
    }

    /// Whether a port leads out of the machine.
    pub(super) fn has(&self, number: u8) -> bool {
        self.held.contains_key(&number)
    }

    /// The numbers of the ports of a node with these interfaces. Interfaces that are ports already keep their
    /// numbers, and new ones get the next free numbers.
    fn number(&self, interfaces: &[String]) -> Result<Numbered, PortsError> {
        let mut current: Numbered =
            self.held.iter().map(|(&number, lock)| (number, lock.interface().to_owned())).collect();
        // The agent's port takes part with an empty name, so that no interface gets its number.
        let agent = PortName { number: Some(self.agent_port), interface: String::new() };
        current.push((self.agent_port, String::new()));
        let named = interfaces.iter().map(|name| PortName { number: None, interface: name.clone() });
        let names: Vec<_> = named.chain([agent]).collect();
        let mut numbered = ports::number(&names, &current)?;
        numbered.retain(|(number, _)| *number != self.agent_port);
        Ok(numbered)
    }

    /// Gives up the interfaces that are no ports any more. `mac` is the node's address.
    fn let_go_of_others(&mut self, ports: &Numbered, switch: &Switch, mac: Mac) {
        self.held.retain(|number, lock| {
            let interface = lock.interface();
            let stays = ports.iter().any(|(named, name)| named == number && name == interface);
            if !stays {
                switch.remove(*number);
                info!(port = number, interface, "the port is given up");
                if Interface::look_up(interface).is_ok_and(|found| found.is_some_and(|it| it.mac == mac)) {
                    warn!(
                        interface,
                        "the node keeps the address of this interface: restart it before another agent uses that"
                    );
                }
            }
            stays
        });
    }

    /// Opens the interfaces that are to be ports and are none yet.
    fn take_new(&mut self, ports: &Numbered, switch: &Switch, config: &Config) {
        for (number, interface) in ports {
            if self.has(*number) {
                continue;
            }
            match Opened::new(interface, config) {
                Ok(Opened { lock, link, .. }) => {
                    let carrier = link.carrier();
                    switch.add(*number, link);
                    self.held.insert(*number, lock);
                    info!(port = number, interface, carrier, "the port is taken");
                }
                Err(error) => {
                    error!(port = number, interface, "cannot take the port: {}", with_causes(&error));
                }
            }
        }
    }
}

impl Driver {
    /// Gives the node the ports that its configuration names.
    pub(super) fn follow_ports(&mut self) {
        let Some(switch) = self.attachment.crossbar.clone() else { return };
        let ports = match self.attachment.outer.number(&self.config.ports) {
            Ok(ports) => ports,
            Err(error) => return error!("the ports stay as they were: {error}"),
        };
        self.attachment.outer.let_go_of_others(&ports, &switch, self.host.own());
        // The host must hear that the old ports lost carrier before new interfaces take their numbers, as
        // these have other cables.
        self.follow_carriers();
        self.attachment.outer.take_new(&ports, &switch, &self.config);
        self.follow_carriers();
        self.warn_of_changes();
    }
}
