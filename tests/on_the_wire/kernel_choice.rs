//! Which way users' packets go where some kernels can do less than others, or are said to; and through machines that are
//! crossbars and nothing else.

use serde_json::Value;

use crate::daemon::Daemon;
use crate::kernel_path::{pings, wait_for_pings};
use crate::lab::wait_for;
use crate::namespace::Namespace;
use crate::pinging::Pinging;
use crate::ring::Ring;
use crate::{MAPPER, can_carry_ip};

#[test]
fn without_segments_of_the_kernel_packets_go_by_their_destination_and_the_log_says_so() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(3);
    let avoid = ["--kernel-avoid", "segments,force-forwarding", "--log-level", "info"];
    let daemons = ring.start_all(&avoid, "routes");
    wait_for_pings(&ring.machines[0], "10.1.0.2");
    assert!(!ring.text(0, "ip nexthop show").contains("seg6"));
    assert_eq!(ring.text(0, "sysctl -n net.ipv6.conf.all.forwarding").trim(), "1");
    assert_eq!(ring.text(0, "sysctl -n net.ipv6.conf.e1.force_forwarding").trim(), "0");
    for mut daemon in daemons {
        daemon.read_log_until("users' packets go by routes: ");
    }
}

#[test]
fn beside_a_kernel_without_segments_all_nodes_go_by_destination_and_say_for_whose_sake() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(4);
    let start = |at: usize, options: &[&str]| ring.start_addressed(at, options);
    let mut daemons: Vec<_> = (0..3).map(|at| start(at, &["--log-level", "info"])).collect();
    for daemon in &mut daemons {
        daemon.read_log_until("users' packets go by srv6: ");
    }
    // The fourth closes the ring, so that packets of the others go through it, too.
    let lacking = start(3, &["--kernel-avoid", "segments"]);
    for daemon in &mut daemons {
        daemon.read_log_until("users' packets go by routes: kernels forward by the destination, by proved tables, as that of n4");
    }
    (0..4).for_each(|at| ring.wait_for_kind(at, "routes"));
    for at in 0..4 {
        for to in (0..4).filter(|&to| to != at) {
            wait_for_pings(&ring.machines[at], &format!("10.1.0.{}", to + 1));
        }
        assert!(!ring.text(at, "ip nexthop show").contains("seg6"), "n{} wraps nothing", at + 1);
    }
    // A minute after it has left, the others go by segments again, and what they send meanwhile arrives.
    lacking.end();
    wait_for("a map without it", || (ring.board(0, &[])["hosts"] == 3).then_some(()));
    let pinging = Pinging::start(&ring.machines[0], "10.1.0.3");
    for daemon in &mut daemons {
        daemon.read_log_until("users' packets go by srv6: ");
    }
    wait_for("packets of n1 to both others go by segments", || {
        (ring.board(0, &[])["data_path"]["installed"] == 2).then_some(())
    });
    assert_eq!(pings(&ring.machines[0], "10.1.0.3"), 20, "packets go by segments");
    let (sent, answered) = pinging.end();
    assert!(
        sent > 3000 && sent - answered <= 5,
        "{answered} of {sent} pings were answered while the others parted"
    );
    assert!(ring.text(0, "ip nexthop show").contains("seg6"));
}

#[test]
fn beside_machines_that_cannot_go_by_destination_a_kernel_without_segments_is_named_by_all_and_what_to_do() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(3);
    // The last one is there first: a map of the other two alone would have both go by destination, for a minute more.
    let _daemons: Vec<_> = [&["--kernel-avoid", "segments"][..], &[], &["--data-path", "srv6"]]
        .iter()
        .enumerate()
        .rev()
        .map(|(at, options)| ring.start_addressed(at, options))
        .collect();
    let text = |at: usize| ring.text(at, &format!("{MAPPER} board-info --run-dir {}", ring.run_dir(at)));
    wait_for("the others name it", || {
        let (itself, other) = (text(0), text(1));
        let named = other.contains("go by the tap interface: the kernel of n1 (")
            && other.contains("all machines with `--data-path routes`");
        let names = itself.contains(
            "no way through kernels is proved: this machine goes by plain routes alone, as its kernel has no SRv6",
        ) && itself.contains("`mapper node` with `--data-path routes`");
        (named && names).then_some(())
    });
}

#[test]
fn without_compressed_segments_of_a_kernel_packets_have_full_ones() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(3);
    let _daemons: Vec<_> = [&["--kernel-avoid", "compression"][..], &[], &[]]
        .iter()
        .enumerate()
        .map(|(at, options)| ring.start_addressed(at, options))
        .collect();
    (0..3).for_each(|at| ring.wait_for_kind(at, "srv6"));
    wait_for_pings(&ring.machines[0], "10.1.0.2");
    wait_for("ways of several segments", || {
        let nexthops = ring.text(0, "ip nexthop show");
        (nexthops.contains("segs 2 ") || nexthops.contains("segs 3 ")).then_some(())
    });
    // Of what this one's kernel obeys nothing is compressed.
    let obeyed = ring.text(0, "ip -6 route show table 28001");
    assert!(obeyed.contains("End") && !obeyed.contains("next-csid"), "{obeyed}");
}

#[test]
fn the_kernel_of_a_crossbar_process_carries_the_packets_of_agents() {
    if !can_carry_ip() {
        return;
    }
    let middle = Namespace::new();
    let hosts = [Namespace::new(), Namespace::new()];
    let run_dirs = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let run_dir = |at: usize| run_dirs[at].path().to_str().unwrap();
    middle.ip("link set lo up");
    for (at, host) in hosts.iter().enumerate() {
        host.ip("link set lo up");
        middle.ip(&format!("link add e{} type veth peer name eth0 netns {}", at + 1, host.name));
        middle.ip(&format!("link set e{} up", at + 1));
    }
    let _crossbar = Daemon::start(
        &middle,
        &["xbar", "--ports", "e1,e2", "--run-dir", run_dir(2)],
        "users' packets go by srv6: the kernel obeys segments",
    );
    let _agents: Vec<_> = (0..2)
        .map(|at| {
            let address = format!("10.1.0.{}/24", at + 1);
            let words = ["agent", "--interface", "eth0", "--tap", "fabric0", "--run-dir", run_dir(at)];
            Daemon::start(&hosts[at], &[&words[..], &["--address", &address]].concat(), "the agent runs")
        })
        .collect();
    for (at, host) in hosts.iter().enumerate() {
        wait_for("packets go by segments", || {
            let mut command = host.command(MAPPER);
            let words = ["board-info", "--format", "json", "--run-dir", run_dir(at)];
            let output = command.args(words).output().unwrap();
            let info: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            let path = &info["boards"][0]["data_path"];
            (path["kind"] == "srv6" && path["installed"] == 1).then_some(())
        });
    }
    wait_for_pings(&hosts[0], "10.1.0.2");
    let obeyed = middle.command_line("ip -6 route show table 28001").output().unwrap();
    assert!(String::from_utf8(obeyed.stdout).unwrap().contains("End.X"));
    let put_right = || {
        let path = crossbar_data_path(&middle, run_dir(2));
        assert_eq!((&path["kind"], &path["troubles"]), (&"srv6".into(), &serde_json::json!([])), "{path}");
        assert!(path["objects"].as_u64() > Some(0), "{path}");
        path["put_right"].as_u64().unwrap()
    };
    let before = put_right();
    middle.ip("-6 route flush table 28001");
    wait_for("the crossbar puts right what was flushed, and says so", || {
        (put_right() > before).then_some(())
    });
    let output = middle.command(MAPPER).args(["xbar", "--status", "--run-dir", run_dir(2)]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("put right in the kernel, as others had changed"), "{text}");
}

fn crossbar_data_path(machine: &Namespace, run_dir: &str) -> Value {
    let words = ["xbar", "--status", "--format", "json", "--run-dir", run_dir];
    let output = machine.command(MAPPER).args(words).output().unwrap();
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    status["xbars"][0]["data_path"].clone()
}

#[test]
fn a_crossbar_process_whose_kernel_carries_no_packets_says_why() {
    if !can_carry_ip() {
        return;
    }
    let machine = Namespace::new();
    machine.ip("link set lo up");
    machine.ip("link add e1 type veth peer name e2");
    let run_dir = tempfile::tempdir().unwrap();
    let run_dir = run_dir.path().to_str().unwrap();
    for (options, why) in [
        (["--kernel-avoid", "segments"], "kernel-avoid names segments"),
        (["--data-path", "tap"], "data-path is tap"),
        (["--kind", "plain"], "the ports of a plain crossbar have no numbers"),
    ] {
        let words = ["xbar", "--ports", "e1,e2", "--run-dir", run_dir];
        let told = format!("users' packets go by tap: {why}");
        let _crossbar = Daemon::start(&machine, &[&words[..], &options].concat(), &told);
        let path = wait_for("the crossbar answers", || {
            let path = crossbar_data_path(&machine, run_dir);
            path.is_object().then_some(path)
        });
        assert_eq!(path["kind"], "tap");
        assert!(path["why"].as_str().unwrap().starts_with(why), "{path}");
    }
}
