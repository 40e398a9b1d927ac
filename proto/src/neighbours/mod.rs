//! Who is at the other end of each cable, as neighbours tell each other by hellos.
//!
//! [`Neighbours`] is what one crossbar, or one agent without a crossbar, knows of the cables at its ports. It
//! does no I/O: it is told which interfaces have carrier ([`Neighbours::set_port`]) and what was heard
//! ([`Neighbours::handle_hello`]), and is then asked what is to be sent ([`Neighbours::poll_hello`]), what
//! has changed ([`Neighbours::poll_event`]) and when something is due ([`Neighbours::poll_timeout`]).
//!
//! A port says hello when it gets carrier, as soon as it hears somebody new, and every [`INTERVAL`]. Each
//! hello lists whom its sender has heard in the last [`SILENCE`]. So both ends know whether frames pass in
//! both directions, and whether more than two interfaces share the cable, also where one end alone
//! hears that. Who is silent for [`SILENCE`] is forgotten, and all are when the carrier is lost.

mod port;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::wire::{Hello, HelloEnd, HelloFlags};
use crate::{Instant, Mac};
use port::Port;

/// How often a port says hello when nothing happens.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// After how long a silent neighbour is forgotten.
pub const SILENCE: Duration = Duration::from_secs(3);

/// What a port says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Own {
    /// What is at this end.
    pub end: HelloEnd,
    /// The address of the port's interface.
    pub mac: Mac,
    /// The most bytes behind the Ethernet header that the interface carries.
    pub mtu: u32,
    /// What the kernel here does with packets that arrive at the interface.
    pub flags: HelloFlags,
}

/// Who is at the other end of a cable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neighbour {
    /// What is at that end: a port of a crossbar, or a host's own interface.
    pub end: HelloEnd,
    /// The address of the interface there.
    pub mac: Mac,
    /// The most bytes behind the Ethernet header that the interface there carries.
    pub mtu: u32,
    /// What the kernel there does with packets that arrive.
    pub flags: HelloFlags,
}

/// Somebody who shares a cable with others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Party {
    /// The address of the interface.
    pub mac: Mac,
    /// What it is, if it was heard here; `None` if a neighbour alone has heard it.
    pub end: Option<HelloEnd>,
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.end {
            Some(HelloEnd::Host { mac }) if mac == self.mac => write!(f, "host {mac}"),
            Some(end) => write!(f, "{} ({end})", self.mac),
            None => write!(f, "{}", self.mac),
        }
    }
}

/// What is known of the cable at a port.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum KnownCable {
    /// Nobody is heard, or somebody has been heard just now and has not yet said whether it hears this port.
    #[default]
    Silent,
    /// One neighbour is heard, and hears this port alone.
    Joined(Neighbour),
    /// One neighbour is heard and does not hear this port.
    OneWay(Neighbour),
    /// This port hears another port of the same crossbar, or itself, and nobody else.
    Looped {
        /// The port that is heard.
        port: u8,
    },
    /// More than two interfaces share the cable: these, as far as they are known, beside the port's own.
    Shared(Vec<Party>),
}

/// The cable of a port has changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CableChange {
    /// The port's number.
    pub port: u8,
    /// What was known of its cable before.
    pub before: KnownCable,
    /// What is known now.
    pub now: KnownCable,
}

/// What is known of the cables at all ports. Every call is given a time that is not earlier than that of
/// the call before.
#[derive(Debug, Default)]
pub struct Neighbours {
    ports: BTreeMap<u8, Port>,
    /// The time up to which all ports have been looked at for what changes by the passing of time alone.
    looked_at: Instant,
}

impl Neighbours {
    /// Nothing is known, and there are no ports.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says what a port is, or with `None` that it has no interface or no carrier.
    pub fn set_port(&mut self, now: Instant, port: u8, own: Option<Own>) {
        self.ports.entry(port).or_default().set_own(now, own);
    }

    /// Takes a hello that arrived at a port from the address `source`. Returns whether it is used: not one
    /// from another address than that of the interface that it names, or at a port without carrier.
    pub fn handle_hello(&mut self, now: Instant, port: u8, source: Mac, hello: &Hello) -> bool {
        let is_unicast = source.0[0] & 1 == 0 && source != Mac::default();
        let Some(heard_at) = self.ports.get_mut(&port) else { return false };
        source == hello.mac && is_unicast && heard_at.hear(now, hello)
    }

    /// The next hello that is due: the port and the frame, from its type on.
    pub fn poll_hello(&mut self, now: Instant) -> Option<(u8, Vec<u8>)> {
        self.ports.iter_mut().find_map(|(number, port)| Some((*number, port.due_hello(now)?.encode())))
    }

    /// The next change of a cable.
    pub fn poll_event(&mut self, now: Instant) -> Option<CableChange> {
        self.looked_at = self.looked_at.max(now);
        let owns: Vec<(u8, Own)> =
            self.ports.iter().filter_map(|(number, port)| Some((*number, port.own?))).collect();
        self.ports.iter_mut().find_map(|(number, port)| {
            let before = port.look(now, &owns)?;
            Some(CableChange { port: *number, before, now: port.cable().clone() })
        })
    }

    /// When something is due next, if nothing is heard before. Poll hellos and events first.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.ports.values().filter_map(|port| port.deadline(self.looked_at)).min()
    }

    /// What is known of the cable at a port, as the last event said.
    pub fn cable(&self, port: u8) -> &KnownCable {
        self.ports.get(&port).map_or(&KnownCable::Silent, Port::cable)
    }

    /// The neighbours at all ports whose cable has two ends and carries frames in both directions.
    pub fn joined(&self) -> BTreeMap<u8, Neighbour> {
        let joined = self.ports.iter().filter_map(|(number, port)| match port.cable() {
            KnownCable::Joined(neighbour) => Some((*number, *neighbour)),
            KnownCable::Silent
            | KnownCable::OneWay(_)
            | KnownCable::Looped { .. }
            | KnownCable::Shared(_) => None,
        });
        joined.collect()
    }
}

#[cfg(test)]
mod tests;
