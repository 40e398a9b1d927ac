//! The endpoints of this machine: one for each agent and partition.

use crate::fabric::{DEFAULT_PKEY, Unit};
use crate::files::address_file::NamedEndpoint;
use crate::wire::{Address, COUNTERS, EndpointInfo, MOST_ADDRESSES};

/// The only port of every device that is not one of InfiniBand.
const PORT: u8 = 1;
/// What the service is called where `ibacm` names who resolves for an endpoint.
const PROVIDER: &str = "mapper";

/// What is counted of each endpoint, in the order in which clients are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// Requests that failed.
    Error,
    /// Questions for paths.
    Resolve,
    /// Questions of which nothing was known.
    NoData,
    /// Addresses that were looked up in what agents know.
    AddressQuery,
    /// Addresses that were found in the cache.
    AddressCache,
    /// Paths that were made of the map and the routes in force.
    RouteQuery,
    /// Paths that were found in the cache.
    RouteCache,
}

/// The counters of an endpoint, or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters(pub [u64; COUNTERS]);

impl Counters {
    /// Counts one.
    pub fn count(&mut self, counter: Counter) {
        if let Some(count) = self.0.get_mut(counter as usize) {
            *count += 1;
        }
    }
}

/// What tells an endpoint from others: the agent's number and the partition.
pub type EndpointKey = (u8, u16);

/// An endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The agent's number on this machine, and the partition.
    pub key: EndpointKey,
    /// The GUID of its device.
    pub guid: u64,
    /// The number of its port at that device.
    pub port: u8,
    /// How many ports the device has.
    pub ports: u8,
    /// The name and the addresses that it goes by.
    pub addresses: Vec<Address>,
}

impl Endpoint {
    /// All endpoints of an agent. The first is that of the partition that all are in, with the agent's own
    /// addresses.
    pub fn of_unit<'a>(
        number: u8,
        unit: &'a Unit,
        named: &'a [NamedEndpoint],
    ) -> impl Iterator<Item = Self> + 'a {
        let (port, ports) = unit.port().map_or((PORT, PORT), |port| (port.number, port.count));
        let here = move || named.iter().filter(move |it| it.device == unit.device() && it.port == port);
        let mut pkeys: Vec<u16> = here().map(|it| it.pkey).filter(|&pkey| pkey != DEFAULT_PKEY).collect();
        pkeys.sort_unstable();
        pkeys.dedup();
        [DEFAULT_PKEY].into_iter().chain(pkeys).map(move |pkey| {
            let own = unit.own_addresses().iter().filter(|_| pkey == DEFAULT_PKEY).cloned();
            let mut addresses: Vec<Address> = own.collect();
            for address in here().filter(|it| it.pkey == pkey).map(|it| &it.address) {
                if !addresses.contains(address) {
                    addresses.push(address.clone());
                }
            }
            Self { key: (number, pkey), guid: unit.device_guid(), port, ports, addresses }
        })
    }

    /// The endpoint as clients are told, with a part of its addresses; `None` if it has not this port, or not so many
    /// addresses.
    pub fn info(&self, port: u8, page: u8) -> Option<EndpointInfo> {
        let skipped = usize::from(page) * MOST_ADDRESSES;
        if ![0, self.port].contains(&port) || (page > 0 && skipped >= self.addresses.len()) {
            return None;
        }
        let addresses = self.addresses.iter().skip(skipped).take(MOST_ADDRESSES);
        Some(EndpointInfo {
            guid: self.guid,
            port: self.port,
            ports: self.ports,
            pkey: self.key.1,
            provider: PROVIDER.to_owned(),
            addresses: addresses.map(ToString::to_string).collect(),
        })
    }

    /// The source that a client is told which named none: of the destination's kind if there is one, else a name, else
    /// any.
    pub fn source_for(&self, destination: &Address) -> Option<&Address> {
        let alike = self.addresses.iter().find(|it| it.kind() == destination.kind());
        alike.or(self.addresses.first())
    }
}
