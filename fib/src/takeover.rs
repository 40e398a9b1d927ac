//! What a kernel is to hold while a run of the daemon takes over from an earlier one that was killed or
//! crashed, and so left its objects in the kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use mapper_proto::{Instant, Mac};

use crate::object::{GroupId, Nexthop, Objects, Route};

/// Who was at the other ends of the cables when an earlier run ended: what it left is for these neighbours.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct LeftNeighbours(BTreeMap<(u32, IpAddr), Mac>);

impl LeftNeighbours {
    /// The neighbours among the objects that a run finds when it starts, before it changes any.
    fn of(there: &Objects) -> Self {
        Self(there.neighbours.clone())
    }

    /// Whether the neighbour behind an interface is another now, as far as `wanted` names one. What an earlier run left
    /// would lead elsewhere by it: the cable was moved. An older version may have known it by fewer addresses.
    fn is_other_in(&self, wanted: &Objects, interface: u32) -> bool {
        let at_interface = |((at, _), _): &(&(u32, IpAddr), &Mac)| *at == interface;
        let was = |mac: &Mac| self.0.iter().filter(at_interface).any(|(_, left)| left == mac);
        wanted.neighbours.iter().filter(at_interface).any(|(_, mac)| !was(mac))
    }
}

/// How long objects that an earlier run left stay at the longest, so that packets go on by them until this run has proved
/// its own ways.
const TAKE_OVER_WITHIN: Duration = Duration::from_secs(30);

/// How far a run has come with taking over from an earlier one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TakingOver {
    left: LeftNeighbours,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    /// The earlier run left nothing, or nothing of it is there any more.
    #[default]
    Done,
    /// Packets may go by what it left, until this moment at the longest.
    UnderWay(Instant),
    /// Nobody needs what it left any more, but the kernel may hold it still.
    Clearing,
}

/// What a kernel is to hold at a moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target {
    /// All objects.
    pub objects: Objects,
    /// Whether what the kernel holds beside these may have been left by an earlier run. Otherwise somebody else put it there.
    pub clears_left: bool,
}

impl TakingOver {
    /// Begins with what is there when a run starts.
    pub fn begin(now: Instant, there: &Objects) -> Self {
        let stage = match there.is_empty() {
            true => Stage::Done,
            false => Stage::UnderWay(now + TAKE_OVER_WITHIN),
        };
        Self { left: LeftNeighbours::of(there), stage }
    }

    /// Whether packets may go by what was left.
    pub const fn is_under_way(&self) -> bool {
        matches!(self.stage, Stage::UnderWay(_))
    }

    /// Whether the kernel holds nothing that was left.
    pub const fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done)
    }

    /// Has what was left go if its time is over, or nobody needs it any more. Returns whether that is so from now on.
    pub fn look(&mut self, now: Instant, is_needed: bool) -> bool {
        let ends = matches!(self.stage, Stage::UnderWay(until) if now >= until || !is_needed);
        if ends {
            self.stage = Stage::Clearing;
        }
        ends
    }

    /// What the kernel is to hold from now on, which holds what is `there`, and of which this run wants what is `wanted`.
    /// `leads` says whether packets to an address may go on by a nexthop that was left.
    pub fn target(
        &mut self,
        there: &Objects,
        wanted: Objects,
        leads: impl Fn(IpAddr, &Nexthop) -> bool,
    ) -> Target {
        let clears_left = self.stage != Stage::Done;
        let objects = match self.stage {
            Stage::UnderWay(_) => taking_over(there, &wanted, &self.left, leads),
            Stage::Clearing | Stage::Done => {
                self.stage = Stage::Done;
                wanted
            }
        };
        Target { objects, clears_left }
    }
}

/// What a kernel is to hold until this run has proved its own ways: what it holds already, and what is `wanted` of it; where
/// both have an object of the same key, the wanted one counts.
///
/// Some of the earlier run's ways are removed at once: those to an address that leads nowhere, as `leads` says,
/// and those to neighbours that were `left` and are others now. Nothing watches these ways, so nobody would
/// notice that they carry nothing, or lead elsewhere than they did. Without any other way to a host, the kernel
/// sends nothing to it any more.
fn taking_over(
    there: &Objects,
    wanted: &Objects,
    left: &LeftNeighbours,
    leads: impl Fn(IpAddr, &Nexthop) -> bool,
) -> Objects {
    let mut kept = there.clone();
    let mut destinations: BTreeMap<GroupId, Vec<IpAddr>> = BTreeMap::new();
    for (key, route) in &there.routes {
        if let Route::Group { group, .. } = route {
            destinations.entry(*group).or_default().push(key.to.ip);
        }
    }
    kept.nexthops.retain(|_, nexthop| !left.is_other_in(wanted, nexthop.interface()));
    for (group, members) in &mut kept.groups {
        let to = destinations.get(group).map_or(&[][..], Vec::as_slice);
        let stays = |nexthop: &Nexthop| to.iter().all(|&to| leads(to, nexthop));
        members.retain(|member| kept.nexthops.get(member).is_some_and(stays));
    }
    kept.groups.retain(|_, members| !members.is_empty());
    let grouped: BTreeSet<_> = kept.groups.values().flatten().copied().collect();
    kept.nexthops.retain(|id, _| grouped.contains(id));
    kept.routes.retain(|_, route| match route {
        Route::Group { group, .. } => kept.groups.contains_key(group),
        Route::Gateway { .. }
        | Route::Link { .. }
        | Route::Strip { .. }
        | Route::StripAndLeave { .. }
        | Route::DeliverV4 { .. }
        | Route::DeliverV6 { .. } => true,
    });
    kept.extend(wanted.clone());
    kept
}

/// The number from which a run numbers its nexthops and groups, so that it reuses none of those that are `there` when it starts:
/// the first of a quarter of all numbers of which none is in use. One run may have crashed before it had taken away what
/// another had left, so there may be several quarters in use.
pub fn first_free_number(there: &Objects) -> u32 {
    /// Two ids belong to each number, one for each version of IP.
    const QUARTER: u32 = GroupId::PASSING / 2 / 4;
    let groups = there.groups.keys().map(|id| id.of_own().0);
    let used: BTreeSet<u32> =
        there.nexthops.keys().map(|id| id.0).chain(groups).map(|id| id / 2 / QUARTER).collect();
    (0..4).find(|quarter| !used.contains(quarter)).unwrap_or(0) * QUARTER
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;
    use crate::object::{IpPrefix, NexthopId, RouteKey, Table};
    use crate::segments::{NEIGHBOUR, NEIGHBOUR_V4};

    /// Routes to hosts of these numbers, each with a group of its own, whose nexthops leave by these interfaces.
    fn routes(hosts: &[(u16, &[u32])]) -> Objects {
        let mut objects = Objects::default();
        for &(host, interfaces) in hosts {
            let id = |interface: u32| NexthopId(u32::from(host) * 100 + interface);
            for &interface in interfaces {
                let segments = vec![Ipv6Addr::LOCALHOST];
                objects.nexthops.insert(id(interface), Nexthop::Segments { interface, segments });
            }
            let group = GroupId(host.into());
            objects.groups.insert(group, interfaces.iter().map(|&interface| id(interface)).collect());
            let to = IpPrefix::host(IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, host]));
            let route = Route::Group { group, source: None, mtu: 1500 };
            objects.routes.insert(RouteKey { table: Table::Main, to }, route);
        }
        objects
    }

    /// Who is behind each of these interfaces, by the number of the neighbour's address.
    fn neighbours(of: &[(u32, u32)]) -> Objects {
        let neighbour = |&(interface, mac)| ((interface, NEIGHBOUR.into()), Mac::from_position(mac));
        Objects { neighbours: of.iter().map(neighbour).collect(), ..Objects::default() }
    }

    fn nobody() -> LeftNeighbours {
        LeftNeighbours::default()
    }

    #[test]
    fn what_an_earlier_run_left_stays_but_ways_that_lead_there_no_more() {
        let left = routes(&[(1, &[10, 11]), (2, &[10]), (3, &[11])]);
        assert_eq!(taking_over(&left, &Objects::default(), &nobody(), |_, _| true), left);
        let taken_over =
            taking_over(&left, &Objects::default(), &nobody(), |_, nexthop| nexthop.interface() != 10);
        assert_eq!(taken_over, routes(&[(1, &[11]), (3, &[11])]));
        let first = IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1]);
        let taken_over = taking_over(&left, &Objects::default(), &nobody(), |to, nexthop| {
            to != first || nexthop.interface() == 10
        });
        assert_eq!(taken_over, routes(&[(1, &[10]), (2, &[10]), (3, &[11])]));
    }

    #[test]
    fn what_leaves_by_a_cable_that_leads_to_another_neighbour_now_goes() {
        let mut there = routes(&[(1, &[10, 11]), (2, &[10]), (3, &[12])]);
        there.extend(neighbours(&[(10, 1), (11, 2), (12, 3)]));
        let left = LeftNeighbours::of(&there);
        // The neighbour at the third cable has not been heard yet.
        let wanted = neighbours(&[(10, 7), (11, 2)]);
        let mut expected = routes(&[(1, &[11]), (3, &[12])]);
        expected.extend(neighbours(&[(10, 7), (11, 2), (12, 3)]));
        assert_eq!(taking_over(&there, &wanted, &left, |_, _| true), expected);
        // A neighbour that has one more address now is no other.
        let more = ((11, NEIGHBOUR_V4.into()), Mac::from_position(2));
        let mut with_more = wanted.clone();
        with_more.neighbours.extend([more]);
        let mut taken_over = taking_over(&there, &with_more, &left, |_, _| true);
        assert_eq!(taken_over.neighbours.remove(&more.0), Some(more.1));
        assert_eq!(taken_over, expected);
        // The same holds once the kernel was told of the new neighbour.
        there.extend(wanted.clone());
        assert_eq!(taking_over(&there, &wanted, &left, |_, _| true), expected);
    }

    #[test]
    fn what_is_wanted_counts_wherever_it_leads() {
        let (left, wanted) = (routes(&[(1, &[10]), (2, &[11])]), routes(&[(1, &[12])]));
        let mut expected = routes(&[(2, &[11])]);
        expected.extend(wanted.clone());
        let taken_over = taking_over(&left, &wanted, &nobody(), |_, nexthop| nexthop.interface() == 11);
        assert_eq!(taken_over, expected);
    }

    #[test]
    fn what_was_left_goes_once_nobody_needs_it_or_its_time_is_over() {
        let (left, wanted) = (routes(&[(1, &[10]), (2, &[11])]), routes(&[(1, &[12])]));
        let target = |taking_over: &mut TakingOver| {
            let Target { objects, clears_left } = taking_over.target(&left, wanted.clone(), |_, _| true);
            (objects == wanted, clears_left)
        };
        let begun = TakingOver::begin(Instant::ZERO, &left);
        let mut all_is_proved = begun.clone();
        assert_eq!(target(&mut all_is_proved), (false, true));
        assert!(!all_is_proved.look(Instant::ZERO, true));
        assert_eq!((target(&mut all_is_proved), all_is_proved.is_under_way()), ((false, true), true));
        assert!(all_is_proved.look(Instant::ZERO, false) && !all_is_proved.look(Instant::ZERO, false));
        assert!(!all_is_proved.is_under_way() && !all_is_proved.is_done());
        assert_eq!([target(&mut all_is_proved), target(&mut all_is_proved)], [(true, true), (true, false)]);
        assert!(all_is_proved.is_done());
        let mut late = begun;
        assert!(late.look(Instant::ZERO + TAKE_OVER_WITHIN, true));
        assert_eq!([target(&mut late), target(&mut late)], [(true, true), (true, false)]);
        let mut nothing_left = TakingOver::begin(Instant::ZERO, &Objects::default());
        assert_eq!((target(&mut nothing_left), nothing_left.is_under_way()), ((true, false), false));
    }

    #[test]
    fn numbers_begin_where_no_run_before_has_left_any() {
        let holding = |numbers: &[u32]| Objects {
            groups: numbers
                .iter()
                .map(|number| (GroupId(2 * number + 1).of_passing(), Vec::<NexthopId>::new()))
                .collect(),
            ..Objects::default()
        };
        assert_eq!(first_free_number(&Objects::default()), 0);
        let second = first_free_number(&holding(&[5]));
        let third = first_free_number(&holding(&[5, second]));
        assert!(second > 5 && third > second, "{second} {third}");
        // The first run's are taken away by then.
        assert_eq!(first_free_number(&holding(&[second, third])), 0);
    }
}
