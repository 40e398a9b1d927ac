//! Names and addresses that the directory does not tell: which this host has, and who has others.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use mapper_proto::{Instant, IpNetworkAddress};

use super::Host;
use crate::directory::PortRates;
use crate::event::HostEvent;
use crate::resolution::{Found, Group, Owner, Patience, Refused, TooManyQuestions, Wanted};

/// What this host is called and which addresses it has, as it was told.
#[derive(Debug, Default)]
pub(super) struct OwnNames {
    /// All addresses of the machine that others could use.
    pub(super) addresses: Vec<IpAddr>,
    /// The addresses of its tap interface.
    pub(super) of_tap: Vec<IpNetworkAddress>,
    /// Names and addresses of this host that the directory does not tell.
    more: BTreeSet<Wanted>,
}

impl OwnNames {
    /// The most names and addresses beside those that the directory tells.
    const MOST: usize = 4096;
}

impl Host {
    /// Says which names and addresses this host has beside those that the directory tells. They replace what
    /// was said before, and those that exceed the bound are left out. Other hosts learn of them only by
    /// asking.
    pub fn set_more_names(&mut self, now: Instant, more: impl IntoIterator<Item = Wanted>) {
        self.own_names.more = more.into_iter().take(OwnNames::MOST).collect();
        self.tell_resolver(now);
        self.settle(now);
    }

    /// Says how fast this host's interfaces are, which all others are told.
    pub fn set_rates(&mut self, now: Instant, rates: PortRates) {
        self.services.gossip_mut().set_rates(rates);
        self.settle(now);
    }

    /// Says what this host's interfaces can do, the best first, at most [`Group::MOST`].
    pub fn set_groups(&mut self, groups: Vec<Group>) {
        self.services.resolver_mut().set_groups(groups);
    }

    /// Asks all hosts who has a name or an address. [`HostEvent::Found`] tells what came of it.
    ///
    /// # Errors
    /// If too many other questions wait.
    pub fn ask_who_has(
        &mut self,
        now: Instant,
        wanted: Wanted,
        patience: Patience,
    ) -> Result<(), TooManyQuestions> {
        self.services.resolver_mut().ask(now, wanted, patience)?;
        self.settle(now);
        Ok(())
    }

    /// Who has a name or an address that the directory does not tell, as far as that was learned and still
    /// counts.
    pub fn learned_owners(&self, now: Instant, wanted: &Wanted) -> Vec<Owner> {
        self.services.resolver().owners(now, self.directory(), wanted)
    }

    /// All that was learned by questions and still counts.
    pub fn learned(&self, now: Instant) -> Vec<Found> {
        self.services.resolver().all_learned(now, self.directory())
    }

    /// How often and why questions and answers of other hosts were not taken.
    pub fn resolution_refused(&self) -> &mapper_proto::Tally<Refused> {
        self.services.resolver().refused()
    }

    /// The most questions and answers of this and other hosts that have waited here at once.
    pub fn most_questions_queued(&self) -> usize {
        self.services.resolver().most_queued()
    }

    /// How many entries the tables and queues of names and addresses that were asked for have.
    pub fn resolution_load(&self) -> usize {
        self.services.resolver().load()
    }

    /// Tells the resolver what this host has, and of each whether the directory tells it.
    pub(super) fn tell_resolver(&mut self, now: Instant) {
        let directory = self.services.gossip().directory();
        let mut owned: BTreeMap<Wanted, bool> =
            self.own_names.more.iter().map(|wanted| (wanted.clone(), false)).collect();
        let told = |ip: IpAddr| directory.addresses_of(self.own).iter().any(|address| address.ip() == ip);
        owned.extend(self.own_names.addresses.iter().map(|&ip| (Wanted::Ip(ip), told(ip))));
        owned
            .extend(directory.name_of(self.own).and_then(|name| Some((Wanted::parse(name.as_str())?, true))));
        let must_rise = self.services.resolver_mut().set_owned(now, owned);
        if must_rise {
            self.services.gossip_mut().raise_revision();
        }
    }

    /// Tells the resolver the revision of this host's record, and hands out what it found.
    pub(super) fn settle_resolution(&mut self) {
        if let Some(revision) = self.directory().revision_of(self.own) {
            self.services.resolver_mut().set_revision(revision);
        }
        while let Some(found) = self.services.resolver_mut().poll_found() {
            self.events.push_back(HostEvent::Found(found));
        }
    }
}
