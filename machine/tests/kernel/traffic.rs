//! Packets go as what is installed says.

use std::collections::BTreeMap;
use std::process::Stdio;

use mapper_fib::NexthopId;
use mapper_fib::crossbar::{self, Role};
use mapper_fib::segments::{Element, Packing};
use mapper_fib::shortcuts::Shortcuts;
use mapper_proto::Mac;

use crate::can_make_namespaces;
use crate::machines::{Machine, ports, routes_to};

/// Whether a ping from a machine to this address is answered.
fn pings(from: &Machine, to: &str) -> bool {
    let mut ping = from.namespace.command("ping");
    ping.args(["-c", "1", "-w", "10", "-q", to]);
    ping.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
}

/// Whether one of three pings is answered at once.
fn answers(from: &Machine, to: &str) -> bool {
    let mut ping = from.namespace.command("ping");
    ping.args(["-c", "3", "-i", "0.1", "-W", "1", "-q", to]);
    ping.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
}

/// A crossbar of this many ports, a machine on each, and what every one of them holds. Each group has two nexthops along
/// the one way that there is.
fn star(arms: u8, packing: Packing, force_forwarding: bool) -> (Machine, Vec<Machine>) {
    let mut middle = Machine::new(100);
    let mut machines: Vec<_> = (1..=arms).map(Machine::new).collect();
    for (port, machine) in (0..).zip(&machines) {
        middle.cable(&format!("e{port}"), machine, "eth0");
    }
    let towards = |(port, machine)| middle.port(port, &format!("e{port}"), (machine, 0, "eth0"));
    let cabled: Vec<_> = (0..).zip(&machines).map(towards).collect();
    middle.forward(&cabled, true, force_forwarding);
    middle.install(&ports(&middle, &cabled, packing));
    for at in 0..machines.len() {
        // The strictest filter of all, as some distributions set it.
        machines[at].set("ipv4/conf/all/rp_filter", "1");
        let own = [machines[at].port(0, "eth0", (&middle, at as u8, &cabled[at].name))];
        machines[at].forward(&own, false, force_forwarding);
        let interface = own[0].interface;
        let mut wanted = crossbar::by_segments(&own, Role::AgentAlone, machines[at].delivery(), packing);
        for to in (0..machines.len()).filter(|&to| to != at) {
            let route = vec![Element::FirstPort(0), Element::Port(to as u8)];
            let (from, to) = (&machines[at], (&machines[to], to as u32));
            wanted.extend(routes_to(from, to.0, to.1, interface, &[route.clone(), route], packing));
        }
        machines[at].install(&wanted);
    }
    (middle, machines)
}

/// The packings that the kernel knows, and whether it forwards by single interfaces; in all combinations that are
/// possible here.
fn possible() -> Vec<(Packing, bool)> {
    let abilities = Machine::new(1).abilities();
    if !mapper_needs::or_skip(abilities.segments, "a kernel with SRv6") {
        return Vec::new();
    }
    let mut packings = vec![Packing::Full];
    if mapper_needs::or_skip(abilities.compression, "a kernel that obeys compressed segments") {
        packings.push(Packing::Compressed);
    }
    let mut forwarding = vec![false];
    if mapper_needs::or_skip(abilities.force_forwarding, "a kernel that forwards by single interfaces") {
        forwarding.push(true);
    }
    let both = |packing| forwarding.iter().map(move |&force_forwarding| (packing, force_forwarding));
    packings.into_iter().flat_map(both).collect()
}

/// A crossbar of this many ports, whose packets have compressed segments; none if the kernel knows no such segments.
fn star_with_compression(arms: u8) -> Option<(Machine, Vec<Machine>)> {
    let is_compressed = |(packing, _): &(Packing, bool)| *packing == Packing::Compressed;
    let (packing, force_forwarding) = possible().into_iter().find(is_compressed)?;
    Some(star(arms, packing, force_forwarding))
}

#[test]
fn a_crossbar_of_several_ports_sends_each_packet_out_of_the_port_that_its_segment_says() {
    if !can_make_namespaces() || !mapper_needs::programs(&["ping"]) {
        return;
    }
    for (packing, force_forwarding) in possible() {
        let (_middle, machines) = star(4, packing, force_forwarding);
        for from in &machines {
            for to in machines.iter().filter(|to| to.v4 != from.v4) {
                assert!(pings(from, &to.v4.to_string()), "{packing:?}: {} to {}", from.v4, to.v4);
                assert!(pings(from, &to.v6.to_string()), "{packing:?}: {} to {}", from.v6, to.v6);
            }
        }
    }
}

#[test]
fn packets_take_the_shortcuts_of_a_crossbar_only_from_its_ports_and_the_routes_where_there_are_none() {
    if !can_make_namespaces() || !mapper_needs::programs(&["ping"]) {
        return;
    }
    let Some((middle, machines)) = star_with_compression(3) else { return };
    let Machine { namespace, mut kernel, .. } = middle;
    let all = Shortcuts::of(&kernel.dump().unwrap());
    let mut set = |shortcuts: &Shortcuts| namespace.enter(|| kernel.set_shortcuts(shortcuts));
    if !mapper_needs::or_skip(set(&all).is_ok(), "a kernel with nftables at ports") {
        return;
    }
    // Routes alone would carry nothing any more.
    namespace.ip("-6 route flush table 28001");
    let pass = |at: usize, to: usize| answers(&machines[at], &machines[to].v4.to_string());
    assert!(pass(0, 1) && pass(1, 2) && answers(&machines[0], &machines[2].v6.to_string()));
    let mut without_one = all.clone();
    without_one.from.remove("e0");
    set(&without_one).unwrap();
    assert!(pass(1, 2) && !pass(0, 1), "a port that is none of the fabric's has no shortcut");
    set(&Shortcuts::default()).unwrap();
    assert!(!pass(1, 2));
    set(&all).unwrap();
    let mut refused = all.clone();
    refused.from.insert("a-name-that-is-too-long".to_owned());
    set(&refused).unwrap_err();
    assert!(!pass(1, 2), "what is refused leaves none of those before");
    set(&all).unwrap();
    assert!(pass(1, 2));
    // `nft` shows them, and nobody else takes them away.
    if !mapper_needs::programs(&["nft"]) {
        return;
    }
    let nft = |line: &str| {
        let output = namespace.command_line(&format!("nft {line}")).output().unwrap();
        let told = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        (output.status.success(), told)
    };
    let (is_shown, listed) = nft("list ruleset");
    assert!(is_shown && listed.contains("packets by segments go on") && !listed.contains("rror"), "{listed}");
    assert!(nft("flush ruleset").0 && pass(1, 2));
    // A firewall that looks at what is for this machine alone has nothing to say here.
    assert!(nft("add table ip6 filter").0);
    assert!(nft("add chain ip6 filter input { type filter hook input priority 0 ; }").0);
    set(&all).unwrap();
    assert!(pass(1, 2));
    assert!(nft("add chain ip6 filter forward { type filter hook forward priority 0 ; }").0);
    set(&all).unwrap();
    assert!(!pass(1, 2), "a firewall sees what goes on");
    assert!(nft("delete chain ip6 filter forward").0);
    set(&all).unwrap();
    assert!(pass(1, 2));
}

#[test]
fn a_crossbar_may_have_as_many_ports_with_shortcuts_as_there_are_elements() {
    if !can_make_namespaces() || !mapper_needs::programs(&["ping"]) {
        return;
    }
    let Some((middle, machines)) = star_with_compression(2) else { return };
    let Machine { namespace, mut kernel, .. } = middle;
    let mut all = Shortcuts::of(&kernel.dump().unwrap());
    if !mapper_needs::or_skip(
        namespace.enter(|| kernel.set_shortcuts(&all)).is_ok(),
        "a kernel with nftables at ports",
    ) {
        return;
    }
    for port in 2..=u8::MAX {
        all.to.insert(Element::Port(port).bits(), (1000 + u32::from(port), Mac([2, 0, 0, 0, 9, port])));
    }
    namespace.enter(|| kernel.set_shortcuts(&all)).unwrap();
    // Routes alone would carry nothing any more.
    namespace.ip("-6 route flush table 28001");
    assert!(answers(&machines[0], &machines[1].v4.to_string()));
    let mut refused = all.clone();
    refused.from.insert("a-name-that-is-too-long".to_owned());
    namespace.enter(|| kernel.set_shortcuts(&refused)).unwrap_err();
    assert!(
        !answers(&machines[0], &machines[1].v4.to_string()),
        "what is refused leaves none of those before"
    );
    namespace.enter(|| kernel.set_shortcuts(&all)).unwrap();
    assert!(answers(&machines[0], &machines[1].v4.to_string()));
}

#[test]
fn packets_of_both_versions_are_counted_also_along_a_single_way() {
    if !can_make_namespaces() || !mapper_needs::programs(&["ping"]) {
        return;
    }
    let Some(&(packing, force_forwarding)) = possible().first() else { return };
    let (_middle, mut machines) = star(2, packing, force_forwarding);
    if !mapper_needs::or_skip(
        !counts(&mut machines[0]).is_empty(),
        "a kernel that counts packets of nexthops",
    ) {
        return;
    }
    for to in [machines[1].v4.to_string(), machines[1].v6.to_string()] {
        let before: u64 = counts(&mut machines[0]).values().sum();
        assert!(pings(&machines[0], &to));
        let after: u64 = counts(&mut machines[0]).values().sum();
        assert!(after > before, "a ping to {to} is counted");
    }
}

fn counts(machine: &mut Machine) -> BTreeMap<NexthopId, u64> {
    machine.kernel.packets().unwrap()
}

#[test]
fn a_stranger_who_sends_segments_into_a_port_that_is_not_the_fabrics_reaches_nobody() {
    if !can_make_namespaces() || !mapper_needs::programs(&["ping"]) {
        return;
    }
    for (packing, force_forwarding) in possible() {
        let (middle, mut machines) = star(3, packing, force_forwarding);
        // The port is taken out of the fabric: the rule of its name is gone, and all else is as it was.
        let stranger = machines.remove(0);
        let (other, another) = (&machines[0], &machines[1]);
        assert!(pings(&stranger, &other.v4.to_string()), "{packing:?}");
        middle.namespace.ip("-6 rule del iif e0");
        assert!(!answers(&stranger, &other.v4.to_string()), "{packing:?}");
        assert!(pings(another, &other.v4.to_string()), "{packing:?}");
    }
}
