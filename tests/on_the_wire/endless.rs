//! A test of agents with keys beside a stranger at a spare port, who answers as if there were crossbars
//! without end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mapper_machine::link::ethernet::{EthernetFrame, EthernetSocket, MAX_FRAME_BYTES, Marking};
use mapper_machine::link::interface::Interface;
use mapper_sim::hostile::EndlessTree;
use serde_json::Value;

use crate::lab::Lab;
use crate::signals::{key, write_keys};
use crate::{can_carry_ip, namespace};

/// All hosts but h6, whose place the stranger takes.
const HOSTS: [&str; 5] = ["h1", "h2", "h3", "h4", "h5"];
/// The most memory that a host's agent may have at any time.
const MOST_KIB: u64 = 48 * 1024;
/// How much more memory an agent may have after the attack than before.
const MORE_KIB: u64 = 8 * 1024;

/// A thread that answers at the interface of a host until it is dropped.
struct Stranger {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Stranger {
    fn start(lab: &Lab, host: &str, tree: EndlessTree) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let (name, stop) = (lab.namespace(host), Arc::clone(&ended));
        let thread = std::thread::spawn(move || {
            namespace::enter(&name);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(answer(tree, &stop));
        });
        Self { ended, thread: Some(thread) }
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        let answered = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || matches!(answered, Some(Ok(()))), "the stranger failed");
    }
}

async fn answer(tree: EndlessTree, stop: &AtomicBool) {
    let interface = Interface::look_up("fab0").unwrap().unwrap();
    let socket = EthernetSocket::open(&interface, Marking::default()).unwrap();
    let mut buffer = vec![0; MAX_FRAME_BYTES];
    while !stop.load(Ordering::Relaxed) {
        let next = tokio::time::timeout(Duration::from_millis(20), socket.recv(&mut buffer));
        let Ok(bytes) = next.await else { continue };
        let frame = EthernetFrame::parse(&buffer[..bytes.unwrap()]).unwrap();
        if let Some(answer) = tree.answer(frame.payload()) {
            // An answer that does not fit into the queue is lost, as on any cable.
            let _may_be_lost = socket.send(answer.route.as_bytes(), &answer.frame);
        }
    }
}

/// The memory that a node's process has, and the most that it ever had, in KiB.
fn memory_kib(lab: &Lab, node: &str) -> (u64, u64) {
    let pid = lab.pid(node).as_raw_pid();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let field = |name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    };
    (field("VmRSS:"), field("VmHWM:"))
}

/// Whether all hosts but h6 have the true map, and name a port behind which nobody can be believed exactly if
/// `naming`.
fn have_true_map(boards: &[Value], naming: bool) -> bool {
    let live: Vec<_> = boards.iter().filter(|board| board["mac"].is_string()).collect();
    let names = |board: &Value| {
        let gone = board["unreachable"].as_array().unwrap();
        gone.iter().any(|gone| gone["mac"] == "00:00:00:00:00:00")
    };
    live.len() == 5
        && live.iter().all(|board| {
            board["network_configured"] == true
                && board["map_version"] == live[0]["map_version"]
                && [&board["hosts"], &board["xbars"], &board["cables"]] == [5, 3, 3]
                && names(board) == naming
        })
}

#[test]
fn it_does_not_keep_the_others_from_a_map_and_is_forgotten_when_it_has_gone() {
    if !can_carry_ip() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let key_file = dir.path().join("key");
    write_keys(&key_file, &[&key(1)]);
    let lab = Lab::up("ring:n=3,hosts=2", &["--", "--key-file", key_file.to_str().unwrap()]);
    lab.wait_for_network("the whole ring", 6, 3);
    lab.run(&["kill", "h6"]);
    lab.wait_until("the others", |boards| have_true_map(boards, false));
    let before = HOSTS.map(|host| memory_kib(&lab, host).0);
    let trees = [
        EndlessTree::Tagged { ports: 254 },
        EndlessTree::Tagged { ports: 3 },
        EndlessTree::Plain { ports: 15 },
        EndlessTree::Tagged { ports: 254 },
    ];
    for tree in trees {
        let began = Instant::now();
        let stranger = Stranger::start(&lab, "h6", tree);
        lab.wait_until("mapped beside it", |boards| have_true_map(boards, true));
        let beside = began.elapsed();
        lab.wait_for_pings("all others reach each other beside it", &["h6"]);
        // A host that restarts makes all agents map once more while the stranger is there.
        lab.run(&["restart", "h2"]);
        lab.wait_until("mapped again beside it", |boards| have_true_map(boards, true));
        let gone = Instant::now();
        drop(stranger);
        lab.run(&["cut", "h6"]);
        lab.wait_until("mapped without it", |boards| have_true_map(boards, false));
        let without = gone.elapsed();
        let memory = HOSTS.map(|host| memory_kib(&lab, host));
        eprintln!(
            "{tree:?}: {beside:?} beside it, {without:?} when it has gone; (now, most) KiB: {memory:?}"
        );
        for (host, (before, (now, most))) in HOSTS.iter().zip(before.iter().zip(memory)) {
            assert!(most < MOST_KIB, "{tree:?}: {host} had {most} KiB");
            assert!(now < before + MORE_KIB, "{tree:?}: {host} had {before} KiB and has {now} KiB");
        }
        lab.run(&["mend", "h6"]);
    }
}
