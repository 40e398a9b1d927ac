//! Addresses of IPv4 that a host picks for itself out of a network, so that nobody has to hand them out.
//!
//! A host first tries the address that it had in an earlier run, if its driver has kept it. So where two hosts once wanted
//! one address, each has the same as before, whichever starts first. Then it tries others in an order that depends on its
//! MAC and the network alone, so without what was kept it picks the same, too, while others do not have it. It looks
//! them up in the directory, and does so only once it
//! knows what a neighbour knows, or has been alone in its map for a moment. Hosts that start at one moment
//! may still pick the same. Then the one with the lower MAC keeps it and the others pick anew; a host that
//! was told to have the address keeps it against all that picked it. So of all claims to an address one never
//! gives way, and a host that gives way takes an address that no other is known to have: in the end there is
//! no clash, and only hosts that had to have changed their address.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use mapper_proto::{Instant, IpNetworkAddress, Mac};

use crate::directory::{Directory, Gossip, fnv};

/// How long a host must have been alone in its map before it picks.
const ALONE_FOR: Duration = Duration::from_secs(1);
/// How many addresses a host tries that lie far from each other. Those behind the first one follow.
const SCATTERED: u32 = 64;

/// Why a host gave up an address that it had picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// This host has it too and keeps it, since its MAC is lower or since it was told to have it.
    To(Mac),
    /// This machine itself has it at another interface.
    Elsewhere,
}

/// What became of the address that a host picks in one network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Picked {
    /// The network.
    pub network: IpNetworkAddress,
    /// The address that the host has in it from now on; `None` if none is free.
    pub address: Option<IpNetworkAddress>,
    /// The address that the host had in the network before and has no more, if any, and the reason.
    pub given_up: Option<(IpNetworkAddress, Lost)>,
}

/// Picks the addresses of one host.
#[derive(Debug)]
pub(crate) struct Picker {
    own: Mac,
    networks: Vec<Network>,
    /// The addresses that the host picked in an earlier run, which are tried first.
    before: Vec<IpNetworkAddress>,
    /// Addresses that this machine has at interfaces that are not the fabric's.
    elsewhere: BTreeSet<IpAddr>,
    /// Whether enough has been known to pick, at this moment or before.
    may_pick: bool,
}

/// A network out of which an address is picked.
#[derive(Debug)]
struct Network {
    network: IpNetworkAddress,
    picked: Option<Ipv4Addr>,
    /// Whether the driver was told that no address is free.
    is_full: bool,
}

impl Picker {
    /// The picker of the host with the address `own`, which picks nothing yet.
    pub(crate) fn new(own: Mac) -> Self {
        Self { own, networks: Vec::new(), before: Vec::new(), elsewhere: BTreeSet::new(), may_pick: false }
    }

    /// Sets the networks. Out of each of them an address is picked: one of `before` in it, if one is free.
    pub(crate) fn set_networks(&mut self, networks: &[IpNetworkAddress], before: &[IpNetworkAddress]) {
        let new = |&network: &IpNetworkAddress| Network { network, picked: None, is_full: false };
        self.networks = networks.iter().filter(|network| network.is_network()).map(new).collect();
        self.before = before.to_vec();
    }

    /// Sets which addresses this machine has at interfaces that are not the fabric's.
    pub(crate) fn set_elsewhere(&mut self, addresses: BTreeSet<IpAddr>) {
        self.elsewhere = addresses;
    }

    /// Whether this is an address that was picked.
    pub(crate) fn has_picked(&self, ip: IpAddr) -> bool {
        self.networks.iter().any(|network| network.picked.map(IpAddr::V4) == Some(ip))
    }

    /// When [`Self::look`] has something to do though nothing else happens.
    pub(crate) fn poll_timeout(&self, gossip: &Gossip) -> Option<Instant> {
        let is_waiting = !self.may_pick && !self.networks.is_empty();
        Some(gossip.alone_since().filter(|_| is_waiting)? + ALONE_FOR)
    }

    /// Picks and gives up addresses by what is known now. Returns what has changed.
    pub(crate) fn look(&mut self, now: Instant, gossip: &Gossip) -> Vec<Picked> {
        let was_alone = gossip.alone_since().is_some_and(|since| since + ALONE_FOR <= now);
        self.may_pick |= gossip.is_in_step() || was_alone;
        if !self.may_pick {
            return Vec::new();
        }
        let directory = gossip.directory();
        (0..self.networks.len()).filter_map(|at| self.look_at(at, directory)).collect()
    }

    fn look_at(&mut self, at: usize, directory: &Directory) -> Option<Picked> {
        let Network { network, picked, is_full } = *self.networks.get(at)?;
        let lost = picked.map(|ip| self.lost(ip, directory));
        if matches!(lost, Some(None)) {
            return None;
        }
        let found = self.free(network, directory);
        let entry = self.networks.get_mut(at)?;
        (entry.picked, entry.is_full) = (found, found.is_none());
        let on_network = |ip| IpNetworkAddress::new(IpAddr::V4(ip), network.prefix_bits());
        let given_up = picked.and_then(on_network).zip(lost.flatten());
        // It is said once that no address is free, however often one is looked for.
        let is_news = found.is_some() || given_up.is_some() || !is_full;
        is_news.then(|| Picked { network, address: found.and_then(on_network), given_up })
    }

    /// Why this host cannot keep an address that it picked; `None` if it can.
    fn lost(&self, ip: Ipv4Addr, directory: &Directory) -> Option<Lost> {
        if self.elsewhere.contains(&IpAddr::V4(ip)) {
            return Some(Lost::Elsewhere);
        }
        let mut others = directory.claims_of(IpAddr::V4(ip)).filter(|&(mac, _)| mac != self.own);
        others.find(|&(mac, is_picked)| !is_picked || mac < self.own).map(|(mac, _)| Lost::To(mac))
    }

    /// The first address of the network that no other host is known to have, of those of an earlier run and then of
    /// those that any host may have. This host itself may still have it from before it started again.
    fn free(&self, network: IpNetworkAddress, directory: &Directory) -> Option<Ipv4Addr> {
        let is_free = |ip: &Ipv4Addr| {
            let ip = IpAddr::V4(*ip);
            directory.host_with(ip).all(|mac| mac == self.own)
                && !self.elsewhere.contains(&ip)
                && !self.has_picked(ip)
        };
        // Where networks overlap each has its own address again.
        let of_network = |is_same: bool| {
            let bits = network.prefix_bits();
            let some = self.before.iter().filter(move |address| (address.prefix_bits() == bits) == is_same);
            some.filter_map(move |address| as_before(network, address))
        };
        of_network(true).chain(of_network(false)).chain(tried(self.own, network)?).find(is_free)
    }
}

/// The address of an earlier run, if a host can have it in this network.
fn as_before(network: IpNetworkAddress, address: &IpNetworkAddress) -> Option<Ipv4Addr> {
    let IpAddr::V4(ip) = address.ip() else { return None };
    let is_hosts = IpNetworkAddress::new(address.ip(), network.prefix_bits())?.is_of_host();
    (network.contains(address.ip()) && is_hosts).then_some(ip)
}

/// The addresses that the host `own` tries in a network, in this order: some that its MAC scatters over the
/// network, then all that a host can have in it, rising from the first of the scattered ones. The order must
/// stay as it is, or hosts have other addresses after an update.
fn tried(own: Mac, network: IpNetworkAddress) -> Option<impl Iterator<Item = Ipv4Addr>> {
    let IpAddr::V4(base) = network.ip() else { return None };
    // The network's own address and the broadcast address are nobody's.
    let count =
        (u64::from(u32::MAX >> network.prefix_bits()) + 1).checked_sub(2).filter(|&count| count > 0)?;
    let place = move |number: u32| {
        let bytes = [&own.0[..], &base.octets(), &[network.prefix_bits()], &number.to_be_bytes()].concat();
        fnv(&bytes) % count
    };
    let scattered = (0..SCATTERED).map(place);
    let in_order = (1..count).map(move |step| (place(0) + step) % count);
    // The sum is at most the broadcast address, so it fits.
    Some(scattered.chain(in_order).map(move |place| Ipv4Addr::from_bits(base.to_bits() + 1 + place as u32)))
}

#[cfg(test)]
mod tests;
