//! The crossbar process, by frames put on its cables by hand.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Stdio};
use std::time::Duration;

use mapper::link::ethernet::{EthernetSocket, Frame, HEADER_BYTES, MAX_FRAME_BYTES, Marking};
use mapper::link::interface::Interface;
use mapper_proto::wire::{Element, Info, Message, Probe, ProbeKind, Route, Stamp, split_route};

use crate::namespace::Namespace;
use crate::{MAPPER, can_make_namespaces};

/// Longer than a frame takes on a busy machine; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(30);

/// A namespace with a crossbar in it, whose port N is interface `pN`, and its cable's far end `hN`.
struct Bench {
    namespace: Namespace,
    xbar: Child,
    log: BufReader<ChildStderr>,
}

impl Bench {
    fn new(options: &[&str]) -> Self {
        let namespace = Namespace::new();
        for port in 1..=2 {
            namespace.ip(&format!("link add p{port} type veth peer name h{port}"));
            namespace.ip(&format!("link set p{port} up"));
            namespace.ip(&format!("link set h{port} up"));
        }
        let mut xbar = namespace
            .command(MAPPER)
            .args(["xbar", "--port", "p1", "--port", "p2", "--ports", "8"])
            .args(options)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(xbar.stderr.take().unwrap());
        let mut bench = Self { namespace, xbar, log };
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
        self.namespace.enter(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let sender = open(from);
                let other = (to != from).then(|| open(to));
                let receiver = other.as_ref().unwrap_or(&sender);
                sender.send(Route::from_iter(route.iter().copied()).as_bytes(), frame).unwrap();
                let mut buffer = vec![0; MAX_FRAME_BYTES];
                let bytes = tokio::time::timeout(PATIENCE, receiver.recv(&mut buffer))
                    .await
                    .expect("no frame came")
                    .unwrap();
                let frame = Frame::parse(&buffer[..bytes]).unwrap();
                assert_eq!(frame.source, Interface::look_up(from).unwrap().unwrap().mac, "the source stays");
                buffer[HEADER_BYTES..bytes].to_vec()
            })
        })
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
    bench.wait_for_log("carrier changed");
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
fn what_it_does_not_understand_is_counted() {
    if !can_make_namespaces() {
        return;
    }
    let mut bench = Bench::new(&["--kind", "plain"]);
    bench.namespace.enter(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        let sender = open("h1");
        for route in [&[0xc0, 2][..], &[0xe0], &[0xa0], &[0x81 + 2], &[0xff], &[0x00]] {
            sender.send(route, &[0; 60]).unwrap();
        }
    });
    // Behind them comes a frame that gets through: then they have been looked at.
    bench.exchange("h1", &[Element::Relative(1)], &[0; 60], "h2");
    let pid = rustix::process::Pid::from_raw(bench.xbar.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    bench.wait_for_log("dropped=6");
}
