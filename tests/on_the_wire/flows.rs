//! Users' flows over the fabric, while it fails and while it does not.

use std::collections::BTreeMap;
use std::io::{BufReader, BufWriter, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::lab::{Lab, RaiseOnDrop, wait_for};
use crate::{can_carry_ip, namespace};

/// Longer than anything here takes on a busy machine; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two bursts of a sender: so that it leaves the machine to others, too.
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

    /// Waits until more numbers have come than were under way just now.
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
    let lab = Lab::up("ring:n=4,hosts=1", &["--nodes"]);
    lab.wait_for_network("the whole ring", 4, 4);
    lab.wait_for_pings("all reach each other", &[]);
    let flow = Flow::start(&lab);
    flow.goes_on("at first");
    for fault in ["cut", "silent"] {
        // Of the two ways around the ring it takes one, or the other.
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

/// Reads numbers until all senders have sent `last`; returns how many came out of order.
fn count_reordered(socket: &UdpSocket, senders: usize, last: u64) -> usize {
    let mut highest: BTreeMap<SocketAddr, u64> = BTreeMap::new();
    let mut reordered = 0;
    let mut bytes = [0; 8];
    while highest.len() < senders || highest.values().any(|&number| number < last) {
        let (_, from) = socket.recv_from(&mut bytes).unwrap();
        let number = u64::from_be_bytes(bytes);
        let before = highest.insert(from, number);
        // The last one is sent again and again.
        reordered += usize::from(before.is_some_and(|before| before > number));
    }
    reordered
}

#[test]
fn no_frame_of_a_flow_overtakes_another() {
    if !can_carry_ip() {
        return;
    }
    const FLOWS: usize = 8;
    const LAST: u64 = 2000;
    let lab = Lab::up("clos:hosts=8,ports=4", &[]);
    lab.wait_for_network("the whole Clos", 8, 8);
    lab.wait_for_pings("all reach each other", &[]);
    let ended = AtomicBool::new(false);
    let (listens, listening) = channel();
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let _ends = RaiseOnDrop(&ended);
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
        assert_eq!(receiver.join().unwrap(), 0);
    });
    // They had several routes to choose from.
    let boards = lab.boards(&[]);
    assert!(boards[0]["tap"]["counters"]["routes_in_use"].as_u64() > Some(1), "{:#}", boards[0]["tap"]);
}
