//! What is installed is what is read back, and nothing of others is touched.

use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use mapper_fib::crossbar::{CabledPort, rules_of_passing};
use mapper_fib::segments::{Element, NEIGHBOUR, NEIGHBOUR_V4, Packing};
use mapper_fib::{
    Change, GroupId, IpPrefix, Nexthop, NexthopId, Objects, Route, RouteKey, Rule, Table, changes,
};

use crate::can_make_namespaces;
use crate::machines::{Machine, ports, routes_to, settled};

/// A machine with two cables to another, and its two ports.
pub(crate) fn two_machines() -> (Machine, Machine, Vec<CabledPort>) {
    let (machine, other) = (Machine::new(1), Machine::new(2));
    let mut cabled = Vec::new();
    for port in 0..2 {
        let name = format!("e{port}");
        machine.cable(&name, &other, &name);
        cabled.push(machine.port(port, &name, (&other, port, &name)));
    }
    (machine, other, cabled)
}

/// An object of every kind: all that a crossbar has, routes of several segments and of one, in groups of one and
/// of several, and plain routes.
pub(crate) fn one_of_every_kind(
    machine: &Machine,
    other: &Machine,
    cabled: &[CabledPort],
    packing: Packing,
) -> Objects {
    let mut objects = ports(machine, cabled, packing);
    let long: Vec<_> = [Element::FirstPort(1)].into_iter().chain((0..14).map(Element::Port)).collect();
    let ways = [vec![Element::FirstPort(0)], long];
    objects.extend(routes_to(machine, other, 1, cabled[0].interface, &ways, packing));
    let id = NexthopId(4000);
    objects
        .nexthops
        .insert(id, Nexthop::Gateway { interface: cabled[1].interface, gateway: NEIGHBOUR.into() });
    objects.groups.insert(GroupId(4000), vec![id]);
    for (to, source) in [("10.9.0.0", None), ("fd09::", Some(machine.v6.into()))] {
        let to: IpAddr = to.parse().unwrap();
        let key = RouteKey { table: Table::Main, to: IpPrefix { ip: to, bits: 16 } };
        objects.routes.insert(key, Route::Group { group: GroupId(4000), source, mtu: 0 });
    }
    let of_v4 = Nexthop::Gateway { interface: cabled[1].interface, gateway: NEIGHBOUR_V4.into() };
    objects.nexthops.insert(NexthopId(4002), of_v4);
    objects.groups.insert(GroupId(4002), vec![NexthopId(4002)]);
    let key = RouteKey { table: Table::Main, to: IpPrefix { ip: [10, 7, 0, 0].into(), bits: 16 } };
    objects.routes.insert(key, Route::Group { group: GroupId(4002), source: None, mtu: 1400 });
    let key = RouteKey { table: Table::Main, to: IpPrefix::host([10, 8, 0, 1].into()) };
    let gateway = Route::Gateway { interface: cabled[1].interface, gateway: NEIGHBOUR };
    objects.routes.insert(key, gateway);
    for to in [IpAddr::from(other.v4), other.v6.into()] {
        let key = RouteKey { table: Table::TooLong, to: IpPrefix::host(to) };
        let interface = machine.interface("fabric0").index;
        objects.routes.insert(key, Route::Link { interface, source: None, mtu: 1317 });
    }
    let key = RouteKey { table: Table::Main, to: IpPrefix::host([10, 9, 0, 1].into()) };
    let interface = machine.interface("fabric0").index;
    objects.routes.insert(key, Route::Link { interface, source: Some(machine.v4.into()), mtu: 0 });
    objects.rules.insert(Rule::TooLong);
    let group = GroupId(4000).of_passing();
    objects.groups.insert(group, vec![id]);
    let key = RouteKey { table: Table::Passing, to: IpPrefix::host(other.v6.into()) };
    objects.routes.insert(key, Route::Group { group, source: None, mtu: 1400 });
    objects.rules.extend(rules_of_passing(cabled));
    objects.marked_above = Some(1380);
    objects
}

#[test]
fn every_kind_of_object_is_read_back_as_it_was_installed() {
    if !can_make_namespaces() {
        return;
    }
    let (mut machine, other, cabled) = two_machines();
    for packing in [Packing::Compressed, Packing::Full] {
        let wanted = one_of_every_kind(&machine, &other, &cabled, packing);
        machine.install(&wanted);
        assert_eq!(machine.kernel.dump().unwrap(), wanted);
        // To install the same objects once more is no error, and changes nothing.
        let again = changes(&Objects::default(), &wanted);
        assert!(machine.kernel.apply(&again).is_empty());
        assert_eq!(machine.kernel.dump().unwrap(), wanted);
        // Routes that are put again with another MTU take the places of those before.
        let mut longer = wanted.clone();
        for route in longer.routes.values_mut() {
            if let Route::Link { mtu, .. } = route {
                *mtu = 8917;
            }
        }
        assert!(machine.kernel.apply(&changes(&wanted, &longer)).is_empty());
        assert_eq!(machine.kernel.dump().unwrap(), longer);
    }
    assert!(machine.kernel.remove_all_of_ours().unwrap().is_empty());
    assert!(machine.kernel.dump().unwrap().is_empty());
}

#[test]
fn what_is_replaced_is_as_it_was_to_be_and_what_goes_is_gone() {
    if !can_make_namespaces() {
        return;
    }
    let (mut machine, other, cabled) = two_machines();
    let before = one_of_every_kind(&machine, &other, &cabled, Packing::Compressed);
    machine.install(&before);
    let mut after = before.clone();
    let ids: Vec<_> = after.nexthops.keys().copied().collect();
    // A way on by segments is replaced by a plain one, and the other way round.
    let plain = Nexthop::Gateway { interface: cabled[0].interface, gateway: NEIGHBOUR.into() };
    after.nexthops.insert(ids[0], plain);
    let segments = Nexthop::Segments { interface: cabled[0].interface, segments: vec![Ipv6Addr::LOCALHOST] };
    after.nexthops.insert(NexthopId(4000), segments.clone());
    after.nexthops.insert(NexthopId(4002), segments);
    after.groups.insert(GroupId(2), ids.clone());
    after.groups.insert(GroupId(3), vec![ids[1]]);
    after.rules.pop_first();
    after.marked_above = Some(1420);
    after.neighbours.pop_last();
    machine.install(&after);
    assert_eq!(machine.kernel.dump().unwrap(), after);
    machine.install(&before);
    assert_eq!(machine.kernel.dump().unwrap(), before);
}

/// What `ip` prints of all tables.
pub(crate) fn printed(machine: &Machine) -> String {
    let mut all = String::new();
    for words in
        ["-4 route show table all", "-6 route show table all", "-4 rule", "-6 rule", "nexthop", "neigh"]
    {
        let output = machine.namespace.command_line(&format!("ip {words}")).output().unwrap();
        assert!(output.status.success(), "{words}");
        all += &String::from_utf8(output.stdout).unwrap();
    }
    all
}

#[test]
fn nothing_of_others_is_read_replaced_or_removed() {
    if !can_make_namespaces() {
        return;
    }
    let (mut machine, other, cabled) = two_machines();
    let wanted = one_of_every_kind(&machine, &other, &cabled, Packing::Compressed);
    // Others' routes have the same destinations, tables and interfaces as ours, and their nexthops numbers close by.
    for words in [
        format!("route add {}/32 dev e0", other.v4),
        format!("-6 route add {}/128 dev e0", other.v6),
        "-6 route add fcbb:bb00:1::/48 dev e1 table 28001 metric 7".to_owned(),
        "nexthop add id 7 dev e0".to_owned(),
        "nexthop add id 8 group 7".to_owned(),
        "route add 10.77.0.0/16 nhid 8".to_owned(),
        "-6 rule add iif e0 to fcbb:bb00::/32 lookup 77 priority 109".to_owned(),
        "-6 neigh add fe80::77 lladdr 02:00:00:00:00:77 dev e0 nud permanent".to_owned(),
    ] {
        machine.namespace.ip(&words);
    }
    // Addresses that the kernel makes itself have to be there first.
    settled(&machine);
    let before = printed(&machine);
    assert!(machine.kernel.dump().unwrap().is_empty());
    machine.install(&wanted);
    assert!(machine.kernel.remove_all_of_ours().unwrap().is_empty());
    assert_eq!(printed(&machine), before);
}

#[test]
fn rules_of_ipv4_that_an_older_version_left_are_taken_away_and_those_of_others_are_not() {
    if !can_make_namespaces() {
        return;
    }
    let mut machine = Machine::new(1);
    for words in [
        "-4 rule add fwmark 0x6d61 lookup 28002 priority 109",
        "-4 rule add to 10.9.0.0/16 lookup 28002 priority 110 protocol static",
        "-4 route add 10.9.0.1/32 dev lo table 28002",
        "-4 route add 10.9.0.2/32 dev lo table 77 proto 109",
    ] {
        machine.namespace.ip(words);
    }
    settled(&machine);
    let before = printed(&machine);
    assert_eq!(machine.kernel.remove_what_older_versions_left().unwrap(), 0);
    for words in [
        "-4 rule add fwmark 0x6d61 lookup 28002 priority 109 protocol 109",
        "-4 rule add from 10.8.0.0/16 iif lo ipproto udp lookup 28002 priority 111 protocol 109",
        "-4 route add 10.9.0.1/32 dev lo table 28002 proto 109 metric 28001",
        "-4 route add 10.9.0.3/32 dev lo table 28002 proto 109 metric 28001",
    ] {
        machine.namespace.ip(words);
    }
    assert_ne!(printed(&machine), before);
    assert_eq!(machine.kernel.remove_what_older_versions_left().unwrap(), 4);
    assert_eq!(printed(&machine), before);
}

#[test]
fn to_remove_what_is_not_there_is_no_error() {
    if !can_make_namespaces() {
        return;
    }
    let (mut machine, other, cabled) = two_machines();
    let never = one_of_every_kind(&machine, &other, &cabled, Packing::Compressed);
    assert!(machine.kernel.apply(&changes(&never, &Objects::default())).is_empty());
    machine.install(&never);
    machine.namespace.ip("link delete e0");
    machine.namespace.ip("link delete e1");
    assert!(machine.kernel.apply(&changes(&never, &Objects::default())).is_empty());
    assert!(machine.kernel.dump().unwrap().is_empty());
}

#[test]
fn what_the_kernel_refuses_is_named_and_the_rest_holds() {
    if !can_make_namespaces() {
        return;
    }
    let (mut machine, _other, cabled) = two_machines();
    let interface = cabled[0].interface;
    let put = |id, interface| {
        Change::PutNexthop(NexthopId(id), Nexthop::Gateway { interface, gateway: NEIGHBOUR.into() })
    };
    // The refused changes stand among many others, as changes are sent many at a time.
    let mut wanted: Vec<_> = (0..1000).map(|id| put(id, interface)).collect();
    for at in [0, 127, 128, 500, 999] {
        wanted[at] = put(at as u32, 9999);
    }
    let failed = machine.kernel.apply(&wanted);
    assert_eq!(failed.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 127, 128, 500, 999]);
    let text = failed[1].1.to_string();
    assert!(text.starts_with("the kernel refused nexthop id 1828716671"), "{text}");
    assert_eq!(machine.kernel.dump().unwrap().nexthops.len(), 995);
    // The kernel refuses every one of these, and so its answers are as long as can be.
    let none: Vec<_> = (0..1000).map(|id| put(id, 9999)).collect();
    assert_eq!(machine.kernel.apply(&none).len(), 1000);
}

#[test]
fn what_the_kernel_takes_away_with_a_carrier_is_seen_by_reading_back_and_can_be_put_again() {
    if !can_make_namespaces() {
        return;
    }
    let (mut machine, other, cabled) = two_machines();
    let wanted = one_of_every_kind(&machine, &other, &cabled, Packing::Compressed);
    machine.install(&wanted);
    // All ways of these groups leave by that port.
    let leaves = |nexthop: &Nexthop| nexthop.interface() == cabled[0].interface;
    other.namespace.ip("link set e0 down");
    let left = read_until(&mut machine, |there| !there.nexthops.values().any(leaves));
    assert!(wanted.nexthops.values().any(leaves));
    assert!(!left.groups.contains_key(&GroupId(2)) && left.groups.contains_key(&GroupId(4000)), "{left:?}");
    let route = RouteKey { table: Table::Main, to: IpPrefix::host(other.v4.into()) };
    assert!(!left.routes.contains_key(&route), "{left:?}");
    other.namespace.ip("link set e0 up");
    // The kernel takes such a nexthop only when it has seen the carrier itself.
    let missing = changes(&left, &wanted);
    let started = Instant::now();
    while !machine.kernel.apply(&missing).is_empty() {
        assert!(started.elapsed() < Duration::from_secs(60), "the kernel sees no carrier");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(machine.kernel.dump().unwrap(), wanted);
}

/// Reads back until it is so.
fn read_until(machine: &mut Machine, is_so: impl Fn(&Objects) -> bool) -> Objects {
    let started = Instant::now();
    loop {
        let there = machine.kernel.dump().unwrap();
        if is_so(&there) {
            return there;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{there:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn outer_headers_come_from_the_fabrics_address_unless_somebody_has_chosen_another() {
    if !can_make_namespaces() {
        return;
    }
    let mut machine = Machine::new(1);
    if !mapper_needs::or_skip(machine.abilities().segments, "a kernel with SRv6") {
        return;
    }
    let Machine { namespace, kernel, v6: own, .. } = &mut machine;
    let now = || {
        let output = namespace.command_line("ip sr tunsrc show").output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    kernel.keep_outer_source(*own).unwrap();
    assert_eq!(now(), format!("tunsrc addr {own}"));
    kernel.release_outer_source(*own).unwrap();
    assert_eq!(now(), "tunsrc addr ::");
    // A run that crashed had another address, which no interface has any more.
    namespace.ip("sr tunsrc set fd00:6d61::99");
    kernel.keep_outer_source(*own).unwrap();
    assert_eq!(now(), format!("tunsrc addr {own}"));
    // The address of another fabric's daemon on this machine stays.
    namespace.ip("addr add fd00:6d61::88/64 dev fabric0 nodad");
    namespace.ip("sr tunsrc set fd00:6d61::88");
    kernel.keep_outer_source(*own).unwrap();
    assert_eq!(now(), "tunsrc addr fd00:6d61::88");
    namespace.ip("sr tunsrc set fd00::5");
    kernel.keep_outer_source(*own).unwrap();
    kernel.release_outer_source(*own).unwrap();
    assert_eq!(now(), "tunsrc addr fd00::5");
}
