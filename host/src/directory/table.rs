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
use crate::routes::Basis;

/// How many records of hosts that left the map are kept at most, so that these hosts can be named when they
/// are missed.
const MOST_GONE: usize = 1024;
/// The address that stands before all others.
const FIRST: Mac = Mac([0; 6]);
/// The address that stands behind all others.
const LAST: Mac = Mac([0xff; 6]);

/// Why what another host told was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Refusal {
    /// It was no message of this service, or had a record that no host would write.
    Malformed,
    /// Who told it is no neighbour in the tree over the map's hosts. That may be for a moment, while hosts
    /// have different maps.
    NoNeighbour,
    /// It was of a host that is not in the map.
    NotInMap,
    /// It was of this host itself, and wrong. That may be at a start, when others know what was true before.
    OfThisHost,
}

/// An address that two or more hosts of the map have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clash {
    /// The address.
    pub ip: IpAddr,
    /// All hosts that have it, by rising MAC.
    pub hosts: Vec<Mac>,
    /// Whether two or more of them were told to have it. Of others one keeps it, and the rest pick anew.
    pub is_lasting: bool,
}

/// What a host knows of the names and addresses of the hosts of the map in force, and the names of some that
/// were in one before.
#[derive(Debug, Default)]
pub struct Directory {
    /// The map in force; without one no host is listed.
    basis: Option<Arc<Basis>>,
    records: BTreeMap<Mac, Record>,
    /// Which hosts of the map have which address.
    claims: BTreeSet<(IpAddr, Mac)>,
    /// The addresses that two or more hosts of the map have.
    clashing: BTreeSet<IpAddr>,
    /// The sums over the records of the map's hosts.
    buckets: Buckets,
    pub(super) refused: Tally<Refusal>,
}

impl Directory {
    /// The most addresses of one host. What is more is not told to others.
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
        let named = self.iter().filter(move |(_, called)| called.as_str().eq_ignore_ascii_case(name));
        named.map(|(mac, _)| mac).filter(|&mac| self.is_listed(mac))
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
        self.records.iter().filter_map(|(&mac, record)| Some((mac, record.name.as_ref()?)))
    }

    /// The hosts of the map that have told something of themselves, by rising address.
    pub fn hosts(&self) -> impl Iterator<Item = Mac> {
        self.records.keys().copied().filter(|&mac| self.is_listed(mac))
    }

    /// How often and why what others told was not taken.
    pub fn refused(&self) -> &Tally<Refusal> {
        &self.refused
    }

    /// The hosts of the map that have this address, each with whether it picked the address itself, and so
    /// would give way to a host that was told to have it.
    pub(crate) fn claims_of(&self, ip: IpAddr) -> impl Iterator<Item = (Mac, bool)> {
        self.host_with(ip).map(move |mac| {
            let mut all = self.records.get(&mac).into_iter().flat_map(|record| record.addresses.iter());
            (mac, all.any(|(address, is_picked)| address.ip() == ip && is_picked))
        })
    }

    pub(super) fn get(&self, mac: Mac) -> Option<&Record> {
        self.records.get(&mac)
    }

    /// Whether the map lists this host.
    pub(super) fn is_listed(&self, mac: Mac) -> bool {
        self.basis.as_ref().is_some_and(|basis| basis.lists(mac))
    }

    pub(super) fn insert(&mut self, mac: Mac, record: Record) {
        if self.is_listed(mac) {
            self.index(mac, &record);
            if let Some(before) = self.records.insert(mac, record) {
                self.buckets.toggle(mac, &before);
                self.forget_claims(mac, &before);
            }
        } else {
            self.records.insert(mac, record);
        }
    }

    /// Takes the record of a listed host into sums and claims.
    fn index(&mut self, mac: Mac, record: &Record) {
        self.buckets.toggle(mac, record);
        for ip in record.addresses.all().iter().map(IpNetworkAddress::ip) {
            self.claims.insert((ip, mac));
            self.judge(ip);
        }
    }

    /// Forgets the addresses of the host's record of before, except those that it still has.
    fn forget_claims(&mut self, mac: Mac, before: &Record) {
        for ip in before.addresses.all().iter().map(IpNetworkAddress::ip) {
            if self.addresses_of(mac).iter().all(|address| address.ip() != ip) {
                self.claims.remove(&(ip, mac));
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

    /// The listed hosts whose records are in these parts.
    pub(super) fn hosts_in(&self, parts: u32) -> impl Iterator<Item = Mac> {
        self.hosts().filter(move |&mac| parts >> bucket_of(mac) & 1 == 1)
    }

    /// Takes another map. Of the hosts that it does not list, [`MOST_GONE`] records are kept.
    pub(super) fn take_map(&mut self, own: Mac, basis: &Arc<Basis>) {
        self.basis = Some(Arc::clone(basis));
        let mut gone = 0;
        self.records.retain(|&mac, _| {
            gone += usize::from(!basis.lists(mac));
            basis.lists(mac) || mac == own || gone <= MOST_GONE
        });
        (self.buckets, self.claims, self.clashing) = Default::default();
        let records = std::mem::take(&mut self.records);
        for (&mac, record) in records.iter().filter(|(mac, _)| basis.lists(**mac)) {
            self.index(mac, record);
        }
        self.records = records;
    }
}
