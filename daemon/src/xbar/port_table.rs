//! The table of a running crossbar's ports, which interfaces join and leave.

use mapper_proto::PortSet;
use std::collections::BTreeMap;
use std::rc::Rc;

use mapper_fabric::wording::with_causes;
use mapper_proto::wire::{Crossbar, CrossbarKind};
use tracing::{error, info, warn};

use super::options::XbarSource;
use super::ports::{self, Numbered};
use super::process::{XbarConfig, XbarError, XbarKind};
use super::switch::Switch;
use mapper_machine::interface_lock::InterfaceLock;
use mapper_machine::link::Link;
use mapper_machine::link::interface::{Interface, InterfaceChange};
use mapper_machine::link::port::EthernetPort;
use mapper_machine::log;
use mapper_machine::options::changed_keys;

/// A crossbar and the interfaces behind its ports.
#[derive(Debug)]
pub(super) struct PortTable {
    switch: Rc<Switch>,
    config: XbarConfig,
    held: BTreeMap<u8, HeldInterface>,
}

/// An interface that is a port.
#[derive(Debug)]
struct HeldInterface {
    lock: InterfaceLock,
    /// Whether the interface is a port because it matches a pattern, and not because it is named.
    by_pattern: bool,
}

impl HeldInterface {
    fn interface(&self) -> &str {
        self.lock.interface()
    }
}

/// Whether an interface became a port, and if not, why.
enum Taking {
    Taken,
    Failed(XbarError),
    NoNumber,
}

impl PortTable {
    /// Opens all interfaces that are named, and those that match a pattern now.
    ///
    /// # Errors
    /// If an interface that is named cannot be used, or belongs to another daemon.
    pub(super) fn open(config: &XbarConfig) -> Result<Self, XbarError> {
        let mut held = BTreeMap::new();
        let mut links = Vec::new();
        for (number, interface) in &config.interfaces {
            let (port, link) = hold(config, *number, interface, false)?;
            held.insert(*number, port);
            links.push((*number, link));
        }
        let crossbar = Crossbar {
            kind: kind(config)?,
            first_port: config.first_port,
            ports: config.ports,
            carriers: PortSet::NONE,
        };
        let switch = Rc::new(Switch::new(&config.name, crossbar, links));
        let mut table = Self { switch, config: config.clone(), held };
        table.take_all_that_match();
        Ok(table)
    }

    /// The ports that have an interface, and its name.
    pub(super) fn interfaces(&self) -> impl Iterator<Item = (u8, String)> + '_ {
        self.held.iter().map(|(&number, held)| (number, held.interface().to_owned()))
    }

    pub(super) const fn switch(&self) -> &Rc<Switch> {
        &self.switch
    }

    /// Takes in a change of any interface of the machine; it need not be a port.
    pub(super) fn apply(&mut self, change: &InterfaceChange) {
        self.switch.apply(change);
        match change {
            InterfaceChange::Now(interface) => self.take_if_it_matches(interface),
            InterfaceChange::Missed => self.take_all_that_match(),
            InterfaceChange::Gone { .. } => {}
        }
    }

    /// Reads the configuration again, and follows it in its ports and in what is logged. A configuration that
    /// cannot be used changes nothing.
    pub(super) fn reload(&mut self, source: &XbarSource) {
        let current: Numbered =
            self.held.iter().map(|(number, held)| (*number, held.interface().to_owned())).collect();
        let new = match source.read(&current) {
            Ok(new) => new,
            Err(error) => return error!("the configuration is not used: {error}"),
        };
        let (new, start_only) = read_again(&self.config, new);
        for key in start_only {
            warn!(key, "this key counts only at start; restart the crossbar");
        }
        log::set_level(new.service.log.level);
        self.config.service = new.service.clone();
        let last = usize::from(self.config.first_port) + usize::from(self.config.ports);
        let outside =
            |number: u8| number < self.config.first_port || !self.config.grows && usize::from(number) >= last;
        if let Some((number, interface)) = new.interfaces.iter().find(|(number, _)| outside(*number)) {
            return error!(
                port = number,
                interface, "the configuration is not used: the crossbar has no such port; restart it"
            );
        }
        self.config = new;
        self.let_go_of_the_rest();
        for (number, interface) in self.config.interfaces.clone() {
            if self.held.contains_key(&number) {
                continue;
            }
            if let Taking::Failed(error) = self.take(number, &interface, false) {
                error!(port = number, interface, "cannot take the port: {}", with_causes(&error));
            }
        }
        self.take_all_that_match();
        info!("the configuration was read again");
    }

    /// Gives up the interfaces that the configuration neither names for their port nor matches with a
    /// pattern.
    fn let_go_of_the_rest(&mut self) {
        let XbarConfig { interfaces, patterns, .. } = &self.config;
        let switch = &self.switch;
        self.held.retain(|number, held| {
            let is_named = interfaces.iter().any(|(named, name)| named == number && name == held.interface());
            let is_free = interfaces.iter().all(|(named, name)| named != number && name != held.interface());
            let matches = patterns.iter().any(|pattern| ports::matches(pattern, held.interface()));
            held.by_pattern = !is_named;
            let stays = is_named || is_free && matches;
            if !stays {
                switch.remove(*number);
                info!(port = number, interface = held.interface(), "the port is given up");
            }
            stays
        });
    }

    fn take_all_that_match(&mut self) {
        if self.config.patterns.is_empty() {
            return;
        }
        match Interface::all() {
            Ok(interfaces) => interfaces.iter().for_each(|interface| self.take_if_it_matches(interface)),
            Err(error) => error!("cannot list the interfaces: {}", with_causes(&error)),
        }
    }

    /// Makes an interface a port if it matches a pattern and is no port yet.
    fn take_if_it_matches(&mut self, interface: &Interface) {
        let name = &interface.name;
        let matches = self.config.patterns.iter().any(|pattern| ports::matches(pattern, name));
        let is_port = self.held.values().any(|held| held.interface() == name)
            || self.config.interfaces.iter().any(|(_, named)| named == name);
        if !matches || is_port || !interface.ethernet {
            return;
        }
        let taking = match self.free_number() {
            Some(number) => self.take(number, name, true),
            None => Taking::NoNumber,
        };
        match taking {
            Taking::Taken => {}
            Taking::Failed(error) => warn!(interface = name, "no port: {}", with_causes(&error)),
            Taking::NoNumber => warn!(interface = name, "no port: the crossbar has no number left for it"),
        }
    }

    /// The lowest number that is free. If there is none, that of an interface that was a port by a pattern
    /// and is gone.
    fn free_number(&mut self) -> Option<u8> {
        let XbarConfig { first_port, ports, grows, .. } = self.config;
        let end =
            if grows { usize::from(first_port) + 255 } else { usize::from(first_port) + usize::from(ports) };
        let is_named = |number: u8| self.config.interfaces.iter().any(|(named, _)| *named == number);
        let mut numbers = (first_port..=u8::MAX).take_while(|&number| usize::from(number) < end);
        if let Some(free) = numbers.find(|number| !self.held.contains_key(number) && !is_named(*number)) {
            return Some(free);
        }
        let status = self.switch.status();
        let is_gone = |number: u8| status.ports.iter().any(|port| port.port == number && !port.exists);
        let left = self.held.iter().find(|(number, held)| held.by_pattern && is_gone(**number));
        left.map(|(number, _)| *number)
    }

    fn take(&mut self, number: u8, interface: &str, by_pattern: bool) -> Taking {
        match hold(&self.config, number, interface, by_pattern) {
            Ok((held, link)) => {
                let carrier = link.carrier();
                self.switch.add(number, link);
                self.held.insert(number, held);
                info!(port = number, interface, carrier, "the port is taken");
                Taking::Taken
            }
            Err(error) => Taking::Failed(error),
        }
    }
}

/// Locks and opens an interface.
fn hold(
    config: &XbarConfig,
    number: u8,
    interface: &str,
    by_pattern: bool,
) -> Result<(HeldInterface, Link), XbarError> {
    let lock = InterfaceLock::take(interface)?;
    let port = EthernetPort::open(interface, config.service.marking)?;
    if !port.exists() {
        warn!(port = number, interface, "there is no such interface yet; waiting for it");
    }
    Ok((HeldInterface { lock, by_pattern }, port.into()))
}

fn kind(config: &XbarConfig) -> Result<CrossbarKind, XbarError> {
    Ok(match config.kind {
        XbarKind::Plain => CrossbarKind::Plain,
        XbarKind::Tagged(Some(tag)) => CrossbarKind::Tagged { tag },
        XbarKind::Tagged(None) => CrossbarKind::Tagged { tag: derive_tag(config)? },
    })
}

/// The tag of a crossbar to which none was given: the address of the first interface that is named, or if
/// none is, of the first that matches a pattern.
fn derive_tag(config: &XbarConfig) -> Result<u64, XbarError> {
    let interface = match (config.interfaces.first(), config.patterns.first()) {
        (Some((_, name)), _) => Interface::look_up(name)?.ok_or_else(|| name.clone()),
        (None, pattern) => {
            let matches = |interface: &Interface| {
                interface.ethernet
                    && config.patterns.iter().any(|pattern| ports::matches(pattern, &interface.name))
            };
            let pattern = pattern.cloned().unwrap_or_default();
            Interface::all()?.into_iter().find(matches).ok_or(pattern)
        }
    };
    interface.map(|interface| interface.mac.to_u64()).map_err(XbarError::NoTag)
}

/// The configuration that a crossbar that began with `old` continues with after it has read `new`, and the
/// keys in which the two differ but that count only at the start.
fn read_again(old: &XbarConfig, new: XbarConfig) -> (XbarConfig, Vec<&'static str>) {
    // The pattern has no `..`, so that a new option does not compile before somebody decided whether it
    // counts only at the start.
    let XbarConfig {
        name,
        service,
        interfaces,
        patterns,
        first_port,
        ports,
        grows,
        kind,
        data_path,
        kernel_avoid,
    } = new;
    let (service, mut start_only) = old.service.read_again(service);
    start_only.extend(changed_keys([
        ("name", old.name != name),
        ("first-port", old.first_port != first_port),
        ("port-count", old.grows != grows || !old.grows && old.ports != ports),
        ("kind or tag", old.kind != kind),
        ("data-path", old.data_path != data_path),
        ("kernel-avoid", old.kernel_avoid != kernel_avoid),
    ]));
    (XbarConfig { service, interfaces, patterns, ..old.clone() }, start_only)
}
