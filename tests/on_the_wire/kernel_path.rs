//! Users' packets through the kernels of real processes in network namespaces: what carries them, what is left of it,
//! and what becomes of it when somebody interferes.

use rustix::process::Signal;

use crate::can_carry_ip;
use crate::daemon::Daemon;
use crate::lab::wait_for;
use crate::namespace::Namespace;
use crate::pinging::Pinging;
use crate::ring::Ring;

impl Ring {
    /// Starts the node of a machine with an address of IPv4: 10.1.0.1, 10.1.0.2 and so on.
    pub(crate) fn start_addressed(&self, at: usize, options: &[&str]) -> Daemon {
        self.start(at, &[&["--address", &format!("10.1.0.{}/24", at + 1)], options].concat())
    }

    /// Starts all nodes, and waits until each one's packets to all others go by `kind`.
    pub(crate) fn start_all(&self, options: &[&str], kind: &str) -> Vec<Daemon> {
        let daemons = (0..self.machines.len()).map(|at| self.start_addressed(at, options)).collect();
        (0..self.machines.len()).for_each(|at| self.wait_for_kind(at, kind));
        daemons
    }

    pub(crate) fn wait_for_kind(&self, at: usize, kind: &str) {
        let others = self.machines.len() - 1;
        wait_for(&format!("packets of n{} go by {kind}", at + 1), || {
            let path = &self.board(at, &[])["data_path"];
            (path["kind"] == kind && path["installed"] == others).then_some(())
        });
    }

    pub(crate) fn text(&self, at: usize, line: &str) -> String {
        String::from_utf8(self.run(at, line).stdout).unwrap()
    }

    /// Whether the kernel of a machine holds anything of ours.
    pub(crate) fn holds_something(&self, at: usize) -> bool {
        ["ip route show proto 109", "ip -6 route show proto 109 table all", "ip nexthop show proto 109"]
            .iter()
            .any(|line| !self.text(at, line).trim().is_empty())
            || self.text(at, "ip -6 rule").contains("proto 109")
    }

    /// What the kernel of a machine holds of ours, for a test that fails.
    fn held(&self, at: usize) -> String {
        let lines = [
            "ip -4 route show table all proto 109",
            "ip -6 route show table all proto 109",
            "ip nexthop show proto 109",
        ];
        let texts: String = lines.iter().map(|line| self.text(at, line)).collect();
        format!("n{} holds\n{texts}", at + 1)
    }

    /// What the kernels of all machines hold of ours and what agents say, for a test that fails. The agents end with it.
    fn told(&self, daemons: Vec<Daemon>) -> String {
        let held = |at| format!("{}and says {:#}\n", self.held(at), self.board(at, &[])["data_path"]);
        let kernels: String = (0..self.machines.len()).map(held).collect();
        let logs: Vec<String> = daemons.into_iter().map(Daemon::end).collect();
        format!("{kernels}logs:\n{}", logs.join("\n"))
    }

    /// What the tap interface of a machine has sent so far, in packets.
    pub(crate) fn sent_by_tap(&self, at: usize) -> u64 {
        self.text(at, "cat /sys/class/net/fabric0/statistics/tx_packets").trim().parse().unwrap_or_default()
    }
}

/// How many of twenty pings in a row are answered.
pub(crate) fn pings(machine: &Namespace, to: &str) -> usize {
    let output = machine.command_line(&format!("ping -c 20 -i 0.01 -W 1 {to}")).output().unwrap();
    String::from_utf8(output.stdout).unwrap().matches("bytes from").count()
}

/// Waits until twenty pings in a row are answered: a busy machine may map anew meanwhile.
pub(crate) fn wait_for_pings(machine: &Namespace, to: &str) {
    wait_for(&format!("all pings to {to} are answered"), || (pings(machine, to) == 20).then_some(()));
}

#[test]
fn kernels_carry_packets_by_segments_and_nothing_is_left_behind() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(3);
    let before: Vec<_> = (0..3).map(|at| ring.text(at, "sysctl net.ipv6.conf net.ipv4.conf.all")).collect();
    let daemons = ring.start_all(&[], "srv6");
    let six = |at: usize| {
        let board = ring.board(at, &[])["addresses"].to_string();
        let address = board.split('"').find(|text| text.starts_with("fd6d:")).unwrap();
        address.split('/').next().unwrap().to_owned()
    };
    let addresses = ["10.1.0.2".to_owned(), six(1), "10.1.0.3".to_owned(), six(2)];
    // A busy machine may map anew meanwhile. Then packets go by the tap interface for a moment, and new ways count anew.
    let board = wait_for("all pings go by the kernels", || {
        let by_tap = ring.sent_by_tap(0);
        let answered = addresses.iter().all(|to| pings(&ring.machines[0], to) == 20);
        let board = ring.board(0, &["--routes"]);
        let routes = board["routes_in_force"].as_array()?;
        let sent: u64 = routes.iter().filter_map(|route| route["packets"].as_u64()).sum();
        // The kernel may have sent a word or two of its own.
        (answered && sent >= 80 && ring.sent_by_tap(0) < by_tap + 20).then_some(board)
    });
    let routes = board["routes_in_force"].as_array().unwrap();
    let hops = routes[0]["hop_names"].to_string();
    assert!(hops.starts_with("[\"n1:"), "{hops}");
    assert!(
        routes.iter().all(|route| route["segments"][0].as_str().unwrap().starts_with("fcbb:bb00:f1")),
        "{board:#}"
    );
    for daemon in daemons {
        daemon.end();
    }
    for (at, before) in before.iter().enumerate() {
        assert!(!ring.holds_something(at));
        assert_eq!(ring.text(at, "sysctl net.ipv6.conf net.ipv4.conf.all"), *before, "settings are put back");
    }
}

#[test]
fn kernels_carry_packets_by_their_destination_in_full_length() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(4);
    let _daemons = ring.start_all(&["--data-path", "routes"], "routes");
    for to in 2..=4 {
        // A busy machine may map anew meanwhile, and then packets go by the tap interface for a moment.
        wait_for(&format!("packets of full length reach n{to}"), || {
            let whole = ring.run(0, &format!("ping -c 3 -i 0.1 -M do -s 1472 10.1.0.{to}"));
            (whole.status.success() && pings(&ring.machines[0], &format!("10.1.0.{to}")) == 20).then_some(())
        });
    }
    let nexthops = ring.text(0, "ip nexthop show");
    assert!(nexthops.contains("via fe80::6d61:7070") && !nexthops.contains("seg6"), "{nexthops}");
}

#[test]
fn who_chooses_the_tap_interface_and_who_chooses_segments_reach_each_other() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(4);
    let kinds = ["tap", "auto", "routes", "srv6"];
    let _daemons: Vec<_> =
        kinds.iter().enumerate().map(|(at, kind)| ring.start_addressed(at, &["--data-path", kind])).collect();
    for from in 0..4 {
        for to in (0..4).filter(|&to| to != from) {
            wait_for(&format!("{} reaches {}", kinds[from], kinds[to]), || {
                (pings(&ring.machines[from], &format!("10.1.0.{}", to + 1)) == 20).then_some(())
            });
        }
    }
    assert_eq!(ring.board(0, &[])["data_path"]["kind"], "tap");
    assert!(!ring.holds_something(0));
}

/// What somebody may take away or change on a machine, whatever its packets go by.
const TAKEN_AWAY: [&str; 5] = [
    "ip route flush proto 109",
    "ip nexthop flush proto 109",
    "ip neigh flush nud permanent",
    "sysctl -w net.ipv6.conf.e1.force_forwarding=0",
    "sysctl -w net.ipv4.conf.e1.forwarding=0",
];

#[test]
fn what_somebody_takes_away_of_segments_comes_back_and_the_board_says_so() {
    if can_carry_ip() {
        let of_segments = ["ip -6 route flush table 28001", "ip -6 rule del lookup 28001"];
        comes_back("srv6", &of_segments);
    }
}

#[test]
fn what_somebody_takes_away_of_routes_by_destination_comes_back_and_the_board_says_so() {
    if can_carry_ip() {
        comes_back("routes", &["ip -6 route flush table 28003", "ip -6 rule del lookup 28003"]);
    }
}

/// Somebody takes away what packets go by, beside what is taken away of any kind.
fn comes_back(kind: &str, of_kind: &[&str]) {
    let ring = Ring::new(3);
    let _daemons = ring.start_all(&["--data-path", kind], kind);
    let changed = ["sysctl -w net.ipv4.conf.e2.rp_filter=1", "sysctl -w net.ipv4.conf.all.rp_filter=1"];
    for line in TAKEN_AWAY.iter().chain(of_kind).chain(&changed) {
        let put_right = || ring.board(1, &[])["data_path"]["put_right"].as_u64().unwrap();
        let before = put_right();
        assert!(ring.run(1, line).status.success(), "{line}");
        wait_for(&format!("after `{line}`, what was taken away is there again"), || {
            (put_right() > before && pings(&ring.machines[1], "10.1.0.1") == 20).then_some(())
        });
        ring.wait_for_kind(1, kind);
    }
    // Objects of others stay.
    assert!(ring.run(1, "ip route add 192.0.2.0/24 dev e1 proto static").status.success());
    assert!(ring.run(1, "ip route flush proto 109").status.success());
    ring.wait_for_kind(1, kind);
    assert!(ring.text(1, "ip route show proto static").contains("192.0.2.0/24"));
}

/// Some distributions have each interface drop what comes in where the way back leads elsewhere.
#[test]
fn what_goes_by_the_tap_interface_arrives_where_interfaces_begin_with_a_strict_filter() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(3);
    for conf in ["all", "default"] {
        assert!(ring.run(1, &format!("sysctl -w net.ipv4.conf.{conf}.rp_filter=1")).status.success());
    }
    let _daemons = ring.start_all(&["--data-path", "srv6"], "srv6");
    // Packets that are longer than a route by segments carries go by the tap interface, and the answer by the kernel.
    wait_for("long packets arrive", || {
        ring.run(0, "ping -c 3 -i 0.1 -W 1 -s 3000 10.1.0.2").status.success().then_some(())
    });
}

#[test]
fn packets_by_segments_go_on_when_a_node_crashes_and_when_it_comes_back() {
    if can_carry_ip() {
        crash_and_come_back("srv6");
    }
}

#[test]
fn packets_by_destination_go_on_when_a_node_crashes_and_when_it_comes_back() {
    if can_carry_ip() {
        crash_and_come_back("routes");
    }
}

/// A node crashes, and at most five pings to it get lost; it comes back, and none of those from it does.
fn crash_and_come_back(kind: &str) {
    let ring = Ring::new(3);
    // Agents are patient, as on a busy machine none must hold a live cable for dead when the node crashes or comes back.
    let options = ["--liveness-misses", "10", "--data-path", kind];
    let mut daemons = ring.start_all(&options, kind);
    // Packets to it are under way, so its neighbours watch the paths there, and its silence looks like dead cables.
    let to_it = Pinging::start(&ring.machines[0], "10.1.0.2");
    wait_for("the path is watched", || {
        (ring.board(0, &[])["counters"]["liveness"]["watched"].as_u64() > Some(0)).then_some(())
    });
    // On a busy machine agents may have mapped again meanwhile, and a host that sends nothing by the kernels yet when the
    // node crashes will not begin to.
    (0..3).for_each(|at| ring.wait_for_kind(at, kind));
    let crashed = daemons.remove(1);
    crashed.signal(Signal::KILL);
    drop(crashed);
    wait_for("the others have a map without it", || (ring.board(0, &[])["hosts"] == 2).then_some(()));
    assert!(ring.holds_something(1), "a crash leaves all as it is");
    assert_eq!(pings(&ring.machines[0], "10.1.0.2"), 20, "packets to it go on");
    let (sent, answered) = to_it.end();
    assert!(sent - answered <= 5, "{answered} of {sent} pings were answered");
    let answered = pings(&ring.machines[1], "10.1.0.3");
    if answered < 20 {
        panic!("{answered} of 20 pings from the kernel that is left alone: {}", ring.told(daemons));
    }
    let pinging = Pinging::start(&ring.machines[1], "10.1.0.3");
    daemons.push(ring.start_addressed(1, &options));
    ring.wait_for_kind(1, kind);
    // Two for each host, and where packets pass by their destination one more.
    let expected = if kind == "routes" { 6 } else { 4 };
    wait_for("nothing of the first run is left", || {
        let groups = ring.text(1, "ip nexthop show groups");
        (groups.lines().count() == expected).then_some(())
    });
    assert_eq!(pings(&ring.machines[1], "10.1.0.3"), 20, "packets go on by what this run has installed");
    let path = &ring.board(1, &[])["data_path"];
    assert_eq!(path["put_right"], 0, "what the first run left is nothing that others changed: {path:#}");
    let (sent, answered) = pinging.end();
    if sent <= 20 || answered < sent {
        panic!("{answered} of {sent} pings from the node that is back: {}", ring.told(daemons));
    }
}

#[test]
fn routes_stay_when_they_are_told_to() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(3);
    let daemons = ring.start_all(&["--keep-routes"], "srv6");
    for daemon in daemons {
        daemon.end();
    }
    for from in 0..3 {
        assert!(ring.holds_something(from));
    }
    // Nobody answers for the tap interface any more, which is gone with its addresses. The kernels forward still.
    let _daemons = ring.start_all(&[], "srv6");
    wait_for_pings(&ring.machines[0], "10.1.0.2");
}

#[test]
fn routes_that_were_mapped_once_carry_packets_when_no_agent_runs_any_more() {
    if !can_carry_ip() {
        return;
    }
    for kind in ["srv6", "routes"] {
        let ring = Ring::new(4);
        let options = ["--keep-routes", "--map-once", "--data-path", kind];
        // The first one ends seconds before the others, which see that it is gone.
        let patient = [&options[..], &["--verify-pause-ms", "3000"]].concat();
        let start = |at| ring.start_addressed(at, if at == 0 { &options } else { &patient });
        // It is started last, as on a busy machine it could end before it has found some of the others.
        let mut daemons: Vec<_> = (1..4).map(start).collect();
        daemons.insert(0, start(0));
        let logs: Vec<String> = daemons.into_iter().map(Daemon::wait_for_end).collect();
        for from in 0..4 {
            for to in (0..4).filter(|&to| to != from) {
                let to_address = format!("10.1.0.{}", to + 1);
                let answered = pings(&ring.machines[from], &to_address);
                let said = || {
                    let routes = |at| ring.text(at, "ip -4 route show proto 109");
                    [from, to]
                        .map(|at| format!("n{} has\n{}, and said\n{}", at + 1, routes(at), logs[at]))
                        .concat()
                };
                assert_eq!(answered, 20, "n{} to {to_address} by {kind}: {}", from + 1, said());
            }
        }
    }
}

#[test]
fn a_cable_that_loses_carrier_costs_a_ping_or_two() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(4);
    let _daemons = ring.start_all(&[], "srv6");
    for (node, port) in [(0, "e1"), (1, "e1"), (3, "e2")] {
        // Frames that get lost before the cable is cut are not its doing: a busy machine may map again at any time.
        for to in 1..4 {
            wait_for_pings(&ring.machines[0], &format!("10.1.0.{}", to + 1));
        }
        let pinging: Vec<_> =
            (1..4).map(|to| Pinging::start(&ring.machines[0], &format!("10.1.0.{}", to + 1))).collect();
        wait_for("pings pass", || (pings(&ring.machines[0], "10.1.0.3") == 20).then_some(()));
        ring.machines[node].ip(&format!("link set {port} down"));
        wait_for("all are reached another way", || {
            let all = (1..4).all(|to| pings(&ring.machines[0], &format!("10.1.0.{}", to + 1)) == 20);
            all.then_some(())
        });
        for (to, pinging) in (1..4).zip(pinging) {
            let (sent, answered) = pinging.end();
            // A busy machine is late with everything, so the gap is bounded loosely here and measured by a bench.
            assert!(sent - answered < sent / 2, "n{}: {answered} of {sent} pings were answered", to + 1);
        }
        ring.machines[node].ip(&format!("link set {port} up"));
        (0..4).for_each(|at| ring.wait_for_kind(at, "srv6"));
    }
}

#[test]
fn kernels_that_stop_forwarding_are_left_soon_as_their_hosts_answer_still() {
    if !can_carry_ip() || !mapper_needs::programs(&["ip6tables"]) {
        return;
    }
    let ring = Ring::new(4);
    // Shortcuts do not ask a firewall for leave to forward.
    let _daemons = ring.start_all(&["--kernel-avoid", "shortcuts"], "srv6");
    let pinging = Pinging::start(&ring.machines[0], "10.1.0.3");
    wait_for("pings pass", || (pings(&ring.machines[0], "10.1.0.3") == 20).then_some(()));
    // Both ways lead through one of them each.
    for between in [1, 3] {
        assert!(ring.run(between, "ip6tables -P FORWARD DROP").status.success());
    }
    wait_for("packets go by the tap interface", || {
        (pings(&ring.machines[0], "10.1.0.3") == 20).then_some(())
    });
    let (sent, answered) = pinging.end();
    // Of a host that answers nothing at all a way is given up after six seconds, which are 600 pings.
    assert!(sent - answered < 400, "{answered} of {sent} pings were answered");
    for between in [1, 3] {
        assert!(ring.run(between, "ip6tables -P FORWARD ACCEPT").status.success());
    }
    ring.wait_for_kind(0, "srv6");
}

#[test]
fn a_port_that_is_deleted_takes_its_ways_along_and_packets_go_by_the_kernels_still() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(3);
    let _daemons = ring.start_all(&[], "srv6");
    ring.machines[0].ip("link delete e1");
    wait_for("the next machine is reached the other way round", || {
        (pings(&ring.machines[0], "10.1.0.2") == 20).then_some(())
    });
    for at in 0..2 {
        ring.wait_for_kind(at, "srv6");
    }
    let nexthops = ring.text(0, "ip nexthop show");
    assert!(nexthops.contains("dev e2") && !nexthops.contains("dev e1"), "{nexthops}");
}

#[test]
fn ways_carry_as_much_as_the_cables_do_when_their_mtu_changes() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(3);
    let _daemons = ring.start_all(&[], "srv6");
    for (mtu, inside) in [(1400, 1360), (1500, 1460)] {
        for machine in &ring.machines {
            machine.ip(&format!("link set e1 mtu {mtu}"));
            machine.ip(&format!("link set e2 mtu {mtu}"));
        }
        wait_for(&format!("routes of {inside} bytes over cables of {mtu}"), || {
            // Routes for packets that are too long have another type of service.
            let routes = ring.text(0, "ip route show proto 109 tos 0");
            let marked = ring.text(0, "nft list ruleset");
            let is_told = marked.contains(&format!("packets longer than {inside} bytes"));
            (routes.lines().count() == 2 && is_told).then_some(())
        });
        wait_for("packets as long as that, and longer ones", || {
            let fits = ring.run(0, &format!("ping -c 3 -i 0.1 -M do -s {} 10.1.0.2", inside - 28));
            let longer = ring.run(0, "ping -c 3 -i 0.1 -s 3000 10.1.0.2");
            (fits.status.success() && longer.status.success()).then_some(())
        });
        ring.wait_for_kind(0, "srv6");
    }
}

#[test]
fn a_stranger_beside_the_fabric_sends_no_segment_through_it() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(3);
    let outside = Namespace::new();
    ring.machines[0].ip(&format!("link add out type veth peer name in netns {}", outside.name));
    ring.machines[0].ip("link set out up");
    ring.machines[0].ip("address add fd00:9::1/64 dev out nodad");
    outside.ip("link set in up");
    outside.ip("address add fd00:9::2/64 dev in nodad");
    outside.ip("route add fcbb:bb00::/32 via fd00:9::1 dev in");
    // Shortcuts are at the fabric's ports alone, and the kernel does not count what takes them.
    let _daemons = ring.start_all(&["--kernel-avoid", "shortcuts"], "srv6");
    let forwarded = || -> u64 {
        let counters = ring.text(0, "cat /proc/net/snmp6");
        let line = counters.lines().find(|line| line.starts_with("Ip6OutForwDatagrams")).unwrap();
        line.split_whitespace().last().unwrap().parse().unwrap()
    };
    // Packets go on by these segments if they come from the fabric, so that nothing here passes for want of a way.
    let segments = "fcbb:bb00:2:3:fff6::";
    ring.machines[2].ip("route add fcbb:bb00:2::/48 via fe80::6d61:7070 dev e1");
    wait_for("segments from the fabric are obeyed", || {
        let before = forwarded();
        let _unanswered =
            ring.machines[2].command_line(&format!("ping -c 5 -i 0.01 -W 1 {segments}")).output().unwrap();
        (forwarded() > before).then_some(())
    });
    // Nor are those obeyed by which the machine's own packets leave, once it forwards for all interfaces, as it does for itself
    // where its kernel cannot do so for some alone.
    for (setting, segments) in
        [("out.force_forwarding", segments), ("all.forwarding", "fcbb:bb00:f102:2:fff6::")]
    {
        assert!(ring.run(0, &format!("sysctl -w net.ipv6.conf.{setting}=1")).status.success());
        wait_for("the machine looks at what comes in beside the fabric", || {
            ring.text(0, "nft list tables").contains("mapper-strangers").then_some(())
        });
        let before = forwarded();
        let sent = outside.command_line(&format!("ping -c 50 -i 0.002 -W 1 {segments}")).output().unwrap();
        assert!(!sent.status.success());
        // On a busy machine another may hold a cable for dead for a while, and send a few of its packets this way.
        assert!(forwarded() < before + 25, "the fifty are not forwarded: {setting}");
    }
    // Packets for addresses that are no segments go on, as the machine was told.
    ring.machines[0].ip("address add fd00:9:9::1/64 dev e1 nodad");
    outside.ip("route add fd00:9:9::/64 via fd00:9::1 dev in");
    assert!(outside.command_line("ping -c 3 -i 0.1 -W 1 fd00:9:9::1").output().unwrap().status.success());
}
