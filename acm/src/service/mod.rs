//! The service: requests in, replies out.
//!
//! It is a deterministic state machine. In: [`Service::set_unit`], [`Service::suspect`] and [`Service::remove_unit`] for
//! what agents of the machine know, [`Service::handle_request`] for what clients ask, [`Service::handle_asked`] for what an
//! agent found out, [`Service::handle_timeout`].
//! Out: the reply that [`Service::handle_request`] appends, or later [`Service::poll_reply`]; [`Service::poll_ask`], what agents
//! are to find out, as nothing is known of it; [`Service::poll_timeout`]. Time is a number that is passed in.
//!
//! An answer comes of two steps, each with a cache: whose an address is, and the path to that host. What an agent tells anew
//! is compared with what it told before, and of both caches exactly that is dropped which would now be answered otherwise.
//! A client that remembers answers itself is told when something was told anew ([`Request::Changed`]).
//! Between the word of an agent that its map or its routes have changed ([`Service::suspect`]) and what it then tells,
//! nothing is answered of its fabric: questions wait.

mod asking;
mod endpoint;
mod resolve;
mod settings;
#[cfg(test)]
mod tests;
mod waiting;

pub use asking::Ask;
pub use endpoint::{Counter, Counters, Endpoint, EndpointKey};
pub use settings::Settings;

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv6Addr;

use mapper_proto::{Instant, Mac};

use crate::cache::Cache;
use crate::fabric::{FoundPath, Learned, Owner, Unit, Wanted, gid_of, mac_of};
use crate::wire::{Address, EntryFlags, Malformed, PathRecord, Reply, Request, Status};
use asking::Asking;
use resolve::Looked;
use waiting::{Awaited, Waiters};

/// A connection of a client, by the number that whoever drives the service gave it.
pub type ClientId = u64;

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handled {
    /// The reply was appended.
    Answered,
    /// The reply will come by [`Service::poll_reply`].
    Waits,
}

/// The greatest number of a change; three bytes of it travel.
const LAST_CHANGE: u32 = 0x00ff_ffff;

/// What an agent knows, and whether that is still so.
#[derive(Debug)]
struct Known {
    unit: Unit,
    /// Whether the agent has said that something changed, and not yet what, or is silent.
    is_suspect: bool,
    /// Whether the agent was silent, so that it may have forgotten what it had found out.
    is_lost: bool,
}

/// Whose an address is, as it is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owned {
    /// Of the host with this GID.
    By(Ipv6Addr),
    /// Of nobody who has said so in time.
    ByNobody,
}

/// The service.
#[derive(Debug)]
pub struct Service {
    settings: Settings,
    units: BTreeMap<u8, Known>,
    endpoints: Vec<Endpoint>,
    /// Which endpoint goes by an address, as [`Address::into_key`] writes it.
    own: BTreeMap<Address, usize>,
    /// Whose an address is, in the fabric of an agent.
    addresses: Cache<(u8, Address), Owned>,
    /// The path to a GID from an endpoint.
    routes: Cache<(EndpointKey, Ipv6Addr), PathRecord>,
    counters: BTreeMap<EndpointKey, Counters>,
    total: Counters,
    waiting: Waiters,
    /// The number of the last change of what is answered; never 0.
    change: u32,
    asking: Asking,
    replies: VecDeque<(ClientId, Vec<u8>)>,
}

impl Service {
    /// A service that knows no agent yet.
    pub fn new(settings: Settings) -> Self {
        let most = settings.most_cached;
        Self {
            settings,
            units: BTreeMap::new(),
            endpoints: Vec::new(),
            own: BTreeMap::new(),
            addresses: Cache::new(most),
            routes: Cache::new(most),
            counters: BTreeMap::new(),
            total: Counters::default(),
            waiting: Waiters::default(),
            change: 1,
            asking: Asking::default(),
            replies: VecDeque::new(),
        }
    }

    /// Takes other settings. What is remembered of files is forgotten, and the rest stays.
    pub fn set_settings(&mut self, now: Instant, settings: Settings) {
        self.addresses.set_most(settings.most_cached);
        self.routes.set_most(settings.most_cached);
        if settings != self.settings {
            self.count_change();
        }
        self.settings = settings;
        self.forget_what_changed();
        self.find_endpoints();
        self.try_waiting(now);
    }

    /// Takes what an agent knows now, and says how many remembered answers no longer held. What an agent had found out that
    /// was silent, and does not tell any more, is found out anew.
    pub fn set_unit(&mut self, now: Instant, number: u8, unit: Unit) -> usize {
        let known = Known { unit, is_suspect: false, is_lost: false };
        let before = self.units.insert(number, known);
        let unit = self.units.get(&number).map(|known| &known.unit);
        if before.as_ref().map(|known| &known.unit) != unit {
            self.count_change();
        }
        if let Some(Known { unit, is_lost: true, .. }) = before {
            self.ask_again(now, number, &unit);
        }
        let dropped = self.forget_what_changed();
        self.find_endpoints();
        self.try_waiting(now);
        dropped
    }

    /// Takes in that what an agent knows has changed, or that it is silent: nothing is answered of its fabric until
    /// [`Self::set_unit`].
    pub fn suspect(&mut self, number: u8) {
        if let Some(known) = self.units.get_mut(&number) {
            known.is_suspect = true;
        }
    }

    /// Takes in that an agent is silent. It may have ended, and have forgotten what it had found out when it is back.
    pub fn lose(&mut self, number: u8) {
        if let Some(known) = self.units.get_mut(&number) {
            (known.is_suspect, known.is_lost) = (true, true);
        }
    }

    /// Has an agent find out anew what it had found out before.
    fn ask_again(&mut self, now: Instant, number: u8, before: &Unit) {
        for key in before.learned() {
            if matches!(self.look_up(number, key), Looked::Unknown) {
                self.asking.push(now, number, &Wanted::Address(key.clone()), None);
            }
        }
    }

    fn count_change(&mut self) {
        self.change = if self.change == LAST_CHANGE { 1 } else { self.change + 1 };
    }

    /// Takes in that an agent is gone for good.
    pub fn remove_unit(&mut self, now: Instant, number: u8) {
        if self.units.remove(&number).is_some() {
            self.count_change();
        }
        self.asking.forget_unit(number);
        self.forget_what_changed();
        self.find_endpoints();
        self.try_waiting(now);
    }

    /// The endpoints of this machine, in the order in which clients number them, from 1.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// The counters of all endpoints together.
    pub fn total(&self) -> Counters {
        self.total
    }

    /// How many answers are remembered: addresses and paths.
    pub fn cached(&self) -> (usize, usize) {
        (self.addresses.len(), self.routes.len())
    }

    /// How many questions wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Takes a request of a client: all bytes of one message. The reply is appended to `out`, unless it waits.
    ///
    /// # Errors
    /// If it is no request. The client is not to be answered any more.
    pub fn handle_request(
        &mut self,
        now: Instant,
        client: ClientId,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Handled, Malformed> {
        let (header, request) = Request::parse(bytes)?;
        let reply = match request {
            Request::Resolve(question) => {
                self.total.count(Counter::Resolve);
                match self.resolve(now, &question) {
                    Some(reply) => reply,
                    None if question.flags.has(EntryFlags::NO_DELAY) => {
                        // The client does not wait, but the answer is found out for the next who asks.
                        self.have_asked(now, &question, None);
                        Reply::Failed(Status::NO_DATA)
                    }
                    None => match self.wait(now, client, header, Awaited::Answer(question)) {
                        Ok(()) => return Ok(Handled::Waits),
                        Err(status) => Reply::Failed(status),
                    },
                }
            }
            Request::Unresolvable(status) => Reply::Failed(status),
            Request::Changed { seen } if seen == self.change => {
                match self.wait(now, client, header, Awaited::Change(seen)) {
                    Ok(()) => return Ok(Handled::Waits),
                    Err(status) => Reply::Failed(status),
                }
            }
            Request::Changed { .. } => Reply::Changed(self.change),
            Request::Counters { endpoint, source } => self.tell_counters(endpoint, source),
            Request::Endpoint { endpoint, port, page } => {
                let found = usize::from(endpoint).checked_sub(1).and_then(|at| self.endpoints.get(at));
                let info = found.and_then(|endpoint| endpoint.info(port, page));
                info.map_or(Reply::Failed(Status::INVALID), Reply::Endpoint)
            }
        };
        self.count_failure(&reply);
        reply.emit(header, out);
        Ok(Handled::Answered)
    }

    /// A reply to a request that had to wait.
    pub fn poll_reply(&mut self) -> Option<(ClientId, Vec<u8>)> {
        self.replies.pop_front()
    }

    /// The next question for an agent. [`Self::handle_asked`] takes what came of it.
    pub fn poll_ask(&mut self, now: Instant) -> Option<Ask> {
        let Settings { timeout, retries, most_asked, .. } = self.settings;
        loop {
            let (unit, wanted) = self.asking.poll(now, most_asked)?;
            let seeks_path = self.units.get(&unit).is_some_and(|known| known.unit.port().is_some());
            if self.is_to_be_asked(unit, &wanted) {
                self.is_asked_now(now, &wanted);
                return Some(Ask { unit, wanted, seeks_path, timeout, retries });
            }
            // The agent has told it while the question waited for its turn.
            self.asking.end(unit, &wanted);
        }
    }

    /// Whether [`Self::poll_ask`] may have a question.
    pub fn has_to_ask(&self) -> bool {
        self.asking.has_some()
    }

    /// Takes what an agent found out: who has what was asked for, nobody, or `None` if it could not ask. Then it is asked
    /// again after a pause.
    pub fn handle_asked(&mut self, now: Instant, unit: u8, wanted: &Address, owners: Option<&[Learned]>) {
        let key = Wanted::Address(wanted.clone());
        let Some(owners) = owners else { return self.asking.fail(now, unit, &key) };
        self.asking.end(unit, &key);
        let Some(known) = self.units.get_mut(&unit) else { return };
        if owners.is_empty() {
            self.nobody_has(now, unit, wanted);
        } else {
            known.unit.learn(wanted.clone(), owners);
            // The answer may show that both ends can do less than was known, or that somebody has an address
            // that nobody had. So what is remembered of either is forgotten.
            for endpoint in self.endpoints.iter().filter(|endpoint| endpoint.key.0 == unit) {
                for owner in owners {
                    self.routes.remove(&(endpoint.key, gid_of(owner.mac)));
                }
            }
            self.addresses.remove(&(unit, wanted.clone()));
            self.count_change();
        }
        self.try_waiting_for(now, &key);
    }

    /// Takes what an agent at a port of InfiniBand found, or `None` if it could not ask. Then it is asked again after a
    /// pause.
    pub fn handle_path(&mut self, now: Instant, unit: u8, wanted: &Wanted, found: Option<&FoundPath>) {
        let Some(found) = found else { return self.asking.fail(now, unit, wanted) };
        self.asking.end(unit, wanted);
        let Some(known) = self.units.get_mut(&unit) else { return };
        known.unit.learn_path(wanted, found);
        let is_own = *wanted == Wanted::Address(Address::V6(known.unit.own_gid()));
        if self.settings.addresses.is_empty() && !is_own {
            self.try_waiting_for(now, wanted);
        } else {
            // Files may give this GID other names, and this node has its own, by which others wait.
            self.try_waiting(now);
        }
    }

    /// The names and addresses of this machine that only a file tells, in the fabric of an agent. The agent is to tell them
    /// whoever asks.
    pub fn more_names(&self, unit: u8) -> Vec<Address> {
        let own = self.units.get(&unit).map_or(&[][..], |known| known.unit.own_addresses());
        let endpoints = self.endpoints.iter().filter(|endpoint| endpoint.key.0 == unit);
        let all = endpoints.flat_map(|endpoint| &endpoint.addresses);
        all.filter(|address| !own.contains(address)).cloned().collect()
    }

    /// The names and addresses that several hosts of an agent's fabric have, this one with those of its files among them.
    pub fn clashes(&self, unit: u8) -> Vec<(Address, Vec<Mac>)> {
        let Some(Known { unit: known, .. }) = self.units.get(&unit) else { return Vec::new() };
        let own = mac_of(known.own_gid());
        let several = known.clashes().map(|(address, owners)| (address.clone(), owners.to_vec()));
        let of_files = self.more_names(unit).into_iter().filter_map(|address| match known.owner(&address) {
            Some(Owner::One(other)) if other != known.own_gid() => {
                Some((address, vec![own?, mac_of(other)?]))
            }
            _ => None,
        });
        several.chain(of_files).collect()
    }

    /// The names and addresses of which a file tells another GID than that of the host that says it has them, with that host
    /// and that GID. Hosts are believed, and not the file.
    pub fn contradicted(&self, unit: u8) -> impl Iterator<Item = (&Address, Mac, Ipv6Addr)> {
        let announced = self.units.get(&unit).into_iter().flat_map(|known| known.unit.announced());
        announced.filter_map(|(address, mac)| {
            let other = self.settings.addresses.get(address)?.iter().find(|&&gid| gid != gid_of(mac))?;
            Some((address, mac, *other))
        })
    }

    fn count_failure(&mut self, reply: &Reply) {
        match reply {
            Reply::Failed(Status::NO_DATA) => self.total.count(Counter::NoData),
            Reply::Failed(_) => self.total.count(Counter::Error),
            Reply::Path { .. } | Reply::Counters(_) | Reply::Endpoint(_) | Reply::Changed(_) => {}
        }
    }

    fn tell_counters(&self, endpoint: u8, source: Option<Result<Address, Status>>) -> Reply {
        let of = |at: usize| self.endpoints.get(at).and_then(|endpoint| self.counters.get(&endpoint.key));
        let counters = match (source, endpoint) {
            (Some(Err(status)), _) => return Reply::Failed(status),
            (Some(Ok(address)), _) => self.own.get(&address.into_key()).and_then(|&at| of(at)),
            (None, 0) => Some(&self.total),
            (None, number) => of(usize::from(number) - 1),
        };
        counters.map_or(Reply::Failed(Status::SOURCE_ADDRESS), |counters| Reply::Counters(counters.0))
    }

    /// Makes the list of endpoints anew.
    fn find_endpoints(&mut self) {
        let named = &self.settings.endpoints;
        let all =
            self.units.iter().flat_map(|(&number, known)| Endpoint::of_unit(number, &known.unit, named));
        self.endpoints = all.collect();
        self.own = BTreeMap::new();
        for (at, endpoint) in self.endpoints.iter().enumerate() {
            self.counters.entry(endpoint.key).or_default();
            for address in &endpoint.addresses {
                self.own.entry(address.clone().into_key()).or_insert(at);
            }
        }
    }
}
