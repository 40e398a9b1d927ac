//! Names and addresses of hosts reach all others: those that are announced, and those that are asked for.

use std::time::Duration;

use mapper_acm::fabric::{Host, Path, Unit, gid_of};
use mapper_acm::service::{ClientId, Handled, Service, Settings};
use mapper_acm::wire::{Address, EntryFlags, Question, Reply, Request, Sought};
use mapper_host::resolution::Wanted;
use mapper_proto::agent::Purpose;
use mapper_proto::{Instant, IpNetworkAddress, Mac};
use mapper_sim::fabric::Xbars;

use crate::lab::{Lab, Plan, millis, ms};

const HOSTS: u32 = 1024;
/// How many questions of one client may wait at the service of its machine.
const QUESTIONS_OF_A_CLIENT: usize = 64;

/// How many frames of services a host has sent.
fn frames(lab: &Lab, host: u32) -> u64 {
    let sent = lab.world.status(host).unwrap().sent;
    sent.iter().filter(|(kind, ..)| *kind == Purpose::Service).map(|(.., sent)| sent).sum()
}

/// Runs until all hosts know the names of all and have routes to them, and returns when that was.
fn run_until_all_know_all(lab: &mut Lab, hosts: u32, limit: Instant) -> Instant {
    let knows = |lab: &Lab, host: u32| {
        let knows = lab.world.directory(host).is_some_and(|it| it.hosts().count() == hosts as usize);
        knows && lab.world.table(host).is_some()
    };
    let mut now = Instant::ZERO;
    while !(0..hosts).all(|host| knows(lab, host)) {
        now = now + millis(50);
        assert!(now <= limit, "some do not know all names by {limit:?}");
        lab.run_to(now);
    }
    now
}

/// What the agent of a host tells the service of its machine.
fn known_at(lab: &Lab, host: u32) -> Unit {
    let (directory, table) = (lab.world.directory(host).unwrap(), lab.world.table(host).unwrap());
    let known = |mac: Mac, hops: usize| Host {
        mac,
        name: directory.name_of(mac).map(|name| name.as_str().to_owned()),
        addresses: directory.addresses_of(mac).iter().map(IpNetworkAddress::ip).collect(),
        path: Some(Path {
            hops: hops as u8,
            layer: 0,
            mtu_bytes: 1_400,
            rate_mbps: 10_000,
            is_reversible: true,
        }),
    };
    let own = lab.world.mac(host);
    let others =
        table.hosts().filter_map(|(mac, to)| Some(known(mac, table.paths_to(to).next()?.hops.len())));
    Unit::new("eth0".to_owned(), own, others.chain([known(own, 0)]))
}

/// The names of all hosts, as they gave them to themselves.
fn names_of_all(lab: &Lab, hosts: u32) -> Vec<(String, Mac)> {
    let own = |host: u32| {
        let mac = lab.world.mac(host);
        (lab.world.directory(host).unwrap().name_of(mac).unwrap().as_str().to_owned(), mac)
    };
    (0..hosts).map(own).collect()
}

/// A question of a program for the path to a host.
fn question(name: &str) -> Request {
    let sought = Sought::Destination { source: None, destination: Address::Name(name.to_owned()) };
    Request::Resolve(Question { sought, flags: EntryFlags::default() })
}

/// Has a program of a machine ask for all hosts by name, and checks that it is told the right ones at once.
fn resolve_known(lab: &Lab, host: u32, names: &[(String, Mac)]) {
    let mut service = Service::new(Settings::default());
    service.set_unit(Instant::ZERO, 0, known_at(lab, host));
    for (name, mac) in names {
        let (bytes, mut reply) = (question(name).to_bytes(0).unwrap(), Vec::new());
        let handled = service.handle_request(Instant::ZERO, 0, &bytes, &mut reply).unwrap();
        let Ok((_, Reply::Path { path, .. })) = Reply::parse(&reply) else {
            panic!("host {host}: {handled:?}")
        };
        assert_eq!(path.dgid, gid_of(*mac), "host {host}: {name}");
    }
}

/// Has the programs of a machine ask for all hosts by name before its agent knows any, and checks what they are told.
fn resolve_all(lab: &Lab, host: u32, names: &[(String, Mac)], told_at: Instant) {
    let mut service = Service::new(Settings::default());
    for (nth, (name, _)) in names.iter().enumerate() {
        let client = (nth / QUESTIONS_OF_A_CLIENT) as ClientId;
        let bytes = question(name).to_bytes(nth as u64).unwrap();
        let handled = service.handle_request(Instant::ZERO, client, &bytes, &mut Vec::new()).unwrap();
        assert_eq!(handled, Handled::Waits);
    }
    assert!(service.poll_timeout().is_some_and(|gives_up| gives_up > told_at));
    service.set_unit(told_at, 0, known_at(lab, host));
    let mut answered = 0;
    while let Some((_, bytes)) = service.poll_reply() {
        let (header, reply) = Reply::parse(&bytes).unwrap();
        let Reply::Path { path, .. } = reply else { panic!("host {host}: {reply:?}") };
        assert_eq!(path.dgid, gid_of(names[header.tid as usize].1), "host {host}");
        answered += 1;
    }
    assert_eq!((answered, service.waiting()), (names.len(), 0), "host {host}");
    assert_eq!(service.poll_ask(told_at), None, "nobody has to ask");
}

#[test]
fn a_thousand_hosts_resolve_each_other_at_start_within_two_seconds_for_a_few_frames_each() {
    let mut lab = Plan::new(&format!("clos:hosts={HOSTS},ports=64"), Xbars::Tagged).start();
    let told_at = run_until_all_know_all(&mut lab, HOSTS, ms(2000));
    let names = names_of_all(&lab, HOSTS);
    for host in 0..HOSTS {
        resolve_all(&lab, host, &names, told_at);
        // All that a program asks for is known before it asks, and costs far less than a question to each
        // host would.
        let sent = frames(&lab, host);
        assert!(sent < 4 * u64::from(HOSTS), "host {host} sent {sent} frames");
        assert_eq!(lab.world.most_questions_queued(host), 0, "no host asks another");
    }
}

/// What it cost that many hosts asked at once.
struct Storm {
    /// How long it took until all were told, in virtual time.
    took: Duration,
    /// The most frames of services that one host sent meanwhile.
    frames: u64,
    /// The most questions and answers that waited at one host at once.
    queued: usize,
}

/// The name of a host that it does not announce.
fn alias(host: u32) -> Wanted {
    Wanted::parse(&format!("alias{host}")).unwrap()
}

/// Gives each of the first `asking` hosts a name that it does not announce, and has each at once ask for the
/// name of another. Each also asks who else has its own name, as every host does that gets one.
fn storm(lab: &mut Lab, hosts: u32, asking: u32, limit: Duration) -> Storm {
    let began = lab.world.now();
    let before: Vec<u64> = (0..hosts).map(|host| frames(lab, host)).collect();
    for host in 0..asking {
        lab.world.give_name(&alias(host), host);
    }
    let other = |host: u32| (host * 7 + 1) % asking;
    for host in 0..asking {
        lab.world.ask_who_has(host, &alias(other(host)));
    }
    let is_told = |lab: &Lab, host: u32| {
        lab.world.found(host, &alias(other(host))) == Some(&[lab.world.mac(other(host))][..])
    };
    while !(0..asking).all(|host| is_told(lab, host)) {
        let now = lab.world.now() + millis(5);
        assert!(now <= began + limit, "some were not told in time");
        lab.run_to(now);
    }
    Storm {
        took: lab.world.now().since(began),
        frames: (0..hosts).map(|host| frames(lab, host) - before[host as usize]).max().unwrap_or(0),
        queued: (0..hosts).map(|host| lab.world.most_questions_queued(host)).max().unwrap_or(0),
    }
}

#[test]
fn a_thousand_hosts_that_ask_at_once_for_what_is_not_announced_are_told_within_two_seconds() {
    let mut lab = Plan::new(&format!("clos:hosts={HOSTS},ports=64"), Xbars::Tagged).start();
    run_until_all_know_all(&mut lab, HOSTS, ms(2000));
    let storm = storm(&mut lab, HOSTS, HOSTS, Duration::from_secs(2));
    assert!(storm.took <= Duration::from_secs(2));
    assert!(storm.frames <= 4 * u64::from(HOSTS), "a host sent {} frames", storm.frames);
    assert!(storm.queued <= HOSTS as usize, "{} questions waited at a host", storm.queued);
}

/// Prints what the names of so many hosts cost.
#[expect(clippy::print_stdout, reason = "a bench prints")]
fn measure(spec: &str, hosts: u32) {
    let began = std::time::Instant::now();
    let mut lab = Plan::new(spec, Xbars::Tagged).start_unrecorded();
    let known_at = run_until_all_know_all(&mut lab, hosts, ms(60_000)).since(Instant::ZERO);
    let most = (0..hosts).map(|host| frames(&lab, host)).max().unwrap();
    let wall = began.elapsed();
    println!(
        "{hosts} hosts: all know all names after {known_at:?}, at most {most} frames of a host; wall {wall:.1?}"
    );
    assert!(most <= 4 * u64::from(hosts));
    let names = names_of_all(&lab, hosts);
    (0..hosts).step_by(hosts as usize / 16).for_each(|host| resolve_known(&lab, host, &names));
    let Storm { took, frames, queued } = storm(&mut lab, hosts, 100, Duration::from_secs(10));
    let wall = began.elapsed() - wall;
    println!(
        "{hosts} hosts: 100 ask for what is not announced and are told after {took:?}, at most {frames} frames of a \
         host and {queued} questions that wait at one; wall {wall:.1?}"
    );
}

#[test]
#[ignore = "takes 1 GiB, and long in a debug build: scripts/bench/names runs it"]
fn four_thousand_hosts_know_each_other_by_name() {
    measure("clos:hosts=4096,ports=64", 4_096);
}

#[test]
#[ignore = "takes minutes and 4 GiB, most of it for routes and maps: scripts/bench/names --large runs it"]
fn ten_thousand_hosts_know_each_other_by_name() {
    measure("clos:hosts=10000,ports=36", 10_000);
}
