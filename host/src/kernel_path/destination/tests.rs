use mapper_fib::segments;
use mapper_fib::{GroupId, Nexthop};

use super::*;

/// A destination whose packets take the nexthops of IPv4 and IPv6 numbered 4 and 5, by their destination.
fn destination() -> KernelDestination {
    let mut destination = KernelDestination::new(0, 0);
    for id in [4, 5] {
        let nexthop = Nexthop::Gateway { interface: 1, gateway: segments::NEIGHBOUR.into() };
        destination.installed.nexthops.insert(NexthopId(id), nexthop);
        destination.installed.groups.insert(GroupId(id - 4), vec![NexthopId(id)]);
    }
    destination
}

#[test]
fn answers_that_no_nexthop_counted_hide_no_packet_that_is_counted_later() {
    let mut destination = destination();
    let mut count = |answers: u64, packets: u64, now: Instant| {
        for is_v6 in [false, true] {
            (0..answers).for_each(|_| destination.answer(is_v6));
        }
        destination.count(now, &BTreeMap::from([4, 5].map(|id| (NexthopId(id), packets))));
        destination.is_used(now)
    };
    let (second, start) = (Duration::from_secs(1), Instant::ZERO);
    assert!(!count(40, 0, start), "the answers went by the tap interface");
    assert!(!count(3, 3, start + second), "all that was sent answers probes");
    assert!(count(1, 5, start + 2 * second), "one of two packets is a user's");
    assert!(!count(0, 5, start + 4 * second), "nothing was sent for longer than a use counts");
}

#[test]
fn answers_before_a_group_was_put_hide_no_packet_behind_it() {
    let (mut destination, start) = (destination(), Instant::ZERO);
    let count = |packets: u64| BTreeMap::from([(NexthopId(4), 0), (NexthopId(5), packets)]);
    (0..3).for_each(|_| destination.answer(true));
    destination.count(start, &count(3));
    assert!(!destination.is_used(start), "all that was sent answers probes");
    (0..3).for_each(|_| destination.answer(true));
    destination.counts_begin_anew(GroupId(1), &[NexthopId(5)]);
    destination.answer(true);
    destination.count(start, &count(2));
    assert!(destination.is_used(start), "one of two packets is a user's");
}

#[test]
fn what_the_kernel_looks_up_once_for_a_connection_is_looked_up_anew_while_the_host_is_in_use() {
    let mut destination = destination();
    let group = [NexthopId(4)];
    destination.installed.groups = BTreeMap::from([(GroupId(0), group.to_vec())]);
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    let mut count = |ms, packets| {
        let counts = BTreeMap::from([(NexthopId(4), packets)]);
        destination.count(at(ms), &counts);
        let changes = destination.refresh(at(ms));
        (destination.is_used(at(ms)), changes.len(), destination.counted.total(NexthopId(4)))
    };
    assert_eq!(count(0, 0), (false, 0, 0), "nobody sends anything");
    assert_eq!(count(100, 1), (true, 1, 1), "a connection begins");
    // The group that was put in the place of itself counts from 0, and the connection is looked up once more.
    assert_eq!(count(200, 1), (true, 0, 2), "it was looked up just now");
    assert_eq!(count(600, 1), (true, 1, 2), "it may go on without being counted");
    assert_eq!(count(1000, 0), (true, 1, 2), "it may be hidden by an answer to a probe");
    assert_eq!(count(1300, 0), (false, 0, 2));
    assert_eq!(count(9000, 1), (true, 1, 3), "it goes on, and had to be looked up for that");
    assert_eq!(count(9400, 2), (true, 1, 5), "two others begin");
}
