//! Which hosts connections are looked up anew to.

use mapper_fib::{Change, GroupId, NexthopId};

use super::super::destination::Destination;
use super::*;

#[test]
fn of_many_hosts_all_have_their_turn_to_be_looked_up_anew() {
    const HOSTS: u32 = 150;
    let mut kernel = KernelPath::new(0, 0, TAP, 11);
    for host in 0..HOSTS {
        let mut destination = Destination::new(host, host);
        let id = NexthopId(2 * host);
        let nexthop = Nexthop::Gateway { interface: 1, gateway: segments::NEIGHBOUR_V4.into() };
        destination.installed.nexthops.insert(id, nexthop);
        destination.installed.groups.insert(GroupId(2 * host), vec![id]);
        kernel.destinations.insert(Mac::from_position(host), destination);
    }
    // Each host is sent packets all the while, and counts are far apart, so that all may be looked up anew at each.
    let mut refreshed = BTreeSet::new();
    for count in 1..=3u64 {
        let now = Instant::ZERO + Duration::from_millis(400) * count as u32;
        let counts = (0..HOSTS).map(|host| (NexthopId(2 * host), count)).collect();
        assert!(!kernel.count(now, &counts), "they have no ways");
        let changes = kernel.take_changes();
        assert!(changes.len() <= 64, "each costs the kernel some messages");
        refreshed.extend(changes.into_iter().filter_map(|change| match change {
            Change::PutGroup(group, _) => Some(group),
            _ => None,
        }));
    }
    assert_eq!(refreshed.len(), HOSTS as usize);
}
