//! All hosts that frames are sent to, kept in step with the table of routes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mapper_proto::map::{Map, PortRef};
use mapper_proto::{Instant, Mac};

use super::PathId;
use super::destination::{Destination, Path};
use crate::routes::{RoutePath, RouteTable};

/// How long a cable is avoided after it was last said to be dead. A table without it comes much sooner.
const AVOIDED_FOR: Duration = Duration::from_secs(1);
/// The most ports that are avoided at a time. The one that was said to be dead longest ago is forgotten
/// first.
const MAX_AVOIDED: usize = 256;

/// How long frames may be by a map, in bytes.
#[derive(Debug, Default)]
pub(super) struct MappedLengths {
    /// The longest of any host, which may be shorter than those of this host's link were when it started; `None` if no map
    /// has said that.
    longest: Option<u16>,
    /// Ports whose cables carry shorter ones, and the longest that pass there.
    narrow: BTreeMap<PortRef, u16>,
}

impl MappedLengths {
    /// What this map says.
    pub(super) fn of(map: &Map) -> Self {
        let longest = Some(map.frame_sizes.longest).filter(|&longest| longest > 0);
        Self { longest, narrow: map.narrow_ports() }
    }

    /// The longest frames that pass all these ports.
    fn at_most(&self, hops: &[PortRef]) -> Option<u16> {
        hops.iter().filter_map(|hop| self.narrow.get(hop)).chain(&self.longest).copied().min()
    }
}

/// The hosts that frames are or were sent to, by their number in the table.
///
/// Nothing is computed when the table changes or a cable dies: the paths of a destination are looked up when
/// it is used next. So a change takes effect at once for all, and costs no pause.
pub(super) struct Destinations {
    table: Arc<RouteTable>,
    by_host: Vec<Option<Box<Destination>>>,
    /// The longest frames that this host's link carries, in bytes.
    link_mtu: usize,
    /// The longest frames that each port of this host's own crossbar carries, in bytes, as far as that is known. Of the others
    /// the least is known, which is the link's.
    own_ports: BTreeMap<u8, usize>,
    lengths: MappedLengths,
    /// The hosts to which only shorter frames get through than the ends of all cables on the way say, and how long these are.
    shortened: BTreeMap<Mac, u32>,
    /// Ports whose cable is dead, and when that was last said.
    avoided: BTreeMap<PortRef, Instant>,
    /// The count of changes after which paths have to be looked up again.
    epoch: u64,
    next_path: PathId,
    /// How many buckets in use had to leave their path since the start.
    pub(super) flows_moved: u64,
}

impl Destinations {
    pub(super) fn new(table: Arc<RouteTable>, link_mtu: usize, lengths: Option<MappedLengths>) -> Self {
        Self {
            by_host: (0..table.host_count()).map(|_| None).collect(),
            table,
            link_mtu,
            own_ports: BTreeMap::new(),
            lengths: lengths.unwrap_or_default(),
            shortened: BTreeMap::new(),
            avoided: BTreeMap::new(),
            epoch: 1,
            next_path: PathId(0),
            flows_moved: 0,
        }
    }

    /// Puts another table to use. If it is of the same map, avoided ports stay avoided, and `lengths` stay as
    /// they are unless new ones are given.
    pub(super) fn install(&mut self, table: Arc<RouteTable>, lengths: Option<MappedLengths>) {
        if table.version() != self.table.version() {
            self.avoided.clear();
            self.lengths = MappedLengths::default();
        }
        if let Some(lengths) = lengths {
            self.lengths = lengths;
        }
        let empty = (0..table.host_count()).map(|_| None).collect();
        for destination in std::mem::replace(&mut self.by_host, empty).into_iter().flatten() {
            if let Some(host) = table.host(destination.mac) {
                self.by_host[host as usize] = Some(destination);
            }
        }
        self.table = table;
        self.epoch += 1;
    }

    /// Takes in how long the frames are that this host's link carries from now on, in bytes.
    pub(super) fn set_link_mtu(&mut self, link_mtu: usize) {
        self.epoch += u64::from(std::mem::replace(&mut self.link_mtu, link_mtu) != link_mtu);
    }

    /// Takes in how long the frames are that ports of this host's own crossbar carry, in bytes.
    pub(super) fn set_own_ports(&mut self, own_ports: BTreeMap<u8, usize>) {
        self.epoch += u64::from(self.own_ports != own_ports);
        self.own_ports = own_ports;
    }

    /// The longest frames that leave this host by any port, in bytes.
    pub(super) fn longest_of_own(&self) -> usize {
        self.own_ports.values().copied().chain([self.link_mtu]).max().unwrap_or_default()
    }

    /// Takes in to which hosts only shorter frames get through than the ends of all cables on the way say, in bytes.
    pub(super) fn set_shortened(&mut self, shortened: BTreeMap<Mac, u32>) {
        self.shortened = shortened;
        self.epoch += 1;
    }

    pub(super) fn table(&self) -> &Arc<RouteTable> {
        &self.table
    }

    /// Makes all flows leave the paths over this cable, if there are others.
    pub(super) fn avoid(&mut self, now: Instant, port: PortRef) {
        let mut news = false;
        // A dead cable carries nothing in either direction.
        for port in [Some(port), self.table.far_port(port)].into_iter().flatten() {
            if self.avoided.len() >= MAX_AVOIDED && !self.avoided.contains_key(&port) {
                let oldest = self.avoided.iter().min_by_key(|&(_, &since)| since).map(|(&port, _)| port);
                oldest.map(|oldest| self.avoided.remove(&oldest));
            }
            news |= self.avoided.insert(port, now).is_none();
        }
        self.epoch += u64::from(news);
    }

    /// Lets flows back to cables that nobody has called dead for a while.
    pub(super) fn forgive(&mut self, now: Instant) {
        let before = self.avoided.len();
        self.avoided.retain(|_, since| now.since(*since) < AVOIDED_FOR);
        self.epoch += u64::from(self.avoided.len() != before);
    }

    /// A destination by its number in the table, with its paths up to date. `None` if no path leads there.
    pub(super) fn get(&mut self, now: Instant, host: u32, mac: Mac) -> Option<&mut Destination> {
        let destination =
            self.by_host.get_mut(host as usize)?.get_or_insert_with(|| Box::new(Destination::new(mac)));
        if destination.epoch != self.epoch {
            destination.epoch = self.epoch;
            let (avoided, lengths) = (&self.avoided, &self.lengths);
            let shortened = self.shortened.get(&mac).map_or(usize::MAX, |&bytes| bytes as usize);
            let (link_mtu, own_ports) = (self.link_mtu, &self.own_ports);
            let paths = self.table.paths_to(host).map(|found| {
                let alive = !found.hops.iter().any(|hop| avoided.contains_key(hop));
                let own = found.hops.first().and_then(|hop| own_ports.get(&hop.port)).copied();
                let most_bytes = own.unwrap_or(link_mtu).min(shortened);
                let most_bytes =
                    lengths.at_most(&found.hops).map_or(most_bytes, |most| most_bytes.min(most.into()));
                carry_over(found, (alive, most_bytes), &destination.paths, &mut self.next_path)
            });
            let paths = paths.collect();
            self.flows_moved += destination.replace_paths(now, paths);
        }
        Some(&mut **destination).filter(|destination| !destination.paths.is_empty())
    }

    /// The destinations that frames were sent to.
    pub(super) fn used(&self) -> impl Iterator<Item = &Destination> {
        self.by_host.iter().flatten().map(|destination| &**destination)
    }

    /// A path by its id, with its destination's paths up to date. `None` if it is no longer in the table.
    pub(super) fn path(&mut self, now: Instant, mac: Mac, id: PathId) -> Option<&mut Path> {
        let host = self.table.host(mac)?;
        self.get(now, host, mac)?.paths.iter_mut().find(|path| path.id == id)
    }

    /// A path by its id, as it was when its destination was used last.
    pub(super) fn listed(&self, mac: Mac, id: PathId) -> Option<&Path> {
        let host = self.table.host(mac)?;
        self.by_host.get(host as usize)?.as_ref()?.paths.iter().find(|path| path.id == id)
    }

    /// What the table says of the path to a host with this route.
    pub(super) fn look_up(&self, mac: Mac, route: &[u8]) -> Option<RoutePath> {
        self.table.paths_to(self.table.host(mac)?).find(|path| path.way.there.as_bytes() == route)
    }
}

/// The path for a route of the table. If a path before had the same way there and back, it is that path, with
/// its number and its counts, though it may carry less. Ways are compared byte by byte, as each map numbers xbars anew.
fn carry_over(
    found: RoutePath,
    (alive, most_bytes): (bool, usize),
    before: &[Path],
    next: &mut PathId,
) -> Path {
    let way = found.way;
    match before.iter().find(|path| path.way == way) {
        Some(path) => {
            let longest = (path.longest.0.min(most_bytes), path.longest.1.min(most_bytes));
            Path { alive, most_bytes, longest, way, ..*path }
        }
        None => {
            let id = *next;
            *next = PathId(id.0.wrapping_add(1));
            Path {
                id,
                way,
                alive,
                most_bytes,
                used: Instant::ZERO,
                frames: 0,
                listed: false,
                longest: (0, 0),
            }
        }
    }
}
