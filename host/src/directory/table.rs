//! What a host knows of all hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use enum_map::Enum;
use mapper_proto::{IpNetworkAddress, Mac, Tally};
use strum::IntoStaticStr;

use super::HostName;
use super::rates::PortRates;
use super::record::{MOST_ADDRESSES, Record};
use super::sums::{Buckets, bucket_of};
use super::told::Told;
use crate::kernel_path::ByDestination;
use crate::routes::Basis;

/// How many records of hosts that left the map are kept at most, so that these hosts can be named when they
/// are missed.
const MOST_GONE: usize = 1024;
/// The address that stands before all others.
const FIRST: Mac = Mac([0; 6]);
/// The address that stands behind all others.
const LAST: Mac = Mac([0xff; 6]);

/// Why something that another host told was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Refusal {
    /// It was no message of this service, or had a record that no host would write.
    Malformed,
    /// Who told it is no neighbour in the tree over the map's hosts. That may be for a moment, while hosts
    /// have different maps.
    NoNeighbour,
    /// It was about a host that is not in the map.
    NotInMap,
    /// It was about this host itself, and wrong. That is normal after a start, while others still know what
    /// was true before.
    OfThisHost,
}

/// An address that two or more hosts of the map have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clash {
    /// The address.
    pub ip: IpAddr,
    /// All hosts that have it, by rising MAC.
    pub hosts: Vec<Mac>,
    /// Whether two or more of them were told to have it. If at most one was, the clash ends by itself, as
    /// hosts that picked the address pick another one.
    pub is_lasting: bool,
}

/// What a host knows of the names and addresses of the hosts of the map in force, and the names of some that
/// were in one before.
#[derive(Debug, Default)]
pub struct Directory {
    /// The map in force, if there is one. As long as there is none, no host is listed.
    basis: Option<Arc<Basis>>,
    /// The records of the map's hosts, by [`Basis::rank`].
    listed: Vec<Option<Arc<Told>>>,
    /// The records of hosts that the map does not list.
    unlisted: BTreeMap<Mac, Arc<Told>>,
    /// Which hosts of the map have which address.
    claims: BTreeSet<(IpAddr, Mac)>,
    /// The addresses that two or more hosts of the map have.
    clashing: BTreeSet<IpAddr>,
    /// The sums over the records of the map's hosts.
    buckets: Buckets,
    pub(super) refused: Tally<Refusal>,
}

impl Directory {
    /// The most addresses of one host. Any further ones are not told to others.
    pub const MOST_ADDRESSES: usize = MOST_ADDRESSES;

    /// What a host is called, if that is known.
    pub fn name_of(&self, mac: Mac) -> Option<&HostName> {
        self.get(mac)?.name.as_ref()
    }

    /// The IP addresses of a host, in the order in which it names them; none if none are known.
    pub fn addresses_of(&self, mac: Mac) -> &[IpNetworkAddress] {
        self.get(mac).map_or(&[], |record| record.addresses.all())
    }

    /// How fast a host's interfaces are, as far as it has said so.
    pub fn rates_of(&self, mac: Mac) -> PortRates {
        self.get(mac).map_or_else(PortRates::default, |record| record.addresses.rates())
    }

    /// When a host's kernel goes by destination, as far as the host has said so.
    pub(crate) fn by_destination_of(&self, mac: Mac) -> ByDestination {
        self.get(mac).map_or(ByDestination::Never, |record| record.addresses.by_destination())
    }

    /// The revision of what a host has told of itself, if it has told something.
    pub(crate) fn revision_of(&self, mac: Mac) -> Option<u32> {
        Some(self.get(mac)?.revision)
    }

    /// The hosts of the map that have this address, by rising MAC.
    pub fn host_with(&self, ip: IpAddr) -> impl Iterator<Item = Mac> {
        self.claims.range((ip, FIRST)..=(ip, LAST)).map(|&(_, mac)| mac)
    }

    /// The hosts of the map with this name, where ASCII capitals do not matter.
    pub fn hosts_called(&self, name: &str) -> impl Iterator<Item = Mac> {
        let is_called = move |called: &HostName| called.as_str().eq_ignore_ascii_case(name);
        let named = self.told().filter(move |told| told.record.name.as_ref().is_some_and(is_called));
        named.map(|told| told.mac)
    }

    /// The addresses that two or more hosts of the map have, by rising address.
    pub fn clashes(&self) -> impl Iterator<Item = Clash> {
        self.clashing.iter().map(|&ip| {
            let is_lasting = self.claims_of(ip).filter(|(_, is_picked)| !is_picked).nth(1).is_some();
            Clash { ip, hosts: self.host_with(ip).collect(), is_lasting }
        })
    }

    /// All names, of hosts that are in the map or were lately, by rising address.
    pub fn iter(&self) -> impl Iterator<Item = (Mac, &HostName)> {
        let all = self.told().chain(self.unlisted.values());
        let named = all.filter_map(|told| Some((told.mac, told.record.name.as_ref()?)));
        named.collect::<BTreeMap<_, _>>().into_iter()
    }

    /// The hosts of the map that have told something of themselves, by rising address.
    pub fn hosts(&self) -> impl Iterator<Item = Mac> {
        self.told().map(|told| told.mac)
    }

    /// The records of the map's hosts.
    fn told(&self) -> impl Iterator<Item = &Arc<Told>> {
        self.listed.iter().flatten()
    }

    /// How often and why what others told was not taken.
    pub fn refused(&self) -> &Tally<Refusal> {
        &self.refused
    }

    /// The hosts of the map that have this address, each with whether it picked the address itself, and so
    /// would give way to a host that was told to have it.
    pub(crate) fn claims_of(&self, ip: IpAddr) -> impl Iterator<Item = (Mac, bool)> {
        self.host_with(ip).map(move |mac| {
            let mut all = self.get(mac).into_iter().flat_map(|record| record.addresses.iter());
            (mac, all.any(|(address, is_picked)| address.ip() == ip && is_picked))
        })
    }

    pub(super) fn get(&self, mac: Mac) -> Option<&Record> {
        let told = match self.rank(mac) {
            Some(rank) => self.at_rank(rank),
            None => self.unlisted.get(&mac),
        };
        told.map(|told| &told.record)
    }

    /// The map in force.
    pub(super) fn basis(&self) -> Option<&Arc<Basis>> {
        self.basis.as_ref()
    }

    /// The place of a host among those that the map lists; `None` if it lists none such.
    pub(super) fn rank(&self, mac: Mac) -> Option<usize> {
        self.basis.as_ref()?.rank(mac)
    }

    /// The record of the host at this place, if it has told something.
    pub(super) fn at_rank(&self, rank: usize) -> Option<&Arc<Told>> {
        self.listed.get(rank)?.as_ref()
    }

    /// Takes a record that others are to be told as it is here. Returns the place of its host, if the map lists it.
    pub(super) fn insert(&mut self, told: Arc<Told>) -> Option<usize> {
        let rank = self.rank(told.mac);
        match (rank, &self.basis) {
            (Some(rank), Some(basis)) => {
                let told = basis.last_told().hold(basis).share(rank, told);
                self.insert_at(rank, told);
            }
            _ => {
                self.unlisted.insert(told.mac, told);
            }
        }
        rank
    }

    /// Takes the record of the host at this place.
    pub(super) fn insert_at(&mut self, rank: usize, told: Arc<Told>) {
        self.index(&told);
        let before = self.listed.get_mut(rank).and_then(|slot| slot.replace(told));
        if let Some(before) = before {
            self.buckets.toggle(&before);
            self.forget_claims(&before);
        }
    }

    /// Takes the record of a listed host into sums and claims.
    fn index(&mut self, told: &Told) {
        self.buckets.toggle(told);
        for ip in told.record.addresses.all().iter().map(IpNetworkAddress::ip) {
            self.claims.insert((ip, told.mac));
            self.judge(ip);
        }
    }

    /// Forgets the addresses of the host's record of before, except those that it still has.
    fn forget_claims(&mut self, before: &Told) {
        for ip in before.record.addresses.all().iter().map(IpNetworkAddress::ip) {
            if self.addresses_of(before.mac).iter().all(|address| address.ip() != ip) {
                self.claims.remove(&(ip, before.mac));
                self.judge(ip);
            }
        }
    }

    /// Finds out whether an address clashes now.
    fn judge(&mut self, ip: IpAddr) {
        if self.host_with(ip).nth(1).is_some() {
            self.clashing.insert(ip);
        } else {
            self.clashing.remove(&ip);
        }
    }

    pub(super) fn buckets(&self) -> Buckets {
        self.buckets
    }

    /// The places of the listed hosts whose records are in these parts.
    pub(super) fn ranks_in(&self, parts: u32) -> impl Iterator<Item = usize> {
        self.ranks_of(move |told| parts >> bucket_of(told.mac) & 1 == 1)
    }

    /// The places of the listed hosts that have told something of which this holds.
    pub(super) fn ranks_of(&self, is_meant: impl Fn(&Arc<Told>) -> bool) -> impl Iterator<Item = usize> {
        let all = self.listed.iter().enumerate();
        all.filter(move |(_, told)| told.as_ref().is_some_and(&is_meant)).map(|(rank, _)| rank)
    }

    /// Takes another map. Of the hosts that it does not list, [`MOST_GONE`] records are kept.
    pub(super) fn take_map(&mut self, own: Mac, basis: &Arc<Basis>) {
        let unlisted = std::mem::take(&mut self.unlisted).into_values();
        let before = std::mem::take(&mut self.listed).into_iter().flatten().chain(unlisted);
        let all: BTreeMap<Mac, Arc<Told>> = before.map(|told| (told.mac, told)).collect();
        self.basis = Some(Arc::clone(basis));
        self.listed = vec![None; basis.listed()];
        (self.buckets, self.claims, self.clashing) = Default::default();
        let mut gone = 0;
        for (mac, told) in all {
            gone += usize::from(!basis.lists(mac));
            if basis.lists(mac) || mac == own || gone <= MOST_GONE {
                self.insert(told);
            }
        }
    }
}
