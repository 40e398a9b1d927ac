//! Settings that forwarding needs are set, kept, told and put back, and the machine keeps its other networks.

use std::collections::BTreeMap;
use std::net::SocketAddrV6;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mapper_machine::link::interface::Interface;
use mapper_machine::sysctl::{ForwardingNeeds, KeptSettings};
use socket2::{Domain, Protocol, Socket, Type};

use crate::can_make_namespaces;
use crate::machines::Machine;

/// A machine with two ports and another interface, all cabled to another machine.
fn machine_and_router() -> (Machine, Machine) {
    let (machine, other) = (Machine::new(1), Machine::new(2));
    for name in ["e0", "e1", "lan0"] {
        machine.cable(name, &other, name);
    }
    (machine, other)
}

/// What forwarding by these ports needs.
fn needs(machine: &Machine, ports: &[&str], force_forwarding: bool) -> ForwardingNeeds {
    let ports = ports.iter().map(|name| (machine.interface(name).index, (*name).to_owned()));
    let tap = Some(machine.interface("fabric0").index);
    ForwardingNeeds { ports: ports.collect(), tap, forwards: true, force_forwarding }
}

/// The settings of the machine's network that forwarding may touch, all of them.
fn all_settings(machine: &Machine) -> BTreeMap<PathBuf, String> {
    let keys = ["disable_ipv6", "force_forwarding", "forwarding", "accept_ra", "rp_filter"];
    machine.namespace.enter(|| {
        let mut all = BTreeMap::new();
        for family in ["ipv4", "ipv6"] {
            let folder = Path::new("/proc/sys/net").join(family);
            let conf = std::fs::read_dir(folder.join("conf")).unwrap().map(|entry| entry.unwrap().path());
            let files = conf.flat_map(|conf| keys.map(|key| conf.join(key)));
            let of_machine = ["fib_multipath_hash_policy", "nexthop_compat_mode"].map(|key| folder.join(key));
            for file in files.chain(of_machine) {
                if let Ok(value) = std::fs::read_to_string(&file) {
                    all.insert(file, value.trim().to_owned());
                }
            }
        }
        all
    })
}

fn value(machine: &Machine, name: &str) -> String {
    all_settings(machine)[&Path::new("/proc/sys/net").join(name)].clone()
}

fn keep(machine: &Machine, settings: &mut KeptSettings, needs: &ForwardingNeeds) {
    let failed = machine.namespace.enter(|| settings.keep(needs));
    assert!(failed.is_empty(), "{failed:?}");
}

fn restore(machine: &Machine, settings: KeptSettings) {
    let failed = machine.namespace.enter(|| settings.restore());
    assert!(failed.is_empty(), "{failed:?}");
}

/// What somebody changed, in words.
fn drifts(machine: &Machine, settings: &KeptSettings) -> Vec<String> {
    let drifts = machine.namespace.enter(|| settings.drifts()).unwrap();
    drifts.iter().map(ToString::to_string).collect()
}

/// Whether this kernel can forward by a single interface.
fn has_force_forwarding(machine: &Machine) -> bool {
    all_settings(machine).contains_key(Path::new("/proc/sys/net/ipv6/conf/e0/force_forwarding"))
}

#[test]
fn what_is_set_is_put_back_at_a_stop_also_by_a_run_that_comes_after_a_crash() {
    if !can_make_namespaces() {
        return;
    }
    let (machine, _other) = machine_and_router();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("settings.json");
    machine.set("ipv4/conf/all/rp_filter", "2");
    machine.set("ipv4/conf/e1/rp_filter", "1");
    machine.set("ipv6/conf/e1/disable_ipv6", "1");
    machine.set("ipv6/conf/lan0/forwarding", "1");
    let before = all_settings(&machine);
    for force_forwarding in [false, true] {
        if force_forwarding && !has_force_forwarding(&machine) {
            continue;
        }
        let needs = needs(&machine, &["e0", "e1"], force_forwarding);
        let mut first = KeptSettings::open(&file).unwrap();
        keep(&machine, &mut first, &needs);
        let kept = all_settings(&machine);
        assert_ne!(kept, before);
        assert!(drifts(&machine, &first).is_empty());
        // The first run ends here without putting anything back.
        drop(first);
        let mut second = KeptSettings::open(&file).unwrap();
        keep(&machine, &mut second, &needs);
        keep(&machine, &mut second, &needs);
        assert_eq!(all_settings(&machine), kept, "the second run changes nothing");
        restore(&machine, second);
        assert_eq!(all_settings(&machine), before);
        assert!(!file.exists());
    }
}

#[test]
fn ports_that_come_get_the_settings_and_those_that_go_get_theirs_back() {
    if !can_make_namespaces() {
        return;
    }
    let (machine, _other) = machine_and_router();
    let dir = tempfile::tempdir().unwrap();
    let before = all_settings(&machine);
    let mut settings = KeptSettings::open(&dir.path().join("settings.json")).unwrap();
    keep(&machine, &mut settings, &needs(&machine, &["e0"], false));
    assert_eq!(value(&machine, "ipv4/conf/e1/forwarding"), "0");
    keep(&machine, &mut settings, &needs(&machine, &["e0", "e1"], false));
    assert_eq!(value(&machine, "ipv4/conf/e1/forwarding"), "1");
    // A port is renamed, which its settings follow.
    machine.namespace.ip("link set e1 down");
    machine.namespace.ip("link set e1 name p1");
    assert!(drifts(&machine, &settings).is_empty());
    keep(&machine, &mut settings, &needs(&machine, &["e0"], false));
    assert_eq!(value(&machine, "ipv4/conf/p1/forwarding"), "0");
    machine.namespace.ip("link set p1 name e1");
    // One port is gone for good.
    let both = needs(&machine, &["e0", "e1"], false);
    keep(&machine, &mut settings, &both);
    machine.namespace.ip("link delete e0");
    let told = drifts(&machine, &settings);
    assert!(told.iter().any(|told| told.starts_with("net/ipv4/conf/e0/forwarding is gone")), "{told:?}");
    restore(&machine, settings);
    let mut without = before;
    without.retain(|path, _| !path.to_string_lossy().contains("/e0/"));
    assert_eq!(all_settings(&machine), without);
}

#[test]
fn who_sets_a_setting_back_is_told_and_has_the_last_word_at_a_stop() {
    if !can_make_namespaces() {
        return;
    }
    let (machine, _other) = machine_and_router();
    let dir = tempfile::tempdir().unwrap();
    let mut settings = KeptSettings::open(&dir.path().join("settings.json")).unwrap();
    let needs = needs(&machine, &["e0", "e1"], false);
    machine.set("ipv4/conf/e0/rp_filter", "1");
    keep(&machine, &mut settings, &needs);
    machine.set("ipv6/conf/all/forwarding", "0");
    machine.set("ipv4/conf/e0/rp_filter", "2");
    let told = drifts(&machine, &settings);
    let expected = [
        "net/ipv4/conf/e0/rp_filter was set to 2, and forwarding needs 0",
        "net/ipv6/conf/all/forwarding was set to 0, and forwarding needs 1",
    ];
    for expected in expected {
        assert!(told.iter().any(|told| told == expected), "{told:?}");
    }
    keep(&machine, &mut settings, &needs);
    assert!(drifts(&machine, &settings).is_empty());
    machine.set("ipv4/conf/e0/rp_filter", "2");
    restore(&machine, settings);
    assert_eq!(value(&machine, "ipv4/conf/e0/rp_filter"), "2");
    assert_eq!(value(&machine, "ipv6/conf/all/forwarding"), "0");
}

#[test]
fn a_filter_of_all_interfaces_goes_on_for_all_but_those_of_the_fabric() {
    if !can_make_namespaces() {
        return;
    }
    let (machine, _other) = machine_and_router();
    let dir = tempfile::tempdir().unwrap();
    machine.set("ipv4/conf/all/rp_filter", "1");
    machine.set("ipv4/conf/lan0/rp_filter", "2");
    let mut settings = KeptSettings::open(&dir.path().join("settings.json")).unwrap();
    keep(&machine, &mut settings, &needs(&machine, &["e0", "e1"], false));
    // The kernel takes the larger value of `all` and the interface's own.
    for (name, expected) in
        [("all", "0"), ("e0", "0"), ("e1", "0"), ("lan0", "2"), ("fabric0", "0"), ("default", "1")]
    {
        assert_eq!(value(&machine, &format!("ipv4/conf/{name}/rp_filter")), expected, "{name}");
    }
}

#[test]
fn a_filter_that_the_tap_interface_began_with_is_off_until_the_end() {
    if !can_make_namespaces() {
        return;
    }
    let (machine, _other) = machine_and_router();
    let dir = tempfile::tempdir().unwrap();
    machine.set("ipv4/conf/fabric0/rp_filter", "1");
    let before = all_settings(&machine);
    let mut settings = KeptSettings::open(&dir.path().join("settings.json")).unwrap();
    keep(&machine, &mut settings, &needs(&machine, &["e0", "e1"], false));
    assert_eq!(value(&machine, "ipv4/conf/fabric0/rp_filter"), "0");
    restore(&machine, settings);
    assert_eq!(all_settings(&machine), before);
}

#[test]
fn a_filter_of_all_interfaces_that_somebody_sets_later_is_told_and_goes_on_for_others_alone() {
    if !can_make_namespaces() {
        return;
    }
    let (machine, _other) = machine_and_router();
    let dir = tempfile::tempdir().unwrap();
    let before = all_settings(&machine);
    let mut settings = KeptSettings::open(&dir.path().join("settings.json")).unwrap();
    let needs = needs(&machine, &["e0", "e1"], false);
    keep(&machine, &mut settings, &needs);
    machine.set("ipv4/conf/all/rp_filter", "1");
    let told = drifts(&machine, &settings);
    assert_eq!(told, ["net/ipv4/conf/all/rp_filter was set to 1, and forwarding needs 0"]);
    keep(&machine, &mut settings, &needs);
    for (name, expected) in [("all", "0"), ("e0", "0"), ("lan0", "1"), ("fabric0", "0")] {
        assert_eq!(value(&machine, &format!("ipv4/conf/{name}/rp_filter")), expected, "{name}");
    }
    assert!(drifts(&machine, &settings).is_empty());
    restore(&machine, settings);
    let mut expected = before;
    expected.insert("/proc/sys/net/ipv4/conf/all/rp_filter".into(), "1".to_owned());
    assert_eq!(all_settings(&machine), expected, "the last word is that of whoever set it");
}

#[test]
fn where_a_record_cannot_be_kept_nothing_is_changed() {
    if !can_make_namespaces() {
        return;
    }
    let (machine, _other) = machine_and_router();
    let dir = tempfile::tempdir().unwrap();
    let before = all_settings(&machine);
    let mut settings = KeptSettings::open(&dir.path().join("nowhere").join("settings.json")).unwrap();
    let needs = needs(&machine, &["e0"], false);
    let failed = machine.namespace.enter(|| settings.keep(&needs));
    assert!(failed.len() == 1 && failed[0].to_string().contains("settings.json"), "{failed:?}");
    assert_eq!(all_settings(&machine), before);
}

/// Says on an interface, as a router does, that everything may be sent here for half an hour.
fn advertise(router: &Machine, interface: &str) {
    router.namespace.enter(|| {
        let index = Interface::look_up(interface).unwrap().unwrap().index;
        let socket = Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6)).unwrap();
        socket.set_multicast_hops_v6(255).unwrap();
        socket.set_multicast_if_v6(index).unwrap();
        let advertisement = [134, 0, 0, 0, 64, 0, 0x07, 0x08, 0, 0, 0, 0, 0, 0, 0, 0];
        let all_nodes = SocketAddrV6::new("ff02::1".parse().unwrap(), 0, 0, index);
        // An address that the kernel still checks cannot send.
        let _not_yet = socket.send_to(&advertisement, &all_nodes.into());
    });
}

/// Waits until the machine has the route to everywhere that a router advertised.
fn learns_route(machine: &Machine, router: &Machine) {
    let started = Instant::now();
    while !has_route(machine) {
        assert!(started.elapsed() < Duration::from_secs(60), "no route is learned");
        advertise(router, "lan0");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn has_route(machine: &Machine) -> bool {
    let output = machine.namespace.command_line("ip -6 route show default proto ra").output();
    !output.unwrap().stdout.is_empty()
}

#[test]
fn a_machine_keeps_the_routes_that_its_routers_advertise_and_learns_more() {
    if !can_make_namespaces() {
        return;
    }
    let (machine, router) = machine_and_router();
    learns_route(&machine, &router);
    let dir = tempfile::tempdir().unwrap();
    let mut settings = KeptSettings::open(&dir.path().join("settings.json")).unwrap();
    // The same holds on kernels that forward on all interfaces or on none.
    keep(&machine, &mut settings, &needs(&machine, &["e0", "e1"], false));
    assert_eq!(value(&machine, "ipv6/conf/all/forwarding"), "1");
    assert!(has_route(&machine), "the route is still there");
    machine.namespace.ip("-6 route flush proto ra");
    learns_route(&machine, &router);
    restore(&machine, settings);
    assert!(has_route(&machine), "the route is still there");
    machine.namespace.ip("-6 route flush proto ra");
    learns_route(&machine, &router);
}
