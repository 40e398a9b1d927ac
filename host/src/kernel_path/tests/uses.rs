//! Which hosts connections are looked up anew to.

use mapper_fib::{Change, GroupId, NexthopId};

use super::super::destination::KernelDestination;
use super::super::next_count_after;
use super::*;

#[test]
fn many_nexthops_are_counted_less_often_and_unused_ones_too() {
    let ms = |any_is_used, nexthops| next_count_after(any_is_used, nexthops).as_millis();
    assert_eq!([ms(true, 0), ms(true, 256), ms(true, 257), ms(true, 1_000_000)], [100, 100, 200, 500]);
    assert_eq!([ms(false, 0), ms(false, 256), ms(false, 257)], [250, 250, 500]);
}

#[test]
fn of_many_hosts_all_have_their_turn_to_be_looked_up_anew() {
    const HOSTS: u32 = 150;
    let mut kernel = KernelPath::new(0, 0, TAP, 11);
    for host in 0..HOSTS {
        let mut destination = KernelDestination::new(host, host);
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

#[test]
fn a_connection_is_seen_again_though_an_answer_to_a_probe_hid_it() {
    let (mac, id) = (Mac::from_position(1), NexthopId(1));
    let mut kernel = KernelPath::new(0, 0, TAP, 11);
    let mut destination = KernelDestination::new(1, 0);
    let nexthop = Nexthop::Gateway { interface: 1, gateway: segments::NEIGHBOUR.into() };
    destination.installed.nexthops.insert(id, nexthop);
    destination.installed.groups.insert(GroupId(1), vec![id]);
    kernel.destinations.insert(mac, destination);
    let count_at = |ms, packets, kernel: &mut KernelPath| {
        kernel.count(Instant::ZERO + Duration::from_millis(ms), &BTreeMap::from([(id, packets)]));
        kernel.take_changes().len()
    };
    assert_eq!(count_at(500, 1, &mut kernel), 1, "it is looked up anew");
    // What the answer itself was counted for is gone with the group that was replaced a moment later.
    kernel.destinations.get_mut(&mac).unwrap().answer(true);
    assert_eq!(count_at(600, 1, &mut kernel), 0);
    assert_eq!(count_at(900, 1, &mut kernel), 1, "it is looked up anew once more");
    count_at(1000, 1, &mut kernel);
    let is_used =
        |ms, kernel: &KernelPath| kernel.used(Instant::ZERO + Duration::from_millis(ms)).next().is_some();
    assert!(is_used(1900, &kernel), "the packet that was counted then");
    // Nobody sends any more.
    for ms in [1300, 1700, 2100, 2500] {
        count_at(ms, 0, &mut kernel);
    }
    assert!(!is_used(2500, &kernel));
    assert_eq!(count_at(2900, 0, &mut kernel), 0, "and nothing is looked up anew");
}
