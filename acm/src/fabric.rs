//! What an agent of this machine knows of its fabric, and the numbers that InfiniBand has for it.
//!
//! Where there is no InfiniBand, its numbers come of MACs, at all hosts alike:
//! - The **GID** of a host is the link-local address that its MAC makes (the modified EUI-64 of RFC 4291, appendix A), as
//!   that of a port of RoCE is, and its **GUID** is the lower half of that.
//! - The **LID** of a host is that of its place in a row of all 49,151 unicast LIDs: its MAC tells where it would like to
//!   stand, and if others stand there whose MACs come first, it takes the next that is free. So a host keeps its LID as
//!   others come and go, but for the few that stand close behind each other.
//!
//! A port of InfiniBand has numbers of its own ([`Port`]), and so have all others of its subnet.

mod port;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use mapper_ib::lids::LAST_LID;
use mapper_proto::Mac;

use port::{Answer, FromPort};
pub use port::{FoundPath, Port, Wanted};

use crate::codes::{mtu_code, rate_code};
use crate::wire::{Address, PathRecord, Selected};

/// The partition that all ports are in.
pub const DEFAULT_PKEY: u16 = 0xffff;
/// How long packets may live: about a second, as OpenSM has it.
const LIFE_TIME: u8 = 18;
/// What `FNV-1a` begins with and multiplies by.
const FNV: (u64, u64) = (0xcbf2_9ce4_8422_2325, 0x0000_0100_0000_01b3);

/// The GID that a MAC makes.
pub fn gid_of(mac: Mac) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.0;
    let [head, tail] = [[a ^ 2, b, c, 0xff], [0xfe, d, e, f]];
    let low = u64::from_be_bytes([head[0], head[1], head[2], head[3], tail[0], tail[1], tail[2], tail[3]]);
    Ipv6Addr::from(0xfe80_u128 << 112 | u128::from(low))
}

/// The MAC that makes this GID, if one does.
pub fn mac_of(gid: Ipv6Addr) -> Option<Mac> {
    let [.., a, b, c, _, _, d, e, f] = gid.octets();
    let mac = Mac([a ^ 2, b, c, d, e, f]);
    (gid_of(mac) == gid).then_some(mac)
}

/// The GUID that a MAC makes.
pub fn guid_of(mac: Mac) -> u64 {
    (u128::from(gid_of(mac)) & u128::from(u64::MAX)) as u64
}

/// The LIDs of hosts, which are given by rising MAC. Hosts for which none is left have LID 0.
pub fn lids(hosts: impl IntoIterator<Item = Mac>) -> BTreeMap<Mac, u16> {
    let mut taken = vec![false; usize::from(LAST_LID) + 1];
    let mut left = usize::from(LAST_LID);
    let place = |mac| {
        let wanted = wanted_lid(mac);
        let mut row = (wanted..=LAST_LID).chain(1..wanted);
        let lid = if left > 0 { row.find(|&lid| !taken[usize::from(lid)]) } else { None };
        let lid = lid.inspect(|&lid| {
            taken[usize::from(lid)] = true;
            left -= 1;
        });
        (mac, lid.unwrap_or_default())
    };
    hosts.into_iter().map(place).collect()
}

/// The LID that a host would like to have.
fn wanted_lid(mac: Mac) -> u16 {
    let mixed = mac.0.iter().fold(FNV.0, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(FNV.1));
    1 + ((mixed ^ mixed >> 32) % u64::from(LAST_LID)) as u16
}

/// A path from this host to another along the first of the routes in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// How many xbars there are on it.
    pub hops: u8,
    /// The layer that frames travel in.
    pub layer: u8,
    /// The longest packet that fits, in bytes.
    pub mtu_bytes: u32,
    /// How fast it is, in Mb/s.
    pub rate_mbps: u32,
    /// Whether its reverse is a legal path as well.
    pub is_reversible: bool,
}

/// A host of the map, as an agent knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Its MAC.
    pub mac: Mac,
    /// What it is called, if it has said so.
    pub name: Option<String>,
    /// Its addresses of IP.
    pub addresses: Vec<IpAddr>,
    /// The path to it; `None` if no route leads there.
    pub path: Option<Path>,
}

/// A host as questions find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found {
    lid: u16,
    path: Option<Path>,
}

/// What one agent of this machine knows: the hosts of its map, their names and addresses, and the paths to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// The interface that the agent is at.
    device: String,
    /// The agent's own MAC.
    own: Mac,
    own_addresses: Vec<Address>,
    hosts: BTreeMap<Mac, Found>,
    by_lid: BTreeMap<u16, Mac>,
    /// Who has a name or an address, as [`Address::into_key`] writes it.
    by_address: BTreeMap<Address, Vec<Mac>>,
    /// Who has a name or an address that was not announced, as hosts said when they were asked.
    learned: BTreeMap<Address, Vec<Mac>>,
    /// What the ends of a path have said that both can do.
    limits: BTreeMap<Mac, Learned>,
    /// The port of InfiniBand that the agent is at, if it is at one: paths are asked for one by one.
    port: Option<FromPort>,
}

/// A host that said that it has what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Learned {
    /// The host.
    pub mac: Mac,
    /// How fast both ends can be, in Mb/s; 0 if that is not known.
    pub rate_mbps: u32,
    /// The longest packet that both ends take, in bytes; 0 if that is not known.
    pub mtu_bytes: u32,
}

/// Whom a name or an address stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The host with this GID.
    One(Ipv6Addr),
    /// Several hosts say that it is theirs, or are called so.
    Several,
    /// It was asked for, and it is nobody's.
    Nobody,
    /// Somebody goes by it, and no path leads there.
    Unreachable,
}

impl Unit {
    /// What an agent knows that is at the interface `device` and has the address `own`. Its own entry among `hosts`
    /// has its name and addresses.
    pub fn new(device: String, own: Mac, hosts: impl IntoIterator<Item = Host>) -> Self {
        let hosts: BTreeMap<Mac, Host> = hosts.into_iter().map(|host| (host.mac, host)).collect();
        let lids = lids(hosts.keys().copied());
        let mut unit = Self {
            device,
            own,
            own_addresses: Vec::new(),
            hosts: BTreeMap::new(),
            by_lid: lids.iter().filter(|&(_, &lid)| lid != 0).map(|(&mac, &lid)| (lid, mac)).collect(),
            by_address: BTreeMap::new(),
            learned: BTreeMap::new(),
            limits: BTreeMap::new(),
            port: None,
        };
        for (mac, Host { name, addresses, path, .. }) in hosts {
            let named = name.into_iter().map(Address::Name);
            let all: Vec<Address> = named.chain(addresses.into_iter().map(Address::from)).collect();
            for address in &all {
                let owners = unit.by_address.entry(address.clone().into_key()).or_default();
                if owners.last() != Some(&mac) {
                    owners.push(mac);
                }
            }
            if mac == own {
                unit.own_addresses = all;
            }
            let lid = lids.get(&mac).copied().unwrap_or_default();
            unit.hosts.insert(mac, Found { lid, path });
        }
        unit
    }

    /// What an agent knows that is at this port of InfiniBand, of the device `device`, whose node is called by
    /// `names`.
    pub fn at_port(device: String, port: Port, names: impl IntoIterator<Item = String>) -> Self {
        let own_addresses: Vec<Address> = names.into_iter().map(Address::Name).collect();
        Self { own_addresses, port: Some(FromPort::new(port)), ..Self::new(device, Mac::default(), []) }
    }

    /// The interface that the agent is at.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// The agent's own GID.
    pub fn own_gid(&self) -> Ipv6Addr {
        self.port.as_ref().map_or_else(|| gid_of(self.own), |from| from.port.gid)
    }

    /// The port of InfiniBand that the agent is at, if it is at one.
    pub fn port(&self) -> Option<&Port> {
        self.port.as_ref().map(|from| &from.port)
    }

    /// The GUID of the agent's own device.
    pub fn device_guid(&self) -> u64 {
        self.port().map_or_else(|| guid_of(self.own), |port| port.device_guid)
    }

    /// The agent's own name and addresses.
    pub fn own_addresses(&self) -> &[Address] {
        &self.own_addresses
    }

    /// How many hosts it knows.
    pub fn host_count(&self) -> usize {
        self.hosts.len()
    }

    /// Whom a name or an address stands for, as [`Address::into_key`] writes it. An address of IPv6 may be a GID. `None` if
    /// that is not known.
    pub fn owner(&self, key: &Address) -> Option<Owner> {
        if let Some(from) = &self.port {
            let is_own = self.own_addresses.iter().any(|own| own.clone().into_key() == *key);
            let own = is_own.then_some(Answer::To(from.port.gid));
            return own.or_else(|| from.answer(&Wanted::Address(key.clone()))).map(Owner::from);
        }
        let known = self.by_address.get(key).or_else(|| self.learned.get(key));
        match (known.map(Vec::as_slice), key) {
            (Some(&[mac]), _) => Some(Owner::One(gid_of(mac))),
            (Some(_), _) => Some(Owner::Several),
            (None, Address::V6(gid)) if self.has_gid(*gid) => Some(Owner::One(*gid)),
            (None, _) => None,
        }
    }

    /// Takes in what was found when the path from a port of InfiniBand was asked for.
    pub fn learn_path(&mut self, wanted: &Wanted, found: &FoundPath) {
        if let Some(from) = &mut self.port {
            from.learn(wanted, found);
        }
    }

    /// Takes in which hosts said that they have a name or an address, when they were asked. Those that the map does not
    /// list are left out.
    pub fn learn(&mut self, key: Address, owners: &[Learned]) {
        let mut listed: Vec<Learned> = owners.to_vec();
        listed.retain(|owner| self.hosts.contains_key(&owner.mac));
        listed.sort_unstable_by_key(|owner| owner.mac);
        listed.dedup_by_key(|owner| owner.mac);
        if !listed.is_empty() {
            self.learned.insert(key, listed.iter().map(|owner| owner.mac).collect());
            self.limits.extend(listed.into_iter().map(|owner| (owner.mac, owner)));
        }
    }

    /// The names and addresses that one host says it has, with that host.
    pub fn announced(&self) -> impl Iterator<Item = (&Address, Mac)> {
        self.by_address.iter().filter_map(|(address, owners)| match owners[..] {
            [mac] => Some((address, mac)),
            _ => None,
        })
    }

    /// The names and addresses that hosts have not announced, and said when they were asked.
    pub fn learned(&self) -> impl Iterator<Item = &Address> {
        self.learned.keys()
    }

    /// The names and addresses that several hosts say they have.
    pub fn clashes(&self) -> impl Iterator<Item = (&Address, &[Mac])> {
        let all = self.by_address.iter().chain(&self.learned);
        all.filter(|(_, owners)| owners.len() > 1).map(|(key, owners)| (key, &owners[..]))
    }

    /// Whether a host with this GID is known.
    pub fn has_gid(&self, gid: Ipv6Addr) -> bool {
        match &self.port {
            Some(from) => gid == from.port.gid || !from.has_to_ask(gid),
            None => mac_of(gid).is_some_and(|mac| self.hosts.contains_key(&mac)),
        }
    }

    /// Whom a LID stands for; `None` if that is not known.
    pub fn owner_of_lid(&self, lid: u16) -> Option<Owner> {
        match &self.port {
            Some(from) if from.has_lid(lid) => Some(Owner::One(from.port.gid)),
            Some(from) => from.answer(&Wanted::Lid(lid)).map(Owner::from),
            None => self.by_lid.get(&lid).map(|&mac| Owner::One(gid_of(mac))),
        }
    }

    /// Whether the path to this GID is to be asked for, as nobody was asked so far.
    pub fn has_to_ask(&self, gid: Ipv6Addr) -> bool {
        self.port.as_ref().is_some_and(|from| from.has_to_ask(gid))
    }

    /// The path to a host as a record, in this partition; `None` if no route leads there.
    pub fn record(&self, gid: Ipv6Addr, pkey: u16) -> Option<PathRecord> {
        if let Some(from) = &self.port {
            return from.record(gid, pkey);
        }
        let to = mac_of(gid)?;
        let (from, found) = (self.hosts.get(&self.own)?, self.hosts.get(&to)?);
        let mut path = found.path?;
        if let Some(limits) = self.limits.get(&to) {
            let lesser = |path: u32, said: u32| if said == 0 { path } else { path.min(said) };
            path.rate_mbps = lesser(path.rate_mbps, limits.rate_mbps);
            path.mtu_bytes = lesser(path.mtu_bytes, limits.mtu_bytes);
        }
        Some(PathRecord {
            dgid: gid_of(to),
            sgid: gid_of(self.own),
            dlid: found.lid,
            slid: from.lid,
            hop_limit: path.hops,
            reversible: path.is_reversible,
            paths: 1,
            pkey,
            sl: path.layer,
            mtu: Selected::exactly(mtu_code(path.mtu_bytes)),
            rate: Selected::exactly(rate_code(path.rate_mbps)),
            life_time: Selected::exactly(LIFE_TIME),
            ..PathRecord::default()
        })
    }
}

impl From<Answer> for Owner {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::To(gid) => Self::One(gid),
            Answer::Nobody => Self::Nobody,
            Answer::NoPath => Self::Unreachable,
            Answer::Several => Self::Several,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::btree_set;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_gid_is_the_link_local_address_of_the_mac() {
        let mac: Mac = "02:00:00:00:00:01".parse().unwrap();
        assert_eq!(gid_of(mac).to_string(), "fe80::ff:fe00:1");
        assert_eq!((guid_of(mac), mac_of(gid_of(mac))), (0x0000_00ff_fe00_0001, Some(mac)));
        assert_eq!(mac_of("fe80::1".parse().unwrap()), None);
    }

    proptest! {
        #[test]
        fn lids_differ_and_stay_as_others_come(macs in btree_set(0..200u32, 1..50), more in 200..300u32) {
            let hosts = |macs: &std::collections::BTreeSet<u32>| {
                lids(macs.iter().map(|&n| Mac::from_position(n)).collect::<std::collections::BTreeSet<_>>())
            };
            let before = hosts(&macs);
            let different: std::collections::BTreeSet<_> = before.values().collect();
            prop_assert_eq!(different.len(), macs.len());
            prop_assert!(before.values().all(|lid| (1..=LAST_LID).contains(lid)));
            let mut grown = macs.clone();
            grown.insert(more);
            let after = hosts(&grown);
            // A host keeps its LID unless it stands in the way of the new one.
            let moved = before.iter().filter(|&(mac, lid)| after[mac] != *lid).count();
            prop_assert!(moved <= 3, "{moved}");
        }
    }

    #[test]
    fn when_all_lids_are_taken_the_rest_have_none() {
        let all = lids((0..u32::from(LAST_LID) + 2).map(Mac::from_position));
        assert_eq!(all.values().filter(|&&lid| lid == 0).count(), 2);
    }
}
