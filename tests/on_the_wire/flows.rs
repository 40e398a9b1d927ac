//! Tests of users' flows over a fabric that works, and over one that fails.

use std::collections::BTreeMap;
use std::io::{BufReader, BufWriter, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::lab::{Lab, RaiseOnDrop, wait_for};
use crate::{can_carry_ip, namespace};

/// Longer than any step of these tests takes on a busy machine. Only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two bursts of a sender, in which other processes can work.
const PACE: Duration = Duration::from_millis(1);

/// A TCP connection from h1 to h3 that carries numbers, 0, 1, 2 and so on, until it is ended.
struct Flow {
    ended: Arc<AtomicBool>,
    received: Arc<AtomicU64>,
    sender: JoinHandle<u64>,
    receiver: JoinHandle<u64>,
}

impl Flow {
    fn start(lab: &Lab) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let received = Arc::new(AtomicU64::new(0));
        let (listens, listening) = channel();
        let (there, seen) = (lab.namespace("h3"), Arc::clone(&received));
        let receiver = std::thread::spawn(move || {
            namespace::enter(&there);
            let listener = TcpListener::bind("10.77.0.3:7777").unwrap();
            listens.send(()).unwrap();
            let (stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut stream = BufReader::new(stream);
            let mut bytes = [0; 8];
            let mut next = 0;
            loop {
                match stream.read_exact(&mut bytes) {
                    Ok(()) => assert_eq!(u64::from_be_bytes(bytes), next),
                    Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return next,
                    Err(error) => panic!("after {next} numbers: {error}"),
                }
                next += 1;
                seen.store(next, Ordering::Relaxed);
            }
        });
        listening.recv().unwrap();
        let (here, stop) = (lab.namespace("h1"), Arc::clone(&ended));
        let sender = std::thread::spawn(move || {
            namespace::enter(&here);
            let stream = TcpStream::connect("10.77.0.3:7777").unwrap();
            stream.set_write_timeout(Some(PATIENCE)).unwrap();
            let mut stream = BufWriter::new(stream);
            let mut next = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                for _ in 0..500 {
                    stream.write_all(&next.to_be_bytes()).unwrap();
                    next += 1;
                }
                stream.flush().unwrap();
                std::thread::sleep(PACE);
            }
            next
        });
        Self { ended, received, sender, receiver }
    }

    /// Waits until more numbers have arrived than can have been under way when it is called.
    fn goes_on(&self, when: &str) {
        let before = self.received.load(Ordering::Relaxed);
        wait_for(&format!("the flow goes on {when}"), || {
            assert!(!self.sender.is_finished() && !self.receiver.is_finished(), "the flow broke {when}");
            (self.received.load(Ordering::Relaxed) > before + 100_000).then_some(())
        });
    }

    fn end(self) {
        self.ended.store(true, Ordering::Relaxed);
        let sent = self.sender.join().unwrap();
        assert_eq!(self.receiver.join().unwrap(), sent);
    }
}

#[test]
fn a_tcp_connection_outlives_cut_and_silent_cables_a_dead_node_and_new_maps() {
    if !can_carry_ip() {
        return;
    }
    let lab = Lab::up("ring:n=4,hosts=1", &["--nodes", "--", "--data-path", "tap"]);
    lab.wait_for_network("the whole ring", 4, 4);
    lab.wait_for_pings("all reach each other", &[]);
    let flow = Flow::start(&lab);
    flow.goes_on("at first");
    for fault in ["cut", "silent"] {
        // The flow takes one of the two ways around the ring, so one of these cuts meets it.
        for cable in ["h1:1", "h1:2"] {
            lab.run(&[fault, cable]);
            flow.goes_on(&format!("with {cable} {fault}"));
            lab.wait_for_network("a cable less", 4, 3);
            flow.goes_on(&format!("with a new map and {cable} {fault}"));
            lab.run(&["mend", cable]);
            lab.wait_for_network("the whole ring again", 4, 4);
            flow.goes_on(&format!("with {cable} mended"));
        }
    }
    for node in ["h2", "h4"] {
        lab.run(&["kill", node]);
        flow.goes_on(&format!("without {node}"));
        lab.run(&["restart", node]);
        lab.wait_for_network("the whole ring once more", 4, 4);
        flow.goes_on(&format!("with {node} again"));
    }
    flow.end();
}

/// Reads numbers until each sender has sent `last`, and returns how many numbers arrived out of order.
fn count_reordered(socket: &UdpSocket, senders: usize, last: u64) -> usize {
    let mut highest: BTreeMap<SocketAddr, u64> = BTreeMap::new();
    let mut reordered = 0;
    let mut bytes = [0; 8];
    while highest.len() < senders || highest.values().any(|&number| number < last) {
        let (_, from) = socket.recv_from(&mut bytes).unwrap();
        let number = u64::from_be_bytes(bytes);
        let before = highest.insert(from, number);
        // An equal number is no reordering: a sender repeats its last number.
        reordered += usize::from(before.is_some_and(|before| before > number));
    }
    reordered
}

#[test]
fn no_frame_of_a_flow_overtakes_another() {
    if !can_carry_ip() {
        return;
    }
    // So many that they do not all take the same one of two routes by chance.
    const FLOWS: usize = 16;
    const LAST: u64 = 1000;
    // Agents are patient: on a busy machine none must hold a live cable for dead, as flows leave such a one at once.
    let options = ["--", "--data-path", "tap", "--liveness-misses", "10"];
    let lab = Lab::up("clos:hosts=8,ports=4", &options);
    lab.wait_for_network("the whole Clos", 8, 8);
    lab.wait_for_pings("all reach each other", &[]);
    let ended = AtomicBool::new(false);
    let (listens, listening) = channel();
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            namespace::enter(&lab.namespace("h8"));
            let socket = UdpSocket::bind("10.77.0.8:7777").unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            listens.send(()).unwrap();
            count_reordered(&socket, FLOWS, LAST)
        });
        listening.recv().unwrap();
        scope.spawn(|| {
            namespace::enter(&lab.namespace("h1"));
            let sockets: Vec<_> = (0..FLOWS).map(|_| UdpSocket::bind("10.77.0.1:0").unwrap()).collect();
            for number in (1..=LAST).chain(std::iter::repeat(LAST)) {
                for socket in &sockets {
                    socket.send_to(&number.to_be_bytes(), "10.77.0.8:7777").unwrap();
                }
                if number % 4 == 0 {
                    std::thread::sleep(PACE);
                }
                if ended.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let _ends = RaiseOnDrop(&ended);
        // Only while they take several routes could they overtake each other.
        wait_for("they take several routes", || {
            (lab.boards(&[])[0]["tap"]["counters"]["routes_in_use"].as_u64() > Some(1)).then_some(())
        });
        assert_eq!(receiver.join().unwrap(), 0);
    });
}

#[test]
fn a_broadcast_and_a_multicast_reach_every_host_once() {
    if !can_carry_ip() {
        return;
    }
    const HOSTS: u8 = 4;
    let lab = Lab::up("ring:n=4,hosts=1", &["--nodes", "--", "--data-path", "tap"]);
    lab.wait_for_network("the whole ring", 4, 4);
    lab.wait_for_pings("all reach each other", &[]);
    let (listens, listening) = channel();
    std::thread::scope(|scope| {
        let receivers: Vec<_> = (2..=HOSTS)
            .map(|host| {
                let (lab, listens) = (&lab, listens.clone());
                scope.spawn(move || {
                    namespace::enter(&lab.namespace(&format!("h{host}")));
                    let socket = UdpSocket::bind("0.0.0.0:7777").unwrap();
                    let group = Ipv4Addr::new(239, 7, 7, 7);
                    socket.join_multicast_v4(&group, &Ipv4Addr::new(10, 77, 0, host)).unwrap();
                    socket.set_read_timeout(Some(PATIENCE)).unwrap();
                    listens.send(()).unwrap();
                    let mut heard = Vec::new();
                    let mut byte = [0];
                    // The dot is sent to this host alone, after all else.
                    while !heard.ends_with(b".") {
                        socket.recv(&mut byte).unwrap();
                        heard.push(byte[0]);
                    }
                    heard.sort_unstable();
                    String::from_utf8(heard).unwrap()
                })
            })
            .collect();
        receivers.iter().for_each(|_| listening.recv().unwrap());
        scope.spawn(|| {
            namespace::enter(&lab.namespace("h1"));
            let socket = UdpSocket::bind("10.77.0.1:0").unwrap();
            socket.set_broadcast(true).unwrap();
            for (text, to) in [("b", "10.77.255.255:7777"), ("m", "239.7.7.7:7777")] {
                socket.send_to(text.as_bytes(), to).unwrap();
            }
            for host in 2..=HOSTS {
                // When all hosts have answered each other, any second copies have arrived as well.
                lab.wait_for_pings("all still reach each other", &[]);
                socket.send_to(b".", format!("10.77.0.{host}:7777")).unwrap();
            }
        });
        for receiver in receivers {
            assert_eq!(receiver.join().unwrap(), ".bm");
        }
    });
}

/// A BPF program for tc that takes users' frames of more than `longer_than` bytes, and lets all others pass.
/// Users' frames are those with the type of data frames behind a route of up to eight bytes.
fn taking_data(longer_than: usize) -> String {
    const ROUTE_BYTES: usize = 8;
    const ETHERNET_HEADER_BYTES: usize = 14;
    let count = 2 + 2 * (ROUTE_BYTES + 1) + 2;
    // Load the length of the frame. Continue if it is greater, else jump to the end, which lets the frame
    // pass.
    let mut program = vec!["128 0 0 0".to_owned(), format!("37 0 {} {longer_than}", count - 4)];
    for byte in 0..=ROUTE_BYTES {
        let left = count - program.len() - 3;
        // Load a word of the frame. If it is the type of data frames, jump to the end, which takes the frame.
        program.push(format!("32 0 0 {}", ETHERNET_HEADER_BYTES + byte));
        program.push(format!("21 {left} 0 9"));
    }
    program.extend(["6 0 0 0".to_owned(), "6 0 0 4".to_owned()]);
    format!("{count},{},", program.join(","))
}

/// Makes an interface of a node run a program on all frames that pass it in either direction, or no program.
fn set_filter(lab: &Lab, (node, interface): (&str, &str), program: Option<&str>) {
    let tc = |words: &[&str]| {
        let output = Command::new("tc").args(["-n", &lab.namespace(node)]).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    match program {
        None => tc(&["qdisc", "del", "dev", interface, "clsact"]),
        Some(program) => {
            tc(&["qdisc", "replace", "dev", interface, "clsact"]);
            for way in ["ingress", "egress"] {
                let filter = ["filter", "add", "dev", interface, way, "protocol", "all", "prio", "1"];
                tc(&[&filter[..], &["bpf", "bytecode", program, "direct-action"]].concat());
            }
        }
    }
}

/// How many boards list a dead cable for this reason.
fn boards_that_say(lab: &Lab, why: &str) -> usize {
    let says = |board: &serde_json::Value| {
        let cables = board["dead_cables"].as_array().unwrap();
        cables.iter().any(|cable| cable["why"].as_str().unwrap().contains(why))
    };
    lab.boards(&[]).iter().filter(|board| says(board)).count()
}

#[test]
fn a_cable_that_carries_the_mappers_frames_and_not_users_is_left_and_named() {
    if !can_carry_ip() {
        return;
    }
    const WHY: &str = "not users'";
    let lab = Lab::up("ring:n=4,hosts=1", &["--nodes", "--", "--data-path", "tap"]);
    lab.wait_for_network("the whole ring", 4, 4);
    lab.wait_for_pings("all reach each other", &[]);
    // h1 pings both its neighbours, one of which is behind the cable.
    let ping = |count: &str, bytes: &str| {
        ["10.77.0.2", "10.77.0.4"].map(|to| {
            let words = ["exec", "h1", "ping", "-q", "-c", count, "-i", "0.02", "-W", "1", "-s", bytes, to];
            String::from_utf8(lab.try_run(&words).stdout).unwrap()
        })
    };
    // The cable loses all of users' frames at first, and then only the long ones.
    for (longer_than, bytes) in [(0, "56"), (800, "1200")] {
        set_filter(&lab, ("h1", "p1"), Some(&taking_data(longer_than)));
        wait_for("boards name the cable", || {
            ping("20", bytes);
            (boards_that_say(&lab, WHY) > 0).then_some(())
        });
        let logs = ["h1", "h2", "h3", "h4"].map(|host| lab.log(host)).join("\n");
        assert!(logs.contains(" of the xbar of h"), "a log names the node as boards do: {logs}");
        for report in ping("100", bytes) {
            let words: Vec<_> =
                report.lines().find(|line| line.contains(" received")).unwrap().split(' ').collect();
            if words[3].parse::<u32>().unwrap() < 95 {
                let boards = lab.boards(&[]);
                let said = boards.iter().map(|board| {
                    format!("{}: {} {}", board["name"], board["dead_cables"], board["counters"]["liveness"])
                });
                panic!("{report}{}", said.collect::<Vec<_>>().join("\n"));
            }
        }
        let boards = lab.wait_for_network("the map still lists the cable", 4, 4);
        assert_eq!(boards.len(), 4);
        set_filter(&lab, ("h1", "p1"), None);
        wait_for("the cable is in use again", || (boards_that_say(&lab, WHY) == 0).then_some(()));
    }
}

#[test]
fn what_a_crossbar_could_not_send_on_is_sent_again_where_the_only_other_way_is_around_the_cable() {
    if !can_carry_ip() {
        return;
    }
    // Without checks of paths, crossbars have nobody to tell of a lost carrier: a host learns of it by its frames.
    let options = ["--", "--data-path", "tap", "--liveness-interval-ms", "0"];
    let lab = Lab::up("ring:n=4,hosts=1", &options);
    lab.wait_for_network("the whole ring", 4, 4);
    lab.wait_for_pings("all reach each other", &[]);
    let counter = |name: &str| lab.boards(&[])[0]["tap"]["counters"][name].as_u64().unwrap();
    // One shortest route leads to each neighbour, and one of the two crosses the cable. The cut is repeated
    // until it meets a frame: if none is under way before there is a new map, nothing is sent again.
    wait_for("a frame comes back", || {
        let before = counter("frames_out");
        std::thread::scope(|scope| {
            for to in ["10.77.0.2", "10.77.0.4"] {
                let lab = &lab;
                let ping = ["exec", "h1", "ping", "-q", "-i", "0.002", "-c", "500", "-W", "1", to];
                scope.spawn(move || lab.try_run(&ping));
            }
            wait_for("frames are under way", || (counter("frames_out") > before + 50).then_some(()));
            lab.run(&["cut", "xbar1:1"]);
        });
        lab.run(&["mend", "xbar1:1"]);
        lab.wait_for_network("the whole ring again", 4, 4);
        (counter("notices") > counter("notices_ignored")).then_some(())
    });
    // A notice that comes late, as on a busy machine, is of a frame that nobody has any more, and is not believed.
    let board = lab.boards(&[])[0].take();
    let [notices, ignored, resent, given_up] = ["notices", "notices_ignored", "resent", "given_up"]
        .map(|name| board["tap"]["counters"][name].as_u64().unwrap());
    assert_eq!((resent, given_up), (notices - ignored, 0));
}
