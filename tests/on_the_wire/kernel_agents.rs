//! Agents without a crossbar whose packets go by their destination: behind a node of a ring, and cabled to each other.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::daemon::Daemon;
use crate::kernel_path::{pings, wait_for_pings};
use crate::kernel_tables::check;
use crate::lab::wait_for;
use crate::namespace::Namespace;
use crate::pinging::Pinging;
use crate::ring::Ring;
use crate::{MAPPER, can_carry_ip};

/// A machine with an agent at its interface eth0, which is called as the machine's number, h4 say, and has the address of that
/// number.
struct Machine {
    namespace: Namespace,
    number: usize,
    run_dir: tempfile::TempDir,
}

impl Machine {
    fn new(number: usize) -> Self {
        let namespace = Namespace::new();
        namespace.ip("link set lo up");
        Self { namespace, number, run_dir: tempfile::tempdir().unwrap() }
    }

    fn start(&self, options: &[&str]) -> Daemon {
        let (name, address) = (format!("h{}", self.number), format!("10.1.0.{}/24", self.number));
        let words = ["--tap", "fabric0", "--host-name", &name, "--address", &address];
        Daemon::agent(&self.namespace, "eth0", self.run_dir.path(), &[&words[..], options].concat())
    }

    /// What `mapper` says when it is asked with these words.
    fn ask(&self, words: &[&str]) -> Value {
        let mut command = self.namespace.command(MAPPER);
        command.args(words).args(["--format", "json", "--run-dir"]).arg(self.run_dir.path());
        serde_json::from_slice(&command.output().unwrap().stdout).unwrap_or_default()
    }

    fn board(&self, options: &[&str]) -> Value {
        self.ask(&[&["board-info"], options].concat())["boards"][0].clone()
    }

    fn text(&self, line: &str) -> String {
        String::from_utf8(self.namespace.command_line(line).output().unwrap().stdout).unwrap()
    }

    fn wait_for_routes(&self, others: usize) {
        wait_for(&format!("packets of h{} go by routes", self.number), || {
            let path = &self.board(&[])["data_path"];
            (path["kind"] == "routes" && path["installed"] == others).then_some(())
        });
    }

    /// Waits until all pings to an address pass by the kernel, and hardly a packet by the tap interface.
    fn wait_for_kernel_pings(&self, to: &str) {
        let sent_by_tap = || -> u64 {
            self.text("cat /sys/class/net/fabric0/statistics/tx_packets").trim().parse().unwrap_or_default()
        };
        wait_for(&format!("pings to {to} go by the kernel"), || {
            let before = sent_by_tap();
            // The kernel may have sent a word or two of its own.
            (pings(&self.namespace, to) == 20 && sent_by_tap() < before + 10).then_some(())
        });
        let route = self.text(&format!("ip route get {to}"));
        assert!(route.contains("dev eth0") && !route.contains("fabric0"), "{route}");
    }

    fn holds_something(&self) -> bool {
        ["ip route show proto 109", "ip -6 route show proto 109 table all", "ip nexthop show proto 109"]
            .iter()
            .any(|line| !self.text(line).trim().is_empty())
    }
}

/// A ring of three nodes, the first of which has a third port e3 to a machine with an agent.
fn ring_with_agent() -> (Ring, Machine) {
    let (ring, host) = (Ring::new(3), Machine::new(4));
    ring.machines[0].ip(&format!("link add e3 type veth peer name eth0 netns {}", host.namespace.name));
    (ring, host)
}

impl Ring {
    /// Starts all nodes, the first of them with a third port.
    fn start_with_third_port(&self, options: &[&str]) -> Vec<Daemon> {
        let words = ["node", "--ports", "e1,e2,e3", "--host-name", "n1", "--run-dir", self.run_dir(0)];
        let words = [&words[..], &["--address", "10.1.0.1/24"], options].concat();
        let first = Daemon::start(&self.machines[0], &words, "the agent runs");
        [first].into_iter().chain((1..3).map(|at| self.start_addressed(at, options))).collect()
    }

    /// Waits until each node's packets to three others go by their destination.
    fn wait_for_routes(&self) {
        for at in 0..3 {
            wait_for(&format!("packets of n{} go by routes", at + 1), || {
                let path = &self.board(at, &[])["data_path"];
                (path["kind"] == "routes" && path["installed"] == 3).then_some(())
            });
        }
    }
}

#[test]
fn an_agent_behind_a_ring_of_nodes_goes_by_destination_and_reaches_all_of_them_also_when_a_cable_dies() {
    if !can_carry_ip() {
        return;
    }
    let (ring, host) = ring_with_agent();
    let routes = ["--data-path", "routes"];
    let _nodes = ring.start_with_third_port(&routes);
    let before = host.text("sysctl net.ipv6.conf net.ipv4.conf.all");
    let agent = host.start(&routes);
    ring.wait_for_routes();
    host.wait_for_routes(3);
    for to in 1..=3 {
        host.wait_for_kernel_pings(&format!("10.1.0.{to}"));
        wait_for_pings(&ring.machines[to - 1], "10.1.0.4");
        wait_for("packets of full length", || {
            let line = format!("ping -c 3 -i 0.1 -M do -s 1472 10.1.0.{to}");
            let whole = host.namespace.command_line(&line).output().unwrap();
            whole.status.success().then_some(())
        });
    }
    for from in 0..3 {
        for to in (0..3).filter(|&to| to != from) {
            wait_for_pings(&ring.machines[from], &format!("10.1.0.{}", to + 1));
        }
        assert!(!ring.text(from, "ip nexthop show").contains("seg6"), "n{} wraps nothing", from + 1);
    }
    let nexthops = host.text("ip nexthop show");
    assert!(nexthops.contains("via 169.254.0.109 dev eth0") && !nexthops.contains("seg6"), "{nexthops}");
    assert_eq!(host.text("sysctl -n net.ipv4.conf.eth0.forwarding").trim(), "0");

    // The board and a trace tell the way behind the one interface.
    wait_for("the way behind the interface is told", || {
        let board = host.board(&["--routes"]);
        let told = board["by_destination"].as_array()?.iter().find(|it| it["name"] == "n2")?;
        let (behind, way) = (told["behind"][0].as_str()?, told["ways"][0].as_array()?);
        let (first, last) = (way.first()?.as_str()?, way.last()?.as_str()?);
        (first == format!("{behind}:1") && last.starts_with("n2:") && way.len() == 2).then_some(())
    });
    wait_for("a trace walks the kernels", || {
        let to_node = host.ask(&["trace", "n2"]);
        let to_first = host.ask(&["trace", "n1"]);
        let hops = |traced: &Value| {
            let ways = traced["boards"][0]["ways"].as_array()?;
            let way = ways.iter().find(|way| way["by"] == "routes" && way["verdict"] == "all answer")?;
            Some(way["hops"].as_array()?.iter().map(|hop| hop["name"].clone()).collect::<Vec<_>>())
        };
        let (to_node, to_first) = (hops(&to_node)?, hops(&to_first)?);
        // A node's own crossbar is no hop before it.
        (to_node.len() == 2 && to_node[1] == "n2" && to_first == ["n1"]).then_some(())
    });

    let dir = tempfile::tempdir().unwrap();
    let (map, routes) = (dir.path().join("map.json"), dir.path().join("routes"));
    // A busy machine may map anew meanwhile.
    wait_for("what all kernels forward is proved together", || {
        let words = ["--routes", "--routes-dir", routes.to_str()?, "--map-file", map.to_str()?];
        (0..3).for_each(|at| drop(ring.board(at, &words)));
        host.board(&words);
        let report: Value = serde_json::from_slice(&check(&map, &routes).stdout).unwrap_or_default();
        let is_proved = report["by_destination"] == 4 * 3 && report["proof"]["violations"] == json!([]);
        (is_proved && report["notes"] == json!([])).then_some(())
    });

    // The cable dies that its packets to n2 take.
    let pinging = Pinging::start(&host.namespace, "10.1.0.2");
    wait_for("pings pass", || (pings(&host.namespace, "10.1.0.2") == 20).then_some(()));
    ring.machines[1].ip("link set e2 down");
    wait_for_pings(&host.namespace, "10.1.0.2");
    wait_for("the kernels go round the other way", || {
        let routes = ring.text(0, "ip route get 10.1.0.2");
        routes.contains("dev e2").then_some(())
    });
    wait_for_pings(&host.namespace, "10.1.0.2");
    let (sent, answered) = pinging.end();
    // A busy machine is late with everything.
    assert!(sent - answered < sent / 2, "{answered} of {sent} pings were answered");
    host.wait_for_routes(3);
    host.wait_for_kernel_pings("10.1.0.2");
    ring.machines[1].ip("link set e2 up");

    agent.end();
    assert!(!host.holds_something());
    assert_eq!(host.text("sysctl net.ipv6.conf net.ipv4.conf.all"), before, "settings are put back");
    wait_for("the nodes have a map without it", || (ring.board(0, &[])["hosts"] == 3).then_some(()));
    wait_for_pings(&ring.machines[1], "10.1.0.3");
}

#[test]
fn packets_to_and_from_an_agent_that_crashed_go_on_by_destination_and_its_next_run_takes_over() {
    if !can_carry_ip() {
        return;
    }
    let (ring, host) = ring_with_agent();
    // Agents are patient, as on a busy machine none must hold a live cable for dead.
    let options = ["--liveness-misses", "10", "--data-path", "routes"];
    let _nodes = ring.start_with_third_port(&options);
    let agent = host.start(&options);
    ring.wait_for_routes();
    host.wait_for_routes(3);
    host.wait_for_kernel_pings("10.1.0.3");
    let pinging = Pinging::start(&ring.machines[1], "10.1.0.4");
    agent.signal(Signal::KILL);
    drop(agent);
    wait_for("the nodes have a map without it", || (ring.board(0, &[])["hosts"] == 3).then_some(()));
    assert!(host.holds_something(), "a crash leaves all as it is");
    assert_eq!(pings(&ring.machines[2], "10.1.0.4"), 20, "packets to it go on");
    assert_eq!(pings(&host.namespace, "10.1.0.3"), 20, "packets from it go on");
    let (sent, answered) = pinging.end();
    assert!(sent > 20 && sent - answered <= 5, "{answered} of {sent} pings to it were answered");
    let pinging = Pinging::start(&host.namespace, "10.1.0.3");
    let _agent = host.start(&options);
    host.wait_for_routes(3);
    ring.wait_for_routes();
    wait_for("nothing of the first run is left", || {
        let groups = host.text("ip nexthop show groups");
        (groups.lines().count() == 6).then_some(())
    });
    host.wait_for_kernel_pings("10.1.0.3");
    let (sent, answered) = pinging.end();
    assert!(
        sent > 20 && answered == sent,
        "{answered} of {sent} pings from it were answered when it came back"
    );
}

#[test]
fn of_two_agents_of_one_machine_only_one_has_the_kernel_carry_packets() {
    if !can_carry_ip() {
        return;
    }
    let machines = [Machine::new(1), Machine::new(2)];
    let [one, other] = &machines;
    one.namespace.ip(&format!("link add eth0 type veth peer name eth0 netns {}", other.namespace.name));
    one.namespace.ip("link add eth1 type veth peer name far");
    let _agents: Vec<_> = machines.iter().map(|machine| machine.start(&["--data-path", "routes"])).collect();
    machines.iter().for_each(|machine| machine.wait_for_routes(1));
    let run_dir = tempfile::tempdir().unwrap();
    let words = ["--tap", "fabric1", "--address", "10.2.0.1/24", "--data-path"];
    let refused = {
        let mut command = one.namespace.command(MAPPER);
        command.args(["agent", "--interface", "eth1", "--run-dir"]).arg(run_dir.path());
        command.args(words).arg("routes").output().unwrap()
    };
    let errors = String::from_utf8(refused.stderr).unwrap();
    assert!(
        !refused.status.success() && errors.contains("another agent or node of this machine"),
        "{errors}"
    );
    let without_segments = ["auto", "--kernel-avoid", "segments"];
    let options = [&words[..], &without_segments].concat();
    let _second = Daemon::agent(&one.namespace, "eth1", run_dir.path(), &options);
    let mut command = one.namespace.command(MAPPER);
    command.args(["board-info", "--format", "json", "--run-dir"]).arg(run_dir.path());
    let board: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    let path = &board["boards"][0]["data_path"];
    assert_eq!(path["kind"], "tap");
    assert!(path["why"].as_str().unwrap().contains("another agent or node"), "{path}");
    let put_right = || one.board(&[])["data_path"]["put_right"].clone();
    let before = put_right();
    one.wait_for_kernel_pings("10.1.0.2");
    assert_eq!(put_right(), before, "nobody takes away what is the first one's");
}

#[test]
fn two_agents_that_are_cabled_to_each_other_go_by_destination_without_any_crossbar() {
    if !can_carry_ip() {
        return;
    }
    let machines = [Machine::new(1), Machine::new(2)];
    let [one, other] = &machines;
    one.namespace.ip(&format!("link add eth0 type veth peer name eth0 netns {}", other.namespace.name));
    let _agents: Vec<_> = machines.iter().map(|machine| machine.start(&["--data-path", "routes"])).collect();
    machines.iter().for_each(|machine| machine.wait_for_routes(1));
    one.wait_for_kernel_pings("10.1.0.2");
    other.wait_for_kernel_pings("10.1.0.1");
    assert!(!one.text("ip nexthop show").contains("seg6"));
}

#[test]
fn beside_an_agent_that_goes_by_nothing_else_nodes_with_segments_go_by_destination_and_say_for_whose_sake() {
    if !can_carry_ip() {
        return;
    }
    let (ring, host) = ring_with_agent();
    let mut nodes = ring.start_with_third_port(&["--log-level", "info"]);
    let _agent = host.start(&["--kernel-avoid", "segments"]);
    for node in &mut nodes {
        node.read_log_until(
            "users' packets go by routes: kernels forward by the destination, by proved tables, as that of h4",
        );
    }
    ring.wait_for_routes();
    host.wait_for_routes(3);
    for to in 1..=3 {
        host.wait_for_kernel_pings(&format!("10.1.0.{to}"));
        wait_for_pings(&ring.machines[to - 1], "10.1.0.4");
        assert!(!ring.text(to - 1, "ip nexthop show").contains("seg6"), "n{to} wraps nothing");
    }
}

#[test]
fn an_agent_without_segments_behind_nodes_that_go_by_nothing_else_says_what_to_do() {
    if !can_carry_ip() {
        return;
    }
    let (ring, host) = ring_with_agent();
    let _nodes = ring.start_with_third_port(&["--data-path", "srv6"]);
    let _agent = host.start(&["--data-path", "routes"]);
    wait_for("the board names the node and what to do", || {
        let why = host.board(&[])["data_path"]["why"].as_str()?.to_owned();
        let names =
            why.contains("the kernel of n1") && why.contains("`mapper node` with `--data-path routes`");
        names.then_some(())
    });
    wait_for_pings(&host.namespace, "10.1.0.3");
    wait_for_pings(&ring.machines[2], "10.1.0.4");
}
