//! Tests of agents with keys against strangers who have no key, another key, or recorded frames.

use std::io::IoSlice;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use mapper_machine::link::ethernet::{EthernetSocket, HEADER_BYTES, MAX_FRAME_BYTES, Marking};
use mapper_machine::link::interface::Interface;
use serde_json::Value;

use crate::lab::{Lab, wait_for};
use crate::signals::{key, write_keys};
use crate::{MAPPER, can_make_namespaces, namespace};

/// What makes agents wait long for answers. On a machine that has too few processors for all that it runs, they
/// would else take each other for dead now and then and map again, which is nobody's doing.
pub(crate) const PATIENT: [&str; 4] = ["--probe-timeout-ms", "500", "--liveness-interval-ms", "500"];

/// A ring of three whose agents have a key, and the directory with its file.
fn lab_with_key() -> (Lab, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("key");
    write_keys(&file, &[&key(1)]);
    let options = [&["--", "--key-file", file.to_str().unwrap()], &PATIENT[..]].concat();
    (Lab::up("ring:n=3,hosts=1", &options), dir)
}

/// Fails unless all agents believe what they believed before.
fn assert_unmoved(before: &[Value], after: &[Value], by: &str) {
    for (before, after) in before.iter().zip(after) {
        let steady = ["state", "network_configured", "map_version", "leader", "parent", "children", "hosts"];
        assert!(steady.iter().all(|&key| before[key] == after[key]), "by {by}: {before:#}\n{after:#}");
    }
}

/// How many frames were dropped for these reasons, in all.
fn dropped(boards: &[Value], reasons: &[&str]) -> u64 {
    let of_board = |board: &Value| -> u64 {
        reasons.iter().map(|&reason| board["counters"]["dropped"][reason].as_u64().unwrap_or(0)).sum()
    };
    boards.iter().map(of_board).sum()
}

/// An agent in the place of h2 that wants to be the global mapper.
struct Stranger(Child);

impl Stranger {
    fn start(lab: &Lab, dir: &tempfile::TempDir, options: &[&str]) -> Self {
        let child = Command::new("ip")
            .args(["netns", "exec", &lab.namespace("h2"), MAPPER, "agent", "--interface", "fab0"])
            .args(["--level", "200", "--thrash", "--run-dir", dir.path().join("run").to_str().unwrap()])
            .args(options)
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _already_ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

#[test]
fn who_has_no_key_or_another_one_moves_nobody() {
    if !can_make_namespaces() {
        return;
    }
    let (lab, dir) = lab_with_key();
    lab.wait_for_network("the whole ring", 3, 3);
    lab.run(&["kill", "h2"]);
    let before = lab.wait_for_network("without the host whose place the stranger takes", 2, 3);
    let own_key = dir.path().join("own");
    write_keys(&own_key, &[&key(1)]);
    let own_key = own_key.to_str().unwrap();
    for (options, reasons) in [(&[][..], &["no_tag"][..]), (&["--key-file", own_key], &["bad_tag"])] {
        let stranger = Stranger::start(&lab, &dir, options);
        let at_first = dropped(&before, reasons);
        wait_for("the stranger is heard", || {
            (dropped(&lab.boards(&[]), reasons) > at_first + 10).then_some(())
        });
        let after = lab.wait_for_network("the others go on", 2, 3);
        assert_unmoved(&before, &after, reasons[0]);
        drop(stranger);
    }
    lab.run(&["restart", "h2"]);
    lab.wait_for_network("the whole ring again", 3, 3);
}

/// Records all frames of the fabric that arrive at an interface, until it is ended.
struct Recorder {
    ended: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Vec<u8>>>,
}

impl Recorder {
    fn start(lab: &Lab, (node, interface): (&str, &'static str)) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let (name, stop) = (lab.namespace(node), Arc::clone(&ended));
        let thread = std::thread::spawn(move || {
            namespace::enter(&name);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let socket = open(interface);
                let mut frames = Vec::new();
                let mut buffer = vec![0; MAX_FRAME_BYTES];
                while !stop.load(Ordering::Relaxed) {
                    let next = tokio::time::timeout(Duration::from_millis(20), socket.recv(&mut buffer));
                    if let Ok(bytes) = next.await {
                        frames.push(buffer[..bytes.unwrap()].to_vec());
                    }
                }
                frames
            })
        });
        Self { ended, thread }
    }

    fn end(self) -> Vec<Vec<u8>> {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn open(interface: &str) -> EthernetSocket {
    EthernetSocket::open(&Interface::look_up(interface).unwrap().unwrap(), Marking::default()).unwrap()
}

/// Sends frames from an interface as they were recorded.
fn replay(lab: &Lab, (node, interface): (&str, &str), frames: &[Vec<u8>]) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            namespace::enter(&lab.namespace(node));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let _inside = runtime.enter();
            let socket = open(interface);
            for burst in frames.chunks(16) {
                let burst: Vec<_> = burst
                    .iter()
                    .map(|frame| [IoSlice::new(&frame[..HEADER_BYTES]), IoSlice::new(&frame[HEADER_BYTES..])])
                    .collect();
                socket.send_batch(&burst, |_, _| {});
                std::thread::sleep(Duration::from_millis(1));
            }
        });
    });
}

#[test]
fn who_has_a_recording_moves_nobody() {
    if !can_make_namespaces() {
        return;
    }
    let (lab, _dir) = lab_with_key();
    lab.wait_for_network("the whole ring", 3, 3);
    // The interfaces where frames are recorded, each with one from which they arrive there once more.
    // Recorded are the frames that the global mapper sends and receives, and those that another host
    // receives.
    let taps = [
        (("xbar3", "p3"), ("h3", "fab0")),
        (("h3", "fab0"), ("xbar3", "p3")),
        (("h1", "fab0"), ("xbar1", "p3")),
    ];
    let restart_all = || {
        for host in ["h1", "h2", "h3"] {
            lab.run(&["restart", host]);
        }
    };
    let recorders = taps.map(|(at, _)| Recorder::start(&lab, at));
    restart_all();
    lab.wait_for_network("all of a former life", 3, 3);
    let former = recorders.map(Recorder::end);
    let recorders = taps.map(|(at, _)| Recorder::start(&lab, at));
    restart_all();
    let before = lab.wait_for_network("all of this life", 3, 3);
    let present = recorders.map(Recorder::end);
    for (life, recordings) in [("former", former), ("present", present)] {
        let at_first = dropped(&lab.boards(&[]), &["replayed"]);
        for (frames, (_, from)) in recordings.iter().zip(taps) {
            assert!(!frames.is_empty(), "{life} at {from:?}");
        }
        wait_for(life, || {
            for (frames, (_, from)) in recordings.iter().zip(taps) {
                replay(&lab, from, frames);
            }
            (dropped(&lab.boards(&[]), &["replayed"]) > at_first + 50).then_some(())
        });
        let after = lab.wait_for_network(&format!("complete behind a recording of a {life} life"), 3, 3);
        assert_unmoved(&before, &after, life);
    }
}
