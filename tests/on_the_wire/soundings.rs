//! Tests of `mapper trace` and `mapper ping` on machines that are cabled in a row.

use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::daemon::Daemon;
use crate::namespace::Namespace;
use crate::{MAPPER, can_make_taps};

/// Longer than any step takes on a busy machine. Only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Machines in a row, each with a node.
struct Row {
    namespaces: Vec<Namespace>,
    dirs: Vec<TempDir>,
    nodes: Vec<Daemon>,
}

impl Row {
    /// Three machines; the first and the last are one crossbar apart.
    fn new(options: &[&str]) -> Self {
        Self::of(3, options)
    }

    fn of(count: usize, options: &[&str]) -> Self {
        let namespaces: Vec<_> = (0..count).map(|_| Namespace::new()).collect();
        let dirs: Vec<_> = (0..count).map(|_| tempfile::tempdir().unwrap()).collect();
        namespaces.iter().for_each(|it| it.ip("link set lo up"));
        for left in 0..count - 1 {
            let right = &namespaces[left + 1].name;
            namespaces[left].ip(&format!("link add right type veth peer name left netns {right}"));
        }
        let node = |at: usize| {
            let (run_dir, name) = (dirs[at].path().to_str().unwrap(), format!("node{at}"));
            let ports = match at {
                0 => "right",
                _ if at + 1 == count => "left",
                _ => "left,right",
            };
            let arguments = ["node", "--ports", ports, "--run-dir", run_dir, "--host-name", &name];
            Daemon::start(&namespaces[at], &[&arguments, options].concat(), "the agent runs")
        };
        let nodes = (0..count).map(node).collect();
        Self { namespaces, dirs, nodes }
    }

    /// What a command on the first machine says in JSON, and whether it succeeded.
    fn ask(&self, arguments: &[&str]) -> (Value, bool) {
        let run_dir = self.dirs[0].path().to_str().unwrap();
        let mut command = self.namespaces[0].command(MAPPER);
        let output =
            command.args(arguments).args(["--format", "json", "--run-dir", run_dir]).output().unwrap();
        (serde_json::from_slice(&output.stdout).unwrap(), output.status.success())
    }

    /// Repeats a question until the answer is what is waited for.
    fn wait_for(&self, what: &str, arguments: &[&str], is_so: impl Fn(&Value, bool) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (answer, succeeded) = self.ask(arguments);
            if is_so(&answer, succeeded) {
                return answer;
            }
            assert!(Instant::now() < deadline, "not reached: {what}: {answer:#}");
        }
    }
}

/// The way of a kind in an answer.
fn way<'a>(answer: &'a Value, by: &str) -> Option<&'a Value> {
    answer["boards"][0]["ways"].as_array()?.iter().find(|way| way["by"] == by)
}

/// Whether the way of this kind stops nowhere, and users' packets may take it.
fn is_whole(answer: &Value, by: &str) -> bool {
    way(answer, by).is_some_and(|way| way["verdict"] == "all answer" && way["in_use"] == true)
}

#[test]
fn a_trace_names_the_first_that_does_not_answer_and_a_ping_counts_what_is_lost() {
    if !can_make_taps() {
        return;
    }
    let row = Row::new(&["--data-path", "srv6"]);
    let trace = ["trace", "node2"];
    // Names of hosts come a moment after routes to them.
    let named = ["crossbar of node0", "crossbar of node1", "crossbar of node2", "node2"];
    let is_named = |answer: &Value| {
        let hops = way(answer, "srv6").and_then(|way| way["hops"].as_array());
        hops.is_some_and(|hops| hops.iter().map(|hop| &hop["name"]).eq(&named))
    };
    let whole = row.wait_for("both ways are whole, and all have their names", &trace, |it, _| {
        is_whole(it, "agents") && is_whole(it, "srv6") && is_named(it)
    });
    assert_eq!(whole["schema"], "mapper.trace/1");
    let hops = way(&whole, "srv6").unwrap()["hops"].as_array().unwrap();
    assert!(hops[0]["leaves_by"].as_str().unwrap().ends_with("(right)"), "{whole:#}");
    let began = Instant::now();
    let (pinged, succeeded) = row.ask(&["ping", "node2", "--count", "3", "--interval-ms", "1"]);
    let took_ms = began.elapsed().as_secs_f64() * 1e3;
    let by_kernels = way(&pinged, "srv6").unwrap();
    assert_eq!((pinged["schema"].as_str(), succeeded), (Some("mapper.ping/1"), true));
    assert_eq!(
        (by_kernels["sent"].as_u64(), by_kernels["received"].as_u64()),
        (Some(3), Some(3)),
        "{pinged:#}"
    );
    let times = ["min_ms", "median_ms", "max_ms"].map(|key| by_kernels[key].as_f64().unwrap());
    assert!(times[0] > 0.0 && times.is_sorted() && times[2] < took_ms, "{took_ms}: {pinged:#}");

    if mapper_needs::programs(&["ip6tables"]) {
        let firewall = |policy: &str| {
            let mut command = row.namespaces[1].command("ip6tables");
            assert!(command.args(["-P", "FORWARD", policy]).status().unwrap().success());
        };
        firewall("DROP");
        // The agents' frames still get there, so that the trace succeeds.
        let broken = row.wait_for("it stops at the firewall", &trace, |it, succeeded| {
            succeeded && way(it, "srv6").is_some_and(|way| way["stops_at"] == 1)
        });
        let stopped = way(&broken, "srv6").unwrap();
        assert!(
            stopped["verdict"].as_str().unwrap().starts_with("crossbar of node1 is the first"),
            "{broken:#}"
        );
        firewall("ACCEPT");
    }
    // A process that is stopped answers nothing, though its cables have carrier.
    row.nodes[2].signal(rustix::process::Signal::STOP);
    let (silent, succeeded) = row.ask(&trace);
    row.nodes[2].signal(rustix::process::Signal::CONT);
    assert_eq!(
        (way(&silent, "agents").unwrap()["stops_at"].as_u64(), succeeded),
        (Some(2), false),
        "{silent:#}"
    );
}

#[test]
fn a_trace_of_routes_by_destination_walks_the_kernels_and_names_the_first_that_does_not_answer() {
    if !can_make_taps() || !mapper_needs::programs(&["ip6tables"]) {
        return;
    }
    let row = Row::of(4, &["--data-path", "routes"]);
    let at = |node: usize, line: &str| {
        let output = row.namespaces[node].command_line(line).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
    };
    // The test asks more often than people do.
    (1..3).for_each(|node| at(node, "sysctl -w net.ipv6.icmp.ratelimit=0"));
    let trace = ["trace", "node3"];
    let named = ["crossbar of node0", "crossbar of node1", "crossbar of node2", "node3"];
    let is_named = |answer: &Value| {
        let hops = way(answer, "routes").and_then(|way| way["hops"].as_array());
        hops.is_some_and(|hops| hops.iter().map(|hop| &hop["name"]).eq(&named))
    };
    let whole = row.wait_for("both ways are whole, and all have their names", &trace, |it, _| {
        is_whole(it, "agents") && is_whole(it, "routes") && is_named(it)
    });
    let hops = way(&whole, "routes").unwrap()["hops"].as_array().unwrap();
    assert!(hops[0]["leaves_by"].as_str().unwrap().ends_with("(right)"), "{whole:#}");
    assert!(hops[1]["answered_by"].as_str().unwrap().starts_with("fd6d:"), "{whole:#}");
    assert_eq!((hops[1]["sent"].as_u64(), hops[3]["sent"].as_u64()), (Some(1), Some(3)), "{whole:#}");
    let (pinged, _) = row.ask(&["ping", "node3", "--count", "1"]);
    let pinged = way(&pinged, "routes").unwrap();
    let via: Vec<&str> = pinged["via"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let passes = via.iter().zip(&named).all(|(hop, name)| hop.starts_with(&format!("{name}, port ")));
    assert!(via.len() == 3 && passes && pinged["forks_at_crossbar"].is_null(), "{pinged:#}");

    // Packets get as far as the firewall, so that the kernel before it answers, and the one behind it does not.
    let stops = |what: &str, stops_at: u64, words: &str| {
        let broken = row.wait_for(what, &trace, |it, succeeded| {
            succeeded && way(it, "routes").is_some_and(|way| way["stops_at"] == stops_at)
        });
        let verdict = way(&broken, "routes").unwrap()["verdict"].as_str().unwrap();
        assert!(verdict.starts_with(words), "{broken:#}");
    };
    at(1, "ip6tables -P FORWARD DROP");
    let words = "crossbar of node2 is the first that does not answer: the cable from crossbar of node1, port";
    stops("it stops behind the firewall", 2, words);
    at(1, "ip6tables -P FORWARD ACCEPT");
    row.wait_for("the way is whole again", &trace, |it, _| is_whole(it, "routes"));

    // A kernel that forwards nothing does not answer either. Its agent would put the setting right.
    row.nodes[1].signal(rustix::process::Signal::STOP);
    for setting in ["all.forwarding", "left.force_forwarding", "right.force_forwarding"] {
        at(1, &format!("sysctl -w net.ipv6.conf.{setting}=0"));
    }
    let (broken, _) = row.ask(&trace);
    row.nodes[1].signal(rustix::process::Signal::CONT);
    let stopped = way(&broken, "routes").unwrap_or_else(|| panic!("{broken:#}"));
    assert_eq!(stopped["stops_at"], 1, "{broken:#}");
    let words = "crossbar of node1 is the first that does not answer: the cable from crossbar of node0, port";
    assert!(stopped["verdict"].as_str().unwrap().starts_with(words), "{broken:#}");
    row.wait_for("its agent has put it right", &trace, |it, _| is_whole(it, "routes"));
}

#[test]
fn whom_no_route_leads_to_is_refused_with_the_reason() {
    if !can_make_taps() {
        return;
    }
    let row = Row::new(&["--data-path", "tap"]);
    row.wait_for("a way by the agents' frames", &["trace", "node2"], |it, _| is_whole(it, "agents"));
    let refused = |arguments: &[&str], why: &str| {
        let (answer, succeeded) = row.ask(arguments);
        assert_eq!((answer["schema"].as_str(), succeeded), (Some("mapper.error/1"), false));
        assert!(answer["error"].as_str().unwrap().contains(why), "{answer:#}");
    };
    refused(&["trace", "nobody"], "no host of the map is called so");
    refused(&["trace", "02:00:00:00:00:99"], "does not list");
    refused(&["ping", "node0"], "is this host itself");
    refused(&["ping", "node2", "--count", "1000", "--interval-ms", "1000"], "within 60 s");
}

#[test]
fn where_long_frames_get_lost_is_named_by_frames_as_long() {
    if !can_make_taps() || !mapper_needs::programs(&["nft"]) {
        return;
    }
    let row = Row::new(&["--data-path", "srv6"]);
    let both_whole = |it: &Value| is_whole(it, "agents") && is_whole(it, "srv6");
    let of_size = |size| ["trace", "node2", "--size", size];
    row.wait_for("ways are whole for frames as long as MTUs", &of_size("1500"), |it, _| both_whole(it));
    // As a switch between node0 and node1 would, that carries less than the ports at its sides.
    let rules = "add table netdev narrow; \
                 add chain netdev narrow port { type filter hook ingress device left priority 0; }; \
                 add rule netdev narrow port meta length > 1200 drop";
    assert!(row.namespaces[1].command("nft").arg(rules).status().unwrap().success());
    let (long, _) = row.ask(&of_size("1220"));
    for by in ["agents", "srv6"] {
        let way = way(&long, by).unwrap_or_else(|| panic!("{long:#}"));
        assert_eq!(way["stops_at"], 1, "{long:#}");
        assert!(way["verdict"].as_str().unwrap().starts_with("crossbar of node1 is the first"), "{long:#}");
    }
    let (fitting, _) = row.ask(&of_size("1200"));
    assert!(both_whole(&fitting), "{fitting:#}");
    let lost = |size| row.ask(&["ping", "node2", "--size", size, "--count", "3", "--interval-ms", "10"]);
    let ((long, answered), (_, fits)) = (lost("1220"), lost("1200"));
    assert!(!answered && fits, "{long:#}");
}

#[test]
fn what_each_way_carries_is_measured_and_a_cable_that_is_slower_shows() {
    if !can_make_taps() || !mapper_needs::programs(&["tc"]) {
        return;
    }
    let row = Row::new(&["--data-path", "srv6"]);
    row.wait_for("both ways are whole", &["trace", "node2"], |it, _| {
        is_whole(it, "agents") && is_whole(it, "srv6")
    });
    // A queue that lets 100 megabits a second through, in whole Ethernet frames.
    let mut tc = row.namespaces[1]
        .command_line("tc qdisc add dev right root tbf rate 100mbit burst 1600 limit 1000000");
    assert!(tc.status().unwrap().success());
    let question = ["bandwidth", "node2", "--count", "10", "--packets", "50"];
    let (measured, succeeded) = row.ask(&question);
    assert_eq!((measured["schema"].as_str(), succeeded), (Some("mapper.bandwidth/1"), true));
    let by_kernels = way(&measured, "srv6").unwrap();
    assert_eq!(
        (by_kernels["sent"].as_u64(), by_kernels["received"].as_u64(), by_kernels["one_way"].as_bool()),
        (Some(500), Some(500), Some(true)),
        "{measured:#}"
    );
    assert_eq!(by_kernels["packet_bytes"], 1460, "{measured:#}");
    // The headers around the packets take their part, so no train is faster than the queue. The kernel tells when packets
    // arrive; an agent only when it reads them, and on a busy machine it reads many at once, but not those of each train.
    for (by, of_trains) in [("srv6", "median_mbps"), ("agents", "min_mbps")] {
        let mbps = way(&measured, by).unwrap()[of_trains].as_f64().unwrap();
        assert!(mbps < 105.0, "{by}: {measured:#}");
    }
    let (named, succeeded) = row.ask(&["bandwidth", "node2.fabric", "--count", "1", "--packets", "2"]);
    assert!(succeeded, "names as in a file of hosts' names are known, too: {named:#}");
}
