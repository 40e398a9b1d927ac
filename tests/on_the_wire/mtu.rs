//! Tests of cables that carry shorter frames than others, and of MTUs that change while agents run: which boards name
//! them, and what becomes of the tap interfaces and users' frames.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::daemon::Daemon;
use crate::lab::{Lab, wait_for};
use crate::namespace::Namespace;
use crate::{MAPPER, can_carry_ip};

const NODES: [&str; 3] = ["h1", "h2", "h3"];

/// Three nodes in a ring whose cables carry jumbo frames, except the cable from port 1 of h1 to port 2 of h2.
/// Its interfaces `small_ends` have an MTU of 1500 when the agents start.
fn ring(small_ends: &[(&str, &str)]) -> Lab {
    let lab = Lab::up(
        "ring:n=3,hosts=1",
        &["--nodes", "--", "--data-path", "tap", "--liveness-interval-ms", "200"],
    );
    for node in NODES {
        lab.run(&["kill", node]);
    }
    for node in NODES {
        for port in ["p1", "p2"] {
            let mtu = if small_ends.contains(&(node, port)) { 1500 } else { 9000 };
            lab.ip(node, &format!("link set {port} mtu {mtu}"));
        }
        lab.run(&["restart", node]);
    }
    lab.wait_for_network("the whole ring", 3, 3);
    lab.wait_for_pings("all reach each other", &[]);
    lab
}

/// What `mapper board-info` prints for people, of all hosts.
fn text(lab: &Lab) -> String {
    lab.run(&["boards"])
}

/// Whether h3 gets an answer from h1 to a packet of 8,028 bytes, with these options of ping.
fn jumbo_ping(lab: &Lab, options: &[&str]) -> bool {
    let ping =
        [&["exec", "h3", "ping", "-c", "1", "-W", "2", "-s", "8000"], options, &["10.77.0.1"]].concat();
    lab.try_run(&ping).status.success()
}

fn too_long(board: &Value) -> u64 {
    board["tap"]["counters"]["dropped"]["too_long_for_cable"].as_u64().unwrap()
}

#[test]
fn a_cable_with_a_smaller_mtu_is_named_by_all_and_senders_learn_what_gets_through() {
    if !can_carry_ip() {
        return;
    }
    let lab = ring(&[("h1", "p1"), ("h2", "p2")]);
    lab.wait_until("all name the cable", |boards| {
        boards.iter().all(|board| {
            let end = |host: &str, port: u8| {
                let own = board["mac"] == host;
                json!({"host": host, "port": port, "interface": own.then(|| format!("p{port}")), "mtu": 1500})
            };
            let ends = [end("02:00:00:00:00:01", 1), end("02:00:00:00:00:02", 2)];
            let mut found = board["narrow_cables"].clone();
            if let Some(ends) = found[0]["ends"].as_array_mut() {
                ends.sort_by_key(|end| end["host"].to_string());
            }
            found == json!([{"mtu": 1500, "longest": 9000, "ends": ends}])
        })
    });
    let named =
        "1500 bytes at port 2 of host h2 (02:00:00:00:00:02) and port 1 of host h1 (02:00:00:00:00:01);";
    let told = wait_for("all tell it people, and the third by the names of the two", || {
        let told = text(&lab);
        let count =
            told.matches("some cables of the map carry frames of 9000 bytes, and others shorter").count();
        (count == 3 && told.contains(named)).then_some(told)
    });
    assert_eq!(told.matches("Network is fully configured").count(), 3, "{told}");
    // The log tells it once, also where names come later.
    let lines =
        || lab.log("h3").lines().filter(|line| line.contains("1500 bytes at port 2 of host ")).count();
    assert_eq!(lines(), 1, "one line in the log");
    wait_for("another cable leads from h3 to h1", || jumbo_ping(&lab, &["-M", "do"]).then_some(()));
    lab.run(&["cut", "h3:1"]);
    lab.wait_for_network("without the cable of jumbo frames", 3, 2);
    lab.wait_for_pings("all reach each other by the others", &[]);
    assert!(!jumbo_ping(&lab, &["-M", "do"]), "only a small cable is left");
    wait_for("the kernel knows what gets through, and sends that", || jumbo_ping(&lab, &[]).then_some(()));
    let route = lab.run(&["exec", "h3", "ip", "route", "get", "10.77.0.1"]);
    assert!(route.contains(" mtu 14"), "{route}");
    let boards = lab.boards(&[]);
    assert!(too_long(&boards[2]) > 0, "{:#}", boards[2]);
    assert_eq!(boards[2]["dead_cables"], json!([]), "no cable is held for dead");
    assert_eq!(lines(), 1, "it is the same cable after the new map: {}", lab.log("h3"));
}

#[test]
fn one_end_that_is_too_small_is_named_by_all_until_it_is_mended() {
    if !can_carry_ip() {
        return;
    }
    let lab = ring(&[("h1", "p1")]);
    wait_for("all name the end", || {
        let told = text(&lab);
        let by_others = told.matches("1500 bytes at port 1 of host h1 (02:00:00:00:00:01);").count();
        let by_itself = told.matches("1500 bytes at port 1 (p1) of this host;").count();
        ((by_others, by_itself) == (2, 1)).then_some(())
    });
    lab.ip("h1", "link set p1 mtu 9000");
    // Agents that send by the tap interface alone have given up the privilege to set its MTU, so they say what to do.
    let command = "`ip link set ip0 mtu 8917`";
    let is_mended = |told: &str, commands: usize| {
        told.matches("Network is fully configured").count() == 3
            && !told.contains("1500 bytes at")
            && told.matches(command).count() == commands
    };
    let told = wait_for("none names the end any more", || Some(text(&lab)).filter(|told| is_mended(told, 1)));
    assert!(told.contains("the tap interface's MTU is 1417, and the cables of the fabric carry"), "{told}");
    lab.ip("h1", "link set ip0 mtu 8917");
    wait_for("nothing is left to do", || is_mended(&text(&lab), 0).then_some(()));
    // An interface whose MTU becomes too small while the agents run is named, too.
    lab.ip("h2", "link set p1 mtu 4000");
    let named = |boards: &[Value]| {
        boards.iter().all(|board| board["narrow_cables"][0]["ends"][0]["host"] == "02:00:00:00:00:02")
    };
    lab.wait_until("all name the other cable", named);
}

/// The MTUs of the tap interfaces of all nodes.
fn taps(lab: &Lab) -> [u32; 3] {
    NODES.map(|node| lab.run(&["exec", node, "cat", "/sys/class/net/ip0/mtu"]).trim().parse().unwrap())
}

/// Waits until all nodes reach each other by packets of this many bytes that nobody may take apart, by whatever carries
/// users' packets and by the tap interfaces: kernels send packets of the service 12 by these, and the answers to them.
fn wait_for_full_size(lab: &Lab, what: &str, mtu: u32) {
    let payload_bytes = (mtu - 28).to_string();
    for from in NODES {
        for to in (1..=3).filter(|to| from != format!("h{to}")) {
            let to = format!("10.77.0.{to}");
            for service in ["0", "12"] {
                let words = ["exec", from, "ping", "-Q", service, "-M", "do", "-c", "1", "-W", "2", "-s"];
                let ping = [&words[..], &[payload_bytes.as_str(), to.as_str()]].concat();
                let what = format!("{what}: {from} to {to}, service {service}");
                wait_for(&what, || lab.try_run(&ping).status.success().then_some(()));
            }
        }
    }
}

#[test]
fn the_tap_interfaces_follow_the_least_cable_while_agents_run() {
    if !can_carry_ip() {
        return;
    }
    let lab = Lab::up("ring:n=3,hosts=1", &["--nodes", "--", "--liveness-interval-ms", "200"]);
    lab.wait_for_network("the whole ring", 3, 3);
    lab.wait_for_pings("all reach each other", &[]);
    assert_eq!(taps(&lab), [1417; 3]);
    let set = |ends: &[(&str, &str)], mtu: u32| {
        ends.iter().for_each(|(node, port)| lab.ip(node, &format!("link set {port} mtu {mtu}")));
    };
    let follow = |what: &str, expected: [u32; 3]| {
        wait_for(what, || (taps(&lab) == expected).then_some(()));
    };
    let all = NODES.map(|node| [(node, "p1"), (node, "p2")]).concat();
    set(&all, 9000);
    follow("all follow to longer frames", [8917; 3]);
    wait_for_full_size(&lab, "longer packets", 8917);

    let one_cable = [("h1", "p1"), ("h2", "p2")];
    set(&one_cable, 1500);
    follow("all follow to shorter frames, also the host that is not at that cable", [1417; 3]);
    wait_for_full_size(&lab, "shorter packets", 1417);
    let told = wait_for("all are configured and name the cable", || {
        let told = text(&lab);
        let count = |words| told.matches(words).count();
        (count("Network is fully configured") == 3 && count("1500 bytes at port") == 3).then_some(told)
    });
    assert!(!told.contains("the tap interface's MTU"), "{told}");

    // The MTU that the user chose stays, unless cables carry less.
    lab.ip("h3", "link set ip0 mtu 1300");
    set(&one_cable, 4000);
    follow("the others follow to longer frames", [3917, 3917, 1300]);
    lab.ip("h3", "link set ip0 mtu 3917");
    set(&one_cable, 9000);
    follow("all follow again", [8917; 3]);
    wait_for_full_size(&lab, "longer packets again", 8917);
    assert!(!text(&lab).contains("warning:"), "{}", text(&lab));
}

#[test]
fn long_packets_reach_hosts_at_wide_cables_though_the_way_to_another_host_is_narrow() {
    if !can_carry_ip() {
        return;
    }
    let lab = Lab::up("ring:n=4,hosts=1", &["--nodes", "--", "--liveness-interval-ms", "200"]);
    lab.wait_for_network("the whole ring", 4, 4);
    let nodes = ["h1", "h2", "h3", "h4"];
    // Both cables of h4 are narrow, and h2 is at none of them.
    let narrow = [("h3", "p1"), ("h4", "p2"), ("h4", "p1"), ("h1", "p2")];
    let wide =
        nodes.iter().flat_map(|&node| [(node, "p1"), (node, "p2")]).filter(|end| !narrow.contains(end));
    for (node, port) in wide {
        lab.ip(node, &format!("link set {port} mtu 9000"));
    }
    lab.wait_until("all know which cables are narrow", |boards| {
        boards.iter().all(|board| {
            board["network_configured"] == true
                && board["narrow_cables"].as_array().is_some_and(|cables| cables.len() == 2)
        })
    });
    lab.wait_for_pings("all reach each other", &[]);
    let mtu = lab.run(&["exec", "h2", "cat", "/sys/class/net/ip0/mtu"]);
    assert_eq!(mtu.trim(), "1417", "frames of the tap interface reach all hosts, whatever route they take");
    let ping = ["exec", "h2", "ping", "-M", "do", "-c", "1", "-W", "2", "-s", "8000", "10.77.0.1"];
    wait_for("a long packet arrives", || lab.try_run(&ping).status.success().then_some(()));
    for address in ["10.77.0.1", "fd77::1"] {
        let ping = [&ping[..ping.len() - 1], &[address]].concat();
        wait_for(address, || lab.try_run(&ping).status.success().then_some(()));
    }
    for address in ["10.77.0.4", "fd77::4"] {
        let ping = ["exec", "h2", "ping", "-c", "1", "-W", "2", "-s", "8000", address];
        wait_for("what is too long for a narrow cable arrives in pieces", || {
            lab.try_run(&ping).status.success().then_some(())
        });
    }
    let route = lab.run(&["exec", "h2", "ip", "route", "get", "10.77.0.1"]);
    assert!(!route.contains(" mtu 14"), "nothing has lowered what the kernel sends: {route}");
}

/// Two machines whose cable leads through a bridge of a third, which carries frames of 1500 bytes while both ends say 9000.
struct Bridged {
    bridge: Namespace,
    machines: [Namespace; 2],
    run_dirs: [TempDir; 2],
}

impl Bridged {
    fn new() -> Self {
        let (bridge, machines) = (Namespace::new(), [Namespace::new(), Namespace::new()]);
        bridge.ip("link add br0 type bridge group_fwd_mask 0x4000");
        bridge.ip("link set br0 up");
        for (nth, machine) in machines.iter().enumerate() {
            machine.ip("link set lo up");
            machine.ip(&format!("link add e1 mtu 9000 type veth peer name m{nth} netns {}", bridge.name));
            machine.ip("link set e1 up");
            bridge.ip(&format!("link set m{nth} master br0 up"));
        }
        let bridged = Self { bridge, machines, run_dirs: [(); 2].map(|()| tempfile::tempdir().unwrap()) };
        bridged.carry(1500);
        bridged
    }

    /// Has the bridge carry frames of this many bytes.
    fn carry(&self, mtu: u32) {
        ["m0", "m1"].iter().for_each(|port| self.bridge.ip(&format!("link set {port} mtu {mtu}")));
    }

    fn start(&self, nth: usize) -> Daemon {
        let (name, address) = (format!("n{nth}"), format!("10.1.0.{}/24", nth + 1));
        let run_dir = self.run_dirs[nth].path().to_str().unwrap();
        let words = ["--ports", "e1", "--host-name", &name, "--address", &address, "--run-dir", run_dir];
        Daemon::start(&self.machines[nth], &[&["node"][..], &words].concat(), "the agent runs")
    }

    fn boards(&self) -> [Value; 2] {
        self.run_dirs.each_ref().map(|dir| {
            let mut command = self.machines[0].command(MAPPER);
            command.args(["board-info", "--format", "json", "--run-dir"]).arg(dir.path());
            let info: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap_or_default();
            info["boards"][0].clone()
        })
    }

    /// Whether a ping of this many bytes from the first machine to the second is answered, with these options.
    fn ping(&self, payload_bytes: usize, options: &str) -> bool {
        let line = format!("ping -c 1 -W 2 -s {payload_bytes}{options} 10.1.0.2");
        self.machines[0].command_line(&line).output().unwrap().status.success()
    }
}

#[test]
fn what_carries_less_than_both_ends_of_a_cable_say_is_found_and_packets_are_as_long_as_what_passes() {
    if !can_carry_ip() {
        return;
    }
    let bridged = Bridged::new();
    let nodes = [0, 1].map(|nth| bridged.start(nth));
    let named = |board: &Value| {
        board["data_path"]["installed"] == 1
            && board["data_path"]["shortened"][0]["bytes"] == 1500
            && board["data_path"]["shortened"][0]["said_bytes"] == 9000
            && board["warnings"].to_string().contains("only those of up to 1500 bytes get through")
    };
    wait_for("both boards name it", || bridged.boards().iter().all(named).then_some(()));
    assert!(bridged.ping(1300, " -M do"), "what passes is carried by the kernel");
    assert!(!bridged.ping(8000, " -M do"), "the kernel knows that this does not pass");
    wait_for("long packets are taken apart", || bridged.ping(8000, "").then_some(()));
    bridged.carry(9000);
    let is_mended = |board: &Value| {
        board["data_path"]["shortened"] == json!([]) && !board["warnings"].to_string().contains("get through")
    };
    wait_for("both boards are content", || bridged.boards().iter().all(is_mended).then_some(()));
    bridged.machines[0].ip("route flush cache");
    assert!(bridged.ping(8000, " -M do"));
    drop(nodes);
}
