//! Hosts that a map does not list any more, and which ways to them the kernel may go on sending along.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mapper_proto::map::PortRef;
use mapper_proto::{Instant, Mac, PortSet};

use super::destination::KernelDestination;
use super::surroundings::far_end;
use super::way::{Course, Way};
use super::{KernelPath, KernelPort, Numbers};
use crate::routes::RouteTable;

/// How long the kernel goes on sending to a host that the map does not list any more.
pub(super) const UNLISTED_FOR: Duration = Duration::from_secs(60);

/// A host that the map does not list any more.
#[derive(Debug)]
pub(super) struct Unlisted {
    pub(super) destination: KernelDestination,
    /// Until when the kernel goes on sending to it.
    pub(super) until: Instant,
    /// The table of the last map that listed the host. The hops of its ways are numbered as in that map.
    pub(super) table: Arc<RouteTable>,
}

impl Unlisted {
    /// Forgets the ways that do not exist in the map of this table, or could close a circle with its routes.
    /// Returns whether there were any.
    pub(super) fn lose_illegal_ways(&mut self, table: &RouteTable, numbers: &mut Numbers) -> bool {
        let Self { destination, table: before, .. } = self;
        let host = destination.host;
        let turns = if destination.ways.iter().any(|way| way.course == Course::Destination) {
            before.turns_to(host)
        } else {
            Vec::new()
        };
        let is_lost = |way: &Way| match (&way.course, way.hops.first()) {
            (Course::Destination, Some(&hop)) => !is_legal_by_destination(hop, host, &turns, before, table),
            (Course::Destination, None) => !is_at_the_same_port(before, table),
            (Course::Segments { .. }, _) => !is_legal(&way.hops, before, table),
        };
        destination.lose_ways(is_lost, numbers)
    }
}

impl KernelPath {
    /// Has the kernel go on sending to a host that the map does not list any more, for a while. Source routes
    /// can lead to no other host. No host has other tables by destination to that host than those of the last
    /// map that listed it, or a part of them, so ways by these lead there, too, as far as
    /// [`Unlisted::lose_illegal_ways`] keeps them. `before` is the table of that map.
    pub(super) fn unlist(&mut self, now: Instant, mac: Mac, before: Option<&Arc<RouteTable>>) {
        let Self { destinations, ports, agent_port, numbers, .. } = self;
        if let Some(destination) = destinations.get_mut(&mac) {
            destination.trust_dead_cables();
            if let Some(before) = before {
                destination.lose_recabled(before, (*agent_port, ports), numbers);
            }
            self.update(mac);
            // It is not told any more how long packets are to a host that no map lists.
            self.note_shortened(mac, None);
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

    /// Has the kernel send nothing more to unlisted hosts out of ports that now lead elsewhere or nowhere.
    /// The ways out of them were found for the cables as they were before, and no new map will replace them.
    pub(super) fn drop_recabled(&mut self, before: &BTreeMap<u8, KernelPort>) {
        let of = |port: &KernelPort| (port.cabled.interface, far_end(port));
        let is_changed = |port: &u8| before.get(port).map(of) != self.ports.get(port).map(of);
        let changed: PortSet = before.keys().copied().filter(is_changed).collect();
        self.change_unlisted(|it, numbers| {
            it.destination.lose_ways(|way| changed.contains(way.port), numbers)
        });
    }

    /// Changes the ways to unlisted hosts. `change` returns whether it has changed any. A host to which no
    /// way is left is dropped.
    pub(super) fn change_unlisted(&mut self, change: impl Fn(&mut Unlisted, &mut Numbers) -> bool) {
        let passes = self.passes_by_destination();
        let Self { unlisted, numbers, own, v4_probes_from, tap, abilities, changes, .. } = self;
        let own = (&*own, *v4_probes_from);
        for it in unlisted.values_mut() {
            if change(it, numbers) {
                changes.extend(it.destination.refill(numbers, own, *tap, &abilities.left_unused, passes));
            }
        }
        self.drop_unlisted(|it| !it.destination.is_carried());
    }

    /// Drops the unlisted hosts for which `is_over` is true.
    pub(super) fn drop_unlisted(&mut self, is_over: impl Fn(&Unlisted) -> bool) {
        let over = self.unlisted.iter().filter(|(_, it)| is_over(it)).map(|(&mac, _)| mac);
        for mac in over.collect::<Vec<_>>() {
            if let Some(it) = self.unlisted.remove(&mac) {
                self.drop_destination(it.destination);
            }
        }
    }
}

/// A port of the map before, as the map of now numbers it. `None` if the map of now lacks its crossbar.
fn in_map(hop: PortRef, before: &RouteTable, now: &RouteTable) -> Option<PortRef> {
    let xbar = before.tag(hop.xbar).and_then(|tag| now.xbar(tag))?;
    Some(PortRef { xbar, port: hop.port })
}

/// Whether this host is cabled to the same port of a crossbar in both maps, or the map of now has none for it: the agent at the
/// crossbar may have crashed while its kernel goes on, and nobody's packets go through this host. When the cable itself is moved, its
/// ways end.
fn is_at_the_same_port(before: &RouteTable, now: &RouteTable) -> bool {
    match before.home() {
        Some(home) => now.home().is_none_or(|at| in_map(home, before, now) == Some(at)),
        None => now.home().is_none(),
    }
}

/// Whether a way by destination may stay that leaves by `hop`, a port of the map before. By the map of now
/// the port must lead where it led before, or straight to where the host was, or this was the host's own port
/// and nobody is at it now. Other hosts' packets that leave by it take `turns`, by the map before, and these
/// must close no circle with the turns of the map of now.
/// All hosts that have the map of now keep to such turns, so all together close no circle.
fn is_legal_by_destination(
    hop: PortRef,
    host: u32,
    turns: &[(PortRef, PortRef)],
    before: &RouteTable,
    now: &RouteTable,
) -> bool {
    let Some(leaves) = in_map(hop, before, now) else { return false };
    let Some(far) = now.far_port(leaves) else {
        let was_there = before.home_of(host) == Some(hop) && now.host_at(leaves).is_none();
        return was_there || before.leads_home(hop, host);
    };
    let is_allowed = |&(from, _): &(PortRef, PortRef)| {
        in_map(from, before, now).is_none_or(|from| now.allows_by_destination((from, leaves)))
    };
    before.far_port(hop).and_then(|mapped| in_map(mapped, before, now)) == Some(far)
        && !now.leaves_out(leaves)
        && turns.iter().filter(|(_, by)| *by == hop).all(is_allowed)
}

/// Whether the hops of a route of the map before still lead where they led by the map of now, and close no
/// circle with its routes. The crossbars at the route's end may be gone with the host. The first hop leaves the crossbar to which
/// this host is cabled now, whatever that one's tag was before.
fn is_legal(hops: &[PortRef], before: &RouteTable, now: &RouteTable) -> bool {
    let Some((first, rest)) = hops.split_first() else { return true };
    let Some(home) = now.home() else { return false };
    let in_this_map = |hop: &PortRef| in_map(*hop, before, now);
    let mut known = vec![PortRef { xbar: home.xbar, port: first.port }];
    known.extend(rest.iter().map_while(in_this_map));
    let is_gone = |hop: &PortRef| in_this_map(hop).is_none();
    let leads_on = |pair: &[PortRef]| now.far_port(pair[0]).is_some_and(|far| far.xbar == pair[1].xbar);
    hops[known.len()..].iter().all(is_gone)
        && known.windows(2).all(leads_on)
        && known.last().is_some_and(|&last| now.far_port(last).is_none())
        && now.closes_no_circle(&known)
}
