//! The service with agents that tell what they know. Tests of what agents are asked to find out are in
//! [`asking`], those of machines with several agents in [`several`], and those of agents at ports of InfiniBand
//! in [`at_a_port`].

mod asking;
mod at_a_port;
mod several;

use std::time::Duration;

use mapper_proto::Mac;

use super::*;
use crate::fabric::{Host, Path, gid_of, lids};
use crate::wire::{MOST_ADDRESSES, Question, Sought};

const PATH: Path = Path { hops: 2, layer: 0, mtu_bytes: 1_500, rate_mbps: 10_000, is_reversible: true };

fn mac(n: u32) -> Mac {
    Mac::from_position(n)
}

/// Host n of a fabric: it is called `n<n>` and has the address 10.0.0.n.
fn host(n: u8) -> Host {
    let addresses = vec![[10, 0, 0, n].into()];
    Host { mac: mac(n.into()), name: Some(format!("n{n}")), addresses, path: Some(PATH) }
}

/// What the agent of host 1 knows, where there are hosts 1 to `hosts`.
fn unit(hosts: u8) -> Unit {
    Unit::new("eth0".to_owned(), mac(1), (1..=hosts).map(host))
}

fn service(hosts: u8) -> Service {
    let mut service = Service::new(Settings::default());
    service.set_unit(Instant::ZERO, 0, unit(hosts));
    service
}

fn v4(n: u8) -> Address {
    Address::V4([10, 0, 0, n].into())
}

fn question(source: Option<Address>, destination: Address, flags: EntryFlags) -> Request {
    Request::Resolve(Question { sought: Sought::Destination { source, destination }, flags })
}

/// What a client gets, or `None` if it has to wait.
fn ask(service: &mut Service, now: Instant, request: &Request) -> Option<Reply> {
    let mut out = Vec::new();
    let handled = service.handle_request(now, 1, &request.to_bytes(5).unwrap(), &mut out).unwrap();
    (handled == Handled::Answered).then(|| Reply::parse(&out).unwrap().1)
}

fn resolve(service: &mut Service, source: Option<Address>, destination: Address) -> Option<Reply> {
    ask(service, Instant::ZERO, &question(source, destination, EntryFlags::default()))
}

fn path(reply: Option<Reply>) -> (PathRecord, Option<Address>) {
    match reply {
        Some(Reply::Path { path, source, .. }) => (path, source),
        other => panic!("no path: {other:?}"),
    }
}

fn late(service: &mut Service) -> Option<Reply> {
    service.poll_reply().map(|(_, bytes)| Reply::parse(&bytes).unwrap().1)
}

#[test]
fn names_and_addresses_become_paths() {
    let mut service = service(3);
    let lid = lids((1..=3).map(mac));
    let (to_name, source) = path(resolve(&mut service, None, Address::Name("N2".to_owned())));
    assert_eq!(source, Some(Address::Name("n1".to_owned())));
    assert_eq!((to_name.dgid, to_name.sgid), (gid_of(mac(2)), gid_of(mac(1))));
    assert_eq!((to_name.dlid, to_name.slid), (lid[&mac(2)], lid[&mac(1)]));
    assert_eq!((to_name.hop_limit, to_name.mtu.value, to_name.rate.value), (2, 3, 3));
    assert!(to_name.reversible && to_name.pkey == 0xffff);
    assert_eq!(path(resolve(&mut service, None, v4(2))), (to_name, Some(v4(1))));
    assert_eq!(path(resolve(&mut service, Some(v4(1)), v4(2))), (to_name, None));
    // A GID is an address of IPv6; there is no other of its kind, so the source is told by name.
    let gid = |n| Address::V6(gid_of(mac(n)));
    assert_eq!(path(resolve(&mut service, None, gid(2))), (to_name, Some(Address::Name("n1".to_owned()))));
    assert_eq!(path(resolve(&mut service, Some(gid(1)), gid(2))), (to_name, None));
    assert_eq!(path(resolve(&mut service, None, v4(1))).0.dgid, gid_of(mac(1)));
    let failed = resolve(&mut service, Some(v4(2)), v4(3));
    assert_eq!(failed, Some(Reply::Failed(Status::SOURCE_ADDRESS)));
}

#[test]
fn paths_are_completed_and_verified() {
    let mut service = service(3);
    let along = |service: &mut Service, path: PathRecord, flags| {
        ask(service, Instant::ZERO, &Request::Resolve(Question { sought: Sought::Path(path), flags }))
    };
    let (whole, _) = path(resolve(&mut service, None, v4(3)));
    let [none, verify] = [EntryFlags::default(), EntryFlags::VERIFY];
    let by_lid = PathRecord { dlid: whole.dlid, reversible: true, paths: 1, ..PathRecord::default() };
    let by_gid = PathRecord { dgid: whole.dgid, sgid: whole.sgid, ..PathRecord::default() };
    for wanted in [by_lid, by_gid, whole] {
        assert_eq!(path(along(&mut service, wanted, none)).0, whole);
        assert_eq!(
            along(&mut service, wanted, verify),
            Some(Reply::Path { flags: verify, path: whole, source: None })
        );
    }
    let status = |reply| match reply {
        Some(Reply::Failed(status)) => status,
        other => panic!("{other:?}"),
    };
    assert_eq!(status(along(&mut service, PathRecord { sl: 1, ..whole }, verify)), Status::NO_DATA);
    assert_eq!(status(along(&mut service, PathRecord { hop_limit: 9, ..whole }, verify)), Status::NO_DATA);
    assert_eq!(status(along(&mut service, PathRecord { dlid: 1, ..whole }, verify)), Status::NO_DATA);
    let nobody = PathRecord { dlid: 1, ..PathRecord::default() };
    assert_eq!(status(along(&mut service, nobody, none)), Status::DESTINATION_ADDRESS);
    assert_eq!(status(along(&mut service, PathRecord::default(), none)), Status::DESTINATION_TYPE);
    let from_elsewhere = PathRecord { slid: whole.dlid, ..whole };
    assert_eq!(status(along(&mut service, from_elsewhere, none)), Status::SOURCE_ADDRESS);
}

#[test]
fn who_is_not_known_is_waited_for() {
    let mut service = service(2);
    assert_eq!(resolve(&mut service, None, v4(3)), None);
    let no_delay = question(None, v4(3), EntryFlags::NO_DELAY);
    assert_eq!(ask(&mut service, Instant::ZERO, &no_delay), Some(Reply::Failed(Status::NO_DATA)));
    service.set_unit(Instant::ZERO, 0, unit(3));
    assert_eq!(path(late(&mut service)).0.dgid, gid_of(mac(3)));
    assert_eq!((service.waiting(), service.poll_timeout()), (0, None));

    // The question ends after three tries of two seconds. As no agent has said that nobody has the address,
    // that is not remembered.
    assert_eq!(resolve(&mut service, None, v4(4)), None);
    assert_eq!(service.poll_ask(Instant::ZERO).map(|asked| asked.wanted), Some(Wanted::Address(v4(4))));
    let at = service.poll_timeout().unwrap();
    assert_eq!(at, Instant::ZERO + Duration::from_secs(6));
    service.handle_timeout(at);
    let timed_out = Some(Reply::Failed(Status::TIMED_OUT));
    assert_eq!(late(&mut service), timed_out);
    let again = question(None, v4(4), EntryFlags::default());
    assert_eq!(ask(&mut service, at, &again), None);
    // What an agent has said is remembered for ten seconds.
    service.handle_asked(at, 0, &v4(4), Some(&[]));
    assert_eq!(late(&mut service), timed_out);
    assert_eq!(ask(&mut service, at, &again), timed_out);
    assert_eq!(ask(&mut service, at + Duration::from_secs(10), &again), None);
    // A host that comes is found at once, even if it was said not to be there.
    service.handle_timeout(at + Duration::from_secs(16));
    service.set_unit(at, 0, unit(4));
    assert_eq!(path(ask(&mut service, at, &again)).0.dgid, gid_of(mac(4)));
}

#[test]
fn nothing_is_answered_of_a_map_that_is_said_to_have_changed() {
    let mut service = service(3);
    path(resolve(&mut service, None, v4(2)));
    service.suspect(0);
    let wanted = PathRecord { dgid: gid_of(mac(2)), ..PathRecord::default() };
    let verify = Request::Resolve(Question { sought: Sought::Path(wanted), flags: EntryFlags::VERIFY });
    assert_eq!(resolve(&mut service, None, v4(2)), None);
    assert_eq!(resolve(&mut service, Some(v4(1)), v4(2)), None);
    assert_eq!(ask(&mut service, Instant::ZERO, &verify), None);
    let cut_off = Host { path: None, ..host(2) };
    service.set_unit(Instant::ZERO, 0, Unit::new("eth0".to_owned(), mac(1), [host(1), cut_off, host(3)]));
    let all: Vec<_> = std::iter::from_fn(|| late(&mut service)).collect();
    let failed = |status| Reply::Failed(status);
    assert_eq!(all, [failed(Status::NOT_CONNECTED), failed(Status::NOT_CONNECTED), failed(Status::NO_DATA)]);
}

#[test]
fn exactly_what_changed_is_forgotten() {
    let mut service = service(5);
    for n in 2..=5 {
        path(resolve(&mut service, None, v4(n)));
    }
    assert_eq!(service.cached(), (4, 4));
    assert_eq!(service.set_unit(Instant::ZERO, 0, unit(5)), 0);
    // The path to host 2 is longer, host 3 has another address, host 5 is gone.
    let longer = Host { path: Some(Path { hops: 3, ..PATH }), ..host(2) };
    let moved = Host { addresses: vec![[10, 0, 0, 33].into()], ..host(3) };
    let now = Unit::new("eth0".to_owned(), mac(1), [host(1), longer, moved, host(4)]);
    assert_eq!(service.set_unit(Instant::ZERO, 0, now), 4);
    assert_eq!(service.cached(), (2, 2));
    let before = service.total();
    assert_eq!(path(resolve(&mut service, None, v4(2))).0.hop_limit, 3);
    assert_eq!(path(resolve(&mut service, None, v4(4))).0.hop_limit, 2);
    let counted = |counter: Counter| service.total().0[counter as usize] - before.0[counter as usize];
    assert_eq!((counted(Counter::RouteQuery), counted(Counter::RouteCache)), (1, 1));
    assert_eq!((counted(Counter::AddressQuery), counted(Counter::AddressCache)), (0, 2));
}

#[test]
fn what_is_remembered_grows_old() {
    let minute = Duration::from_secs(60);
    let settings =
        Settings { address_keep: Some(2 * minute), route_keep: Some(minute), ..Settings::default() };
    let mut service = Service::new(settings);
    service.set_unit(Instant::ZERO, 0, unit(2));
    let question = question(None, v4(2), EntryFlags::default());
    for at in [0, 30, 60, 121] {
        path(ask(&mut service, Instant::ZERO + Duration::from_secs(at), &question));
    }
    let [.., address_query, address_cache, route_query, route_cache] = service.total().0;
    assert_eq!([address_query, address_cache, route_query, route_cache], [2, 2, 3, 1]);
}

#[test]
fn an_address_of_two_hosts_is_answered_as_neithers() {
    let mut service = service(3);
    let twin = Host { addresses: vec![[10, 0, 0, 2].into()], ..host(3) };
    let unit = Unit::new("eth0".to_owned(), mac(1), [host(1), host(2), twin]);
    assert_eq!(unit.clashes().collect::<Vec<_>>(), [(&v4(2), &[mac(2), mac(3)][..])]);
    service.set_unit(Instant::ZERO, 0, unit);
    assert_eq!(resolve(&mut service, None, v4(2)), Some(Reply::Failed(Status::DESTINATION_ADDRESS)));
    assert_eq!(path(resolve(&mut service, None, Address::Name("n3".to_owned()))).0.dgid, gid_of(mac(3)));
}

#[test]
fn clients_that_ask_too_much_at_once_are_told() {
    let settings = Settings { most_waiting: 3, most_waiting_each: 2, ..Settings::default() };
    let mut service = Service::new(settings);
    let mut asked = |client| {
        let bytes = question(None, v4(9), EntryFlags::default()).to_bytes(0).unwrap();
        let mut out = Vec::new();
        let handled = service.handle_request(Instant::ZERO, client, &bytes, &mut out).unwrap();
        assert_eq!(handled == Handled::Waits, out.is_empty());
        handled
    };
    use Handled::{Answered, Waits};
    assert_eq!([1, 1, 1, 2, 3].map(&mut asked), [Waits, Waits, Answered, Waits, Answered]);
    service.drop_client(1);
    assert_eq!(service.waiting(), 1);
    service.drop_client(2);
    assert_eq!((service.waiting(), service.poll_timeout()), (0, None));
}

#[test]
fn endpoints_are_told_page_by_page_and_counted_apart() {
    let named =
        crate::files::address_file::parse("alias eth0 1 default\nother eth0 1 0x8001\nnone eth9 1 default");
    let mut service = Service::new(Settings { endpoints: named.unwrap(), ..Settings::default() });
    let many = Host { addresses: (1..=10).map(|n| [10, 1, 0, n].into()).collect(), ..host(1) };
    service.set_unit(Instant::ZERO, 0, Unit::new("eth0".to_owned(), mac(1), [many, host(2)]));
    service.set_unit(Instant::ZERO, 3, Unit::new("eth1".to_owned(), mac(7), [host(7)]));
    let mut told = |endpoint, port, page| {
        ask(&mut service, Instant::ZERO, &Request::Endpoint { endpoint, port, page }).unwrap()
    };
    let Reply::Endpoint(first) = told(1, 0, 0) else { panic!("no endpoint") };
    assert_eq!((first.addresses.len(), first.addresses[0].as_str()), (MOST_ADDRESSES, "n1"));
    let Reply::Endpoint(rest) = told(1, 1, 1) else { panic!("no endpoint") };
    assert_eq!(rest.addresses, ["10.1.0.7", "10.1.0.8", "10.1.0.9", "10.1.0.10", "alias"]);
    let Reply::Endpoint(second) = told(2, 0, 0) else { panic!("no endpoint") };
    assert_eq!((second.pkey, second.addresses), (0x8001, vec!["other".to_owned()]));
    assert!(matches!(told(3, 0, 0), Reply::Endpoint(_)));
    for (endpoint, port, page) in [(0, 0, 0), (4, 0, 0), (1, 2, 0), (1, 0, 2)] {
        assert_eq!(told(endpoint, port, page), Reply::Failed(Status::INVALID));
    }
    let (record, _) = path(resolve(&mut service, Some(Address::Name("OTHER".to_owned())), v4(2)));
    assert_eq!(record.pkey, 0x8001);
    let mut counters = |endpoint, source: Option<&str>| {
        let source = source.map(|name| Ok(Address::Name(name.to_owned())));
        ask(&mut service, Instant::ZERO, &Request::Counters { endpoint, source }).unwrap()
    };
    let once = Reply::Counters([0, 1, 0, 1, 0, 1, 0]);
    assert_eq!((counters(2, None), counters(0, Some("other"))), (once.clone(), once));
    assert_eq!(counters(1, None), Reply::Counters([0; 7]));
    assert_eq!(counters(9, None), Reply::Failed(Status::SOURCE_ADDRESS));
    assert_eq!(counters(0, Some("n2")), Reply::Failed(Status::SOURCE_ADDRESS));
}

#[test]
fn files_tell_what_agents_do_not() {
    let dump = "Channel Adapter 0x7, base LID 9\n1 : 2 : 4 : 3\n\
        Channel Adapter 0x000000fffe000001, base LID 1\n9 : 2 : 4 : 3\n";
    let settings = Settings {
        addresses: crate::files::hosts_file::parse("far fe80::7\nn2 fe80::7\ntwo fe80::7\ntwo fe80::8\n")
            .unwrap(),
        paths: crate::files::PathTable::parse(dump).unwrap(),
        ..Settings::default()
    };
    let mut service = Service::new(settings);
    service.set_unit(Instant::ZERO, 0, unit(2));
    let named = |name: &str| Address::Name(name.to_owned());
    let (far, _) = path(resolve(&mut service, None, named("far")));
    assert_eq!((far.dlid, far.sl, far.mtu.value, far.reversible), (9, 2, 4, true));
    // The file has LIDs of its own, also for this host.
    let verify = Request::Resolve(Question { sought: Sought::Path(far), flags: EntryFlags::VERIFY });
    assert_eq!(path(ask(&mut service, Instant::ZERO, &verify)).0, far);
    // Of two GIDs nobody knows which one is meant.
    assert_eq!(resolve(&mut service, None, named("two")), Some(Reply::Failed(Status::DESTINATION_ADDRESS)));
    let contradicted: Vec<_> = service.contradicted(0).collect();
    assert_eq!(contradicted, [(&named("n2"), mac(2), "fe80::7".parse().unwrap())]);
    // A host of the map is not looked up in a file.
    assert_eq!(path(resolve(&mut service, None, named("n2"))).0.dgid, gid_of(mac(2)));
    service.set_settings(Instant::ZERO, Settings::default());
    assert_eq!(resolve(&mut service, None, named("far")), None);
}

#[test]
fn what_was_learned_is_kept_as_long_as_the_agent_tells_it() {
    let mut service = service(3);
    let alias = Address::Name("alias".to_owned());
    let learned = Learned { mac: mac(3), rate_mbps: 0, mtu_bytes: 0 };
    assert_eq!(resolve(&mut service, None, alias.clone()), None);
    service.handle_asked(Instant::ZERO, 0, &alias, Some(&[learned]));
    path(late(&mut service));
    let mut still = unit(3);
    still.learn(alias.clone(), &[learned]);
    assert_eq!(service.set_unit(Instant::ZERO, 0, still), 0);
    path(resolve(&mut service, None, alias.clone()));
    // The owner has given it up, so the agent tells it no more.
    assert_eq!(service.set_unit(Instant::ZERO, 0, unit(3)), 1);
    assert_eq!(resolve(&mut service, None, alias), None);
}

#[test]
fn a_name_of_a_file_that_another_host_has_is_answered_as_neithers() {
    let named = crate::files::address_file::parse("n2 eth0 1 default\nalias eth0 1 default\n").unwrap();
    let mut service = Service::new(Settings { endpoints: named, ..Settings::default() });
    service.set_unit(Instant::ZERO, 0, unit(3));
    let [n2, alias] = ["n2", "alias"].map(|text| Address::Name(text.to_owned()));
    assert_eq!(service.more_names(0), [n2.clone(), alias.clone()]);
    assert_eq!(service.clashes(0), [(n2.clone(), vec![mac(1), mac(2)])]);
    assert_eq!(resolve(&mut service, None, n2), Some(Reply::Failed(Status::DESTINATION_ADDRESS)));
    assert_eq!(path(resolve(&mut service, None, alias)).0.dgid, gid_of(mac(1)));
}

#[test]
fn a_client_hears_of_a_change_as_soon_as_there_is_one_and_of_none_after_a_while() {
    let mut service = service(3);
    let changed = |service: &mut Service, now, seen| ask(service, now, &Request::Changed { seen });
    let Some(Reply::Changed(first)) = changed(&mut service, Instant::ZERO, 0) else { panic!("no number") };
    assert_eq!(changed(&mut service, Instant::ZERO, first), None, "nothing has changed");
    // To tell the same once more is no change, and neither is the word that there may be one.
    service.set_unit(Instant::ZERO, 0, unit(3));
    service.suspect(0);
    assert_eq!(late(&mut service), None);
    service.set_unit(Instant::ZERO, 0, unit(4));
    let Some(Reply::Changed(second)) = late(&mut service) else { panic!("a new map is told") };
    assert_ne!(first, second);
    assert_eq!(changed(&mut service, Instant::ZERO, first), Some(Reply::Changed(second)), "it was missed");
    // Who waits is told from time to time that the service is there.
    assert_eq!(changed(&mut service, Instant::ZERO, second), None);
    let at = service.poll_timeout().unwrap();
    service.handle_timeout(at);
    assert_eq!((late(&mut service), service.waiting()), (Some(Reply::Changed(second)), 0));
    // Other settings and the loss of an agent are changes as well.
    let mut numbers = vec![first, second];
    for change in [
        |service: &mut Service| {
            service.set_settings(Instant::ZERO, Settings { retries: 0, ..Settings::default() });
        },
        |service: &mut Service| service.remove_unit(Instant::ZERO, 0),
    ] {
        assert_eq!(changed(&mut service, at, numbers[numbers.len() - 1]), None);
        change(&mut service);
        let Some(Reply::Changed(number)) = late(&mut service) else { panic!("it is told") };
        assert!(!numbers.contains(&number));
        numbers.push(number);
    }
    service.change = LAST_CHANGE;
    service.set_unit(Instant::ZERO, 0, unit(2));
    assert_eq!(changed(&mut service, at, 0), Some(Reply::Changed(1)), "none has the number 0");
}
