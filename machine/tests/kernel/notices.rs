//! What others change is told, and what we change ourselves is not.

use std::time::Duration;

use mapper_fib::segments::{NEIGHBOUR, NEIGHBOUR_V4, Packing};
use mapper_fib::{Objects, RouteKey, Table, changes};
use mapper_machine::kernel::{FibMonitor, Notice};

use crate::can_make_namespaces;
use crate::machines::{Machine, settled};
use crate::read_back::{one_of_every_kind, two_machines};

/// Runs `ip` with these words, and returns what the monitor tells of the objects, the first that it tells.
async fn told(monitor: &FibMonitor, machine: &Machine, words: &str, objects: &Objects) -> Vec<Notice> {
    told_of(monitor, machine, &format!("ip {words}"), objects).await
}

/// Runs the command `line`, and returns the same as [`told`].
async fn told_of(monitor: &FibMonitor, machine: &Machine, line: &str, objects: &Objects) -> Vec<Notice> {
    assert!(machine.namespace.command_line(line).status().unwrap().success(), "{line}");
    let mut told = Vec::new();
    while told.is_empty() {
        let notices = tokio::time::timeout(Duration::from_secs(60), monitor.notices()).await;
        let notices = notices.unwrap_or_else(|_| panic!("nothing is told of `{line}`")).unwrap();
        told.extend(notices.into_iter().filter(|notice| notice.concerns(objects)));
    }
    told
}

#[test]
fn what_others_change_of_ours_is_told_and_our_own_changes_are_not() {
    if !can_make_namespaces() {
        return;
    }
    let (mut machine, other, cabled) = two_machines();
    settled(&machine);
    let wanted = one_of_every_kind(&machine, &other, &cabled, Packing::Compressed);
    let name = machine.namespace.name.clone();
    // The monitor hears the namespace of the thread on which it is made.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            crate::namespace::enter(&name);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(listen(&mut machine, &other, &wanted, cabled[0].interface));
        });
    });
}

async fn listen(machine: &mut Machine, other: &Machine, wanted: &Objects, interface: u32) {
    let monitor = FibMonitor::new(&machine.kernel).unwrap();
    machine.install(wanted);
    // Ours were made before, and are not told: the first notice is of what somebody else did.
    let route = RouteKey { table: Table::Main, to: mapper_fib::IpPrefix::host(other.v4.into()) };
    let words = format!("route del {}/32 proto 109", other.v4);
    assert_eq!(told(&monitor, machine, &words, wanted).await, [Notice::Route(route)]);
    let words = format!("-6 neigh del {NEIGHBOUR} dev e0");
    let entry = Notice::Neighbour { interface, ip: NEIGHBOUR.into() };
    assert!(told(&monitor, machine, &words, wanted).await.contains(&entry));
    let words = format!("neigh del {NEIGHBOUR_V4} dev e0");
    let entry = Notice::Neighbour { interface, ip: NEIGHBOUR_V4.into() };
    assert!(told(&monitor, machine, &words, wanted).await.contains(&entry));
    let (&id, _) = wanted.nexthops.first_key_value().unwrap();
    let words = format!("nexthop del id {}", id.number());
    assert!(told(&monitor, machine, &words, wanted).await.contains(&Notice::Nexthop(id)));
    let (&id, _) = wanted.groups.last_key_value().unwrap();
    let words = format!("nexthop del id {}", id.number());
    assert!(told(&monitor, machine, &words, wanted).await.contains(&Notice::Group(id)));
    let rule = wanted.rules.first().unwrap().clone();
    let words = "-6 rule del iif e0";
    assert_eq!(told(&monitor, machine, words, wanted).await, [Notice::Rule(rule)]);
    let words = format!("-6 route flush table {}", Table::Segments.number());
    let segments = told(&monitor, machine, &words, wanted).await;
    assert!(
        segments.iter().all(|notice| matches!(notice, Notice::Route(key) if key.table == Table::Segments))
    );
    for setting in ["ipv6.conf.e0.forwarding", "ipv4.conf.e0.forwarding"] {
        let words = format!("sysctl -q -w net.{setting}=1");
        let notice = Notice::Setting { interface: Some(interface) };
        assert!(told_of(&monitor, machine, &words, wanted).await.contains(&notice), "{setting}");
    }
    // Objects that were taken away come back.
    machine.install(wanted);
}

#[test]
fn who_misses_notices_is_told_so() {
    if !can_make_namespaces() {
        return;
    }
    let (mut machine, other, cabled) = two_machines();
    let wanted = one_of_every_kind(&machine, &other, &cabled, Packing::Compressed);
    let name = machine.namespace.name.clone();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            crate::namespace::enter(&name);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let monitor = FibMonitor::new(&machine.kernel).unwrap();
                let mut another = mapper_machine::kernel::Kernel::open().unwrap();
                let (install, remove) =
                    (changes(&Objects::default(), &wanted), changes(&wanted, &Objects::default()));
                for _ in 0..200 {
                    assert!(another.apply(&install).is_empty() && another.apply(&remove).is_empty());
                }
                loop {
                    let notices = tokio::time::timeout(Duration::from_secs(60), monitor.notices()).await;
                    if notices.expect("it is told").unwrap().contains(&Notice::Missed) {
                        break;
                    }
                }
            });
        });
    });
    assert!(machine.kernel.dump().unwrap().is_empty());
}
