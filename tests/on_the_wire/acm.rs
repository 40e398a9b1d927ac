//! Tests of the ACM service beside real nodes, with rdma-core's `ib_acme` as the judge: it needs no device, and prints
//! what it understands of each reply.

mod moving;
mod probes;
mod tcp;

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mapper_acm::fabric::{gid_of, lids};
use mapper_acm::wire::{Address, EntryFlags, Question, Reply, Request, Sought};
use mapper_proto::Mac;
use rustix::process::Signal;
use serde_json::Value;

use crate::daemon::Daemon;
use crate::lab::wait_for;
use crate::ring::Ring;
use crate::{MAPPER, can_make_taps};

/// What the service logs when clients can connect.
const READY: &str = "the ACM service runs";

/// Three nodes in a ring, called n1 to n3, and the service at the first.
pub(crate) struct Machines {
    service: Daemon,
    nodes: Vec<Daemon>,
    pub(crate) ring: Ring,
    dir: tempfile::TempDir,
}

impl Machines {
    /// Starts all, where this machine can, and waits until the service knows all hosts by name and address.
    pub(crate) fn start(options: &[&str]) -> Option<Self> {
        // Agents are patient, as a busy machine must not look like a dead cable, around which paths are longer.
        Self::start_with(&["--liveness-misses", "10"], options)
    }

    /// The same with these options of the nodes, too.
    fn start_with(of_nodes: &[&str], options: &[&str]) -> Option<Self> {
        if !(can_make_taps() && mapper_needs::programs(&["ib_acme"])) {
            return None;
        }
        let ring = Ring::new(3);
        let dir = tempfile::tempdir().unwrap();
        let start = |at: usize| {
            let address = format!("10.1.0.{}/24", at + 1);
            ring.start(at, &[&["--address", &address], of_nodes].concat())
        };
        let nodes: Vec<_> = (0..3).map(start).collect();
        let service = Self::serve(&ring, dir.path(), options);
        let machines = Self { service, nodes, ring, dir };
        for known in ["n -d n2", "n -d n3", "i -d 10.1.0.2", "i -d 10.1.0.3"] {
            wait_for(known, || (machines.judge(&format!("-f {known} -c")).1 == 0).then_some(()));
        }
        Some(machines)
    }

    fn serve(ring: &Ring, dir: &Path, options: &[&str]) -> Daemon {
        let socket = dir.join("acm.sock");
        let words = ["acm", "serve", "--run-dir", ring.run_dir(0), "--socket", socket.to_str().unwrap()];
        Daemon::start(&ring.machines[0], &[&words[..], options].concat(), READY)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("acm.sock")
    }

    /// What `ib_acme` prints, and its exit status, for these options.
    fn judge(&self, line: &str) -> (String, i32) {
        self.ask("ib_acme", &format!("-S {} {line}", self.socket().display()))
    }

    /// What `mapper acm query` prints, and its exit status, for these options.
    fn query(&self, line: &str) -> (String, i32) {
        self.ask(MAPPER, &format!("acm query -S {} {line}", self.socket().display()))
    }

    /// What both print of the short way to a neighbour. A busy machine looks like a dead cable for a moment, so a path
    /// may lead around it then, there may be none, and two that were asked for one after the other may differ.
    fn both(&self, line: &str) -> String {
        wait_for(&format!("the short way, told to both for {line}"), || {
            let (printed, status) = self.judge(line);
            let is_short = status == 0 && field(&printed, "hop limit") == "2";
            (is_short && self.query(line) == (printed.clone(), status)).then_some(printed)
        })
    }

    /// Waits until there is a path, which on a busy machine may be missing for a moment.
    fn wait_for_path(&self, line: &str) {
        wait_for(&format!("a path for {line}"), || (self.judge(line).1 == 0).then_some(()));
    }

    fn ask(&self, program: &str, line: &str) -> (String, i32) {
        let output = self.ring.run(0, &format!("{program} {line}"));
        (String::from_utf8(output.stdout).unwrap(), output.status.code().unwrap())
    }

    pub(crate) fn mac(&self, at: usize) -> Mac {
        self.ring.board(at, &[])["mac"].as_str().unwrap().parse().unwrap()
    }

    /// An address of IPv6 of a machine.
    pub(crate) fn v6(&self, at: usize) -> String {
        let board = self.ring.board(at, &[]);
        let all = board["addresses"].as_array().unwrap().iter().filter_map(Value::as_str);
        let found = all.filter(|text| text.contains(':')).map(|text| text.split('/').next().unwrap()).next();
        found.unwrap().to_owned()
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }
}

#[test]
fn an_address_of_two_hosts_is_answered_as_neithers_and_both_are_named() {
    let Some(mut machines) = Machines::start(&[]) else { return };
    let restart = |machines: &mut Machines, address: &str| {
        machines.nodes.pop().unwrap().end();
        machines.nodes.push(machines.ring.start(2, &["--address", address]));
    };
    restart(&mut machines, "10.1.0.2/24");
    let refused = "failed: Cannot assign requested address";
    wait_for("the clash", || machines.judge("-f i -d 10.1.0.2 -c").0.contains(refused).then_some(()));
    let mut macs = [machines.mac(1), machines.mac(2)];
    macs.sort_unstable();
    let [first, second] = macs;
    machines
        .service
        .read_log_until(&format!("10.1.0.2 is not answered, as {first} and {second} say that it is theirs"));
    machines.wait_for_path("-f n -d n2");
    restart(&mut machines, "10.1.0.3/24");
    machines.wait_for_path("-f i -d 10.1.0.2 -c");
}

#[test]
fn the_table_of_mapper_toml_configures_the_service_and_agents_pass_over_it() {
    let Some(machines) = Machines::start(&[]) else { return };
    let config = tempfile::tempdir().unwrap();
    let (file, socket) = (config.path().join("mapper.toml"), config.path().join("s"));
    let run_dir = machines.ring.run_dir(0);
    let text = format!(
        "run-dir = {run_dir:?}\nlevel = 3\n[acm]\nsocket = {socket:?}\nretries = 0\ntimeout-ms = 10\n"
    );
    std::fs::write(&file, &text).unwrap();
    let words = ["acm", "serve", "--config", config.path().to_str().unwrap()];
    {
        let _service = Daemon::start(&machines.ring.machines[0], &words, READY);
        wait_for("the path", || {
            (machines.ask("ib_acme", &format!("-S {} -f n -d n2", socket.display())).1 == 0).then_some(())
        });
    }
    std::fs::write(&file, text.replace("retries", "retires")).unwrap();
    for words in ["acm serve", "node --ports e1,e2"] {
        let line = format!("{MAPPER} {words} --config {}", config.path().display());
        let refused = machines.ring.run(0, &line);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(said.contains("mapper.toml:5: ") && said.contains("retires"), "{said}");
    }
}

#[test]
fn a_service_manager_hands_over_the_socket() {
    let programs = mapper_needs::programs(&["systemd-socket-activate"]);
    let Some(machines) = Machines::start(&[]).filter(|_| programs) else { return };
    let socket = machines.dir.path().join("activated.sock");
    let line = format!("systemd-socket-activate -l {} {MAPPER} acm serve", socket.display());
    let mut command = machines.ring.machines[0].command_line(&line);
    let mut child = command.args(["--run-dir", machines.ring.run_dir(0)]).spawn().unwrap();
    wait_for("the socket", || socket.exists().then_some(()));
    let (printed, status) = machines.ask("ib_acme", &format!("-S {} -f n -d n2 -v", socket.display()));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(status == 0 && printed.contains("SA verification: success"), "{printed}");
    assert!(socket.exists(), "the socket is the service manager's");
}

/// The value behind a name in what `ib_acme` prints.
fn field<'a>(printed: &'a str, name: &str) -> &'a str {
    let found = printed.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": "));
    found.unwrap_or_else(|| panic!("no {name}: {printed}"))
}

#[test]
fn ib_acme_resolves_addresses_of_all_kinds_and_our_query_says_the_same() {
    let Some(machines) = Machines::start(&[]) else { return };
    let macs: Vec<Mac> = (0..3).map(|at| machines.mac(at)).collect();
    let mut sorted = macs.clone();
    sorted.sort_unstable();
    let lid = lids(sorted);
    let (gid, own_gid) = (gid_of(macs[1]).to_string(), gid_of(macs[0]).to_string());
    let (v6, own_v6) = (machines.v6(1), machines.v6(0));
    let (to, from) = (lid[&macs[1]].to_string(), lid[&macs[0]].to_string());
    for line in [
        "-f i -d 10.1.0.2".to_owned(),
        "-d 10.1.0.2".to_owned(),
        "-f i -s 10.1.0.1 -d 10.1.0.2".to_owned(),
        format!("-f i -d {v6}"),
        format!("-f i -s {own_v6} -d {v6}"),
        "-f n -d n2".to_owned(),
        "-f n -s n1 -d n2".to_owned(),
        "-f n -d n2 -c".to_owned(),
        "-f n -d n2 -C 3".to_owned(),
        format!("-f l -d {to}"),
        format!("-f l -s {from} -d {to}"),
        format!("-f g -d {gid}"),
        format!("-f g -s {own_gid} -d {gid}"),
        // A GID is an address of IPv6, too.
        format!("-f i -d {gid}"),
    ] {
        let printed = machines.both(&format!("{line} -v"));
        assert_eq!((field(&printed, "dgid"), field(&printed, "sgid")), (gid.as_str(), own_gid.as_str()));
        assert_eq!((field(&printed, "dlid"), field(&printed, "slid")), (to.as_str(), from.as_str()));
        assert_eq!(field(&printed, "sl"), "0");
        assert_eq!(
            (field(&printed, "mtu"), field(&printed, "rate"), field(&printed, "reversible")),
            ("3", "3", "1")
        );
        assert!(printed.contains("SA verification: success\n\nreturn status 0x0\n"), "{printed}");
    }
    // The source that the service chooses is of the destination's kind.
    for (line, source) in [("-f i -d 10.1.0.3", "10.1.0.1"), ("-f n -d n3", "n1"), ("-f i -d {v6}", &own_v6)]
    {
        let line = line.replace("{v6}", &v6);
        machines.wait_for_path(&line);
        assert_eq!(field(&machines.judge(&line).0, "Source"), source);
    }
    for (line, why) in [
        ("-f i -s 10.1.0.3 -d 10.1.0.2", "ib_acm_resolve_ip failed: Cannot assign requested address"),
        ("-f n -d n9 -c", "ib_acm_resolve_name failed: No data available"),
        ("-f l -d 49151", "ib_acm_resolve_path failed: Cannot assign requested address"),
        ("-f g -d fe80::9", "ib_acm_resolve_path failed: Cannot assign requested address"),
    ] {
        let (printed, status) = machines.judge(line);
        assert!(
            printed.contains(why) && printed.ends_with("return status 0xffffffff\n"),
            "{line}: {printed}"
        );
        assert_eq!(status, 255, "{line}");
        assert_eq!(machines.query(line), (printed, status), "{line}");
    }
    let report = wait_for("paths to both others", || {
        let (printed, status) = machines.query("-f n -d n[2-3] -v --format json");
        (status == 0).then(|| serde_json::from_str::<Value>(&printed).unwrap())
    });
    let resolved = &report["services"][0]["resolved"];
    assert_eq!(report["schema"], "mapper.acm-query/1");
    assert_eq!((&resolved[1]["destination"], &resolved[1]["verified"]), (&"n3".into(), &true.into()));
    assert_eq!(resolved[0]["path"]["mtu_bytes"], 1024);
}

#[test]
fn ib_acme_reads_counters_and_endpoints() {
    let Some(machines) = Machines::start(&[]) else { return };
    machines.judge("-f i -s 10.1.0.1 -d 10.1.0.2");
    machines.judge("-f i -s 10.1.0.1 -d 10.1.0.2");
    for line in [
        "-P",
        "-P col",
        "-P 1",
        "-P all",
        "-P s -s 10.1.0.1",
        "-P s -s 10.9.9.9",
        "-P 9",
        "-e",
        "-e 1",
        "-e 2",
    ] {
        // An address that comes in between is told to one of them alone.
        wait_for(&format!("the same answer to both for {line}"), || {
            let judged = machines.judge(line);
            assert_eq!(judged.1, 0, "{line}: {}", judged.0);
            (machines.query(line) == judged).then_some(())
        });
    }
    let (printed, _) = machines.judge("-P");
    let [head, row, "return status 0x0"] = printed.lines().collect::<Vec<_>>()[..] else {
        panic!("{printed}")
    };
    assert!(
        head.starts_with(
            "svc,Error Count,Resolve Count,No Data,Addr Query Count,Addr Cache Count,Route Query"
        )
    );
    let counts: Vec<u64> = row.split(',').skip(1).map(|count| count.parse().unwrap()).collect();
    assert!(counts[1] >= 2 && counts[4] >= 1 && counts[6] >= 1 && counts.len() == 7, "{row}");
    let (by_address, _) = machines.judge("-P s -s 10.1.0.1");
    assert_eq!(by_address, machines.judge("-P 1").0);
    assert!(machines.judge("-P 9").0.contains("Failed to query perf data: Cannot assign requested address"));
    let (printed, _) = machines.judge("-e");
    let guid = format!("{:#018x}", mapper_acm::fabric::guid_of(machines.mac(0)));
    let socket = machines.socket();
    let line = format!("{},{guid},1,0xffff,1,mapper,n1,10.1.0.1,{}\n", socket.display(), machines.v6(0));
    assert!(printed.contains(&line), "{printed}");
    assert!(machines.judge("-e 2").0.starts_with(" Endpoint 2 is not available"));
}

#[test]
fn a_new_map_changes_what_is_answered_and_a_lost_agent_nothing() {
    let Some(mut machines) = Machines::start(&["--timeout-ms", "60000"]) else { return };
    // While agents find out which cable is dead there may be no route for a moment, which is answered, too.
    let hops = |machines: &Machines| {
        let (printed, status) = machines.judge("-f n -d n2");
        if status == 0 { field(&printed, "hop limit").to_owned() } else { String::new() }
    };
    wait_for("the short way at first", || (hops(&machines) == "2").then_some(()));
    // The cable from n1 to n2 fails, so the way leads over n3.
    machines.ring.machines[0].ip("link set e1 down");
    wait_for("the way around", || (hops(&machines) == "3").then_some(()));
    machines.ring.machines[0].ip("link set e1 up");
    wait_for("the short way", || (hops(&machines) == "2").then_some(()));
    // While the agent is gone nothing is known for sure, so a question waits until it is back.
    machines.nodes.remove(0).end();
    wait_for("the service misses the agent", || (machines.judge("-f n -d n2 -c").1 != 0).then_some(()));
    let mut waiting = machines.connect();
    waiting.write_all(&question("n3", EntryFlags::default()).to_bytes(7).unwrap()).unwrap();
    machines.nodes.insert(0, machines.ring.start(0, &["--address", "10.1.0.1/24"]));
    let mut reply = [0; 160];
    waiting.read_exact(&mut reply).unwrap();
    let (header, reply) = Reply::parse(&reply).unwrap();
    assert!(header.tid == 7 && matches!(reply, Reply::Path { .. }), "{reply:?}");
    // A host that has left is not answered from memory.
    machines.nodes.pop().unwrap().end();
    wait_for("n3 is forgotten, and n2 is not", || {
        // A question without -c waits until the new map is there.
        let n2 = machines.judge("-f n -d n2").1;
        (n2 == 0 && machines.judge("-f n -d n3 -c").1 == 255).then_some(())
    });
    machines.wait_for_path("-f n -d n2");
}

fn question(name: &str, flags: EntryFlags) -> Request {
    let destination = Address::Name(name.to_owned());
    Request::Resolve(Question { sought: Sought::Destination { source: None, destination }, flags })
}

#[test]
fn files_of_ibacm_are_obeyed_and_read_again() {
    let files = tempfile::tempdir().unwrap();
    let [addresses, options, hosts] =
        ["ibacm_addr.cfg", "ibacm_opts.cfg", "hosts.data"].map(|it| files.path().join(it));
    std::fs::write(&addresses, "alias e1+e2 1 default\nother e1+e2 1 0x8001\n").unwrap();
    std::fs::write(&options, "timeout 50\nretries 1\nsa_depth 7\n").unwrap();
    let line = ["--address-file", addresses.to_str().unwrap(), "--options-file", options.to_str().unwrap()];
    let Some(mut machines) = Machines::start(&line) else { return };
    machines.wait_for_path("-f n -s other -d n2");
    assert_eq!(field(&machines.judge("-f n -s other -d n2").0, "pkey"), "0x8001");
    machines.wait_for_path("-f n -s alias -d n2");
    assert!(machines.judge("-f n -d n9").0.contains("failed: Connection timed out"));
    assert!(machines.judge("-f n -s later -d n2").0.contains("Cannot assign requested address"));

    std::fs::write(&addresses, "later e1+e2 1 default\n").unwrap();
    let gid = gid_of(machines.mac(1));
    std::fs::write(&hosts, format!("nickname {gid}\n")).unwrap();
    std::fs::write(&options, format!("addr_preload acm_hosts\naddr_data_file {}\n", hosts.display()))
        .unwrap();
    machines.service.signal(Signal::HUP);
    machines.service.read_log_until("the configuration was read again");
    machines.wait_for_path("-f n -s later -d n2");
    machines.wait_for_path("-f n -d nickname");
    assert_eq!(field(&machines.judge("-f n -d nickname").0, "dgid"), gid.to_string());
    assert_eq!(machines.judge("-f n -s alias -d n2").1, 255);
    // What is wrong changes nothing.
    std::fs::write(&addresses, "later e1+e2\n").unwrap();
    machines.service.signal(Signal::HUP);
    let log = machines.service.read_log_until("the configuration stays as it was");
    assert!(log.contains("ibacm_addr.cfg:1: expected `name device port pkey`"), "{log}");
    machines.wait_for_path("-f n -s later -d n2");
}

#[test]
fn who_sends_what_is_no_request_harms_nobody_else() {
    let Some(machines) = Machines::start(&["--client-timeout-ms", "300", "--max-clients", "4"]) else {
        return;
    };
    let good = question("n2", EntryFlags::NO_DELAY).to_bytes(9).unwrap();
    let changed = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        bytes
    };
    let counters = Request::Counters { endpoint: 0, source: None }.to_bytes(0).unwrap();
    let mut long = counters.clone();
    long[7] = 17;
    long.push(0);
    for (what, bytes) in [
        ("another version", changed(0, 2)),
        ("an unknown opcode", changed(1, 7)),
        ("a reply", changed(1, 0x81)),
        ("a length that is no message's", changed(6, 87)),
        ("counters with a byte too many", long),
        ("a part of a header", good[..9].to_vec()),
        ("a part of a request", good[..80].to_vec()),
        ("nothing", Vec::new()),
        ("garbage", vec![0xa5; 5000]),
    ] {
        let mut stream = machines.connect();
        stream.write_all(&bytes).unwrap();
        let mut rest = Vec::new();
        // What the service has not read when it closes the connection resets it.
        match stream.read_to_end(&mut rest) {
            Ok(0) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            other => panic!("{what}: {other:?}, {rest:?}"),
        }
        machines.wait_for_path("-f n -d n2");
    }
    // Bytes that come one by one are a request all the same, and many requests at once are answered each. On a busy machine
    // the bytes may come so late that the service takes the client for a silent one.
    let replies = wait_for("bytes that come one by one in time", || {
        let mut stream = machines.connect();
        for byte in &good {
            stream.write_all(&[*byte]).ok()?;
        }
        stream.write_all(&[counters.clone(), good.clone()].concat()).ok()?;
        let mut replies = vec![0; 160 + 72 + 160];
        stream.read_exact(&mut replies).ok()?;
        Some(replies)
    });
    let lengths =
        [&replies[..160], &replies[160..232], &replies[232..]].map(|bytes| Reply::parse(bytes).is_ok());
    assert_eq!(lengths, [true; 3]);
    // Who waits behind as many silent clients as there may be is served once they are dropped.
    let silent: Vec<_> = (0..4).map(|_| machines.connect()).collect();
    machines.wait_for_path("-f n -d n2");
    drop(silent);
    // A client that does not read its replies does not keep others waiting.
    let mut greedy = machines.connect();
    greedy.set_nonblocking(true).unwrap();
    while greedy.write(&good.repeat(100)).is_ok() {}
    machines.wait_for_path("-f n -d n2");
}

#[test]
fn names_for_this_machine_are_written_without_a_device() {
    let Some(machines) = Machines::start(&[]) else { return };
    let dir = machines.dir.path().to_str().unwrap();
    let run_dir = machines.ring.run_dir(0);
    let (printed, status) =
        machines.ask(MAPPER, &format!("acm config -A -O -D {dir} -V --run-dir {run_dir}"));
    let name = rustix::system::uname().nodename().to_string_lossy().split('.').next().unwrap().to_owned();
    let device = machines.ring.board(0, &[])["interface"].as_str().unwrap().to_owned();
    assert!(status == 0 && printed.contains(&format!("{name}-1 {device} 1 default\n")), "{printed}");
    let [addresses, options] = ["ibacm_addr.cfg", "ibacm_opts.cfg"].map(|file| format!("{dir}/{file}"));
    let [socket, log] = ["other.sock", "log"].map(|file| format!("{dir}/{file}"));
    let words = ["acm", "serve", "--run-dir", run_dir, "--socket", &socket, "--address-file", &addresses];
    let words = [&words[..], &["--options-file", &options, "--verbose-file", &log]].concat();
    let _service = Daemon::start(&machines.ring.machines[0], &words, READY);
    let line = format!("-S {socket} -f n -s {name}-1 -d n2");
    wait_for("the name of a file", || (machines.ask("ib_acme", &line).1 == 0).then_some(()));
    // Nobody else can have the socket.
    let taken = machines.ring.run(0, &format!("{MAPPER} acm serve --socket {socket}"));
    let said = String::from_utf8(taken.stderr).unwrap();
    assert!(!taken.status.success() && said.contains("another service answers on"), "{said}");
}

#[test]
fn names_that_only_a_file_of_another_machine_tells_are_asked_for() {
    let files = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = files.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let options = file("opts", "timeout 300\nretries 2\nresolve_depth 4\n");
    let Some(mut machines) = Machines::start(&["--options-file", &options]) else { return };
    // Nobody has it yet, which costs the time that the options say, and not more.
    let (printed, status) = machines.judge("-f n -d storage");
    assert!(status == 255 && printed.contains("failed: Connection timed out"), "{printed}");
    let serve = |machines: &Machines, at: usize, addresses: &str| {
        let socket = machines.dir.path().join(format!("acm{at}.sock"));
        let words = ["acm", "serve", "--run-dir", machines.ring.run_dir(at), "--socket"];
        let words = [&words[..], &[socket.to_str().unwrap(), "--address-file", addresses]].concat();
        Daemon::start(&machines.ring.machines[at], &words, READY)
    };
    let third = file("third", "storage e1+e2 1 default\n192.0.2.77 e1+e2 1 default\n");
    let mut other = serve(&machines, 2, &third);
    wait_for("the name of the third machine's file", || {
        // What nobody had is remembered for ten seconds; another spelling is the same name.
        (machines.judge("-f n -d Storage").1 == 0).then_some(())
    });
    let gid = gid_of(machines.mac(2)).to_string();
    for line in ["-f n -d storage -v", "-f i -d 192.0.2.77 -v", "-f n -d storage -c"] {
        let printed = machines.both(line);
        assert_eq!(field(&printed, "dgid"), gid, "{line}: {printed}");
    }
    let resolved = machines.ask(MAPPER, &format!("resolve storage --run-dir {}", machines.ring.run_dir(0))).0;
    assert!(resolved.contains("n3"), "{resolved}");
    // Another machine says that it has it, too: neither is answered, and both are named.
    let _second = serve(&machines, 1, &third);
    let refused = "failed: Cannot assign requested address";
    let mut macs = [machines.mac(1), machines.mac(2)];
    macs.sort_unstable();
    let [first, last] = macs;
    wait_for("the clash", || machines.judge("-f n -d storage -c").0.contains(refused).then_some(()));
    machines
        .service
        .read_log_until(&format!("storage is not answered, as {first} and {last} say that it is theirs"));
    // The file of the third machine names it no more, so it is the other's.
    std::fs::write(&third, "elsewhere e1+e2 1 default\n").unwrap();
    other.signal(Signal::HUP);
    other.read_log_until("the configuration was read again");
    let gid = gid_of(machines.mac(1)).to_string();
    wait_for("the other owner", || {
        let (printed, status) = machines.judge("-f n -d storage");
        (status == 0 && field(&printed, "dgid") == gid).then_some(())
    });
}
