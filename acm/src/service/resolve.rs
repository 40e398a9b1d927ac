//! How a question is answered: whose the address is, from which endpoint, and along which path.

use std::cmp::Reverse;
use std::net::Ipv6Addr;

use mapper_proto::Instant;

use super::{ClientId, Counter, Endpoint, EndpointKey, Owned, Service};
use crate::codes::{mtu_bytes, rate_mbps};
use crate::fabric::{Owner, Unit, Wanted};
use crate::wire::{Address, EntryFlags, PathRecord, Question, Reply, Sought, Status};

/// What came of looking for something.
pub(super) enum Looked<T> {
    /// It was found.
    Found(T),
    /// It is certain that it cannot be had, for this reason.
    Refused(Status),
    /// Nothing is known of it so far.
    Unknown,
}

impl Service {
    /// Answers a question, or returns `None` if more may be known later.
    pub(super) fn resolve(&mut self, now: Instant, question: &Question) -> Option<Reply> {
        let looked = match &question.sought {
            Sought::Destination { source, destination } => {
                self.resolve_address(now, source.clone(), destination.clone())
            }
            Sought::Path(path) => self.along(now, path, question.flags),
        };
        match looked {
            Looked::Found(reply) => Some(reply),
            Looked::Refused(status) => Some(Reply::Failed(status)),
            Looked::Unknown => None,
        }
    }

    /// Remembers for a while that nobody has an address, unless somebody is known to.
    pub(super) fn nobody_has(&mut self, now: Instant, unit: u8, key: &Address) {
        if matches!(self.look_up(unit, key), Looked::Unknown) {
            let keep = Some(self.settings.negative_keep);
            self.addresses.insert(now, (unit, key.clone()), Owned::ByNobody, keep);
        }
    }

    /// Has agents find out whose the address is that a question is for, as far as they have not told. `client` waits for it.
    pub(super) fn have_asked(&mut self, now: Instant, question: &Question, client: Option<ClientId>) {
        let (source, destination) = match &question.sought {
            Sought::Destination { source, destination } => (source, destination),
            Sought::Path(path) => return self.have_path_asked(now, path, client),
        };
        let key = destination.clone().into_key();
        let from = source.clone().map(|source| self.endpoint_with(source));
        let of_source = match from {
            // The source may be an endpoint of an agent that has not told what it knows yet.
            Some(None) => return,
            Some(Some(at)) => self.endpoints.get(at).map(|endpoint| endpoint.key.0),
            None => None,
        };
        let units: Vec<u8> = self.units.keys().copied().collect();
        for unit in units.into_iter().filter(|unit| of_source.is_none_or(|of| of == *unit)) {
            let is_sure = self.units.get(&unit).is_some_and(|known| !known.is_suspect);
            let is_nobodys = self.addresses.get(now, &(unit, key.clone())) == Some(&Owned::ByNobody);
            match self.look_up(unit, &key) {
                _ if !is_sure || is_nobodys => {}
                Looked::Unknown => self.asking.push(now, unit, &Wanted::Address(key.clone()), client),
                // A file tells whose it is.
                Looked::Found(gid) => self.have_gid_asked(now, unit, gid, client),
                Looked::Refused(_) => {}
            }
        }
    }

    /// Has the agent at a port of InfiniBand find the path to a GID, if nobody was asked for it.
    fn have_gid_asked(&mut self, now: Instant, unit: u8, gid: Ipv6Addr, client: Option<ClientId>) {
        if self.units.get(&unit).is_some_and(|known| known.unit.has_to_ask(gid)) {
            self.asking.push(now, unit, &Wanted::Address(Address::V6(gid)), client);
        }
    }

    /// Has the agents at ports of InfiniBand find a path that is known in part and begins there.
    fn have_path_asked(&mut self, now: Instant, path: &PathRecord, client: Option<ClientId>) {
        let Some(wanted) = Wanted::along(path) else { return };
        let from = self.endpoints.iter().filter(|endpoint| self.is_from(endpoint, path));
        let units: Vec<u8> = from.map(|endpoint| endpoint.key.0).collect();
        for unit in units {
            let is_sure = self.units.get(&unit).is_some_and(|known| !known.is_suspect);
            if is_sure && self.is_to_be_asked(unit, &wanted) {
                self.asking.push(now, unit, &wanted, client);
            }
        }
    }

    /// Whether an agent is to be asked for something, as it has not told, and was not asked so far.
    pub(super) fn is_to_be_asked(&self, unit: u8, wanted: &Wanted) -> bool {
        let Some(known) = self.units.get(&unit) else { return false };
        match wanted {
            Wanted::Lid(lid) => known.unit.port().is_some() && known.unit.owner_of_lid(*lid).is_none(),
            Wanted::Address(Address::V6(gid)) if known.unit.port().is_some() => known.unit.has_to_ask(*gid),
            Wanted::Address(key) => matches!(self.look_up(unit, key), Looked::Unknown),
        }
    }

    /// The path to a name or an address.
    fn resolve_address(&mut self, now: Instant, source: Option<Address>, to: Address) -> Looked<Reply> {
        let (to, given) = (to.into_key(), source.is_some());
        let candidates = match source.map(|source| self.endpoint_with(source)) {
            Some(None) if self.is_unsure() => return Looked::Unknown,
            Some(None) => return Looked::Refused(Status::SOURCE_ADDRESS),
            Some(Some(at)) => at..at + 1,
            None if self.endpoints.is_empty() => return Looked::Unknown,
            None => 0..self.endpoints.len(),
        };
        let (mut refused, mut is_unknown) = (None, false);
        let mut best: Option<(usize, EndpointKey, PathRecord)> = None;
        for at in candidates {
            let Some(key) = self.endpoints.get(at).map(|endpoint| endpoint.key) else { continue };
            match self.resolve_from(now, key, &to) {
                // Of endpoints that are as good the first counts, whose partition is the one that all are in.
                Looked::Found(path) => match best {
                    Some((.., known)) if goodness(&path) <= goodness(&known) => {}
                    _ => best = Some((at, key, path)),
                },
                // A refusal is certain for one fabric alone, so the others are tried as well.
                Looked::Refused(status) => refused = refused.or(Some(status)),
                Looked::Unknown => is_unknown = true,
            }
        }
        if let Some((at, key, path)) = best {
            self.count(key, Counter::Resolve);
            let endpoint = self.endpoints.get(at).filter(|_| !given);
            let source = endpoint.map(|endpoint| chosen_source(endpoint, &to, path.sgid));
            return Looked::Found(Reply::Path { flags: EntryFlags::PATH, path, source });
        }
        match refused {
            Some(status) if !is_unknown || status == Status::DESTINATION_ADDRESS => Looked::Refused(status),
            _ => Looked::Unknown,
        }
    }

    /// The path from an endpoint to a name or an address.
    fn resolve_from(&mut self, now: Instant, from: EndpointKey, to: &Address) -> Looked<PathRecord> {
        match self.owner(now, from, to) {
            Looked::Found(gid) => self.path(now, from, gid),
            Looked::Refused(status) => Looked::Refused(status),
            Looked::Unknown => Looked::Unknown,
        }
    }

    /// The GID of whose the address is.
    fn owner(&mut self, now: Instant, from: EndpointKey, to: &Address) -> Looked<Ipv6Addr> {
        let unit = from.0;
        if self.units.get(&unit).is_none_or(|known| known.is_suspect) {
            return Looked::Unknown;
        }
        let key = (unit, to.clone());
        if let Some(&owned) = self.addresses.get(now, &key) {
            self.count(from, Counter::AddressCache);
            return match owned {
                Owned::By(gid) => Looked::Found(gid),
                Owned::ByNobody => Looked::Refused(Status::TIMED_OUT),
            };
        }
        self.count(from, Counter::AddressQuery);
        let found = self.look_up(unit, to);
        if let Looked::Found(gid) = found {
            self.addresses.insert(now, key, Owned::By(gid), self.settings.address_keep);
        }
        found
    }

    /// Whose an address is, as agents and files tell.
    pub(super) fn look_up(&self, unit: u8, to: &Address) -> Looked<Ipv6Addr> {
        let Some(known) = self.units.get(&unit) else { return Looked::Unknown };
        let endpoint = self.own.get(to).and_then(|&at| self.endpoints.get(at));
        let is_own = endpoint.is_some_and(|endpoint| endpoint.key.0 == unit);
        match known.unit.owner(to) {
            Some(Owner::One(gid)) if !is_own || gid == known.unit.own_gid() => return Looked::Found(gid),
            // An address that hosts and files give to several is answered as none of theirs.
            // [`Service::clashes`] reports it with all its owners.
            Some(Owner::One(_) | Owner::Several) => return Looked::Refused(Status::DESTINATION_ADDRESS),
            Some(Owner::Unreachable) => return Looked::Refused(Status::NOT_CONNECTED),
            // A file may tell whose it is.
            Some(Owner::Nobody) | None => {}
        }
        if is_own {
            return Looked::Found(known.unit.own_gid());
        }
        match self.settings.addresses.get(to).map(Vec::as_slice) {
            Some(&[gid]) => Looked::Found(gid),
            Some(_) => Looked::Refused(Status::DESTINATION_ADDRESS),
            None if known.unit.owner(to) == Some(Owner::Nobody) => Looked::Refused(Status::TIMED_OUT),
            None => Looked::Unknown,
        }
    }

    /// The path from an endpoint to a GID.
    fn path(&mut self, now: Instant, from: EndpointKey, gid: Ipv6Addr) -> Looked<PathRecord> {
        if self.units.get(&from.0).is_none_or(|known| known.is_suspect) {
            return Looked::Unknown;
        }
        if let Some(&path) = self.routes.get(now, &(from, gid)) {
            self.count(from, Counter::RouteCache);
            return Looked::Found(path);
        }
        self.count(from, Counter::RouteQuery);
        match self.make_path(from, gid) {
            Some(path) => {
                let keep = self.settings.route_keep.or(self.settings.address_keep);
                self.routes.insert(now, (from, gid), path, keep);
                Looked::Found(path)
            }
            None if self.units.get(&from.0).is_some_and(|known| known.unit.has_to_ask(gid)) => {
                Looked::Unknown
            }
            None => Looked::Refused(Status::NOT_CONNECTED),
        }
    }

    /// The path as the map and the routes in force have it, or else a file.
    fn make_path(&self, (unit, pkey): EndpointKey, gid: Ipv6Addr) -> Option<PathRecord> {
        let unit = &self.units.get(&unit)?.unit;
        // A subnet's administration knows better than any file.
        if unit.has_gid(gid) || unit.port().is_some() {
            return unit.record(gid, pkey);
        }
        self.settings.paths.path(unit.own_gid(), gid, pkey)
    }

    /// Completes or verifies a path.
    fn along(&mut self, now: Instant, wanted: &PathRecord, flags: EntryFlags) -> Looked<Reply> {
        let source = self.endpoints.iter().position(|it| self.is_from(it, wanted));
        let Some(endpoint) = source.and_then(|at| self.endpoints.get(at)) else {
            return if self.is_unsure() { Looked::Unknown } else { Looked::Refused(Status::SOURCE_ADDRESS) };
        };
        let key = endpoint.key;
        let Some(known) = self.units.get(&key.0).filter(|known| !known.is_suspect) else {
            return Looked::Unknown;
        };
        let Some(to) = Wanted::along(wanted) else { return Looked::Refused(Status::DESTINATION_TYPE) };
        let to = match self.end_of(&known.unit, &to) {
            Looked::Found(gid) => gid,
            Looked::Refused(status) => return Looked::Refused(status),
            Looked::Unknown => return Looked::Unknown,
        };
        let found = if flags.has(EntryFlags::VERIFY) {
            // The map and the routes in force decide, and no cache.
            let path = self.make_path(key, to).filter(|path| agrees(wanted, path));
            path.map_or(Looked::Refused(Status::NO_DATA), Looked::Found)
        } else {
            self.path(now, key, to)
        };
        match found {
            Looked::Found(path) => {
                self.count(key, Counter::Resolve);
                Looked::Found(Reply::Path { flags, path, source: None })
            }
            Looked::Refused(status) => Looked::Refused(status),
            Looked::Unknown => Looked::Unknown,
        }
    }

    /// The GID of the end of a path from an agent's port.
    fn end_of(&self, unit: &Unit, to: &Wanted) -> Looked<Ipv6Addr> {
        let known = match to {
            Wanted::Lid(lid) => unit.owner_of_lid(*lid),
            Wanted::Address(key) if unit.port().is_some() => unit.owner(key),
            // A GID that no host of the map has may be in a file.
            Wanted::Address(Address::V6(gid)) if unit.has_gid(*gid) => Some(Owner::One(*gid)),
            Wanted::Address(_) => None,
        };
        let of_file = || match to {
            Wanted::Lid(lid) => self.settings.paths.with_lid(*lid),
            Wanted::Address(Address::V6(gid)) => Some(*gid).filter(|gid| self.settings.paths.has_gid(*gid)),
            Wanted::Address(_) => None,
        };
        match known {
            Some(Owner::One(gid)) if unit.has_to_ask(gid) => Looked::Unknown,
            Some(Owner::One(gid)) => Looked::Found(gid),
            Some(Owner::Unreachable) => Looked::Refused(Status::NOT_CONNECTED),
            None if unit.port().is_some() => Looked::Unknown,
            None => of_file().map_or(Looked::Refused(Status::DESTINATION_ADDRESS), Looked::Found),
            Some(Owner::Nobody | Owner::Several) => Looked::Refused(Status::DESTINATION_ADDRESS),
        }
    }

    /// Whether a path that is known in part begins at this endpoint.
    fn is_from(&self, endpoint: &Endpoint, wanted: &PathRecord) -> bool {
        let (unit, pkey) = endpoint.key;
        let Some(unit) = self.units.get(&unit).map(|known| &known.unit) else { return false };
        // A file of paths has LIDs of its own.
        let has_lid = |lid| {
            unit.owner_of_lid(lid) == Some(Owner::One(unit.own_gid()))
                || self.settings.paths.with_lid(lid) == Some(unit.own_gid())
        };
        (wanted.sgid.is_unspecified() || wanted.sgid == unit.own_gid())
            && (wanted.slid == 0 || has_lid(wanted.slid))
            && (wanted.pkey == 0 || wanted.pkey == pkey)
    }

    fn endpoint_with(&self, source: Address) -> Option<usize> {
        let key = source.into_key();
        self.own.get(&key).copied().or_else(|| {
            // A GID names an endpoint as well.
            let Address::V6(gid) = key else { return None };
            let own = |endpoint: &Endpoint| self.units.get(&endpoint.key.0).map(|it| it.unit.own_gid());
            self.endpoints.iter().position(|endpoint| own(endpoint) == Some(gid))
        })
    }

    /// Whether an agent has yet to tell what it knows or what changed, so that what is not known may come.
    fn is_unsure(&self) -> bool {
        self.units.is_empty() || self.units.values().any(|known| known.is_suspect)
    }

    /// Drops from both caches what would now be answered otherwise, and says how much that was.
    pub(super) fn forget_what_changed(&mut self) -> usize {
        let mut addresses = std::mem::replace(&mut self.addresses, crate::cache::Cache::new(0));
        let mut dropped = addresses.retain(|(unit, key), owned| match (self.look_up(*unit, key), owned) {
            (Looked::Found(gid), Owned::By(known)) => gid == *known,
            (Looked::Unknown, Owned::ByNobody) => self.units.contains_key(unit),
            _ => false,
        });
        self.addresses = addresses;
        let mut routes = std::mem::replace(&mut self.routes, crate::cache::Cache::new(0));
        dropped += routes.retain(|&(from, gid), path| self.make_path(from, gid) == Some(*path));
        self.routes = routes;
        dropped
    }

    fn count(&mut self, endpoint: EndpointKey, counter: Counter) {
        self.counters.entry(endpoint).or_default().count(counter);
        // Questions are counted once for all endpoints, when they come.
        if counter != Counter::Resolve {
            self.total.count(counter);
        }
    }
}

/// How good a path is, of several to one name or address from different interfaces: the faster is better, then the one with the
/// longer packets, then the shorter.
fn goodness(path: &PathRecord) -> (u32, u32, Reverse<u8>) {
    let rate = rate_mbps(path.rate.value).unwrap_or_default();
    (rate, mtu_bytes(path.mtu.value).unwrap_or_default(), Reverse(path.hop_limit))
}

/// What a client is told of the source that was chosen for it.
fn chosen_source(endpoint: &Endpoint, to: &Address, gid: Ipv6Addr) -> Address {
    endpoint.source_for(to).cloned().unwrap_or(Address::V6(gid))
}

/// Whether a path is as wanted: what is zero in `wanted` may be anything.
fn agrees(wanted: &PathRecord, path: &PathRecord) -> bool {
    fn same<T: PartialEq + Default + Copy>(wanted: T, is: T) -> bool {
        wanted == T::default() || wanted == is
    }
    let is_gid = |wanted: Ipv6Addr, is: Ipv6Addr| wanted.is_unspecified() || wanted == is;
    is_gid(wanted.dgid, path.dgid)
        && is_gid(wanted.sgid, path.sgid)
        && same(wanted.dlid, path.dlid)
        && same(wanted.slid, path.slid)
        && same(wanted.hop_limit, path.hop_limit)
        && same(wanted.pkey, path.pkey)
        && same(wanted.sl, path.sl)
        && same(wanted.mtu.value, path.mtu.value)
        && same(wanted.rate.value, path.rate.value)
        && (!wanted.reversible || path.reversible)
}
