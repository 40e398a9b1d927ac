//! Derives anew the objects of the ports, the ways and objects of a host, and which packets are too long for
//! segments.

use std::collections::{BTreeMap, BTreeSet};

use mapper_fib::crossbar::{self, CabledPort, Delivery, Role};
use mapper_fib::segments::Packing;
use mapper_fib::{Change, Objects, RouteKey, Rule, Table, changes};
use mapper_proto::map::PortRef;
use mapper_proto::{Instant, Mac};

use super::destination::KernelDestination;
use super::status::Shortened;
use super::surroundings::{Surroundings, TablesByDestination};
use super::way::Way;
use super::{KernelAbilities, KernelPath};
use crate::routes::RouteTable;

/// Whether cables on a way are held for dead, and all of them for no more than silence. A silent cable is named by the lower
/// of its ports.
fn is_silent(way: &Way, table: &RouteTable, silent: &BTreeSet<PortRef>) -> bool {
    let mut dead = way.hops.iter().filter(|&&hop| table.is_dead(hop)).peekable();
    let lower = |hop: PortRef| table.far_port(hop).map_or(hop, |far| far.min(hop));
    dead.peek().is_some() && dead.all(|&hop| silent.contains(&lower(hop)))
}

impl KernelPath {
    /// Derives the objects of the ports anew.
    pub(super) fn renew_ports(&mut self) {
        let ports: Vec<CabledPort> = self.ports.values().map(|port| port.cabled.clone()).collect();
        let delivery =
            Delivery { v4: self.own.first_v4(), v6: self.own.has_v6(), agent_port: self.agent_port };
        let role = if self.agent_port.is_some() { Role::Crossbar } else { Role::AgentAlone };
        let KernelAbilities { segments, compressed, by_destination, .. } = self.abilities;
        let mut wanted = match (segments, by_destination) {
            (true, _) => crossbar::by_segments(&ports, role, delivery, Packing::closest(compressed)),
            (false, it) if it.is_needed() => crossbar::neighbours(&ports),
            (false, _) => Objects::default(),
        };
        if self.goes_by_destination() {
            wanted.routes.extend(crossbar::towards_ports_v4(&ports));
        }
        if self.passes_by_destination() {
            wanted.rules.extend(crossbar::rules_of_passing(&ports));
        }
        self.changes.extend(changes(&self.of_ports, &wanted));
        self.of_ports = wanted;
    }

    /// Derives anew which packets are too long for an outer header: those that are longer than what some way
    /// by segments carries.
    pub(super) fn renew_too_long(&mut self) {
        let unlisted = self.unlisted.values().map(|it| &it.destination);
        let carried = self.destinations.values().chain(unlisted);
        let least = carried.filter_map(KernelDestination::least_mtu_of_segments).min();
        let wanted = Objects {
            rules: least.map(|_| Rule::TooLong).into_iter().collect(),
            marked_above: least,
            ..Objects::default()
        };
        self.changes.extend(changes(&self.of_too_long, &wanted));
        self.of_too_long = wanted;
    }

    pub(super) fn renew_all(&mut self, now: Instant) {
        let all: Vec<Mac> = self.destinations.keys().copied().collect();
        all.into_iter().for_each(|mac| self.renew_and_try(now, mac));
    }

    /// Derives the ways to a host anew, and tries all that are not proved, as what kept them from being
    /// proved may be gone.
    pub(super) fn renew_and_try(&mut self, now: Instant, mac: Mac) {
        self.renew(now, mac);
        let packing = self.abilities.packing();
        let Some(destination) = self.destinations.get_mut(&mac) else { return };
        let tries_v4 = destination.ends_of_v4(self.v4_probes_from).is_some();
        for way in &mut destination.ways {
            if way.try_again(packing) {
                self.prober.schedule(now, mac, way);
            } else if tries_v4 && way.is_v4_unknown() {
                self.prober.hasten(now, mac, way.number);
            }
        }
    }

    /// Derives the ways to a host anew from the table.
    pub(super) fn renew(&mut self, now: Instant, mac: Mac) {
        let (by_destination, abilities) = (self.goes_by_destination(), self.used_abilities());
        let Self {
            table, ports, agent_port, narrow, complete, destinations, prober, numbers, silent, ..
        } = self;
        let Some(destination) = destinations.get_mut(&mac) else { return };
        let found = table.as_ref().map_or_else(Vec::new, |table| {
            let agent_port = *agent_port;
            let tables = TablesByDestination::of(by_destination, *complete == Some(table.version()));
            let around = Surroundings { abilities, agent_port, ports, narrow, tables };
            destination.routes(table, &around)
        });
        let of = table.as_ref().map(|table| (table.version(), table.is_cut_off(destination.host))).unzip();
        let fresh = destination.replace_ways(found, (of.0, of.1.unwrap_or(false)), numbers);
        for way in &destination.ways {
            // A way that had been set aside may not be scheduled any more.
            if fresh.contains(&way.number) || !prober.has(mac, way.number) {
                prober.schedule(now, mac, way);
            }
        }
        destination.follow_doubts(now, |way| {
            let is_there = ports.get(&way.port).is_some_and(|port| port.cabled.interface == way.interface);
            let table = table.as_ref().filter(|_| is_there);
            table.is_some_and(|table| is_silent(way, table, silent))
        });
        if destination.has_doubts() {
            self.doubtful.insert(mac);
        }
        self.update(mac);
    }

    /// Derives the objects of a host anew from its ways.
    pub(super) fn update(&mut self, mac: Mac) {
        let passes = self.passes_by_destination();
        let Self { destinations, numbers, own, tap, abilities, v4_probes_from, .. } = self;
        let Some(destination) = destinations.get_mut(&mac) else { return };
        let own = (&*own, *v4_probes_from);
        let renewed = destination.refill(numbers, own, *tap, &abilities.left_unused, passes);
        let shortened = destination.shortened();
        // A host that is listed may now have the address of one that is not listed any more.
        if !self.unlisted.is_empty() {
            let routes: Vec<RouteKey> = destination.installed.routes.keys().copied().collect();
            self.drop_unlisted(|it| {
                routes.iter().any(|key| it.destination.installed.routes.contains_key(key))
            });
        }
        self.changes.extend(renewed);
        self.note_shortened(mac, shortened);
    }

    /// Takes in how long frames to a host are now, if that is less than the ends of all cables on the way say.
    pub(super) fn note_shortened(&mut self, mac: Mac, shortened: Option<Shortened>) {
        let before = match shortened {
            Some(shortened) => self.shortened.insert(mac, shortened),
            None => self.shortened.remove(&mac),
        };
        self.shortened_is_news |= before != shortened;
    }

    /// How long frames are to the hosts to which fewer bytes get through than the ends of all cables on the way say, if that has
    /// changed since the last call.
    pub(crate) fn take_shortened(&mut self) -> Option<BTreeMap<Mac, u32>> {
        let is_news = std::mem::take(&mut self.shortened_is_news);
        is_news.then(|| self.shortened.iter().map(|(&mac, shortened)| (mac, shortened.to)).collect())
    }

    /// Takes in how long packets are at most that the user wants the tap interface to carry, in bytes.
    pub(crate) fn set_tap_limit(&mut self, limit: Option<u32>) {
        if self.tap.set_limit(limit) && !self.is_holding() {
            let all: Vec<Mac> = self.destinations.keys().copied().collect();
            all.into_iter().for_each(|mac| self.update(mac));
        }
    }

    /// Has the routes for packets that are too long for segments put again, as the tap interface has got another MTU: the kernel
    /// gives that to routes of IPv6 out of it.
    pub(crate) fn put_too_long_again(&mut self) {
        let too_long = self.wanted().routes.into_iter().filter(|(key, _)| key.table == Table::TooLong);
        self.changes.extend(too_long.map(|(key, route)| Change::PutRoute(key, route)));
    }

    pub(super) fn forget_destination(&mut self, mac: Mac) {
        if let Some(destination) = self.destinations.remove(&mac) {
            self.note_shortened(mac, None);
            self.drop_destination(destination);
        }
    }

    pub(super) fn drop_destination(&mut self, destination: KernelDestination) {
        self.changes.extend(changes(&destination.installed, &Objects::default()));
        destination.numbers().for_each(|number| self.numbers.give_back(number));
    }
}
