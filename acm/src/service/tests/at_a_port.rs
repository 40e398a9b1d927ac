//! An agent at a port of InfiniBand, which is asked for each path.

use super::*;
use crate::fabric::Port;
use crate::wire::Selected;

const PREFIX: u128 = 0xfe80 << 112;
/// GUIDs of InfiniBand make no MACs.
const GUID: u128 = 0x0002_c903_00a1_b200;

fn gid(n: u8) -> Ipv6Addr {
    Ipv6Addr::from(PREFIX | GUID | u128::from(n))
}

fn at_port() -> Unit {
    let port = Port { device_guid: 1, number: 2, count: 2, gid: gid(1), lid: 8, lmc: 1 };
    Unit::at_port("mlx5_0".to_owned(), port, ["n1 mlx5_0", "n1"].map(str::to_owned))
}

fn at_port_service() -> Service {
    let mut service = Service::new(Settings::default());
    service.set_unit(Instant::ZERO, 0, at_port());
    service
}

fn record(n: u8) -> PathRecord {
    PathRecord {
        dgid: gid(n),
        sgid: gid(1),
        dlid: 8 * u16::from(n),
        slid: 8,
        reversible: true,
        pkey: 0xffff,
        sl: 3,
        mtu: Selected::exactly(5),
        rate: Selected::exactly(16),
        ..PathRecord::default()
    }
}

fn named(text: &str) -> Address {
    Address::Name(text.to_owned())
}

/// Has the agent find what it is to be asked for.
fn find(service: &mut Service, expected: &Wanted, found: FoundPath) {
    let asked = service.poll_ask(Instant::ZERO).expect("the agent is asked");
    assert_eq!((asked.seeks_path, &asked.wanted), (true, expected));
    service.handle_path(Instant::ZERO, 0, expected, Some(&found));
}

fn along(service: &mut Service, path: PathRecord, flags: EntryFlags) -> Option<Reply> {
    ask(service, Instant::ZERO, &Request::Resolve(Question { sought: Sought::Path(path), flags }))
}

#[test]
fn names_gids_and_lids_become_paths_that_the_agent_finds() {
    let mut service = at_port_service();
    let by_name = Wanted::Address(named("n2"));
    assert_eq!(resolve(&mut service, None, named("N2")), None);
    find(&mut service, &by_name, FoundPath::Path(record(2)));
    assert_eq!(path(late(&mut service)).0, record(2));
    // The path is known now, by whatever it is asked for.
    let (again, source) = path(resolve(&mut service, None, Address::V6(gid(2))));
    assert_eq!((again, source), (record(2), Some(named("n1 mlx5_0"))));
    assert_eq!(path(resolve(&mut service, Some(named("n1")), named("n2"))).0, record(2));
    assert_eq!(path(along(&mut service, record(2), EntryFlags::VERIFY)).0, record(2));
    let other_level = PathRecord { sl: 1, ..record(2) };
    let failed = along(&mut service, other_level, EntryFlags::VERIFY);
    assert_eq!(failed, Some(Reply::Failed(Status::NO_DATA)));
    assert_eq!(service.poll_ask(Instant::ZERO), None);
    // This one is asked for by LID, from the second LID of this port.
    let by_lid = PathRecord { dlid: 24, slid: 9, ..PathRecord::default() };
    assert_eq!(along(&mut service, by_lid, EntryFlags::default()), None);
    find(&mut service, &Wanted::Lid(24), FoundPath::Path(record(3)));
    assert_eq!(path(late(&mut service)).0, record(3));
    assert_eq!(path(along(&mut service, by_lid, EntryFlags::default())).0, record(3));
    let from_elsewhere = PathRecord { slid: 10, ..by_lid };
    let failed = along(&mut service, from_elsewhere, EntryFlags::default());
    assert_eq!(failed, Some(Reply::Failed(Status::SOURCE_ADDRESS)));
    let info = service.endpoints()[0].info(2, 0).unwrap();
    assert_eq!((info.guid, info.port, info.ports), (1, 2, 2));
}

#[test]
fn what_is_not_found_is_told_apart_and_asked_for_once() {
    let mut service = at_port_service();
    for (name, found, status) in [
        ("nobody", FoundPath::Nobody, Status::TIMED_OUT),
        ("cut off", FoundPath::NoPath, Status::NOT_CONNECTED),
        ("twins", FoundPath::Several, Status::DESTINATION_ADDRESS),
    ] {
        assert_eq!(resolve(&mut service, None, named(name)), None);
        find(&mut service, &Wanted::Address(named(name)), found);
        assert_eq!(late(&mut service), Some(Reply::Failed(status)), "{name}");
        assert_eq!(resolve(&mut service, None, named(name)), Some(Reply::Failed(status)));
    }
    assert_eq!(resolve(&mut service, None, v4(1)), Some(Reply::Failed(Status::TIMED_OUT)));
    assert_eq!(service.poll_ask(Instant::ZERO), None, "a subnet knows no addresses of IPv4");
    assert_eq!(resolve(&mut service, Some(named("n1")), named("n1")), None);
    find(&mut service, &Wanted::Address(Address::V6(gid(1))), FoundPath::Path(record(1)));
    assert_eq!(path(late(&mut service)).0, record(1), "who asks for this node by its name is told, too");
    // An agent that could not ask is asked again after a pause.
    assert_eq!(resolve(&mut service, None, named("n2")), None);
    let asked = service.poll_ask(Instant::ZERO).unwrap();
    service.handle_path(Instant::ZERO, 0, &asked.wanted, None);
    assert_eq!(service.poll_ask(Instant::ZERO), None);
    let later = service.poll_timeout().unwrap();
    service.handle_timeout(later);
    assert_eq!(service.poll_ask(later), Some(asked));
}

#[test]
fn a_change_of_the_subnet_ends_what_was_found() {
    let mut service = at_port_service();
    assert_eq!(resolve(&mut service, None, named("n2")), None);
    find(&mut service, &Wanted::Address(named("n2")), FoundPath::Path(record(2)));
    path(late(&mut service));
    assert_eq!(resolve(&mut service, None, named("n9")), None);
    find(&mut service, &Wanted::Address(named("n9")), FoundPath::Nobody);
    late(&mut service);
    service.suspect(0);
    assert_eq!(resolve(&mut service, None, named("n2")), None);
    assert_eq!(service.poll_ask(Instant::ZERO), None, "the agent has not told what changed");
    service.set_unit(Instant::ZERO, 0, at_port());
    assert_eq!(service.cached(), (0, 0));
    let changed = PathRecord { sl: 1, ..record(2) };
    find(&mut service, &Wanted::Address(named("n2")), FoundPath::Path(changed));
    assert_eq!(path(late(&mut service)).0, changed);
    // Who was not there may have come.
    assert_eq!(resolve(&mut service, None, named("n9")), None);
    find(&mut service, &Wanted::Address(named("n9")), FoundPath::Path(record(9)));
    assert_eq!(path(late(&mut service)).0, record(9));
}

#[test]
fn a_name_of_a_file_is_asked_for_by_its_gid() {
    let addresses = [(named("alias"), vec![gid(4)])].into_iter().collect();
    let mut service = Service::new(Settings { addresses, ..Settings::default() });
    service.set_unit(Instant::ZERO, 0, at_port());
    assert_eq!(resolve(&mut service, None, named("alias")), None);
    find(&mut service, &Wanted::Address(Address::V6(gid(4))), FoundPath::Path(record(4)));
    assert_eq!(path(late(&mut service)).0, record(4));
    // This port's own path is asked for like any other.
    assert_eq!(resolve(&mut service, None, named("n1")), None);
    find(&mut service, &Wanted::Address(Address::V6(gid(1))), FoundPath::Path(record(1)));
    assert_eq!(path(late(&mut service)).0, record(1));
    // A path in another partition than the endpoint's is none for it.
    assert_eq!(resolve(&mut service, None, named("n5")), None);
    let elsewhere = PathRecord { pkey: 0x8001, ..record(5) };
    find(&mut service, &Wanted::Address(named("n5")), FoundPath::Path(elsewhere));
    assert_eq!(late(&mut service), Some(Reply::Failed(Status::NOT_CONNECTED)));
}
