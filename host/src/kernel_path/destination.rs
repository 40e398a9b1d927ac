//! One host that the kernel sends packets to: the ways there, and the objects that are derived from them.

mod addresses;
mod counted;
mod doubts;
mod found;
mod objects;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use mapper_fib::{Change, GroupId, NexthopId, Objects, RouteKey, Table};
use mapper_proto::map::MapVersion;
use mapper_proto::{Instant, PortSet};

use super::farewell::Farewell;
use super::slots::Slots;
use super::status::Shortened;
use super::way::{Course, Way};
use super::{Heard, Numbers};
use crate::routes::{RoutePath, RouteTable};
use addresses::{Addresses, Taken};
use counted::Counted;
use doubts::Doubts;
use found::FoundRoute;

/// The least MTU that IPv6 works with (RFC 8200, section 5).
const LEAST_MTU: u32 = 1280;

/// How long after a host itself answered a probe others may turn at the crossbar before it. If its agent has
/// crashed, there is a map without it by then.
const TURNS_FOR: Duration = Duration::from_secs(10);
/// The most ways to a host that are set aside.
const MOST_SET_ASIDE: usize = 16;
/// A host counts as used for this long after packets to it were counted last.
const USED_FOR: Duration = Duration::from_secs(1);

/// A host that packets are sent to.
#[derive(Debug)]
pub(super) struct KernelDestination {
    /// The host's number in the table.
    pub(super) host: u32,
    /// The number of the host's groups.
    number: u32,
    addresses: Addresses,
    pub(super) ways: Vec<Way>,
    /// The map whose hops the ways have.
    map: Option<MapVersion>,
    /// Ways of that map that were proved before a cable on them was held for dead, and since when no probe was
    /// answered. If it is the host's agent that is gone, nothing answers on the ways around that cable, while the
    /// kernels on these ways still send packets on.
    set_aside: Vec<Way>,
    slots: Slots,
    /// Whether the table that ways were last derived from went around dead cables, so that another table of the
    /// same map may have other routes.
    is_altered: bool,
    /// Ports that tables by destination lead out of, over a cable that is held for dead. Ways out of them are
    /// kept, as it may be only the agent at the cable's end that is silent.
    left_ports: PortSet,
    /// Ways that are left for a silent cable, and of which it is not known yet whether that is right.
    doubts: Doubts,
    /// The objects that the kernel was told to hold.
    pub(super) installed: Objects,
    /// What is said and heard of the end of the agents.
    pub(super) farewell: Farewell,
    /// What was counted of the packets that nexthops took.
    counted: Counted,
    /// How many answers to probes of that host were sent since the nexthops were last counted: those of IPv4, and those of IPv6.
    answers: [u64; 2],
    /// Whether the host also answers probes of IPv4, as it said when it last answered one.
    answers_v4: bool,
    /// Whether the kernel counts packets.
    is_counted: bool,
    /// When the kernel was last seen to have sent packets to the host; `None` for never.
    used_at: Option<Instant>,
    /// When the host itself last answered a probe; `None` for never.
    pub(super) answered_at: Option<Instant>,
}

impl KernelDestination {
    pub(super) fn new(host: u32, number: u32) -> Self {
        let (addresses, ways, installed) = (Addresses::default(), Vec::new(), Objects::default());
        Self {
            host,
            number,
            addresses,
            ways,
            map: None,
            set_aside: Vec::new(),
            slots: Slots::default(),
            is_altered: false,
            left_ports: PortSet::NONE,
            doubts: Doubts::default(),
            installed,
            farewell: Farewell::default(),
            counted: Counted::default(),
            answers: [0, 0],
            answers_v4: false,
            is_counted: false,
            used_at: None,
            answered_at: None,
        }
    }

    /// The addresses that are known of the host.
    pub(super) fn addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.addresses.iter().copied()
    }

    /// Takes in the host's addresses, and loses none of those that are known if `is_holding`. Returns whether they are others
    /// than before. If those at the end of the ways may be another host's, nothing is proved of the ways any more, not even by
    /// a probe that turns before it gets there.
    pub(super) fn take_addresses(
        &mut self,
        told: Vec<IpAddr>,
        is_holding: bool,
        numbers: &mut Numbers,
    ) -> bool {
        let told = if is_holding { self.addresses.kept_beside(told) } else { told };
        let v4_before = self.addresses.last_v4();
        let taken = self.addresses.take(told);
        if self.addresses.last_v4() != v4_before {
            self.ways.iter_mut().chain(&mut self.set_aside).for_each(Way::try_v4_again);
        }
        if taken == Taken::Anothers {
            self.answered_at = None;
            let _had_some = self.forget_set_aside(numbers);
            self.ways.iter_mut().for_each(Way::forget_proof);
        }
        taken != Taken::Same
    }

    /// Takes in that the host itself has answered a probe.
    pub(super) fn answered(&mut self, now: Instant) {
        self.answered_at = Some(now);
        self.addresses.prove();
    }

    /// The address that probes go to.
    pub(super) fn target(&self) -> Option<Ipv6Addr> {
        self.addresses.first_v6()
    }

    /// The addresses between which it is asked whether packets of IPv4 get through, the first of which is this host's; `None` where
    /// that cannot be asked. There packets of IPv4 take all ways that are proved.
    pub(super) fn ends_of_v4(&self, own: Option<Ipv4Addr>) -> Option<(Ipv4Addr, Ipv4Addr)> {
        own.zip(self.addresses.v4()).filter(|_| self.answers_v4)
    }

    /// Whether some way takes packets of which it can be asked, and is not known yet, whether it takes those of IPv4.
    pub(super) fn awaits_v4(&self, own: Option<Ipv4Addr>) -> bool {
        self.ends_of_v4(own).is_some() && self.ways_in_use().any(Way::is_v4_unknown)
    }

    /// Whether no way that packets take is one for those of IPv4, as far as that can be asked.
    pub(super) fn loses_v4(&self) -> bool {
        !self.ways_in_use().any(|way| way.carries_v4() || way.is_v4_unknown())
    }

    /// Takes in whether the host answers probes of IPv4. Returns whether that is another thing than before.
    pub(super) const fn set_answers_v4(&mut self, answers_v4: bool) -> bool {
        std::mem::replace(&mut self.answers_v4, answers_v4) != answers_v4
    }

    /// Takes in how many packets nexthops have taken.
    pub(super) fn count(&mut self, now: Instant, counts: &BTreeMap<NexthopId, u64>) {
        let [v4, v6] = self.counted.take(self.installed.nexthops.keys().copied(), counts);
        // Answers to that host's probes are counted, too, but are no use of the ways. Each is sent at once,
        // so an answer that was not counted by now went by the tap interface. It is forgotten, so that it
        // hides no user's packet later.
        let [answers_v4, answers_v6] = std::mem::take(&mut self.answers);
        let is_used = if counts.is_empty() { self.is_carried() } else { v4 > answers_v4 || v6 > answers_v6 };
        self.is_counted = !counts.is_empty();
        if is_used {
            self.used_at = Some(now);
        }
    }

    /// Has the kernel look up anew where packets to the host go that it looks up once for many: those of a connection, until a
    /// route changes. Only what is looked up is counted, so without it nobody would know of a connection's packets that
    /// they are sent. Returns the changes that do so, if the host is in use and the last time was not just now. It is done more
    /// than once for as long as a host counts as used, since the one packet of a connection that is counted may be hidden by an
    /// answer to a probe, whose own count was lost when counts began anew.
    pub(super) fn refresh(&mut self, now: Instant) -> Vec<Change> {
        if !self.is_counted || !self.is_used(now) || !self.counted.may_begin_anew(now) {
            return Vec::new();
        }
        self.counted.begin_anew(now);
        // A group that is put in the place of itself counts from 0. Of packets that pass each is looked up.
        let groups = self.installed.groups.iter().filter(|(group, _)| !group.is_of_passing());
        groups.map(|(&group, members)| Change::PutGroup(group, members.clone())).collect()
    }

    /// How many packets were counted that took the way with this number.
    pub(super) fn packets_along(&self, way: u32) -> u64 {
        self.nexthops_along(way).map(|id| self.counted.total(id)).sum()
    }

    /// Takes in that a probe of that host is answered, by a packet of IPv6 that the kernel sends or one of IPv4. Those of IPv4 are
    /// looked up as probes that pass, which are not counted, if there are routes for these.
    pub(super) fn answer(&mut self, is_v6: bool) {
        let passes = |key: &RouteKey| key.table == Table::Passing && key.to.ip.is_ipv4();
        let is_apart = !is_v6 && self.installed.routes.keys().any(passes);
        // Where the kernel has no route it goes by the tap interface, and is not counted.
        let is_carried = self.installed.groups.contains_key(&GroupId(2 * self.number + u32::from(is_v6)));
        self.answers[usize::from(is_v6)] += u64::from(is_carried && !is_apart);
    }

    /// Takes in that a group is put, so that the kernel counts its members from 0. Answers to probes that were counted before are
    /// not among what it counts from now on, and would hide users' packets: of a connection no more than one may be counted.
    fn counts_begin_anew(&mut self, group: GroupId, members: &[NexthopId]) {
        if !group.is_of_passing() {
            self.counted.begin_at_0(members);
            self.answers[(group.0 % 2) as usize] = 0;
        }
    }

    /// Whether the kernel has sent packets to the host lately.
    pub(super) fn is_used(&self, now: Instant) -> bool {
        self.used_at.is_some_and(|at| now.since(at) < USED_FOR)
    }

    /// Whether the host itself answered a probe not long ago, so that nothing there seems to keep packets
    /// from it.
    pub(super) fn has_answered_lately(&self, now: Instant) -> bool {
        self.answered_at.is_some_and(|at| now.since(at) < TURNS_FOR)
    }

    /// Whether the kernel sends packets to the host.
    pub(super) fn is_carried(&self) -> bool {
        !self.installed.groups.is_empty()
    }

    /// The ways that packets take.
    pub(super) fn ways_in_use(&self) -> impl Iterator<Item = &Way> {
        self.all_ways().filter(|way| self.slots.iter().any(|slot| slot.way == way.number))
    }

    /// The ways of the table, and those that are set aside.
    fn all_ways(&self) -> impl Iterator<Item = &Way> {
        self.ways.iter().chain(&self.set_aside)
    }

    /// The nexthops that lead along the way with this number, of both versions of IP.
    pub(super) fn nexthops_along(&self, way: u32) -> impl Iterator<Item = NexthopId> + '_ {
        let slots = self.slots.iter().filter(move |slot| slot.way == way);
        slots.flat_map(|slot| [false, true].map(|v6| nexthop_id(slot.number, v6)))
    }

    /// How long frames to the host are, if that is less than the ends of all cables on the way say.
    pub(super) fn shortened(&self) -> Option<Shortened> {
        let shortened = self.ways_in_use().filter_map(|way| {
            let to = way.surely_shortened_to()?;
            Some(Shortened { to, said: way.link_mtu })
        });
        shortened.min()
    }

    /// Whether packets to the host have segments.
    pub(super) fn goes_by_segments(&self) -> bool {
        self.ways_in_use().any(|way| way.course != Course::Destination)
    }

    /// Takes the cables that are held for dead to be alive, as it is the host's agent that is gone. Ways across them
    /// that were proved are used again if no other way is.
    pub(super) fn trust_dead_cables(&mut self) {
        self.left_ports = PortSet::NONE;
        self.doubts = Doubts::default();
        if !self.ways.iter().any(Way::is_proved) {
            self.ways.append(&mut self.set_aside);
        }
    }

    /// Forgets the ways that were set aside, as the host's agent answers probes. Returns whether there were any.
    pub(super) fn forget_set_aside(&mut self, numbers: &mut Numbers) -> bool {
        let had_some = !self.set_aside.is_empty();
        self.set_aside.drain(..).for_each(|way| numbers.give_back(way.number));
        had_some
    }

    /// Forgets the ways for which `is_lost` is true. Returns whether there were any.
    pub(super) fn lose_ways(&mut self, is_lost: impl Fn(&Way) -> bool, numbers: &mut Numbers) -> bool {
        let before = self.ways.len();
        self.ways.iter().filter(|way| is_lost(way)).for_each(|way| numbers.give_back(way.number));
        self.ways.retain(|way| !is_lost(way));
        self.ways.len() != before
    }

    /// Whether this table, which is of the same map, may have other routes to the host than the one that ways
    /// were last derived from.
    pub(super) fn is_touched_by(&self, table: &RouteTable) -> bool {
        self.is_altered || self.ways.iter().any(|way| way.hops.iter().any(|&hop| table.is_dead(hop)))
    }

    /// Whether the host is known to have this address.
    pub(super) fn has_address(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|&it| it == address)
    }

    /// Whether no address of the host is known.
    pub(super) fn has_told_nothing(&self) -> bool {
        self.addresses.iter().next().is_none()
    }

    /// Replaces the ways by those that were found in a table of this map. A way that goes through the same ports as
    /// an earlier one stays as it was. If dead cables cut the host off, so that the table leads across them again,
    /// that holds for ways that were set aside as well. Returns the numbers of the new ones.
    pub(super) fn replace_ways(
        &mut self,
        found: Vec<FoundRoute>,
        (map, is_cut_off): (Option<MapVersion>, bool),
        numbers: &mut Numbers,
    ) -> Vec<u32> {
        if self.map != map {
            let _had_some = self.forget_set_aside(numbers);
        }
        let mut before: Vec<Way> = std::mem::take(&mut self.ways);
        let mut fresh = Vec::new();
        if is_cut_off {
            before.append(&mut self.set_aside);
        }
        for found in found {
            let same = before.iter().position(|way| found.is(way));
            let FoundRoute { path: RoutePath { hops, way: round_trip }, course, leaving } = found;
            let mut way = match same {
                Some(at) => {
                    let mut way = before.swap_remove(at);
                    way.hops = hops;
                    way
                }
                None => {
                    let number = numbers.take();
                    fresh.push(number);
                    Way::new(number, (round_trip, hops), course, leaving)
                }
            };
            way.place = self.ways.len() as u32;
            self.ways.push(way);
        }
        let is_same_map = std::mem::replace(&mut self.map, map) == map;
        for way in before {
            if is_same_map && way.is_proved() && self.set_aside.len() < MOST_SET_ASIDE {
                self.set_aside.push(way);
            } else {
                numbers.give_back(way.number);
            }
        }
        fresh
    }

    /// All numbers that the destination holds.
    pub(super) fn numbers(self) -> impl Iterator<Item = u32> {
        let slots: Vec<u32> = self.slots.iter().map(|slot| slot.number).collect();
        let ways = self.ways.into_iter().chain(self.set_aside).map(|way| way.number);
        [self.number].into_iter().chain(slots).chain(ways)
    }

    /// Takes in which of the ways that are left may be so for the silence of an agent: `is_silent` says whether all that is
    /// dead on a way is.
    pub(super) fn follow_doubts(&mut self, now: Instant, is_silent: impl Fn(&Way) -> bool) {
        let left = self.ways.iter().filter(|way| self.is_left(way)).chain(&self.set_aside);
        let left = left.filter(|way| is_silent(way)).map(|way| way.number).collect();
        self.doubts.follow(now, left);
    }

    /// Takes in what is heard of the host. Returns whether packets to it may have to take other ways now.
    pub(super) fn settle_doubts(&mut self, heard: Heard) -> bool {
        self.doubts.settle(heard)
    }

    /// Whether it is not known of some way whether a cable on it is dead or the host's agent.
    pub(super) fn has_doubts(&self) -> bool {
        self.doubts.are_there()
    }

    /// Whether a way by tables leaves by a port whose cable is held for dead.
    fn is_left(&self, way: &Way) -> bool {
        way.course == Course::Destination && self.left_ports.contains(way.port)
    }

    /// Has the group lead along the ways that are proved. Source routes are preferred to crossbars' tables by
    /// destination, as they work even if not all hosts have the same map.
    fn fill_slots(&mut self, numbers: &mut Numbers) {
        let carries = |way: &&Way| way.is_proved() && way.mtu() >= LEAST_MTU;
        let mut usable: Vec<&Way> =
            self.ways.iter().filter(|way| carries(way) && !self.is_left(way)).collect();
        if usable.is_empty() {
            let doubted = |way: &&Way| carries(way) && self.doubts.are_about(way.number);
            usable = self.all_ways().filter(doubted).collect();
        }
        if usable.iter().any(|way| way.shortened_to().is_none()) {
            usable.retain(|way| way.shortened_to().is_none());
        }
        let by_segments = usable.iter().any(|way| way.course != Course::Destination);
        let is_preferred = |way: &&Way| (way.course != Course::Destination) == by_segments;
        let ways: Vec<u32> = usable.into_iter().filter(is_preferred).map(|way| way.number).collect();
        self.slots.assign(&ways, numbers);
    }
}

/// The number of the nexthop of one version of IP at a place with this number.
const fn nexthop_id(slot: u32, v6: bool) -> NexthopId {
    NexthopId(2 * slot + v6 as u32)
}

/// Whether the nexthop with this number is of IPv6.
const fn is_of_v6(id: NexthopId) -> bool {
    id.0 % 2 == 1
}
