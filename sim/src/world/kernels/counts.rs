//! What a kernel counts of the packets that it sends, by which its host finds out which ways are used.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use mapper_fib::{Change, IpPrefix, NexthopId, Objects, Route, RouteKey, Table, changes};
use mapper_proto::Instant;

/// What one kernel counts. Linux looks up once where packets of a connection go, until something in its tables changes, and
/// only what is looked up is counted.
#[derive(Debug)]
pub(super) struct Counts {
    /// Whether it counts at all: Linux before 6.9 does not.
    is_counting: bool,
    /// The packets that each nexthop took since it was made, or since a group with it was put.
    packets: BTreeMap<NexthopId, u64>,
    /// The connections that were looked up since something changed, each by its destination and the number of its flow.
    looked_up: BTreeSet<(IpAddr, usize)>,
    /// When the daemon counts next.
    pub(super) at: Instant,
}

impl Counts {
    /// The counts of a kernel that has sent nothing yet.
    pub(super) const fn new(is_counting: bool) -> Self {
        Self { is_counting, packets: BTreeMap::new(), looked_up: BTreeSet::new(), at: Instant::ZERO }
    }

    /// What the daemon reads: nothing from a kernel that does not count, which its host takes to use all its ways.
    pub(super) fn read(&self, objects: &Objects) -> BTreeMap<NexthopId, u64> {
        let members =
            objects.groups.iter().filter(|(group, _)| !group.is_of_passing()).flat_map(|(_, ids)| ids);
        let count = |id: &NexthopId| (*id, self.packets.get(id).copied().unwrap_or_default());
        members.filter(|_| self.is_counting).map(count).collect()
    }

    /// Takes in that the kernel's objects change.
    pub(super) fn apply(&mut self, change: &Change) {
        self.looked_up.clear();
        match change {
            Change::PutGroup(group, members) if !group.is_of_passing() => {
                self.packets.retain(|id, _| !members.contains(id));
            }
            Change::RemoveNexthop(id) => self.packets.retain(|of, _| of != id),
            _ => {}
        }
    }

    /// Takes in that the kernel holds other objects now.
    pub(super) fn replace(&mut self, before: &Objects, after: &Objects) {
        changes(before, after).iter().for_each(|change| self.apply(change));
    }

    /// Takes in that the machine itself sends a packet of a user to an address. Half of all flows are connections. Whether the number
    /// of a flow is odd decides the version of IP.
    pub(super) fn sent(&mut self, objects: &Objects, to: IpAddr, flow: usize) {
        let is_connection = (flow / 2).is_multiple_of(2);
        if !is_connection || self.looked_up.insert((to, flow)) {
            self.look_up(objects, to, flow);
        }
    }

    /// Takes in that the machine answers a probe. Those of IPv4 are looked up as what passes if there is a route for that.
    pub(super) fn answered(&mut self, objects: &Objects, to: IpAddr) {
        let passing = RouteKey { table: Table::Passing, to: IpPrefix::host(to) };
        if to.is_ipv6() || !objects.routes.contains_key(&passing) {
            self.look_up(objects, to, 0);
        }
    }

    /// Takes in that a packet of a user passes by its destination. Those of IPv6 have a table of their own, which is not counted.
    pub(super) fn passed(&mut self, objects: &Objects, to: IpAddr, flow: usize) {
        if to.is_ipv4() {
            self.look_up(objects, to, flow);
        }
    }

    fn look_up(&mut self, objects: &Objects, to: IpAddr, flow: usize) {
        let key = RouteKey { table: Table::Main, to: IpPrefix::host(to) };
        let Some(Route::Group { group, .. }) = objects.routes.get(&key) else { return };
        let Some(members) = objects.groups.get(group).filter(|members| !members.is_empty()) else { return };
        *self.packets.entry(members[flow % members.len()]).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use mapper_fib::segments::NEIGHBOUR;
    use mapper_fib::{GroupId, Nexthop};

    use super::*;

    #[test]
    fn connections_are_counted_once_until_something_changes_and_all_else_each_time() {
        let (to, group): (IpAddr, _) = ([10, 77, 0, 2].into(), GroupId(0));
        let mut objects = Objects::default();
        let nexthop = Nexthop::Gateway { interface: 10, gateway: NEIGHBOUR.into() };
        objects.nexthops.insert(NexthopId(0), nexthop);
        objects.groups.insert(group, vec![NexthopId(0)]);
        let key = RouteKey { table: Table::Main, to: IpPrefix::host(to) };
        objects.routes.insert(key, Route::Group { group, source: None, mtu: 1500 });
        let mut counts = Counts::new(true);
        let told = |counts: &Counts| counts.read(&objects).into_values().next();
        for expected in [1, 1] {
            counts.sent(&objects, to, 4);
            assert_eq!(told(&counts), Some(expected), "a connection");
        }
        for expected in [2, 3] {
            counts.sent(&objects, to, 6);
            assert_eq!(told(&counts), Some(expected));
        }
        counts.apply(&Change::PutGroup(group, vec![NexthopId(0)]));
        assert_eq!(told(&counts), Some(0), "the group is put in the place of itself");
        for _ in 0..2 {
            counts.sent(&objects, to, 4);
            assert_eq!(told(&counts), Some(1), "it is looked up anew");
        }
        counts.replace(&objects, &Objects::default());
        assert_eq!(told(&counts), Some(0));
        assert_eq!(Counts::new(false).read(&objects), BTreeMap::new());
    }
}
