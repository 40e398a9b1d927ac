//! The IP addresses of this host and of others: which this machine has, which it picks, and which clash.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use mapper_fabric::wording::with_causes;
use mapper_host::directory::{Clash, Directory};
use mapper_host::picking::{Lost, Picked};
use mapper_machine::link::LinkError;
use mapper_machine::link::address::InterfaceAddress;
use mapper_machine::link::held_address::HeldAddress;
use mapper_machine::link::interface::Interface;
use mapper_proto::neighbours::Neighbour;
use mapper_proto::{Instant, IpNetworkAddress, Mac};
use tracing::{error, info, warn};

use super::kept_addresses::{KeptAddresses, forget_oldest};
use super::state::Driver;
use crate::agent::status::AddressClash;

/// The most clashes of addresses that a board shows.
const MOST_CLASHES: usize = 64;

/// What the driver knows of this machine's addresses beside what the directory has.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    /// Addresses that others could use but are not told, as there are too many.
    left_out: Vec<IpNetworkAddress>,
    /// The addresses that this host has picked, in this run or an earlier one.
    kept: KeptAddresses,
    /// Networks out of which no address is free.
    full: BTreeSet<IpNetworkAddress>,
    /// Why an address that was picked could not be given to the tap interface, in words.
    not_given: Option<String>,
    /// The lasting clashes of this host's addresses that were logged.
    told: Vec<Clash>,
    /// Addresses of this host that another interface of this machine has, too, and networks that both have addresses
    /// of, in words.
    shared: Vec<String>,
    /// The addresses of interfaces that are not of this fabric, with their names.
    elsewhere: Vec<(IpAddr, String)>,
    /// The interfaces of ports at which a neighbour of the fabric has been heard since they are ports.
    cabled: BTreeSet<String>,
    /// The addresses of ports at which none has, with the names of these. They may be of another network.
    alone: Vec<(IpNetworkAddress, String)>,
}

/// The addresses of this machine, as the kernel has them at one moment.
#[derive(Debug, Default)]
struct KernelAddresses {
    /// The addresses of the tap interface.
    of_tap: Vec<IpNetworkAddress>,
    /// The addresses that somebody gave the ports.
    of_ports: Vec<IpNetworkAddress>,
    /// The addresses of all other interfaces, with the numbers of these.
    elsewhere: Vec<(IpAddr, u32)>,
    /// The addresses of the fabric that one of the other interfaces has, too, with the numbers of both
    /// interfaces.
    twice: Vec<(IpAddr, u32, u32)>,
    /// The addresses of the fabric whose network one of the other interfaces has an address of, too, with the numbers of
    /// both interfaces. Each network is there once for each two interfaces.
    one_network: Vec<(IpNetworkAddress, u32, u32)>,
}

impl KernelAddresses {
    /// Sorts the addresses `all` by the numbers of the tap and of the ports.
    fn new(all: &[HeldAddress], tap: Option<u32>, ports: &[u32]) -> Self {
        let of_tap = all.iter().filter(|held| Some(held.index) == tap && held.is_for_others);
        let is_ports = |held: &&HeldAddress| ports.contains(&held.index);
        let of_ports = all.iter().filter(is_ports).filter(|held| held.is_for_others && held.is_permanent);
        let (of_tap, of_ports): (Vec<_>, Vec<_>) = (of_tap.collect(), of_ports.collect());
        let others = all.iter().filter(|held| Some(held.index) != tap && !is_ports(held));
        let fabric = [&of_tap[..], &of_ports].concat();
        let elsewhere: Vec<&HeldAddress> = others.collect();
        let twice = fabric.iter().flat_map(|own| {
            let same = elsewhere.iter().filter(|other| other.address.ip() == own.address.ip());
            same.map(|other| (own.address.ip(), own.index, other.index))
        });
        let twice = twice.collect();
        let mut one_network: Vec<(IpNetworkAddress, u32, u32)> = Vec::new();
        for own in &fabric {
            for other in elsewhere.iter().filter(|other| other.is_for_others && are_one_network(own, other)) {
                let is_known = |&(address, index, beside): &(IpNetworkAddress, u32, u32)| {
                    address.contains(own.address.ip()) && (index, beside) == (own.index, other.index)
                };
                if !one_network.iter().any(is_known) {
                    one_network.push((own.address, own.index, other.index));
                }
            }
        }
        let [of_tap, of_ports] = [of_tap, of_ports].map(|of| of.iter().map(|held| held.address).collect());
        let elsewhere = elsewhere.into_iter().map(|held| (held.address.ip(), held.index)).collect();
        Self { of_tap, of_ports, elsewhere, twice, one_network }
    }
}

/// Whether two different addresses are of one network that has more than one.
fn are_one_network(one: &HeldAddress, other: &HeldAddress) -> bool {
    let (one, other) = (one.address, other.address);
    one.ip() != other.ip() && one.prefix_bits() == other.prefix_bits() && one.contains(other.ip())
}

impl Driver {
    /// Has the host pick its addresses. Those of its last run are tried first.
    pub(super) fn pick_addresses(&mut self) {
        if !self.config.networks.is_empty() {
            let own = self.host.own();
            let path = KeptAddresses::path(&self.config, own);
            self.addresses.kept = KeptAddresses::read(&path, own).unwrap_or_else(|error| {
                warn!(
                    path = %path.display(),
                    %error,
                    "the addresses that were picked before cannot be read: this host may pick others"
                );
                KeptAddresses::default()
            });
        }
        self.host.pick_addresses(self.now(), &self.config.networks, self.addresses.kept.all());
    }

    /// Keeps an address that was picked for later starts.
    fn keep_picked(&mut self, picked: IpNetworkAddress, given_up: Option<IpNetworkAddress>) {
        let own = self.host.own();
        let path = KeptAddresses::path(&self.config, own);
        self.addresses.kept.take(picked, given_up);
        match self.addresses.kept.write(&path, own) {
            Ok(true) => forget_oldest(&self.config, own),
            Ok(false) => {}
            Err(error) => warn!(
                path = %path.display(),
                %error,
                "the address cannot be kept: after the next start this host may pick another"
            ),
        }
    }

    /// When to look again which addresses the tap interface has.
    pub(super) fn addresses_due_at(&self) -> Option<Instant> {
        self.users.as_ref()?.given().look_at()
    }

    /// Looks again which addresses the tap interface has, if it is time to.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub(super) fn follow_addresses_if_due(&mut self) -> Result<(), LinkError> {
        match self.addresses_due_at() {
            Some(at) if self.now() >= at => self.follow_addresses(),
            _ => Ok(()),
        }
    }

    /// Takes in at which ports neighbours are heard: the addresses of ports at which the first one is heard count from now on.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub(super) fn follow_cabled_ports(&mut self, joined: &BTreeMap<u8, Neighbour>) -> Result<(), LinkError> {
        let interfaces = self.attachment.outer.interfaces();
        let heard = interfaces.into_iter().filter(|(port, _)| joined.contains_key(port));
        let known = self.addresses.cabled.len();
        self.addresses.cabled.extend(heard.map(|(_, interface)| interface));
        if self.addresses.cabled.len() == known { Ok(()) } else { self.follow_addresses() }
    }

    /// Which ports have an address of their own and a cable at whose other end nothing of the fabric is heard, in words.
    pub(super) fn lonely_ports(&self) -> impl Iterator<Item = String> + '_ {
        self.addresses.alone.iter().map(|(address, interface)| {
            format!(
                "the port {interface} has the address {address}, and nothing of the fabric is heard there: if it leads to another \
                 network, take it out of --ports; until something is heard nobody is told of its address"
            )
        })
    }

    /// Tells the host which addresses this machine has now. Those of a port count once a neighbour has been heard there: a
    /// pattern may match an interface that leads to another network, whose addresses others are not to send to the fabric.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub(super) fn follow_addresses(&mut self) -> Result<(), LinkError> {
        let tap = self.users.as_ref().map(|users| users.tap().index());
        let names: Vec<_> = self.attachment.outer_ports().into_iter().map(|port| port.interface).collect();
        self.addresses.cabled.retain(|interface| names.contains(interface));
        let all = Interface::all()?;
        let all_ports = all.iter().filter(|it| names.contains(&it.name));
        let (cabled, alone): (Vec<_>, Vec<_>) =
            all_ports.partition(|it| self.addresses.cabled.contains(&it.name));
        let ports: Vec<u32> = cabled.iter().map(|it| it.index).collect();
        let held = HeldAddress::all()?;
        let now = self.now();
        if let Some(users) = &mut self.users {
            users.put_addresses_back(now, &held);
        }
        let of_alone = |held: &HeldAddress| {
            let port = alone.iter().find(|it| it.index == held.index && it.carrier)?;
            held.is_for_others.then(|| (held.address, port.name.clone()))
        };
        self.addresses.alone = held.iter().filter_map(of_alone).collect();
        let is_alone = |index: u32| alone.iter().any(|it| it.index == index);
        let held = KernelAddresses::new(&held, tap, &ports);
        let is_up = |index: u32| all.iter().any(|it| it.index == index && it.up);
        let twice = held.twice.iter().filter(|(_, _, other)| !is_alone(*other));
        let twice = twice.map(|twice| clash_within(*twice, &all));
        let one_network = held.one_network.iter().filter(|(_, _, other)| is_up(*other) && !is_alone(*other));
        self.addresses.shared =
            twice.chain(one_network.map(|shared| network_shared(*shared, &all))).collect();
        let fabric = held.of_tap.iter().chain(&held.of_ports);
        self.addresses.left_out = fabric.skip(Directory::MOST_ADDRESSES).copied().collect();
        let named = held.elsewhere.iter().map(|&(ip, index)| (ip, name_of(index, &all).to_owned()));
        self.addresses.elsewhere = named.collect();
        self.host.set_addresses_elsewhere(now, held.elsewhere.iter().map(|(ip, _)| *ip).collect());
        self.host.set_addresses(now, held.of_tap, &held.of_ports);
        self.warn_of_changes();
        Ok(())
    }

    /// Gives the tap interface the address that the host picked, instead of the one that it gave up.
    pub(super) fn take_picked(&mut self, picked: Picked) {
        let Picked { network, address, given_up } = picked;
        match (address, given_up) {
            (Some(address), None) => info!(%address, "picked an address"),
            (Some(address), Some((before, why))) => {
                warn!(%address, %before, "picked another address: {}", self.why_lost(why));
            }
            (None, Some((before, why))) => {
                error!(%before, "gave up the address, and {network} has no free one: {}", self.why_lost(why));
            }
            (None, None) => error!("no address of {network} is free"),
        }
        let before = given_up.map(|(before, _)| before);
        let removed = before.map_or(Ok(()), |before| self.remove_from_tap(before));
        let given = address.map_or(Ok(false), |address| self.give_to_tap(address));
        let has_it = matches!(given, Ok(true));
        self.addresses.not_given = removed.and(given).err();
        if let Some(error) = &self.addresses.not_given {
            error!("{error}");
        }
        // An address that an earlier run had picked stayed on the interface until now, as most hosts pick the same again.
        if let Some(users) = &self.users {
            users.take_away_left(|left| network.contains(left.ip()));
        }
        if let Some(address) = address {
            if has_it {
                self.keep_picked(address, before);
            }
            self.addresses.full.remove(&network);
        } else {
            self.addresses.full.insert(network);
        }
        // The kernel tells of the change, and then the host hears which addresses there are.
    }

    fn remove_from_tap(&mut self, address: IpNetworkAddress) -> Result<(), String> {
        let (Some(users), Some(address)) = (&mut self.users, InterfaceAddress::new(address)) else {
            return Ok(());
        };
        users.take_away(address).map_err(|error| with_causes(&error))
    }

    /// Gives the tap interface an address. Returns whether there is a tap interface and it has the address now.
    fn give_to_tap(&mut self, address: IpNetworkAddress) -> Result<bool, String> {
        let (Some(users), Some(address)) = (&mut self.users, InterfaceAddress::new(address)) else {
            return Ok(false);
        };
        users.give(address).map_err(|error| with_causes(&error))?;
        Ok(true)
    }

    fn why_lost(&self, why: Lost) -> String {
        match why {
            Lost::To(mac) => format!("{} has it too, and keeps it", self.called(mac)),
            Lost::Elsewhere => "another interface of this machine has it".to_owned(),
        }
    }

    /// Logs once for each address of this host that others have, too, and keep.
    pub(super) fn tell_of_clashes(&mut self) {
        let own = self.host.own();
        let clashes = self.host.directory().clashes();
        let lasting: Vec<_> =
            clashes.filter(|clash| clash.is_lasting && clash.hosts.contains(&own)).collect();
        for Clash { ip, hosts, .. } in lasting.iter().filter(|clash| !self.addresses.told.contains(clash)) {
            let hosts: Vec<_> = hosts.iter().map(|&mac| self.called(mac)).collect();
            error!("the address {ip} was given to {}: give all but one of them another", hosts.join(" and "));
        }
        self.addresses.told = lasting;
    }

    /// The networks out of which an address is still to be picked, or is picked and the kernel has not told yet that the tap
    /// interface has it.
    pub(super) fn picking(&self) -> impl Iterator<Item = IpNetworkAddress> {
        let Addresses { full, not_given, .. } = &self.addresses;
        let own = self.host.directory().addresses_of(self.host.own());
        let networks = self.config.networks.iter().copied().filter(|_| not_given.is_none());
        networks.filter(|network| {
            !full.contains(network) && !own.iter().any(|address| network.contains(address.ip()))
        })
    }

    /// The addresses that two or more hosts have, as the board shows them.
    pub(super) fn address_clashes(&self) -> Vec<AddressClash> {
        self.host.directory().clashes().take(MOST_CLASHES).map(AddressClash::from).collect()
    }

    /// What is wrong with this host's addresses, in words. `called` names hosts.
    pub(super) fn address_warnings(&self, called: &dyn Fn(Mac) -> String) -> Vec<String> {
        let Addresses { left_out, kept: _, full, not_given, told: _, shared, elsewhere, cabled: _, alone: _ } =
            &self.addresses;
        let (directory, own) = (self.host.directory(), self.host.own());
        let of_others = elsewhere.iter().flat_map(|(ip, interface)| {
            let others = directory.host_with(*ip).filter(|&mac| mac != own);
            others.map(move |mac| address_of_another(*ip, interface, &called(mac)))
        });
        let full = full.iter().map(|network| {
            format!("no address of {network} is free: name a larger network, or state an address")
        });
        let left_out = (!left_out.is_empty()).then(|| {
            let all: Vec<_> = left_out.iter().map(ToString::to_string).collect();
            format!(
                "other hosts are told {} addresses of this host, and not {}",
                Directory::MOST_ADDRESSES,
                all.join(", ")
            )
        });
        let within = not_given.iter().chain(shared).cloned();
        full.chain(left_out).chain(within).chain(of_others).collect()
    }
}

/// What is wrong where an interface of this machine that is not of the fabric has the address of another host.
fn address_of_another(ip: IpAddr, interface: &str, host: &str) -> String {
    format!(
        "{interface}, which is not of this fabric, has the address {ip} of {host}, so what is sent to that host stays on \
         this machine: take it from {interface}, or give that host another"
    )
}

/// The name of the interface with this number.
fn name_of(index: u32, all: &[Interface]) -> &str {
    all.iter().find(|it| it.index == index).map_or("?", |it| it.name.as_str())
}

/// What is wrong where two interfaces of this machine, by their numbers, have addresses of one network.
fn network_shared((address, own, other): (IpNetworkAddress, u32, u32), all: &[Interface]) -> String {
    let option = if address.ip().is_ipv6() { "`--fabric-prefix`" } else { "`--address`" };
    format!(
        "both {} ({address}) and {}, which is not of this fabric, have addresses of one network, and packets to it \
         may leave by the wrong one: give the fabric another network by {option}",
        name_of(own, all),
        name_of(other, all)
    )
}

/// What is wrong where two interfaces of this machine, by their numbers, have one address.
fn clash_within((ip, own, other): (IpAddr, u32, u32), all: &[Interface]) -> String {
    format!(
        "both {} and {}, which is not of the fabric, have the address {ip}: give one of them another, as packets may \
         take the wrong one",
        name_of(own, all),
        name_of(other, all)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn told_are_those_of_the_tap_and_what_somebody_gave_the_ports() {
        let held = |index, text: &str, is_for_others, is_permanent| HeldAddress {
            index,
            address: text.parse().unwrap(),
            is_for_others,
            is_permanent,
            is_ours: false,
        };
        let all = [
            held(1, "127.0.0.1/8", false, true),
            held(2, "192.0.2.7/24", true, true),
            held(3, "10.2.0.1/31", true, true),
            held(3, "2001:db8::7/64", true, false),
            held(3, "fe80::3/64", false, true),
            held(9, "10.1.0.1/24", true, false),
            held(9, "fe80::9/64", false, true),
            held(5, "fe80::9/64", false, true),
        ];
        let KernelAddresses { of_tap, of_ports, elsewhere, twice, one_network } =
            KernelAddresses::new(&all, Some(9), &[3, 4]);
        assert_eq!(of_tap, ["10.1.0.1/24".parse().unwrap()]);
        assert_eq!(of_ports, ["10.2.0.1/31".parse().unwrap()]);
        let of_others = ["127.0.0.1/8", "192.0.2.7/24", "fe80::9/64"];
        let elsewhere: Vec<IpAddr> = elsewhere.into_iter().map(|(ip, _)| ip).collect();
        assert_eq!(elsewhere, of_others.map(|text| text.parse::<IpNetworkAddress>().unwrap().ip()));
        assert_eq!(twice, [], "link-local addresses may be at several interfaces");
        assert_eq!(one_network, []);
        let more = [&all[..], &[held(5, "10.1.0.1/32", true, true)]].concat();
        let own = "10.1.0.1".parse().unwrap();
        assert_eq!(KernelAddresses::new(&more, Some(9), &[3, 4]).twice, [(own, 9, 5)]);
    }

    #[test]
    fn a_network_that_another_interface_has_addresses_of_is_found_once() {
        let held = |index, text: &str| {
            let address = text.parse().unwrap();
            HeldAddress { index, address, is_for_others: true, is_permanent: true, is_ours: false }
        };
        let all = [
            held(9, "10.1.0.1/24"),
            held(9, "10.1.0.2/24"),
            held(9, "fd77::1/64"),
            held(5, "10.1.0.9/24"),
            // A network in the network, the address itself and another network are no harm.
            held(6, "10.1.0.9/25"),
            held(6, "10.1.0.1/24"),
            held(6, "fd78::1/64"),
            held(7, "fd77::2/64"),
        ];
        let found = KernelAddresses::new(&all, Some(9), &[]).one_network;
        let expected = [("10.1.0.1/24", 9, 5), ("10.1.0.2/24", 9, 6), ("fd77::1/64", 9, 7)];
        assert_eq!(found, expected.map(|(text, own, other)| (text.parse().unwrap(), own, other)));
    }
}
