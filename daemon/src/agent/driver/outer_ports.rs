//! The interfaces that lead out of the machine, and how those of a node come and go while it runs.

use std::collections::BTreeMap;

use mapper_proto::Mac;
use tracing::{error, info, warn};

use super::attachment::{FIRST_PORT, set_up, set_up_found};
use super::patterns::Matched;
use super::state::Driver;
use crate::agent::DaemonError;
use crate::agent::options::Config;
use crate::xbar::Switch;
use crate::xbar::ports::{self, NamedPort, Numbered, PortsError};
use mapper_fabric::wording::with_causes;
use mapper_machine::interface_lock::InterfaceLock;
use mapper_machine::link::interface::Interface;
use mapper_machine::link::port::EthernetPort;
use mapper_machine::link::{Link, LinkError};

/// The interfaces that this process has, by the numbers of their ports.
#[derive(Debug)]
pub(super) struct OuterPorts {
    held: BTreeMap<u8, HeldOuterPort>,
    /// The number of the crossbar's port to a node's agent. It does not change when ports are added.
    agent_port: u8,
    /// What patterns have made of other interfaces.
    pub(super) matched: Matched,
}

/// An interface that is a port.
#[derive(Debug)]
pub(super) struct HeldOuterPort {
    lock: InterfaceLock,
    /// Whether it is a port because it matches a pattern, and not because it is named.
    by_pattern: bool,
    /// The number and the address that the interface had when it was last looked at, if it existed.
    index: Option<u32>,
    pub(super) mac: Option<Mac>,
}

impl HeldOuterPort {
    fn interface(&self) -> &str {
        self.lock.interface()
    }
}

/// A port of a node, before it is part of the crossbar.
pub(super) struct OpenedPort {
    pub(super) lock: InterfaceLock,
    pub(super) link: Link,
    /// The interface as it was found, if it exists.
    found: Option<Interface>,
}

impl OpenedPort {
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
        let link = Link::from(EthernetPort::open(name, config.service.marking)?);
        let needed = config.needed_mtu();
        if let Some(mtu) = link.mtu().filter(|&mtu| mtu < needed) {
            return Err(LinkError::MtuTooSmall { interface: name.to_owned(), mtu, needed }.into());
        }
        Ok(Self { lock, link, found })
    }

    /// The port and its link.
    pub(super) fn hold(self, by_pattern: bool) -> (HeldOuterPort, Link) {
        let Self { lock, link, found } = self;
        let (index, mac) = found.map(|interface| (interface.index, interface.mac)).unzip();
        (HeldOuterPort { lock, by_pattern, index, mac }, link)
    }
}

impl OuterPorts {
    /// The ports of a node, whose agent is at the port `agent_port`.
    pub(super) const fn new(held: BTreeMap<u8, HeldOuterPort>, agent_port: u8, matched: Matched) -> Self {
        Self { held, agent_port, matched }
    }

    /// The one interface of an agent alone.
    pub(super) fn one(lock: InterfaceLock) -> Self {
        let held = HeldOuterPort { lock, by_pattern: false, index: None, mac: None };
        Self::new(BTreeMap::from([(0, held)]), 0, Matched::default())
    }

    /// The number of the crossbar's port to the agent.
    pub(super) const fn agent_port(&self) -> u8 {
        self.agent_port
    }

    /// The ports that lead out of the machine, and the names of their interfaces.
    pub(super) fn interfaces(&self) -> impl Iterator<Item = (u8, String)> + '_ {
        self.held.iter().map(|(&number, lock)| (number, lock.interface().to_owned()))
    }

    /// Whether a port leads out of the machine.
    pub(super) fn has(&self, number: u8) -> bool {
        self.held.contains_key(&number)
    }

    /// The number of the port that has this interface.
    pub(super) fn number_of(&self, interface: &str) -> Option<u8> {
        self.held.iter().find(|(_, held)| held.interface() == interface).map(|(number, _)| *number)
    }

    /// The numbers of the ports of a node with these interfaces, and of those that are ports already and match a
    /// pattern. Interfaces that are ports already keep their numbers, and new ones get the next free numbers.
    fn number(&self, interfaces: &[String], patterns: &[String]) -> Result<Numbered, PortsError> {
        let mut current: Numbered =
            self.held.iter().map(|(&number, held)| (number, held.interface().to_owned())).collect();
        let stays = |held: &&HeldOuterPort| {
            let name = held.interface();
            patterns.iter().any(|pattern| ports::matches(pattern, name))
                && !interfaces.iter().any(|it| it == name)
        };
        let matching = self.held.iter().filter(|(_, held)| stays(held)).map(|(number, held)| NamedPort {
            number: Some(*number),
            interface: held.interface().to_owned(),
        });
        // The agent's port takes part with an empty name, so that no interface gets its number.
        let agent = NamedPort { number: Some(self.agent_port), interface: String::new() };
        current.push((self.agent_port, String::new()));
        let named = interfaces.iter().map(|name| NamedPort { number: None, interface: name.clone() });
        let names: Vec<_> = named.chain(matching).chain([agent]).collect();
        let mut numbered = ports::number(&names, &current)?;
        numbered.retain(|(number, _)| *number != self.agent_port);
        Ok(numbered)
    }

    /// Gives up the interfaces that are no longer ports. `mac` is the node's address.
    fn let_go_of_others(&mut self, ports: &Numbered, switch: &Switch, mac: Mac) {
        self.held.retain(|number, held| {
            let interface = held.interface();
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

    /// Remembers which of the ports are named.
    fn tell_named(&mut self, interfaces: &[String]) {
        for held in self.held.values_mut() {
            held.by_pattern = !interfaces.iter().any(|name| name == held.interface());
        }
    }

    /// Opens the interfaces that are to be ports and are not yet.
    fn take_new(&mut self, ports: &Numbered, switch: &Switch, config: &Config) {
        for (number, interface) in ports {
            if self.has(*number) {
                continue;
            }
            match OpenedPort::new(interface, config) {
                Ok(opened) => self.add(*number, opened, false, switch),
                Err(error) => {
                    error!(port = number, interface, "cannot take the port: {}", with_causes(&error));
                }
            }
        }
    }
}

impl OuterPorts {
    fn add(&mut self, number: u8, opened: OpenedPort, by_pattern: bool, switch: &Switch) {
        let (held, link) = opened.hold(by_pattern);
        let carrier = link.carrier();
        switch.add(number, link);
        info!(port = number, interface = held.interface(), carrier, "the port is taken");
        self.held.insert(number, held);
    }

    /// The addresses that the interfaces had when they were last looked at.
    pub(super) fn macs(&self) -> impl Iterator<Item = Mac> {
        self.held.values().filter_map(|held| held.mac)
    }

    /// Gives up a port.
    pub(super) fn give_up(&mut self, number: u8, switch: &Switch) {
        switch.remove(number);
        self.held.remove(&number);
    }

    /// Sets an interface up that has come back to its port.
    pub(super) fn look_at_new(&mut self, number: u8, interface: &Interface) {
        let Some(held) = self.held.get_mut(&number).filter(|held| held.by_pattern) else { return };
        if held.index.replace(interface.index) != Some(interface.index) {
            set_up_found(interface);
        }
        held.mac = Some(interface.mac);
    }

    /// Makes an interface a port that matches a pattern and is no port yet. `all` are the interfaces of the
    /// machine as they were seen together with this one.
    pub(super) fn take_matching(
        &mut self,
        interface: &Interface,
        all: &[Interface],
        switch: &Switch,
        config: &Config,
    ) {
        let name = &interface.name;
        let Some(number) = self.number_for(interface, all) else {
            return self.matched.keep_from_it(name, "the node has no port number left for it");
        };
        match OpenedPort::new(name, config) {
            Ok(opened) => {
                self.matched.take(name);
                self.give_up(number, switch);
                self.add(number, opened, true, switch);
            }
            Err(error) => self.matched.keep_from_it(name, &with_causes(&error)),
        }
    }

    /// The number for an interface that matches a pattern: the one that it had under another name, or else
    /// the lowest that is free, or else that of an interface that matched a pattern and is gone.
    ///
    /// The crossbar hears of changes one by one, so it may not know yet that an interface that was seen under
    /// its new name is gone under its old one. What was seen together decides.
    fn number_for(&self, interface: &Interface, all: &[Interface]) -> Option<u8> {
        let is_gone = |name: &str| all.iter().all(|other| other.name != name);
        let mut left = self.held.iter().filter(|(_, held)| held.by_pattern && is_gone(held.interface()));
        let same = left.clone().find(|(_, held)| held.mac == Some(interface.mac));
        let is_free = |number: &u8| !self.held.contains_key(number) && *number != self.agent_port;
        let free = || (FIRST_PORT..=u8::MAX).find(is_free);
        same.map(|(number, _)| *number).or_else(free).or_else(|| left.next().map(|(number, _)| *number))
    }
}

impl Driver {
    /// Gives the node the ports that its configuration names.
    pub(super) fn follow_ports(&mut self) {
        let Some(switch) = self.attachment.crossbar.clone() else { return };
        let ports = match self.attachment.outer.number(&self.config.ports, &self.config.patterns) {
            Ok(ports) => ports,
            Err(error) => return error!("the ports stay as they were: {error}"),
        };
        self.attachment.outer.let_go_of_others(&ports, &switch, self.host.own());
        // The host must hear that the old ports lost carrier before new interfaces take their numbers, as
        // these have other cables.
        self.follow_carriers();
        self.attachment.outer.take_new(&ports, &switch, &self.config);
        self.attachment.outer.tell_named(&self.config.ports);
        self.follow_carriers();
        self.follow_patterns();
        self.follow_mtu();
        self.warn_of_changes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, index: u32) -> Interface {
        Interface {
            name: name.to_owned(),
            index,
            mac: Mac::from_position(index),
            mtu: 1500,
            ethernet: true,
            up: true,
            carrier: true,
            master: None,
            kind: None,
        }
    }

    /// A node with an interface at port 1, and its agent at port 2.
    fn with_port(interface: &Interface) -> OuterPorts {
        let lock = InterfaceLock::take(&interface.name).unwrap();
        let held =
            HeldOuterPort { lock, by_pattern: true, index: Some(interface.index), mac: Some(interface.mac) };
        OuterPorts::new(BTreeMap::from([(1, held)]), 2, Matched::default())
    }

    #[test]
    fn a_renamed_interface_keeps_its_number_though_nobody_told_of_its_old_name_yet() {
        let old = interface("test-old-name", 7);
        let outer = with_port(&old);
        let renamed = Interface { name: "test-new-name".to_owned(), ..old.clone() };
        assert_eq!(outer.number_for(&renamed, std::slice::from_ref(&renamed)), Some(1));
        // An interface with the same address that exists beside the old one is another interface.
        assert_eq!(outer.number_for(&renamed, &[old, renamed.clone()]), Some(3));
    }

    #[test]
    fn a_new_interface_gets_a_free_number_and_not_that_of_one_that_may_come_back() {
        let outer = with_port(&interface("test-gone", 8));
        let new = interface("test-new", 9);
        assert_eq!(outer.number_for(&new, std::slice::from_ref(&new)), Some(3));
    }
}
