//! Users' packets through the kernels: what this host's kernel is to hold so that it sends them along proved
//! routes, and crossbars' kernels obey.
//!
//! ```text
//!   RouteTable, addresses, neighbours --> ways --> probes there and back --> proved ways --> Objects
//! ```
//!
//! A route of the table becomes a *way*: the same ports as segments (see [`mapper_fib::segments`]). Kernels on a
//! way may know no segments, have forwarding switched off, or a firewall that drops what they should forward;
//! none of that shows in the map. So packets take a way only once a probe along it, as long as the longest
//! packet, was answered by the host at its end, and only as long as probes go on being answered. A host to which
//! no way is proved is reached by the tap interface, as all hosts are when nothing here works.
//!
//! What is proved of routes holds for ways, too: they are the routes of the table in use, repairs included.
//! When a cable is known to be dead, the groups of all hosts lose the ways across it at once. They are kept
//! only to a host to which no other route is left, as it may be only the agents at the cable's ends that are
//! silent; so ways that were lost before are used again then.
//!
//! An outer header goes around a whole packet. If a datagram is longer than a way carries, the kernel would
//! fragment the packet behind the outer header, and no kernel at a way's end puts such fragments together. So
//! whatever is too long gets a mark, and marked packets leave by the tap interface, for which the kernel
//! fragments the datagram itself.
//!
//! What comes out are changes to the set of objects that the kernel is to hold. The driver carries them out
//! before it sends any frame that was polled after them.

mod acquaintances;
mod cabled_ports;
mod company;
mod destination;
mod farewell;
mod held;
mod left;
mod numbers;
mod own_addresses;
mod prober;
mod renewal;
mod slots;
mod status;
mod surroundings;
mod takeover;
mod tap;
#[cfg(test)]
mod tests;
mod trying;
mod unlisted;
mod uses;
mod way;
mod ways;
mod window;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use mapper_fib::{Change, Objects};
use mapper_proto::map::{MapVersion, PortRef};
use mapper_proto::neighbours::Neighbour;
use mapper_proto::wire::HelloFlags;
use mapper_proto::{Instant, IpNetworkAddress, Mac};

use crate::routes::RouteTable;
pub use cabled_ports::{CabledPorts, PortInterface};
use company::Company;
pub(crate) use company::needed_by;
use destination::KernelDestination;
pub use held::{Difference, HeldSegments, ObjectDiffers, SegmentsDiffer, SegmentsTold};
use left::Left;
pub use left::LeftRoutes;
use numbers::Numbers;
use own_addresses::OwnAddresses;
pub use prober::KernelProbe;
use prober::Prober;
pub use status::{Behind, CarriedRoute, KernelPathStatus, NetworksApart, NotCarried, Shortened};
pub use surroundings::{ByDestination, CABLE, KernelAbilities, KernelPort, KernelStart, Preference};
use tap::Tap;
pub(crate) use trying::Heard;
use unlisted::Unlisted;
pub(crate) use uses::next_count_after;

/// The most hosts whose packets the kernel is to send; those with the lowest addresses come first.
const MOST_DESTINATIONS: usize = 4096;

/// How often a way is tried again while packets are sent to the host at its end.
const RECHECK_USED_EVERY: Duration = Duration::from_millis(200);
/// How long packets at most take a way on which a kernel silently drops them, if fewer than 200 ways are in
/// use, packets are counted at least each 250 ms, and the agent at the way's end answers checks by its own frames. It is the
/// time until the way is tried again, which is at most a quarter more than 200 ms, and until enough probes got no answer.
pub const WAY_LEFT_WITHIN: Duration =
    Duration::from_millis(RECHECK_USED_EVERY.as_millis() as u64 * 5 / 4).saturating_add(way::USED_LEFT_AFTER);
/// How long packets of IPv4 at most take a way on which a kernel drops those alone, under the same conditions: as long as
/// probes of IPv4 are answered, one of them follows one in four tries of the way.
pub const V4_LEFT_WITHIN: Duration =
    Duration::from_millis(RECHECK_USED_EVERY.as_millis() as u64 * 5 / 4 * way::TRY_V4_EVERY as u64)
        .saturating_add(way::USED_LEFT_AFTER);
/// New ways are tried at the latest this long after the routes of a map were put to use, even if not all hosts
/// are known to have that map, as one of them may never have it.
const NEW_WAYS_WITHIN: Duration = Duration::from_secs(1);
/// The least time from one such try to the next, whichever ways are tried. So if there are many ways, each is
/// tried less often.
const PROBE_PAUSE: Duration = Duration::from_millis(1);

/// Whether what is proved stays in the kernel for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holding {
    /// No: what is lost is taken out.
    Never,
    /// Not yet: what is lost is taken out until all hosts have routes of one map, and stays from then on.
    OnceComplete,
    /// Yes: agents end one by one, and what looks like a loss is an agent that has ended.
    Now,
}

/// Users' packets through the kernels, at one host. A deterministic state machine, as all of the host is.
#[derive(Debug)]
pub struct KernelPath {
    abilities: KernelAbilities,
    company: Company,
    /// The number of the crossbar's port to this agent, if they are in one machine.
    agent_port: Option<u8>,
    ports: BTreeMap<u8, KernelPort>,
    cabled: CabledPorts,
    own: OwnAddresses,
    /// The address from which probes of IPv4 come, and at which this host answers those of others.
    v4_probes_from: Option<Ipv4Addr>,
    table: Option<Arc<RouteTable>>,
    narrow: BTreeMap<PortRef, u16>,
    /// The cables of the table's map that are held for dead for their silence alone, each by the lower of its ports.
    silent: BTreeSet<PortRef>,
    /// Whether the table goes around no dead cable, but around some that lose frames.
    goes_around_lossy_only: bool,
    /// The map that all hosts are configured with, as far as this one has heard.
    complete: Option<MapVersion>,
    /// Whether the agent has a map, and none to make, to wait for or to hand on.
    is_settled: bool,
    /// When the table in use is old enough for new ways to be tried, whether all hosts have its map or not.
    old_at: Instant,
    holding: Holding,
    left: Left,
    /// Whether it has let go of all routes, and has had none since.
    has_let_go: bool,
    destinations: BTreeMap<Mac, KernelDestination>,
    /// Hosts that a map did not list any more, and until when the kernel goes on sending to them: their daemon may
    /// have crashed, and their kernel go on.
    unlisted: BTreeMap<Mac, Unlisted>,
    /// Hosts of which it is not known whether it is a cable on the way there that is dead, or their agent.
    doubtful: BTreeSet<Mac>,
    prober: Prober,
    numbers: Numbers,
    /// How often ways to hosts that packets are sent to are tried again.
    recheck_used_every: Duration,
    /// When the packets that nexthops have taken were last counted.
    counted_at: Instant,
    /// The host to which connections were looked up anew last.
    refreshed_last: Option<Mac>,
    /// The objects of the ports, which are there whatever the routes.
    of_ports: Objects,
    /// What sends packets that are too long for an outer header by the tap interface.
    of_too_long: Objects,
    tap: Tap,
    changes: Vec<Change>,
    /// How often the ports or the routes have changed, or a way was found not to work, or ways were not proved in time; and
    /// where an earlier run has left routes, how often hosts' addresses have. Each time, what was left is looked at anew.
    revision: u64,
    /// The hosts to which packets are shorter than the ends of all cables on the way say.
    shortened: BTreeMap<Mac, Shortened>,
    /// Whether that has changed since [`Self::take_shortened`] was called last.
    shortened_is_news: bool,
}

impl KernelPath {
    /// The kernel path of a host that has no ports yet, and whose kernel is not known to be able to do anything.
    /// `seed` is for the nonces of probes. Ways are numbered from `first_number` on. Packets that are too long for the
    /// outer header of segments leave by `tap`, the number of the interface that carries what no kernel does, in frames whose
    /// routes lead through `max_hops` crossbars at most.
    pub fn new(seed: u64, first_number: u32, tap: u32, max_hops: u8) -> Self {
        Self {
            abilities: KernelAbilities::default(),
            company: Company::default(),
            agent_port: None,
            ports: BTreeMap::new(),
            cabled: CabledPorts::default(),
            own: OwnAddresses::default(),
            v4_probes_from: None,
            table: None,
            narrow: BTreeMap::new(),
            silent: BTreeSet::new(),
            goes_around_lossy_only: false,
            complete: None,
            is_settled: true,
            old_at: Instant::ZERO,
            holding: Holding::Never,
            left: Left::default(),
            has_let_go: false,
            destinations: BTreeMap::new(),
            unlisted: BTreeMap::new(),
            doubtful: BTreeSet::new(),
            prober: Prober::new(seed),
            numbers: Numbers::from(first_number),
            recheck_used_every: RECHECK_USED_EVERY,
            counted_at: Instant::ZERO,
            refreshed_last: None,
            of_ports: Objects::default(),
            of_too_long: Objects::default(),
            tap: Tap::new(tap, max_hops),
            changes: Vec::new(),
            revision: 0,
            shortened: BTreeMap::new(),
            shortened_is_news: false,
        }
    }

    /// Has all that is proved stay in the kernel once all hosts have routes of one map, as agents end then,
    /// one by one, and leave their routes. From then on nothing is taken out because a map lacks some host,
    /// or a way is silent, or a cable is dead.
    pub(crate) fn hold_once_complete(&mut self) {
        if self.holding == Holding::Never {
            self.holding = Holding::OnceComplete;
            self.hold_if_complete();
        }
    }

    /// Holds what is proved from now on if that is wanted and all hosts have routes of the map, which is said once only.
    fn hold_if_complete(&mut self) {
        let is_complete = self.version().is_some() && self.complete == self.version();
        // A network that has no other hosts is complete, too, but leaves no routes to keep.
        if self.holding == Holding::OnceComplete && is_complete && !self.destinations.is_empty() {
            self.holding = Holding::Now;
        }
    }

    fn is_holding(&self) -> bool {
        self.holding == Holding::Now
    }

    /// Says what the kernel can do, and the number of the own crossbar's port to this agent, if there is one.
    pub fn set_abilities(&mut self, now: Instant, abilities: KernelAbilities, agent_port: Option<u8>) {
        if (self.abilities, self.agent_port) != (abilities, agent_port) {
            (self.abilities, self.agent_port) = (abilities, agent_port);
            self.renew_ports();
            self.renew_all(now);
        }
    }

    /// Takes in the interfaces at all ports as they are now, and whose hellos are heard at each. Returns whether it is news.
    pub(crate) fn set_interfaces(
        &mut self,
        now: Instant,
        interfaces: &[PortInterface],
        heard: &BTreeMap<u8, Neighbour>,
    ) -> bool {
        let dark_before = self.cabled.without_carrier().clone();
        let ports = self.cabled.look(now, interfaces, heard);
        // What was left leads nowhere by an interface without carrier.
        self.revision += u64::from(dark_before != *self.cabled.without_carrier());
        let revision = self.revision;
        self.set_ports(now, ports);
        revision != self.revision
    }

    /// Takes in which ports have known neighbours now.
    pub fn set_ports(&mut self, now: Instant, ports: impl IntoIterator<Item = KernelPort>) {
        let ports: BTreeMap<u8, KernelPort> =
            ports.into_iter().map(|port| (port.cabled.port, port)).collect();
        if self.ports != ports {
            let before = std::mem::replace(&mut self.ports, ports);
            self.revision += 1;
            self.drop_recabled(&before);
            self.renew_ports();
            self.renew_all(now);
        }
    }

    /// Takes in which addresses this host has now, and which addresses its tap interface has.
    pub fn set_own_addresses(
        &mut self,
        now: Instant,
        all: Vec<IpNetworkAddress>,
        of_tap: Vec<IpNetworkAddress>,
    ) {
        let own = OwnAddresses::new(all, of_tap);
        if self.own != own {
            self.own = own;
            self.renew_ports();
            self.renew_all(now);
        }
    }

    /// Takes in which addresses the hosts of the map have, by a function of the host's own address.
    pub fn set_addresses(&mut self, now: Instant, of: impl Fn(Mac) -> Vec<IpAddr>) {
        let is_holding = self.is_holding();
        let mut renewed = Vec::new();
        let Self { destinations, numbers, .. } = self;
        for (&mac, destination) in destinations {
            // A host whose agent has ended no longer tells its addresses, so those that were known are kept while what is
            // proved is held.
            if destination.take_addresses(of(mac), is_holding, numbers) {
                renewed.push(mac);
            }
        }
        // What was left may lead to what is another host's address now.
        self.revision += u64::from(!renewed.is_empty() && self.left.is_there());
        // So may the ways to a host that is not listed any more, and close a circle with those that others have to its new owner.
        if !renewed.is_empty() && !self.unlisted.is_empty() {
            let told: BTreeSet<IpAddr> = renewed
                .iter()
                .filter_map(|mac| self.destinations.get(mac))
                .flat_map(KernelDestination::addresses)
                .collect();
            self.drop_unlisted(|it| it.destination.addresses().any(|address| told.contains(&address)));
        }
        renewed.into_iter().for_each(|mac| self.renew_and_try(now, mac));
    }

    /// Says which cables of the map whose table is put to use next are held for dead for their silence alone, each by the
    /// lower of its ports, and whether that table goes around cables only because they lose frames.
    pub(crate) fn set_silent(&mut self, silent: BTreeSet<PortRef>, goes_around_lossy_only: bool) {
        (self.silent, self.goes_around_lossy_only) = (silent, goes_around_lossy_only);
    }

    /// Puts another table of routes to use. `narrow` are the ports whose cables carry shorter frames than others.
    /// Hosts that are new have no addresses until [`Self::set_addresses`].
    pub(crate) fn install(&mut self, now: Instant, table: &Arc<RouteTable>, narrow: BTreeMap<PortRef, u16>) {
        let is_same_map = self.version() == Some(table.version());
        let listed: BTreeMap<Mac, u32> = table.hosts().take(MOST_DESTINATIONS).collect();
        if self.is_holding()
            && !(table.is_whole() && self.destinations.keys().all(|mac| listed.contains_key(mac)))
        {
            return;
        }
        let before = self.table.replace(Arc::clone(table));
        self.has_let_go = false;
        self.narrow = narrow;
        self.revision += 1;
        let gone: Vec<Mac> =
            self.destinations.keys().copied().filter(|mac| !listed.contains_key(mac)).collect();
        gone.into_iter().for_each(|mac| self.unlist(now, mac, before.as_ref()));
        // Ways to hosts that are listed again are used as far as this map has them, as those to all hosts that it lists.
        for (&mac, &host) in &listed {
            let back = self.unlisted.remove(&mac).map(|it| it.destination);
            let numbers = &mut self.numbers;
            let known = self.destinations.entry(mac);
            known
                .or_insert_with(|| back.unwrap_or_else(|| KernelDestination::new(host, numbers.take())))
                .host = host;
        }
        self.change_unlisted(|it, numbers| it.lose_illegal_ways(table, numbers));
        // Within one map only dead cables change, and most hosts' ways avoid these before and after; but where this host
        // has not gone by destination so far, its table has had no next hops.
        let has_hops = |table: &RouteTable| table.has_next_hops();
        let gained_hops = has_hops(table) && !before.as_deref().is_some_and(has_hops);
        let renewed: Vec<Mac> = if is_same_map && !gained_hops {
            let changed = |(_, it): &(&Mac, &KernelDestination)| it.is_touched_by(table);
            self.destinations.iter().filter(changed).map(|(&mac, _)| mac).collect()
        } else if is_same_map {
            listed.into_keys().collect()
        } else {
            // Ways that differ between the tables by destination of the map before and of this map go out of
            // use before other hosts hear of this map's routes.
            (self.complete, self.old_at) = (None, now + NEW_WAYS_WITHIN);
            self.left.handle_map();
            listed.into_keys().collect()
        };
        for mac in renewed {
            self.renew(now, mac);
            // Ways of a host that was away for a while are not scheduled any more.
            if let Some(destination) = self.destinations.get(&mac) {
                for way in &destination.ways {
                    if !self.prober.has(mac, way.number) {
                        self.prober.schedule(now, mac, way);
                    }
                }
            }
        }
    }

    /// Takes in that all hosts have routes of this map. From now on its tables by destination are used as a
    /// whole. Tables of two maps could send a packet in a circle, so each host takes out of use what differs
    /// between the tables of both maps when it gets the routes of a map, and uses what is new in them only
    /// now.
    pub(crate) fn network_complete(&mut self, now: Instant, version: MapVersion) {
        let is_news = self.complete.replace(version) != Some(version);
        if is_news && self.goes_by_destination() {
            let all: Vec<Mac> = self.destinations.keys().copied().collect();
            all.into_iter().for_each(|mac| self.renew(now, mac));
        }
        if is_news && self.version() == Some(version) {
            self.left.handle_complete(now);
        }
        self.hold_if_complete();
    }

    /// Takes in whether the agent has a map, and none to make, to wait for or to hand on. New ways are tried only then.
    pub(crate) const fn set_settled(&mut self, is_settled: bool) {
        self.is_settled = is_settled;
    }

    /// From when on new ways are tried, `None` for not as things are. As long as hosts map, probes of all of them and what their
    /// kernels are told would take the time from machines in which agents answer those that map; where many share one, no
    /// map came about. Packets go by the tap interface meanwhile.
    fn new_ways_from(&self) -> Option<Instant> {
        let all_have_it = self.version().is_some() && self.complete == self.version();
        self.is_settled.then_some(if all_have_it { Instant::ZERO } else { self.old_at })
    }

    /// Uses no route any more until a table is installed.
    pub(crate) fn forget_routes(&mut self) {
        self.table = None;
        self.has_let_go = true;
        self.revision += 1;
        let all: Vec<Mac> = self.destinations.keys().copied().collect();
        all.into_iter().for_each(|mac| self.forget_destination(mac));
        self.drop_unlisted(|_| true);
    }

    /// The changes to the objects that the kernel is to hold, since the last call, in order.
    pub(crate) fn take_changes(&mut self) -> Vec<Change> {
        if !self.changes.is_empty() {
            self.renew_too_long();
        }
        std::mem::take(&mut self.changes)
    }

    /// When [`Self::handle_timeout`] wants to be called.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let unlisted = self.unlisted.values().map(|it| it.until).min();
        let prober = self.prober.poll_timeout(self.new_ways_from());
        let others = self.farewell_at().into_iter().chain(self.left.poll_timeout());
        prober.into_iter().chain(unlisted).chain(others).chain(self.company_at()).min()
    }

    /// All objects that the kernel is to hold.
    pub fn wanted(&self) -> Objects {
        let mut all = self.of_ports.clone();
        all.extend(self.of_too_long.clone());
        let unlisted = self.unlisted.values().map(|it| &it.destination);
        self.destinations.values().chain(unlisted).for_each(|it| all.extend(it.installed.clone()));
        all
    }

    /// Whether the kernel sends packets to any host.
    pub fn carries(&self) -> bool {
        self.destinations.values().any(KernelDestination::is_carried)
    }

    /// The hosts whose packets the kernel sends.
    #[cfg(test)]
    fn carried(&self) -> impl Iterator<Item = Mac> + '_ {
        self.destinations.iter().filter(|(_, it)| it.is_carried()).map(|(&mac, _)| mac)
    }

    /// Whether tables by destination are wanted.
    pub(crate) const fn goes_by_destination(&self) -> bool {
        match self.abilities.by_destination {
            ByDestination::Never => false,
            ByDestination::WithOthers => self.company.is_kept(),
            ByDestination::Always | ByDestination::Alone => true,
        }
    }

    /// Whether the kernel sends on what neighbours send it with nothing but a destination, so that they are to be told so. One
    /// does not whose agent has let go of its routes, as another host has its address, or holds a map of itself alone: nobody
    /// keeps what that kernel holds in step with the maps of others. A host that starts does, as an earlier run may have left
    /// what it takes.
    pub(crate) fn forwards_by_destination(&self) -> bool {
        let is_in_step = self.table.as_ref().map_or(!self.has_let_go, |table| table.has_next_hops());
        self.goes_by_destination() && !self.is_parting() && self.agent_port.is_some() && is_in_step
    }

    /// What the neighbours are to be told of this kernel. One that forwards nothing only says whether it sends by destination.
    pub fn hello_flags(&self) -> HelloFlags {
        let KernelAbilities { segments, compressed, by_destination, .. } = self.abilities;
        if !self.has_crossbar() {
            return if by_destination.is_needed() { HelloFlags::ROUTES } else { HelloFlags::NONE };
        }
        let of_segments = HelloFlags::of_segments(segments, compressed);
        if self.forwards_by_destination() { of_segments.with(HelloFlags::ROUTES) } else { of_segments }
    }

    /// A port, if it leads to a known neighbour.
    pub fn port(&self, port: u8) -> Option<&KernelPort> {
        self.ports.get(&port)
    }

    /// The ports that lead to a known neighbour, each with the longest packet that both ends of its cable carry, in bytes.
    pub(crate) fn port_mtus(&self) -> impl Iterator<Item = (u8, usize)> + '_ {
        self.ports.iter().map(|(&port, it)| (port, it.mtu as usize))
    }

    /// Whether the host has a crossbar of its own, in the same machine.
    pub(crate) const fn has_crossbar(&self) -> bool {
        self.agent_port.is_some()
    }

    fn version(&self) -> Option<MapVersion> {
        self.table.as_ref().map(|table| table.version())
    }
}
