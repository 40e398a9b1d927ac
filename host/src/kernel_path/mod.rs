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
//! What is proved of routes holds for ways, too: they are the routes of the table in use, repairs included. When
//! a cable is known to be dead, the groups of all hosts lose the ways across it at once. Only to a host that no other
//! route is left to they are kept: the agents at the cable's ends may be what is silent.
//!
//! An outer header goes around a whole packet, and what comes of a datagram that is longer than a way carries would be
//! taken apart behind it, which no kernel puts together at the way's end. So whatever is too long gets a mark, and by
//! it leaves by the tap interface, which takes apart the datagram itself.
//!
//! What comes out are changes to the set of objects that the kernel is to hold. The driver carries them out
//! before it sends any frame that was polled after them.

mod destination;
mod numbers;
mod prober;
mod slots;
mod status;
#[cfg(test)]
mod tests;
mod unlisted;
mod way;
mod ways;
mod window;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use mapper_fib::crossbar::{self, CabledPort, Delivery};
use mapper_fib::segments::{LeftUnused, Packing};
use mapper_fib::{Change, Nexthop, NexthopId, Objects, RouteKey, Rule, changes};
use mapper_proto::IpNetworkAddress;
use mapper_proto::map::{MapVersion, PortRef};
use mapper_proto::{Instant, Mac};

use crate::routes::RouteTable;
use destination::{Destination, OwnAddresses};
use numbers::Numbers;
pub use prober::KernelProbe;
use prober::{Ends, Probed, Prober};
pub use status::{CarriedRoute, KernelPathStatus, NotCarried};
use unlisted::Unlisted;
use way::{FarEnd, Way};

/// The most hosts whose packets the kernel is to send; those with the lowest addresses come first.
const MOST_DESTINATIONS: usize = 4096;

/// How often a way is tried again while packets are sent to the host at its end.
const RECHECK_USED_EVERY: Duration = Duration::from_millis(200);
/// How long packets take a way at most on which a kernel drops them without a word, while the agent of the host at its end
/// answers what it is asked by its own frames, and fewer than 200 ways are in use: until the way is tried again, which is a
/// quarter later than 200 ms at most, and until enough probes were not answered.
pub const WAY_LEFT_WITHIN: Duration =
    Duration::from_millis(RECHECK_USED_EVERY.as_millis() as u64 * 5 / 4).saturating_add(way::USED_LEFT_AFTER);
/// How many ways most hosts have to another one by tables by destination: those round both sides.
const WAYS_OF_OTHERS: u64 = 2;
/// How much time there is at least from one such try to the next, over all ways, so that many are tried less often.
const PROBE_PAUSE: Duration = Duration::from_millis(1);

/// How long the kernel goes on sending to a host that the map does not list any more.
const UNLISTED_FOR: Duration = Duration::from_secs(60);

/// What the kernel of this machine can do, as far as the user lets it be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KernelAbilities {
    /// It sends and obeys segments.
    pub segments: bool,
    /// It knows several elements in one address.
    pub compressed: bool,
    /// It forwards by destination, where this host has a crossbar of its own.
    pub by_destination: bool,
    /// What it takes off the MTU of a route by segments.
    pub left_unused: LeftUnused,
}

impl KernelAbilities {
    /// How elements are packed at first: as tightly as this kernel can.
    const fn packing(self) -> Packing {
        if self.compressed { Packing::Compressed } else { Packing::Full }
    }
}

/// What ways are derived from, beside the table.
#[derive(Debug, Clone, Copy)]
struct Surroundings<'a> {
    abilities: KernelAbilities,
    agent_port: Option<u8>,
    ports: &'a BTreeMap<u8, KernelPort>,
    narrow: &'a BTreeMap<PortRef, u16>,
    tables: TablesByDestination,
}

/// Which tables by destination packets may go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TablesByDestination {
    /// None: this host forwards nothing by destination.
    Unused,
    /// What the table of this map and those in use before have alike, as not all hosts are known to have this map.
    ///
    /// Whoever has no newer map keeps to the tables of the map before, and whoever has one to a part of them. So all
    /// together are a part of tables of one map, in which no packet goes in a circle.
    Alike,
    /// That of this map, which all hosts have. Whoever keeps to what is alike has a part of it.
    OfThisMap,
}

impl TablesByDestination {
    /// Those that a host uses which can do this; `complete` says whether all hosts have its map.
    const fn of(abilities: KernelAbilities, agent_port: Option<u8>, complete: bool) -> Self {
        match (abilities.by_destination, agent_port) {
            (true, Some(_)) if complete => Self::OfThisMap,
            (true, Some(_)) => Self::Alike,
            (false, _) | (_, None) => Self::Unused,
        }
    }
}

impl Surroundings<'_> {
    const fn packing(&self) -> Packing {
        self.abilities.packing()
    }
}

/// Whether what is proved stays in the kernel for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holding {
    /// What is lost is taken out.
    Never,
    /// So far; once all hosts have routes of one map, what is proved stays.
    OnceComplete,
    /// Agents end one by one, and what looks like a loss is that.
    Now,
}

/// A port of this host that leads to the fabric, and whose neighbour is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelPort {
    /// The port and its neighbour.
    pub cabled: CabledPort,
    /// The tag of the crossbar at the other end; `None` for a host, or a crossbar without one.
    pub tag: Option<u64>,
    /// The longest frame that both ends of the cable carry, in bytes behind the Ethernet header.
    pub mtu: u32,
    /// Whether the neighbour's kernel obeys segments.
    pub by_segments: bool,
    /// Whether the neighbour's kernel forwards by destination.
    pub by_destination: bool,
}

/// The neighbour's address and port.
const fn far_end(port: &KernelPort) -> (Mac, u8) {
    (port.cabled.neighbour, port.cabled.neighbour_port)
}

/// Users' packets through the kernels, at one host. A deterministic state machine, as all of the host is.
#[derive(Debug)]
pub struct KernelPath {
    abilities: KernelAbilities,
    /// The number of the crossbar's port to this agent, if they are in one machine.
    agent_port: Option<u8>,
    ports: BTreeMap<u8, KernelPort>,
    own: OwnAddresses,
    table: Option<Arc<RouteTable>>,
    narrow: BTreeMap<PortRef, u16>,
    /// The map that all hosts are configured with, as far as this one has heard.
    complete: Option<MapVersion>,
    holding: Holding,
    destinations: BTreeMap<Mac, Destination>,
    /// Hosts that a map did not list any more, and until when the kernel goes on sending to them: their daemon may
    /// have crashed, and their kernel go on.
    unlisted: BTreeMap<Mac, Unlisted>,
    prober: Prober,
    numbers: Numbers,
    /// How often ways to hosts that packets are sent to are tried again.
    recheck_used_every: Duration,
    /// When the packets that nexthops have taken were last counted.
    counted_at: Instant,
    /// The objects of the ports, which are there whatever the routes.
    of_ports: Objects,
    /// What sends packets that are too long for an outer header by the tap interface.
    of_too_long: Objects,
    /// The number of the tap interface.
    tap: u32,
    changes: Vec<Change>,
    /// How often the ports or the routes have changed.
    revision: u64,
}

impl KernelPath {
    /// The kernel path of a host that has no ports yet, and whose kernel is not known to be able to do anything.
    /// `seed` is for the nonces of probes. Ways are numbered from `first_number` on. Packets that are too long for the
    /// outer header of segments leave by `tap`, the number of the interface that carries what no kernel does.
    pub fn new(seed: u64, first_number: u32, tap: u32) -> Self {
        Self {
            abilities: KernelAbilities::default(),
            agent_port: None,
            ports: BTreeMap::new(),
            own: OwnAddresses::default(),
            table: None,
            narrow: BTreeMap::new(),
            complete: None,
            holding: Holding::Never,
            destinations: BTreeMap::new(),
            unlisted: BTreeMap::new(),
            prober: Prober::new(seed),
            numbers: Numbers::from(first_number),
            recheck_used_every: RECHECK_USED_EVERY,
            counted_at: Instant::ZERO,
            of_ports: Objects::default(),
            of_too_long: Objects::default(),
            tap,
            changes: Vec::new(),
            revision: 0,
        }
    }

    /// Has all that is proved stay in the kernel, once all hosts have routes of one map: agents are to end then, one by one,
    /// and to leave their routes. Maps that lack some host, silence and dead cables take nothing away any more.
    pub(crate) fn hold_once_complete(&mut self) {
        if self.holding == Holding::Never {
            self.holding = Holding::OnceComplete;
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

    /// Takes in which addresses this host has now.
    pub fn set_own_addresses(&mut self, now: Instant, addresses: Vec<IpNetworkAddress>) {
        let own = OwnAddresses::new(addresses);
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
        for (&mac, destination) in &mut self.destinations {
            let mut addresses = of(mac);
            if is_holding {
                // Those of a host whose agent has ended are told no more.
                destination.add_known_addresses(&mut addresses);
            }
            if destination.take_addresses(addresses) {
                renewed.push(mac);
            }
        }
        renewed.into_iter().for_each(|mac| self.renew_and_try(now, mac));
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
        self.narrow = narrow;
        self.revision += 1;
        let gone: Vec<Mac> =
            self.destinations.keys().copied().filter(|mac| !listed.contains_key(mac)).collect();
        gone.into_iter().for_each(|mac| self.unlist(now, mac, before.as_ref()));
        self.change_unlisted(|it, numbers| it.lose_illegal_ways(table, numbers));
        for (&mac, &host) in &listed {
            let back = self.unlisted.remove(&mac).map(|it| it.destination);
            let numbers = &mut self.numbers;
            let known = self.destinations.entry(mac);
            known.or_insert_with(|| back.unwrap_or_else(|| Destination::new(host, numbers.take()))).host =
                host;
        }
        // Within one map only dead cables change, and most hosts' ways avoid them before and after.
        let renewed: Vec<Mac> = if is_same_map {
            let changed = |(_, it): &(&Mac, &Destination)| it.is_touched_by(table);
            self.destinations.iter().filter(changed).map(|(&mac, _)| mac).collect()
        } else {
            // What tables by destination of the map before have otherwise goes out of use before anybody hears of this one.
            self.complete = None;
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

    /// Has the kernel go on sending to a host that the map does not list any more, for a while. Source routes lead
    /// nowhere but there, and what is gone hears nothing anyhow. Nobody has other tables by destination to that host
    /// than those of the last map that listed it, or a part of them, so these lead there, too. `before` is the table of that map.
    fn unlist(&mut self, now: Instant, mac: Mac, before: Option<&Arc<RouteTable>>) {
        if let Some(destination) = self.destinations.get_mut(&mac) {
            destination.trust_dead_cables();
            self.update(mac);
        }
        match (self.destinations.remove(&mac), before) {
            (Some(destination), Some(before)) if destination.is_carried() => {
                let (until, table) = (now + UNLISTED_FOR, Arc::clone(before));
                self.unlisted.insert(mac, Unlisted { destination, until, table });
            }
            (Some(destination), _) => self.drop_destination(destination),
            (None, _) => {}
        }
    }

    /// Has the kernel send nothing more to unlisted hosts out of ports that led elsewhere before, or do not lead anywhere any
    /// more: the ways by them are of the cables as they were, and there is no map by which they would be left.
    fn drop_recabled(&mut self, before: &BTreeMap<u8, KernelPort>) {
        let is_changed = |&port: &u8| before.get(&port).map(far_end) != self.ports.get(&port).map(far_end);
        let changed: BTreeSet<u8> = before.keys().copied().filter(is_changed).collect();
        self.change_unlisted(|it, numbers| {
            it.destination.lose_ways(|way| changed.contains(&way.port), numbers)
        });
    }

    /// Changes the ways to unlisted hosts. `change` says whether it has changed some; a host to which no way is left is dropped.
    fn change_unlisted(&mut self, change: impl Fn(&mut Unlisted, &mut Numbers) -> bool) {
        let Self { unlisted, numbers, own, tap, abilities, changes, .. } = self;
        for it in unlisted.values_mut() {
            if change(it, numbers) {
                changes.extend(it.destination.refill(numbers, own, *tap, &abilities.left_unused));
            }
        }
        self.drop_unlisted(|it| !it.destination.is_carried());
    }

    /// Drops the unlisted hosts for which `is_over` says so.
    fn drop_unlisted(&mut self, is_over: impl Fn(&Unlisted) -> bool) {
        let over = self.unlisted.iter().filter(|(_, it)| is_over(it)).map(|(&mac, _)| mac);
        for mac in over.collect::<Vec<_>>() {
            if let Some(it) = self.unlisted.remove(&mac) {
                self.drop_destination(it.destination);
            }
        }
    }

    /// Takes in that all hosts have routes of this map. From now on all of its tables by destination is used. Tables of
    /// two maps could send a packet in a circle; but whoever is configured with this map has taken out of use what
    /// those of the map before have otherwise, and puts what is new in those of this one to use only now.
    pub(crate) fn network_complete(&mut self, now: Instant, version: MapVersion) {
        if self.complete.replace(version) != Some(version) && self.abilities.by_destination {
            let all: Vec<Mac> = self.destinations.keys().copied().collect();
            all.into_iter().for_each(|mac| self.renew(now, mac));
        }
        // A network of this host alone is complete, too.
        if self.holding == Holding::OnceComplete && !self.destinations.is_empty() {
            self.holding = Holding::Now;
        }
    }

    /// Uses no route any more until a table is installed.
    pub(crate) fn forget_routes(&mut self) {
        self.table = None;
        let all: Vec<Mac> = self.destinations.keys().copied().collect();
        all.into_iter().for_each(|mac| self.forget_destination(mac));
        self.drop_unlisted(|_| true);
    }

    /// Does what is due. `heard_at` says when the agent of a host last answered a check of a path that is used.
    pub(crate) fn handle_timeout(&mut self, now: Instant, heard_at: impl Fn(Mac) -> Option<Instant>) {
        let is_holding = self.is_holding();
        let Self { prober, destinations, own, agent_port, table, .. } = self;
        // Where an agent has crashed, agents hold cables for dead. Where they hold none, a host that answers no probe
        // has other reasons, and its packets are better left to the tap interface.
        let sees_dead_cables = table.as_ref().is_some_and(|table| !table.is_whole());
        let mut renewed = Vec::new();
        while let Some((mac, number)) = prober.next_due(now) {
            let Some(destination) = destinations.get_mut(&mac) else { continue };
            let end = FarEnd {
                may_turn: sees_dead_cables && destination.has_answered_lately(now),
                is_used: destination.is_used(now),
                heard_at: heard_at(mac).max(destination.answered_at),
            };
            let target = destination.target();
            let Some(way) = destination.ways.iter_mut().find(|way| way.number == number) else { continue };
            if is_holding && way.is_proved() {
                continue;
            }
            let ends = own.source_of_probes().zip(target);
            let turn = |way: &Way| ways::turn(way, *agent_port, ends);
            let ends = ends.map(|(own, other)| Ends { own, other });
            if prober.fire(now, mac, (way, end), ends, turn) {
                renewed.push(mac);
            }
        }
        renewed.into_iter().for_each(|mac| self.update(mac));
        self.drop_unlisted(|it| now >= it.until);
    }

    /// Takes in that a probe was answered.
    pub(crate) fn answered(&mut self, now: Instant, nonce: u64) {
        let Some(Probed { mac, number, turns }) = self.prober.take(nonce) else { return };
        let Some(destination) = self.destinations.get_mut(&mac) else { return };
        if !destination.ways.iter().any(|way| way.number == number && way.nonce == Some(nonce)) {
            return;
        }
        let is_used = destination.is_used(now);
        let every = if is_used { self.recheck_used_every } else { self.prober.recheck_unused_every() };
        let Some(way) = destination.ways.iter_mut().find(|way| way.number == number) else { return };
        let (is_news, next) = way.answered(now, every);
        if !turns {
            destination.answered_at = Some(now);
        }
        self.prober.schedule(next, mac, way);
        if is_news {
            self.update(mac);
        }
    }

    /// Takes in that a probe of this host is answered, by a packet that the kernel sends.
    pub(crate) fn answers(&mut self, mac: Mac) {
        if let Some(destination) = self.destinations.get_mut(&mac) {
            destination.answer();
        }
    }

    /// The next probe to send through the kernel.
    pub(crate) fn poll_probe(&mut self) -> Option<KernelProbe> {
        self.prober.poll()
    }

    /// The changes to the objects that the kernel is to hold, since the last call, in order.
    pub(crate) fn take_changes(&mut self) -> Vec<Change> {
        if !self.changes.is_empty() {
            self.renew_too_long();
        }
        std::mem::take(&mut self.changes)
    }

    /// Derives anew which packets are too long for an outer header: those that are longer than one way by segments
    /// carries, whichever it is.
    fn renew_too_long(&mut self) {
        let unlisted = self.unlisted.values().map(|it| &it.destination);
        let carried = self.destinations.values().chain(unlisted);
        let least = carried.filter_map(Destination::least_mtu_of_segments).min();
        let rules = [false, true].map(|v6| Rule::TooLong { v6 });
        let wanted = Objects {
            rules: least.into_iter().flat_map(|_| rules.clone()).collect(),
            marked_above: least,
            ..Objects::default()
        };
        self.changes.extend(changes(&self.of_too_long, &wanted));
        self.of_too_long = wanted;
    }

    /// When [`Self::handle_timeout`] wants to be called.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let unlisted = self.unlisted.values().map(|it| it.until).min();
        self.prober.poll_timeout().into_iter().chain(unlisted).min()
    }

    /// All objects that the kernel is to hold.
    pub fn wanted(&self) -> Objects {
        let mut all = self.of_ports.clone();
        all.extend(self.of_too_long.clone());
        let unlisted = self.unlisted.values().map(|it| &it.destination);
        self.destinations.values().chain(unlisted).for_each(|it| all.extend(it.installed.clone()));
        all
    }

    /// How often the ports or the routes have changed: what an earlier run has left is looked at anew then.
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// Whether packets to this address may go on by a nexthop that an earlier run has left. As soon as there are routes of a
    /// map, it must lead along one of them, to the host that has told this address: routes of a map before could send
    /// a packet in a circle with those of others, or to another host, where a cable was moved meanwhile.
    pub fn leads_on(&self, to: IpAddr, nexthop: &Nexthop) -> bool {
        let Self { table, abilities, agent_port, ports, narrow, .. } = self;
        let Some(table) = table else { return true };
        let (abilities, agent_port) = (*abilities, *agent_port);
        let complete = self.complete == Some(table.version());
        let tables = TablesByDestination::of(abilities, agent_port, complete);
        let around = Surroundings { abilities, agent_port, ports, narrow, tables };
        let mut there = self.destinations.values().filter(|it| it.has_address(to));
        there.any(|it| it.has_route_along(nexthop, table, &around))
    }

    /// Takes in how many packets each nexthop has taken since it is there. Where the kernel does not count, all are
    /// taken to be used. Returns whether any way is used.
    pub(crate) fn count(&mut self, now: Instant, counts: &BTreeMap<NexthopId, u64>) -> bool {
        let mut used_ways = 0;
        let passing_probes = self.most_passing_probes(now);
        self.counted_at = now;
        for (&mac, destination) in &mut self.destinations {
            let was_used = destination.is_used(now);
            destination.count(now, counts, passing_probes);
            if destination.is_used(now) {
                used_ways += destination.ways.len() as u32;
                // What was looked at now and then is looked at closely from now on.
                for way in destination.ways.iter().filter(|_| !was_used) {
                    self.prober.hasten(now + way.spread(RECHECK_USED_EVERY), mac, way.number);
                }
            }
        }
        self.recheck_used_every = (PROBE_PAUSE * used_ways).max(RECHECK_USED_EVERY);
        used_ways > 0
    }

    /// How many probes of others, and answers to them, may have passed towards one host since packets were last counted,
    /// where kernels go by the destination: of each other host one a way, whenever ways that are used are tried. Were
    /// they taken for users' packets, the ways would be tried so often because they are.
    fn most_passing_probes(&self, now: Instant) -> u64 {
        let others = self.destinations.len().saturating_sub(1) as u64;
        let times = now.since(self.counted_at).as_millis().div_ceil(RECHECK_USED_EVERY.as_millis());
        (others * WAYS_OF_OTHERS).saturating_mul(u64::try_from(times).unwrap_or(u64::MAX))
    }

    /// Whether the kernel sends packets to any host.
    pub fn carries(&self) -> bool {
        self.destinations.values().any(Destination::is_carried)
    }

    /// The hosts that the kernel has sent packets to lately.
    pub(crate) fn used(&self, now: Instant) -> impl Iterator<Item = Mac> + '_ {
        self.destinations.iter().filter(move |(_, it)| it.is_used(now)).map(|(&mac, _)| mac)
    }

    /// The hosts whose packets the kernel sends.
    #[cfg(test)]
    fn carried(&self) -> impl Iterator<Item = Mac> + '_ {
        self.destinations.iter().filter(|(_, it)| it.is_carried()).map(|(&mac, _)| mac)
    }

    /// Whether tables by destination are wanted.
    pub(crate) const fn goes_by_destination(&self) -> bool {
        self.abilities.by_destination
    }

    fn version(&self) -> Option<MapVersion> {
        self.table.as_ref().map(|table| table.version())
    }

    /// Derives the objects of the ports anew.
    fn renew_ports(&mut self) {
        let ports: Vec<CabledPort> = self.ports.values().map(|port| port.cabled.clone()).collect();
        let delivery =
            Delivery { v4: self.own.first_v4(), v6: self.own.has_v6(), agent_port: self.agent_port };
        let forwards = self.agent_port.is_some();
        let KernelAbilities { segments, compressed, by_destination, .. } = self.abilities;
        let wanted = match (segments, by_destination) {
            (true, _) => crossbar::by_segments(&ports, forwards, delivery, compressed),
            (false, true) => crossbar::neighbours(&ports),
            (false, false) => Objects::default(),
        };
        self.changes.extend(changes(&self.of_ports, &wanted));
        self.of_ports = wanted;
    }

    fn renew_all(&mut self, now: Instant) {
        let all: Vec<Mac> = self.destinations.keys().copied().collect();
        all.into_iter().for_each(|mac| self.renew_and_try(now, mac));
    }

    /// Derives the ways to a host anew, and tries all that are not proved: what kept them from that may be gone.
    fn renew_and_try(&mut self, now: Instant, mac: Mac) {
        self.renew(now, mac);
        let packing = self.abilities.packing();
        let Some(destination) = self.destinations.get_mut(&mac) else { return };
        for way in &mut destination.ways {
            if way.try_again(packing) {
                self.prober.schedule(now, mac, way);
            }
        }
    }

    /// Derives the ways to a host anew from the table.
    fn renew(&mut self, now: Instant, mac: Mac) {
        let Self {
            table, abilities, ports, agent_port, narrow, complete, destinations, prober, numbers, ..
        } = self;
        let Some(destination) = destinations.get_mut(&mac) else { return };
        let found = table.as_ref().map_or_else(Vec::new, |table| {
            let (abilities, agent_port) = (*abilities, *agent_port);
            let tables = TablesByDestination::of(abilities, agent_port, *complete == Some(table.version()));
            let around = Surroundings { abilities, agent_port, ports, narrow, tables };
            destination.routes(table, &around)
        });
        let fresh = destination.replace_ways(found, numbers);
        destination.ways.iter().filter(|way| fresh.contains(&way.number)).for_each(|way| {
            prober.schedule(now, mac, way);
        });
        self.update(mac);
    }

    /// Derives the objects of a host anew from its ways.
    fn update(&mut self, mac: Mac) {
        let Self { destinations, numbers, own, tap, abilities, .. } = self;
        let Some(destination) = destinations.get_mut(&mac) else { return };
        let renewed = destination.refill(numbers, own, *tap, &abilities.left_unused);
        // Another host has the address of one that is not listed any more.
        if !self.unlisted.is_empty() {
            let routes: Vec<RouteKey> = destination.installed.routes.keys().copied().collect();
            self.drop_unlisted(|it| {
                routes.iter().any(|key| it.destination.installed.routes.contains_key(key))
            });
        }
        self.changes.extend(renewed);
    }

    fn forget_destination(&mut self, mac: Mac) {
        if let Some(destination) = self.destinations.remove(&mac) {
            self.drop_destination(destination);
        }
    }

    fn drop_destination(&mut self, destination: Destination) {
        self.changes.extend(changes(&destination.installed, &Objects::default()));
        destination.numbers().for_each(|number| self.numbers.give_back(number));
    }
}
