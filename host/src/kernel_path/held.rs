//! The segments that a kernel has in use by what was read back from it, and where it holds others than it was told, of these or
//! of what a crossbar and routes by destination consist of.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

use mapper_fib::segments::{self, Element};
use mapper_fib::{Change, GroupId, Nexthop, Objects, Route, RouteKey, Table, changes};
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

/// An object that a kernel holds otherwise than it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectDiffers {
    /// What would put it right.
    pub change: Change,
    /// How it differs.
    pub how: Difference,
}

/// How an object differs from what a kernel was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// The kernel was told it and does not hold it.
    Missing,
    /// The kernel holds another one in its place.
    Other,
    /// The kernel was not told it and holds it.
    Extra,
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

    /// Where a kernel that holds these objects has others than it was told, beside the segments by which it sends: those by which
    /// it obeys others' segments, and those by which packets go by their destination.
    pub fn objects_that_differ(&self, there: &Objects) -> Vec<ObjectDiffers> {
        let differ = |change: Change| {
            let how = match (change.has_key_among(there), change.has_key_among(&self.wanted)) {
                (true, true) => Difference::Other,
                (true, false) => Difference::Extra,
                (false, _) => Difference::Missing,
            };
            ObjectDiffers { change, how }
        };
        let changes = changes(&without_segments(there), &without_segments(&self.wanted));
        changes.into_iter().map(differ).collect()
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

/// These objects without those by which this machine's own packets get segments. Which of these packets are too long is marked by
/// a table that belongs to the agent's socket, and is not read by another one.
fn without_segments(objects: &Objects) -> Objects {
    let mut rest = Objects { marked_above: None, ..objects.clone() };
    rest.nexthops.retain(|_, nexthop| !matches!(nexthop, Nexthop::Segments { .. }));
    let plain = |members: &[_]| members.iter().all(|id| rest.nexthops.contains_key(id));
    rest.groups.retain(|_, members| plain(members));
    let leads_to_segments =
        |group: &GroupId| objects.groups.contains_key(group) && !rest.groups.contains_key(group);
    rest.routes.retain(|_, route| !matches!(route, Route::Group { group, .. } if leads_to_segments(group)));
    rest
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
