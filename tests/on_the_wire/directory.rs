//! Tests of machines whose names and addresses nobody configures.

use std::path::{Path, PathBuf};

use mapper_machine::link::interface::Interface;
use rustix::process::Signal;
use serde_json::Value;

use crate::daemon::Daemon;
use crate::lab::wait_for;
use crate::namespace::Namespace;
use crate::ring::Ring;
use crate::{MAPPER, can_carry_ip};

impl Ring {
    /// What `mapper resolve` prints at a machine, if it knows such a host.
    fn resolve(&self, at: usize, wanted: &str) -> Option<String> {
        let mut command = self.machines[at].command(MAPPER);
        let output = command.args(["resolve", wanted, "--run-dir", self.run_dir(at)]).output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    /// The addresses of one version of IP that the board of a machine shows.
    fn addresses(&self, at: usize, version: u8) -> Vec<String> {
        let board = self.board(at, &[]);
        let all = board["addresses"].as_array().into_iter().flatten().filter_map(Value::as_str);
        all.filter(|text| text.contains(':') == (version == 6)).map(str::to_owned).collect()
    }

    /// The addresses of IPv4 that the kernel says the tap interface of a machine has.
    pub(crate) fn on_tap(&self, at: usize) -> Vec<String> {
        let told = String::from_utf8(self.run(at, "ip -4 -o addr show dev fabric0").stdout).unwrap();
        told.lines().filter_map(|line| line.split_whitespace().nth(3)).map(str::to_owned).collect()
    }

    /// Waits until each machine has one address of IPv4, and returns these.
    fn picked(&self) -> Vec<String> {
        wait_for("an address of IPv4 at each machine", || {
            let all: Vec<_> = (0..self.machines.len()).map(|at| self.addresses(at, 4)).collect();
            all.iter().all(|of_one| of_one.len() == 1).then(|| all.concat())
        })
    }

    /// Waits until a machine can ping an address.
    fn wait_for_ping(&self, at: usize, address: &str) {
        let ip = address.split('/').next().unwrap();
        wait_for(&format!("n{} reaches {ip}", at + 1), || {
            self.run(at, &format!("ping -c 1 -W 1 {ip}")).status.success().then_some(())
        });
    }
}

#[test]
fn machines_with_nothing_configured_reach_each_other_by_address_and_by_name() {
    if !(can_carry_ip() && mapper_needs::programs(&["getent"])) {
        return;
    }
    let ring = Ring::new(3);
    // The file is a mount in these namespaces, so it can only be written in place. Its last line has no end.
    let text = "127.0.0.1\tlocalhost\n192.0.2.3\tn3 # another machine\n127.0.1.1\tn1";
    let files: Vec<_> = ring.machines.iter().map(|machine| hosts_file(machine, text)).collect();
    let mut nodes: Vec<_> = (0..3).map(|at| ring.start(at, &["--hosts-file", "/etc/hosts"])).collect();
    for at in 0..3 {
        let interface = ring.machines[at].enter(|| Interface::look_up("fabric0").unwrap()).unwrap();
        let [address] = &ring.addresses(at, 6)[..] else { panic!("{}", ring.board(at, &[])) };
        assert!(address.starts_with("fd6d:6170:7065:7200:") && address.ends_with("/64"), "{address}");
        assert_eq!(ring.board(at, &[])["mac"], interface.mac.to_string());
        assert_eq!(ring.board(at, &[])["name"], format!("n{}", at + 1));
    }
    for (from, to) in [(0, 1), (1, 2), (2, 0)] {
        let address = ring.addresses(to, 6).concat();
        ring.wait_for_ping(from, &address);
        let (name, ip) = (format!("n{}.fabric", to + 1), address.split('/').next().unwrap());
        wait_for(&format!("n{} finds {name}", from + 1), || {
            let found = ring.run(from, &format!("getent hosts {name}"));
            String::from_utf8(found.stdout).unwrap().starts_with(ip).then_some(())
        });
        for wanted in [&name, ip] {
            let found = wait_for(wanted, || ring.resolve(from, wanted));
            assert!(found.starts_with(&format!("n{} ", to + 1)) && found.contains(&address), "{found}");
        }
    }
    // If the machine itself has an address for a name, that stays, and the log tells of it.
    let found = ring.run(0, "getent hosts n3");
    assert!(String::from_utf8(found.stdout).unwrap().starts_with("192.0.2.3"));
    wait_for("n1 knows n3, and says whom it left out", || {
        let warnings = ring.board(0, &[])["warnings"].to_string();
        warnings.contains("left out of /etc/hosts: n3 (the file gives it to another").then_some(())
    });
    assert!(std::fs::read_to_string(&files[0]).unwrap().starts_with(text));
    let log = nodes.remove(0).end();
    assert!(!log.contains("ERROR"), "{log}");
    assert_eq!(std::fs::read_to_string(&files[0]).unwrap(), text, "a node that ends leaves no trace");
    wait_for("the others forget who has left", || {
        (!std::fs::read_to_string(&files[1]).unwrap().contains("n1.fabric")).then_some(())
    });
}

#[test]
fn picked_addresses_differ_and_are_the_same_after_a_restart() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(3);
    let options = ["--address", "10.1.0.0/24"];
    let mut nodes: Vec<_> = (0..3).map(|at| ring.start(at, &options)).collect();
    // `board-info --wait` returns only once the host has picked its address.
    let waited = ring.board(0, &["--wait", "60"]);
    let has_picked =
        waited["addresses"].to_string().contains("10.1.0.") && waited["picking"] == serde_json::json!([]);
    assert!(waited["configured"] == true && has_picked, "{waited:#}");
    let picked = ring.picked();
    let different: std::collections::BTreeSet<_> = picked.iter().collect();
    assert_eq!(different.len(), 3, "{picked:?}");
    assert!(picked.iter().all(|address| address.starts_with("10.1.0.") && address.ends_with("/24")));
    ring.wait_for_ping(0, &picked[1]);
    nodes.remove(1).end();
    nodes.insert(1, ring.start(1, &options));
    assert_eq!(ring.picked(), picked);

    // A machine that is told to have the address of another gets it, and that one picks anew.
    nodes.pop().unwrap().end();
    nodes.push(ring.start(2, &["--address", &picked[0]]));
    let log = nodes[0].read_log_until("picked another address: n3 (");
    assert!(log.contains("picked an address"), "{log}");
    wait_for("no address clashes any more", || {
        let boards: Vec<_> = (0..3).map(|at| ring.board(at, &[])).collect();
        let clean = boards.iter().all(|board| board["address_clashes"] == serde_json::json!([]));
        let own = ring.addresses(0, 4);
        (clean && own.len() == 1 && own[0] != picked[0]).then_some(())
    });
    assert_eq!(
        (ring.addresses(1, 4).concat(), ring.addresses(2, 4).concat()),
        (picked[1].clone(), picked[0].clone())
    );
    let shown = ring.run(0, "ip -o -4 address show dev fabric0");
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains(&ring.addresses(0, 4).concat()) && !shown.contains(&picked[0]), "{shown}");
    ring.wait_for_ping(1, &ring.addresses(0, 4).concat());
}

#[test]
fn machines_with_one_state_directory_each_keep_the_address_that_they_picked() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(2);
    let state = tempfile::tempdir().unwrap();
    let start = |at: usize| {
        let mut command = ring.machines[at].command(MAPPER);
        command.args(["node", "--ports", "e1,e2", "--address", "10.1.0.0/24", "--run-dir", ring.run_dir(at)]);
        command.env("STATE_DIRECTORY", state.path());
        Daemon::start_command(command, "the agent runs")
    };
    let _nodes: Vec<_> = (0..2).map(start).collect();
    let picked = ring.picked();
    let macs: Vec<_> = (0..2).map(|at| ring.board(at, &[])["mac"].as_str().unwrap().to_owned()).collect();
    let expected: Vec<_> =
        macs.iter().zip(&picked).map(|(mac, address)| format!("host {mac}\naddress {address}\n")).collect();
    wait_for("a file for each of them", || {
        let file_of = |mac: &String| {
            let mut files = std::fs::read_dir(state.path()).unwrap().map(|entry| entry.unwrap());
            files.find(|file| file.file_name().to_str().unwrap().ends_with(&format!("{mac}.addresses")))
        };
        let read = |mac| std::fs::read_to_string(file_of(mac)?.path()).ok();
        (macs.iter().map(read).collect::<Option<Vec<_>>>()? == expected).then_some(())
    });
}

#[test]
fn an_address_that_two_machines_were_told_to_have_is_named_on_both_boards() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(3);
    let mut nodes: Vec<_> = [&["--address", "10.1.0.3/24"][..], &["--address", "10.1.0.3/24"], &[]]
        .iter()
        .enumerate()
        .map(|(at, options)| ring.start(at, options))
        .collect();
    let mut macs: Vec<_> = (0..2).map(|at| ring.board(at, &[])["mac"].as_str().unwrap().to_owned()).collect();
    macs.sort_unstable();
    let clash = serde_json::json!([{ "address": "10.1.0.3", "hosts": macs, "lasting": true }]);
    wait_for("all boards name both", || {
        (0..3).all(|at| ring.board(at, &[])["address_clashes"] == clash).then_some(())
    });
    for (at, node) in nodes.iter_mut().take(2).enumerate() {
        node.read_log_until("the address 10.1.0.3 was given to ");
        assert_eq!(ring.addresses(at, 4), ["10.1.0.3/24"], "neither changes");
    }
    wait_for("both are resolved", || {
        let resolved = ring.resolve(2, "10.1.0.3")?;
        (resolved.contains("n1 ") && resolved.contains("n2 ")).then_some(())
    });
}

#[test]
fn addresses_that_an_administrator_gives_and_takes_are_followed() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(2);
    let _nodes: Vec<_> = (0..2).map(|at| ring.start(at, &["--fabric-prefix", "none"])).collect();
    assert_eq!(ring.board(0, &[])["addresses"], serde_json::json!([]));
    for (interface, address) in [("fabric0", "10.3.0.1/24"), ("e1", "10.4.0.1/31"), ("fabric0", "fd03::1/64")]
    {
        let ip = address.split('/').next().unwrap();
        ring.machines[0].ip(&format!("address add {address} dev {interface}"));
        wait_for("the other machine hears of it", || {
            ring.resolve(1, ip).filter(|found| found.starts_with("n1 ") && found.contains(address))
        });
        ring.machines[0].ip(&format!("address delete {address} dev {interface}"));
        wait_for("the other machine forgets it", || ring.resolve(1, ip).is_none().then_some(()));
    }
    // An address on an interface that is not the fabric's is told to no other host.
    ring.machines[0].ip("link add other type veth peer name another");
    ring.machines[0].ip("address add 10.5.0.1/24 dev other");
    ring.machines[0].ip("address add 10.3.0.2/24 dev fabric0");
    wait_for("the address behind it", || ring.resolve(1, "10.3.0.2"));
    assert_eq!(ring.resolve(1, "10.5.0.1"), None);
}

/// Gives commands in a namespace a file /etc/hosts of their own, with this text. Returns where it is.
fn hosts_file(machine: &Namespace, text: &str) -> PathBuf {
    let dir = Path::new("/etc/netns").join(&machine.name);
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("hosts");
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn the_tap_interface_has_the_addresses_that_it_is_to_have_and_none_of_a_run_that_crashed() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(3);
    let start = |at: usize, address: &str| ring.start(at, &["--address", address]);
    let [_first, second, third] = [1, 2, 3].map(|n: usize| start(n - 1, &format!("10.1.0.{n}/24")));
    for (at, to) in [(0, "10.1.0.2"), (0, "10.1.0.3"), (1, "10.1.0.3")] {
        ring.wait_for_ping(at, to);
    }
    // Both start with the other's address after a crash.
    for node in [second, third] {
        node.signal(Signal::KILL);
    }
    // One of the two daemons gives up the privilege to change its machine once it has begun.
    let by_tap = ["--address", "10.1.0.2/24", "--data-path", "tap"];
    let _swapped = [start(1, "10.1.0.3/24"), ring.start(2, &by_tap)];
    for (at, address) in [(1, "10.1.0.3/24"), (2, "10.1.0.2/24")] {
        assert_eq!(ring.on_tap(at), [address], "nothing of the first run is left");
        wait_for("the board says so", || (ring.addresses(at, 4) == [address]).then_some(()));
        let name = format!("n{}", at + 1);
        wait_for("others are told so", || {
            ring.resolve(0, &name).filter(|told| told.contains(address.split('/').next().unwrap()))
        });
        ring.wait_for_ping(0, address);
    }
    // What somebody takes away comes back, of both versions of IP; what somebody adds is told.
    let v6 = ring.addresses(0, 6);
    ring.machines[0].ip("addr add 10.1.0.77/24 dev fabric0");
    wait_for("a second address of the network is told", || {
        ring.resolve(1, "n1").filter(|told| told.contains("10.1.0.77"))
    });
    ring.wait_for_ping(1, "10.1.0.77");
    ring.machines[0].ip("addr flush dev fabric0");
    wait_for("all are back, and what was added is not", || {
        (ring.on_tap(0) == ["10.1.0.1/24"] && ring.addresses(0, 6) == v6).then_some(())
    });
    ring.wait_for_ping(1, "10.1.0.1");
    ring.wait_for_ping(1, &v6[0]);
}
