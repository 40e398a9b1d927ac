//! How long the kernel takes to hold, tell and change what a large fabric needs: 1,000 destinations with 8 routes
//! each, for IPv4 and IPv6.
//!
//! `cargo bench -p mapper-machine --bench kernel_tables` as root, on a machine that does nothing else. The tables
//! are those of a network namespace of its own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a bench fails by panicking, and prints what it measured"
)]

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Instant;

use mapper_fib::segments::{Element, Packing, segments};
use mapper_fib::{Change, GroupId, IpPrefix, Nexthop, NexthopId, Objects, Route, RouteKey, Table, changes};
use mapper_machine::kernel::Kernel;
use mapper_machine::link::interface::Interface;
use mapper_machine::sysctl::{ForwardingNeeds, KeptSettings};

#[allow(unreachable_pub, dead_code, reason = "the tests use all of it")]
#[path = "../../tests/on_the_wire/namespace.rs"]
mod namespace;

const DESTINATIONS: u32 = 1000;
const ROUTES: u32 = 8;

fn main() {
    let root = mapper_needs::root() && mapper_needs::programs(&["ip"]);
    if root {
        let namespace = namespace::Namespace::new();
        for words in
            ["link set lo up", "link add e0 type veth peer name e1", "link set e0 up", "link set e1 up"]
        {
            namespace.ip(words);
        }
        let interfaces = ["e0", "e1"];
        namespace.enter(|| {
            let dir = tempfile::tempdir().unwrap();
            let mut settings = KeptSettings::open(&dir.path().join("settings.json")).unwrap();
            let needs = ForwardingNeeds {
                ports: BTreeMap::new(),
                tap: None,
                forwards: false,
                force_forwarding: false,
            };
            assert!(settings.keep(&needs).is_empty());
            let index = |name| Interface::look_up(name).unwrap().unwrap().index;
            measure(&mut Kernel::open().unwrap(), interfaces.map(index));
        });
    }
}

fn measure(kernel: &mut Kernel, interfaces: [u32; 2]) {
    let wanted = objects(interfaces);
    println!(
        "{} nexthops in {} groups, for {} routes",
        wanted.nexthops.len(),
        wanted.groups.len(),
        wanted.routes.len()
    );
    timed(kernel, "install all", &changes(&Objects::default(), &wanted));
    let started = Instant::now();
    assert_eq!(kernel.dump().unwrap(), wanted);
    println!("{:40} {:8.1} ms", "read all back", started.elapsed().as_secs_f64() * 1e3);

    let mut mended = wanted.clone();
    for (id, members) in mended.groups.iter_mut().filter(|(id, _)| id.0 % 2 == 0) {
        members.retain(|member| member.0 % ROUTES != id.0 % ROUTES);
    }
    timed(kernel, "1,000 groups lose a member", &changes(&wanted, &mended));
    timed(kernel, "1,000 groups get it back", &changes(&mended, &wanted));

    let mut mended = wanted.clone();
    for (_, nexthop) in mended.nexthops.iter_mut().filter(|(id, _)| id.0 % 16 == 3) {
        *nexthop = Nexthop::Segments { interface: interfaces[1], segments: way(9, 9) };
    }
    timed(kernel, "1,000 nexthops, each in one group", &changes(&wanted, &mended));
    timed(kernel, "1,000 nexthops back", &changes(&mended, &wanted));

    let mut fewer = wanted.clone();
    fewer.nexthops.retain(|id, _| id.0 % 16 != 3);
    let removals: Vec<_> = changes(&wanted, &fewer);
    timed(kernel, "1,000 nexthops removed from their groups", &removals);
    let left = kernel.dump().unwrap();
    timed(kernel, "put back with their groups", &changes(&left, &wanted));
    timed(kernel, "remove all", &changes(&wanted, &Objects::default()));
    assert!(kernel.dump().unwrap().is_empty());

    let wanted = in_all_groups(interfaces);
    timed(kernel, "install groups of the same two nexthops", &changes(&Objects::default(), &wanted));
    let mut mended = wanted.clone();
    let nexthop = Nexthop::Segments { interface: interfaces[1], segments: way(9, 9) };
    mended.nexthops.insert(NexthopId(0), nexthop);
    timed(kernel, "1 nexthop, in 1,000 groups", &changes(&wanted, &mended));
    timed(kernel, "1 nexthop back", &changes(&mended, &wanted));
    timed(kernel, "remove all", &changes(&wanted, &Objects::default()));
}

/// Two nexthops, and a group of both for each destination of IPv4.
fn in_all_groups(interfaces: [u32; 2]) -> Objects {
    let mut objects = Objects::default();
    for (id, interface) in (0..).zip(interfaces) {
        objects.nexthops.insert(NexthopId(id), Nexthop::Segments { interface, segments: way(0, id) });
    }
    for destination in 0..DESTINATIONS {
        let group = GroupId(destination);
        objects.groups.insert(group, vec![NexthopId(0), NexthopId(1)]);
        let to = IpPrefix::host(Ipv4Addr::from_bits(0x0a01_0000 | destination).into());
        let key = RouteKey { table: Table::Main, to };
        objects.routes.insert(key, Route::Group { group, source: None, mtu: 1460 });
    }
    objects
}

fn timed(kernel: &mut Kernel, what: &str, changes: &[Change]) {
    let started = Instant::now();
    let failed = kernel.apply(changes);
    let took_ms = started.elapsed().as_secs_f64() * 1e3;
    assert!(failed.is_empty(), "{what}: {:?}", failed[0]);
    println!("{what:40} {took_ms:8.1} ms for {} changes", changes.len());
}

fn way(destination: u32, route: u32) -> Vec<Ipv6Addr> {
    let port = |number: u32| Element::Port((number % 200 + 1) as u8);
    let elements =
        [Element::FirstPort(0), port(route), port(destination), port(destination / 200), Element::DeliverV4];
    segments(&elements, Packing::Compressed).unwrap()
}

fn objects(interfaces: [u32; 2]) -> Objects {
    let mut objects = Objects::default();
    for destination in 0..DESTINATIONS {
        let v4 = Ipv4Addr::from_bits(0x0a01_0000 | destination);
        let v6 = Ipv6Addr::new(0xfd00, 0x6d61, 0, 0, 0, 0, 0, destination as u16);
        for (family, ip) in (0..2).zip([IpAddr::from(v4), v6.into()]) {
            let group = GroupId(destination * 2 + family);
            let members: Vec<_> = (0..ROUTES).map(|route| NexthopId(group.0 * ROUTES + route)).collect();
            for (route, id) in (0..).zip(&members) {
                let interface = interfaces[route as usize % 2];
                let nexthop = Nexthop::Segments { interface, segments: way(destination, route) };
                objects.nexthops.insert(*id, nexthop);
            }
            objects.groups.insert(group, members);
            let key = RouteKey { table: Table::Main, to: IpPrefix::host(ip) };
            objects.routes.insert(key, Route::Group { group, source: None, mtu: 1460 });
        }
    }
    objects
}
