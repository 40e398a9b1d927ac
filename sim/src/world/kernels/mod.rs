//! The kernels of nodes. What a daemon would pass on between a host and its kernel is passed on here.
//!
//! A model stands for the kernel ([`mapper_fib::model`]). It holds the objects that the host wants it to
//! hold, and forwards IP packets by these, hop by hop through the kernels of other nodes. A kernel goes on
//! when its host's agent is gone.

mod counts;
mod delivery;
mod failing;
mod neighbours;
mod packets;
mod tap_datagram;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use mapper_fib::segments::LeftUnused;
use mapper_fib::{Objects, Route, Table};
use mapper_host::Host;
use mapper_host::kernel_path::{
    ByDestination, KernelAbilities, KernelPath, KernelStart, LeftRoutes, Preference,
};
use mapper_proto::wire::HelloFlags;
use mapper_proto::{Instant, IpNetworkAddress};

use super::World;
use super::options::{KernelChoice, derive_seed};
use super::queue::What;
use crate::fabric::PlantPort;
use counts::Counts;
use packets::Packets;

/// Names the stream of what kernels can do.
const ABILITIES: u64 = 8;
/// Names the stream of seeds of probes.
const PROBES: u64 = 9;
/// How often it is looked whether a kernel holds what its host wants, and who its neighbours are.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How soon a host that starts counts for the first time what its kernel has sent, at the latest.
const FIRST_COUNT_WITHIN: Duration = Duration::from_millis(250);
/// The number of the tap interface, which differs from those of all ports.
const TAP: u32 = u32::MAX;

/// What a firewall drops of what comes in by a kernel's ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Firewall {
    /// Nothing.
    Open,
    /// Packets of IPv4, but not those inside of packets by segments that go on.
    DropsV4,
    /// All.
    DropsAll,
}

/// The kernel of a node.
#[derive(Debug)]
struct Kernel {
    abilities: KernelAbilities,
    addresses: Vec<IpNetworkAddress>,
    ips: Vec<IpAddr>,
    objects: Objects,
    /// When its host's agent ran last, as far as anybody looked.
    ran_at: Option<Instant>,
    /// How often its objects changed.
    changes: u64,
    /// The port of the crossbar to which its host was cabled when the host started.
    home: Option<PlantPort>,
    firewall: Firewall,
    /// Whether somebody has emptied its tables, and its host has not put that right yet.
    is_emptied: bool,
    /// What its host told its neighbours of it last.
    said: HelloFlags,
    counts: Counts,
    /// Whether somebody looks at it now and then.
    is_looked_at: bool,
    /// Whether an earlier run of its host has left routes in it, by which packets may go still.
    has_left: bool,
}

/// The kernels of all hosts, if hosts have some, and the packets that they forward.
#[derive(Debug, Default)]
pub(super) struct Kernels {
    hosts: Vec<Kernel>,
    packets: Packets,
    /// Whether some host has been cabled to another crossbar than when it started.
    was_one_away: bool,
}

impl Kernels {
    /// The kernels of so many hosts. Some can do less than others, which `seed` decides.
    pub(super) fn new(hosts: usize, choice: KernelChoice, seed: u64) -> Self {
        let drawn = |host: u32| derive_seed(seed, ABILITIES, host.into());
        // Of four kernels three count packets.
        let kernel = |host| {
            let drawn = drawn(host);
            Kernel::new(host, abilities(choice, drawn), !(drawn / 16).is_multiple_of(4))
        };
        let hosts = (0..hosts as u32).map(kernel);
        Self { hosts: hosts.collect(), ..Self::default() }
    }

    /// Whether some forward by destination.
    fn go_by_destination(&self) -> bool {
        self.hosts.iter().any(|kernel| kernel.abilities.by_destination == ByDestination::Always)
    }

    /// Whether hosts have kernels at all.
    pub(super) const fn are_there(&self) -> bool {
        !self.hosts.is_empty()
    }
}

/// What a kernel can do, by the setting of its host and a number that was drawn for it.
const fn abilities(choice: KernelChoice, drawn: u64) -> KernelAbilities {
    let is_told_to = match choice {
        KernelChoice::Auto | KernelChoice::Segments => false,
        KernelChoice::Routes => true,
        KernelChoice::Mixed => (drawn / 8).is_multiple_of(2),
    };
    // Of eight kernels that are drawn, one knows no segments, and one those of single elements alone.
    let kind = match choice {
        KernelChoice::Segments => 8,
        KernelChoice::Auto | KernelChoice::Routes | KernelChoice::Mixed => drawn % 8,
    };
    let segments = !is_told_to && kind > 0;
    let preference = match choice {
        KernelChoice::Segments => Preference::NotDestination,
        KernelChoice::Auto | KernelChoice::Routes | KernelChoice::Mixed => Preference::Best,
    };
    KernelAbilities {
        segments,
        compressed: segments && kind > 1,
        by_destination: ByDestination::of(preference, segments, true),
        left_unused: LeftUnused::NOTHING,
    }
}

impl Kernel {
    fn new(host: u32, abilities: KernelAbilities, is_counting: bool) -> Self {
        let addresses = addresses(host, None);
        Self {
            abilities,
            ips: addresses.iter().map(IpNetworkAddress::ip).collect(),
            addresses,
            objects: Objects::default(),
            ran_at: None,
            changes: 0,
            home: None,
            firewall: Firewall::Open,
            is_emptied: false,
            said: HelloFlags::NONE,
            counts: Counts::new(is_counting),
            is_looked_at: false,
            has_left: false,
        }
    }

    /// Holds other objects from now on.
    fn hold(&mut self, objects: Objects) {
        self.counts.replace(&self.objects, &objects);
        self.objects = objects;
    }

    /// The longest packet that it sends to an address, in bytes; `None` if the host has installed no route
    /// there.
    fn mtu_towards(&self, to: IpAddr) -> Option<u32> {
        let mut routes = self.objects.routes.iter();
        routes.find_map(|(key, route)| match route {
            Route::Group { mtu, .. } if key.table == Table::Main && key.to.contains(to) => Some(*mtu),
            _ => None,
        })
    }
}

/// The addresses of a host: that of IPv6, and the one of IPv4 of this number, or the one from the start. All are in one network.
fn addresses(host: u32, number: Option<u16>) -> Vec<IpNetworkAddress> {
    let [.., high, low] = (host + 1).to_be_bytes();
    let second = number.map_or(77, |number| 78 + (number % 50) as u8);
    let v4 = Ipv4Addr::new(10, second, high, low);
    let all = [IpNetworkAddress::new(v6_of(host).into(), 64), IpNetworkAddress::new(v4.into(), 10)];
    all.into_iter().flatten().collect()
}

/// The address of IPv6 by which the fabric knows a host.
const fn v6_of(host: u32) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0x6d61, 0, 0, 0, 0, 0, (host + 1) as u16)
}

/// The address of IPv4 among these.
fn v4_of(addresses: &[IpNetworkAddress]) -> Option<Ipv4Addr> {
    addresses.iter().find_map(|address| match address.ip() {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    })
}

impl World {
    /// Has a host that starts use its kernel. What the kernel holds of an earlier run stays for now, as
    /// packets go by it.
    pub(super) fn begin_with_kernel(&mut self, host: u32, seed: u64) {
        if !self.kernels.are_there() {
            return;
        }
        let now = self.now;
        let home = self.plant.own_xbar(host);
        let agent_port = home.map(|end| end.port);
        let kernel = &mut self.kernels.hosts[host as usize];
        kernel.home = home;
        if home.is_none() {
            // The host does not use the kernel any more, so what an earlier run has left is removed.
            kernel.hold(Objects::default());
        }
        kernel.has_left = !kernel.objects.routes.is_empty();
        let (abilities, addresses) = (kernel.abilities, kernel.addresses.clone());
        let left = LeftRoutes::of(kernel.objects.clone(), |ip| {
            let host = u32::from(ip.segments()[7]).checked_sub(1).filter(|&host| v6_of(host) == ip)?;
            Some(self.hosts.get(host as usize)?.own_mac)
        });
        let is_looked_at = std::mem::replace(&mut kernel.is_looked_at, true);
        if !is_looked_at {
            self.queue.push(now + LOOK_EVERY, What::Kernel { host });
        }
        let Some(real) = self.hosts[host as usize].node.as_mut().and_then(|node| node.host_mut()) else {
            return;
        };
        if agent_port.is_some() {
            let seed = derive_seed(seed, PROBES, 0);
            real.use_kernel(now, KernelStart { seed, tap: TAP, left, abilities, agent_port });
        }
        let v4 = v4_of(&addresses);
        real.set_addresses(now, addresses, &[]);
        real.set_v4_probes_from(now, v4);
        // Its neighbours are told of its kernel, too.
        self.show_all_kernel_ports();
        self.mend_kernel(host);
        self.drain(host);
    }

    /// Has a host's kernel hold what the host wants now. To be called before any frame of the host leaves
    /// that may depend on it.
    pub(super) fn serve_kernel(&mut self, host: u32) {
        if !self.kernels.are_there() {
            return;
        }
        let Some(real) = self.hosts[host as usize].node.as_mut().and_then(|node| node.host_mut()) else {
            return;
        };
        let changes = real.take_kernel_changes();
        if !changes.is_empty() {
            let kernel = &mut self.kernels.hosts[host as usize];
            for change in &changes {
                kernel.objects.apply(change);
                kernel.counts.apply(change);
            }
            kernel.changes += 1;
            if self.kernels.go_by_destination() {
                // Packets of other hosts may be forwarded otherwise from here on.
                self.united.touch_kernels(0..self.hosts.len() as u32);
            } else {
                self.united.touch_kernels([host]);
            }
        }
        if self.real_host(host).is_some_and(Host::poll_kernel_read) {
            self.mend_kernel(host);
        }
        self.note_what_is_said(host);
    }

    /// Looks at a host's kernel, as it is time to, and counts what it has sent.
    pub(super) fn look_at_kernel(&mut self, host: u32) {
        let now = self.now;
        // Some neighbour may have been silent for too long by now.
        self.show_kernel_ports(host);
        let kernel = &mut self.kernels.hosts[host as usize];
        let real = self.hosts[host as usize].node.as_mut().and_then(|node| node.host_mut());
        if now >= kernel.counts.at {
            let counts = kernel.counts.read(&kernel.objects);
            let next = real.map(|real| real.count_kernel_packets(now, &counts));
            kernel.counts.at = next.unwrap_or(now + FIRST_COUNT_WITHIN);
        }
        self.queue.push(kernel.counts.at.min(now + LOOK_EVERY), What::Kernel { host });
        self.drain(host);
        self.mend_kernel(host);
    }

    /// Gives a host another address of IPv4 in place of the one that it has. One that does not run starts with it.
    pub(super) fn readdress(&mut self, host: u32, number: u16) {
        let now = self.now;
        let Some(kernel) = self.kernels.hosts.get_mut(host as usize) else { return };
        kernel.addresses = addresses(host, Some(number));
        kernel.ips = kernel.addresses.iter().map(IpNetworkAddress::ip).collect();
        let addresses = kernel.addresses.clone();
        if let Some(real) = self.real_host(host) {
            let v4 = v4_of(&addresses);
            real.set_addresses(now, addresses, &[]);
            real.set_v4_probes_from(now, v4);
        }
        self.united.touch_kernels(0..self.hosts.len() as u32);
        self.drain(host);
    }

    /// Puts up a firewall at a host's kernel, or takes it down.
    pub(super) fn set_firewall(&mut self, host: u32, firewall: Firewall) {
        if let Some(kernel) = self.kernels.hosts.get_mut(host as usize) {
            kernel.firewall = firewall;
        }
    }

    /// Takes down all firewalls.
    pub(super) fn open_firewalls(&mut self) {
        self.kernels.hosts.iter_mut().for_each(|kernel| kernel.firewall = Firewall::Open);
    }

    /// Empties the tables of a host's kernel, as somebody else on the machine may do.
    pub(super) fn flush_kernel(&mut self, host: u32) {
        let all = 0..self.hosts.len() as u32;
        if let Some(kernel) = self.kernels.hosts.get_mut(host as usize) {
            kernel.hold(Objects::default());
            kernel.is_emptied = true;
            kernel.changes += 1;
            self.united.touch_kernels(all);
        }
    }

    /// Puts right whatever a host's kernel holds otherwise than its host says.
    fn mend_kernel(&mut self, host: u32) {
        let kernel = &mut self.kernels.hosts[host as usize];
        let Some(real) = self.hosts[host as usize].node.as_mut().and_then(|node| node.host_mut()) else {
            return;
        };
        let Some(target) = real.handle_kernel_contents(&kernel.objects) else { return };
        kernel.has_left &= real.kernel_path().is_some_and(KernelPath::is_taking_over);
        kernel.is_emptied = false;
        if kernel.objects != target.objects {
            kernel.changes += 1;
            kernel.hold(target.objects);
            // Packets of all hosts may go through this kernel.
            self.united.touch_kernels(0..self.hosts.len() as u32);
        }
    }

    /// How often the kernels have changed that may forward a host's packets.
    pub(super) fn kernel_changes(&self, host: u32) -> u64 {
        if self.kernels.go_by_destination() {
            return self.kernels.hosts.iter().map(|kernel| kernel.changes).sum();
        }
        self.kernels.hosts.get(host as usize).map_or(0, |kernel| kernel.changes)
    }
}
