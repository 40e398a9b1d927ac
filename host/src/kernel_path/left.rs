//! What an earlier run has left: whose addresses its routes lead to, and by which of them packets may go on.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use mapper_fib::segments::{self, Element};
use mapper_fib::takeover::{TakingOver, first_free_number};
use mapper_fib::{Nexthop, Objects, Route};
use mapper_proto::{Instant, Mac};

use super::destination::KernelDestination;
use super::surroundings::{Surroundings, TablesByDestination};
use super::way::{USED_LEFT_AFTER, Way};
use super::{KernelPath, KernelPort};
use crate::routes::RouteTable;

/// How long packets go on by what an earlier run has left along ways that this run has not proved, once all hosts have routes
/// of its map. Tries wait for each other, and one in vain takes a while, so a way on which a kernel drops everything could
/// have its turn late. From then on all hosts deliver what comes by the tap interface, which loses nothing.
pub(super) const UNPROVED_FOR: Duration = USED_LEFT_AFTER;

/// How often it is looked whether anybody needs what was left. That takes a look at all ways, of which there may be thousands.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What is known of the routes that an earlier run has left in the kernel.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// How far this run has come with taking over.
    pub(super) taking_over: TakingOver,
    /// When it is looked next whether anybody needs what was left.
    look_at: Instant,
    /// The revision of the ports and routes by which it was last said what the kernel is to hold.
    pub(super) compared: u64,
    /// Whose the addresses were to which they lead.
    pub(super) addresses: BTreeMap<IpAddr, Mac>,
    /// The hosts that had them.
    hosts: BTreeSet<Mac>,
    /// From when on packets go on only along ways that this run has proved; `None` as long as not all hosts are known to have
    /// routes of the map in use.
    proof_from: Option<Instant>,
    /// Whether packets go on only along such ways by now.
    needs_proof: bool,
}

impl Left {
    /// Takes in that the routes of another map are put to use.
    pub(super) const fn handle_map(&mut self) {
        (self.proof_from, self.needs_proof) = (None, false);
    }

    /// Takes in that all hosts have routes of the map in use.
    pub(super) fn handle_complete(&mut self, now: Instant) {
        self.proof_from = Some(now + UNPROVED_FOR);
    }

    /// Does what is due. Returns whether packets have just ceased to go on along ways that are not proved.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> bool {
        let needed_proof = self.needs_proof;
        self.needs_proof = self.proof_from.is_some_and(|from| now >= from);
        self.needs_proof && !needed_proof
    }

    /// Whether it is time to look whether anybody needs what was left.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.taking_over.is_under_way() && now >= self.look_at;
        if is_due {
            self.look_at = now + LOOK_EVERY;
        }
        is_due
    }

    /// When [`Self::handle_timeout`] is to be called at the latest, or it is to be looked whether anybody needs what was left.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let proof_from = self.proof_from.filter(|_| !self.needs_proof);
        let look_at = self.taking_over.is_under_way().then_some(self.look_at);
        proof_from.into_iter().chain(look_at).min()
    }

    /// Whether anything was left, as far as it is known whose it was.
    pub(super) fn is_there(&self) -> bool {
        !self.addresses.is_empty()
    }

    /// Whether packets to a host may go on by what was left, which nobody counts.
    pub(super) fn may_lead_to(&self, mac: Mac) -> bool {
        !self.needs_proof && self.hosts.contains(&mac)
    }

    /// Whether there may be such a host.
    pub(super) fn may_lead_on(&self) -> bool {
        !self.needs_proof && !self.hosts.is_empty()
    }

    /// Whether packets may go on along a way.
    pub(super) const fn may_take(&self, way: &Way) -> bool {
        if self.needs_proof { way.is_proved() } else { !way.is_refuted() }
    }
}

/// What an earlier run has left in the kernel, as far as a run that follows must know it before there are routes of a map.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeftRoutes {
    /// All of it.
    pub(super) objects: Objects,
    /// Whose each address was to which there are routes, as far as that can be told.
    pub(super) addresses: BTreeMap<IpAddr, Mac>,
    /// Whether packets went by their destination.
    pub(super) by_destination: bool,
}

impl LeftRoutes {
    /// What is left among the objects that are there. All addresses of a host lead to groups of one number, and one of them may be
    /// the one that the fabric gave the host. `host_with` knows that address.
    pub fn of(there: Objects, host_with: impl Fn(Ipv6Addr) -> Option<Mac>) -> Self {
        let routed = there.routes.iter().filter_map(|(key, route)| match route {
            Route::Group { group, .. } => Some((group.0 / 2, key.to.ip)),
            _ => None,
        });
        let routed: Vec<(u32, IpAddr)> = routed.collect();
        let known = routed.iter().filter_map(|&(number, ip)| match ip {
            IpAddr::V6(ip) => Some((number, host_with(ip)?)),
            IpAddr::V4(_) => None,
        });
        let hosts: BTreeMap<u32, Mac> = known.collect();
        let addresses = routed.iter().filter_map(|(number, ip)| Some((*ip, *hosts.get(number)?))).collect();
        let by_destination = there.nexthops.values().any(|it| matches!(it, Nexthop::Gateway { .. }));
        Self { objects: there, addresses, by_destination }
    }

    /// The first number for ways that no object has that was left.
    pub(crate) fn first_free_number(&self) -> u32 {
        first_free_number(&self.objects)
    }
}

impl KernelPath {
    /// Says what an earlier run has left. If its packets went by their destination, so do those of this run until it is known
    /// whether others need it.
    pub fn set_left(&mut self, now: Instant, left: LeftRoutes) {
        self.left.taking_over = TakingOver::begin(now, &left.objects);
        self.left.hosts = left.addresses.values().copied().collect();
        self.left.addresses = left.addresses;
        if left.by_destination {
            self.go_on_by_destination(now);
        }
    }

    /// Whether packets to this address may go on by a nexthop that an earlier run has left. As soon as there
    /// are routes of a map, the nexthop must lead along one of them to the host that has told this address.
    /// Routes of an earlier map could send a packet in a circle together with those of other hosts, or to
    /// another host if a cable was moved meanwhile. Once all hosts have routes of the map, the way has to be proved in
    /// half a second.
    ///
    /// A host that has told no address yet is taken to have those that the earlier run knew: it tells them only some time after
    /// the map, and as long as not all hosts have that map, frames by the tap interface are not delivered everywhere. Nor may a
    /// host that starts find all others at once: a way to one that the map does not list may stay if it leads out of the map, and by
    /// segments closes no circle with what the map has. A host that has let go of its routes keeps none of an earlier
    /// run either.
    pub(super) fn leads_on(&self, to: IpAddr, nexthop: &Nexthop) -> bool {
        let Self { table, agent_port, ports, narrow, left, .. } = self;
        let Some(table) = table else { return !self.has_let_go };
        let (abilities, agent_port) = (self.used_abilities(), *agent_port);
        let complete = self.complete == Some(table.version());
        let tables = TablesByDestination::of(self.goes_by_destination(), complete);
        let around = Surroundings { abilities, agent_port, ports, narrow, tables };
        let has_route =
            |it: &KernelDestination| it.has_route_along(nexthop, table, &around, |way| left.may_take(way));
        let mut there = self.destinations.values().filter(|it| it.has_address(to)).peekable();
        if there.peek().is_none() {
            let Some(mac) = self.left.addresses.get(&to) else { return false };
            return match self.destinations.get(mac) {
                Some(it) => it.has_told_nothing() && has_route(it),
                None => self.leads_to_unlisted(*mac, nexthop, table),
            };
        }
        there.any(has_route)
    }

    /// Whether an earlier run has left ways to a host that the map does not list. It may come yet: what was left goes for good
    /// only when all such hosts are there.
    pub(super) fn misses_left_hosts(&self) -> bool {
        self.left.addresses.values().any(|mac| !self.destinations.contains_key(mac))
    }

    /// Whether a nexthop of an earlier run leads out of the map to a host that the map lacks, and does no harm there.
    ///
    /// Source routes lead where they led. By the destination, packets reach a neighbour that the map lacks, and go on by its
    /// table; what leads to another neighbour than the earlier run had has been removed ([`mapper_fib::takeover::TakingOver::target`]). They
    /// do not come back: a host that has another map than this one's earlier run either has one without this host, whose tables lead
    /// to nobody outside of it, or one that this host has not got, of which nothing new is in use before it has got it. To a host
    /// without a crossbar nothing comes back that is not for it. Nobody proves such ways, which stay for half a minute at most.
    fn leads_to_unlisted(&self, mac: Mac, nexthop: &Nexthop, table: &RouteTable) -> bool {
        let mut at_interface =
            self.ports.values().filter(|port| port.cabled.interface == nexthop.interface());
        let has_crossbar = self.agent_port.is_some();
        match nexthop {
            Nexthop::Gateway { .. } => {
                let may_get_there = |port: &KernelPort| {
                    port.by_destination
                        && port.host.is_none_or(|host| host == mac)
                        && (!has_crossbar || table.leads_out_of_the_map([port.cabled.port]))
                };
                self.goes_by_destination() && at_interface.any(may_get_there)
            }
            Nexthop::Segments { segments, .. } => {
                let Some(elements) = segments::elements(segments) else { return false };
                let Some((Element::FirstPort(first), rest)) = elements.split_first() else { return false };
                let ports = rest.iter().map_while(|element| match element {
                    Element::Port(port) => Some(*port),
                    _ => None,
                });
                has_crossbar
                    && at_interface.any(|port| port.cabled.port == *first)
                    && table.leads_out_of_the_map([*first].into_iter().chain(ports))
            }
        }
    }
}
