//! Hosts that share an address.
//!
//! A host is who it is by address and session: an agent draws its session at random when it starts.
//! So two hosts with one address are two anchors, and do not join the xbars that they are cabled to.
//! In the end the addresses that several hosts have are known, and each of those hosts is asked once
//! more: a host that restarted meanwhile was met as two, and now answers as one. Then the exploration
//! begins anew.

use std::collections::{BTreeMap, VecDeque};

use super::knowledge::KnownHost;
use super::request::{Ask, Job};
use super::routes::WayOut;
use super::schedule::Class;
use super::{ExploreError, ExploreOutcome, Explorer, RequestKind};
use crate::Mac;
use crate::map::{Contested, Host, PortRef};
use crate::wire::Route;

/// A host that answered: what it says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Met {
    /// Its address, level and type ([`Host::at`] means nothing here).
    pub host: Host,
    /// Tells its agent from all others, and from its former self.
    pub session: u32,
    /// Whether it says itself that another host has its address.
    pub contested: bool,
}

impl From<Host> for Met {
    /// A host of session 0.
    fn from(host: Host) -> Self {
        Self { host, session: 0, contested: false }
    }
}

/// Contested hosts that are asked once more.
#[derive(Debug, Default)]
pub(super) struct Confirmations {
    begun: bool,
    /// The hosts that are still to be asked, and how often each was asked already.
    todo: VecDeque<(u32, u8)>,
}

impl Explorer {
    /// The session of each host that was met, by its address. This host is left out, and of hosts that share an
    /// address one stands for all.
    pub fn sessions(&self) -> BTreeMap<Mac, u32> {
        self.known.hosts().iter().skip(1).map(|known| (known.host.mac, known.session)).collect()
    }

    /// How many hosts have each address.
    fn claims(&self) -> BTreeMap<Mac, u32> {
        let mut claims = BTreeMap::new();
        for (index, known) in (0..).zip(self.known.hosts()) {
            if index == 0 || known.at.is_some() || self.direct == Some(index) {
                *claims.entry(known.host.mac).or_default() += 1;
            }
        }
        claims
    }

    /// Which hosts must not be believed, by rising index. This host itself is always believed.
    pub(super) fn contested_hosts(&self) -> Vec<u32> {
        let claims = self.claims();
        let is_contested = |known: &KnownHost| {
            known.contested || claims.get(&known.host.mac).is_some_and(|&claims| claims > 1)
        };
        (0..)
            .zip(self.known.hosts())
            .skip(1)
            .filter(|(_, known)| is_contested(known))
            .map(|(i, _)| i)
            .collect()
    }

    /// The contested ports of the map to be. `place` tells where a host is.
    pub(super) fn contested_ports(
        &self,
        hosts: &[u32],
        place: impl Fn(&KnownHost) -> Option<PortRef>,
    ) -> Vec<Contested> {
        let known = |&host: &u32| self.known.hosts()[host as usize];
        let mut ports: Vec<_> = hosts
            .iter()
            .map(known)
            .filter_map(|known| Some(Contested { mac: known.host.mac, at: place(&known)? }))
            .collect();
        ports.sort_unstable();
        ports
    }

    /// Begins to ask all hosts that share an address once more. False if that is done, or there are
    /// none.
    pub(super) fn begin_confirmations(&mut self) -> bool {
        if std::mem::replace(&mut self.confirmations.begun, true) {
            return false;
        }
        let hosts = self.contested_hosts();
        // A host that says itself that its address is contested need not be asked whether it is there.
        let todo = hosts.into_iter().filter(|&host| !self.known.hosts()[host as usize].contested);
        self.confirmations.todo = todo.map(|host| (host, 0)).collect();
        !self.confirmations.todo.is_empty()
    }

    /// The next contested host to ask.
    pub(super) fn next_confirmation(&mut self) -> Option<(Job, Class)> {
        let (host, sent) = self.confirmations.todo.pop_front()?;
        Some((Job::Confirm { host, sent }, Class::Retry))
    }

    /// The scout that asks a contested host once more.
    pub(super) fn confirmation_request(&self, host: u32) -> Option<(Route, RequestKind)> {
        let at = self.known.hosts()[host as usize].at?;
        Self::request_along(&WayOut::out_of(&self.known, at.node, at.delta)?, Ask::Scout)
    }

    /// Takes in what a contested host answered that was asked once more.
    pub(super) fn confirmed(
        &mut self,
        host: u32,
        sent: u8,
        outcome: Option<ExploreOutcome>,
    ) -> Result<(), ExploreError> {
        let known = self.known.hosts()[host as usize];
        match outcome {
            Some(ExploreOutcome::Host(met))
                if (met.host.mac, met.session) == (known.host.mac, known.session) =>
            {
                Ok(())
            }
            None if sent + 1 < self.settings.probe_tries => {
                self.confirmations.todo.push_back((host, sent + 1));
                Ok(())
            }
            _ => Err(ExploreError::Contradiction("a host restarted or went away")),
        }
    }
}
