//! The segments that a kernel has in use by what was read back from it, and where they are others than it was told.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

use mapper_fib::segments::{self, Element};
use mapper_fib::{Nexthop, Objects, Route, RouteKey, Table};
use mapper_proto::Mac;

use super::KernelPath;

/// Segments by which a kernel sends packets to a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldSegments {
    /// The host.
    pub to: Mac,
    /// Those of its addresses whose packets get these segments.
    pub addresses: Vec<IpAddr>,
    /// The port of this host by which packets with the first of these segments leave, 0 for that of an agent alone.
    pub port: u8,
    /// The segments, the first one first.
    pub segments: Vec<Ipv6Addr>,
}

/// Segments by which a kernel sends though it was not told to, or does not send though it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentsDiffer {
    /// What the kernel holds, or lacks.
    pub segments: HeldSegments,
    /// Whether it holds them.
    pub is_held: bool,
}

/// What a kernel was told, at one moment, and all that is needed to hold against it what is read back from the kernel.
#[derive(Debug, Clone)]
pub struct SegmentsTold {
    /// What the kernel is to hold.
    wanted: Objects,
    /// Whose each address is, as far as that is known.
    owners: BTreeMap<IpAddr, Mac>,
    /// The port of each interface.
    ports: BTreeMap<u32, u8>,
}

/// That packets to an address of a host leave by a port with some segments.
type Sent = (Mac, u8, Vec<Ipv6Addr>, IpAddr);

impl KernelPath {
    /// What the kernel was told of segments, to hold against it what is read back.
    pub fn segments_told(&self) -> SegmentsTold {
        let mut owners = self.left.addresses.clone();
        let unlisted = self.unlisted.iter().map(|(&mac, it)| (mac, &it.destination));
        for (mac, it) in unlisted.chain(self.destinations.iter().map(|(&mac, it)| (mac, it))) {
            owners.extend(it.addresses().map(|ip| (ip, mac)));
        }
        let ports = self.ports.iter().map(|(&number, port)| (port.cabled.interface, number)).collect();
        SegmentsTold { wanted: self.wanted(), owners, ports }
    }
}

impl SegmentsTold {
    /// The segments by which packets to hosts are sent where a kernel holds these objects. Addresses of which nobody knows
    /// whose they are, and segments whose first one leads out of no port, are left out.
    pub fn held(&self, there: &Objects) -> Vec<HeldSegments> {
        together(self.sent(there))
    }

    /// Where a kernel that holds these objects sends by other segments than it was told.
    pub fn differences(&self, there: &Objects) -> Vec<SegmentsDiffer> {
        let (told, held) = (self.sent(&self.wanted), self.sent(there));
        let of = |sent: BTreeSet<Sent>, is_held| {
            let differ = move |segments| SegmentsDiffer { segments, is_held };
            together(sent).into_iter().map(differ)
        };
        of(&told - &held, false).chain(of(&held - &told, true)).collect()
    }

    fn sent(&self, there: &Objects) -> BTreeSet<Sent> {
        let mut all = BTreeSet::new();
        for (key, route) in &there.routes {
            let (Table::Main, Route::Group { group, .. }) = (key.table, route) else { continue };
            let Some(&to) = self.owners.get(&key.to.ip) else { continue };
            let members = there.groups.get(group).into_iter().flatten();
            for nexthop in members.filter_map(|id| there.nexthops.get(id)) {
                let Nexthop::Segments { segments, .. } = nexthop else { continue };
                if let Some(port) = self.port_of_first(segments, there) {
                    all.insert((to, port, segments.clone(), key.to.ip));
                }
            }
        }
        all
    }

    /// The port by which a kernel that holds these objects has packets leave that bear these segments.
    fn port_of_first(&self, segments: &[Ipv6Addr], there: &Objects) -> Option<u8> {
        let first = segments::elements(segments.get(..1)?)?.into_iter().next()?;
        let Element::FirstPort(_) = first else { return None };
        let Some(Route::Gateway { interface, .. }) =
            there.routes.get(&RouteKey { table: Table::Main, to: first.prefix() })
        else {
            return None;
        };
        self.ports.get(interface).copied()
    }
}

/// The addresses whose packets get the same segments, together.
fn together(sent: BTreeSet<Sent>) -> Vec<HeldSegments> {
    let mut all: Vec<HeldSegments> = Vec::new();
    for (to, port, segments, address) in sent {
        match all.last_mut().filter(|last| (last.to, last.port) == (to, port) && last.segments == segments) {
            Some(last) => last.addresses.push(address),
            None => all.push(HeldSegments { to, addresses: vec![address], port, segments }),
        }
    }
    all
}
