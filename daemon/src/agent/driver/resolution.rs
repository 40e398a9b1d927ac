//! Names and addresses that are not announced: those that programs on this machine say it has, and those that
//! they ask for.

use std::collections::BTreeMap;
use std::time::Duration;

use mapper_host::data::tap_mtu;
use mapper_host::resolution::{Found, Group, Owner, Patience, Wanted};
use mapper_machine::status::Client;
use mapper_proto::Instant;

use super::state::Driver;
use crate::agent::status::{KnownOwner, Resolved, WhoHas};

/// How long a name or an address that a program says this machine has counts, unless the program says it
/// again.
const LEASE: Duration = Duration::from_secs(60);
/// How many programs may wait for answers at once. Each takes one of the places for requests.
const MOST_WAITING: usize = 40;
/// How long, and how often, hosts are asked when a person waits for the answer.
const FOR_A_PERSON: Patience = Patience { timeout: Duration::from_millis(250), retries: 1 };

/// What a program waits for.
#[derive(Debug)]
enum Waiter {
    /// The hosts that have it.
    WhoHas(Client),
    /// All that is known of the hosts that have it.
    Resolve(Client),
}

/// The programs that wait for answers, and how long what was said of this machine counts.
#[derive(Debug, Default)]
pub(super) struct Resolution {
    waiting: BTreeMap<Wanted, Vec<Waiter>>,
    /// When the names and addresses that a program said no longer count.
    lease_ends: Option<Instant>,
}

impl Driver {
    /// Takes in which other names and addresses this machine has, as a program says.
    pub(super) fn take_more_names(&mut self, names: &[String], client: Client) {
        let now = self.now();
        self.resolution.lease_ends = (!names.is_empty()).then(|| now + LEASE);
        self.host.set_more_names(now, names.iter().filter_map(|name| Wanted::parse(name)));
        drop(tokio::spawn(client.answer_json(move || serde_json::to_vec(&()))));
    }

    /// When the names and addresses that a program said no longer count.
    pub(super) const fn lease_ends_at(&self) -> Option<Instant> {
        self.resolution.lease_ends
    }

    /// Forgets what a program has said and not said again in time.
    pub(super) fn end_lease_if_due(&mut self) {
        let now = self.now();
        if self.resolution.lease_ends.is_some_and(|at| at <= now) {
            self.resolution.lease_ends = None;
            self.host.set_more_names(now, []);
        }
    }

    /// Answers which hosts have a name or an address, as soon as that is known.
    pub(super) fn who_has(&mut self, wanted: &str, patience: Patience, client: Client) {
        match Wanted::parse(wanted) {
            Some(wanted) => self.ask_who_has(wanted, patience, Waiter::WhoHas(client)),
            // No host can have such a name.
            None => answer(client, WhoHas::Owners(Vec::new())),
        }
    }

    /// Answers what is known of the hosts that a name or an address stands for. If nothing is known, all
    /// hosts are asked.
    pub(super) fn resolve(&mut self, wanted: &str, client: Client) {
        let resolved = Resolved::of(&self.host, wanted);
        let unknown = resolved.hosts.is_empty() && wanted.parse::<mapper_proto::Mac>().is_err();
        match Wanted::parse(wanted).filter(|_| unknown) {
            Some(wanted) => self.ask_who_has(wanted, FOR_A_PERSON, Waiter::Resolve(client)),
            None => drop(tokio::spawn(client.answer_json(move || serde_json::to_vec(&resolved)))),
        }
    }

    fn ask_who_has(&mut self, wanted: Wanted, patience: Patience, waiter: Waiter) {
        let now = self.now();
        let known = self.host.learned_owners(now, &wanted);
        if !known.is_empty() {
            return self.tell_owners(vec![waiter], &known);
        }
        let waiting: usize = self.resolution.waiting.values().map(Vec::len).sum();
        if waiting >= MOST_WAITING {
            return self.refuse(waiter, format!("{waiting} programs wait for answers already"));
        }
        match self.host.ask_who_has(now, wanted.clone(), patience) {
            Ok(()) => self.resolution.waiting.entry(wanted).or_default().push(waiter),
            Err(error) => self.refuse(waiter, error.to_string()),
        }
    }

    /// Answers all who wait for what was found out.
    pub(super) fn take_found(&mut self, found: &Found) {
        let waiters = self.resolution.waiting.remove(&found.wanted).unwrap_or_default();
        self.tell_owners(waiters, &found.owners);
    }

    fn tell_owners(&self, waiters: Vec<Waiter>, owners: &[Owner]) {
        for waiter in waiters {
            match waiter {
                Waiter::WhoHas(client) => {
                    let owners = owners.iter().map(|owner| self.known_owner(owner)).collect();
                    answer(client, WhoHas::Owners(owners));
                }
                Waiter::Resolve(client) => {
                    let resolved = Resolved::of_hosts(&self.host, owners.iter().map(|owner| owner.mac));
                    drop(tokio::spawn(client.answer_json(move || serde_json::to_vec(&resolved))));
                }
            }
        }
    }

    fn refuse(&self, waiter: Waiter, why: String) {
        match waiter {
            Waiter::WhoHas(client) => answer(client, WhoHas::Refused(why)),
            Waiter::Resolve(_) => self.tell_owners(vec![waiter], &[]),
        }
    }

    /// A host that has something, and what both ends can do, as programs are told.
    pub(super) fn known_owner(&self, owner: &Owner) -> KnownOwner {
        let Group { rate_mbps, mtu_bytes, .. } = owner.group;
        let max_hops = self.config.route_options().max_hops;
        let mtu_bytes = tap_mtu(mtu_bytes.into(), max_hops).unwrap_or_default();
        KnownOwner { mac: owner.mac.to_string(), rate_mbps, mtu_bytes }
    }
}

fn answer(client: Client, said: WhoHas) {
    drop(tokio::spawn(client.answer_json(move || serde_json::to_vec(&said))));
}
