//! What one host says of itself, and its bytes.
//!
//! A record is laid out as the host's address (6 bytes), its revision (4), the length of its name (1, 0 for
//! no name) and the name, the count of its addresses (1), and each address as its kind (1), the length of its
//! prefix in bits (1) and its bytes. Behind these stands how fast the host's interfaces are ([`PortRates`]).
//! The count has 64 more if the host's kernel goes by destination for the sake of others, 128 more if it does so
//! always, and both if it does so always and the host has no crossbar ([`ByDestination`]). The kind is 4 or 6, the version of IP, and 128 more if the host picked the address and would give way to
//! another that has it.

use std::net::IpAddr;
use std::sync::Arc;

use mapper_proto::{IpNetworkAddress, Mac};

use super::HostName;
use super::rates::PortRates;
use crate::kernel_path::ByDestination;

/// The most addresses in a record, so that any record fits a message.
pub(super) const MOST_ADDRESSES: usize = 16;
/// The bit of an address's kind that says that the host picked the address.
const PICKED: u8 = 0x80;
/// The bits of the count of addresses that say when the host's kernel goes by destination.
const WITH_OTHERS: u8 = 0x40;
const ALWAYS: u8 = 0x80;
const ALONE: u8 = WITH_OTHERS | ALWAYS;

/// What a host says of itself. There are as many of these as pairs of hosts in a simulator, so they are small.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Record {
    pub(super) revision: u32,
    pub(super) name: Option<HostName>,
    pub(super) addresses: RecordAddresses,
}

/// The addresses of a host, each no more than once, how fast its interfaces are, and when its kernel goes by destination.
/// Without any of these it takes no memory of its own.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct RecordAddresses(Option<Arc<Listed>>);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
struct Listed {
    all: Vec<IpNetworkAddress>,
    /// A bit for each address that the host picked.
    picked: u16,
    rates: PortRates,
    by_destination: ByDestination,
}

impl RecordAddresses {
    /// The addresses `all`, of which the host picked those that `is_picked` names. Left out are addresses that
    /// no host can tell others, those whose IP is there already, and all after the first sixteen.
    pub(super) fn new(
        all: impl IntoIterator<Item = IpNetworkAddress>,
        is_picked: impl Fn(IpAddr) -> bool,
    ) -> Self {
        let mut listed = Listed::default();
        for address in all.into_iter().filter(IpNetworkAddress::is_of_host) {
            listed.push(address, is_picked(address.ip()));
        }
        listed.into_shared()
    }

    /// A copy with these rates instead of its own.
    pub(super) fn with_rates(&self, rates: PortRates) -> Self {
        let listed = self.0.as_deref().cloned().unwrap_or_default();
        Listed { rates, ..listed }.into_shared()
    }

    /// A copy that says this of when the kernel goes by destination.
    pub(super) fn with_by_destination(&self, by_destination: ByDestination) -> Self {
        let listed = self.0.as_deref().cloned().unwrap_or_default();
        Listed { by_destination, ..listed }.into_shared()
    }

    /// A copy with all that `other` says beside addresses.
    pub(super) fn with_the_rest_of(&self, other: &Self) -> Self {
        self.with_rates(other.rates()).with_by_destination(other.by_destination())
    }

    /// When the kernel goes by destination.
    pub(super) fn by_destination(&self) -> ByDestination {
        self.0.as_ref().map_or(ByDestination::Never, |listed| listed.by_destination)
    }

    /// How fast the interfaces are.
    pub(super) fn rates(&self) -> PortRates {
        self.0.as_ref().map_or_else(PortRates::default, |listed| listed.rates.clone())
    }

    pub(super) fn all(&self) -> &[IpNetworkAddress] {
        self.0.as_ref().map_or(&[], |listed| &listed.all)
    }

    /// The addresses, each with whether the host picked it.
    pub(super) fn iter(&self) -> impl Iterator<Item = (IpNetworkAddress, bool)> + '_ {
        let picked = self.0.as_ref().map_or(0, |listed| listed.picked);
        self.all().iter().enumerate().map(move |(at, &address)| (address, picked >> at & 1 == 1))
    }
}

impl Listed {
    fn into_shared(self) -> RecordAddresses {
        let says_nothing = self.rates.is_empty() && self.by_destination == ByDestination::Never;
        let is_empty = self.all.is_empty() && says_nothing;
        RecordAddresses((!is_empty).then(|| Arc::new(self)))
    }

    /// Adds an address, unless it is there or there is no room.
    fn push(&mut self, address: IpNetworkAddress, is_picked: bool) -> bool {
        let is_new = self.all.iter().all(|known| known.ip() != address.ip());
        let fits = is_new && self.all.len() < MOST_ADDRESSES;
        if fits {
            self.picked |= u16::from(is_picked) << self.all.len();
            self.all.push(address);
        }
        fits
    }
}

impl Record {
    /// Whether the record says the same of its host as another one, whatever their revisions are.
    pub(super) fn says_as(&self, other: &Self) -> bool {
        (&self.name, &self.addresses) == (&other.name, &other.addresses)
    }

    /// Appends the record of the host with the address `mac` to `bytes`.
    pub(super) fn write(&self, mac: Mac, bytes: &mut Vec<u8>) {
        bytes.extend(mac.0);
        bytes.extend(self.revision.to_be_bytes());
        let name = self.name.as_ref().map_or("", HostName::as_str).as_bytes();
        // Both lengths fit a byte: names have at most 64 bytes, and there are at most 16 addresses.
        bytes.push(name.len() as u8);
        bytes.extend(name);
        let by_destination = match self.addresses.by_destination() {
            ByDestination::Never => 0,
            ByDestination::WithOthers => WITH_OTHERS,
            ByDestination::Always => ALWAYS,
            ByDestination::Alone => ALONE,
        };
        bytes.push(self.addresses.all().len() as u8 | by_destination);
        for (address, is_picked) in self.addresses.iter() {
            let picked = if is_picked { PICKED } else { 0 };
            match address.ip() {
                IpAddr::V4(ip) => {
                    bytes.extend([4 | picked, address.prefix_bits()]);
                    bytes.extend(ip.octets());
                }
                IpAddr::V6(ip) => {
                    bytes.extend([6 | picked, address.prefix_bits()]);
                    bytes.extend(ip.octets());
                }
            }
        }
        self.addresses.rates().write(bytes);
    }

    /// Reads a record off the beginning of `bytes`. `None` if it is malformed, or has an address that no host
    /// can have.
    pub(super) fn read(bytes: &mut &[u8]) -> Option<(Mac, Self)> {
        let mac = Mac(take(bytes)?);
        let revision = u32::from_be_bytes(take(bytes)?);
        let [length] = take(bytes)?;
        let (name, rest) = bytes.split_at_checked(usize::from(length))?;
        *bytes = rest;
        let name = match name {
            [] => None,
            name => Some(std::str::from_utf8(name).ok()?.parse().ok()?),
        };
        let [count] = take(bytes)?;
        let by_destination = match count & ALONE {
            WITH_OTHERS => ByDestination::WithOthers,
            ALWAYS => ByDestination::Always,
            ALONE => ByDestination::Alone,
            _ => ByDestination::Never,
        };
        let mut listed = Listed { by_destination, ..Listed::default() };
        for _ in 0..count & !ALONE {
            let [kind, prefix_bits] = take(bytes)?;
            let ip = match kind & !PICKED {
                4 => IpAddr::from(take::<4>(bytes)?),
                6 => IpAddr::from(take::<16>(bytes)?),
                _ => return None,
            };
            let address = IpNetworkAddress::new(ip, prefix_bits).filter(IpNetworkAddress::is_of_host)?;
            listed.push(address, kind & PICKED != 0).then_some(())?;
        }
        listed.rates = PortRates::read(bytes)?;
        let addresses = listed.into_shared();
        Some((mac, Self { revision, name, addresses }))
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address() -> impl Strategy<Value = IpNetworkAddress> {
        let four = (any::<[u8; 4]>(), 1..=32u8).prop_map(|(ip, bits)| (IpAddr::from(ip), bits));
        let six = (any::<[u8; 16]>(), 1..=128u8).prop_map(|(ip, bits)| (IpAddr::from(ip), bits));
        prop_oneof![four, six].prop_map(|(ip, bits)| IpNetworkAddress::new(ip, bits).unwrap())
    }

    /// Any record of any host.
    pub(crate) fn any_record() -> impl Strategy<Value = (Mac, Record)> {
        let name = proptest::option::of("[^\\pC]{1,16}");
        let addresses = proptest::collection::vec(address(), 0..20);
        let rates = proptest::collection::vec(any::<(u8, u32)>(), 0..9);
        (any::<[u8; 6]>(), any::<u32>(), name, addresses, any::<[bool; 3]>(), rates).prop_map(
            |(mac, revision, name, addresses, [is_picked, goes, always], mut rates)| {
                let name = name.map(|name| name.parse().unwrap());
                let addresses = RecordAddresses::new(addresses, |ip| is_picked && ip.is_ipv4());
                rates.sort_unstable();
                rates.dedup_by_key(|(port, _)| *port);
                let by_destination = match (goes, always) {
                    (false, false) => ByDestination::Never,
                    (true, false) => ByDestination::WithOthers,
                    (false, true) => ByDestination::Always,
                    (true, true) => ByDestination::Alone,
                };
                let addresses =
                    addresses.with_rates(PortRates::new(rates)).with_by_destination(by_destination);
                (Mac(mac), Record { revision, name, addresses })
            },
        )
    }

    proptest! {
        #[test]
        fn a_record_is_read_as_it_was_written((mac, record) in any_record(), rest: Vec<u8>) {
            let mut bytes = Vec::new();
            record.write(mac, &mut bytes);
            prop_assert!(bytes.len() <= 12 + 64 + MOST_ADDRESSES * 18 + 19);
            bytes.extend(&rest);
            let mut bytes = &bytes[..];
            prop_assert_eq!(Record::read(&mut bytes), Some((mac, record)));
            prop_assert_eq!(bytes, rest);
        }
    }

    #[test]
    fn a_record_has_its_golden_bytes() {
        let addresses: Vec<IpNetworkAddress> =
            ["10.1.0.3/24", "fd00::3/64"].iter().map(|text| text.parse().unwrap()).collect();
        let picked = RecordAddresses::new(addresses, |ip| ip.is_ipv4());
        let addresses = picked.with_rates(PortRates::new([(1, 25_000), (2, 1_000)]));
        let record = Record { revision: 258, name: Some("n1".parse().unwrap()), addresses };
        let mut bytes = Vec::new();
        record.write(Mac([2, 0, 0, 0, 0, 9]), &mut bytes);
        let golden = [
            &[2, 0, 0, 0, 0, 9, 0, 0, 1, 2, 2, b'n', b'1', 2][..],
            &[0x84, 24, 10, 1, 0, 3],
            &[6, 64, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3],
            &[2, 1, 0, 250, 2, 0, 10],
        ];
        assert_eq!(bytes, golden.concat());
        for (by_destination, bits) in
            [(ByDestination::WithOthers, 0x40), (ByDestination::Always, 0x80), (ByDestination::Alone, 0xc0)]
        {
            let (mut said, mut expected) = (Vec::new(), bytes.clone());
            let addresses = record.addresses.with_by_destination(by_destination);
            Record { addresses, ..record.clone() }.write(Mac([2, 0, 0, 0, 0, 9]), &mut said);
            expected[13] |= bits;
            assert_eq!(said, expected);
        }
        assert!(Record::read(&mut &bytes[..bytes.len() - 1]).is_none());
        let mut empty = Vec::new();
        Record::default().write(Mac([2, 0, 0, 0, 0, 9]), &mut empty);
        assert_eq!(empty, [2, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn what_no_host_says_is_refused() {
        let read = |tail: &[u8]| Record::read(&mut &[&[2, 0, 0, 0, 0, 9, 0, 0, 1, 2][..], tail].concat()[..]);
        assert!(read(&[0, 1, 4, 24, 10, 1, 0, 3, 0]).is_some());
        let seventeen: Vec<u8> = (1..=17).flat_map(|last| [4, 24, 10, 1, 0, last]).collect();
        // Among these are a name that would ring a bell, a version of IP that there is not, prefixes that are none or too long, a loopback address, the address of a network, and an address twice.
        for bad in [
            &[][..],
            &[1, 7, 0],
            &[0, 1, 5, 24, 10, 1, 0, 3, 0],
            &[0, 1, 4, 0, 10, 1, 0, 3, 0],
            &[0, 1, 4, 33, 10, 1, 0, 3, 0],
            &[0, 1, 4, 8, 127, 0, 0, 1, 0],
            &[0, 1, 4, 24, 10, 1, 0, 0, 0],
            &[0, 2, 4, 24, 10, 1, 0, 3, 0x84, 16, 10, 1, 0, 3, 0],
            &[&[0, 17][..], &seventeen, &[0]].concat(),
            &[0, 1, 4, 24, 10, 1, 0, 3, 1, 1, 0, 0],
        ] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_record_is_small_and_an_empty_list_takes_nothing() {
        assert!(size_of::<Record>() <= 32);
        assert_eq!(RecordAddresses::new([], |_| true).0, None);
        let many: Vec<IpNetworkAddress> =
            (1..=20).map(|last| format!("10.1.0.{last}/24").parse().unwrap()).collect();
        assert_eq!(RecordAddresses::new(many.iter().copied(), |_| true).all(), &many[..16]);
        let doubled = [many[0], "10.1.0.1/16".parse().unwrap(), "127.0.0.1/8".parse().unwrap()];
        assert_eq!(RecordAddresses::new(doubled, |_| true).all(), &many[..1]);
    }
}
