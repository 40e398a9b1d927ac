//! Tests of the crossbar process, with frames that the tests send over its cables.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Stdio};
use std::time::Duration;

use mapper_machine::link::batch::Batch;
use mapper_machine::link::ethernet::{EthernetSocket, Frame, HEADER_BYTES, MAX_FRAME_BYTES, Marking};
use mapper_machine::link::interface::Interface;
use mapper_machine::link::port::EthernetPort;
use mapper_proto::Mac;
use mapper_proto::wire::{
    Data, Element, FrameKind, Info, Message, Probe, ProbeKind, Route, Stamp, Undeliverable, split_route,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::namespace::Namespace;
use crate::{MAPPER, can_make_namespaces};

/// Longer than a frame takes on a busy machine. Only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A namespace with a crossbar in it. Its port N is interface `pN`, and the far end of that interface's cable
/// `hN`.
struct Bench {
    namespace: Namespace,
    run_dir: TempDir,
    xbar: Child,
    log: BufReader<ChildStderr>,
}

impl Bench {
    fn new(options: &[&str]) -> Self {
        Self::with(&[&["--port", "p1", "--port", "p2", "--ports", "8"], options].concat())
    }

    /// A crossbar whose ports are named by the options.
    fn with(options: &[&str]) -> Self {
        let namespace = Namespace::new();
        for port in 1..=2 {
            namespace.ip(&format!("link add p{port} type veth peer name h{port}"));
            namespace.ip(&format!("link set p{port} up"));
            namespace.ip(&format!("link set h{port} up"));
        }
        let run_dir = tempfile::tempdir().unwrap();
        let mut xbar = namespace
            .command(MAPPER)
            .arg("xbar")
            .args(options)
            .env("MAPPER_RUN_DIR", run_dir.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(xbar.stderr.take().unwrap());
        let mut bench = Self { namespace, run_dir, xbar, log };
        bench.wait_for_log("crossbar runs");
        bench
    }

    /// Reads the crossbar's log up to a line with `needle` in it.
    fn wait_for_log(&mut self, needle: &str) {
        let mut line = String::new();
        while self.log.read_line(&mut line).unwrap() > 0 {
            if line.contains(needle) {
                return;
            }
            line.clear();
        }
        panic!("the crossbar ended before it logged `{needle}`");
    }

    /// Sends a frame from one far end and returns what arrives at another, behind the Ethernet
    /// header, and without padding.
    fn exchange(&self, from: &str, route: &[Element], frame: &[u8], to: &str) -> Vec<u8> {
        let (source, arrived) = self.exchange_with_source(from, route, frame, to);
        let sender = self.namespace.enter(|| Interface::look_up(from).unwrap().unwrap().mac);
        assert_eq!(source, sender, "the source stays");
        arrived
    }

    /// Sends a frame from one far end, and returns the source address and payload of the first frame that
    /// arrives at another and is no hello, whoever sent it.
    fn exchange_with_source(&self, from: &str, route: &[Element], frame: &[u8], to: &str) -> (Mac, Vec<u8>) {
        self.namespace.enter(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let sender = open(from);
                let other = (to != from).then(|| open(to));
                let receiver = other.as_ref().unwrap_or(&sender);
                sender.send(Route::from_iter(route.iter().copied()).as_bytes(), frame).unwrap();
                let mut buffer = vec![0; MAX_FRAME_BYTES];
                loop {
                    let bytes = tokio::time::timeout(PATIENCE, receiver.recv(&mut buffer))
                        .await
                        .expect("no frame came")
                        .unwrap();
                    let frame = Frame::parse(&buffer[..bytes]).unwrap();
                    if FrameKind::of(frame.payload()) != Ok(FrameKind::Hello) {
                        return (frame.source, frame.payload().to_vec());
                    }
                }
            })
        })
    }

    /// Sends a frame along each of these routes.
    fn send<'a>(
        &self,
        from: &str,
        routes: impl IntoIterator<Item = &'a [u8], IntoIter: Send> + Send,
        frame: &[u8],
    ) {
        self.namespace.enter(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let _inside = runtime.enter();
            let sender = open(from);
            routes.into_iter().for_each(|route| sender.send(route, frame).unwrap());
        });
    }

    /// What `mapper xbar --status` prints.
    fn status_output(&self, options: &[&str]) -> String {
        let mut command = self.namespace.command(MAPPER);
        let command = command.args(["xbar", "--status"]).args(options);
        let output = command.env("MAPPER_RUN_DIR", self.run_dir.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What the crossbar says of itself.
    fn status(&self) -> Value {
        let mut status: Value = serde_json::from_str(&self.status_output(&["--format", "json"])).unwrap();
        assert_eq!(status["schema"], "mapper.xbar/1");
        status["xbars"][0].take()
    }

    fn stamp_seen_from(&self, from: &str) -> Stamp {
        let answer = self.exchange(from, &[Element::Identify], &identify_probe(), from);
        let (route, frame) = split_route(&answer).unwrap();
        assert!(route.is_empty());
        Message::decode(frame).unwrap().1.unwrap()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _already_ended = self.xbar.kill();
        let _ended = self.xbar.wait();
    }
}

/// How many frames left by a port, without its own hellos.
fn sent(port: &Value) -> u64 {
    port["sent"].as_u64().unwrap() - port["hellos_sent"].as_u64().unwrap()
}

fn open(interface: &str) -> EthernetSocket {
    let interface = Interface::look_up(interface).unwrap().unwrap();
    EthernetSocket::open(&interface, Marking::default()).unwrap()
}

fn identify_probe() -> Vec<u8> {
    let (info, way_there) = (Info::default(), Route::new());
    Message::Probe(Probe { id: 1, kind: ProbeKind::Identify, left: 1, info, way_there }).encode()
}

#[test]
fn a_frame_is_sent_on_less_the_element_that_was_obeyed() {
    if !can_make_namespaces() {
        return;
    }
    let bench = Bench::new(&["--kind", "plain"]);
    let frame = [0, 0, 0x70, 0x0f, 1, 2, 3];
    let rest = Route::from_iter([Element::Relative(5)]);
    let arrived = bench.exchange("h1", &[Element::Relative(1), Element::Relative(5)], &frame, "h2");
    assert_eq!(arrived, [rest.as_bytes(), &frame].concat());
    let returned = bench.exchange("h2", &[Element::Relative(0)], &frame, "h2");
    assert_eq!(returned, frame);
}

#[test]
fn a_tagged_crossbar_stamps_who_it_is_and_which_ports_have_carrier() {
    if !can_make_namespaces() {
        return;
    }
    let mut bench = Bench::new(&["--tag", "0xfeed"]);
    let stamp = bench.stamp_seen_from("h2");
    assert_eq!((stamp.tag, stamp.ports, stamp.arrival), (0xfeed, 8, 2));
    assert_eq!((0..=255).filter(|&port| stamp.has_carrier(port)).collect::<Vec<_>>(), [1, 2]);

    bench.namespace.ip("link set h1 down");
    bench.wait_for_log("carrier=false");
    assert!(!bench.stamp_seen_from("h2").has_carrier(1));
}

#[test]
fn an_interface_may_vanish_and_return() {
    if !can_make_namespaces() {
        return;
    }
    let mut bench = Bench::new(&["--tag", "1"]);
    bench.namespace.ip("link delete p1");
    bench.wait_for_log("the interface is gone");
    assert!(!bench.stamp_seen_from("h2").has_carrier(1));
    for words in ["link add p1 type veth peer name h1", "link set h1 up", "link set p1 up"] {
        bench.namespace.ip(words);
    }
    bench.wait_for_log("carrier=true");
    assert!(bench.stamp_seen_from("h2").has_carrier(1));
    assert_eq!(bench.exchange("h2", &[Element::Relative(-1)], &[0; 60], "h1"), [0; 60]);
    assert_eq!(bench.exchange("h1", &[Element::Relative(1)], &[0; 60], "h2"), [0; 60]);
}

#[test]
fn an_interface_may_be_renamed_away_and_back() {
    if !can_make_namespaces() {
        return;
    }
    let mut bench = Bench::new(&["--tag", "1"]);
    bench.namespace.ip("link set p1 down");
    bench.namespace.ip("link set p1 name elsewhere");
    bench.wait_for_log("the interface is gone");
    assert!(!bench.status()["ports"][0]["exists"].as_bool().unwrap());
    bench.namespace.ip("link set elsewhere name p1");
    bench.namespace.ip("link set p1 up");
    bench.wait_for_log("carrier=true");
    assert_eq!(bench.exchange("h2", &[Element::Relative(-1)], &[0; 60], "h1"), [0; 60]);
}

#[test]
fn an_interface_may_come_after_the_crossbar() {
    if !can_make_namespaces() {
        return;
    }
    let mut bench = Bench::new(&["--tag", "1", "--port", "5=late"]);
    bench.namespace.ip("link add late type veth peer name far");
    bench.namespace.ip("link set far up");
    bench.namespace.ip("link set late up");
    bench.wait_for_log("carrier=true");
    assert!(bench.stamp_seen_from("h2").has_carrier(5));
    assert_eq!(bench.exchange("h2", &[Element::Absolute(5)], &[0; 60], "far"), [0; 60]);
    assert_eq!(bench.exchange("far", &[Element::Absolute(2)], &[0; 60], "h2"), [0; 60]);
}

#[test]
fn an_interface_that_matches_a_pattern_becomes_a_port_when_it_comes() {
    if !can_make_namespaces() {
        return;
    }
    let mut bench = Bench::new(&["--tag", "1", "--ports", "late*"]);
    bench.namespace.ip("link add other type veth peer name far2");
    bench.namespace.ip("link add late7 type veth peer name far");
    bench.wait_for_log("the port is taken");
    bench.namespace.ip("link set far up");
    bench.namespace.ip("link set late7 up");
    bench.wait_for_log("carrier=true");
    assert_eq!(bench.exchange("h2", &[Element::Absolute(3)], &[0; 60], "far"), [0; 60]);
    assert_eq!(bench.exchange("far", &[Element::Absolute(2)], &[0; 60], "h2"), [0; 60]);
    // An interface keeps its port number while it is gone.
    bench.namespace.ip("link delete late7");
    bench.wait_for_log("the interface is gone");
    bench.namespace.ip("link add late8 type veth peer name far8");
    bench.wait_for_log("the port is taken");
    let ports = bench.status()["ports"].as_array().unwrap().clone();
    let named: Vec<_> =
        ports.iter().map(|port| (port["port"].as_u64(), port["interface"].as_str())).collect();
    let expected = [(1, "p1"), (2, "p2"), (3, "late7"), (4, "late8")];
    assert_eq!(named, expected.map(|(number, name)| (Some(number), Some(name))));
}

#[test]
fn ports_come_and_go_with_its_file_and_the_others_go_on() {
    if !can_make_namespaces() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("xbar.toml");
    std::fs::write(&file, "ports = [\"p1\", \"p2\"]\n").unwrap();
    let mut bench = Bench::with(&["--tag", "1", "--config", file.to_str().unwrap()]);
    bench.exchange("h1", &[Element::Absolute(2)], &[0; 60], "h2");
    bench.namespace.ip("link add p3 type veth peer name h3");
    bench.namespace.ip("link set p3 up");
    bench.namespace.ip("link set h3 up");
    let pid = rustix::process::Pid::from_child(&bench.xbar);
    let mut reload = |text: &str, answer: &str| {
        std::fs::write(&file, text).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
        bench.wait_for_log(answer);
        let ports = bench.status()["ports"].as_array().unwrap().clone();
        ports
            .iter()
            .map(|port| format!("{}={}", port["port"], port["interface"]))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(reload("ports = [\"p1\", \"p2\", \"5=p3\"]\n", "was read again"), r#"1="p1" 2="p2" 5="p3""#);
    assert_eq!(reload("ports = [\"p2\", \"5=p3\"]\n", "was read again"), r#"2="p2" 5="p3""#);
    assert_eq!(reload("ports = [\"p2\"\n", "configuration is not used"), r#"2="p2" 5="p3""#);
    assert!(!bench.stamp_seen_from("h2").has_carrier(1), "given up");
    assert_eq!(bench.exchange("h2", &[Element::Absolute(5)], &[0; 60], "h3"), [0; 60]);
    assert_eq!(bench.exchange("h3", &[Element::Absolute(2)], &[0; 60], "h2"), [0; 60]);
    // Another daemon may take an interface that was given up.
    let lock = bench.namespace.enter(|| mapper_machine::interface_lock::InterfaceLock::take("p1").is_ok());
    assert!(lock, "another may have it");
}

#[test]
fn agents_map_a_crossbar_that_has_grown() {
    if !can_make_namespaces() {
        return;
    }
    let bench = Bench::with(&["--tag", "1", "--ports", "p*"]);
    let mut agents = Vec::new();
    let start = |host: &str| {
        let agent = ["agent", "--interface", host, "--verify-pause-ms", "100"];
        let mut command = bench.namespace.command(MAPPER);
        command.args(agent).env("MAPPER_RUN_DIR", bench.run_dir.path()).stderr(Stdio::null());
        Ended(command.spawn().unwrap())
    };
    let wait_for_hosts = |hosts: u64| {
        crate::lab::wait_for("all hosts are configured", || {
            let mut command = bench.namespace.command(MAPPER);
            let command = command.args(["board-info", "--format", "json"]);
            let output = command.env("MAPPER_RUN_DIR", bench.run_dir.path()).output().unwrap();
            let info: Value = serde_json::from_slice(&output.stdout).unwrap();
            let boards = info["boards"].as_array().unwrap();
            let is_whole = |board: &Value| board["network_configured"] == true && board["hosts"] == hosts;
            (boards.len() as u64 == hosts && boards.iter().all(is_whole)).then_some(())
        });
    };
    agents.extend(["h1", "h2"].map(start));
    wait_for_hosts(2);
    bench.namespace.ip("link add p9 type veth peer name h9");
    bench.namespace.ip("link set p9 up");
    bench.namespace.ip("link set h9 up");
    agents.push(start("h9"));
    wait_for_hosts(3);
}

/// A process that ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _already_ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

#[test]
fn what_it_does_not_understand_is_counted() {
    if !can_make_namespaces() {
        return;
    }
    let bench = Bench::new(&["--kind", "plain"]);
    bench.send("h1", [&[0xc0, 2][..], &[0xe0], &[0xa0], &[0x81 + 2], &[0xff], &[0x00]], &[0; 60]);
    bench.send("h1", [&[][..]], &identify_probe());
    // Frames keep their order, so when this one arrives, the crossbar has decided on those before it.
    bench.exchange("h1", &[Element::Relative(1)], &[0; 60], "h2");
    let port = &bench.status()["ports"][0];
    assert_eq!((&port["received"], &port["forwarded"]), (&8.into(), &1.into()), "{port}");
    let dropped = &port["dropped"];
    for (reason, count) in
        [("foreign", 1), ("no_route", 1), ("no_such_port", 1), ("not_understood", 3), ("no_interface", 1)]
    {
        assert_eq!(dropped[reason], count, "{dropped}");
    }
}

#[test]
fn who_sends_data_to_a_port_that_cannot_take_it_is_told() {
    if !can_make_namespaces() {
        return;
    }
    let mut bench = Bench::new(&["--tag", "0xfeed"]);
    bench.namespace.ip("link set h2 down");
    bench.wait_for_log("carrier=false");
    for (token, port) in [(7, 2), (8, 5)] {
        let way_back = [Element::Relative(-1)].into_iter().collect();
        let data = Data { token, way_back, ethernet: &[0; 60] }.encode().unwrap();
        let (_, answer) = bench.exchange_with_source("h1", &[Element::Absolute(port)], &data, "h1");
        assert_eq!(Undeliverable::decode(&answer), Ok(Undeliverable { token, tag: 0xfeed, port }));
    }
    let port = &bench.status()["ports"][0];
    assert_eq!((&port["notices"], &port["notices_suppressed"]), (&2.into(), &0.into()), "{port}");
    assert_eq!(port["dropped"]["no_carrier"], 1, "{port}");
    assert_eq!(port["dropped"]["no_interface"], 1, "{port}");
}

#[test]
fn a_frame_too_long_for_an_interface_is_counted_and_those_beside_it_get_through() {
    if !can_make_namespaces() {
        return;
    }
    let bench = Bench::new(&["--kind", "plain"]);
    bench.namespace.ip("link set p2 mtu 500");
    bench.send("h1", [&[0x81][..]], &[0; 1000]);
    bench.exchange("h1", &[Element::Relative(1)], &[0; 60], "h2");
    let status = bench.status();
    assert_eq!(status["ports"][0]["dropped"]["too_long"], 1, "{status}");
    assert_eq!((sent(&status["ports"][1]), &status["ports"][1]["unsent"]), (1, &1.into()));
}

#[test]
fn many_frames_stay_in_order() {
    const FRAMES: u32 = 5000;
    if !can_make_namespaces() {
        return;
    }
    let bench = Bench::new(&["--kind", "plain"]);
    let numbers = bench.namespace.enter(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let sender = EthernetPort::open("h1", Marking::default()).unwrap();
            let receiver = EthernetPort::open("h2", Marking::default()).unwrap();
            let (mut batch, mut numbers) = (Batch::new(), Vec::new());
            // Only 50 frames are under way at once, which every queue has room for.
            for first in (0..FRAMES).step_by(50) {
                (first..first + 50).for_each(|number| sender.queue(&[0x81], &number.to_be_bytes()));
                sender.flush();
                while numbers.len() < first as usize + 50 {
                    tokio::time::timeout(PATIENCE, receiver.recv_batch(&mut batch)).await.unwrap();
                    let number = |frame: &[u8]| frame[HEADER_BYTES..].first_chunk().copied().unwrap();
                    let is_hello =
                        |frame: &&[u8]| FrameKind::of(&frame[HEADER_BYTES..]) == Ok(FrameKind::Hello);
                    let frames = batch.frames().filter(|frame| !is_hello(frame));
                    numbers.extend(frames.map(|frame| u32::from_be_bytes(number(frame))));
                }
            }
            numbers
        })
    });
    assert_eq!(numbers, (0..FRAMES).collect::<Vec<_>>());
    let status = bench.status();
    assert_eq!(
        (&status["ports"][0]["forwarded"], sent(&status["ports"][1])),
        (&FRAMES.into(), FRAMES.into())
    );
}

#[test]
fn the_status_is_a_table_for_a_person() {
    if !can_make_namespaces() {
        return;
    }
    let bench = Bench::new(&["--tag", "0xfeed", "--name", "core"]);
    let text = bench.status_output(&[]);
    assert!(text.starts_with("crossbar core: tagged 000000000000feed, ports 1 to 8,"), "{text}");
    assert!(text.lines().any(|line| line.split_whitespace().take(3).eq(["2", "p2", "yes"])), "{text}");
}
